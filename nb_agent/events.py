"""What a run yields. A run is the list of these, and all that is shown, saved, counted or replayed is a function of it.

Those marked (?) may be answered: the generator's ``send`` takes what the event's docstring names, ``None`` means go on.
Seconds are measured by the loop's clock and do not count when two events are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from nb_agent.messages import Image, Message, Piece, Reply, Request, ToolCall, ToolResult
from nb_agent.usage import Usage
from nb_agent.values import JSON, Value

__all__ = [
    "ENDINGS",
    "STEPS",
    "Answer",
    "Approve",
    "Changed",
    "Compacted",
    "Delta",
    "Ending",
    "Event",
    "Refuse",
    "ReplyDone",
    "RequestReady",
    "Retrying",
    "RunEnded",
    "RunStarted",
    "Step",
    "Stop",
    "ToolAsked",
    "ToolDone",
    "Waiting",
]

#: The seven steps of a call, in their order. The loop itself takes the last one.
STEPS: Final = ("known", "parsed", "fits schema", "policy", "run", "result", "back to model")

#: How a run ends, and what that means for the person who reads it.
ENDINGS: Final[dict[str, str]] = {
    "stop": "the model gave its final answer",
    "length": "the answer was cut off at the output limit",
    "content_filter": "the provider filtered the answer, or the model refused",
    "max_rounds": "the limit on rounds was reached",
    "time_limit": "the time limit of the run was reached",
    "token_limit": "the next request would have passed the run's limit on tokens",
    "cost_limit": "the next request would have passed the run's limit on cost",
    "repeated_calls": "the model asked for the same calls again and again",
    "stopped": "the person stopped the run",
    "error": "the model server failed or refused",
    "cancelled": "the run was interrupted",
}
Ending: TypeAlias = Literal[
    "stop",
    "length",
    "content_filter",
    "max_rounds",
    "time_limit",
    "token_limit",
    "cost_limit",
    "repeated_calls",
    "stopped",
    "error",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class Step(Value):
    """How far a call has come: one of `STEPS`, whether it was taken, and why not. One that is ``asked`` waits for a person."""

    name: str
    state: Literal["done", "failed", "skipped", "asked"] = "done"
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunStarted(Value):
    """The first event. ``history`` is what was said before, the system message included, without the new prompt."""

    prompt: str
    model: str
    wire: str
    mock: bool = False
    window: int | None = None  # tokens; None where it is not known
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestReady(Value):
    """(?) A request is about to go out. Answer with a `Request` to send that one instead, or with `Stop`."""

    number: int  # of the round, from 1
    request: Request
    notices: tuple[str, ...] = ()  # what had to be mended in the history, or is over the window, a sentence each
    purpose: str = ""  # "summary" where a summary is asked for, which does not become part of the conversation


@dataclass(frozen=True, slots=True)
class Compacted(Value):
    """The next request is sent shorter than the conversation is; the history of the run stays whole (see `compaction`)."""

    number: int  # of the round
    strategy: str
    before: int  # tokens of the request as it would have been
    after: int
    what: tuple[str, ...] = ()  # what is no longer sent, a line each


@dataclass(frozen=True, slots=True)
class Waiting(Value):
    """What a sender gives instead of bytes before it waits and sends the request again. The loop makes it a `Retrying`."""

    reason: str  # one line
    seconds: float
    attempt: int  # the one that has failed, from 1


@dataclass(frozen=True, slots=True)
class Retrying(Value):
    """A request has failed; the same one, or a shorter one in a new round, goes out again after so many seconds."""

    number: int
    reason: str
    seconds: float = field(compare=False)  # chance is in it
    attempt: int  # the one that has failed, from 1


@dataclass(frozen=True, slots=True)
class Delta(Value):
    """A piece of the reply has come; ``data`` is the payload as it stood on the wire."""

    number: int
    pieces: tuple[Piece, ...]
    data: str = ""
    seconds: float | None = field(default=None, compare=False)  # since the request went out


@dataclass(frozen=True, slots=True)
class ReplyDone(Value):
    """The reply is whole: the stream has ended and the finish reason is known."""

    number: int
    reply: Reply
    seconds: float | None = field(default=None, compare=False)
    first: float | None = field(default=None, compare=False)  # seconds until the first piece
    purpose: str = ""  # that of its request


@dataclass(frozen=True, slots=True)
class ToolAsked(Value):
    """(?) A call is about to run, unless one of its steps has failed already.

    Answer with `Refuse`, with a `ToolCall` to run that one instead, with a `ToolResult` to take that as what came of it, or with
    `Stop`. One that ``asks`` runs only where the answer is `Approve`.
    """

    number: int
    call: ToolCall
    steps: tuple[Step, ...]
    asks: str | None = None  # why it needs a person's leave; None where it needs none


@dataclass(frozen=True, slots=True)
class ToolDone(Value):
    """(?) A call has its result. Calls that run side by side report in the order in which they end.

    Answer with a `ToolResult` to give the model that one instead, or with `Stop`.

    Attributes:
        result: what the model gets.
        steps: all seven.
        seconds: how long the call took.
        traceback: of a tool that failed; for the person, the model never gets it.
        whole: the whole text of a result that was cut for the model.
        printed: what the tool wrote to standard output and standard error.
        pictures: what it displayed.
        key: the idempotency key of the call (see `guards.repeats`).
        wire: what went over the wire of an MCP server for it (see `mcp.wirelog.WireLog.entries`), each ``body`` as text.
    """

    AS_IS = frozenset({"wire"})

    number: int
    result: ToolResult
    steps: tuple[Step, ...] = ()
    seconds: float | None = field(default=None, compare=False)
    traceback: str | None = field(default=None, compare=False)
    whole: str | None = None
    printed: str = ""
    pictures: tuple[Image, ...] = ()
    key: str = field(default="", compare=False)  # chance is in it
    wire: tuple[JSON, ...] = field(default=(), compare=False)  # likewise


@dataclass(frozen=True, slots=True)
class Changed(Value):
    """What stands here goes on instead of what the event before said, since whoever answers has changed it. One of three is set.

    The model's own message is never changed: it is told of a call that was made with other arguments.
    """

    number: int
    request: Request | None = None
    call: ToolCall | None = None  # its id is that of the call that the model asked for
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True)
class RunEnded(Value):
    """The last event, whatever happened. ``history`` is one that a provider accepts; the next run goes on from it."""

    reason: Ending
    history: tuple[Message, ...]
    usage: Usage | None = None
    error: str | None = None
    seconds: float | None = field(default=None, compare=False)
    text: str = ""  # the last text that the model wrote in this run, put together where it came in several replies


@dataclass(frozen=True, slots=True)
class Refuse(Value):
    """An answer to `ToolAsked`: do not run it, and tell the model why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Approve(Value):
    """An answer to a `ToolAsked` that asks: run exactly this call, its name and its arguments, and no other one.

    It may differ from the one that was asked about: then a person has changed it. ``always`` also gives leave to this tool for the
    rest of the run (see `agent`); the loop itself asks each time.
    """

    call: ToolCall
    always: bool = False


@dataclass(frozen=True, slots=True)
class Stop(Value):
    """An answer to each event that may be answered: the run ends here, with this reason."""

    reason: Ending = "stopped"
    words: str = ""


Event: TypeAlias = RunStarted | Compacted | RequestReady | Retrying | Delta | ReplyDone | ToolAsked | ToolDone | Changed | RunEnded
Answer: TypeAlias = Request | ToolCall | ToolResult | Refuse | Approve | Stop | None
