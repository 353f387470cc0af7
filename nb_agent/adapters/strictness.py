"""Schemas for providers that hold a model to them: why one cannot be strict, and the form that OpenAI's two formats want.

A strict schema is closed: every object names all its keys, every key has to be given (null stands for one that is left out), and
there is a type everywhere. A schema that leaves something open would only promise less than the tool takes, so it is not rewritten:
`openness` says what is open, and the tool goes out without strictness. Unlike `schema_reading`, which it rests on, this writes
whole schemas. Source: OpenAI's guide to structured outputs, and its 400s in public issue threads. Pure; nothing given is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from nb_agent.adapters.schema_reading import (
    described,
    dict_of,
    find,
    is_null,
    kinds_of,
    list_of,
    merge,
    one_of_all,
    only,
    rooted,
    takes_null,
    told,
    values_of,
)
from nb_agent.messages import Definition
from nb_agent.values import JSON

__all__ = ["openness", "parameters", "plain", "strict"]

#: What OpenAI takes at most in one strict schema.
_MOST_PROPERTIES: Final = 5000
_MOST_VALUES: Final = 1000
_MOST_LEVELS: Final = 10

#: Keywords that a strict schema of OpenAI's may have, beside those that hold schemas.
_KEPT: Final = (
    *("title", "description", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "pattern"),
)
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
#: Keywords that are put in words instead.
_TOLD: Final = (
    *("minLength", "maxLength", "uniqueItems", "not", "propertyNames", "contains", "dependentRequired"),
    *("minProperties", "maxProperties", "default"),
)


def parameters(definition: Definition) -> tuple[JSON, bool, str]:
    """The schema of a tool's arguments for OpenAI, whether it is strict, and a sentence where it was asked to be and cannot."""
    if not definition.strict:
        return plain(definition.parameters), False, ""
    form, reason = strict(definition.parameters)
    if not reason:
        return form, True, ""
    return plain(definition.parameters), False, f"{definition.name} was sent without strict, because {reason}"


# ------------------------------------------------------------------------------------------------------------ not strict


def plain(schema: JSON) -> JSON:
    """A schema as OpenAI takes it without strictness: an object at the root, with properties, and arrays that say their items.

    >>> plain({"properties": {"x": {"type": "array", "prefixItems": [{}]}}, "required": []})
    {'type': 'object', 'properties': {'x': {'type': 'array', 'prefixItems': [{}], 'items': {}}}}
    """
    form: JSON = _with_items(rooted(schema))
    return {key: value for key, value in form.items() if value or key != "required"}


#: Keywords that hold schemas: by name, in a list, or one.
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTED: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE: Final = frozenset({"items", "additionalProperties", "not"})


def _with_items(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    form = dict(schema)
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            form[key] = {name: _with_items(part) for name, part in value.items()}
        elif key in _LISTED and isinstance(value, list):
            form[key] = [_with_items(part) for part in value]
        elif key in _SINGLE:
            form[key] = _with_items(value)
    return form | {"items": {}} if form.get("type") == "array" and "items" not in form else form


# ------------------------------------------------------------------------------------------------------- what is left open


@dataclass(slots=True)
class _Reader:
    """A schema on its way through `openness`."""

    root: JSON
    circles: bool
    seen: set[str] = field(default_factory=set)


def openness(schema: JSON, *, circles: bool = True) -> str:
    """Why a schema cannot be made strict, as half a sentence; nothing where it can.

    Args:
        schema: the schema of a tool's arguments.
        circles: whether the provider takes schemas that refer to themselves.

    >>> openness({"type": "object", "properties": {"tags": {"type": "object", "additionalProperties": {"type": "string"}}}})
    'tags takes keys of any name'
    """
    return next(_open(_Reader(schema, circles), rooted(schema), (), ()), "")


def _open(reader: _Reader, schema: Any, place: tuple[str, ...], inside: tuple[str, ...]) -> Iterator[str]:
    where = ".".join(place) or "the tool"
    given = dict_of(schema)
    if isinstance(name := given.get("$ref"), str):
        if name in inside and not reader.circles:
            yield f"{where} refers to itself"
        if name in reader.seen:
            return
        reader.seen.add(name)
        inside = (*inside, name)
        given = merge(find(reader.root, name) or {}, {key: value for key, value in given.items() if key != "$ref"})
    if "$ref" in given or "allOf" in given:
        yield from _open(reader, one_of_all(reader.root, given), place, inside)
    elif branches := list_of(given.get("anyOf", given.get("oneOf"))):
        for branch in branches:
            yield from _open(reader, branch, place, inside)
    elif not kinds_of(given) and not is_null(given):
        yield f"{where} takes any value"
    else:
        yield from _open_inside(reader, given, place, inside)


def _open_inside(reader: _Reader, schema: JSON, place: tuple[str, ...], inside: tuple[str, ...]) -> Iterator[str]:
    kinds, named = kinds_of(schema), schema.get("properties")
    if "object" in kinds:
        if "patternProperties" in schema or schema.get("additionalProperties", not isinstance(named, dict)) is not False:
            yield f"{'.'.join(place) or 'the tool'} takes keys of any name"
        for name, part in dict_of(named).items():
            yield from _open(reader, part, (*place, name), inside)
    if "array" in kinds and schema.get("maxItems") != 0:
        for part in list_of(schema.get("prefixItems")) or [schema.get("items")]:
            yield from _open(reader, part, (*place, "items"), inside)


# ---------------------------------------------------------------------------------------------------------------- strict


def strict(schema: JSON) -> tuple[JSON, str]:
    """A schema as OpenAI's strict mode takes it, and half a sentence where it cannot be one.

    What can be left out becomes null; what strict mode has no keyword for is said in the description.

    >>> strict({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}})[0]["properties"]
    {'n': {'type': ['integer', 'null'], 'description': 'default: 3'}}
    """
    if reason := openness(schema):
        return {}, reason
    root = rooted(schema)
    form = _closed(root, {key: value for key, value in root.items() if key not in ("$defs", "definitions")})
    if shared := dict_of(root.get("$defs")) | dict_of(root.get("definitions")):
        form["$defs"] = {name: _closed(root, part) for name, part in shared.items()}
    return form, _too_large(form)


def _closed(root: JSON, schema: JSON) -> JSON:
    if isinstance(schema.get("$ref"), str):
        return _described({"$ref": schema["$ref"].replace("#/definitions/", "#/$defs/")}, schema)
    if "allOf" in schema:
        return _closed(root, one_of_all(root, schema))
    if branches := schema.get("anyOf", schema.get("oneOf")):
        return _described({"anyOf": [_closed(root, dict_of(part)) for part in list_of(branches)]}, schema)
    kinds = kinds_of(schema)
    if len(kinds) > 1 and {"object", "array"} & set(kinds):
        parts = [_closed(root, only(schema, kind)) for kind in kinds] + ([{"type": "null"}] if takes_null(schema) else [])
        return _described({"anyOf": parts}, schema)
    return _typed(root, schema, kinds)


def _described(form: JSON, schema: JSON) -> JSON:
    """A choice or a reference with what is said beside it: a reference may have nothing beside it, and becomes a choice of one."""
    said = described({key: schema[key] for key in ("title", "description") if schema.get(key)}, told(schema, _TOLD))
    return {"anyOf": [form], **said} if said and "$ref" in form else {**form, **said}


def _typed(root: JSON, schema: JSON, kinds: list[str]) -> JSON:
    types = [*kinds, *(["null"] if takes_null(schema) else [])]
    form: JSON = {"type": types[0] if len(types) == 1 else types}
    form |= {key: schema[key] for key in _KEPT if key in schema}
    words = told(schema, _TOLD)
    if "(?" in str(form.get("pattern")):  # what looks around itself is refused
        words.append(f"pattern {form.pop('pattern')}")
    if schema.get("format") in _FORMATS:
        form["format"] = schema["format"]
    elif schema.get("format"):
        words.append(f"format {schema['format']}")
    if values := values_of(schema):
        form["enum"] = values
    if "object" in kinds:
        form |= _properties(root, schema)
    elif "array" in kinds:
        form |= _items(root, schema, words)
    return described(form, words)


def _properties(root: JSON, schema: JSON) -> JSON:
    given, required = dict_of(schema.get("properties")), list_of(schema.get("required"))
    parts = {name: _closed(root, dict_of(part)) for name, part in given.items()}
    properties = {name: part if name in required else _or_null(part) for name, part in parts.items()}
    return {"properties": properties, "required": list(properties), "additionalProperties": False}


def _items(root: JSON, schema: JSON, words: list[str]) -> JSON:
    places = [_closed(root, dict_of(part)) for part in list_of(schema.get("prefixItems"))]
    if not places:
        return {"items": _closed(root, schema["items"]) if dict_of(schema.get("items")) else {"type": "string"}}
    unlike = [form for number, form in enumerate(places) if form not in places[:number]]
    if len(unlike) > 1:
        words.append("the items in this order")
    return {"items": unlike[0] if len(unlike) == 1 else {"anyOf": unlike}}


def _or_null(form: JSON) -> JSON:
    """A form that null fits, too: it stands for what is left out."""
    if "anyOf" in form:
        has = any(part.get("type") == "null" for part in form["anyOf"])
        return form if has else {**form, "anyOf": [*form["anyOf"], {"type": "null"}]}
    if "$ref" in form:
        return {"anyOf": [form, {"type": "null"}]}
    types = form["type"] if isinstance(form["type"], list) else [form["type"]]
    if "null" in types:
        return form
    if {"object", "array"} & set(types):
        said: JSON = {key: form[key] for key in ("title", "description") if key in form}
        return {"anyOf": [{key: value for key, value in form.items() if key not in said}, {"type": "null"}], **said}
    return {**form, "type": [*types, "null"]} | ({"enum": [*form["enum"], None]} if "enum" in form else {})


def _too_large(form: JSON) -> str:
    parts = list(_parts(form, 0))
    if sum(len(part.get("properties", ())) for part, _ in parts) > _MOST_PROPERTIES:
        return f"it has more than {_MOST_PROPERTIES:,} properties"
    if sum(len(part.get("enum", ())) for part, _ in parts) > _MOST_VALUES:
        return f"it lists more than {_MOST_VALUES:,} values"
    if any(level > _MOST_LEVELS for _, level in parts):
        return f"it is nested more than {_MOST_LEVELS} levels deep"
    return ""


def _parts(form: JSON, level: int) -> Iterator[tuple[JSON, int]]:
    """Every schema inside a strict one, and how deep it lies."""
    level += "properties" in form or "items" in form
    yield form, level
    for part in form.get("anyOf", ()):
        yield from _parts(part, level)
    for part in (*form.get("properties", {}).values(), *([form["items"]] if "items" in form else ())):
        yield from _parts(part, level)
    for part in form.get("$defs", {}).values():
        yield from _parts(part, 0)
