"""From an annotation to a JSON Schema, a check that makes the argument, and plain words for what does not fit.

pydantic does the work. Each annotation is made into one adapter, which is kept for the next function that uses it: that is ten
times cheaper than a model for each function. Unlike `parameters`, nothing here knows defaults, docstrings or functions; `standins`
knows the types that pydantic does not take, and `generating` writes the schemas.
"""

from __future__ import annotations

import collections.abc
import functools
import json
import operator
import sys
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args, get_origin

import typing_extensions
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from nb_agent.tools.generating import Schemas
from nb_agent.tools.standins import GENERIC, stand_in
from nb_agent.values import JSON

__all__ = ["Adapter", "Names", "adapter_of", "faults", "shown", "without_nulls"]


@dataclass(frozen=True, slots=True)
class Names:
    """Where the names in an annotation are looked up.

    Attributes:
        scope: the globals of the function.
        closure: the names of outer functions that it uses.
        around: gives the names of the outer functions that are still running; asked only when a name is not found elsewhere.
        made: what has been put in the place of a TypedDict that we are inside of, and of its type parameters.
    """

    scope: dict[str, Any]
    closure: Mapping[str, Any] = field(default_factory=dict)
    around: Callable[[], Mapping[str, Any]] = dict
    made: dict[Any, Any] = field(default_factory=dict)

    def local(self) -> dict[str, Any]:
        """All that is not global."""
        return {**self.around(), **self.closure}


@dataclass(frozen=True, slots=True)
class Adapter:
    """One annotation, ready for use. ``schema`` may hold ``$defs``; it is shared, so copy it before you change it."""

    pydantic: TypeAdapter[Any]
    schema: JSON

    def check(self, value: Any) -> Any:
        """The value as the annotated type.

        Raises:
            ValidationError: it does not fit.
        """
        try:  # JSON's rules, by which a date may be a text even where the author's model is strict
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):  # not JSON: checked from Python
            return self.pydantic.validate_python(value)
        return self.pydantic.validate_json(text)

    def form(self, value: Any) -> Any:
        """A value of the annotated type as JSON.

        Raises:
            PydanticSerializationError: it is of another type, or JSON cannot carry it.
        """
        return self.pydantic.dump_python(value, mode="json", warnings="error")

    def takes_none(self) -> bool:
        """Whether ``None`` fits."""
        try:
            self.pydantic.validate_python(None)
        except Exception:  # noqa: BLE001  a validator of the author's may raise anything
            return False
        return True


def adapter_of(annotation: Any, names: Names) -> Adapter:
    """The adapter of an annotation, made once for all functions.

    Raises:
        Exception: pydantic, or code that the type brings along, cannot make a schema of it.
    """
    try:
        hash(annotation)
    except TypeError:
        return _made(annotation, names)
    try:
        # Literal["a", "b"] == Literal["b", "a"], but they are two schemas: the text tells them apart.
        return _kept(annotation, repr(annotation))
    except (PydanticUserError, NameError):  # a class with fields whose types only the names around this function can tell
        return _made(annotation, names)


@functools.lru_cache(maxsize=512)
def _kept(annotation: Any, _text: str) -> Adapter:
    return _made(annotation, Names({}))


def _made(annotation: Any, names: Names) -> Adapter:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "alias has no effect here": it has, see `parameters`
        adapter: TypeAdapter[Any] = TypeAdapter(_known(annotation, names))
        if not adapter.pydantic_complete:
            adapter.rebuild(raise_errors=True, _types_namespace={**names.scope, **names.local()})
        return Adapter(adapter, adapter.json_schema(schema_generator=Schemas))


def _known(annotation: Any, names: Names) -> Any:
    """The annotation with what pydantic does not take, or takes lazily, replaced by what means the same."""
    origin, args = get_origin(annotation), get_args(annotation)
    if typing.is_typeddict(origin or annotation):
        return _typed_dict(annotation, names)
    if isinstance(annotation, typing.TypeVar):
        return names.made.get(annotation, stand_in(annotation))
    if origin is None or origin is typing.Literal:
        return stand_in(annotation)
    if origin is collections.abc.Callable or not args:
        return annotation if (plain := stand_in(origin)) is origin else plain
    return _filled(annotation, origin, args, names)


def _filled(annotation: Any, origin: Any, args: tuple[Any, ...], names: Names) -> Any:
    """What stands between brackets, replaced."""
    if origin in GENERIC:
        return GENERIC[origin][_known(args[0], names)]
    if origin is Annotated:
        return Annotated[(_known(args[0], names), *annotation.__metadata__)]
    known = tuple(_known(arg, names) for arg in args)
    if all(new is old for new, old in zip(known, args, strict=True)):
        return annotation
    return functools.reduce(operator.or_, known) if origin in {typing.Union, types.UnionType} else origin[known]


def _typed_dict(annotation: Any, names: Names) -> Any:
    """typing.TypedDict as typing_extensions.TypedDict, the only one that pydantic takes before Python 3.12."""
    cls = get_origin(annotation) or annotation
    if sys.version_info >= (3, 12) or type(cls).__module__ != "typing":
        return annotation
    if annotation in names.made:  # it holds itself
        return names.made[annotation]
    make: Any = typing_extensions.TypedDict
    made = make(cls.__name__, {})
    made.__doc__, made.__module__ = cls.__doc__, cls.__module__
    given = dict(zip(getattr(cls, "__parameters__", ()), get_args(annotation), strict=False))
    inside = replace(names, made={**names.made, **given, annotation: made})
    fields = {}
    for key, hint in typing.get_type_hints(cls, localns={**names.scope, **names.local()}, include_extras=True).items():
        origin = get_origin(hint)
        marked = origin in {typing.Required, typing.NotRequired}
        mark: Any = origin if marked else typing.Required if key in cls.__required_keys__ else typing.NotRequired
        fields[key] = mark[_known(get_args(hint)[0] if marked else hint, inside)]
    made.__annotations__, made.__required_keys__, made.__optional_keys__ = fields, cls.__required_keys__, cls.__optional_keys__
    return made


# ------------------------------------------------------------------------------------------------- what does not fit


def faults(error: ValidationError, value: Any, key: str) -> list[str]:
    """What is wrong with a value, a sentence for each place in it, without pydantic's names and addresses.

    Args:
        error: what pydantic says.
        value: what was checked.
        key: the name of the parameter.
    """
    messages: dict[str, list[str]] = {}
    ends: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_context=False):
        missing = fault["type"] == "missing"
        place = ".".join([key, *_place(fault["loc"], value, missing=missing)])
        messages.setdefault(place, []).append(_plain(fault["msg"]))
        ends.setdefault(place, "" if missing else f", got {shown(fault['input'])}")
    return [f"{place}: {' or '.join(dict.fromkeys(texts))}{ends[place]}" for place, texts in messages.items()]


def _place(path: tuple[Any, ...], value: Any, *, missing: bool) -> list[str]:
    """What of pydantic's path is in the value: the path also names the branches of a union."""
    place = []
    for step in path:
        if (isinstance(value, dict) and step in value) or (isinstance(value, list) and step in range(len(value))):
            value = value[step]
        elif not (missing and step == path[-1]):
            continue
        place.append(str(step))
    return place


def without_nulls(error: ValidationError, value: Any) -> Any:
    """The value without the keys whose null did not fit, or ``None`` where there is no such key. The value itself is changed."""
    found = False
    for fault in error.errors(include_url=False, include_context=False):
        place = _place(fault["loc"], value, missing=False) if fault["input"] is None else []
        if not place:
            continue
        *outer, last = place
        inner = functools.reduce(lambda part, step: part[int(step) if isinstance(part, list) else step], outer, value)
        if isinstance(inner, dict) and last in inner and inner[last] is None:
            del inner[last]
            found = True
    return value if found else None


def _plain(text: str) -> str:
    return text.replace("Input should be ", "expected ").replace("Field required", "missing").removeprefix("Value error, ")


def shown(value: Any) -> str:
    """A value as short JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} characters)"
