"""What a JSON Schema says, for the wire formats that know less of it: references, types, null, alternatives. It writes nothing.

Schemas come from MCP servers and may be anything: what is no schema is read as one that says nothing. Pure; nothing is changed.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from nb_agent.values import JSON

__all__ = ["TYPICAL", "dict_of", "find", "is_null", "kinds_of", "list_of", "merge", "one_of_all", "only", "takes_null", "values_of"]

#: Keywords by which a schema without a type shows what it is for.
TYPICAL: Final = {
    "object": ("properties", "additionalProperties", "patternProperties", "required", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("pattern", "minLength", "maxLength", "format"),
}
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_KNOWN: Final = frozenset({*_TYPES.values(), "null"})
_MOST_NESTED: Final = 5  # allOf in allOf: each level may branch


def dict_of(value: Any) -> JSON:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def find(root: JSON, name: str) -> JSON | None:
    """What a reference inside the document leads to: a JSON pointer (RFC 6901), or a definition's anchor or id.

    >>> find({"$defs": {"a/b": {"type": "string"}}}, "#/$defs/a~1b")
    {'type': 'string'}
    """
    if name == "#":
        return root
    if not name.startswith("#/"):
        known = [part for key in ("$defs", "definitions") for part in dict_of(root.get(key)).values() if isinstance(part, dict)]
        return next((part for part in known if part.get("$id") == name or f"#{part.get('$anchor')}" == name), None)
    target: Any = root
    for step in unquote(name[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        elif isinstance(target, dict) and key in target:
            target = target[key]
        else:
            return None
    return {} if target is True else target if isinstance(target, dict) else None


def merge(first: JSON, second: JSON) -> JSON:
    """Two schemas that both hold, as one. Where they differ in a plain keyword the second one wins."""
    both = {**first, **second}
    if isinstance(first.get("properties"), dict) and isinstance(second.get("properties"), dict):
        both["properties"] = first["properties"] | second["properties"]
    if "required" in first and "required" in second:
        both["required"] = [*list_of(first["required"]), *list_of(second["required"])]
    return both


def one_of_all(root: JSON, schema: JSON, level: int = 0) -> JSON:
    """The schema with what its ``allOf`` demands put into it."""
    both = {key: value for key, value in schema.items() if key != "allOf"}
    for entry in reversed(list_of(schema.get("allOf"))):
        part = dict_of(entry)
        for _ in range(_MOST_NESTED):
            if isinstance(part.get("$ref"), str):
                part = merge(find(root, part["$ref"]) or {}, {key: value for key, value in part.items() if key != "$ref"})
        part = one_of_all(root, part, level + 1) if "allOf" in part and level < _MOST_NESTED else part
        both = merge({key: value for key, value in part.items() if key not in ("$ref", "allOf")}, both)
    return both


def values_of(schema: JSON) -> list[Any]:
    """The values that ``const`` or ``enum`` list."""
    return [schema["const"]] if "const" in schema else list_of(schema.get("enum"))


def kinds_of(schema: JSON) -> list[str]:
    """The types that a schema allows, null aside; read off its values or its keywords where it names none.

    >>> kinds_of({"type": ["string", "null"]}), kinds_of({"const": 3}), kinds_of({"items": {}}), kinds_of({})
    (['string'], ['integer'], ['array'], [])
    """
    given = schema.get("type")
    kinds = [kind.lower() for kind in (given if isinstance(given, list) else [given]) if isinstance(kind, str)]
    if kinds := [kind for kind in kinds if kind in _KNOWN]:
        return [kind for kind in dict.fromkeys(kinds) if kind != "null"]
    found = list(dict.fromkeys(_TYPES.get(type(value), "string") for value in values_of(schema) if value is not None))
    if found:
        return found
    return next(([kind] for kind, words in TYPICAL.items() if any(word in schema for word in words)), [])


def takes_null(schema: JSON) -> bool:
    """Whether it says in so many words that null is allowed."""
    given = schema.get("type")
    named = given == "null" or (isinstance(given, list) and "null" in given)
    return named or schema.get("nullable") is True or any(value is None for value in values_of(schema))


def is_null(schema: Any) -> bool:
    """Whether it allows null and nothing else."""
    return isinstance(schema, dict) and takes_null(schema) and not kinds_of(schema)


def only(schema: JSON, kind: str) -> JSON:
    """What a schema of several types says about one of them; what it says about itself is left out."""
    foreign = {word for words in TYPICAL.values() for word in words} - set(TYPICAL.get("number" if kind == "integer" else kind, ()))
    kept = {key: value for key, value in schema.items() if key not in foreign | {"title", "description", "default", "const"}}
    if values := values_of(schema):
        kept["enum"] = [value for value in values if _TYPES.get(type(value)) == kind]
    return kept | {"type": kind}
