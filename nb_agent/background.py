"""One event loop in one thread, behind a blocking call: coroutine tools and MCP connections live on it.

Unlike `asyncio.run` it works where a loop is running already, as in every notebook, and a task started in one cell is still there
in the next.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextvars import ContextVar
from typing import Any, TypeVar

__all__ = ["LeftBehindError", "left_behind", "run", "start", "stop"]

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None

#: Set in a thread's context by whoever may have to leave it behind: when the event comes, a `run` in it cancels its coroutine.
left_behind: ContextVar[threading.Event | None] = ContextVar("left_behind", default=None)

#: Seconds between two looks at a future: a wait without end could not be interrupted on Windows.
_LOOK = 0.1
#: Seconds that tasks are given to end when the loop stops.
_LEAVE = 3.0


class LeftBehindError(Exception):
    """Nobody waits for this thread any more."""


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Begin a coroutine on the background loop, and come back at once."""
    global _loop, _thread  # noqa: PLW0603  one loop for the process is the point of this module
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="nb_agent background", daemon=True)
            _thread.start()
            atexit.register(stop)
        return asyncio.run_coroutine_threadsafe(coroutine, _loop)


def run(coroutine: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """The coroutine's result; an interrupt or the time limit cancels it.

    Raises:
        TimeoutError: it took longer than ``timeout`` seconds.
        LeftBehindError: the thread was left behind (see `left_behind`).
    """
    future = start(coroutine)
    left = left_behind.get()
    ends = math.inf if timeout is None else time.monotonic() + timeout
    try:
        while not wait([future], min(_LOOK, max(0.0, ends - time.monotonic()))).done:
            if time.monotonic() >= ends:
                raise TimeoutError(f"no result after {timeout:g} s")
            if left is not None and left.is_set():
                raise LeftBehindError
        return future.result()
    finally:
        future.cancel()  # does nothing where it is done


def stop() -> None:
    """Cancel what still runs on the loop, give it a moment to end, and end the thread. A later `start` begins anew."""
    global _loop, _thread
    with _lock:
        loop, thread, _loop, _thread = _loop, _thread, None, None
    if loop is None or thread is None:
        return
    atexit.unregister(stop)
    leaving = asyncio.run_coroutine_threadsafe(_leave(), loop)
    wait([leaving], _LEAVE + _LOOK)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_LEAVE)
    if not thread.is_alive():
        loop.close()


async def _leave() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_LEAVE)
