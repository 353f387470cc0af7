"""The seven steps of a call: the tool is known, the arguments parse, they fit, it may run; then the call, its result, and back.

`Caller.prepare` takes the first four and never runs anything; `Caller.carry_out` takes the rest. Whatever happens, a call gets
exactly one result: only an interrupt leaves. Unlike `loop`, nothing here knows a model, or the order in which it gets results.
"""

from __future__ import annotations

import difflib
import functools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nb_agent.events import STEPS, Step, ToolDone
from nb_agent.messages import ToolCall, ToolResult
from nb_agent.tools.annotations import shown
from nb_agent.tools.failures import code_of, line_of, traceback_of
from nb_agent.tools.results import MOST_CHARACTERS, to_parts
from nb_agent.tools.threads import Threads
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.values import JSON

__all__ = ["Caller", "Prepared", "parsed"]

#: Names that an error text lists.
_MOST_NAMES: Final = 40
#: Characters of an error text that stand beside a step; the result has it all.
_MOST_NOTE: Final = 200
#: How often a JSON text inside a JSON text is unwrapped. Small models write such arguments.
_MOST_WRAPS: Final = 2


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call after its first steps: ready to run, or with the ``result`` that says why it must not."""

    call: ToolCall
    steps: tuple[Step, ...]
    result: ToolResult | None = None
    tool: AnyTool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


class Caller:
    """Carries out the calls of one reply after the other.

    Args:
        toolbox: the tools that may be called; a call of any other one is answered with an error.
        clock: gives seconds; for how long a call took.
        most_at_once: threads at the same time. There are as many as there are calls, since tools mostly wait for something.
        most_seconds: time limit of one call, counted from its start. What takes longer is left behind, since Python cannot stop a
            thread. It does not hold for tools that run in the main thread.
        most_characters: longer results are cut.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        clock: Callable[[], float] = time.monotonic,
        most_at_once: int = 32,
        most_seconds: float | None = None,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self.toolbox = toolbox
        self._clock = clock
        self._most_at_once = most_at_once
        self._most_seconds = most_seconds
        self._most_characters = most_characters

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
        return Prepared(call, (*_done(0, 3), Step(STEPS[3], note="no policy")), tool=tool, arguments=arguments)

    def carry_out(self, number: int, ready: Sequence[Prepared], *, idle: Callable[[], None] | None = None) -> Iterator[ToolDone]:
        """Run the calls of one reply, side by side where there are several, and report each as it ends.

        A single call, and every tool that asks for it, runs in the thread that iterates. Threads run in a copy of its context, so
        that what they print lands in the cell.

        Args:
            number: of the round.
            ready: what `prepare` gave; those that have a result already come back first.
            idle: called about every 50 ms while threads are waited for.

        Raises:
            KeyboardInterrupt: the person interrupts, or a tool raised it. Calls that still run are left behind.
        """
        for entry in ready:
            if entry.result is not None:
                yield ToolDone(number, entry.result, _closed(entry.steps))
        runnable = [entry for entry in ready if entry.result is None]
        here = [entry for entry in runnable if _needs_main_thread(entry)]
        aside = [entry for entry in runnable if not _needs_main_thread(entry)]
        if len(aside) == 1 and not here and self._most_seconds is None:
            here, aside = aside, []
        threads: Threads[ToolDone] = Threads(most=self._most_at_once, seconds=self._most_seconds, clock=self._clock)
        try:
            threads.begin([functools.partial(self._run, number, entry) for entry in aside])
            for entry in here:
                yield self._run(number, entry)
            for place, done in threads.ended(idle):
                yield done or self._late(number, aside[place])
        finally:
            threads.leave()

    def _run(self, number: int, entry: Prepared) -> ToolDone:
        began = self._clock()
        try:
            value = entry.tool.call(entry.arguments)  # type: ignore[union-attr]  # carry_out passes only those that have one
            parts = to_parts(value, limit=self._most_characters)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  a failing tool is a result, even where it calls sys.exit
            line = line_of(error)
            result = ToolResult.failure(entry.call, line, code=code_of(error))
            steps = _closed((*entry.steps, _failed("run", line)))
            return ToolDone(number, result, steps, self._clock() - began, traceback_of(error))
        result = ToolResult(entry.call.id, entry.call.name, parts)
        return ToolDone(number, result, _closed((*entry.steps, *_done(4, 6))), self._clock() - began)

    def _late(self, number: int, entry: Prepared) -> ToolDone:
        error = f"{entry.call.name} gave no result within {self._most_seconds:g} s and was left behind; it may still be running"
        result = ToolResult.failure(entry.call, error, code="tool_timeout")
        return ToolDone(number, result, _closed((*entry.steps, _failed("run", error))), self._most_seconds)

    def _unknown(self, name: str) -> str:
        names = self.toolbox.names
        if not names:
            return f"there is no tool named {name!r}; this run has no tools at all"
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        listed = ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")
        return f"there is no tool named {name!r}; {guess}The tools are: {listed}"


# ------------------------------------------------------------------------------------------------- arguments


def parsed(text: str | None) -> JSON:
    r"""The arguments of a call as an object. None at all is an empty one; half of one, or two, is an error.

    >>> parsed(""), parsed("null"), parsed('"{\\"id\\": 4}"')
    ({}, {}, {'id': 4})

    Raises:
        ValueError: it is not one JSON object; the text says so in words for the model.
    """
    value: Any = text
    for _ in range(1 + _MOST_WRAPS):
        if value is None or (isinstance(value, str) and value.strip() in {"", "None"}):
            return {}
        if not isinstance(value, str):
            break
        value = _read(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"the arguments must be one JSON object, not {shown(value)}")  # noqa: TRY004  the caller's text is wrong
    return value


def _read(text: str) -> Any:
    try:
        return json.loads(text, strict=False, object_pairs_hook=_object, parse_constant=_refuse)  # a bare line break is no doubt
    except json.JSONDecodeError as error:
        fault = "text after the end of the object" if error.msg == "Extra data" else error.msg
        near = shown(text[max(0, error.pos - 20) : error.pos + 20])
        raise ValueError(
            f"the arguments are not one JSON object: {fault} at character {error.pos}, near {near}; send exactly one"
        ) from None
    except RecursionError:
        raise ValueError("the arguments are nested too deep") from None


def _object(pairs: list[tuple[str, Any]]) -> JSON:
    made: JSON = {}
    for key, value in pairs:
        if made.setdefault(key, value) != value:
            raise ValueError(f"the arguments name {key!r} twice with different values")
    return made


def _refuse(word: str) -> Any:
    raise ValueError(f"the arguments hold {word}, which is not JSON")


# ------------------------------------------------------------------------------------------------- steps


def _done(first: int, end: int) -> tuple[Step, ...]:
    return tuple(Step(name) for name in STEPS[first:end])


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
