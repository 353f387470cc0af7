"""The window of a model that nobody knows, from the words in which its server refuses a request; kept for this process.

Only words of a refusal of kind ``context_length`` belong here: what a server says while it asks to slow down names limits too.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["limit_in", "remember", "remembered"]

_LIMIT: Final = re.compile(
    r"(?:max(?:imum)?|limit|window|allowed|context (?:length|size)|up to|only|at most|>|最大|上限)"
    r"[^\d.;]{0,60}?(\d[\d,_]{2,})(?![\d.])",
    re.IGNORECASE,
)

_windows: dict[str, int] = {}


def limit_in(words: str) -> int | None:
    """The window that a refusal names, in tokens; ``None`` where it names none.

    >>> limit_in("prompt is too long: 210000 tokens > 200000 maximum"), limit_in("Input is too long for requested model.")
    (200000, None)
    """
    found = _LIMIT.search(words)
    return int(re.sub(r"\D", "", found[1])) if found else None


def remember(model: str, window: int) -> None:
    """Keep what was learned of a model; the smallest that was said, since some servers name what is left."""
    _windows[model] = min(window, _windows.get(model, window))


def remembered(model: str) -> int | None:
    """What was learned of a model in this process."""
    return _windows.get(model)
