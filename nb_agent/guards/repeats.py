"""The same thing twice: a side effect that is asked for again is held back, and a model that goes round in circles is stopped.

One `Repeats` belongs to one run. It knows calls and their results, and decides; `tools.calling` holds back, the agent stops.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from bisect import insort
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

from nb_agent.messages import ToolCall, ToolResult

__all__ = ["Repeats", "called_with", "changes_something", "idempotency_key"]

#: Names that begin so only look, where nobody said what a tool may do. Held back is what may change something.
_LOOKS: Final = re.compile(
    r"(get|list|read|search|find|check|count|show|look|fetch|query|describe|is|has|now|time|status|poll|wait|calc|compute)(_|\b|[A-Z])"
)
#: Rounds of one pattern -> how often it comes with the same results before the model is told. A-B-A-B is a pattern of two.
_TELL: Final = {1: 3, 2: 2, 3: 2}
#: Rounds in a circle, and how often its pattern comes, before the run is stopped.
_STOP_ROUNDS, _STOP_TIMES = 6, 3

_SORTED: Final = json.JSONEncoder(sort_keys=True, default=repr)
_current: ContextVar[str] = ContextVar("key of the call", default="")

#: What became of a call that may have been carried out, although no result came.
_UNSURE: Final = frozenset({"tool_timeout", "cancelled"})


class Repeats:
    """What was asked for in one run, and what came of it.

    Args:
        token: is in every idempotency key, so that those of two runs differ.
    """

    def __init__(self, token: str = "") -> None:
        self._token = token
        self._kept: dict[str, ToolResult] = {}
        self._number = -1
        self._rounds: list[list[tuple[str, ...]]] = []  # what was called and what came of it, sorted

    def key(self, call: ToolCall, arguments: Mapping[str, Any]) -> str:
        """The idempotency key of a call: one for the same name and arguments in this run, whatever their order."""
        return _hash(self._token, call.name, _SORTED.encode(arguments))

    def first(self, key: str) -> ToolResult | None:
        """What came of the same call before, where it was carried out, or may have been."""
        return self._kept.get(key)

    def keep(self, key: str, result: ToolResult) -> None:
        """Remember what came of a call. One that failed for sure may be tried again."""
        if result.code is None or result.code in _UNSURE:
            self._kept.setdefault(key, result)

    def told(self, number: int, call: ToolCall, result: ToolResult) -> str | None:
        """Take a result in; what the model is told beside it, where it goes round in circles.

        Args:
            number: of the round.
            call: what was asked for.
            result: what came of it.
        """
        if self._number != number:
            self._number = number
            self._rounds.append([])
        insort(self._rounds[-1], (call.name, call.arguments or "", result.code or "", result.text))
        circling = [times for length, times in self._circles() if times >= _TELL[length]]
        if not circling:
            return None
        return (
            f"These calls gave the same results {max(circling)} times; nothing new will come of them. Answer, or do another thing."
        )

    @property
    def stopped(self) -> str | None:
        """Why the run has to end, where it has to."""
        for length, times in self._circles():
            if times >= _STOP_TIMES and length * times >= _STOP_ROUNDS:
                return f"the model asked for the same calls {times} times and got the same results"
        return None

    def _circles(self) -> Iterator[tuple[int, int]]:
        """For each length of a pattern, how often it stands at the end of the rounds."""
        rounds = self._rounds
        for length in _TELL:
            times = 1
            while len(rounds) >= length * (times + 1) and rounds[-length * (times + 1) :][:length] == rounds[-length:]:
                times += 1
            yield length, times


def changes_something(name: str, tier: str | None) -> bool:
    """Whether a call of a tool is a side effect, as far as was said; else as its name lets one think."""
    return tier in {"write", "danger"} if tier else not _LOOKS.match(name)


@contextlib.contextmanager
def called_with(key: str) -> Iterator[None]:
    """Inside, `idempotency_key` gives this key."""
    token = _current.set(key)
    try:
        yield
    finally:
        _current.reset(token)


def idempotency_key() -> str:
    """Inside a tool, the key of the call that is being carried out; outside, an empty text.

    It is the same where a model asks for the same thing twice in one run, and differs from one run to the next. Pass it on to a
    service that takes one, so that a payment whose answer was lost is not made again.
    """
    return _current.get()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
