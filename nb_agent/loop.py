"""The tool-calling loop: send the history, act on the answer, repeat, until it ends in one of the ways of `events.ENDINGS`.

A plain generator of events. It never prints, displays, stores or logs, and it knows no server and no tool: how to send, how calls
are carried out, how a request is made to fit the window, the clock and what to do while waiting are arguments. History grows by
whole turns, and every call gets exactly one result, so that it is valid whichever way the run ends. What is sent of it may be less
(see `compaction`). A request and its answer are in `exchange`, what becomes of a call before it runs in `ruling`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nb_agent.adapters import WIRES
from nb_agent.compaction import Fitted, Fitting
from nb_agent.endings import CLOSE, ending_of
from nb_agent.errors import ProviderError, TimeLimitError
from nb_agent.events import (
    Answer,
    Changed,
    Compacted,
    Ending,
    Event,
    ReplyDone,
    RequestReady,
    Retrying,
    RunEnded,
    RunStarted,
    Stop,
    ToolAsked,
    ToolDone,
    Waiting,
)
from nb_agent.exchange import Exchange, TimeIsUpError
from nb_agent.history import mend
from nb_agent.messages import Definition, Message, Reply, Request, ToolResult
from nb_agent.resuming import resumed
from nb_agent.ruling import Calls, answered, cut_off, told_of_change
from nb_agent.turns import Turns
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = ["Limits", "Target", "pull", "run"]


@dataclass(frozen=True, slots=True)
class Target:
    """Which model answers, and in which wire format. ``window`` is its context window in tokens, where that is known."""

    model: str
    wire: str = "chat_completions"
    mock: bool = False
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run stops by itself: after so many requests, so many seconds (``None``: never), or answers that were not whole."""

    rounds: int = 10
    seconds: float | None = 30.0
    continuations: int = 3  # how often a text that was cut off at the output limit is asked to go on
    repeats: int = 2  # how often an answer that broke off is asked for again


@dataclass(slots=True)
class _Run:
    """What one run needs, and its parts as generators."""

    target: Target
    exchange: Exchange
    calls: Calls
    definitions: Sequence[Definition]
    settings: JSON | None
    stream: bool
    limits: Limits
    idle: Callable[[], None] | None
    fitting: Fitting | None
    turns: Turns
    notices: tuple[str, ...]
    usage: Usage | None = None
    told: set[str] = field(default_factory=set)  # notices, each once in a run
    refusals: list[ProviderError] = field(default_factory=list)  # of requests that were too long, since the last reply

    def ended(self, begun: Sequence[Event]) -> Generator[Event, Answer, Ending]:
        """All rounds; one that asks to go on with an answer that fills the window already is the last."""
        try:
            return (yield from self.rounds(begun))
        except ProviderError as error:
            if error.kind == "context_length" and self.turns.continuing:
                return "length"
            raise

    def rounds(self, begun: Sequence[Event]) -> Generator[Event, Answer, Ending]:
        """All rounds, after those that the run has ``begun`` with."""
        yield from begun
        number, reply, used = resumed(begun, self.turns)
        left = self.limits.continuations - used
        for event in begun:
            if isinstance(event, ReplyDone):
                self.spend(event.reply)
        while reply is not None or number < self.limits.rounds:
            if reply is None:
                number += 1
                self.exchange.watch_time()
                request = yield from self.ready(number)
                reply = yield from self.reply(number, request)
                if reply is None:
                    continue
            if reply.finish == "error":
                raise ProviderError("; ".join(reply.notices) or "the model server ended with an error", kind="protocol")
            if ended := ending_of(reply):
                if ended != "length" or not reply.message.text or left == 0:
                    return ended
                left -= 1
                self.turns.ask_to_go_on()
            else:
                yield from self.call(number, reply)
            reply = None
        return "max_rounds"

    def ready(self, number: int) -> Generator[Event, Answer, Request]:
        """The request of a round as it goes out: made to fit the window, shown, and perhaps changed by whoever answers."""
        fitted = yield from self.fitted(number)
        if self.refusals and not fitted.shorter:
            raise self.refusals[-1]
        notices = (*self.notices, *fitted.notices, *fitted.request.notices)
        new = tuple(notice for notice in dict.fromkeys(notices) if notice not in self.told)
        self.told.update(new)
        answer = yield RequestReady(number, fitted.request, new)
        return (yield from _sent(number, answer, fitted.request))

    def fitted(self, number: int) -> Generator[Event, Answer, Fitted]:
        """The request that asks for the next turn, compacted where it would not fit."""
        if self.fitting is None:
            return Fitted(self.write(self.turns.messages))
        messages = self.turns.messages
        steps, told = self.fitting.fit(number, messages, messages[self.turns.prompt], self.write), None
        while True:
            try:
                step = steps.send(told)
            except StopIteration as end:
                fitted: Fitted = end.value
                return fitted
            told = None
            if isinstance(step, Compacted):
                yield step
            else:
                told = yield from self.summary(number, step)

    def write(self, messages: Sequence[Message], /, *, plain: bool = False) -> Request:
        """The request for these messages; a plain one offers no tools and asks for nothing but text."""
        settings = {key: value for key, value in (self.settings or {}).items() if not plain or key not in _NOT_PLAIN}
        request: Request = WIRES[self.target.wire].request(
            messages, () if plain else self.definitions, model=self.target.model, stream=self.stream, settings=settings
        )
        return request

    def summary(self, number: int, request: Request) -> Generator[Event, Answer, str | None]:
        """What the model says to a request that is no part of the conversation; ``None`` where it fails."""
        answer = yield RequestReady(number, request, purpose="summary")
        request = yield from _sent(number, answer, request)
        try:
            received = yield from self.exchange.reply(number, request, [], turn=0)
        except TimeLimitError:
            raise
        except ProviderError as error:
            yield Retrying(number, f"the summary failed ({error})", 0.0, 1)
            return None
        self.spend(received.reply)
        yield ReplyDone(number, received.reply, seconds=received.seconds, first=received.first, purpose="summary")
        return received.reply.message.text if received.reply.finish == "stop" else None

    def reply(self, number: int, request: Request) -> Generator[Event, Answer, Reply | None]:
        """Send a request and put the whole reply into the history; ``None`` where it was too long, and a shorter one follows."""
        turns = self.turns
        try:
            received = yield from self.exchange.reply(number, request, turns.said, turn=len(turns.messages))
        except ProviderError as error:
            self.refusals.append(error)
            last = number == self.limits.rounds or len(self.refusals) > self.limits.repeats
            if last or self.fitting is None or not self.fitting.refused(error, request):
                raise
            turns.said.clear()
            yield Retrying(number, f"too long, a shorter one follows ({error})", 0.0, len(self.refusals))
            return None
        self.refusals.clear()
        turns.reply(received.reply.message)
        self.spend(received.reply)
        yield ReplyDone(number, received.reply, seconds=received.seconds, first=received.first)
        return received.reply

    def spend(self, reply: Reply) -> None:
        if reply.usage is not None:
            self.usage = reply.usage if self.usage is None else self.usage + reply.usage

    def call(self, number: int, reply: Reply) -> Generator[Event, Answer, None]:
        """Ask about all calls of a reply, run those that may run, and put their results into the history in the calls' order."""
        ready = []
        for call in self.turns.calls:
            prepared = self.calls.prepare(call)
            if reply.finish == "length":
                prepared = cut_off(prepared)
            asks = prepared.asks if prepared.result is None else None
            answer = yield ToolAsked(number, prepared.call, prepared.steps, asks)
            _stop_if_told(answer)
            decided = answered(prepared, answer, self.calls)
            if decided.call != prepared.call:
                yield Changed(number, call=decided.call)
            ready.append(decided)
        for done in self.calls.carry_out(number, ready, idle=self.idle):
            yield from self.take(number, told_of_change(done, ready, self.turns.calls))
        self.turns.close("cancelled", "the call was not made")

    def take(self, number: int, done: ToolDone) -> Generator[Event, Answer, None]:
        """Put what came of a call into the history, or what whoever answers wants the model to get instead."""
        results = self.turns.results
        results[done.result.call_id] = done.result
        answer = yield done
        _stop_if_told(answer)
        if isinstance(answer, ToolResult):
            changed = replace(answer, call_id=done.result.call_id, name=done.result.name)
            results[changed.call_id] = changed
            yield Changed(number, result=changed)


class _StoppedError(Exception):
    """Whoever answers events has told the run to end."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.words)
        self.stop = stop


def _stop_if_told(answer: Answer) -> None:
    if isinstance(answer, Stop):
        raise _StoppedError(answer)


def _sent(number: int, answer: Answer, request: Request) -> Generator[Event, Answer, Request]:
    """The request that whoever answers wants to be sent."""
    _stop_if_told(answer)
    if isinstance(answer, Request) and answer is not request:
        yield Changed(number, request=answer)
        return answer
    return request


#: Settings that a request without tools may not have, or that would change the form of its answer.
_NOT_PLAIN: Final = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "response_format", "n", "stop", "logprobs", "top_logprobs"}
)


def run(  # noqa: PLR0913  each is a part of the world outside that a test has a stand-in for
    prompt: str | Message,
    history: Sequence[Message] = (),
    *,
    target: Target,
    send: Callable[[Request], Iterator[bytes | Waiting]],
    calls: Calls,
    definitions: Sequence[Definition] = (),
    settings: JSON | None = None,
    stream: bool = True,
    limits: Limits | None = None,
    fitting: Fitting | None = None,
    notices: Sequence[str] = (),
    begun: Sequence[Event] = (),
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
    idle: Callable[[], None] | None = None,
) -> Generator[Event, Answer, None]:
    """Run ``prompt``, a text or a user message, to its end. The last event is always `RunEnded`.

    With ``begun``, the first events of a run with this prompt and history, it goes on from there: they come first, as they were.

    Raises:
        HistoryError: the history cannot be sent; before anything is.
        ProviderError: after `RunEnded`, where the model server was the reason.
        KeyboardInterrupt: after `RunEnded`, where the run was interrupted.
    """
    asked = prompt if isinstance(prompt, Message) else Message.of("user", prompt)
    messages, mended = mend((*history, asked), wire=target.wire, model=target.model)
    turns = Turns(list(messages), prompt=len(messages) - 1)
    limits, began = limits or Limits(), clock()
    ends = math.inf if limits.seconds is None else began + limits.seconds
    exchange = Exchange(send, clock, pause, ends, limits.repeats)
    this = _Run(target, exchange, calls, definitions, settings, stream, limits, idle, fitting, turns, (*notices, *mended))
    reason: Ending
    trouble: BaseException | None = None
    words: str | None = None
    try:
        if not begun:
            yield RunStarted(asked.text, target.model, target.wire, target.mock, target.window, tuple(history))
        reason = yield from this.ended(begun)
    except TimeIsUpError:
        reason = "time_limit"
    except _StoppedError as told:
        reason, words = told.stop.reason, told.stop.words or None
    except Exception as error:  # noqa: BLE001  raised again below: whatever went wrong, the run has an end and a valid history
        over = isinstance(error, TimeLimitError) or (getattr(error, "kind", "") == "timeout" and exchange.time_is_up())
        reason, trouble = ("time_limit", None) if over else ("error", error)
    except KeyboardInterrupt as interrupt:
        reason, trouble = "cancelled", interrupt
    turns.close(*CLOSE[reason])
    words = str(trouble) if reason == "error" else words
    yield RunEnded(reason, tuple(turns.messages), this.usage, error=words, text=turns.text, seconds=clock() - began)
    if trouble is not None:
        raise trouble


def pull(
    running: Generator[Event, Answer, None], *observers: Callable[[Event], None], answer: Callable[[Event], Answer] = lambda _: None
) -> None:
    """Pull a run to its end, show each event to the observers, and answer it.

    An interrupt that hits an observer is given to the run, so that its history is closed and its end is seen by all.
    """
    try:
        event = next(running)
        while True:
            try:
                for observe in observers:
                    observe(event)
                given = answer(event)
            except KeyboardInterrupt as interrupt:
                event = running.throw(interrupt)
            else:
                event = running.send(given)
    except StopIteration:
        pass
    finally:
        running.close()
