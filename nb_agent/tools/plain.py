"""Any value in the types that JSON has. What JSON has no word for becomes a text; nothing that a value's own code does gets out.

Unlike `results`, which decides what a model gets of it, this says what one value is. pandas and numpy are never imported here.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import itertools
import json
import math
import re
import sys
from collections import UserString
from collections.abc import Callable, Generator, ItemsView, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

from nb_agent.messages import Image
from nb_agent.tools.bundles import bundle_of, says_nothing, words_in
from nb_agent.tools.cutting import Draft
from nb_agent.tools.frames import Table, array

__all__ = ["Plain", "draft_of"]

#: Containers inside each other that are written out.
MOST_DEPTH: Final = 40
#: Items that are read of what makes its items one by one, and may never end.
MOST_ITEMS: Final = 10_000
#: Bits of a whole number that is written out; Python refuses from 4,300 digits on.
_MOST_BITS: Final = 14_000
#: Characters of a frame inside another value.
_MOST_INSIDE: Final = 20_000

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
#: Methods by which a value of a package that is not known here says what is in it; the first one that there is.
_SPEAKS: Final = ("to_dicts", "to_pylist", "to_dict", "to_list")


class Plain:
    """Makes JSON of one value; remembers the containers that it is in, so that a list that holds itself comes to an end."""

    def __init__(self) -> None:
        self._inside: list[int] = []

    def form(self, value: Any) -> Any:
        """The value, or what stands for it, in types that JSON has."""
        try:
            return self._form(value)
        except Exception as error:  # noqa: BLE001  one bad item does not hide the others
            return f"(a value of type {type(value).__name__} that cannot be shown: {type(error).__name__})"

    def _form(self, value: Any) -> Any:
        plain = _PLAIN.get(type(value))
        if plain is not None:
            return plain(value)
        for types, write in _WRITERS:
            if isinstance(value, types):
                return write(value)
        look = _look_inside(value)
        if look is not None:
            return self._container(value, look)
        if isinstance(value, _lazy("numpy", "ndarray")) and value.dtype.kind == "O":
            return self._container(value, lambda value: value.tolist())  # as text inside text, its quotes would double each time
        draft = draft_of(value)
        if draft is not None:
            return draft.whole if draft.length <= _MOST_INSIDE else draft.cut(_MOST_INSIDE, draft.length // 3)
        return _said(value)

    def _container(self, value: Any, look: Callable[[Any], Any]) -> Any:
        if id(value) in self._inside or len(self._inside) >= MOST_DEPTH:
            return "…"
        self._inside.append(id(value))
        try:
            inner = look(value)
            if isinstance(inner, Mapping):
                form = {self._key(key): self.form(part) for key, part in inner.items()}
                return form if len(form) == len(inner) else [[self.form(key), self.form(part)] for key, part in inner.items()]
            many = isinstance(inner, _ROWS) and not isinstance(inner, str)
            return [self.form(part) for part in inner] if many else self.form(inner)
        finally:
            self._inside.pop()

    def _key(self, key: Any) -> str:
        """A key as text; JSON's own words for what it has words for."""
        if isinstance(key, tuple):
            return str(key)
        plain = self.form(key)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _said(value: Any) -> str:
    """What the value says of itself, or shows in a notebook; an address in memory says nothing."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    said = str(value)
    if not isinstance(value, type) and says_nothing(said):
        said = words_in(bundle_of(value)) or said
    return _ADDRESS.sub("", said) or f"({type(value).__name__})"


def _whole_number(value: int) -> int | str:
    bits = value.bit_length()
    return int(value) if bits <= _MOST_BITS else f"(a whole number of about {round(bits * math.log10(2)):,} digits)"


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _enum(value: Enum) -> Any:
    """Its value where that is a text, as pydantic would read it back; else the name says more."""
    return str(value.value) if isinstance(value.value, str) else f"{value.name} ({value.value!r})"


def _binary(value: bytes | bytearray | memoryview) -> str:
    content = bytes(value)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if all(letter.isprintable() or letter in "\r\n\t" for letter in text) and text:
        return f"({len(content):,} bytes of text) {text}"
    return f"({len(content):,} bytes of binary content, not shown)"


#: How values without parts are written; the first type that fits is taken.
_WRITERS: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Enum, _enum),
    (bool, bool),
    (int, _whole_number),
    (float, _number),
    ((str, UserString), str),
    (io.StringIO, io.StringIO.getvalue),
    (Image, lambda _: "(a picture)"),
    (io.BytesIO, lambda value: _binary(value.getvalue())),
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    ((bytes, bytearray, memoryview), _binary),
)
#: The same for what there may be a million of.
_PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): lambda value: value,
    bool: bool,
    str: str,
    int: _whole_number,
    float: _number,
}


# ------------------------------------------------------------------------------------------------- containers


def _in_order(values: AbstractSet[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _first(values: Any) -> list[Any]:
    """The items of something that may never end."""
    items = list(itertools.islice(values, MOST_ITEMS + 1))
    return [*items[:MOST_ITEMS], f"… only the first {MOST_ITEMS:,} items were read"] if len(items) > MOST_ITEMS else items


_ROWS: Final = (Sequence, KeysView, ValuesView, ItemsView)
#: What is inside a container, as a mapping or a list; the first type that fits is taken.
_INSIDES: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Mapping, lambda value: value),
    (tuple, lambda value: value._asdict() if hasattr(value, "_asdict") else value),  # a named tuple
    (range, lambda value: str(value) if value[MOST_ITEMS:] else list(value)),
    (_ROWS, list),
    (AbstractSet, _in_order),
    ((Generator, map, filter, zip, enumerate), _first),
)


def _look_inside(value: Any) -> Callable[[Any], Any] | None:
    """How the parts of a value are had, where it has parts: a container, a record, or a table of a package not known here."""
    if isinstance(value, type):
        return None
    for module, name, look in _LAZY_INSIDES:  # before sequences: a row of sqlite is one
        if isinstance(value, _lazy(module, name)):
            return look
    for types, look in _INSIDES:
        if isinstance(value, types):
            return look
    if dataclasses.is_dataclass(value):
        return lambda value: {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value) if entry.repr}
    if hasattr(type(value), "__attrs_attrs__"):
        return lambda value: {entry.name: getattr(value, entry.name) for entry in value.__attrs_attrs__ if entry.repr}
    known = any(isinstance(value, _lazy(module, name)) for module, name, _ in _DRAFTS)
    way = None if known else next((way for way in _SPEAKS if callable(getattr(type(value), way, None))), None)
    return None if way is None else lambda value: _spoken(value, way)


def _model(model: Any) -> Any:
    """The fields of a pydantic model, but those that its author keeps out of its repr; as dumped where the author says how."""
    kind = type(model)
    shown = {key for key, entry in kind.model_fields.items() if entry.repr and not entry.exclude}
    if kind.__pydantic_root_model__:
        return model.root
    made = kind.__pydantic_decorators__
    if not (made.field_serializers or made.model_serializers or made.computed_fields):
        return {key: part for key, part in model if key in shown or key not in kind.model_fields}
    return model.model_dump(exclude=kind.model_fields.keys() - shown)


def _spoken(value: Any, way: str) -> Any:
    try:
        return getattr(value, way)()
    except Exception:  # noqa: BLE001  it wants arguments, or means something else
        return _said(value)


# ------------------------------------------------------------------------------------------------- frames and arrays


def _lazy(module: str, name: str) -> Any:
    """A type of a module that somebody else may have imported; else nothing is of that type."""
    return getattr(sys.modules.get(module), name, ())


def draft_of(value: Any) -> Draft | None:
    """A frame or an array as what can be cut between rows; ``None`` for everything else."""
    for module, name, make in _DRAFTS:
        if isinstance(value, _lazy(module, name)):
            return make(value)
    return None


def _groups(value: Any) -> Draft:
    sizes = value.size()
    frame = sizes.rename("rows").to_frame() if sizes.ndim == 1 else sizes
    return Table(frame, f"{type(value).__name__} of {len(frame):,} groups, the rows of each")


def _scalar(value: Any) -> Any:
    if value.dtype.kind == "f" and value.dtype.itemsize < 8:
        return float(str(value))  # 0.1 and not 0.10000000149011612
    plain = value.item() if value.dtype.kind in "biufcSU" else str(value)
    return str(value) if type(plain) is type(value) else plain


#: What is cut between its rows.
_DRAFTS: Final[tuple[tuple[str, str, Callable[[Any], Draft]], ...]] = (
    ("pandas", "DataFrame", Table),
    ("pandas", "Series", lambda value: Table(value.to_frame(), f"Series of {value.dtype}, {len(value):,} values")),
    ("pandas.core.groupby", "GroupBy", _groups),
    ("numpy", "ndarray", lambda value: array(value, Plain().form)),
)
#: What is inside a value of a module that is looked up only where somebody else has imported it.
_LAZY_INSIDES: Final[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = (
    ("pandas", "Index", list),
    ("pydantic", "BaseModel", _model),
    ("numpy", "generic", _scalar),
    ("sqlite3", "Row", lambda row: {key: row[key] for key in row.keys()}),  # noqa: SIM118  iterating a row gives its values
)
