"""What a provider says a reply has cost, in tokens. What nb_agent counts itself is another type: see `tokens`.

The buckets are disjoint, so they can be added; ``None`` means that the provider did not report it, and is never taken for 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final

from nb_agent.values import Value

__all__ = ["Usage"]


def _sum(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Usage(Value):
    """Tokens of one reply, or of several added up.

    >>> Usage(input=2, output=1) + Usage(input=3, cache_read=4)
    Usage(input=5, cache_read=4, cache_write=None, output=1, reasoning=None)
    """

    input: int | None = None  # read at full price: neither from a cache nor into one
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None  # written for the reader: text and tool calls
    reasoning: int | None = None  # written, but hidden

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(_sum, _BUCKETS(self), _BUCKETS(other)))

    @property
    def input_tokens(self) -> int | None:
        """All that was read, cached or not."""
        return _sum(self.input, self.cache_read, self.cache_write)

    @property
    def output_tokens(self) -> int | None:
        """All that was written, hidden reasoning included."""
        return _sum(self.output, self.reasoning)

    @property
    def total_tokens(self) -> int | None:
        """Input and output."""
        return _sum(self.input_tokens, self.output_tokens)


_BUCKETS: Final = attrgetter(*(entry.name for entry in fields(Usage)))
