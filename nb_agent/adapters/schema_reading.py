"""What a JSON Schema says, for the wire formats that know less of it: references, types, null, alternatives, and all that in words.

Schemas come from MCP servers and may be anything: what is no schema is read as one that says nothing. Pure; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from nb_agent.values import JSON, dumps

__all__ = [
    "TYPICAL",
    "described",
    "dict_of",
    "find",
    "in_words",
    "is_null",
    "kinds_of",
    "list_of",
    "merge",
    "one_of_all",
    "only",
    "rooted",
    "takes_null",
    "told",
    "values_of",
]

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


# ------------------------------------------------------------------------------------------------------------- the root

_SEVERAL: Final = ("allOf", "anyOf", "oneOf")


def rooted(schema: JSON) -> JSON:
    """A schema whose root is of type object and no choice of several, as the APIs want it.

    What only a choice says, such as "one of these two keys", is lost to the model here; the host still checks it.
    """
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not schema.keys() & {"$ref", *_SEVERAL}:
        return schema
    root = _resolved(schema, schema)
    properties: JSON = dict(root.get("properties") or {})
    required: list[str] = list(root.get("required") or ())
    for key in _SEVERAL:
        members = [_resolved(member, schema) for member in root.pop(key, None) or () if isinstance(member, dict)]
        wanted = [set(member.get("required") or ()) for member in members]
        if wanted:
            required += sorted(set.union(*wanted) if key == "allOf" else set.intersection(*wanted))
        for member in members:
            properties = (member.get("properties") or {}) | properties
    rest = {key: value for key, value in root.items() if key not in ("type", "properties", "required")}
    form: JSON = {"type": "object", "properties": properties, **rest}
    return form | ({"required": list(dict.fromkeys(required))} if required else {})


def _resolved(schema: JSON, root: JSON) -> JSON:
    """A schema with the definition that it points to in its place; one that points in a circle is left as far as it went."""
    found = dict(schema)
    for _ in range(8):
        target: Any = root
        for step in str(found.get("$ref") or "").removeprefix("#").split("/")[1:]:
            target = target.get(step) if isinstance(target, dict) else None
        if target is root or not isinstance(target, dict):
            break
        del found["$ref"]
        found = {**target, **found}
    found.pop("$ref", None)
    return found


# ------------------------------------------------------------------------------------------------------------- in words

#: Keyword -> how it is worded in a description, for a format that does not have it.
_WORDS: Final = {
    "exclusiveMinimum": "greater than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "uniqueItems": "no item twice",
    "not": "not fitting {}",
    "patternProperties": "names and values: {}",
    "propertyNames": "names fit {}",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "contains": "one item fits {}",
    "dependentRequired": "required together: {}",
    "default": "default: {}",
}


def told(schema: JSON, keywords: Iterable[str]) -> list[str]:
    """Keywords in words, those that say something.

    >>> told({"minLength": 2, "uniqueItems": False}, ("minLength", "uniqueItems"))
    ['at least 2 characters']
    """
    given = ((_WORDS[key], schema[key]) for key in keywords if schema.get(key) is not None and schema[key] is not False)
    return [words.format(in_words(value)) for words, value in given]


def described(form: JSON, words: Iterable[str]) -> JSON:
    """A form with words put behind its description, in brackets where there is one.

    >>> described({"description": "the price"}, ["greater than 0"])
    {'description': 'the price (greater than 0)'}
    """
    more, said = "; ".join(words), form.get("description")
    return {**form, "description": f"{said} ({more})" if said else more} if more else form


def in_words(value: Any) -> str:
    """A value as JSON, a schema that only has a type as that type."""
    return str(value["type"]) if isinstance(value, dict) and list(value) == ["type"] else dumps(value)
