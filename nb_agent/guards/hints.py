"""Which of many short hints stand in a text: asked of every result, so it has to be quick where there is none.

The words of a text repeat, and what a word holds is worked out once. A hint of several words is looked for only where its last word
is there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

__all__ = ["Hints", "words_of"]

#: Words that are remembered, and the longest of them: what is longer is no word.
_MOST_WORDS: Final = 20_000
_LONGEST: Final = 40


@functools.lru_cache(maxsize=2)
def words_of(text: str) -> frozenset[str]:
    """What stands between white space in a text. Each fence asks for the words of the same result, one after the other."""
    return frozenset(text.split())


_NONE: Final = frozenset[str]()


class Hints:
    """A table of hints, all in small letters."""

    def __init__(self, hints: Iterable[str]) -> None:
        self._gates = {hint: hint.split()[-1] for hint in dict.fromkeys(hints)}
        self._several = tuple(hint for hint, gate in self._gates.items() if gate != hint)
        self._known: dict[str, frozenset[str]] = {}

    def of(self, lower: str) -> set[str]:
        """The hints that are in a text of small letters."""
        known, found = self._known, set[str]()
        for word in words_of(lower):
            held = known.get(word)
            if held is None:
                held = _NONE if word.isdigit() else self._held(word)
            if held:
                found |= held
        return found - {hint for hint in self._several if hint in found and hint not in lower} if found else found

    def _held(self, word: str) -> frozenset[str]:
        held = frozenset(hint for hint, gate in self._gates.items() if gate in word)
        if len(word) <= _LONGEST:
            if len(self._known) >= _MOST_WORDS:
                self._known.clear()
            self._known[word] = held
        return held
