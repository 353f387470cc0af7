"""Cuts what is too long for a model: both ends stay, and a note between them says how long the whole is and how to go on.

The cut is made at the ends of lines or of records, so that what stays can be read; of JSON, what stays is JSON. Unlike `results`,
nothing here knows what a value was: it sees text, or JSON's own types. Time grows with the length of the text and not faster, and
only what is kept is ever counted in tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol

from nb_agent import tokens

__all__ = ["Draft", "Lines", "Tree", "cut", "fitted", "needed", "shares", "shortened"]

#: A text of more characters than this for each token is not counted: it is too long.
_MOST_PER_TOKEN: Final = 16
#: Characters from each end of a text by which its tokens are guessed.
_SAMPLE: Final = 2_000
#: Characters kept free for the note.
_NOTE: Final = 240
#: Characters to which a part of a list or an object is cut at least: shorter ones stay whole.
_LEAST: Final = 100
#: Attempts at a cut; each is as long as the tokens of the one before suggest.
_ATTEMPTS: Final = 5
#: The longest JSON text that is read in order to be cut as JSON.
_MOST_JSON: Final = 20_000_000


class Draft(Protocol):
    """A text that can be written shorter."""

    @property
    def extra(self) -> dict[str, Any] | None:
        """What goes with the part of a message that it came from."""

    @property
    def whole(self) -> str:
        """All of it."""

    @property
    def length(self) -> int:
        """Characters of all of it, estimated where it is not all there."""

    def cut(self, room: int, tokens: int) -> str:
        """Its ends in about ``room`` characters, with a note that the whole is about so many ``tokens``."""


def needed(draft: Draft, most: int, *, model: str | None) -> int:
    """The tokens of a draft, or ``most + 1`` for all that are more. A text of few bytes is not counted: a token is at least one."""
    whole = draft.whole
    if len(whole) * 4 <= most or (len(whole) <= most and len(whole.encode("utf-8", "replace")) <= most):
        return len(whole.encode("utf-8", "replace"))
    if draft.length > most * _MOST_PER_TOKEN:
        return most + 1
    return min(tokens.count(whole, model=model), most + 1)


def fitted(draft: Draft, most: int, *, model: str | None) -> str:
    """The draft cut to at most ``most`` tokens, or to little more than its note where even that does not fit."""
    whole = draft.whole
    sample = whole if len(whole) <= 2 * _SAMPLE else whole[:_SAMPLE] + whole[-_SAMPLE:]
    each = max(tokens.count(sample, model=model), 1) / max(len(sample), 1)  # tokens of a character
    about, room, best = round(each * draft.length), int(most / each), ""
    for _ in range(_ATTEMPTS):
        text = draft.cut(min(room, most * _MOST_PER_TOKEN), about)
        found = tokens.count(text, model=model)
        if found <= most and len(text) > len(best):
            best = text
        if most * 4 // 5 <= found <= most:
            break
        room = int(room * most * 0.97 / max(found, 1))
    return best or draft.cut(most // 4, about)  # a character is at most four bytes, and a token at least one


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much of the room each gets: the small ones what they need, the others equal parts of the rest.

    >>> shares([5, 100, 100], 45)
    [5, 20, 20]
    """
    given = [0] * len(sizes)
    for done, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        given[place] = min(sizes[place], max(room, 0) // (len(sizes) - done))
        room -= given[place]
    return given


def shortened(text: str, room: int) -> str:
    """A text without lines in about ``room`` characters.

    >>> shortened("abc" * 100, 90)
    'abcabcabcabcabcabcabcabc[… 264 of 300 characters are left out here …]abcabcabcabc'
    """
    if len(text) <= room:
        return text
    keep = max(room - 54, 0)  # 54: the note
    start, end = text[: keep * 2 // 3], text[len(text) - keep // 3 :]
    left = len(text) - len(start) - len(end)
    return f"{start}[… {left:,} of {len(text):,} characters are left out here …]{end}"


def _whole(length: int, tokens: int) -> str:
    return f"the whole has {length:,} characters, about {tokens:,} tokens"


# ------------------------------------------------------------------------------------------------- text


class Lines:
    """Text, cut at the ends of lines where lines are not too long. Text that is JSON is cut as JSON.

    Args:
        text: all of it.
        extra: what goes with the part of a message that it came from.
    """

    def __init__(self, text: str, extra: dict[str, Any] | None = None) -> None:
        self.whole, self.length, self.extra = text, len(text), extra

    def cut(self, room: int, tokens: int) -> str:
        """See `Draft`."""
        tree = self._tree()
        return tree.cut(room, tokens) if tree is not None else self._cut(room, _whole(self.length, tokens))

    def _cut(self, room: int, said: str) -> str:
        whole, half = self.whole, max(0, room - _NOTE) // 2
        start, end = _ends(whole, half)
        if start.endswith("\n") and (first := start.count("\n") + 1):
            lines = whole.count("\n") + (not whole.endswith("\n"))
            last = lines - end.count("\n") - (not end.endswith("\n") and bool(end))
            left = f"lines {first:,} to {last:,} of {lines:,}"
            some = f"lines {first:,} to {min(last, 2 * first):,}"
        else:
            left = f"characters {len(start) + 1:,} to {len(whole) - len(end):,} of {len(whole):,}"
            some = "a shorter part"
        return _joined(start, f"[… {left} are left out here; {said}; to go on, ask for less at a time, such as {some} …]", end)

    def _tree(self) -> Tree | None:
        if not hasattr(self, "_read"):
            self._read = _parsed(self.whole)
        return self._read


def cut(text: str, limit: int) -> str:
    """A text of about ``limit`` characters at most: its start, its end, and a note between that says how long the whole is."""
    if len(text) <= limit:
        return text
    start, end = _ends(text, max(0, limit - 200) // 2)
    left, lines = len(text) - len(start) - len(end), text.count("\n") + 1
    note = f"[… {left:,} of {len(text):,} characters are left out here, of {lines:,} lines in all; ask for a smaller part …]"
    return _joined(start, note, end)


def _ends(text: str, half: int) -> tuple[str, str]:
    """Both ends of a text, whole lines where lines are not too long."""
    start, end = text[:half], text[len(text) - half :]
    start = start[: start.rfind("\n", half * 3 // 4) + 1] or start
    return start, end[end.find("\n", 0, half // 4 + 1) + 1 :]


def _joined(start: str, note: str, end: str) -> str:
    return f"{start}{'' if start.endswith(chr(10)) or not start else chr(10)}{note}\n{end}"


def _parsed(text: str) -> Tree | None:
    if len(text) > _MOST_JSON or text.lstrip()[:1] not in {"[", "{"}:
        return None
    try:
        tree = Tree(json.loads(text, parse_constant=str), length=len(text))
        tree.measure()
    except (ValueError, RecursionError):
        return None
    return tree


# ------------------------------------------------------------------------------------------------- JSON


class Tree:
    """A list or an object of JSON. Large parts are cut inside, and of many parts the first and the last are kept.

    Args:
        plain: the value, in JSON's own types; not too deep.
        heading: what stands before it.
        length: characters of the text that it was read from.
    """

    extra: dict[str, Any] | None = None

    def __init__(self, plain: Any, heading: str = "", *, length: int | None = None) -> None:
        self.whole = heading + json.dumps(plain, ensure_ascii=False)
        self.length = len(self.whole) if length is None else length
        self._plain, self._heading = plain, heading
        self._sizes: dict[int, int] = {}

    def cut(self, room: int, tokens: int) -> str:
        """See `Draft`."""
        self.measure()
        said = f"{_whole(self.length, tokens)}; to go on, ask for less at a time"
        return self._heading + json.dumps(self._trim(self._plain, room - _NOTE - len(self._heading), said), ensure_ascii=False)

    def measure(self) -> None:
        """Learn the size of every part; raises RecursionError where they are nested too deep."""
        if not self._sizes:
            self._measure(self._plain)

    def _measure(self, value: Any) -> int:
        if isinstance(value, dict):
            size = 2 + sum(len(key) + 6 + self._measure(part) for key, part in value.items())
        elif isinstance(value, list):
            size = 2 + sum(2 + self._measure(part) for part in value)
        else:
            return len(value) + 2 if isinstance(value, str) else len(str(value))
        self._sizes[id(value)] = size
        return size

    def _size(self, value: Any) -> int:
        return self._sizes.get(id(value)) or self._measure(value)

    def _trim(self, value: Any, room: int, said: str = "") -> Any:
        if isinstance(value, str):
            return shortened(value, room)
        if not isinstance(value, (list, dict)) or not value or (self._size(value) <= room and not said):
            return value
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        wide = 40 if isinstance(value, dict) else 8  # parts that are shown at least, if there are as many: rather more keys
        sizes = [self._size(part) + (len(key) + 6 if isinstance(key, str) else 2) for key, part in entries]
        front, back = _kept(sizes, room, max(room // wide, _LEAST))
        middle = len(entries) - back
        places = [*range(front), *range(middle, len(entries))]
        given = shares([sizes[place] for place in places], room)
        trimmed = [
            (entries[place][0], self._trim(entries[place][1], share - 60 if share < sizes[place] else share))  # 60: its note
            for place, share in zip(places, given, strict=True)
        ]
        noun = "items" if isinstance(value, list) else "keys"
        left = [f"{noun} {front + 1:,} to {middle:,} of {len(entries):,} are left out here"] if front < middle else []
        notes = "; ".join([*left, *([said] if said else [])])
        return _noted(trimmed, f"… {notes} …" if notes else "", front, value)


def _kept(sizes: Sequence[int], room: int, least: int) -> tuple[int, int]:
    """How many of the first and of the last parts have room, where a large one can be cut to ``least``. One at least."""
    front, back, spent = 0, 0, 0
    while front + back < len(sizes):
        forward = front <= back
        spent += min(sizes[front if forward else -1 - back], least)
        if spent > room and front:
            break
        front, back = front + forward, back + (not forward)
    return front, back


def _noted(entries: list[tuple[Any, Any]], note: str, place: int, like: Any) -> Any:
    """The entries as a container like the given one, with the note among them."""
    if isinstance(like, list):
        items = [part for _, part in entries]
        return [*items[:place], note, *items[place:]] if note else items
    name = "…"
    while name in like:
        name += "…"
    return dict([*entries[:place], *([(name, note)] if note else []), *entries[place:]])
