"""The table of known models: context windows and longest answers in tokens, with its date and sources, in models.json.

A model that is not in it is not known, however much its name is like another one's. Models that people serve themselves are not in
it on purpose: their window is what their server was started with.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard

from nb_agent.errors import SettingError

__all__ = ["Known", "known", "use"]

#: Environment variable with the path of a file that is used like `use` does.
VARIABLE: Final = "NB_AGENT_MODELS"

#: What may stand behind a name without making it another model: versions, dates, and where it is served.
_ENDING: Final = re.compile(r"(?:-(?:latest|preview|exp|v\d+|\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|\d{2}-\d{2}))*(?:@.*)?")
#: Spellings of the same model: Azure leaves out a dot, and some sellers write one.
_SPELLINGS: Final = ((re.compile(r"^gpt-35"), "gpt-3.5"), (re.compile(r"^(claude-[a-z]*-?\d)\.(\d)"), r"\1-\2"))

_own: dict[str, Known] = {}


class Known(NamedTuple):
    """What is known of a model.

    Attributes:
        name: as it stands in the table.
        window: tokens of request and answer together.
        output: tokens of the longest answer, hidden reasoning included; ``None`` where it is not known.
        source: where the numbers are from.
        as_of: date of the table.
    """

    name: str
    window: int
    output: int | None = None
    source: str = ""
    as_of: str = ""


def known(model: str) -> Known | None:
    """What is known of a model, however a provider or a tuning decorates its name; ``None`` where that is nothing.

    >>> known("azure/gpt-4o-2024-11-20").window, known("ft:gpt-4o-mini-2024-07-18:org::id").output, known("qwen3:8b")
    (128000, 16384, None)
    """
    table = {**_shipped(), **_named(os.environ.get(VARIABLE, "")), **_own}
    for part in model.strip().lower().replace(":", "/").split("/"):
        name = part.rpartition("anthropic.")[2]  # Bedrock puts a region and a vendor in front
        for spelling, usual in _SPELLINGS:
            name = spelling.sub(usual, name)
        for length in range(len(name), 0, -1):
            if name[:length] in table and _ENDING.fullmatch(name[length:]):
                return table[name[:length]]
    return None


def use(models: Mapping[str, Any] | str | os.PathLike[str]) -> None:
    """Know these models too, or otherwise than the table does: a mapping, or a JSON file of the same form.

    Args:
        models: name -> ``{"window": tokens, "output": tokens or null}``. An empty mapping takes back what was said before.

    Raises:
        SettingError: the file cannot be read, or an entry is not of this form; nothing was changed.
    """
    entries = _read(Path(models)) if isinstance(models, (str, os.PathLike)) else _entries(models, "your own table")
    if not entries:
        _own.clear()
    _own.update(entries)


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Known]:
    return _read(Path(__file__).with_name("models.json"))


@lru_cache(maxsize=4)
def _named(path: str) -> dict[str, Known]:
    return _read(Path(path)) if path else {}


def _read(path: Path) -> dict[str, Known]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"cannot read the table of models {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise SettingError(f"the table of models {str(path)!r} is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise SettingError(f'the table of models {str(path)!r} must be an object: {{"NAME": {{"window": TOKENS}}}}')
    sources, entries = table.get("sources", {}), table.get("models", table)
    return {
        name: entry._replace(source=sources.get(entry.source, entry.source), as_of=str(table.get("as_of", "")))
        for name, entry in _entries(entries, str(path)).items()
    }


def _entries(entries: Any, where: str) -> dict[str, Known]:
    made = {}
    for name, entry in entries.items():
        window, output = (entry.get("window"), entry.get("output")) if isinstance(entry, Mapping) else (entry, None)
        if not _is_number(window) or not (output is None or _is_number(output)):
            raise SettingError(
                f"{where}: {name!r} must have a window, and may have an output, of whole tokens above 0, not {entry!r}"
            )
        source = entry.get("source", where) if isinstance(entry, Mapping) else where
        made[str(name).lower()] = Known(str(name), window, output, str(source))
    return made


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
