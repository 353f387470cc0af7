"""Names of parameters for providers that take only some characters in them, and the way back.

A name that fits stays. Another one becomes one that is made from it alone, so that the arguments of a call are read back without a
list of what was sent. Only the parameters themselves are looked at, as Anthropic does; keys further inside are free. Source: its
400, "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from nb_agent.adapters.schema_reading import dict_of, list_of
from nb_agent.values import JSON

__all__ = ["fitted", "renamed", "restored", "with_fitted_names"]

_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_HASH: Final = 8  # characters


def fitted(name: str) -> str:
    """The name, or one that fits and belongs to it alone.

    >>> fitted("city"), fitted("filter[id]")
    ('city', 'filter_id_665d001d')
    """
    if _NAME.fullmatch(name):
        return name
    plain = re.sub("[^a-zA-Z0-9]+", "_", name).strip("_")[: 63 - _HASH]
    return f"{plain}_{sha256(name.encode('utf-8', 'replace')).hexdigest()[:_HASH]}".lstrip("_")


def with_fitted_names(schema: JSON) -> JSON:
    """A schema of parameters whose names fit; each that was changed is named in its description.

    >>> with_fitted_names({"properties": {"a b": {"type": "string"}}})["properties"]
    {'a_b_c8687a08': {'type': 'string', 'description': 'a b'}}
    """
    given = dict_of(schema.get("properties"))
    if all(map(_NAME.fullmatch, given)):
        return schema
    properties = {fitted(name): part if _NAME.fullmatch(name) else _named(name, dict_of(part)) for name, part in given.items()}
    form = {**schema, "properties": properties}
    if "required" in schema:
        form["required"] = [fitted(name) for name in list_of(schema["required"]) if isinstance(name, str)]
    return form


def _named(name: str, part: JSON) -> JSON:
    return {**part, "description": f"{name}: {part['description']}" if part.get("description") else name}


def renamed(names: Iterable[str]) -> dict[str, str]:
    """The names that do not fit, by what was sent in their place: what `restored` needs."""
    return {fitted(name): name for name in names if not _NAME.fullmatch(name)}


def restored(arguments: JSON, own: Mapping[str, str]) -> JSON:
    """The arguments of a call under the names that the tool itself has for them.

    >>> restored({"a_b_c8687a08": 1, "c": 2}, renamed(["a b", "c"]))
    {'a b': 1, 'c': 2}
    """
    return {own.get(name, name): value for name, value in arguments.items()} if own else arguments
