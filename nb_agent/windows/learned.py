"""The window of a model that nobody knows, from the words in which its server refuses a request; kept for this process.

Only words of a refusal of kind ``context_length`` belong here, and even of those not all name a window: a limit per minute that one
request alone is over, bytes, and by how much a request is too long are numbers too. Where it is not sure it says nothing.
"""

from __future__ import annotations

import re
from typing import Final

from nb_agent.windows.table import known

__all__ = ["limit_in", "remember", "window_in", "window_of"]

#: Limits on a time, which no shorter conversation of the next minute is held to.
_PER_TIME: Final = re.compile(
    r"\b[TRI]P[MD]\b|per[ _](?:min|minute|hour|day|second|month)|rate[ _-]?limit|quota|throttl", re.IGNORECASE
)

# A number of tokens: no part of a larger one, no "128k", no count of anything else, and not what was sent. MiniMax puts the number
# of the error behind "exceeds limit".
_NUMBER: Final = (
    r"(?<![\d.,])(?<!exceeds limit \()(?P<tokens>\d(?:[\d,_]*\d)?)(?![\d_]|[.,]\d)"
    r"(?! ?(?:[kmg](?:i?b)?\b|bytes|char|requests|messages|images|pixels|tools))"
    r"(?! ?(?:tokens )?(?:were |was )?(?:sent|requested|given|received|in the|>|\+))"
)
# Words between a limit's name and its number: one sentence, and none of "by 1234 tokens", "for the completion".
_BETWEEN: Final = r"(?:(?!\bby\b|output|completion|request\w* |sent |received)[^\d.;>]){0,60}?"
# A name may have ``max_tokens`` beside it, which is what the request asked for.
_NAME: Final = (
    r"(?:max(?!_\w*tokens)(?:imum)?|limit|window|allowed|context[ _](?:length|size)|up to|only|at most|less than|smaller than|"
    r"no more than|最大|上限)"
)

#: Where a refusal names the window, the surest place first.
_PLACES: Final = tuple(
    re.compile(place, re.IGNORECASE)
    for place in (
        rf"\bn_ctx\b\D{{0,5}}?{_NUMBER}",  # llama.cpp, LM Studio
        rf"\d(?: tokens)? ?>=? ?{_NUMBER}",  # Anthropic: "210000 tokens > 200000 maximum"
        rf"<=? ?{_NUMBER}",  # TGI: "must be <= 4096"
        rf"length should be \[\d+, ?{_NUMBER}",  # Qwen
        rf"(?:larger|longer|greater|more) than{_BETWEEN}{_NUMBER}",
        rf"(?:exceed(?:s|ed|ing)?|超过|超出){_BETWEEN}{_NUMBER}",
        rf"{_NAME}{_BETWEEN}{_NUMBER}",
        rf"{_NUMBER}(?= ?(?:tokens? )?(?:maximum|max|limit|context)\b)",  # Mistral: "with 32768 maximum context length"
    )
)

#: Smaller numbers are places in a list, counts of messages, or versions.
_FEWEST_DIGITS: Final = 3

_windows: dict[str, int] = {}


def limit_in(words: str) -> int | None:
    """The most tokens that a refusal allows one request to have; ``None`` where it names no such number.

    >>> limit_in("prompt is too long: 210000 tokens > 200000 maximum"), limit_in("Input is too long for requested model.")
    (200000, None)
    """
    for place in _PLACES:
        for found in place.finditer(words):
            tokens = re.sub(r"\D", "", found["tokens"])
            if len(tokens) >= _FEWEST_DIGITS:
                return int(tokens)
    return None


def window_in(words: str) -> int | None:
    """The window that a refusal names; ``None`` also where its limit is one for a minute, which no request of any model may pass.

    >>> window_in("on tokens per minute (TPM): Limit 12000, Requested 15000")
    """
    return None if _PER_TIME.search(words) else limit_in(words)


def remember(model: str, window: int) -> None:
    """Keep what was learned of a model; the smallest that was said, since some servers name what is left."""
    _windows[model] = min(window, _windows.get(model, window))


def window_of(model: str) -> int | None:
    """The window of a model that is served somewhere: as its server said in this process, or else as the table has it."""
    found = known(model)
    return _windows.get(model) or (found.window if found else None)
