"""Where the tokens of a request and of a reply go: counted offline, split into parts that add up exactly.

What is counted here stands beside what a provider reports (`usage`) and is never scaled to agree with it. Unlike `vocabulary`,
which counts a text, this knows models and what the protocol puts around messages. It reads no wire format: the adapters say which
text of a request belongs to which part (`messages.Segment`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from nb_agent import vocabulary
from nb_agent.messages import PARTS, Message, Segment, Text, Thinking
from nb_agent.values import JSON, Value

__all__ = ["OUTPUT_PARTS", "Breakdown", "Encoding", "breakdown", "breakdown_reply", "count", "encoding_for", "estimate"]

#: The parts that the tokens of a reply are split into (mission A3). Arguments are counted as the JSON text that was written.
OUTPUT_PARTS: Final = ("text", "call_names", "arguments", "reasoning")

#: Tokens of an image, whatever it shows: what OpenAI takes for one in low detail. Images are billed by size and detail, which a
#: request's text does not tell; their base64 is never counted.
IMAGE: Final = 85

estimate = vocabulary.estimate

# ------------------------------------------------------------------------------------------------- models


class Encoding(NamedTuple):
    """The vocabulary that a model's text is counted with; ``exact`` is false where the model's own is not known."""

    name: str
    exact: bool


class _Family(NamedTuple):
    """What the protocol adds, in tokens. The constants reproduce recorded ``usage`` of the real services."""

    encoding: str = "o200k_base"
    known: bool = True  # the vocabulary is the model's own
    framed: bool = True  # so are the constants below, for messages of text
    framing: int = 3  # around each message, beside one for its role
    name: int = 1  # for a speaker's name, beside its own tokens
    priming: int = 3  # once, where the reply begins
    channel: int = 0  # for each text that the model wrote before
    mock: bool = False  # reports what is counted here, so that tools and images are exact too


_UNKNOWN = _Family(known=False)

#: Beginnings of model names, the first that fits. Sources: tiktoken.model for the vocabularies, measured usage for the rest.
_FAMILIES: Final = tuple(
    (rf"(?:^|[-_.@ ]){pattern}", family)
    for pattern, family in (
        (r"mock", _Family(mock=True)),
        (r"gpt-?3\.?5-turbo-0301", _Family("cl100k_base", framing=4, name=-1)),
        (r"gpt-?3\.?5", _Family("cl100k_base")),
        (r"gpt-?4[.-]?[15](?!\d)", _Family()),
        (r"(?:chat)?gpt-?4o", _Family()),
        (r"gpt-?4(?![\d.])", _Family("cl100k_base")),
        (r"gpt-?5[.\d]*-chat", _Family(framed=False)),  # answers without reasoning; its constants were not measured
        (r"gpt-?5(?!\d)", _Family(priming=2, channel=2)),
        (r"o1-mini", _Family(priming=2, channel=2, framed=False)),  # seen to read 8 more
        (r"o[134](?![a-z\d])", _Family(priming=2, channel=2)),
        (r"text-embedding-(?:3-|ada-002)|(?:davinci|babbage)-002", _Family("cl100k_base", framed=False)),
    )
)


def encoding_for(model: str | None) -> Encoding:
    """The vocabulary to count a model's text with; any name has one.

    A provider, an account or a tuning before or after the name does not matter (``azure/gpt-4o``, ``openai:gpt-4.1``,
    ``ft:gpt-4o:org``). A known name inside another (``team-gpt-4o``) gives the vocabulary but no certainty: deployments are named
    freely.

    >>> encoding_for("gpt-35-turbo"), encoding_for("claude-opus")
    (Encoding(name='cl100k_base', exact=True), Encoding(name='o200k_base', exact=False))
    """
    family = _family(model)
    return Encoding(family.encoding, family.known)


@lru_cache(maxsize=256)
def _family(model: str | None) -> _Family:
    inside = None
    for name in (model or "").strip().lower().replace(":", "/").split("/"):
        for pattern, family in _FAMILIES:
            found = re.search(pattern, name)  # compiled when it is first needed, and kept by `re`
            if found and found.start() == 0 and name[0] not in "-_.@ ":
                return family
            if found and not inside and not family.mock:
                inside = _Family(family.encoding, known=False, priming=family.priming, channel=family.channel)
    return inside or _UNKNOWN


def count(text: str, *, model: str | None = None) -> int:
    """The tokens of any text, spellings of special tokens as plain characters; never an exception.

    Args:
        text: what to count.
        model: its name decides the vocabulary (`encoding_for`), ``o200k_base`` where it is not known. Whether the count is exact
            for a model is said by `encoding_for` and by `Breakdown.exact`.

    >>> count("hello world"), count("<|endoftext|>", model="gpt-4")
    (2, 7)
    """
    return vocabulary.measure(text, encoding_for(model).name).tokens


# ------------------------------------------------------------------------------------------------- what a breakdown is


@dataclass(frozen=True, slots=True)
class Breakdown(Value):
    """Counted tokens by part. ``sum(parts.values()) == total``, always.

    Attributes:
        parts: tokens of each part that is there, in the order of `messages.PARTS` or of `OUTPUT_PARTS`.
        tools: of a request, tokens of each tool's definition (together the part ``tools``); of a reply, of the calls to each.
        messages: tokens of each message with what stands around it, by its place.
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


class _Tally:
    """A breakdown while it is added up."""

    def __init__(self, family: _Family, *, exact: bool) -> None:
        self.family, self.exact = family, exact
        self.parts: dict[str, int] = {}
        self.tools: dict[str, int] = {}
        self.messages: dict[int, int] = {}

    def measure(self, text: str) -> int:
        found = vocabulary.measure(text, self.family.encoding)
        self.exact = self.exact and found.exact
        return found.tokens

    def add(self, part: str, tokens: int, *, message: int | None = None, tool: str | None = None) -> None:
        self.parts[part] = self.parts.get(part, 0) + tokens
        if message is not None:
            self.messages[message] = self.messages.get(message, 0) + tokens
        if tool is not None:
            self.tools[tool] = self.tools.get(tool, 0) + tokens

    def done(self, order: Iterable[str]) -> Breakdown:
        parts = {part: self.parts[part] for part in order if self.parts.get(part)}
        places = range(max(self.messages, default=-1) + 1)
        name = self.family.encoding if vocabulary.available(self.family.encoding) else "estimate"
        messages = tuple(self.messages.get(place, 0) for place in places)
        return Breakdown(parts, self.tools, messages, sum(parts.values()), self.exact and name != "estimate", name)


# ------------------------------------------------------------------------------------------------- requests

#: Parts whose segments in one message are one text for the model: a list of text parts counts like the joined text.
_PROSE: Final = frozenset({"system", "developer", "history", "assistant", "tool_results", "user"})
#: Parts for which only the mock model's accounting is known to be the one that is used here.
_UNCERTAIN: Final = frozenset({"tool_calls", "tool_results", "tools", "images"})


def breakdown(segments: Sequence[Segment], *, model: str) -> Breakdown:
    """Split a request's input tokens into `messages.PARTS`; the rest of what the provider counts is ``overhead``.

    Overhead is, for each message, 3 tokens and 1 for its role (and 1 for a name, beside the name itself); 3 where the reply begins;
    for models that reason 2 there, and 2 for each earlier text of the model. OpenAI's usage is reproduced exactly for messages of
    text. Definitions count as the JSON that is sent, which is not what a model reads: with tools, calls or images only the mock
    model's breakdown is exact.

    Args:
        segments: as an adapter gives them. A place without a segment counts as an empty message; an ``overhead`` segment of a
            message is its speaker's name; text of no message (instructions apart from the messages) is a message of its own.
        model: a name, decorated or not.

    Raises:
        ValueError: a segment names a part that is not in `messages.PARTS`.
    """
    family = _family(model)
    tally = _Tally(family, exact=family.known and family.framed)
    for segment in _joined(segments):
        _add(tally, segment)
    if not family.mock and _UNCERTAIN.intersection(segment.part for segment in segments):
        tally.exact = False
    _frame(tally, segments)
    return tally.done(PARTS)


def _joined(segments: Sequence[Segment]) -> Iterator[Segment]:
    for (message, part), group in groupby(segments, key=lambda segment: (segment.message, segment.part)):
        alike = list(group)
        if part in _PROSE and len(alike) > 1:
            yield Segment(part, "".join(segment.text for segment in alike), message)
        else:
            yield from alike


def _add(tally: _Tally, segment: Segment) -> None:
    part, message = segment.part, segment.message
    if part not in PARTS:
        raise ValueError(f"no part named {part!r} in a request; parts: {', '.join(PARTS)}")
    tokens = IMAGE if part == "images" else tally.measure(segment.text)
    tally.add(part, tokens, message=message, tool=segment.tool if part == "tools" else None)
    if part == "overhead" and segment.text and message is not None:
        tally.add("overhead", tally.family.name, message=message)


def _frame(tally: _Tally, segments: Sequence[Segment]) -> None:
    """Add what stands around the messages, and where the reply begins."""
    family = tally.family
    for place in range(max(tally.messages, default=-1) + 1):
        tally.add("overhead", family.framing + 1, message=place)
    apart = {segment.part for segment in segments if segment.message is None and segment.part in _PROSE}
    tally.add("overhead", len(apart) * (family.framing + 1) + family.priming)
    calls = {segment.message for segment in segments if segment.part == "tool_calls"}
    said = {segment.message for segment in segments if segment.part == "assistant" and segment.text}
    for spoken in said - calls:  # text beside a call costs only itself
        tally.add("overhead", family.channel, message=spoken)


# ------------------------------------------------------------------------------------------------- replies


def breakdown_reply(message: Message, *, model: str) -> Breakdown:
    """Split a reply's output tokens into `OUTPUT_PARTS`.

    Only the mock model's is exact: how others write a call down, and what they hide of their reasoning, is not known.
    """
    family = _family(model)
    tally = _Tally(family, exact=family.mock)
    written = "".join(part.text for part in message.parts if isinstance(part, Text))
    thought = "".join(part.text for part in message.parts if isinstance(part, Thinking))
    tally.add("text", tally.measure(written), message=0)
    tally.add("reasoning", tally.measure(thought), message=0)
    for call in message.tool_calls:
        tally.add("call_names", tally.measure(call.name), message=0, tool=call.name)
        tally.add("arguments", tally.measure(call.arguments), message=0, tool=call.name)
    return tally.done(OUTPUT_PARTS)
