"""What was made of a list that only grows at its end: kept, so that the next round works on what is new and nothing else.

Each round of a run sends the whole conversation: what it was last time, and a message or two more. Going through the old ones again
would make a round the dearer the longer the conversation is. What is kept hangs on the list's first entry, so that it lives as long
as the conversation; there is one for each key, the latest. A list that begins in another way is made anew, which is slower and
never wrong. Unlike `deltas`, which compares two bodies, this knows nothing of what is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import is_
from typing import Any, Protocol

__all__ = ["begun", "keep"]


class Entry(Protocol):
    """What such a list holds: values that never change."""

    @property
    def memo(self) -> dict[Any, Any]:
        """What was worked out for it."""


def begun(key: Any, entries: Sequence[Entry]) -> tuple[int, Any]:
    """How many entries at the start were there last time, and what was made of them; ``(0, None)`` where there is nothing to go on.

    Entries are the same where they are the same object: equal ones may differ in writing, such as ``1`` and ``True``.
    """
    others, made = entries[0].memo.get(key, (None, None)) if entries else (None, None)
    if others is None or len(others) >= len(entries) or not all(map(is_, others, islice(entries, 1, None))):
        return 0, None
    return len(others) + 1, made


def keep(key: Any, entries: Sequence[Entry], made: Any) -> None:
    """Keep what was made of all these entries. Whoever gets it back must not change it."""
    if entries:
        entries[0].memo[key] = entries[1:], made  # without the first, which would hold itself
