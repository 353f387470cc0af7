"""What ``%agent`` says to a run that waits between two cells: each word of it, and what stands behind the word, as an answer.

The words do what the buttons of the inspector do (see `stepping`); `magic` finds the run. Unlike `options`, this acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nb_agent.errors import SettingError

if TYPE_CHECKING:
    from nb_agent.steps import Steps

__all__ = ["WORDS"]


def _next(steps: Steps, _: str) -> str:
    """Go on to the next stop of the run that waits."""
    return repr(steps.next())


def _to_call(steps: Steps, _: str) -> str:
    """Run on to the next call."""
    return repr(steps.to_call())


def _run_on(steps: Steps, _: str) -> str:
    """Run on to the end; it still stops where leave is needed."""
    steps.run_on()
    return repr(steps)


def _edit(steps: Steps, changed: str) -> str:
    """Go on with the JSON that follows instead; alone, show what may be edited."""
    if changed:
        return repr(steps.edit(changed))
    return (steps.question or {}).get("edits") or "nothing to edit here"


def _inject(steps: Steps, fault: str) -> str:
    """Let something go wrong here; alone, list what can."""
    if fault:
        return repr(steps.inject(fault))
    return ", ".join((steps.question or {}).get("faults") or ["nothing can go wrong here"])


def _approve(steps: Steps, rest: str) -> str:
    """Give leave to the call; with 'always', to this tool for the rest of the run."""
    if rest not in {"", "always"}:
        raise SettingError(f"%agent approve stands alone or with 'always', not with {rest!r}")
    return repr(steps.approve(always=bool(rest)))


def _reject(steps: Steps, reason: str) -> str:
    """Refuse the call; the model is told the reason that follows."""
    return repr(steps.reject(reason))


def _branch(steps: Steps, number: str) -> str:
    """Go back to the request of round N, and go on from there."""
    if not number.isdecimal():
        raise SettingError(f"%agent branch takes the number of a round, not {number!r}")
    return repr(steps.back(int(number)))


def _stop(steps: Steps, _: str) -> str:
    """End the run that waits."""
    steps.stop()
    return repr(steps)


#: Word of ``%agent`` -> what it does; its docstring is its line in ``%agent help``.
WORDS: Final[dict[str, Callable[[Steps, str], str]]] = {
    "next": _next,
    "to_call": _to_call,
    "run_on": _run_on,
    "edit": _edit,
    "inject": _inject,
    "approve": _approve,
    "reject": _reject,
    "branch": _branch,
    "stop": _stop,
}
