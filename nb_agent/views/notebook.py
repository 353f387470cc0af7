"""Shows a run where a person watches: the live inspector in a notebook, lines of text in a terminal, nothing in a script.

When the run ends, the inspector in the output is replaced by what `saved` makes of the run, so that the saved notebook needs no
widget and no kernel. All display is done here, in the thread that pulls the run.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, Protocol

from nb_agent import events
from nb_agent.values import JSON, dumps
from nb_agent.views import text
from nb_agent.views.asking import by_typing
from nb_agent.views.fold import Change, Fold, change_state
from nb_agent.views.questions import Desk, takes_answers
from nb_agent.views.saved import saved

__all__ = ["View", "opened", "show", "shown_here", "somebody"]

#: Seconds between two messages to the inspector while a reply streams: every message costs the page a redraw.
_PAUSE: Final = 1 / 15
#: Messages and bytes a second that a page gets at most, where a run goes faster than anybody could follow.
_MOST_MESSAGES: Final = 80
_MOST_BYTES: Final = 400_000

_shown: list[tuple[weakref.ref[Any], int]] = []  # the run that was shown last, and in which cell


class View(Protocol):
    """Where a person watches runs, one after the other: a run, and the branches of it."""

    def begin(self, run: object, fold: Fold) -> None:
        """Show another run from here on. ``run`` is what `shown_here` will be asked about."""

    def observe(self, event: events.Event) -> None:
        """Show an event."""

    def ask(self, question: JSON) -> JSON | None:
        """Ask the person (see `stepping`); ``None`` where nobody can be asked."""

    def wait(self, question: JSON | None, take: Callable[[JSON], None]) -> None:
        """Show that the run waits for an answer, which ``take`` is called with; or that it goes on."""

    def close(self) -> None:
        """Leave what is to be kept."""


def opened(*, shown: bool = True, most_seconds: float | None = None) -> View:
    """A view for this place: the inspector in a notebook, lines in a terminal, nothing in a script or where it is not ``shown``.

    In a notebook an answer by a button is waited for ``most_seconds`` at most.
    """
    shell = _shell()
    if shell is None or not shown:
        return _Unseen()
    return _Live(shell, most_seconds) if _has_kernel(shell) else _Lines(shell)


def somebody() -> bool:
    """Whether there may be a person to ask: a front end that takes answers, or a terminal."""
    shell = _shell()
    return takes_answers(shell.kernel) if shell is not None and _has_kernel(shell) else sys.stdin is not None and sys.stdin.isatty()


def shown_here(run: object) -> bool:
    """Whether the cell that is being executed has shown this run already."""
    shell = _shell()
    return bool(_shown) and _shown[0][0]() is run and shell is not None and _shown[0][1] == shell.execution_count


def show(state: JSON) -> None:
    """Show a run that has ended, as it is saved."""
    shell = _shell()
    if shell is None or not _has_kernel(shell):
        sys.stdout.write(text.text(state) + "\n")
        return
    from IPython.display import display  # noqa: PLC0415  there is a shell, so it is there

    display(saved(state), raw=True)  # type: ignore[no-untyped-call]  # IPython leaves it untyped


def _note(run: object, shell: Any) -> None:
    _shown[:] = [(weakref.ref(run), shell.execution_count)]


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _has_kernel(shell: Any) -> bool:
    return getattr(shell, "kernel", None) is not None


class _Unseen:
    """Shows nothing; at a terminal a person can still be asked."""

    def begin(self, run: object, fold: Fold) -> None:
        pass

    def observe(self, event: events.Event) -> None:
        pass

    def ask(self, question: JSON) -> JSON | None:
        return by_typing(question)

    def wait(self, question: JSON | None, take: Callable[[JSON], None]) -> None:
        pass

    def close(self) -> None:
        pass


class _Pace:
    """How much may be sent to a page: so many messages and bytes a second in the long run, and that much at once."""

    def __init__(self) -> None:
        self._messages, self._bytes, self._seen = float(_MOST_MESSAGES), float(_MOST_BYTES), time.monotonic()

    def allows(self, now: float) -> bool:
        """Whether anything may be sent now."""
        passed, self._seen = now - self._seen, now
        self._messages = min(_MOST_MESSAGES, self._messages + passed * _MOST_MESSAGES)
        self._bytes = min(_MOST_BYTES, self._bytes + passed * _MOST_BYTES)
        return self._messages >= 1 and self._bytes > 0

    def taken(self, changes: list[Change], *, whole: bool) -> int:
        """How many of these go into the next message, of which note is taken: all of them, or as many as may be sent at once."""
        size = count = 0
        while count < len(changes) and (whole or not size or size < _MOST_BYTES / 2):
            size += len(dumps(changes[count]))
            count += 1
        self._messages -= 1
        self._bytes -= size
        return count


class _Live:
    """The inspector in the cell's output."""

    def __init__(self, shell: Any, most_seconds: float | None) -> None:
        self._shell = shell
        self._most_seconds = most_seconds
        self._fold = Fold()
        self._widget: Any = None
        self._handle: Any = None
        self._desk: Any = None
        self._waiting: list[Change] = []
        self._sent = 0.0
        self._pace = _Pace()

    def begin(self, run: object, fold: Fold) -> None:
        _note(run, self._shell)
        self._fold = fold
        if self._widget is not None:
            self._waiting = [["set", [key], value] for key, value in fold.state.items()]
            return
        from IPython.display import display  # noqa: PLC0415

        from nb_agent.views.widget import Inspector  # noqa: PLC0415  anywidget costs 0.2 s and only a kernel needs it

        self._widget = Inspector(state=fold.state)
        self._desk = Desk(self._shell.kernel, self._tell, lambda: self._widget.greeted, self._most_seconds)
        self._widget.answered = self._desk.answer
        self._handle = display(self._widget, display_id=True)  # type: ignore[no-untyped-call]  # likewise

    def observe(self, event: events.Event) -> None:
        self._waiting += self._fold.apply(event)
        now = time.monotonic()
        if (not isinstance(event, events.Delta) or now - self._sent >= _PAUSE) and self._pace.allows(now):
            self._send()

    def ask(self, question: JSON) -> JSON | None:
        self._send()
        said: JSON | None = self._desk.ask(question)
        return said

    def wait(self, question: JSON | None, take: Callable[[JSON], None]) -> None:
        self._desk.wait(question, take)

    def _tell(self, changes: list[Change]) -> None:
        change_state(self._fold.state, changes)
        self._waiting += changes
        self._send(whole=True)

    def _send(self, *, whole: bool = False) -> None:
        if self._waiting:
            self._sent = time.monotonic()
            count = self._pace.taken(self._waiting, whole=whole)
            self._widget.apply(self._waiting[:count])
            del self._waiting[:count]

    def close(self) -> None:
        self._desk.close()  # what was not sent to the inspector yet is in what takes its place
        self._handle.update(saved(self._fold.state), raw=True)
        self._widget.close()


class _Lines:
    """Text as it comes, for a terminal."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._in_line = False
        self._aside = False  # what comes is a summary, and no answer

    def begin(self, run: object, fold: Fold) -> None:
        del fold
        self.close()
        _note(run, self._shell)

    def ask(self, question: JSON) -> JSON | None:
        self.close()
        return by_typing(question)

    def wait(self, question: JSON | None, take: Callable[[JSON], None]) -> None:
        del take  # whoever holds the run answers, in a later cell
        if question is not None:
            self._say(f"[waits at {question['title']}; say {', '.join(question['choices'])}]")

    def observe(self, event: events.Event) -> None:
        if isinstance(event, events.RequestReady):
            self._aside = bool(event.purpose)
        elif isinstance(event, events.Delta | events.ReplyDone):
            if not self._aside:
                self._write(self._spoken(event))
        elif words := _line(event):
            self._say(words)

    def _spoken(self, event: events.Delta | events.ReplyDone) -> str:
        """What is new of the answer; of a whole reply its text, where it did not come piece by piece."""
        if isinstance(event, events.ReplyDone):
            return "" if self._in_line else event.reply.message.text
        return "".join(piece.text for piece in event.pieces if piece.kind == "text" and not piece.choice)

    def _write(self, words: str) -> None:
        if words:
            sys.stdout.write(words)
            sys.stdout.flush()
            self._in_line = True

    def _say(self, words: str) -> None:
        self.close()
        sys.stdout.write(words + "\n")

    def close(self) -> None:
        if self._in_line:
            sys.stdout.write("\n")
            self._in_line = False


def _line(event: events.Event) -> str:
    """The line of a terminal that an event gets, where it gets one."""
    line = ""
    match event:
        case events.RunStarted(mock=True):
            line = f"[mock model {event.model}]"
        case events.Compacted():
            line = f"[{text.compacted(asdict(event))}]"
        case events.Retrying():
            line = f"[{text.waited(asdict(event))}]"
        case events.ToolAsked():
            line = f"→ {event.call.name}({event.call.arguments})"
        case events.ToolDone():
            words = " ".join(event.result.text.split())
            line = f"{'✗' if event.result.failed else '←'} {words[:200]}{' …' if len(words) > 200 else ''}"
        case events.RunEnded() if event.reason != "stop":
            line = f"[{event.reason}: {events.ENDINGS[event.reason]}]"
    return line
