"""What stands in for a type that pydantic does not take, or that JSON cannot carry as it is: a type of JSON, and the way back.

Unlike `annotations`, which reads whole annotations, this knows single types: members of an Enum, flags, time zones, numbers of
numpy, classes derived from ``str`` and the like. What has no stand-in is left to pydantic, and so to a clear error.
"""

from __future__ import annotations

import collections.abc
import datetime as dt
import fractions
import functools
import numbers
import operator
import re
import typing
import zoneinfo
from collections.abc import Callable
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import to_jsonable_python

__all__ = ["GENERIC", "instead_of", "is_json", "stand_in"]

_OFFSET: Final = r"^(?:UTC|Z|(?:UTC)?([+-])([01]\d|2[0-3]):([0-5]\d))$"


def _timezone(text: str) -> dt.timezone:
    """``Z``, ``UTC`` or ``+05:30``, as at the end of a date and time.

    >>> _timezone("-05:30") == dt.timezone(-dt.timedelta(hours=5, minutes=30))
    True
    """
    found = re.match(_OFFSET, text)
    if not found or not found[1]:
        return dt.timezone.utc  # noqa: UP017  the name that people know
    offset = dt.timedelta(hours=int(found[2]), minutes=int(found[3]))
    return dt.timezone(-offset if found[1] == "-" else offset)


_FRACTION: Final = r"^[-+]?\d+(/0*[1-9]\d*|\.\d+)?$"  # and no 0 below
_NUMBER: Final[Any] = int | float
#: Types whose stand-in is always the same. An abstract number is one that JSON has.
_FIXED: Final[dict[Any, Any]] = {
    bytearray: Annotated[bytes, AfterValidator(bytearray)],
    dt.timezone: Annotated[str, Field(pattern=_OFFSET), AfterValidator(_timezone), PlainSerializer(str)],
    dt.tzinfo: zoneinfo.ZoneInfo,
    fractions.Fraction: Annotated[
        _NUMBER | Annotated[str, Field(pattern=_FRACTION)], AfterValidator(fractions.Fraction), PlainSerializer(str)
    ],
    numbers.Number: _NUMBER,
    numbers.Complex: _NUMBER,
    numbers.Real: _NUMBER,
    numbers.Rational: int,
    numbers.Integral: int,
    typing.AnyStr: str,
    typing.LiteralString: str,
    collections.abc.Hashable: str | int | float | bool | None,
}
#: Collections of which pydantic knows no schema, or that it would check only while the tool reads them: an argument has to be
#: checked before.
GENERIC: Final[dict[Any, Any]] = dict.fromkeys(
    (
        collections.abc.Iterable,
        collections.abc.Iterator,
        collections.abc.Generator,
        collections.abc.Collection,
        collections.abc.Container,
        collections.abc.Reversible,
    ),
    list,
) | {collections.abc.KeysView: set}

_ALWAYS: Final[dict[Any, Any]] = {**_FIXED, **GENERIC}

#: What JSON can carry -> classes derived from it are made of it. The first one that fits counts.
_BASES: Final = (int, float, str, bytes, dict, list, set, frozenset, dt.datetime, dt.date, dt.timedelta)
#: What to annotate in place of types that hold more than JSON can, by package and class.
_INSTEAD: Final = {
    ("numpy", "ndarray"): "list[float]",
    ("numpy", "bool"): "bool",
    ("numpy", "bool_"): "bool",
    ("numpy", "datetime64"): "datetime.datetime",
    ("pandas", "DataFrame"): "list[dict[str, Any]]",
    ("pandas", "Series"): "list[float]",
    ("pandas", "Index"): "list[str]",
    ("polars", "DataFrame"): "list[dict[str, Any]]",
}


def stand_in(kind: Any) -> Any:
    """What to use in place of a type; the type itself where it needs nothing.

    >>> stand_in(int), stand_in(numbers.Integral)
    (<class 'int'>, <class 'int'>)
    """
    if typing.get_origin(kind) is Literal:
        return _literal(kind)
    if isinstance(kind, collections.abc.Hashable) and kind in _ALWAYS:
        return _ALWAYS[kind]
    if not isinstance(kind, type) or kind.__module__ == "builtins" or typing.get_origin(kind) is not None:
        return kind
    return _enum(kind) if issubclass(kind, Enum) else _derived(kind)


def instead_of(annotation: Any) -> str:
    """What can be annotated in place of a type that JSON has nothing for, or nothing.

    >>> instead_of(int)
    ''
    """
    for kind in (typing.get_origin(annotation) or annotation, *typing.get_args(annotation)):
        package = str(getattr(kind, "__module__", "")).partition(".")[0]
        if plain := _INSTEAD.get((package, getattr(kind, "__name__", ""))):
            return plain
    return ""


def is_json(value: Any) -> bool:
    """Whether a value comes back from JSON as what it was.

    >>> is_json("a"), is_json((1, 2)), is_json(len)
    (True, False, False)
    """
    try:
        return bool(to_jsonable_python(value) == value)
    except Exception:  # noqa: BLE001  the class of the value may raise anything
        return False


def _enum(kind: type[Enum]) -> Any:
    """Members by their names where their values are no JSON; flags always, since they are added up."""
    names = tuple(kind.__members__)
    if not names:
        raise TypeError(f"{kind.__name__} has no members")
    if issubclass(kind, Flag):
        whole: Any = AfterValidator(lambda given: functools.reduce(operator.or_, (kind[name] for name in given), kind(0)))
        split = BeforeValidator(lambda given: _members(kind, given))
        written = PlainSerializer(lambda value: _members(kind, value.value))
        return Annotated[list[Literal[names]], split, whole, written]  # type: ignore[valid-type]  # made here
    if all(is_json(member.value) for member in kind):
        return kind
    return Annotated[Literal[names], AfterValidator(kind.__getitem__), PlainSerializer(operator.attrgetter("name"))]


def _members(kind: type[Flag], given: Any) -> Any:
    """The names behind a number, which callers of Python's own kind know the flags by."""
    if isinstance(given, bool) or not isinstance(given, int):
        return given
    found = [member for member in kind if member.value & given == member.value]
    return [member.name for member in found] if sum(member.value for member in found) == given else given


def _literal(kind: Any) -> Any:
    """A Literal of JSON's own values, and the way back to members of an Enum and to bytes."""
    pairs = [(_plain(value), value) for value in typing.get_args(kind)]
    if all(form is value for form, value in pairs):
        return kind

    def back(given: Any) -> Any:
        return next(value for form, value in pairs if type(form) is type(given) and form == given)

    return Annotated[Literal[tuple(form for form, _ in pairs)], AfterValidator(back), PlainSerializer(_plain)]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value if is_json(value.value) else value.name
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _derived(kind: type) -> Any:
    """A class that somebody derived from a type of JSON's, and numbers of numpy: made of what JSON has."""
    found: Any = next((base for base in _BASES if issubclass(kind, base)), None) or _number(kind)
    if found in {None, kind} or _is_known(kind):
        return kind
    try:
        if not issubclass(kind, found):
            kind(0)
    except Exception:  # noqa: BLE001  an abstract class, such as numpy.integer
        return found
    make: Callable[[Any], Any] = lambda value: kind(value)  # noqa: E731, PLW0108  pydantic reads a signature, and C has none
    return Annotated[found, AfterValidator(make)]


def _number(kind: type) -> Any:
    if issubclass(kind, numbers.Integral):
        return int
    return float if issubclass(kind, numbers.Real) else None


@functools.cache
def _is_known(kind: type) -> bool:
    try:
        TypeAdapter(kind)
    except PydanticSchemaGenerationError:
        return False
    except Exception:  # noqa: BLE001  what pydantic says about it is said where it is used
        return True
    return True
