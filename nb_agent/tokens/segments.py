"""What an adapter gives to be counted: the texts of a request by part, and what else of it matters to the count.

Unlike `requests`, which adds them up, this only holds them, and makes those of a conversation that grows once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from nb_agent.growing import begun, keep
from nb_agent.messages import Segment
from nb_agent.values import JSON, Encoded, dumps

__all__ = ["Segments", "defined", "spoken"]


class Segments(list[Segment]):
    """The segments of a request, in the order of its body, definitions last.

    Attributes:
        wire: the wire format: the same request costs other amounts in another.
        choice: its ``tool_choice`` or ``function_call`` as it is sent.
        memo: lives as long as the conversation; what was counted for its beginning is kept here.
    """

    def __init__(
        self, segments: Iterable[Segment] = (), *, wire: str = "", choice: Any = None, memo: dict[Any, Any] | None = None
    ) -> None:
        super().__init__(segments)
        self.wire, self.choice, self.memo = wire, choice, memo


_MADE: Final = "segments"


def spoken(
    entries: Sequence[Any],
    write: Callable[[Any, int, str, dict[str, str]], Iterable[Segment]],
    *,
    asks: Callable[[Any], bool],
) -> tuple[list[Segment], dict[Any, Any] | None]:
    """The segments of all messages, and a memo that lives as long as they do.

    Messages that were there in an earlier request are not looked at again (see `growing`).

    Args:
        entries: the messages in wire form.
        write: gives the segments of one: its form, its place, the part that a user's words in it belong to, and the names of the
            tools by the id of their call, to which it adds the calls that it finds.
        asks: whether the user says something in it.
    """
    kept = bool(entries) and isinstance(entries[0], Encoded)
    size, made = begun(_MADE, entries) if kept else (0, None)
    before, current, known = made or ((), -1, {})
    newest = max((place for place in range(size, len(entries)) if asks(entries[place])), default=current)
    if newest != current:
        size, before, known = 0, (), {}  # what was asked before is history now
    found, names = [*before], {**known}
    for place in range(size, len(entries)):
        found.extend(write(entries[place], place, "user" if place == newest else "history", names))
    if kept and all(isinstance(entry, Encoded) for entry in entries[size:]):
        keep(_MADE, entries, (found, newest, names))
    return list(found), entries[0].memo if kept else None


def defined(form: JSON, name: str | None) -> Segment:
    """The segment of a definition, which holds its JSON as it is sent; made once for each."""
    if not isinstance(form, Encoded):
        return Segment("tools", dumps(form), tool=name)
    if _MADE not in form.memo:
        form.memo[_MADE] = Segment("tools", form.content.decode(), tool=name)
    segment: Segment = form.memo[_MADE]
    return segment
