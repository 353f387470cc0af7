"""The seven steps of a call: the tool is known, the arguments parse, they fit, it may run; then the call, its result, and back.

`Caller.prepare` takes the first four and never runs anything; `Caller.carry_out` takes the rest. Whatever happens, a call gets
exactly one result: only an interrupt leaves. Unlike `loop`, nothing here knows a model, or the order in which it gets results.
"""

from __future__ import annotations

import difflib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from nb_agent.events import STEPS, Step, ToolDone
from nb_agent.guards.masking import NO_MASKS, Masks
from nb_agent.guards.policy import Policy
from nb_agent.guards.repeats import Repeats, called_with, changes_something
from nb_agent.guards.untrusted import fenced, orders
from nb_agent.messages import Image, Text, ToolCall, ToolResult
from nb_agent.tools.arguments import parsed
from nb_agent.tools.capture import captured
from nb_agent.tools.failures import code_of, line_of, traceback_of
from nb_agent.tools.results import MOST_TOKENS, to_parts
from nb_agent.tools.threads import Threads
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.values import JSON, dumps

__all__ = ["Caller", "Prepared"]

#: Names that an error text lists.
_MOST_NAMES: Final = 40
#: Characters of an error text that stand beside a step; the result has it all.
_MOST_NOTE: Final = 200
#: What is said of a side effect that was asked for twice.
_HELD_BACK: Final = "the same call was made before in this run and is not made again; this is what came of it then"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call after its first steps: ready to run, or with the ``result`` that says why it must not.

    Attributes:
        asks: why a person has to give leave first, where that is so.
        key: its idempotency key.
    """

    call: ToolCall
    steps: tuple[Step, ...]
    result: ToolResult | None = None
    tool: AnyTool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    asks: str | None = None
    key: str = ""

    @property
    def runs(self) -> bool:
        """Whether it may run: nothing is in its way, and nobody has to be asked."""
        return self.result is None and self.asks is None


class Captured(Protocol):
    """What a tool wrote and displayed while it ran."""

    @property
    def text(self) -> str:
        """What it printed."""

    @property
    def pictures(self) -> Sequence[Image]:
        """What it showed."""


class Caller:
    """Carries out the calls of one run, reply after reply.

    Args:
        toolbox: the tools that may be called; a call of any other one is answered with an error.
        policy: which calls run, which need leave, and which are refused.
        masks: what no model and no view may see of a result.
        repeats: what was called before in this run.
        capture: around each call; catches what it prints and displays.
        clock: gives seconds; for how long a call took.
        most_at_once: threads at the same time. There are as many as there are calls, since tools mostly wait for something.
        most_seconds: time limit of one call, counted from its start, where its tool has none of its own. What takes longer is left
            behind, since Python cannot stop a thread. It does not hold for tools that run in the main thread.
        most_tokens: longer results are cut.
        model: whose vocabulary they are counted with.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        policy: Policy = Policy(),  # noqa: B008  frozen
        masks: Masks = NO_MASKS,
        repeats: Repeats | None = None,
        capture: Callable[[], AbstractContextManager[Captured]] = captured,
        clock: Callable[[], float] = time.monotonic,
        most_at_once: int = 32,
        most_seconds: float | None = None,
        most_tokens: int = MOST_TOKENS,
        model: str | None = None,
    ) -> None:
        self.toolbox = toolbox
        self._policy = policy
        self._masks = masks
        self._repeats = repeats or Repeats()
        self._capture = capture
        self._clock = clock
        self._most_at_once = most_at_once
        self._most_seconds = most_seconds
        self._most_tokens = most_tokens
        self._model = model

    def prepare(self, call: ToolCall) -> Prepared:
        """The steps before a call is run. Nothing is guessed: arguments that are not whole and valid are never run."""
        tool = self.toolbox.find(call.name)
        if tool is None:
            return _stopped(call, 0, self._unknown(call.name), "unknown_tool")
        try:
            given = parsed(call.arguments)
        except ValueError as error:
            return _stopped(call, 1, str(error), "invalid_arguments")
        try:
            arguments = tool.check(given)
        except ValueError as error:
            return _stopped(call, 2, str(error), "invalid_arguments")
        except Exception as error:  # noqa: BLE001  a check of somebody else's may raise anything
            return _stopped(call, 2, f"the arguments cannot be checked: {line_of(error)}", "invalid_arguments")
        return self._ruled(call, tool, given, arguments)

    def _ruled(self, call: ToolCall, tool: AnyTool, given: JSON, arguments: dict[str, Any]) -> Prepared:
        """The fourth step: what the policy says, and whether the same was done before."""
        ruling = self._policy.ruling(tool, given)
        if ruling.verdict == "refuse":
            return _stopped(call, 3, f"the policy of this run does not allow {call.name} ({ruling.why})", "not_allowed")
        asks = ruling.why if ruling.verdict == "ask" else None
        step = Step(STEPS[3], "asked" if asks else "done", ruling.why)
        key = self._repeats.key(call, given)
        ready = Prepared(call, (*_done(0, 3), step), tool=tool, arguments=arguments, asks=asks, key=key)
        return self._held_back(ready)

    def _held_back(self, entry: Prepared) -> Prepared:
        """The same call; where it is a side effect that was carried out before in this run, with what came of it then."""
        first = self._repeats.first(entry.key) if entry.tool and changes_something(entry.call.name, entry.tool.tier) else None
        if first is None:
            return entry
        result = replace(first, call_id=entry.call.id, parts=(*first.parts, Text(f"[{_HELD_BACK}]")))
        return replace(entry, result=result, asks=None, steps=(*entry.steps[:3], Step(STEPS[3], note=_HELD_BACK)))

    def carry_out(self, number: int, ready: Sequence[Prepared], *, idle: Callable[[], None] | None = None) -> Iterator[ToolDone]:
        """Run the calls of one reply, side by side where there are several, and report each as it ends.

        A single call, and every tool that asks for it, runs in the thread that iterates. Threads run in a copy of its context.

        Args:
            number: of the round.
            ready: what `prepare` gave; those that have a result already come back first.
            idle: called about every 50 ms while threads are waited for.

        Raises:
            KeyboardInterrupt: the person interrupts, or a tool raised it. Calls that still run are left behind.
        """
        first: dict[str, Prepared] = {}
        for entry in ready:
            if entry.runs and entry.tool and changes_something(entry.call.name, entry.tool.tier):
                first.setdefault(entry.key, entry)
        again = [entry for entry in ready if entry.runs and first.get(entry.key, entry) is not entry]
        for entry, done in self._ended(number, [entry for entry in ready if entry not in again], idle):
            yield self._noted(number, entry, done)
        for entry, done in self._ended(number, [self._held_back(entry) for entry in again], idle):  # one that failed is tried again
            yield self._noted(number, entry, done)

    def _ended(
        self, number: int, ready: Sequence[Prepared], idle: Callable[[], None] | None
    ) -> Iterator[tuple[Prepared, ToolDone]]:
        for entry in ready:
            if not entry.runs:
                yield entry, ToolDone(number, entry.result or _unasked(entry), _closed(entry.steps))
        runnable = [entry for entry in ready if entry.runs]
        here = [entry for entry in runnable if _needs_main_thread(entry)]
        aside = [entry for entry in runnable if not _needs_main_thread(entry)]
        alone = len(aside) == 1 and not here and self._limit(aside[0]) is None
        if alone and not (idle and getattr(aside[0].tool, "asks_back", False)):
            yield aside[0], self._run(number, aside[0])
            return
        threads: Threads[ToolDone] = Threads(most=self._most_at_once, clock=self._clock)
        try:
            threads.begin([(functools.partial(self._run, number, entry), self._limit(entry)) for entry in aside])
            for entry in here:
                yield entry, self._run(number, entry)
            for place, done in threads.ended(idle):
                yield aside[place], done or self._late(number, aside[place])
        finally:
            threads.leave()

    def _limit(self, entry: Prepared) -> float | None:
        own = entry.tool.time_limit if entry.tool else None
        return self._most_seconds if own is None else own

    def _run(self, number: int, entry: Prepared) -> ToolDone:
        began = self._clock()
        with self._capture() as said, called_with(entry.key):
            try:
                value = entry.tool.call(entry.arguments)  # type: ignore[union-attr]  # carry_out passes only those that have one
                result, steps, whole = self._told(entry, value)
                fault = None
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a failing tool is a result, even where it calls sys.exit
                result, steps, whole = *self._failed(entry, error), None
                fault = self._masks.cover(traceback_of(error))
        printed = self._masks.cover(said.text)
        seconds, pictures = self._clock() - began, tuple(said.pictures)
        return ToolDone(number, result, _closed(steps), seconds, fault, whole, printed, pictures, entry.key, self._wire(entry))

    def _wire(self, entry: Prepared) -> tuple[JSON, ...]:
        """What went over the wire for a call of a tool that has one, masked like its result."""
        messages = getattr(entry.tool, "wire", None)
        if messages is None:
            return ()
        return tuple(
            message | {"body": None if message["body"] is None else self._masks.cover(dumps(message["body"]))}
            for message in messages(entry.key)
        )

    def _told(self, entry: Prepared, value: Any) -> tuple[ToolResult, tuple[Step, ...], str | None]:
        """What came of a tool that ended well: masked, cut, and framed where strangers speak; and the whole of what was cut."""
        masked: dict[str, int] = {}

        def cover(text: str) -> str:
            covered = self._masks.covered(text)
            for label, count in covered.counts.items():
                masked[label] = masked.get(label, 0) + count
            return covered.text

        made = to_parts(value, most_tokens=self._most_tokens, model=self._model, cover=cover)
        commands = orders(made.text)
        notes = [*made.notes, *(f"tries to give orders: {command}" for command in commands[:1])]
        if masked:
            notes.append(f"{sum(masked.values())} masked ({', '.join(masked)})")
        parts = made.parts
        if commands or entry.tool.untrusted:  # type: ignore[union-attr]  # see _run
            parts = tuple(_framed(part, entry.call.name) for part in parts)
        steps = (*entry.steps, Step(STEPS[4]), Step(STEPS[5], note="; ".join(notes)))
        return ToolResult(entry.call.id, entry.call.name, parts), steps, made.whole

    def _failed(self, entry: Prepared, error: BaseException) -> tuple[ToolResult, tuple[Step, ...]]:
        line = self._masks.cover(line_of(error))
        return ToolResult.failure(entry.call, line, code=code_of(error)), (*entry.steps, _failed("run", line))

    def _late(self, number: int, entry: Prepared) -> ToolDone:
        seconds = self._limit(entry)
        error = f"{entry.call.name} gave no result within {seconds:g} s and was left behind; it may still be running"
        result = ToolResult.failure(entry.call, error, code="tool_timeout")
        return ToolDone(number, result, _closed((*entry.steps, _failed("run", error))), seconds, key=entry.key)

    def _noted(self, number: int, entry: Prepared, done: ToolDone) -> ToolDone:
        """The same; what came of the call is remembered, and a model that goes round in circles is told so."""
        if entry.key:
            self._repeats.keep(entry.key, done.result)
        told = self._repeats.told(number, entry.call, entry.result or done.result)
        if told is None:
            return done
        last = replace(done.steps[-1], note=told)
        result = replace(done.result, parts=(*done.result.parts, Text(f"[{told}]")))
        return replace(done, result=result, steps=(*done.steps[:-1], last))

    def _unknown(self, name: str) -> str:
        names = self.toolbox.names
        if not names:
            return f"there is no tool named {name!r}; this run has no tools at all"
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        listed = ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")
        return f"there is no tool named {name!r}; {guess}The tools are: {listed}"


# ------------------------------------------------------------------------------------------------- steps


def _done(first: int, end: int) -> tuple[Step, ...]:
    return tuple(Step(name) for name in STEPS[first:end])


def _framed(part: Text | Image, name: str) -> Text | Image:
    return replace(part, text=fenced(part.text, name)) if isinstance(part, Text) else part


def _unasked(entry: Prepared) -> ToolResult:
    """Nobody has to see this: the loop refuses a call that no leave was given for. It holds where there is another loop."""
    return ToolResult.failure(entry.call, f"not approved, the call was denied: {entry.asks}", code="refused")


def _needs_main_thread(entry: Prepared) -> bool:
    return entry.tool is not None and entry.tool.main_thread


def _failed(name: str, error: str) -> Step:
    line = error.partition("\n")[0]
    return Step(name, "failed", line if len(line) <= _MOST_NOTE else f"{line[:_MOST_NOTE]}…")


def _stopped(call: ToolCall, at: int, error: str, code: str) -> Prepared:
    steps = (*_done(0, at), _failed(STEPS[at], error), *(Step(name, "skipped") for name in STEPS[at + 1 : 4]))
    return Prepared(call, steps, ToolResult.failure(call, error, code=code))


def _closed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """All seven: what was not taken is skipped, and the result goes back whatever it is."""
    return (*steps, *(Step(name, "skipped") for name in STEPS[len(steps) : 6]), Step(STEPS[6]))
