"""Annotations as people write them, each with a strategy for values of it.

`test_tools_annotations` draws from them, and `test_adapters_definitions` writes them in every wire format.
"""
# ruff: noqa: UP007, UP045  Optional and Union are what people write

import collections
import datetime as dt
import enum
import fractions
import ipaddress
import numbers
import os
import pathlib
import re
import types
import typing
import uuid
import zoneinfo
from collections import abc
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, Required, TypeVar, Union

import typing_extensions
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
Whole = TypeVar("Whole", bound=int)
UserId = NewType("UserId", int)
Many: typing.TypeAlias = list[int]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Corner(enum.Enum):
    """Values that JSON does not have."""

    NORTH = (0, 1)
    SOUTH = (0, -1)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Box(BaseModel):
    w: int = Field(description="how wide")
    title: str = "x"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    box: Box
    boxes: list[Box] = []
    note: str | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    n: int
    kids: list["Node"] = []


class Pair(BaseModel, Generic[T]):
    first: T
    second: T


@dataclass
class Point:
    x: int
    box: Box | None = None
    tags: list[str] = field(default_factory=list)


@dataclass
class Link:
    n: int
    next: Optional["Link"] = None


class Trip(typing.TypedDict):
    start: str
    days: NotRequired[int]


class Loose(typing.TypedDict, total=False):
    start: Required[str]
    trips: list[Trip]


class Branch(typing.TypedDict):
    n: int
    parts: list["Branch"]


class Spot(NamedTuple):
    x: int
    name: str = "here"


class Text(str):
    """A class of one's own that is a text."""

    __slots__ = ()


_small = st.integers(-9, 9)
_word = st.text("abä ", max_size=4)
_box = st.builds(Box, w=_small, title=_word)
_node = st.recursive(
    st.builds(Node, n=_small), lambda inner: st.builds(Node, n=_small, kids=st.lists(inner, max_size=2)), max_leaves=3
)
_link = st.recursive(st.builds(Link, n=_small), lambda inner: st.builds(Link, n=_small, next=inner), max_leaves=3)
_branch = st.recursive(
    st.fixed_dictionaries({"n": _small, "parts": st.just([])}),
    lambda inner: st.fixed_dictionaries({"n": _small, "parts": st.lists(inner, max_size=2)}),
    max_leaves=3,
)
_number = st.floats(-1e6, 1e6).map(lambda value: value + 0.0)
_decimal = st.decimals(-1000, 1000, places=2)
_zones = st.timedeltas(dt.timedelta(hours=-12), dt.timedelta(hours=12)).map(
    lambda part: dt.timedelta(minutes=part // dt.timedelta(minutes=1))
)
_trip = st.fixed_dictionaries({"start": _word}, optional={"days": _small})

#: Annotation -> values of it.
ANNOTATIONS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (int, _small),
    "float": (float, _number),
    "bool": (bool, st.booleans()),
    "str": (str, _word),
    "none": (None, st.none()),
    "any": (Any, _small | _word | st.none()),
    "object": (object, _small | _word),
    "literal": (Literal["a", "b"], st.sampled_from(["a", "b"])),
    "literal of kinds": (Literal["a", 1, True], st.sampled_from(["a", 1])),
    "literal of members": (Literal[Colour.RED, Mixed.ONE], st.sampled_from([Colour.RED, Mixed.ONE])),
    "enum": (Colour, st.sampled_from(Colour)),
    "enum of kinds": (Mixed, st.sampled_from(Mixed)),
    "enum of tuples": (Corner, st.sampled_from(Corner)),
    "int enum": (Level, st.sampled_from(Level)),
    "flag": (Right, st.sampled_from([Right(0), Right.READ, Right.READ | Right.RUN])),
    "optional": (Optional[int], st.none() | _small),
    "union": (Union[int, str], _small | _word),
    "bar": (int | list[str] | None, st.none() | _small | st.lists(_word, max_size=2)),
    "discriminated": (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        st.builds(Cat, kind=st.just("cat"), lives=_small) | st.builds(Dog, kind=st.just("dog"), name=_word),
    ),
    "model": (Box, _box),
    "closed model": (Closed, st.builds(Closed, box=_box, boxes=st.lists(_box, max_size=2), note=st.none() | _word)),
    "recursive model": (Node, _node),
    "generic model": (Pair[int], st.builds(Pair[int], first=_small, second=_small)),
    "dataclass": (Point, st.builds(Point, _small, st.none() | _box, st.lists(_word, max_size=2))),
    "recursive dataclass": (Link, _link),
    "typed dict": (Trip, _trip),
    "typed dict not total": (Loose, st.fixed_dictionaries({"start": _word}, optional={"trips": st.lists(_trip, max_size=2)})),
    "recursive typed dict": (Branch, _branch),
    "named tuple": (Spot, st.builds(Spot, _small, _word)),
    "list": (list, st.lists(_small, max_size=3)),
    "list of models": (list[Box], st.lists(_box, max_size=2)),
    "sequence": (abc.Sequence[int], st.lists(_small, max_size=3)),
    "collection": (abc.Collection[int], st.lists(_small, max_size=3)),
    "iterable": (typing.Iterable[int], st.lists(_small, max_size=3)),
    "tuple": (tuple[int, str], st.tuples(_small, _word)),
    "variadic tuple": (tuple[int, ...], st.lists(_small, max_size=3).map(tuple)),
    "empty tuple": (tuple[()], st.just(())),
    "set": (set[int], st.sets(_small, max_size=3)),
    "set of anything": (set, st.sets(_word, max_size=3)),
    "frozen set": (frozenset[str], st.frozensets(_word, max_size=3)),
    "deque": (collections.deque[int], st.lists(_small, max_size=3).map(collections.deque)),
    "dict": (dict, st.dictionaries(_word, _small, max_size=3)),
    "dict of numbers": (dict[str, int], st.dictionaries(_word, _small, max_size=3)),
    "dict by number": (dict[int, str], st.dictionaries(_small, _word, max_size=3)),
    "dict by truth": (dict[bool, int], st.dictionaries(st.booleans(), _small)),
    "dict by level": (dict[Level, int], st.dictionaries(st.sampled_from(Level), _small)),
    "dict by date": (dict[dt.date, int], st.dictionaries(st.dates(), _small, max_size=2)),
    "default dict": (
        collections.defaultdict[str, list[int]],
        st.dictionaries(_word, st.lists(_small, max_size=2), max_size=2).map(lambda held: collections.defaultdict(list, held)),
    ),
    "mapping": (abc.Mapping[str, Box], st.dictionaries(_word, _box, max_size=2)),
    "datetime": (dt.datetime, st.datetimes()),
    "date": (dt.date, st.dates()),
    "time": (dt.time, st.times()),
    "timedelta": (dt.timedelta, st.timedeltas(dt.timedelta(-99), dt.timedelta(99))),
    "timezone": (dt.timezone, _zones.map(dt.timezone)),
    "zone": (zoneinfo.ZoneInfo, st.sampled_from(["UTC", "Europe/Oslo"]).map(zoneinfo.ZoneInfo)),
    "decimal": (Decimal, _decimal),
    "fraction": (fractions.Fraction, st.fractions(-9, 9, max_denominator=9)),
    "number": (numbers.Real, _small),
    "uuid": (uuid.UUID, st.uuids()),
    "path": (pathlib.Path, _word.map(pathlib.Path)),
    "path or text": (str | os.PathLike[str], _word),
    "bytes": (bytes, _word.map(str.encode)),
    "pattern": (re.Pattern[str], st.sampled_from(["a+", "^b$"]).map(re.compile)),
    "address": (ipaddress.IPv4Address, st.ip_addresses(v=4)),
    "bounded": (Annotated[int, Field(ge=1, le=5)], st.integers(1, 5)),
    "matched": (Annotated[str, Field(pattern="^a+$", max_length=3)], st.sampled_from(["a", "aaa"])),
    "some items": (Annotated[list[int], Field(min_length=1, max_length=2)], st.lists(_small, min_size=1, max_size=2)),
    "described": (Annotated[int, "how many"], _small),
    "described inside": (list[Annotated[int, Field(gt=0, description="one of them")]], st.lists(st.integers(1, 9), max_size=2)),
    "new type": (UserId, _small),
    "alias": (Many, st.lists(_small, max_size=3)),
    "alias type": (typing_extensions.TypeAliasType("Few", list[int]), st.lists(_small, max_size=3)),
    "type variable": (Whole, _small),
    "own text": (Text, _word.map(Text)),
    "no type": (types.NoneType, st.none()),
}
#: Annotations of which a schema cannot say everything that they refuse.
MORE_THAN_A_SCHEMA_SAYS = frozenset({"zone"})
