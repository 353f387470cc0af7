"""Fits each request of a run into the model's window: says when one is over it, and has it compacted where that is wanted.

A generator for each request, driven by the loop: it yields what happens and, for a summary, a request to send. How a request is
written and counted is given to it. It counts no more than it has to: a request of fewer bytes than there is room for tokens fits
without a look, and then the last exact count and the weight of what is new say enough until they near the limit. What was once cut
stays cut in the same way, so that a provider's cache of prompts goes on being of use; to be cut seldom, it is cut to `_AIM`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from nb_agent.compaction.places import fault, note, went
from nb_agent.compaction.strategies import Named, Room, weigh
from nb_agent.errors import ProviderError
from nb_agent.events import Compacted
from nb_agent.messages import Message, Request, Text
from nb_agent.values import JSON, chunks
from nb_agent.windows import asked_for, limit_in, remember, window_in
from nb_agent.windows.budgets import over_window

__all__ = ["Fitted", "Fitting", "Memory", "Write"]

#: The share of the room that is filled after a cut: a cut costs a provider's cache of prompts, so there should be few.
_AIM: Final = 0.75
#: The share after which the next strategy is tried too: else there would soon be a cut in every round.
_ENOUGH: Final = 0.9
#: Without a limit on the answer: the share of the window that it is left, and the most tokens of it.
_ANSWER: Final = 1 / 8
_MOST_ANSWER: Final = 4_096
#: Shares of the window that are kept free, since what is counted may be too low: an exact count, and an estimate.
_MARGIN: Final = {True: 0.01, False: 0.05}
#: Times that one strategy is used for a request: what it is told to save is an estimate.
_TIMES: Final = 3


class Write(Protocol):
    """Writes a request. ``plain`` ones offer no tools."""

    def __call__(self, messages: Sequence[Message], /, *, plain: bool = False) -> Request:
        """The request that asks for the next turn of these messages."""


class Fitted(NamedTuple):
    """A request that can be sent: what is to be said of it, and whether it is shorter than it would have been."""

    request: Request
    notices: tuple[str, ...] = ()
    shorter: bool = False


@dataclass(slots=True)
class Memory:
    """What was sent for the beginning of a conversation, kept from one run to the next. ``key`` says by whom."""

    key: Any = None
    whole: tuple[Message, ...] = ()
    sent: tuple[Message, ...] = ()


Count: TypeAlias = Callable[[Request], JSON]
_Steps: TypeAlias = Generator[Request | Compacted, str | None, Fitted]


class Fitting:
    """Fits the requests of one run.

    Args:
        strategies: what is tried, in this order (see `strategies.chosen`); where none is, it only says what is over the window.
        model: whose tokens are counted.
        window: the model's context window in tokens; ``None`` where it is not known, and then nothing is done before it is.
        count: gives a request's tokens in the form that the views show (see `views.fold`).
        memory: where what was sent is kept for the next run; it is forgotten where other strategies are set.
    """

    def __init__(
        self, strategies: Sequence[Named], *, model: str, window: int | None, count: Count, memory: Memory | None = None
    ) -> None:
        self._strategies = strategies
        self._model = model
        self._window = window
        self._count = count
        self._memory = Memory() if memory is None else memory
        self._most: int | None = None  # tokens by our count, learned from a refusal
        # How many messages were counted, the last of them, and the tokens of the request that they made, at most.
        self._known: tuple[int, Message | None, int] = (0, None, 0)
        self._exact = False
        self._useless: set[Named] = set()  # what asked the model in vain: it is not paid for again
        self._notices: list[str] = []
        key = (model, *strategies)
        if self._memory.key != key:
            self._memory.key, self._memory.whole, self._memory.sent = key, (), ()

    def fit(self, number: int, messages: Sequence[Message], prompt: Message, write: Write) -> _Steps:
        """The request for these messages; yields `Compacted` and requests for a summary, and is sent the summary's text."""
        sent, self._notices = self._begun(messages), []
        request = write(_spoken(sent))
        if self._fits(request, sent):
            return Fitted(request)
        counted, shorter = self._counted(request, sent), False
        for strategy in self._strategies:
            if counted["total"] <= self._room(request) * (_ENOUGH if shorter else 1):
                break
            if strategy in self._useless:
                continue
            cut = yield from self._cut(strategy, number, sent, prompt, request, write)
            if cut is not None:
                sent, request, shorter = *cut, True
                counted = self._counted(request, sent)
        if shorter:
            self._keep(messages, sent)
        if self._window is not None and counted["total"] > self._window:
            self._notices.append(over_window(counted, self._window, compacting=bool(self._strategies)))
        return Fitted(request, tuple(self._notices), shorter)

    def refused(self, error: ProviderError, request: Request) -> bool:
        """Learn from a server that found a request too long. Whether it is worth another try, with a shorter one."""
        if error.kind != "context_length":
            return False
        named, window = limit_in(str(error)), window_in(str(error))
        if window is not None and (self._window is None or window < self._window):
            remember(self._model, window)
        if not self._strategies:
            return False
        total: int = self._count(request)["total"]
        room = 0 if named is None else self._room_in(named, request)
        self._most = room if 0 < room < total else total // 2
        self._known = (0, None, 0)
        return True

    # ------------------------------------------------------------------------------------------ how much room there is

    def _room(self, request: Request) -> int:
        """The tokens that a request may have."""
        if not self._strategies and self._window is not None:
            return self._window
        known = [self._room_in(self._window, request)] if self._window is not None else []
        return min([*known, *([self._most] if self._most is not None else [])])

    def _room_in(self, window: int, request: Request) -> int:
        wanted = asked_for(request.body) or min(int(window * _ANSWER), _MOST_ANSWER)
        return window - min(wanted, window // 2) - int(window * _MARGIN[self._exact])

    def _fits(self, request: Request, sent: Sequence[Message]) -> bool:
        """Whether it surely fits, as far as that can be said without counting it."""
        if self._window is None and self._most is None:
            return True
        room = self._room(request)
        if sum(map(len, chunks(request.body))) <= room:
            return True
        size, last, total = self._known
        if last is None or len(sent) < size or sent[size - 1] is not last:
            return False
        total += sum(weigh(message, self._model) for message in sent[size:])
        if total > room:
            return False
        self._known = (len(sent), sent[-1], total)
        return True

    def _counted(self, request: Request, sent: Sequence[Message]) -> JSON:
        counted = self._count(request)
        self._exact = counted["exact"]
        self._known = (len(sent), sent[-1], counted["total"])
        return counted

    # --------------------------------------------------------------------------------------------------- how it is cut

    def _cut(
        self, strategy: Named, number: int, sent: Sequence[Message], prompt: Message, request: Request, write: Write
    ) -> Generator[Request | Compacted, str | None, tuple[Sequence[Message], Request] | None]:
        """One strategy, until the request fits or nothing more is saved; ``None`` where it saved nothing."""
        first, before = sent, self._known[2]
        total = before
        for time in range(_TIMES):
            most = self._room(request)
            if time and total <= most:
                break
            room = Room(total - int(most * _AIM), total - most, prompt, self._model, most)
            made = yield from self._made(strategy, sent, room, write)
            if made is None:
                break
            shorter = write(_spoken(made))
            counted = self._count(shorter)
            if counted["total"] >= total:
                break
            sent, request, total = made, shorter, counted["total"]
        if total == before:
            return None
        yield Compacted(number, strategy.name, before, total, went(first, sent))
        return sent, request

    def _made(
        self, strategy: Named, sent: Sequence[Message], room: Room, write: Write
    ) -> Generator[Request, str | None, list[Message] | None]:
        """What a strategy gives, where it is something else that can be sent."""
        made = strategy.cut(tuple(sent), room)
        if asking := isinstance(made, Generator):
            made = yield from _asking(made, write)
        if len(made) == len(sent) and all(one is other for one, other in zip(made, sent, strict=True)):
            self._useless |= {strategy} if asking else set()
            return None
        if trouble := fault(sent, made, room.prompt):
            self._notices.append(f"the compaction {strategy.name} was not used: {trouble}")
            return None
        return list(made)

    # --------------------------------------------------------------------------------------------- what was sent before

    def _begun(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages, with what was sent for their beginning in its place. Entries that are the same object are not compared."""
        kept, size = self._memory, len(self._memory.whole)
        if not size or len(messages) < size or tuple(messages[:size]) != kept.whole:
            return messages
        return [*kept.sent, *messages[size:]]

    def _keep(self, messages: Sequence[Message], sent: Sequence[Message]) -> None:
        """Remember what is sent in place of the beginning. The end that both have in common may still change."""
        alike = zip(reversed(messages), reversed(sent), strict=False)
        common = next((place for place, (one, other) in enumerate(alike) if one is not other), min(len(messages), len(sent)))
        self._memory.whole = tuple(messages[: len(messages) - common])
        self._memory.sent = tuple(sent[: len(sent) - common])


def _asking(made: Generator[Sequence[Message], str | None, Sequence[Message]], write: Write) -> Generator[Request, str | None, Any]:
    told: str | None = None
    while True:
        try:
            question = made.send(told)
        except StopIteration as end:
            return end.value
        told = yield write(question, plain=True)


def _spoken(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages with the note and the user message after it as one: templates of some models refuse two of them in a row."""
    for place, message in enumerate(messages):
        if message.role == "user":
            follower = messages[place + 1] if place + 1 < len(messages) else message
            if follower.role != "user" or not note(messages, place):
                break
            joined = message.memo.get("spoken")
            if joined is None or joined[0] is not follower:
                spaced = Text(f"{message.text}\n\n")
                joined = message.memo["spoken"] = follower, Message("user", (spaced, *follower.parts), name=follower.name)
            return [*messages[:place], joined[1], *messages[place + 2 :]]
    return messages
