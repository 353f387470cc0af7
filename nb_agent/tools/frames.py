"""Frames as CSV and arrays as JSON, whole or cut at the ends of rows. pandas and numpy are never imported: the values bring them.

Unlike `cutting`, which sees text, this asks a frame only for the rows that are shown: a frame of millions is never written out.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from nb_agent.tools.cutting import Draft, Lines, Tree, shortened

__all__ = ["MOST_CELLS", "MOST_ELEMENTS", "Table", "array"]

#: Cells of a frame that are written out for the person.
MOST_CELLS: Final = 1_000_000
#: Elements of an array that are written out for the person.
MOST_ELEMENTS: Final = 500_000
#: Characters kept free for the heading and the note.
_NOTE: Final = 300


class Table:
    """A frame, cut between its rows; where a row is very wide, between its columns too.

    Args:
        frame: a pandas DataFrame.
        about: what it is; without it, its size.
    """

    extra: dict[str, Any] | None = None

    def __init__(self, frame: Any, about: str = "") -> None:
        self._frame = frame
        self._rows, self._columns = frame.shape
        self._heading = f"{about or f'DataFrame, {self._rows:,} rows by {self._columns:,} columns'}, as CSV:\n"
        counted = type(frame.index).__name__ == "RangeIndex" and frame.index.name is None
        self._csv: Callable[..., str] = functools.partial(_csv, index=not counted)

    @functools.cached_property
    def whole(self) -> str:
        """All rows, or the first million cells, which a last line says."""
        most = max(MOST_CELLS // max(self._columns, 1), 1)
        text = self._heading + self._csv(self._frame.iloc[:most])
        return text if most >= self._rows else f"{text}[… only the first {most:,} of {self._rows:,} rows are kept here …]\n"

    @property
    def length(self) -> int:
        """Characters of all rows, estimated from those that are written out."""
        most = max(MOST_CELLS // max(self._columns, 1), 1)
        return len(self.whole) if most >= self._rows else len(self.whole) * self._rows // most

    def cut(self, room: int, tokens: int) -> str:
        """See `cutting.Draft`."""
        frame, hidden = self._narrowed(max(room // 100, 2))
        csv = functools.partial(_csv, index=True)  # the numbers of the rows say which are missing
        room = max(room - _NOTE, 0)
        most, wide = room // (2 * max(frame.shape[1], 1)) + 1, max(room // 8, 80)  # a cell takes two characters at least
        start = _taken(_records(csv(frame.iloc[:most], header=False)), room // 2, wide)
        rest = frame.iloc[max(len(start), self._rows - most) :]
        end = _taken(reversed([*_records(csv(rest, header=False))]), room // 2, wide)[::-1]
        left = [f"rows {len(start) + 1:,} to {self._rows - len(end):,} of {self._rows:,}"]
        left = left if len(start) + len(end) < self._rows else []
        left += [f"columns {hidden[0] + 1:,} to {hidden[1]:,} of {self._columns:,}"] if hidden else []
        said = f"{' and '.join(left)} are left out here; " if left else ""
        note = (
            f"[… {said}the whole is about {tokens:,} tokens; to go on, ask for fewer rows or columns at a time, "
            f"such as rows {len(start) + 1:,} to {max(2 * len(start), 1):,}, or with a filter …]\n"
        )
        return "".join([self._heading, shortened(csv(frame.iloc[:0]), room), *start, note, *end])

    def _narrowed(self, most: int) -> tuple[Any, tuple[int, int] | None]:
        """The frame with its first and last columns, and which are missing between."""
        if self._columns <= most:
            return self._frame, None
        front, end = most - most // 2, self._columns - most // 2
        return self._frame.iloc[:, [*range(front), *range(end, self._columns)]], (front, end)


def _csv(frame: Any, *, index: bool, header: bool = True) -> str:
    return str(frame.to_csv(index=index, header=header, na_rep="NaN", lineterminator="\n"))


def _records(text: str) -> Iterator[str]:
    """The rows of a CSV, each with its line's end; a line break between quotes ends no row."""
    held: list[str] = []
    quoted = False
    for line in text.split("\n")[:-1]:
        held.append(f"{line}\n")
        quoted ^= line.count('"') % 2 == 1
        if not quoted:
            yield "".join(held)
            held = []


def _taken(records: Iterable[str], room: int, wide: int) -> list[str]:
    """The first records that have room, one at least if there is any; one that is very long is cut in itself."""
    taken: list[str] = []
    for record in records:
        short = record if len(record) <= wide else shortened(record.rstrip("\n"), wide) + "\n"
        room -= len(short)
        if room < 0 and taken:
            break
        taken.append(short)
    return taken


def array(value: Any, form: Callable[[Any], Any]) -> Draft:
    """A numpy array as nested lists, or numpy's own summary where it is very large.

    Args:
        value: the array.
        form: makes JSON's types of what is in it.
    """
    about = f"array of {value.dtype}, shape {value.shape}:\n"
    if value.size <= MOST_ELEMENTS:
        plain = form(_listed(value))
        return Tree(plain, about) if isinstance(plain, list) else Lines(about + json.dumps(plain, ensure_ascii=False))
    note = "numpy leaves out the middle; to see more, ask for a slice"
    if value.ndim > 3:  # a summary has several elements of each axis, which is too many for many axes
        value, note = value[(0,) * (value.ndim - 2)], f"only the first of its last two axes; {note}"
    return Lines(f"{about}{value}\n[… {note} …]")


def _listed(value: Any) -> Any:
    kind = value.dtype.kind
    if kind in "mM":
        return value.astype(str).tolist()  # numpy itself would count times in nanoseconds
    if kind == "f" and value.dtype.itemsize < 8 and type(value).__name__ == "ndarray":
        return value.astype(str).astype(float).tolist()  # 0.1 and not 0.10000000149011612
    return value.tolist()
