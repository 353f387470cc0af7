"""Exercises that check themselves: `check` says ✓, ✗ with what is wrong, or that it is not solved yet; it never raises.

The small readers (`calls_in`, `results_in`, `rounds_in`, `written_history`) take a run apart for a lesson, `findings_in` a tool.
Unlike a test nothing here stops a notebook: Run All goes through, solved or not.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from nb_agent.clinic import lint
from nb_agent.events import ReplyDone, RunStarted, ToolDone
from nb_agent.messages import Message
from nb_agent.run import Run
from nb_agent.tools.schema import Tool

__all__ = ["WRITE_HERE", "Asked", "calls_in", "check", "findings_in", "is_open", "results_in", "rounds_in", "written_history"]

#: How the prompt of an exercise begins while nobody has written one.
WRITE_HERE: Final = "Your prompt goes here"

#: Characters of a value that a failing check shows.
_MOST_SHOWN: Final = 200
#: Characters of a message in a history.
_MOST_GIST: Final = 70


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a model asked for, as it reads in Python; ``arguments`` is the text where it is no JSON object."""

    name: str
    arguments: dict[str, Any] | str
    id: str

    def __repr__(self) -> str:
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments})"
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"


def check(claim: str, answer: Any, expected: Any = bool, *, hint: str = "") -> None:
    """Print whether a claim holds.

    Args:
        claim: what has to hold, as a sentence.
        answer: what came out, or a function without arguments that gives it; `...` where the exercise is still open.
        expected: what the answer has to be, or a function that says whether it is right.
        hint: one more sentence for whoever is stuck.

    >>> check("two and two is four", 2 + 2, 4)
    ✓ two and two is four
    >>> check("there are two calls", 1, 2, hint="Name two cities.")
    ✗ there are two calls
      it is 1, not 2
      hint: Name two cities.
    >>> check("there are two calls", ...)
    ○ not solved yet: there are two calls
    """
    found, fault = _value(answer)
    if is_open(found):
        _say(f"○ not solved yet: {claim}")
        return
    fault = fault or _fault(found, expected)
    lines = [f"✗ {claim}", f"  {fault}"] if fault else [f"✓ {claim}"]
    _say("\n".join([*lines, *([f"  hint: {hint}"] if fault and hint else [])]))


def is_open(answer: Any) -> bool:
    """Whether an answer is still the placeholder: three dots, a text or a list of them, or a run whose prompt nobody has written.

    >>> is_open(...), is_open("..."), is_open([...]), is_open(0), is_open([])
    (True, True, True, False, False)
    """
    if isinstance(answer, Run):
        return not answer.events or _prompt(answer).strip().startswith(WRITE_HERE)
    if isinstance(answer, list):
        return any(part is ... for part in answer)
    return answer is ... or (isinstance(answer, str) and answer.strip() in {"...", "…"})


def calls_in(run: Any, round: int | None = None) -> Any:  # noqa: A002  the word that the notebooks use
    """The calls that a model asked for, in their order: in one round, or in all; `...` for an exercise that is still open.

    Args:
        run: a run.
        round: number of the round, from 1.
    """
    if is_open(run):
        return ...
    replies = [event for event in run.events if isinstance(event, ReplyDone) and round in {None, event.number}]
    return [Asked(c.name, _arguments(c.arguments), c.id) for event in replies for c in event.reply.message.tool_calls]


def results_in(run: Any, round: int | None = None) -> Any:  # noqa: A002  see calls_in
    """The results of the calls of one round, or of all, in the order in which they ended; `...` for an open exercise.

    A result that is JSON comes as what it says, any other as its text; the dots of a tool that nobody has written stay dots.
    """
    if is_open(run):
        return ...
    done = [event.result for event in run.events if isinstance(event, ToolDone) and round in {None, event.number}]
    return [... if result.text == str(...) else _parsed(result.text) for result in done]


def rounds_in(run: Any) -> Any:
    """How many requests a run sent; `...` for an open exercise."""
    return ... if is_open(run) else len(run.requests)


def findings_in(tool: Tool) -> Any:
    """What the clinic has to say about a tool, a line each; `...` for a tool that nobody has described yet."""
    if is_open(tool.description):
        return ...
    return [f"{finding.parameter or finding.tool}: {finding.reason}" for finding in lint(tool)]


def written_history(messages: tuple[Message, ...]) -> str:
    """The messages, a line each: the role, and which calls it asks for or which one it answers.

    >>> print(written_history((Message.of("user", "Hello"),)))
     1  user       Hello
    """
    return "\n".join(f"{number:2}  {message.role:9}  {_gist(message)}" for number, message in enumerate(messages, 1))


def _gist(message: Message) -> str:
    if message.tool_calls:
        return "asks for " + ", ".join(f"{call.name} ({call.id})" for call in message.tool_calls)
    result = message.tool_result
    if result is not None:
        return f"result of {result.name} ({result.call_id}){': failed' if result.failed else ''}"
    line = " ".join(message.text.split())
    return line if len(line) <= _MOST_GIST else f"{line[: _MOST_GIST - 1]}…"


# ------------------------------------------------------------------------------------------------- what is wrong


def _value(answer: Any) -> tuple[Any, str]:
    """The answer, or what happened on the way to it."""
    if not isinstance(answer, FunctionType):
        return answer, ""
    try:
        return answer(), ""
    except Exception as error:  # noqa: BLE001  a learner's code may raise anything, and the notebook goes on
        return None, f"it ends with {type(error).__name__}: {error}"


def _fault(found: Any, expected: Any) -> str:
    """What is wrong with an answer, or nothing."""
    try:
        right = expected(found) if callable(expected) else found == expected
        if right:
            return ""
    except Exception as error:  # noqa: BLE001  the answer may be of any type
        return f"it is {_shown(found)}, which cannot be checked: {type(error).__name__}: {error}"
    return f"it is {_shown(found)}" + ("" if callable(expected) else f", not {_shown(expected)}")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  the learner's own class
        return f"a value of type {type(value).__name__} that cannot be shown: {type(error).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def _prompt(run: Run) -> str:
    return next((event.prompt for event in run.events if isinstance(event, RunStarted)), "")


def _arguments(text: str) -> dict[str, Any] | str:
    found = _parsed(text)
    return found if isinstance(found, dict) else text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
