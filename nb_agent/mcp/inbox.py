"""Questions of servers on their way from the background loop to the thread of a cell, which alone may ask a person.

Unlike `views.questions`, which shows one, this knows no front end: whoever waits in the cell's thread calls `Inbox.serve`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Final, TypeAlias, TypeVar

from nb_agent.values import JSON

__all__ = ["Asking", "Inbox"]

T = TypeVar("T")

#: Puts a question to a person. Gives what they say, or ``None`` where there is nobody (see `views.asking.Asking`).
Asking: TypeAlias = Callable[[JSON], JSON | None]

_LOOK: Final = 0.05  # seconds between two looks at whether a question has come


class Inbox:
    """Questions that come on the background loop, answered in the thread of a cell, one after the other.

    Outside `open` nobody is there: each question has ``None`` for its answer at once. Inside, somebody has to call `serve` again
    and again, or a call waits until it is interrupted: no time passes for it while it asks.
    """

    def __init__(self) -> None:
        self._asking: Asking | None = None
        self._waiting: queue.SimpleQueue[tuple[JSON, Callable[[JSON | None], None]]] = queue.SimpleQueue()

    @contextmanager
    def open(self, asking: Asking | None) -> Iterator[None]:
        """Inside, questions are put to ``asking`` by whoever calls `serve`."""
        before, self._asking = self._asking, asking
        try:
            yield
        finally:
            self._asking = before
            if before is None:
                self.serve()

    async def ask(self, question: JSON) -> JSON | None:
        """What the person says; on the background loop."""
        if self._nobody():
            return None
        loop = asyncio.get_running_loop()
        said: asyncio.Future[JSON | None] = loop.create_future()

        def arrive(words: JSON | None) -> None:
            if not said.done():  # the call may have been cancelled meanwhile
                said.set_result(words)

        def answer(words: JSON | None) -> None:
            with suppress(RuntimeError):  # the loop has gone
                loop.call_soon_threadsafe(arrive, words)

        self._waiting.put((question, answer))
        if self._nobody():  # whoever was there has left meanwhile, and serves no more
            self.serve()
        return await said

    def _nobody(self) -> bool:
        return self._asking is None

    def serve(self) -> None:
        """Put the questions that wait to the person, in the thread that this is called in; come back when none is left."""
        while True:
            try:
                question, answer = self._waiting.get_nowait()
            except queue.Empty:
                return
            words = None
            try:
                words = None if self._asking is None else self._asking(question)
            finally:
                answer(words)  # an interrupt is no answer, and goes on to the cell

    def during(self, act: Callable[[], T]) -> T:
        """What ``act`` gives, carried out in another thread while this one serves: for a call made from a cell."""
        came: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                came.put((act(), None))
            except BaseException as error:  # noqa: BLE001  raised again below, in the thread that waits
                came.put((None, error))

        threading.Thread(target=copy_context().run, args=(work,), daemon=True, name="nb_agent MCP call").start()
        while True:
            self.serve()
            with suppress(queue.Empty):
                result, error = came.get(timeout=_LOOK)
                if error is not None:
                    raise error
                return result  # type: ignore[return-value]  # there is a result where there is no error
