"""Arguments of a call checked against a schema that came from somewhere else. Our own tools are checked by pydantic instead.

``jsonschema`` decides; this puts what it finds into one line each, with the name of the argument in front. A schema that is broken
checks nothing: the server has the last word on its own arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from nb_agent.values import JSON

__all__ = ["argument_faults"]

#: Faults that are told at once; a model mends a handful at a time.
_MOST: Final = 5
#: Characters of one fault: jsonschema quotes whole values.
_LONGEST: Final = 240

_REQUIRED: Final = " is a required property"
_QUOTES: Final = "'\""


def argument_faults(schema: JSON, arguments: JSON) -> list[str]:
    """What is wrong with the arguments, a line each; an empty list means that they fit.

    >>> argument_faults({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {})
    ["argument 'n' is missing"]
    """
    import jsonschema  # noqa: PLC0415  60 ms: only when a foreign tool is called
    import referencing  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(schema)
        registry: Any = referencing.Registry()  # empty: a $ref is never fetched from the network
        found = list(cls(schema, registry=registry).iter_errors(arguments))
    except (jsonschema.SchemaError, Unresolvable, RecursionError):
        return []
    return [_cut(_told(jsonschema.exceptions.best_match([error]))) for error in found[:_MOST]]


def _told(error: Any) -> str:
    place = _place(error.absolute_path)
    if error.validator == "required":  # one fault for each name, which stands only in its text
        return f"argument {_inside(place, error.message.removesuffix(_REQUIRED).strip(_QUOTES))!r} is missing"
    if error.validator == "additionalProperties" and error.validator_value is False:
        known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
        extra = [name for name in error.instance if name not in known and not any(re.search(p, name) for p in patterns)]
        said = ", ".join(repr(_inside(place, name)) for name in extra)
        return f"argument {said} is not known; known are: {', '.join(known) or 'none'}"
    if not place:
        return f"the arguments do not fit: {error.message}"
    return f"argument {place!r}: {error.message}"


def _place(path: Iterable[str | int]) -> str:
    place = ""
    for key in path:
        place = f"{place}[{key}]" if isinstance(key, int) else _inside(place, key)
    return place


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else str(name)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"
