"""What a tool gives back, as text and pictures that a model can read. Every type of value becomes something; nothing here raises.

Unlike `values.to_json` this is a one-way street: it aims at a reader, not at coming back. What is longer than a model should get is
cut (see `cutting`), and the whole is kept for the person. pandas and numpy are never imported here: who gives back a frame has
imported them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nb_agent.messages import Image, Text
from nb_agent.tools.cutting import Draft, Lines, Tree, cut, fitted, needed, shares
from nb_agent.tools.pictures import UnreadableError, figure_of, fitting, picture_of, pixels, release
from nb_agent.tools.plain import Plain, draft_of

__all__ = ["MOST_TOKENS", "Made", "cut", "longest", "to_parts"]

#: Tokens of one result that a model gets.
MOST_TOKENS: Final = 5_000
#: A number below it is its digits, and needs no looking at.
_SMALL: Final = 10**15
#: Pictures of one result; providers take about a hundred in a request.
MOST_PICTURES: Final = 20
#: Texts of one result that are cut each by itself; more are cut as one.
_MOST_TEXTS: Final = 8


def longest(window: int | None) -> int:
    """Tokens of a result that a model with this context window gets: none may fill half of a small one."""
    return MOST_TOKENS if window is None else min(MOST_TOKENS, window // 3)


@dataclass(frozen=True, slots=True)
class Made:
    """What has become of a value.

    Attributes:
        parts: what the model gets.
        whole: the whole text where it was cut, for the person.
        notes: what was changed on the way, a sentence each.
    """

    parts: tuple[Text | Image, ...]
    whole: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that the model gets."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


def to_parts(
    value: Any, *, most_tokens: int = MOST_TOKENS, model: str | None = None, cover: Callable[[str], str] = lambda text: text
) -> Made:
    """A value as the parts of a tool result.

    Args:
        value: anything.
        most_tokens: of all its text together; what is longer is cut.
        model: decides the vocabulary to count with (`tokens.count`).
        cover: takes out of a text what nobody may see. It is asked before the text is cut, which could hide half of a secret.

    >>> to_parts({"town": "京都", "rain": None}).parts
    (Text(text='{"town": "京都", "rain": null}', extra=None),)
    """
    if type(value) is int and -_SMALL < value < _SMALL:
        value = str(value)
    if type(value) is str and value and _is_short(value, most_tokens):
        return Made((Text(cover(value)),))
    try:
        return _made(value, most_tokens, model, cover)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  __str__, __repr__ and the like are somebody else's code, and may even exit
        return Made((Text(f"(a value of type {type(value).__name__} that cannot be shown: {type(error).__name__})"),))


def _is_short(text: str, most: int) -> bool:
    """Whether a text surely has no more tokens than that: a token is one byte at least, and a character four bytes at most."""
    return len(text) * 4 <= most or (len(text) <= most and text.isascii())


def _made(value: Any, most: int, model: str | None, cover: Callable[[str], str]) -> Made:
    notes: list[str] = []
    pieces = _limited([_checked(piece, notes) for piece in _pieces(value)])
    pieces = [piece if isinstance(piece, Image) else _covered(piece, cover) for piece in pieces]
    drafts = [piece for piece in pieces if not isinstance(piece, Image)]
    sizes = [needed(draft, most, model=model) for draft in drafts]
    if sum(sizes) <= most:
        return Made(tuple(_part(piece) for piece in pieces), notes=tuple(notes))
    if len(drafts) > _MOST_TEXTS:
        pieces = _merged(pieces)
        drafts = [piece for piece in pieces if not isinstance(piece, Image)]
        sizes = [needed(draft, most, model=model) for draft in drafts]
    given = dict(zip(map(id, drafts), zip(sizes, shares(sizes, most), strict=True), strict=True))
    parts = tuple(_part(piece, *given.get(id(piece), (0, 0)), model=model) for piece in pieces)
    length = sum(draft.length for draft in drafts)
    left = sum(len(part.text) for part in parts if isinstance(part, Text))
    notes.append(f"the model got {left:,} of {length:,} characters, since a result may have {most:,} tokens")
    return Made(parts, "\n".join(draft.whole for draft in drafts), tuple(notes))


def _part(piece: Draft | Image, size: int = 0, room: int = 0, *, model: str | None = None) -> Text | Image:
    if isinstance(piece, Image):
        return piece
    return Text(piece.whole if size <= room else fitted(piece, room, model=model), piece.extra)


def _covered(draft: Draft, cover: Callable[[str], str]) -> Draft:
    text = cover(draft.whole)
    return draft if text == draft.whole else Lines(text, draft.extra)


def _merged(pieces: list[Draft | Image]) -> list[Draft | Image]:
    """Neighbouring texts as one: each by itself would have too little room to say anything."""
    merged: list[Draft | Image] = []
    for pictures, group in itertools.groupby(pieces, key=lambda piece: isinstance(piece, Image)):
        some = list(group)
        merged += some if pictures else [Lines("\n".join(draft.whole for draft in some if not isinstance(draft, Image)))]
    return merged


# ------------------------------------------------------------------------------------------------- texts and pictures of a value


def _pieces(value: Any) -> list[Draft | Image]:
    if isinstance(value, (list, tuple)) and value:
        found = _drawn(value[:MOST_PICTURES])
        if any(found) or all(isinstance(item, Text) for item in value):
            rest = [[item if isinstance(item, Image) else _text(item)] for item in value[MOST_PICTURES:]]
            shown = [[_text(item)] if seen is None else seen for item, seen in zip(value, found, strict=False)]
            return [piece for pieces in (*shown, *rest) for piece in pieces]
    if isinstance(value, dict) and any(_drawn([*itertools.islice(value.values(), MOST_PICTURES)])):
        return _illustrated(value)
    return _piece(value) or [_text(value)]


def _drawn(values: Sequence[Any]) -> list[list[Draft | Image] | None]:
    """The pictures that values are: ``None`` for one that is none, an empty list for one more piece of a figure that was drawn."""
    found: list[list[Draft | Image] | None] = []
    figures: list[Any] = []
    for value in values:
        figure = None if type(value) in _PLAIN else _figure(value)
        if figure is not None and any(figure is other for other in figures):
            found.append([])
        else:
            found.append(None if type(value) in _PLAIN else _piece(value) or None)
        figures.append(figure)
    return found


#: Types that no picture is of.
_PLAIN: Final = frozenset({type(None), str, int, float, bool, dict, list, tuple})


def _illustrated(values: dict[Any, Any]) -> list[Draft | Image]:
    """A dict, with the pictures in it behind it."""
    texts, pieces = dict(values), list[Draft | Image]()
    for key, found in zip(values, _drawn([*itertools.islice(values.values(), MOST_PICTURES)]), strict=False):
        if found is not None:
            pieces += [Lines(f"{key}:"), *found] if found else []
            texts[key] = "(a picture, see below)"
    return [_text(texts), *pieces]


def _figure(value: Any) -> Any:
    try:
        return figure_of(value)
    except Exception:  # noqa: BLE001  somebody else's attributes
        return None


def _piece(value: Any) -> list[Draft | Image]:
    """A picture with a line that says what it is, for models and servers that cannot see it; nothing where it is none."""
    if isinstance(value, Image):
        return [value]
    try:
        found = picture_of(value)
        if found is None:
            return []
        if (figure := figure_of(value)) is not None:
            release(figure)
    except Exception:  # noqa: BLE001  drawing is somebody else's code; the value still has a text
        return []
    size = pixels(found)
    return [Lines(f"({type(value).__name__}: a picture{f', {size[0]} by {size[1]} pixels' if size else ''})"), found]


def _checked(piece: Draft | Image, notes: list[str]) -> Draft | Image:
    if not isinstance(piece, Image):
        return piece
    try:
        fit, note = fitting(piece)
    except UnreadableError as error:
        notes.append(f"a picture was left out: {error}")
        return Lines(f"(a picture that is left out: {error})")
    notes += [note] if note else []
    return fit


def _limited(pieces: list[Draft | Image]) -> list[Draft | Image]:
    places = [place for place, piece in enumerate(pieces) if isinstance(piece, Image)]
    if len(places) <= MOST_PICTURES:
        return pieces
    dropped = frozenset(places[MOST_PICTURES:])
    note = Lines(f"(only the first {MOST_PICTURES} of {len(places)} pictures are here)")
    return [*(piece for place, piece in enumerate(pieces) if place not in dropped), note]


def _text(value: Any) -> Draft:
    if isinstance(value, Text):
        return Lines(value.text, value.extra)
    if value is None:
        return Lines("(no output)")
    if isinstance(value, str) and not isinstance(value, Enum):
        return Lines(str(value) or "(empty text)")
    draft = None if isinstance(value, type) else draft_of(value)
    if draft is not None:
        return draft
    plain = Plain().form(value)
    if isinstance(plain, (list, dict)):
        return Tree(plain)
    return Lines(plain if isinstance(plain, str) else json.dumps(plain))
