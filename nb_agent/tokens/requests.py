"""A request's input tokens by part, by message and by tool, the way the model generation reads it.

What was counted for the beginning of a conversation is kept as long as the conversation, so that a round costs what is new in it.
The constants are in `families` and `protocols`; the texts come from the adapters (`segments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from operator import attrgetter, is_
from typing import Final

from nb_agent.messages import PARTS, Segment
from nb_agent.tokens import images
from nb_agent.tokens.breakdowns import Breakdown, Tally
from nb_agent.tokens.families import Family, family
from nb_agent.tokens.protocols import PARALLEL, compact, forced, protocol, rendered, together
from nb_agent.tokens.segments import Segments
from nb_agent.vocabulary import last_piece

__all__ = ["breakdown"]

#: Parts whose segments in one message are one text for the model: a list of text parts counts like the joined text.
_PROSE: Final = frozenset({"system", "developer", "history", "assistant", "tool_results", "user"})
_CALLS: Final = frozenset({"tool_calls", "tool_results"})
_PAIR_OF_CLAUDE: Final = 52  # beside two messages' framing; one call and its result cost about 62 more than their texts
_LESS_FOR_A_FUNCTION: Final = 2  # than for a message of another role
_FORCED: Final = 4  # for a function that has to be called, beside its name; ``none`` costs 1 (first generation)


def breakdown(segments: Sequence[Segment], *, model: str) -> Breakdown:
    """Split a request's input tokens into `messages.PARTS`; the rest of what the provider counts is ``overhead``.

    Overhead is, for each message, 3 tokens and 1 for its role (and 1 for a name, beside the name itself); 3 where the reply begins;
    for models that reason 2 there, and 2 for each earlier text of the model. OpenAI's models read definitions as a text like
    TypeScript: each tool is given its own stretch of it, and what stands around them all is overhead; so is the frame of a call.
    Other models' definitions count as the JSON that is sent. Exact is what reproduces recorded usage: messages of text,
    definitions, calls one after the other. With images, hosted tools, calls side by side or a schema for the answer it is an
    estimate, as it is for every model whose vocabulary is not public; the mock model's is always exact.

    Args:
        segments: as an adapter gives them (`Segments`); a plain list is taken for Chat Completions. A place without a segment
            counts as an empty message; an ``overhead`` segment of a message is its speaker's name; text of no message
            (instructions apart from the messages) is a message of its own. A call's segments are its name, with ``tool`` set, and
            its arguments; the ``tool`` of a result says whose it is.
        model: a name, decorated or not.

    Raises:
        ValueError: a segment names a part that is not in `messages.PARTS`.
    """
    read_by = family(model)
    given = segments if isinstance(segments, Segments) else Segments(segments)
    start, end = 0, len(given)
    while start < end and given[start].message is None and given[start].part != "tools":
        start += 1
    while end > start and given[end - 1].part == "tools":
        end -= 1
    count = _resumed(given, given[start:end], read_by, model)
    count.apart(given[:start])
    return count.done(given[end:], given)


def _resumed(given: Segments, said: list[Segment], read_by: Family, model: str) -> _Count:
    """The count of all messages, of which only those are looked at that are new since the last request of the conversation."""
    key = ("count", model, given.wire)
    before, known = (given.memo or {}).get(key, ((), None))
    if known is None or len(before) > len(said) or not all(map(is_, before, said)):
        before, known = (), _Count(read_by, given.wire, model)
    count: _Count = known.copy()
    for _, group in groupby(said[len(before) :], key=attrgetter("message")):
        count.message(list(group))
    if given.memo is not None and not count.pending:
        given.memo[key] = said, count.copy()
    return count


class _Count(Tally):
    """The tally of a request. ``pending`` holds calls that others may still join: in Responses each is an item of its own."""

    def __init__(self, read_by: Family, wire: str, model: str) -> None:
        super().__init__(read_by, exact=read_by.known and read_by.framed)
        self.wire, self.model = wire, model
        self.protocol, self.measured = protocol(read_by, wire)
        self.pending: list[tuple[str, str, int]] = []
        self.system: tuple[str, bool] | None = None  # the text of the first system message, and whether nothing comes before it
        self.called: dict[str, int] = {}

    def copy(self) -> _Count:
        made = _Count(self.family, self.wire, self.model)
        made.exact, made.system, made.pending = self.exact, self.system, [*self.pending]
        made.parts, made.tools, made.messages, made.called = {**self.parts}, {**self.tools}, [*self.messages], {**self.called}
        return made

    def doubt(self) -> None:
        """The mock model's own accounting is the one that is used here; others' is not known."""
        self.exact = self.exact and self.family.mock

    # ----------------------------------------------------------------------------------------------- messages

    def message(self, group: list[Segment]) -> None:
        """All segments of one message."""
        place = group[0].message
        if place is None:
            self.apart(group)
            return
        parts = {segment.part for segment in group}
        calls = [*_calls(group)] if self.protocol and "tool_calls" in parts else []
        if parts != {"tool_calls"} or not calls:
            self.flush()
        rendered_as_call = bool(calls) or (self.protocol is not None and any(s.tool for s in group if s.part == "tool_results"))
        self.frame(place, free=rendered_as_call)
        for segment in _joined(group):
            if segment.part != "tool_calls" or not calls:
                self.segment(segment, place)
        self.pending += calls
        if parts != {"tool_calls"}:
            self.flush()
        if parts & _CALLS and not rendered_as_call:
            self.without_names(group, place, parts)
        if "assistant" in parts and "tool_calls" not in parts and any(s.text for s in group if s.part == "assistant"):
            self.add("overhead", self.family.channel, message=place)

    def frame(self, place: int, *, free: bool) -> None:
        """What stands around a message and those that are missing before it: items that nothing is known of."""
        for missing in range(len(self.messages), place):
            if self.protocol:
                self.exact = False
            self.add("overhead", 0 if self.protocol else self.family.framing + 1, message=missing)
        if place == len(self.messages):
            self.add("overhead", 0 if free else self.family.framing + 1, message=place)

    def segment(self, segment: Segment, place: int | None) -> None:
        """One segment, but for a call that is written down in another way."""
        part = segment.part
        if part not in PARTS:
            raise ValueError(f"no part named {part!r} in a request; parts: {', '.join(PARTS)}")
        if part == "images":
            self.doubt()
            self.add(part, images.IMAGE if self.family.mock else images.weigh(segment.text, self.model), message=place)
            return
        self.add(part, self.measure(segment.text), message=place)
        if part == "overhead" and segment.text and place is not None:
            self.add("overhead", self.family.name, message=place)
        if part in ("system", "developer") and self.system is None:
            self.system = segment.text, place in (None, 0)
        if part == "tool_results" and segment.tool and self.protocol:
            self.add("overhead", self.measure(f"functions.{segment.tool}"), message=place)

    def without_names(self, group: list[Segment], place: int, parts: set[str]) -> None:
        """Calls and results that are not written as a model reads them: of other families, or in the form before ``tool_calls``."""
        if self.family.generation == "claude":
            self.add("overhead", _PAIR_OF_CLAUDE * sum(s.part == "tool_calls" and bool(s.tool) for s in group), message=place)
        elif self.protocol and self.protocol.legacy:
            self.add("overhead", self.protocol.legacy if "tool_calls" in parts else -_LESS_FOR_A_FUNCTION, message=place)
        else:
            self.doubt()

    def flush(self) -> None:
        """Add the calls that came together, if there are any."""
        calls, self.pending = self.pending, []
        if not calls or not self.protocol:
            return
        if len(calls) == 1:
            ((name, arguments, place),) = calls
            self.add("tool_calls", self.measure(f"functions.{name}") + self.measure(compact(arguments)), message=place)
            self.add("overhead", self.protocol.pair, message=place)
            self.called[name] = self.called.get(name, 0) + 1
        else:
            self.exact = False  # its constants were seen to be off by one
            pieces = together([(name, compact(arguments)) for name, arguments, _ in calls])
            tokens = self.measure("".join(pieces)) + self.measure(PARALLEL)
            for (_, _, place), share in zip(calls, _shares(tokens, [len(piece) for piece in pieces]), strict=True):
                self.add("tool_calls", share, message=place)
            self.add("overhead", self.protocol.parallel, message=calls[0][2])
        self.exact = self.exact and self.measured

    # --------------------------------------------------------------------------------- apart from the messages

    def apart(self, group: Iterable[Segment]) -> None:
        """Text of no message, such as instructions; each part of it is a message of its own, but not for Claude."""
        system, self.system = self.system, None
        prose = set()
        for segment in _joined(group):
            self.segment(segment, None)
            prose.add(segment.part)
            if segment.part in ("overhead", "tools"):
                self.doubt()
        self.system = self.system or system
        framing = 0 if self.family.generation == "claude" else self.family.framing + 1
        self.add("overhead", len(prose & _PROSE) * framing)

    def done(self, definitions: Sequence[Segment], given: Segments) -> Breakdown:  # type: ignore[override]  # of a request
        """The breakdown with the definitions and the place where the reply begins."""
        self.flush()
        if definitions and self.protocol:
            self.written(definitions, given)
        else:
            for definition in definitions:
                self.add("tools", self.measure(definition.text), tool=definition.tool)
                self.doubt()
        if definitions:
            self.add("overhead", self.family.hidden + (self.family.chosen if _demanded(given) else 0))
        if self.protocol:
            names = {definition.tool for definition in definitions}
            self.add("overhead", self.protocol.stranger * sum(n for name, n in self.called.items() if name not in names))
        self.add("overhead", self.family.priming)
        return super().done(PARTS)

    def written(self, definitions: Sequence[Segment], given: Segments) -> None:
        """Definitions as the model reads them: each tool's own text is its own, what is around it is overhead."""
        found, known = rendered(tuple(definition.text for definition in definitions), self.family), self.protocol
        for definition, text, is_function in zip(definitions, found.each, found.known, strict=True):
            self.add("tools", self.measure(text), tool=definition.tool)
            self.exact = self.exact and is_function and self.measured
        if known is None or not any(found.known):
            return
        joined = known.joint and self.system is not None and (self.system[1] or not known.leading)
        seam = self.seam(self.system[0], known.joint, bare=known.leading) + known.seam if joined and self.system else known.alone
        self.add("overhead", self.measure(found.opening) + self.measure(found.closing) + known.definitions + seam)
        if given.choice not in (None, "auto", "none"):
            self.exact = self.exact and known.steady
        if self.family.generation == "old":
            name = forced(given.choice)
            self.add("overhead", _FORCED + self.measure(name) if name else int(given.choice == "none"))

    def seam(self, system: str, joint: str, *, bare: bool) -> int:
        """What a text costs more with something put at its end; only its last piece is read again."""
        last = last_piece(system)
        return self.measure((last.rstrip() if bare else last) + joint) - self.measure(last)


def _joined(segments: Iterable[Segment]) -> Iterator[Segment]:
    for (part, tool), group in groupby(segments, key=attrgetter("part", "tool")):
        alike = list(group)
        if part in _PROSE and len(alike) > 1:
            yield Segment(part, "".join(segment.text for segment in alike), alike[0].message, tool)
        else:
            yield from alike


def _calls(group: Iterable[Segment]) -> Iterator[tuple[str, str, int]]:
    """Name, arguments and place of each call; none where names are not marked as such."""
    parts = [segment for segment in group if segment.part == "tool_calls"]
    for name, arguments in pairwise([*parts, Segment("tool_calls", "")]):
        if name.tool:
            yield name.tool, "" if arguments.tool else arguments.text, name.message or 0


def _shares(total: int, sizes: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the sizes, which add up to the total."""
    ends = [total * end // sum(sizes) for end in accumulate(sizes)]
    return [later - earlier for earlier, later in pairwise([0, *ends])]


def _demanded(given: Segments) -> bool:
    kind = given.choice.get("type") if isinstance(given.choice, dict) else given.choice
    return kind in ("any", "tool")
