"""Counted tokens by part, as a value, while they are added up, and of a reply. Of a request, see `requests`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nb_agent import vocabulary
from nb_agent.messages import Message, Text, Thinking
from nb_agent.tokens.families import Family, family, measured
from nb_agent.values import JSON, Value

__all__ = ["OUTPUT_PARTS", "Breakdown", "Tally", "breakdown_reply"]

#: The parts that the tokens of a reply are split into (mission A3). Arguments are counted as the JSON text that was written.
OUTPUT_PARTS: Final = ("text", "call_names", "arguments", "reasoning")


@dataclass(frozen=True, slots=True)
class Breakdown(Value):
    """Counted tokens by part. ``sum(parts.values()) == total``, always.

    Attributes:
        parts: tokens of each part that is there, in the order of `messages.PARTS` or of `OUTPUT_PARTS`.
        tools: of a request, tokens of each tool's definition (together the part ``tools``); of a reply, of the calls to each.
        messages: tokens of each message with what stands around it, by its place; of a reply, of each choice.
        total: tokens in all.
        exact: whether a provider should report the same total; false for an estimate.
        encoding: the vocabulary, or ``"estimate"`` where it could not be loaded.
    """

    AS_IS = frozenset({"parts", "tools"})
    parts: dict[str, int]
    tools: dict[str, int]
    messages: tuple[int, ...]
    total: int
    exact: bool
    encoding: str

    def shown(self) -> JSON:
        """The form in which a view's state holds it (`views.fold`)."""
        return {
            "parts": dict(self.parts),
            "tools": dict(self.tools),
            "messages": list(self.messages),
            "total": self.total,
            "exact": self.exact,
            "encoding": self.encoding,
        }


class Tally:
    """A breakdown while it is added up."""

    def __init__(self, read_by: Family, *, exact: bool) -> None:
        self.family, self.exact = read_by, exact
        self.parts: dict[str, int] = {}
        self.tools: dict[str, int] = {}
        self.messages: list[int] = []

    def measure(self, text: str) -> int:
        """The tokens of a text; where they are not exact, nothing is."""
        found = measured(text, self.family)
        self.exact = self.exact and found.exact
        return found.tokens

    def add(self, part: str, tokens: int, *, message: int | None = None, tool: str | None = None) -> None:
        """Add to a part, and to the message and the tool that it belongs to."""
        self.parts[part] = self.parts.get(part, 0) + tokens
        if message is not None:
            self.messages.extend([0] * (message + 1 - len(self.messages)))
            self.messages[message] += tokens
        if tool is not None:
            self.tools[tool] = self.tools.get(tool, 0) + tokens

    def done(self, order: Iterable[str]) -> Breakdown:
        """The value."""
        parts = {part: self.parts[part] for part in order if self.parts.get(part)}
        name = self.family.encoding if vocabulary.available(self.family.encoding) else "estimate"
        return Breakdown(parts, self.tools, tuple(self.messages), sum(parts.values()), self.exact and name != "estimate", name)


def breakdown_reply(message: Message, *others: Message, model: str) -> Breakdown:
    """Split a reply's output tokens into `OUTPUT_PARTS`; further choices are counted too, since they are billed.

    Only the mock model's is exact: how others write a call down, and what they hide of their reasoning, is not known.
    """
    read_by = family(model)
    tally = Tally(read_by, exact=read_by.mock)
    for choice, said in enumerate((message, *others)):
        written = "".join(part.text for part in said.parts if isinstance(part, Text))
        thought = "".join(part.text for part in said.parts if isinstance(part, Thinking))
        tally.add("text", tally.measure(written), message=choice)
        tally.add("reasoning", tally.measure(thought), message=choice)
        for call in said.tool_calls:
            tally.add("call_names", tally.measure(call.name), message=choice, tool=call.name)
            tally.add("arguments", tally.measure(call.arguments), message=choice, tool=call.name)
    return tally.done(OUTPUT_PARTS)
