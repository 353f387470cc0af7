"""A list of messages -> one that a provider accepts, with a sentence for each mend; what cannot be mended safely is an error.

It looks at the whole list once, when a run begins; inside a run the loop only adds whole turns and needs no mending. What only one
wire format cannot carry is mended by its adapter on the way; `check` says all of it beforehand. The rules are a table:
`nb_agent.adapters.history_rules`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from nb_agent.adapters import WIRES
from nb_agent.adapters.history_rules import ROLES, RULES, rule_of, said
from nb_agent.errors import HistoryError
from nb_agent.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

__all__ = ["Finding", "check", "mend"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a provider would refuse in a history.

    Attributes:
        place: which message, counted from 0.
        rule: its name in `nb_agent.adapters.history_rules.RULES`, where its source is.
        what: one line for a person.
        repaired: whether it is mended on the way; otherwise nothing can be sent.
    """

    place: int
    rule: str
    what: str
    repaired: bool


def mend(messages: Sequence[Message], *, wire: str | None = None, model: str = "") -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages with every call answered right after it, no empty turn, and one user turn at a time; and what was mended.

    Args:
        messages: the conversation, with what the user says last.
        wire: the format that they are for; without it only what every format refuses is looked for.
        model: its name, which tells some servers apart.

    Raises:
        HistoryError: a fault that cannot be mended safely, such as a result whose call is nowhere before it.
    """
    mending = _Mending.of(messages)
    refused = [finding.what for finding in mending.findings if not finding.repaired]
    if wire is not None and not refused:
        refused = [finding.what for finding in _refused(mending, wire, model)]
    if refused:
        raise HistoryError("; ".join(refused))
    return tuple(message for _, message in mending.kept), tuple(finding.what for finding in mending.findings)


def check(messages: Sequence[Message], wire: str, *, model: str = "") -> tuple[Finding, ...]:
    """What a provider would refuse in these messages, and where, whether it is mended on the way or not. Nothing is sent.

    Args:
        messages: the conversation, with what the user says last.
        wire: the format that they are for, a name of `nb_agent.adapters.WIRES`.
        model: its name, which tells some servers apart: one that wants signatures, or knows no ``developer``.

    >>> [finding.what for finding in check([Message.of("user", "a"), Message.of("user", "b")], "responses")]
    ['message 1 and the user message before it were joined']
    """
    mending = _Mending.of(messages)
    found = [*mending.findings, *_refused(mending, wire, model), *_left_out(mending, wire, model)]
    return tuple(sorted(found, key=lambda finding: finding.place))


# --------------------------------------------------------------------------------------------------- what all formats need

#: Role -> the parts that its messages may hold.
_PARTS: Final[dict[str, tuple[type, ...]]] = {
    "system": (Text, Image, Opaque),
    "developer": (Text, Image, Opaque),
    "user": (Text, Image, Opaque),
    "assistant": (Text, Image, Opaque, Thinking, ToolCall),
    "tool": (ToolResult,),
}
_HOME: Final = {Thinking: "assistant", ToolCall: "assistant", ToolResult: "tool"}


@dataclass(slots=True)
class _Mending:
    """Messages on their way to being in order: those that are kept, each with its old place, and what was found."""

    kept: list[tuple[int, Message]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @classmethod
    def of(cls, messages: Sequence[Message]) -> _Mending:
        self = cls()
        sound = [(place, message) for place, message in enumerate(messages) if self.is_sound(place, message)]
        answers = self.answers(sound)
        for place, message in sound:
            if message.tool_calls:
                self.add_turn(place, message, answers[place])
            elif message.role != "tool":
                self.add(place, message)
        return self

    def note(self, place: int, rule: str, **details: Any) -> None:
        self.findings.append(Finding(place, rule, said(rule, place=place, **details), RULES[rule].repaired))

    def is_sound(self, place: int, message: Message) -> bool:
        """Whether a message can be one at all, and has something in it."""
        before = len(self.findings)
        if message.role not in ROLES:
            self.note(place, "unknown_role", role=message.role)
            return False
        inside = [part for result in message.parts if isinstance(result, ToolResult) for part in result.parts]
        for part in message.parts:
            if not isinstance(part, _PARTS[message.role]):
                home = _HOME.get(type(part), "user")
                self.note(place, "misplaced_part", role=message.role, part=type(part).__name__, home=home)
        if any(isinstance(part, Image) and not (part.data or part.url) for part in (*message.parts, *inside)):
            self.note(place, "no_image")
        if message.role == "tool" and len(message.parts) != 1:
            self.note(place, "results_of_message", count=len(message.parts))
        elif all(map(_is_blank, message.parts)):
            self.note(place, "empty_message", role=message.role)
        return len(self.findings) == before

    def answers(self, sound: Sequence[tuple[int, Message]]) -> dict[int, list[tuple[int, Message] | None]]:
        """Place of a message with calls -> the result of each with its place, wherever it stands behind it."""
        found: dict[int, list[tuple[int, Message] | None]] = {}
        calls: dict[int, tuple[ToolCall, ...]] = {}
        maker: dict[str, int] = {}  # id of a call -> the last message that makes it
        before = -1  # the last message that is no result
        for place, message in sound:
            known = message.tool_call_id
            if known is None:
                before, calls[place] = place, message.tool_calls
                found[place] = [None] * len(message.tool_calls)
                maker |= dict.fromkeys((call.id for call in message.tool_calls), place)
            elif known not in maker:
                self.note(place, "orphan_result", call=known)
            else:
                home = maker[known]
                open_ = [n for n, call in enumerate(calls[home]) if call.id == known and found[home][n] is None]
                if not open_:
                    self.note(place, "second_result", call=known)
                    continue
                found[home][open_[0]] = place, message
                if home != before:
                    self.note(place, "late_result")
        return found

    def add_turn(self, place: int, message: Message, results: Sequence[tuple[int, Message] | None]) -> None:
        """A message with calls, and their results in the calls' order."""
        made = [result or (place, _cancelled(call)) for call, result in zip(message.tool_calls, results, strict=True)]
        for call, result in zip(message.tool_calls, results, strict=True):
            if result is None:
                self.note(place, "open_call", call=call.id)
        for shared, times in Counter(call.id for call in message.tool_calls).items():
            if times > 1 or not shared:
                self.note(place, "same_id", call=shared)
        if len({call.id for call in message.tool_calls}) < len(made) or not all(call.id for call in message.tool_calls):
            message, made = _told_apart(place, message, made)
        self.kept += [(place, message), *made]

    def add(self, place: int, message: Message) -> None:
        before = self.kept[-1][1] if self.kept else None
        if before is not None and before.role == message.role == "user" and before.name == message.name:
            self.kept[-1] = (self.kept[-1][0], _joined(before, message))
            self.note(place, "user_twice")
        else:
            self.kept.append((place, message))


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip() and not part.extra


def _cancelled(call: ToolCall) -> Message:
    return Message("tool", (ToolResult.failure(call, "the call was interrupted before it had a result", code="cancelled"),))


def _told_apart(place: int, message: Message, results: Sequence[tuple[int, Message]]) -> tuple[Message, list[tuple[int, Message]]]:
    """The same turn with an id of its own for each call."""
    ids = (f"call_{place}_{number}" for number in range(len(results)))
    parts = tuple(replace(part, id=next(ids)) if isinstance(part, ToolCall) else part for part in message.parts)
    message = replace(message, parts=parts)
    pairs = zip(message.tool_calls, results, strict=True)
    return message, [(at, _answering(call.id, result)) for call, (at, result) in pairs]


def _answering(known: str, result: Message) -> Message:
    parts = tuple(replace(part, call_id=known) if isinstance(part, ToolResult) else part for part in result.parts)
    return replace(result, parts=parts)


def _joined(first: Message, second: Message) -> Message:
    parts: tuple[Part, ...] = (*first.parts, *second.parts)
    if all(isinstance(part, Text) and not part.extra for part in parts):
        parts = (Text(f"{first.text}\n\n{second.text}"),)
    return Message("user", parts, name=first.name)


# -------------------------------------------------------------------------------------------------- what one format needs


def _refused(mending: _Mending, wire: str, model: str) -> Iterator[Finding]:
    """What the wire format refuses of the whole and nobody mends."""
    body = WIRES[wire].request([message for _, message in mending.kept], (), model=model).body
    for name, rule in RULES.items():
        if rule.broken is not None and wire in rule.wires and rule.broken(body):
            places = [place for place, message in mending.kept if message.tool_calls or name != "calls_first"] or [0]
            place = places[0 if name == "calls_first" else -1]
            yield Finding(place, name, said(name, place=place), repaired=False)


def _left_out(mending: _Mending, wire: str, model: str) -> Iterator[Finding]:
    """What the adapter leaves out or spells another way: what it says of each message alone, and what only of the whole."""
    write, messages = WIRES[wire].request, [message for _, message in mending.kept]
    whole = set(write(messages, (), model=model).notices)
    told: set[str] = set()
    for place, message in mending.kept:
        alone = [notice for notice in write([message], (), model=model).notices if notice in whole and rule_of(notice) not in _LAST]
        told.update(alone)
        yield from (_mended_there(place, notice) for notice in alone)
    for notice in sorted(whole - told):
        end = len(messages)
        while end > 1 and notice in write(messages[: end - 1], (), model=model).notices:
            end -= 1
        yield _mended_there(mending.kept[end - 1][0], notice)


#: Rules for the last message of a request alone.
_LAST: Final = frozenset({"trailing_space"})


def _mended_there(place: int, notice: str) -> Finding:
    return Finding(place, rule_of(notice) or "", f"message {place}: {notice}", repaired=True)
