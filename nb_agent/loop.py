"""The tool-calling loop: send the history, act on the answer, repeat, until it ends in one of the ways of `events.ENDINGS`.

A plain generator of events. It never prints, displays, stores or logs, and it knows no server and no tool: how to send, how calls
are carried out, the clock and what to do while waiting are arguments. History grows by whole turns, and every call gets exactly one
result, so that it is valid whichever way the run ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, Protocol, cast

from nb_agent.adapters import WIRES, receive
from nb_agent.errors import ProviderError, TimeLimitError
from nb_agent.events import (
    Answer,
    Approve,
    Delta,
    Ending,
    Event,
    Refuse,
    ReplyDone,
    RequestReady,
    Retrying,
    RunEnded,
    RunStarted,
    Step,
    Stop,
    ToolAsked,
    ToolDone,
    Waiting,
)
from nb_agent.history import mend
from nb_agent.messages import Definition, Message, Reply, Request, ToolCall, ToolResult
from nb_agent.turns import Turns
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = ["Calls", "Limits", "Prepared", "Target", "pull", "run"]


class Prepared(Protocol):
    """A call that has been looked at: ``result`` is there where it must not run."""

    @property
    def call(self) -> ToolCall:
        """The call, as it would run."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """How far it has come."""

    @property
    def result(self) -> ToolResult | None:
        """What the model is told instead of running it."""

    @property
    def asks(self) -> str | None:
        """Why it needs a person's leave, where it does."""


class Calls(Protocol):
    """What the loop wants of whoever carries calls out: look at one, then run those that came together."""

    def prepare(self, call: ToolCall, /) -> Any:
        """The call as a `Prepared` dataclass: known or not, its arguments parsed and checked."""

    def carry_out(self, number: int, ready: Sequence[Any], /, *, idle: Callable[[], None] | None = None) -> Iterator[ToolDone]:
        """Run what may run; each result as it ends. ``idle`` is called while waiting."""


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
    send: Callable[[Request], Iterator[bytes | Waiting]]
    calls: Calls
    definitions: Sequence[Definition]
    settings: JSON | None
    stream: bool
    limits: Limits
    clock: Callable[[], float]
    pause: Callable[[float], None]
    idle: Callable[[], None] | None
    turns: Turns
    notices: tuple[str, ...]
    began: float
    usage: Usage | None = None
    told: set[str] = field(default_factory=set)  # notices, each once in a run

    def rounds(self) -> Generator[Event, Answer, Ending]:
        write, left = WIRES[self.target.wire].request, self.limits.continuations
        for number in range(1, self.limits.rounds + 1):
            self.watch_time()
            request = write(
                self.turns.messages, self.definitions, model=self.target.model, stream=self.stream, settings=self.settings
            )
            new = tuple(notice for notice in (*self.notices, *request.notices) if notice not in self.told)
            self.told.update(new)
            answer = yield RequestReady(number, request, new)
            _stop_if_told(answer)
            reply = yield from self.reply(number, answer if isinstance(answer, Request) else request)
            if reply.usage is not None:
                self.usage = reply.usage if self.usage is None else self.usage + reply.usage
            if reply.finish == "error":
                raise ProviderError("; ".join(reply.notices) or "the model server ended with an error", kind="protocol")
            if ended := _ending(reply):
                if ended != "length" or not reply.message.text or left == 0:
                    return ended
                left -= 1
                self.turns.ask_to_go_on()
                continue
            yield from self.call(number, reply)
        return "max_rounds"

    def reply(self, number: int, request: Request) -> Generator[Event, Answer, Reply]:
        """Send a request, pass its pieces on, and put the whole reply into the history.

        An answer that breaks off is asked for again: nothing of it was shown as done, and none of its calls has run.
        """
        attempt = 1
        while True:
            try:
                reply, seconds, first = yield from self.attempt(number, request)
            except _BrokenError as broken:
                if attempt > self.limits.repeats or self.time_is_up():
                    raise broken.error from None
                self.turns.said.clear()
                seconds = _PAUSE * 2 ** (attempt - 1)
                yield Retrying(number, f"{broken.error.kind.replace('_', ' ')} ({broken.error})", seconds, attempt)
                self.pause(seconds)
                attempt += 1
            else:
                break
        self.turns.reply(reply.message)
        yield ReplyDone(number, reply, seconds=seconds, first=first)
        return reply

    def attempt(self, number: int, request: Request) -> Generator[Event, Answer, tuple[Reply, float, float | None]]:
        """One sending of a request, and the reading of its answer: the reply, its seconds, and those until the first piece."""
        began, first = self.clock(), None
        sent = iter(self.send(request))
        try:
            start = yield from _started(number, sent)
            rest = cast("Iterator[bytes]", sent)  # nobody waits in the middle of an answer
            reading = receive(request.wire, self.watched(chain(start, rest)), turn=len(self.turns.messages))
            while True:
                try:
                    payload, pieces = next(reading)
                except StopIteration as end:
                    return end.value, self.clock() - began, first
                except ProviderError as error:
                    raise (_BrokenError(error) if error.kind in _BROKEN else error) from None
                first = self.clock() - began if first is None else first
                if pieces:
                    self.turns.said += [piece.text for piece in pieces if piece.kind in {"text", "refusal"} and not piece.choice]
                    yield Delta(number, pieces, payload)
                self.watch_time()
        finally:
            if isinstance(sent, Generator):
                sent.close()  # at once: an interrupt's traceback would keep the connection open

    def call(self, number: int, reply: Reply) -> Generator[Event, Answer, None]:
        """Ask about all calls of a reply, run those that may run, and put their results into the history in the calls' order."""
        ready = []
        for call in self.turns.calls:
            prepared = self.calls.prepare(call)
            if reply.finish == "length":
                prepared = _cut_off(prepared)
            asks = prepared.asks if prepared.result is None else None
            answer = yield ToolAsked(number, prepared.call, prepared.steps, asks)
            _stop_if_told(answer)
            ready.append(_answered(prepared, answer, self.calls))
        for done in self.calls.carry_out(number, ready, idle=self.idle):
            self.turns.results[done.result.call_id] = done.result
            yield done
        self.turns.close("cancelled", "the call was not made")

    def watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks; the clock is looked at for each, also where a server sends what is no piece of an answer."""
        ends, clock = self.ends, self.clock
        for chunk in chunks:
            if clock() > ends:
                raise _TimeIsUpError
            yield chunk

    def watch_time(self) -> None:
        if self.time_is_up():
            raise _TimeIsUpError

    def time_is_up(self) -> bool:
        return self.clock() > self.ends

    @property
    def ends(self) -> float:
        """When its time is up."""
        return math.inf if self.limits.seconds is None else self.began + self.limits.seconds


#: Kinds of pieces that are kept of an answer that is never whole.
_SAID: Final = frozenset({"text", "refusal"})


class _TimeIsUpError(Exception):
    pass


class _StoppedError(Exception):
    """Whoever answers events has told the run to end."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.words)
        self.stop = stop


def _stop_if_told(answer: Answer) -> None:
    if isinstance(answer, Stop):
        raise _StoppedError(answer)


class _BrokenError(Exception):
    """An answer broke off, or could not be read, after it had begun."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(str(error))
        self.error = error


#: Seconds before an answer that broke off is asked for again; twice as long the next time.
_PAUSE = 0.25
#: Kinds of error that say that an answer did not come whole.
_BROKEN = frozenset({"stream_interrupted", "protocol"})


def _started(number: int, sent: Iterator[bytes | Waiting]) -> Generator[Event, Answer, tuple[bytes, ...]]:
    """The first bytes of an answer; where the sender waits and tries again before they come, that is an event each time."""
    for given in sent:
        if not isinstance(given, Waiting):
            return (given,)
        yield Retrying(number, given.reason, given.seconds, given.attempt)
    return ()


def run(
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
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
    idle: Callable[[], None] | None = None,
) -> Generator[Event, Answer, None]:
    """Run ``prompt``, a text or a user message, to its end. The last event is always `RunEnded`.

    Raises:
        HistoryError: the history cannot be sent; before anything is.
        ProviderError: after `RunEnded`, where the model server was the reason.
        KeyboardInterrupt: after `RunEnded`, where the run was interrupted.
    """
    asked = prompt if isinstance(prompt, Message) else Message.of("user", prompt)
    messages, notices = mend((*history, asked))
    turns = Turns(list(messages), prompt=len(messages) - 1)
    limits, began = limits or Limits(), clock()
    this = _Run(target, send, calls, definitions, settings, stream, limits, clock, pause, idle, turns, notices, began)
    reason: Ending
    trouble: BaseException | None = None
    words: str | None = None
    try:
        yield RunStarted(asked.text, target.model, target.wire, target.mock, target.window, tuple(history))
        reason = yield from this.rounds()
    except _TimeIsUpError:
        reason = "time_limit"
    except _StoppedError as told:
        reason, words = told.stop.reason, told.stop.words or None
    except Exception as error:  # noqa: BLE001  raised again below: whatever went wrong, the run has an end and a valid history
        over = isinstance(error, TimeLimitError) or (getattr(error, "kind", "") == "timeout" and this.time_is_up())
        reason, trouble = ("time_limit", None) if over else ("error", error)
    except KeyboardInterrupt as interrupt:
        reason, trouble = "cancelled", interrupt
    turns.close(*_CLOSE[reason])
    words = str(trouble) if reason == "error" else words
    yield RunEnded(reason, tuple(turns.messages), this.usage, error=words, text=turns.text, seconds=clock() - began)
    if trouble is not None:
        raise trouble


#: What a call that an ending leaves open is told: code and words.
_CLOSE: dict[Ending, tuple[str, str]] = {
    "stop": ("cancelled", "the run ended before the call was made"),
    "max_rounds": ("cancelled", "the run reached its limit on rounds before the call was made"),
    "length": ("truncated_arguments", "the call was cut off at the output token limit and was not made"),
    "content_filter": ("cancelled", "the answer was filtered and the call was not made"),
    "time_limit": ("cancelled", "the run reached its time limit before the call had a result"),
    "repeated_calls": ("cancelled", "the run was stopped before the call was made: the same calls came again and again"),
    "stopped": ("cancelled", "the person stopped the run before the call was made"),
    "error": ("cancelled", "the model server failed before the call had a result"),
    "cancelled": ("cancelled", "the person interrupted the run before the call had a result"),
}


def _ending(reply: Reply) -> Ending | None:
    """How the run ends with this reply, ``None`` where it goes on."""
    if reply.finish in {"tool_calls", "paused"} or (reply.finish == "length" and reply.message.tool_calls):
        return None
    return reply.finish  # type: ignore[return-value]  # the others are endings too


def _cut_off(prepared: Any) -> Any:
    words = "the arguments were cut off at the output token limit and the call was not made; use smaller pieces"
    cut = Step("parsed", "failed", words)
    return replace(
        prepared, steps=(*prepared.steps[:1], cut), result=ToolResult.failure(prepared.call, words, code="truncated_arguments")
    )


def _answered(prepared: Any, answer: Answer, calls: Calls) -> Any:
    """The call as the person or the policy left it. A call that has failed already stays failed."""
    if isinstance(answer, ToolResult):
        result = replace(answer, call_id=prepared.call.id, name=prepared.call.name)
        return replace(prepared, result=result)
    if isinstance(answer, Approve) and answer.call.id != prepared.call.id:
        answer = Refuse("the leave that was given is for another call")
    said = answer.call if isinstance(answer, Approve) else answer
    if isinstance(said, ToolCall) and said != prepared.call:
        prepared = calls.prepare(replace(said, id=prepared.call.id))
    if prepared.result is not None:
        return prepared
    if isinstance(answer, Refuse):
        return _refused(prepared, answer.reason or "the person refused the call")
    if not prepared.asks:
        return prepared
    if isinstance(answer, Approve):
        steps = (*prepared.steps[:3], Step("policy", note=f"{prepared.asks}; a person gave leave"))
        return replace(prepared, asks=None, steps=steps)
    return _refused(prepared, "nobody gave leave")


def _refused(prepared: Any, reason: str) -> Any:
    """A call that needs leave and did not get it says so in words that a model can do something with."""
    words = f"not approved, the call was denied: {reason}" if prepared.asks else reason
    refused = ToolResult.failure(prepared.call, words, code="refused")
    return replace(prepared, steps=(*prepared.steps[:3], Step("policy", "failed", words)), result=refused)


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
