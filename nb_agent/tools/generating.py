"""pydantic's JSON Schemas, without the titles that it makes from names, and with what it leaves open.

Keys of a JSON object are text, members of a set have a hash, a number may be written as text: a schema that does not say so
promises arguments that the tool then refuses. What can never be given is an error while the schema is made. Unlike `annotations`,
this sees pydantic's own form of a type, and so the fields of classes, too.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Final

from pydantic.json_schema import GenerateJsonSchema

from nb_agent.tools.standins import is_json
from nb_agent.values import JSON

__all__ = ["Schemas"]


class Schemas(GenerateJsonSchema):
    """pydantic's schemas without the titles that it makes from names: they cost tokens and say nothing."""

    ignored_warning_kinds: ClassVar = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]  # pydantic says how

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  pydantic's signature
        """No field has a title but one that its author wrote."""
        return False

    def model_schema(self, schema: Any) -> JSON:
        """A pydantic model."""
        return _untitled(super().model_schema(schema), schema)

    def dataclass_schema(self, schema: Any) -> JSON:
        """A dataclass."""
        return _untitled(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: Any) -> JSON:
        """A TypedDict."""
        return _untitled(super().typed_dict_schema(schema), schema)

    def enum_schema(self, schema: Any) -> JSON:
        """An Enum."""
        return _untitled(super().enum_schema(schema), schema)

    def generate_inner(self, schema: Any) -> JSON:
        """Anything. The first function on an Enum is pydantic's own, and would put the title back."""
        metadata = schema.get("metadata") or {}
        if schema["type"] == "enum" and (functions := metadata.get("pydantic_js_functions")):
            schema = {**schema, "metadata": {**metadata, "pydantic_js_functions": functions[1:]}}
        form = super().generate_inner(schema)
        amend = _AMENDED.get(schema["type"])
        return amend(form, schema) if amend else form


def _untitled(form: JSON, schema: Any) -> JSON:
    if form.get("title") == getattr(schema.get("cls"), "__name__", None):
        form.pop("title", None)
    return form


# ------------------------------------------------------------------------------------------- what pydantic leaves open

#: Kind of a key, which JSON has only as text -> what that text looks like.
_KEYS: Final[dict[str, JSON]] = {
    "int": {"pattern": r"^-?\d+$"},
    "float": {"pattern": r"^-?\d+(\.\d+)?([eE][-+]?\d+)?$"},
    "decimal": {"pattern": r"^-?\d+(\.\d+)?$"},
    "bool": {"enum": ["true", "false"]},
}
#: Kinds of which no value has a hash, unless its class says so.
_OPEN: Final = frozenset({"list", "dict", "set", "model", "typed-dict", "dataclass"})
#: Kinds that no text can stand for.
_NEVER_A_KEY: Final = _OPEN | {"tuple", "frozenset", "none", "definition-ref"}  # what is defined apart holds itself
_HASHED: Final = ["string", "number", "boolean", "null"]

_DECIMAL: Final = r"^[-+]?\d*\.?\d+([eE][-+]?\d+)?$"
_COMPLEX: Final = r"^[-+]?\d+(\.\d+)?([-+]\d+(\.\d+)?j|j)?$"


def _inner(schema: Any) -> Any:
    """What is checked inside the functions that are put around it."""
    while schema["type"].startswith("function-") and "schema" in schema:
        schema = schema["schema"]
    return schema


def _with_keys(form: JSON, schema: Any) -> JSON:
    keys = _inner(schema.get("keys_schema", {"type": "any"}))
    kind = keys["type"]
    numbers = kind == "literal" and not all(isinstance(value, str) for value in keys["expected"])
    if kind in _NEVER_A_KEY or numbers:
        raise TypeError(f"the keys of a JSON object are texts, and no text is a {'number' if numbers else kind}")
    if kind == "enum" and keys.get("sub_type") == "int":
        return form | {"propertyNames": {"enum": [str(member.value) for member in keys["members"]]}}
    return form | {"propertyNames": _KEYS[kind]} if kind in _KEYS else form


def _with_hash(form: JSON, schema: Any) -> JSON:
    items = _inner(schema.get("items_schema", {"type": "any"}))
    if items["type"] in _OPEN and ("cls" not in items or items["cls"].__hash__ is None):
        raise TypeError(f"a set cannot hold a {items['type']}, which has no hash")
    return form | {"items": {"type": _HASHED}} if items["type"] == "any" else form


def _with_values(form: JSON, schema: Any) -> JSON:
    values = [getattr(value, "value", value) for value in schema.get("members", schema.get("expected", ()))]
    if odd := next((value for value in values if not is_json(value)), None):
        raise TypeError(f"{odd!r} is not a value that JSON has")
    for member in schema.get("expected", ()):
        if isinstance(member, Enum) and not isinstance(member, (str, int)):
            raise TypeError(f"JSON has no {member!r}; write its value, {member.value!r}, in the Literal")
    return form


def _with_pattern(form: JSON, pattern: str) -> JSON:
    parts = [{**part, "pattern": pattern} if part.get("type") == "string" else part for part in form.get("anyOf", ())]
    return {**form, "anyOf": parts} if parts else form


def _refused(_form: JSON, _schema: Any) -> JSON:
    raise TypeError("JSON has no classes")


_AMENDED: Final[dict[str, Callable[[JSON, Any], JSON]]] = {
    **dict.fromkeys(("dict", "ordered-dict", "counter", "frozendict"), _with_keys),
    "set": _with_hash,
    "frozenset": _with_hash,
    "enum": _with_values,
    "literal": _with_values,
    "decimal": lambda form, _: _with_pattern(form, _DECIMAL),
    "complex": lambda *_: {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _COMPLEX}]},
    "is-subclass": _refused,
}
