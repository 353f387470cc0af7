"""Two halves of one answer -> the whole, where the second may begin by repeating the end of the first.

A model that is asked to go on often starts again a few words, or a sentence, before the cut, and not always to the letter. What is
repeated is found by its words and left out once. Pure, and knows no model.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final

__all__ = ["joined"]

#: Characters at the seam that are looked at.
_REACH: Final = 600
#: Letters that have to be repeated before it is taken for a repeat; a Chinese character says as much as several Latin letters.
_LEAST: Final = 8
_WEIGHT_OF_WIDE: Final = 4
#: Or whole words, such as the short numbers of a list.
_LEAST_WORDS: Final = 3
#: How alike a repeat that is not to the letter has to be, from 0 to 1.
_ALIKE: Final = 0.8


def joined(first: str, second: str) -> str:
    """The text without what the second half repeats of the first.

    >>> joined("The quick brown fox ju", "brown fox jumps.")
    'The quick brown fox jumps.'
    >>> joined("一二三四五六七八九十", "七八九十，然后是十一")
    '一二三四五六七八九十，然后是十一'
    >>> joined("One two", " three")
    'One two three'
    """
    tail, head = _letters(first[-_REACH:]), _letters(second[:_REACH])
    repeated = _exact(tail, head, second) or _near(tail, head)
    if not repeated:
        return first + second
    closing = first[-_REACH:][tail[-1][1] :]  # what stands behind the last letter, such as a comma
    rest = second[repeated:]
    return first + rest[sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(closing, rest, strict=False))) :]


def _letters(text: str) -> list[tuple[str, int]]:
    """The letters and digits of a text, small, each with the place behind it."""
    return [(letter.casefold(), place + 1) for place, letter in enumerate(text) if letter.isalnum()]


def _word(letters: list[tuple[str, int]]) -> str:
    return "".join(letter for letter, _ in letters)


def _weight(word: str) -> int:
    return sum(_WEIGHT_OF_WIDE if ord(letter) > 0x2E7F else 1 for letter in word)


def _exact(tail: list[tuple[str, int]], head: list[tuple[str, int]], second: str) -> int:
    """Characters of the second half that are the end of the first, to the letter; 0 where it is too little to tell."""
    end, begin = _word(tail), _word(head)
    for length in range(min(len(end), len(begin)), 0, -1):
        if end.endswith(begin[:length]):
            place = head[length - 1][1]
            enough = _weight(begin[:length]) >= _LEAST or len(second[:place].split()) >= _LEAST_WORDS
            return place if enough else 0
    return 0


def _near(tail: list[tuple[str, int]], head: list[tuple[str, int]]) -> int:
    """The same for a repeat with small changes: the second half begins with words that stand near the end of the first."""
    end, begin = _word(tail), _word(head)
    start = end.rfind(_opening(begin))
    if start < 0:
        return 0
    repeat = end[start:]
    match = SequenceMatcher(None, repeat, begin[: len(repeat) * 5 // 4], autojunk=False)
    blocks = match.get_matching_blocks()[:-1]  # the last one is a mark and empty
    same = sum(block.size for block in blocks)
    last = blocks[-1]
    if _weight(repeat) < 2 * _LEAST or same < _ALIKE * len(repeat) or last.a + last.size < len(repeat):
        return 0
    return head[last.b + last.size - 1][1]


def _opening(begin: str) -> str:
    """As many of the first letters as it takes to find a place by."""
    length = next((length for length in range(1, len(begin) + 1) if _weight(begin[:length]) >= _LEAST), None)
    return begin[:length] if length else "\0"
