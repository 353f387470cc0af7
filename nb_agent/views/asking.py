"""Asks a person for leave, in the thread of the cell; where nobody can answer, the answer is no and says so.

`Leave` is what a run is answered with: it knows who was given leave for the rest of the run. How a person is asked is a function
that it is given; `by_input` is the one that works wherever `input()` does. Nobody is ever taken to have said yes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from nb_agent.events import Answer, Approve, Event, Refuse, ToolAsked

__all__ = ["Ask", "Leave", "by_input"]

#: Asks about one call. Gives `Approve`, `Refuse`, or ``None`` where there is nobody to ask.
Ask: TypeAlias = Callable[[ToolAsked], Answer]


class Leave:
    """Answers the calls of one run that need leave.

    Args:
        ask: asks a person.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._always: set[str] = set()

    def answer(self, event: Event) -> Answer:
        """Leave or no leave for a call that asks; nothing for any other event."""
        if not isinstance(event, ToolAsked) or event.asks is None:
            return None
        if event.call.name in self._always:
            return Approve(event.call)
        given = self._ask(event)
        if isinstance(given, Approve) and given.always:
            self._always.add(event.call.name)
        return given


def by_input(event: ToolAsked) -> Answer:
    """Ask with `input()`: yes, no, always for this tool in this run, other arguments, or a reason for no that the model is told."""
    question = f"{event.call.name}({event.call.arguments}) needs your leave: {event.asks}.\n{_CHOICE}"
    while True:
        said = _line(question)
        if said is None:
            return Refuse("nobody can be asked here; where a person watches, or with another policy, it could run")
        word = said.strip()
        match word.lower():
            case "y" | "yes":
                return Approve(event.call)
            case "a" | "always":
                return Approve(event.call, always=True)
            case "e" | "edit":
                changed = _line("The arguments, as one JSON object: ")
                if changed and changed.strip():
                    return Approve(replace(event.call, arguments=changed))
            case "n" | "no":
                return Refuse("the person said no")
            case "":
                pass  # Enter is neither yes nor no
            case _:
                return Refuse(f"the person said: {word}")
        question = _CHOICE


_CHOICE = "[y]es, [n]o, [a]lways in this run, [e]dit the arguments, or a reason for no: "


def _line(question: str) -> str | None:
    """A line that a person types, ``None`` where there is nobody: a batch run, a script without a terminal."""
    if not _somebody_is_there():
        return None
    try:
        return input(question)
    except EOFError:
        return None
    except RuntimeError as error:  # ipykernel's StdinNotImplementedError: the front end takes no questions
        if type(error).__name__ != "StdinNotImplementedError":
            raise
        return None


def _somebody_is_there() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return True  # whether it takes questions it says itself
    return sys.stdin is not None and sys.stdin.isatty()
