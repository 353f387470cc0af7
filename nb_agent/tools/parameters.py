"""The parameters of a function as a model sees them: name, JSON Schema with description and default, and what is left out.

Unlike `annotations`, which knows one type at a time, this knows signatures; unlike `schema`, nothing here knows what a tool is.
"""

from __future__ import annotations

import inspect
import json
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, get_args, get_origin

import typing_extensions
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from nb_agent.errors import ToolDefinitionError
from nb_agent.tools.annotations import Adapter, Names, adapter_of
from nb_agent.tools.docstrings import Described
from nb_agent.tools.generating import Schemas
from nb_agent.tools.standins import instead_of
from nb_agent.values import JSON

__all__ = ["Parameter", "parameters_of", "schema_of"]

_EMPTY: Final = inspect.Parameter.empty
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

#: What the default says about a parameter that has no annotation. Anything else is left open: a guess would be wrong in silence.
_BY_DEFAULT: Final[dict[type, type]] = {kind: kind for kind in (bool, int, float, str, list, dict)}
_UNPACK: Final = (typing.Unpack, typing_extensions.Unpack)
_SCALARS: Final = (bool, int, str)
#: What a docstring may say about it.
_BY_WORD: Final[dict[str, type]] = {kind.__name__: kind for kind in _BY_DEFAULT}
_BY_WORD.update(integer=int, number=float, string=str, boolean=bool)


_REASONS: Final = {
    r"^Unable to generate pydantic-core schema for (?:<class '(.+?)'>|(.+?))\. Set .*": r"nothing in JSON is made into \1\2",
    r"^Cannot generate a JsonSchema for core_schema\.CallableSchema.*": "JSON has no functions",
    r"^Cannot generate a JsonSchema for core_schema\.IsInstanceSchema \(<class '(.+?)'>\)": r"nothing in JSON is made into \1",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        name: its name in Python; ``key`` is the one that the model sees, another one where ``Field(alias=…)`` says so.
        extras: what is said about it beside its type: description and default.
        fill: makes the argument where the model gave none and the function has no default of its own (``Field(default=…)``).
    """

    name: str
    key: str
    adapter: Adapter
    extras: JSON
    required: bool
    fill: Callable[[], Any] | None = None


def parameters_of(signature: inspect.Signature, described: Described, names: Names, owner: str) -> tuple[Parameter, ...]:
    """The parameters that a model can give, in their order; ``*args`` and ``**kwargs`` can always stay empty, and are left out.

    Args:
        signature: without what is bound already.
        described: what the docstring says.
        names: where annotations are looked up.
        owner: the tool's name, for error texts.

    Raises:
        ToolDefinitionError: an annotation cannot be read, or cannot become a schema; the text names the parameter.
    """
    wanted = [entry for entry in signature.parameters.values() if entry.kind not in _VARIADIC]
    hints = _hints({entry.name: entry.annotation for entry in wanted if entry.annotation is not _EMPTY}, names, owner)
    found = [_parameter(entry, hints.get(entry.name, _EMPTY), described, names, owner) for entry in wanted]
    for entry in signature.parameters.values():
        if entry.kind is entry.VAR_KEYWORD and (get_origin(entry.annotation) in _UNPACK or "Unpack[" in str(entry.annotation)):
            found += _unpacked(entry, described, names, owner)
    return tuple(found)


def _unpacked(entry: inspect.Parameter, described: Described, names: Names, owner: str) -> Iterator[Parameter]:
    """``**options: Unpack[Options]``: the keys of a TypedDict are parameters, which can be left out where it says so."""
    (kind,) = get_args(_hints({entry.name: entry.annotation}, names, owner)[entry.name]) or (None,)
    if not typing.is_typeddict(kind):
        return
    for name, hint in typing.get_type_hints(kind, names.scope, names.local(), include_extras=True).items():
        plain = get_args(hint)[0] if get_origin(hint) in {typing.Required, typing.NotRequired} else hint
        keyword = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        yield replace(_parameter(keyword, plain, described, names, owner), required=name in kind.__required_keys__)


def schema_of(parameters: tuple[Parameter, ...]) -> JSON:
    """The JSON Schema of all parameters together: an object that takes nothing else.

    ``properties`` is there even where it is empty, and an empty ``required`` is not: validators of several providers insist.
    """
    properties: JSON = {}
    shared: JSON = {}
    for entry in parameters:
        form = deepcopy(entry.adapter.schema)
        for name, definition in form.pop("$defs", {}).items():
            if shared.setdefault(name, definition) != definition:  # two classes of one name: pydantic tells them apart
                return _together(parameters)
        properties[entry.key] = form
    for entry in parameters:  # a class that is also used inside another one is written out once
        name = next((name for name, definition in shared.items() if definition == properties[entry.key]), None)
        form = {"$ref": f"#/$defs/{name}"} if name else properties[entry.key]
        properties[entry.key] = form | entry.extras
    return _object(parameters, properties, shared)


def _together(parameters: tuple[Parameter, ...]) -> JSON:
    adapters = [(entry.key, "validation", entry.adapter.pydantic) for entry in parameters]
    forms, shared = TypeAdapter.json_schemas(adapters, schema_generator=Schemas)  # type: ignore[arg-type]  # the mode is a str
    properties = {entry.key: forms[entry.key, "validation"] | entry.extras for entry in parameters}
    return _object(parameters, properties, shared.get("$defs", {}))


def _object(parameters: tuple[Parameter, ...], properties: JSON, shared: JSON) -> JSON:
    form: JSON = {"type": "object", "properties": properties}
    if required := [entry.key for entry in parameters if entry.required]:
        form["required"] = required
    form["additionalProperties"] = False
    return form | ({"$defs": shared} if shared else {})


def _parameter(entry: inspect.Parameter, annotation: Any, described: Described, names: Names, owner: str) -> Parameter:
    default = entry.default
    if annotation is _EMPTY:
        annotation = _guess(default, described.types.get(entry.name, ""))
    if isinstance(default, FieldInfo):  # def f(x: int = Field(3, description="…")), as in pydantic's models
        annotation, default = Annotated[annotation, default], _EMPTY
    adapter = _adapter(entry.name, annotation, names, owner)
    if default is None and not adapter.takes_none():  # def f(x: int = None) means that None is fine
        adapter = _adapter(entry.name, _optional(annotation), names, owner)
    fields = [extra for extra in reversed(_metadata(annotation)) if isinstance(extra, FieldInfo)]  # the last one counts
    filled = next((extra for extra in fields if not extra.is_required()), None) if default is _EMPTY else None
    text = _description(annotation) or described.parameters.get(entry.name)
    return Parameter(
        name=entry.name,
        key=next((extra.alias for extra in fields if extra.alias), None) or entry.name,
        adapter=adapter,
        extras=({"description": text} if text else {}) | _default(default, adapter),
        required=default is _EMPTY and filled is None,
        fill=filled and (lambda: filled.get_default(call_default_factory=True, validated_data={})),
    )


def _adapter(name: str, annotation: Any, names: Names, owner: str) -> Adapter:
    try:
        return adapter_of(annotation, names)
    except Exception as error:  # annotations may run any code of whoever wrote the type
        plain = instead_of(annotation)
        instead = f"{plain} and make the other in the function" if plain else "types that JSON can carry"
        raise ToolDefinitionError(
            f"{owner}: the parameter {name!r} cannot be described to a model: {inspect.formatannotation(annotation)} has no JSON "
            f"Schema ({_reason(error)}); annotate it with {instead}, or bind it with functools.partial"
        ) from error


def _hints(annotations: dict[str, Any], names: Names, owner: str) -> dict[str, Any]:
    """Annotations that are text, or hold some, as what they name."""
    if not annotations:
        return {}
    holder = types.SimpleNamespace(__annotations__=annotations)
    try:
        try:
            return typing.get_type_hints(holder, names.scope, dict(names.closure), include_extras=True)
        except NameError:
            return typing.get_type_hints(holder, names.scope, names.local(), include_extras=True)
    except Exception as error:  # the text of an annotation is code
        if len(annotations) > 1:
            for name, annotation in annotations.items():
                _hints({name: annotation}, names, owner)
        name, annotation = next(iter(annotations.items()))
        raise ToolDefinitionError(
            f"{owner}: the annotation of the parameter {name!r}, {inspect.formatannotation(annotation)}, cannot be read "
            f"({type(error).__name__}: {_reason(error)}); define or import what it names before the tool is made"
        ) from error


def _reason(error: Exception) -> str:
    """What went wrong, without the advice of pydantic's that is for other uses of it."""
    line = str(error).split("\n", 1)[0].rstrip(".")
    for pattern, plain in _REASONS.items():
        line = re.sub(pattern, plain, line)
    return line[:200]


def _guess(default: Any, word: str) -> Any:
    return _BY_WORD.get(word, Any) if default is _EMPTY else _BY_DEFAULT.get(type(default), Any)


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return annotation.__metadata__ if get_origin(annotation) is Annotated else ()


def _optional(annotation: Any) -> Any:
    if extras := _metadata(annotation):
        return Annotated[(annotation.__origin__ | None, *extras)]
    return annotation | None


def _description(annotation: Any) -> str | None:
    """``Annotated[int, Field(description="…")]``, ``Annotated[int, "…"]`` or ``Annotated[int, Doc("…")]``."""
    for extra in _metadata(annotation):
        text = extra if isinstance(extra, str) else getattr(extra, "description", None) or getattr(extra, "documentation", None)
        if isinstance(text, str) and text:
            return inspect.cleandoc(text)
    return None


def _default(value: Any, adapter: Adapter) -> JSON:
    """A default that JSON can carry; of another one, the model is told that it may leave the parameter out, and no more."""
    if value is _EMPTY or hasattr(value, "get_secret_value"):
        return {}
    if value is None or type(value) in _SCALARS:
        return {"default": value}
    form = _written(adapter.form, value)
    form = _written(_form, value) if form is _EMPTY else form
    return {} if form is _EMPTY else {"default": form}


def _written(write: Callable[[Any], Any], value: Any) -> Any:
    try:
        form = write(value)
        json.dumps(form, allow_nan=False)
    except Exception:  # noqa: BLE001  the class of the value may raise anything
        return _EMPTY
    return form


def _form(value: Any) -> Any:
    """A value without regard to its annotation; a number of numpy's has a Python number in it."""
    return to_jsonable_python(value, fallback=operator.methodcaller("item"))
