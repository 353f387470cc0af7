"""What becomes of a call before it runs: as the answer to `ToolAsked` says, or because its arguments were cut off.

It decides by what it is given and asks nobody; `loop` asks, and whoever carries calls out looks at them (`Calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from nb_agent.events import Answer, Approve, Refuse, Step, ToolDone
from nb_agent.messages import Text, ToolCall, ToolResult

__all__ = ["Calls", "Prepared", "answered", "cut_off", "told_of_change"]


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


def cut_off(prepared: Any) -> Any:
    """A call of a reply that ended at the output limit is never made, and the model is told."""
    words = "the arguments were cut off at the output token limit and the call was not made; use smaller pieces"
    cut = Step("parsed", "failed", words)
    return replace(
        prepared, steps=(*prepared.steps[:1], cut), result=ToolResult.failure(prepared.call, words, code="truncated_arguments")
    )


def answered(prepared: Any, answer: Answer, calls: Calls) -> Any:
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


def told_of_change(done: ToolDone, ready: Sequence[Prepared], asked: Sequence[ToolCall]) -> ToolDone:
    """The same; where the call was made otherwise than the model asked for, its result says how."""
    made = next((entry.call for entry in ready if entry.call.id == done.result.call_id), None)
    if made is None or made in asked:
        return done
    words = f"[a person changed this call before it was made: {made.name}({made.arguments})]"
    return replace(done, result=replace(done.result, parts=(*done.result.parts, Text(words))))


def _refused(prepared: Any, reason: str) -> Any:
    """A call that needs leave and did not get it says so in words that a model can do something with."""
    words = f"not approved, the call was denied: {reason}" if prepared.asks else reason
    refused = ToolResult.failure(prepared.call, words, code="refused")
    return replace(prepared, steps=(*prepared.steps[:3], Step("policy", "failed", words)), result=refused)
