"""How a person is asked while a cell runs in a notebook: by the inspector's buttons, else by a line to type, else not at all.

Buttons are for a page that has said hello during this run, since only then do clicks arrive. A line is asked for where the front
end takes one. It is never both: a line that was asked for and left locks the notebook. An answer carries the id of its question, is
used once, and is dropped when it comes late. Time alone never makes a yes.
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from nb_agent.errors import AgentError
from nb_agent.values import JSON
from nb_agent.views.asking import by_typing
from nb_agent.views.fold import Change
from nb_agent.views.pump import Pump

__all__ = ["Desk", "takes_answers"]

#: Seconds that a page has to say hello, from when it was given something to show.
_GREETING: Final = 2.0
#: Seconds between two looks at what has come.
_LOOK: Final = 0.05


class Desk:
    """Asks the person who watches one run.

    Args:
        kernel: of this notebook.
        show: sends changes of the state to the page.
        greeted: whether the page has said hello.
        most_seconds: how long an answer by a button is waited for; ``None`` for as long as it takes.
    """

    def __init__(
        self, kernel: Any, show: Callable[[list[Change]], None], greeted: Callable[[], bool], most_seconds: float | None = None
    ) -> None:
        self._kernel = kernel
        self._show = show
        self._greeted = greeted
        self._most_seconds = most_seconds
        self._began = time.monotonic()
        self._pump: Pump | None = None
        self._lock = threading.Lock()  # an answer may come in another thread than the one that asks
        self._open = ""  # id of the question that is open
        self._said: queue.SimpleQueue[JSON] = queue.SimpleQueue()  # each question's own: what comes too late answers no other
        self._take: Callable[[JSON], None] | None = None
        self._question: JSON = {}

    def ask(self, question: JSON) -> JSON | None:
        """What the person says; ``None`` where nobody can be asked.

        Raises:
            KeyboardInterrupt: they interrupted instead.
        """
        if not takes_answers(self._kernel):
            return None
        self._pump = self._pump or Pump.of(self._kernel)
        if not self._waited_for(self._greeted, self._began + _GREETING - time.monotonic()):
            return by_typing(question)
        self._set(question)
        said = self._said
        try:
            self._waited_for(lambda: not said.empty(), self._most_seconds)
            return None if said.empty() else said.get()
        finally:
            self._set(None)

    def wait(self, question: JSON | None, take: Callable[[JSON], None]) -> None:
        """Show a question that stays open when the cell has ended; ``take`` gets the answer. ``None`` closes it."""
        self._set(question, take)

    def answer(self, message: JSON) -> None:
        """Take what came from the page, in whichever thread it did; what is for no open question is dropped."""
        with self._lock:
            if not self._is_open(message):
                return
            if self._take is None:
                self._open = ""
                self._said.put(message)
                return
        loop = getattr(self._kernel, "io_loop", None)
        if loop is None:
            self._taken(message)
        else:
            loop.add_callback(self._taken, message)  # the run goes on in the main thread

    def close(self) -> None:
        """Ask no more; what was kept back for it goes its way."""
        self._open = ""
        if self._pump is not None:
            self._pump.close()
            self._pump = None

    def _is_open(self, message: JSON) -> bool:
        return bool(self._open) and message.get("id") == self._open

    def _taken(self, message: JSON) -> None:
        with self._lock:
            if not self._is_open(message):
                return  # another click, or a cell that was run meanwhile, was quicker
            self._open = ""
            question, take = self._question, self._take
        try:
            if take is not None:
                take(message)
        except AgentError as error:
            if not self._open:  # the run still waits, and says why
                self._set({**question, "problem": str(error)}, take)

    def _set(self, question: JSON | None, take: Callable[[JSON], None] | None = None) -> None:
        with self._lock:
            self._open = "" if question is None else secrets.token_hex(8)
            self._question, self._take, self._said = question or {}, take, queue.SimpleQueue()
        self._show([["set", ["question"], None if question is None else {**question, "id": self._open}]])

    def _waited_for(self, arrived: Callable[[], bool], seconds: float | None) -> bool:
        """Whether it has come, after so many seconds at most."""
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            if self._pump is not None:
                self._pump.poll()
            if arrived():
                return True
            if ends is not None and time.monotonic() >= ends:
                return False
            time.sleep(_LOOK)


def takes_answers(kernel: Any) -> bool:
    """Whether a person sits in front of a kernel: batch runs say that no line can be typed."""
    try:
        return bool(kernel.get_parent("shell")["content"].get("allow_stdin"))
    except (AttributeError, KeyError, TypeError, LookupError):
        return True  # asking will show
