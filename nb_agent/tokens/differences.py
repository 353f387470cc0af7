"""What a provider reported beside what was counted, with each part of the difference named.

Unlike `breakdowns`, which never looks at ``usage``, this compares the two; it changes neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nb_agent.tokens.breakdowns import Breakdown
from nb_agent.tokens.families import family
from nb_agent.usage import Usage
from nb_agent.values import JSON, Value

__all__ = ["Difference", "Explained", "explained", "explained_reply"]

#: Name of a difference -> what it is.
NAMES: Final = {
    "hidden reasoning": "written by the model before it answers, billed, and not shown",
    "vocabulary": "the model's own vocabulary is not public, and another one stood in for it",
    "images": "what an image costs is known from the provider's documents only",
    "template": "what the provider puts around messages, calls and definitions, which it does not publish",
}


@dataclass(frozen=True, slots=True)
class Difference(Value):
    """Tokens that were reported and not counted; below 0 where more was counted. ``name`` is a key of `NAMES`."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Explained(Value):
    """Counted and reported tokens side by side.

    ``counted + sum(difference.tokens for difference in differences) == reported``, always, where the provider reported anything.

    Attributes:
        counted: what was counted here.
        reported: what the provider says, cached tokens and hidden reasoning included; ``None`` where it says nothing.
        exact: whether the count should have been the same.
        differences: where the two differ, by name.
        cache_read: of the reported input, what came from a cache; ``None`` where it was not said.
        cache_write: of the reported input, what was put into a cache.
    """

    counted: int
    reported: int | None
    exact: bool
    differences: tuple[Difference, ...] = ()
    cache_read: int | None = None
    cache_write: int | None = None

    def shown(self) -> JSON:
        """The form for a view's state."""
        return {
            "counted": self.counted,
            "reported": self.reported,
            "exact": self.exact,
            "differences": {difference.name: difference.tokens for difference in self.differences},
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
        }

    def __str__(self) -> str:
        counted = f"{self.counted:,} counted{'' if self.exact else ' (estimate)'}"
        if self.reported is None:
            return f"{counted}, none reported"
        named = "".join(f", {one.tokens:+,} {one.name}" for one in self.differences)
        cached = [(self.cache_read, "read from a cache"), (self.cache_write, "written to a cache")]
        of_it = "".join(f", {number:,} of them {what}" for number, what in cached if number)
        return f"{counted}, {self.reported:,} reported{named}{of_it}"


def explained(counted: Breakdown, usage: Usage | None, *, model: str) -> Explained:
    """The input of a request: what was counted beside what was reported.

    Cached tokens are part of the reported input, whichever way the provider has it, and are no difference.

    >>> counted = Breakdown({"user": 5, "overhead": 7}, {}, (9,), 12, exact=True, encoding="o200k_base")
    >>> print(explained(counted, Usage(input=4, cache_read=11), model="gpt-4o"))
    12 counted, 15 reported, +3 template, 11 of them read from a cache
    """
    usage = usage or Usage()
    name = "images" if "images" in counted.parts and family(model).known else _named(model)
    differences = _rest(counted.total, usage.input_tokens, (), name)
    return Explained(counted.total, usage.input_tokens, counted.exact, differences, usage.cache_read, usage.cache_write)


def explained_reply(counted: Breakdown, usage: Usage | None, *, model: str) -> Explained:
    """The output of a reply: reasoning that was billed and not shown has a name of its own."""
    usage = usage or Usage()
    hidden = (usage.reasoning or 0) - counted.parts.get("reasoning", 0)
    named = (Difference("hidden reasoning", hidden),) if usage.reasoning and hidden else ()
    differences = _rest(counted.total, usage.output_tokens, named, _named(model))
    return Explained(counted.total, usage.output_tokens, counted.exact, differences)


def _named(model: str) -> str:
    return "template" if family(model).known else "vocabulary"


def _rest(counted: int, reported: int | None, named: tuple[Difference, ...], name: str) -> tuple[Difference, ...]:
    if reported is None:
        return ()
    rest = reported - counted - sum(difference.tokens for difference in named)
    return (*named, Difference(name, rest)) if rest else named
