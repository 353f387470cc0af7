"""The arguments of a call: read from the model's text, then checked one by one into values of the annotated types.

What is not whole is an error, and what does not fit gets a sentence each. Unlike `annotations`, which
checks one value, this knows which parameters there are, which may be left out, and how a model spells that. Nothing is guessed: an
argument under another name is an error that names the nearest parameter.
"""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from nb_agent.tools.annotations import faults, shown, without_nulls
from nb_agent.tools.parameters import Parameter
from nb_agent.values import JSON

__all__ = ["checked_arguments", "parsed"]

#: How often a JSON text inside a JSON text is unwrapped. Small models write such arguments.
_MOST_WRAPS: Final = 2


def checked_arguments(parameters: tuple[Parameter, ...], given: JSON, *, strict: bool) -> tuple[dict[str, Any], list[str]]:
    """The arguments by the names of the function, and what is wrong with them. Defaults are left to the function.

    Args:
        parameters: what there is to be given.
        given: what the model gave.
        strict: whether the model had to give every key: null then stands for one that it would have left out.
    """
    checked: dict[str, Any] = {}
    wrong: list[str] = []
    for entry in parameters:
        left_out = strict and not entry.required and given.get(entry.key, ...) is None and not entry.adapter.takes_none()
        if entry.key in given and not left_out:
            wrong += _take(entry, given[entry.key], checked, strict=strict)
        elif entry.required:
            wrong.append(f"{entry.key}: missing, expected {_expected(entry.adapter.schema)}")
        elif entry.fill:
            checked[entry.name] = entry.fill()
    return checked, [*wrong, *_unknown(given, [entry.key for entry in parameters])]


def _take(entry: Parameter, value: Any, checked: dict[str, Any], *, strict: bool) -> list[str]:
    try:
        checked[entry.name] = entry.adapter.check(value)
    except ValidationError as error:
        fuller = without_nulls(error, copy.deepcopy(value)) if strict else None
        return faults(error, value, entry.key) if fuller is None else _take(entry, fuller, checked, strict=False)
    except Exception as error:  # noqa: BLE001  a validator of the author's may raise anything
        return [f"{entry.key}: {type(error).__name__}: {error}"]
    return []


def _expected(schema: JSON) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(repr, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_expected(part) for part in schema["anyOf"])
    return str(schema.get("type", "object" if "$ref" in schema else "a value"))


def _unknown(arguments: JSON, keys: list[str]) -> Iterator[str]:
    for name in arguments:
        if name not in keys:
            near = difflib.get_close_matches(name, keys, n=1)
            takes = f"the tool takes {', '.join(keys)}" if keys else "the tool takes no arguments"
            yield f"{name}: there is no such parameter" + (f", did you mean {near[0]}?" if near else f"; {takes}")


# ------------------------------------------------------------------------------------------------- the model's text


def parsed(text: str | None) -> JSON:
    r"""The arguments of a call as an object. None at all is an empty one; half of one, or two, is an error.

    >>> parsed(""), parsed("null"), parsed('"{\\"id\\": 4}"')
    ({}, {}, {'id': 4})

    Raises:
        ValueError: it is not one JSON object; the text says so in words for the model.
    """
    value: Any = text
    for _ in range(1 + _MOST_WRAPS):
        if value is None or (isinstance(value, str) and value.strip() in {"", "None"}):
            return {}
        if not isinstance(value, str):
            break
        value = _read(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"the arguments must be one JSON object, not {shown(value)}")  # noqa: TRY004  the caller's text is wrong
    return value


def _read(text: str) -> Any:
    try:
        return json.loads(text, strict=False, object_pairs_hook=_object, parse_constant=_refuse)  # a bare line break is no doubt
    except json.JSONDecodeError as error:
        fault = "text after the end of the object" if error.msg == "Extra data" else error.msg
        near = shown(text[max(0, error.pos - 20) : error.pos + 20])
        raise ValueError(
            f"the arguments are not one JSON object: {fault} at character {error.pos}, near {near}; send exactly one"
        ) from None
    except RecursionError:
        raise ValueError("the arguments are nested too deep") from None


def _object(pairs: list[tuple[str, Any]]) -> JSON:
    made: JSON = {}
    for key, value in pairs:
        if made.setdefault(key, value) != value:
            raise ValueError(f"the arguments name {key!r} twice with different values")
    return made


def _refuse(word: str) -> Any:
    raise ValueError(f"the arguments hold {word}, which is not JSON")
