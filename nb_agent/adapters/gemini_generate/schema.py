"""JSON Schema -> the part of OpenAPI that Gemini's function declarations know, so that no keyword fails the whole request.

What the classic field ``parameters`` cannot say is said in words in the description. References are written out where they stand,
those that lead to themselves a few levels deep. Source of the keywords: the ``Schema`` message of the API reference, and the 400s
in public issue threads. Unlike ``schema_reading``, which it rests on, this knows Gemini. Pure; a given schema is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from nb_agent.adapters.schema_reading import (
    described,
    dict_of,
    find,
    in_words,
    is_null,
    kinds_of,
    list_of,
    merge,
    one_of_all,
    only,
    takes_null,
    told,
    values_of,
)
from nb_agent.values import JSON, dumps

__all__ = ["parameters"]

#: Keywords that go over as they are, wherever they stand.
_NAMES: Final = ("title", "description", "default")
_KEPT: Final = (
    *_NAMES,
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "pattern",
)
#: Keywords that go into the description.
_TOLD: Final = (
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "not", "patternProperties", "propertyNames"),
    *("contains", "dependentRequired"),
)
#: What Gemini takes as ``format``; any other one is refused.
_FORMATS: Final = {"string": ("enum", "date-time"), "number": ("float", "double"), "integer": ("int32", "int64")}

_ANY: Final = "any JSON value"
_DEEPEST: Final = 24  # levels of one schema
_MOST: Final = 400  # schemas in one tool: with more of them the references are written out less deep


@dataclass(slots=True)
class _Writer:
    """One schema on its way: whose it is, how often a reference may stand inside itself, and what had to be given up."""

    root: JSON
    tool: str
    repeats: int
    written: int = 0
    level: int = 0
    open: list[str] = field(default_factory=list)  # the references that we are inside of
    said: dict[str, None] = field(default_factory=dict)

    def say(self, what: str) -> None:
        self.said[f"the parameters of {self.tool} {what}"] = None


def parameters(schema: JSON, tool: str) -> tuple[JSON | None, tuple[str, ...]]:
    """The schema of a tool's arguments for ``parameters``, ``None`` where there are none, and a sentence for what was given up.

    Gemini has refused an object with no properties: a tool without arguments has no ``parameters`` at all.

    >>> parameters({"type": "object", "properties": {}}, "now")
    (None, ())
    >>> parameters({"properties": {"n": {"const": "wet"}}, "$schema": "x"}, "grow")
    ({'type': 'object', 'properties': {'n': {'type': 'string', 'enum': ['wet']}}}, ())
    """
    for repeats in (3, 2, 1):
        writer = _Writer(schema, tool, repeats)
        form = _root(_schema(writer, schema))
        if writer.written <= _MOST:
            break
    return (form if form.get("properties") else None), tuple(writer.said)


def _root(form: JSON) -> JSON:
    """The root has to be an object itself: alternatives at the top become one object that has the properties of them all."""
    branches = [branch for branch in form.get("anyOf", ()) if isinstance(branch.get("properties"), dict)]
    kept = {key: value for key, value in form.items() if key not in ("type", "anyOf", "nullable")}
    if branches:
        properties: JSON = {}
        for branch in reversed(branches):
            properties |= branch["properties"]
        shared = [name for name in properties if all(name in branch.get("required", ()) for branch in branches)]
        kept |= {"properties": properties} | ({"required": shared} if shared else {})
    return {"type": "object", **kept}


# ------------------------------------------------------------------------------------------------------------ one schema


def _schema(writer: _Writer, schema: Any) -> JSON:
    """One schema in Gemini's words. It always has a type or alternatives."""
    writer.written += 1
    if not isinstance(schema, dict):
        return {"type": "string", "description": _ANY}
    if writer.level > _DEEPEST or writer.written > _MOST * 2:
        writer.say("are too large for this wire format and were written out in part")
        return {"type": "string", "description": _ANY}
    writer.level += 1
    if isinstance(schema.get("$ref"), str):
        form = _referred(writer, schema["$ref"], {key: value for key, value in schema.items() if key != "$ref"})
    elif "allOf" in schema:
        form = _schema(writer, one_of_all(writer.root, schema))
    else:
        form = _alternatives(writer, schema) or _typed(writer, schema)
    writer.level -= 1
    return form


def _referred(writer: _Writer, name: str, beside: JSON) -> JSON:
    """What a reference leads to, with what is said beside it."""
    target = find(writer.root, name)
    if target is None:
        writer.say(f"refer to {name!r}, which is not there; any value is taken")
        return _typed(writer, {key: beside[key] for key in _NAMES if key in beside})
    if writer.open.count(name) >= writer.repeats:
        short = name.rsplit("/", 1)[-1]
        writer.say(f"refer to {'themselves' if name == '#' else f'{short} from inside it'} and were written out a few levels deep")
        kind = next(iter(kinds_of(target)), "object")
        form = {"type": kind, "description": beside.get("description") or f"like {'the whole' if name == '#' else short} above"}
        return form | ({"items": {"type": "string", "description": _ANY}} if kind == "array" else {})
    writer.open.append(name)
    form = _schema(writer, merge(target, beside))
    writer.open.pop()
    return form


def _alternatives(writer: _Writer, schema: JSON) -> JSON | None:
    """``anyOf``, ``oneOf`` and several types; null among them is ``nullable``, and one that is left stands for itself."""
    key = next((key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
    beside = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf")}
    if key is not None:
        given = [part for part in schema[key] if part is not False]
    elif len(kinds := kinds_of(schema)) > 1:
        given = [only(schema, kind) for kind in kinds]
        beside = {name: schema[name] for name in _NAMES if name in schema} | ({"nullable": True} if takes_null(schema) else {})
    else:
        return None
    branches = [dict_of(part) for part in given if not is_null(part)]
    nullable = len(branches) < len(given) or takes_null(beside)
    if len(branches) <= 1:
        form = _schema(writer, merge(branches[0] if branches else {}, beside))
    else:
        shared: JSON = {name: beside[name] for name in ("properties", "required") if name in beside}
        form = {name: beside[name] for name in _NAMES if name in beside}
        form["anyOf"] = _unlike(_schema(writer, merge(shared, branch)) for branch in branches)
    return form | ({"nullable": True} if nullable else {})


def _typed(writer: _Writer, schema: JSON) -> JSON:
    """A schema of one type."""
    kind = next(iter(kinds_of(schema)), None)
    words = told(schema, _TOLD)
    form: JSON = {"type": kind or "string"} | {key: schema[key] for key in _KEPT if key in schema}
    if takes_null(schema):
        form["nullable"] = True
    elif kind is None:
        words.append(_ANY)
    if schema.get("format") in _FORMATS.get(form["type"], ()):
        form["format"] = schema["format"]
    elif schema.get("format"):
        words.append(f"format {schema['format']}")
    _add_values(form, schema, words)
    if kind == "object":
        _add_properties(writer, form, schema, words)
    elif kind == "array":
        form["items"] = _items(writer, schema)
    return described(form, words)


def _add_values(form: JSON, schema: JSON, words: list[str]) -> None:
    """``const`` and ``enum``: only texts can be listed, and no empty one; other values are told."""
    values = [value for value in values_of(schema) if value is not None]
    if values and form["type"] == "string" and all(isinstance(value, str) and value for value in values):
        form["enum"] = list(dict.fromkeys(values))
    elif values:
        words.append(f"{'always' if 'const' in schema else 'one of'} {', '.join(map(dumps, values))}")


def _add_properties(writer: _Writer, form: JSON, schema: JSON, words: list[str]) -> None:
    """The properties. One that is ``false`` can never be given; what is required has to be there."""
    properties = {name: part for name, part in dict_of(schema.get("properties")).items() if part is not False}
    if properties:
        form["properties"] = {name: _schema(writer, part) for name, part in properties.items()}
    required = [name for name in list_of(schema.get("required")) if isinstance(name, str) and name in properties]
    if required:
        form["required"] = list(dict.fromkeys(required))
    if more := dict_of(schema.get("additionalProperties")):
        words.append(f"{'further values' if properties else 'values'}: {in_words(more)}")


def _items(writer: _Writer, schema: JSON) -> JSON:
    """What is in an array, which has to be said; a tuple's places become alternatives."""
    items = schema.get("items")
    places = list_of(schema.get("prefixItems")) or list_of(items)
    if not places:
        return _schema(writer, items)
    forms = _unlike(_schema(writer, part) for part in places)
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _unlike(forms: Iterable[JSON]) -> list[JSON]:
    """The forms without those that are there already."""
    kept: list[JSON] = []
    for form in forms:
        if form not in kept:
            kept.append(form)
    return kept
