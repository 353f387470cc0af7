"""Asks a person, in the thread of the cell; where nobody can answer, the answer is no and says so.

`Person` answers the events of one run: it knows who was given leave for the rest of it, and asks by the first way that works, of
those it is given. `by_typing` is the one that works wherever `input()` does. Nobody is ever taken to have said yes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from nb_agent.errors import SettingError
from nb_agent.events import Answer, Approve, Event, Refuse, ToolAsked
from nb_agent.values import JSON

__all__ = ["Ask", "Asking", "Person", "Questions", "by_typing"]

#: Asks about one call that needs leave. Gives `Approve`, `Refuse`, or ``None`` where there is nobody to ask.
Ask: TypeAlias = Callable[[ToolAsked], Answer]
#: Asks a question of `stepping`. Gives what was said, or ``None`` where there is nobody to ask.
Asking: TypeAlias = Callable[[JSON], JSON | None]

_NOBODY: Final = "nobody can be asked here; where a person watches, or with another policy, it could run"


class Questions(Protocol):
    """What is asked at an event, and what an answer means (see `stepping.Stepper`)."""

    def question(self, event: Event, /) -> JSON | None:
        """What a person is asked, ``None`` for nothing."""

    def answer(self, event: Event, question: JSON, said: JSON, /) -> Answer:
        """What they say, for the run; a SettingError where it means nothing."""

    def default(self, event: Event, /) -> Answer:
        """The answer where nobody is asked."""


class Person:
    """Answers the events of one run with what a person says.

    Args:
        questions: which there are.
        asking: how they are asked.
        leave: is asked about calls that need leave, in place of that.
    """

    def __init__(self, questions: Questions, asking: Asking, leave: Ask | None = None) -> None:
        self._questions = questions
        self._asking = asking
        self._leave = leave
        self._always: set[str] = set()

    def answer(self, event: Event) -> Answer:
        """What the person says to an event, asked again until it means something; nothing where nobody is asked."""
        if self._leave is not None and isinstance(event, ToolAsked) and event.asks is not None:
            return self._given(event, self._leave)
        question = self._questions.question(event)
        while question is not None:
            said = self._asking(question)
            if said is None:
                return Refuse(_NOBODY) if question["asks"] else None
            try:
                return self._questions.answer(event, question, said)
            except SettingError as error:
                question = {**question, "problem": str(error)}
        return self._questions.default(event)

    def _given(self, event: ToolAsked, leave: Ask) -> Answer:
        if event.call.name in self._always:
            return Approve(event.call)
        given = leave(event)
        if isinstance(given, Approve) and given.always:
            self._always.add(event.call.name)
        return given


# ------------------------------------------------------------------------------------------------------- typed answers

#: What may be typed for each choice; a further word or line goes with some of them.
_TYPED: Final = {
    "next": ("n", "[n]ext"),
    "to_call": ("c", "run to the next [c]all"),
    "run_on": ("g", "[g]o on to the end"),
    "approve": ("y", "[y]es"),
    "always": ("a", "[a]lways in this run"),
    "reject": ("r", "[r]eject"),
    "inject": ("i", "[i]nject a fault"),
    "back": ("b", "go [b]ack"),
    "stop": ("s", "[s]top"),
}


def by_typing(question: JSON) -> JSON | None:
    """Ask with `input()`: a letter for each choice; another text is a reason for no where leave is asked for."""
    asked = f"{_told(question)}\n{_menu(question)}"
    while True:
        typed = _line(asked)
        if typed is None:
            return None
        said = _said(question, typed.strip())
        if said is not None:
            return said
        asked = _menu(question)


def _told(question: JSON) -> str:
    lines = [question["problem"]] if question["problem"] else []
    lines.append(f"{question['title']}{' needs your leave: ' + question['asks'] if question['asks'] else ''}")
    if question["edits"] is not None and question["at"] != "call":  # the title of a call says its arguments
        text = question["edits"]
        lines.append(text if len(text) <= 2_000 else f"{text[:1_000]}\n… {len(text):,} characters in all …\n{text[-1_000:]}")
    return "\n".join(lines)


def _menu(question: JSON) -> str:
    edit = ["[e]dit"] if question["edits"] is not None else []
    reason = ["or a reason for no"] if question["asks"] else []
    return ", ".join([*(_TYPED[choice][1] for choice in question["choices"]), *edit, *reason]) + ": "


def _said(question: JSON, typed: str) -> JSON | None:
    """The answer that was typed; ``None`` where it has to be asked for again."""
    word, _, rest = typed.partition(" ")
    letters = {_TYPED[choice][0]: choice for choice in question["choices"]} | {choice: choice for choice in question["choices"]}
    if question["asks"]:
        letters |= {"yes": "approve", "n": "reject", "no": "reject"}
    choice = letters.get(word.lower())
    if not typed:
        return None  # Enter is neither yes nor no
    if word.lower() in {"e", "edit"} and question["edits"] is not None and not rest:
        changed = _line("The JSON that goes on instead, in one line: ")
        return {"choice": "approve" if question["asks"] else "next", "text": changed} if changed and changed.strip() else None
    if choice == "inject":
        return {"choice": choice, "fault": rest or (_line(f"Which of {', '.join(question['faults'])}: ") or "").strip()}
    if choice == "back":
        return {"choice": choice, "round": int(rest) - 1 if rest.isdigit() else question["round"] - 1}
    if choice == "reject" or (choice is not None and not rest):
        return {"choice": choice, "reason": rest}
    return {"choice": "reject", "reason": typed} if question["asks"] else None


def _line(asked: str) -> str | None:
    """A line that a person types, ``None`` where there is nobody: a batch run, a script without a terminal."""
    if not _somebody_is_there():
        return None
    try:
        return input(asked)
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
