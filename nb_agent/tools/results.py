"""What a tool gives back, as text and pictures that a model can read. Every type of value becomes something; nothing here raises.

Unlike `values.to_json` this is a one-way street: it aims at a reader, not at coming back. pandas and numpy are never imported
here: who gives back a frame has imported them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import re
import sys
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

from nb_agent.messages import Image, Text
from nb_agent.tools.pictures import picture_of

__all__ = ["MOST_CHARACTERS", "cut", "to_parts"]

#: Characters of one result that a model gets; about 5,000 tokens of English.
MOST_CHARACTERS: Final = 20_000
#: Rows of a frame that are written out, half of them from its end.
MOST_ROWS: Final = 200
#: Elements of an array that are written out.
MOST_ELEMENTS: Final = 2_000
#: Items of a list that are looked at for pictures.
MOST_PICTURES: Final = 20
#: Containers inside each other that are written out.
MOST_DEPTH: Final = 40

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def to_parts(value: Any, *, limit: int = MOST_CHARACTERS) -> tuple[Text | Image, ...]:
    """A value as the parts of a tool result; text longer than ``limit`` characters is cut in the middle.

    >>> to_parts({"town": "京都", "rain": None})
    (Text(text='{"town": "京都", "rain": null}', extra=None),)
    """
    try:
        parts = _parts(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  __str__, __repr__ and the like are somebody else's code, and may even exit
        parts = (Text(f"(a value of type {type(value).__name__} that cannot be shown: {type(error).__name__})"),)
    return tuple(dataclasses.replace(part, text=cut(part.text, limit)) if isinstance(part, Text) else part for part in parts)


def cut(text: str, limit: int) -> str:
    """A text of about ``limit`` characters at most: its start, its end, and a note between that says how long the whole is."""
    if len(text) <= limit:
        return text
    half = max(0, limit - 200) // 2  # 200: the note
    start, end = text[:half], text[len(text) - half :]
    start = start[: start.rfind("\n", half * 3 // 4) + 1] or start  # whole lines, where lines are not too long
    end = end[end.find("\n", 0, half // 4) + 1 :]
    left, lines = len(text) - len(start) - len(end), text.count("\n") + 1
    note = f"[… {left:,} of {len(text):,} characters are left out here, of {lines:,} lines in all; ask for a smaller part …]"
    return f"{start}{'' if start.endswith(chr(10)) else chr(10)}{note}\n{end}"


def _parts(value: Any) -> tuple[Text | Image, ...]:
    if isinstance(value, (Text, Image)):
        return (value,)
    if isinstance(value, (list, tuple)) and value:
        if all(isinstance(part, (Text, Image)) for part in value):
            return tuple(value)
        drawn = [_picture(part) for part in value[:MOST_PICTURES]]
        if any(drawn):
            drawn += [None] * len(value[MOST_PICTURES:])
            return tuple(part for item, seen in zip(value, drawn, strict=True) for part in seen or (Text(_text(item)),))
    return _picture(value) or (Text(_text(value)),)


def _picture(value: Any) -> tuple[Text | Image, ...] | None:
    try:
        return picture_of(value)
    except Exception:  # noqa: BLE001  drawing is somebody else's code; the value still has a text
        return None


def _text(value: Any) -> str:
    if value is None:
        return "(no output)"
    if isinstance(value, str) and not isinstance(value, Enum):
        return str(value) or "(empty text)"
    plain = _Plain().form(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------- values as JSON


class _Plain:
    """Makes JSON of one value; remembers the containers that it is in, so that a list that holds itself comes to an end."""

    def __init__(self) -> None:
        self._inside: list[int] = []

    def form(self, value: Any) -> Any:
        """The value, or what stands for it, in types that JSON has."""
        try:
            return self._form(value)
        except Exception as error:  # noqa: BLE001  one bad item does not hide the others
            return f"(a value of type {type(value).__name__} that cannot be shown: {type(error).__name__})"

    def _form(self, value: Any) -> Any:
        if value is None or type(value) in {bool, int, str}:
            return value
        for types, write in _WRITERS:
            if isinstance(value, types):
                return write(value)
        for module, name, write in _LAZY_WRITERS:
            if isinstance(value, getattr(sys.modules.get(module), name, ())):
                return self._form(write(value))
        for types, look in _INSIDES:
            if isinstance(value, types):
                return self._container(value, look(value))
        fields = None if isinstance(value, type) else _fields(value)
        return _shown(value) if fields is None else self._container(value, fields)

    def _container(self, value: Any, inner: Any) -> Any:
        if id(value) in self._inside or len(self._inside) >= MOST_DEPTH:
            return "…"
        self._inside.append(id(value))
        try:
            if not isinstance(inner, Mapping):
                return [self.form(part) for part in inner]
            form = {_key(key): self.form(part) for key, part in inner.items()}
            return form if len(form) == len(inner) else [[self.form(key), self.form(part)] for key, part in inner.items()]
        finally:
            self._inside.pop()


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass, a pydantic model or an attrs class, but those that its author keeps out of its repr."""
    if dataclasses.is_dataclass(value):
        return {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value) if entry.repr}
    model: Any = getattr(sys.modules.get("pydantic"), "BaseModel", ())
    if isinstance(value, model):
        dumped: dict[str, Any] = value.model_dump(
            exclude={key for key, entry in type(value).model_fields.items() if not entry.repr}
        )
        return dumped
    if hasattr(value, "__attrs_attrs__"):
        return {entry.name: getattr(value, entry.name) for entry in value.__attrs_attrs__ if entry.repr}
    return None


def _in_order(values: AbstractSet[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _key(key: Any) -> str:
    """A key as text; JSON's own words for what it has words for."""
    if isinstance(key, Enum):
        return str(_enum(key))
    return key if isinstance(key, str) else json.dumps(key) if key is None or isinstance(key, (bool, int, float)) else str(key)


def _shown(value: Any) -> str:
    """What the value says of itself; an address in memory says nothing."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return _ADDRESS.sub("", str(value)) or f"({type(value).__name__})"


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _enum(value: Enum) -> Any:
    """Its value where that is a text, as pydantic would read it back; else the name says more."""
    return value.value if isinstance(value.value, str) else f"{value.name} ({value.value!r})"


def _binary(value: bytes | bytearray | memoryview) -> str:
    content = bytes(value)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if all(letter.isprintable() or letter in "\r\n\t" for letter in text) and text:
        return f"({len(content):,} bytes of text) {text}"
    return f"({len(content):,} bytes of binary content, not shown)"


#: How values without parts are written; the first type that fits is taken.
_WRITERS: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Enum, _enum),
    (bool, bool),
    (int, int),
    (float, _number),
    (str, str),
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    ((bytes, bytearray, memoryview), _binary),
)
#: What is inside a container, as a mapping or a list; the first type that fits is taken.
_INSIDES: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Mapping, lambda value: value),
    (tuple, lambda value: value._asdict() if hasattr(value, "_asdict") else value),  # a named tuple
    ((list, range, deque, KeysView, ValuesView, ItemsView), list),
    (AbstractSet, _in_order),
)


# ------------------------------------------------------------------------------------------------- frames and arrays


def _frame(value: Any) -> str:
    rows, columns = value.shape
    return f"DataFrame, {rows:,} rows by {columns:,} columns, as CSV:\n{_csv(value)}"


def _series(value: Any) -> str:
    return f"Series of {value.dtype}, {len(value):,} values, as CSV:\n{_csv(value.to_frame())}"


def _csv(frame: Any) -> str:
    counted = type(frame.index).__name__ == "RangeIndex" and frame.index.name is None
    if len(frame) <= MOST_ROWS:
        return str(frame.to_csv(index=not counted, na_rep="NaN"))
    half = MOST_ROWS // 2
    note = f"[… rows {half:,} to {len(frame) - half - 1:,} of {len(frame):,} are left out here; ask for fewer rows or columns …]"
    first = frame.iloc[:half].to_csv(index=True, na_rep="NaN")
    return f"{first}{note}\n{frame.iloc[-half:].to_csv(index=True, na_rep='NaN', header=False)}"


def _array(value: Any) -> str:
    about = f"array of {value.dtype}, shape {value.shape}:\n"
    if value.size > MOST_ELEMENTS:
        return about + str(value)  # numpy itself leaves out the middle
    items = value.astype(str).tolist() if value.dtype.kind in "mM" else value.tolist()  # it counts times in nanoseconds
    return about + json.dumps(_Plain().form(items), ensure_ascii=False)


def _scalar(value: Any) -> Any:
    plain = value.item() if value.dtype.kind in "biufcSU" else str(value)
    return str(value) if type(plain) is type(value) else plain


#: Types of modules that are looked up only where somebody else has imported them: module, name, writer.
_LAZY_WRITERS: Final[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = (
    ("pandas", "DataFrame", _frame),
    ("pandas", "Series", _series),
    ("pandas", "Index", list),
    ("numpy", "ndarray", _array),
    ("numpy", "generic", _scalar),
    ("sqlite3", "Row", lambda row: {key: row[key] for key in row.keys()}),  # noqa: SIM118  iterating a row gives its values
)
