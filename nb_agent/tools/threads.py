"""Daemon threads for jobs that belong together, in copies of the context of whoever begins them.

Unlike `concurrent.futures`, nobody waits for them when something else matters: an interrupt or a time limit leaves them behind, and
the process can end while they run; what they wait for on the background loop is cancelled. Where threads cannot be had, the jobs
run one after the other. Nothing here knows a tool.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from nb_agent.background import left_behind

__all__ = ["Threads"]

T = TypeVar("T")

#: Seconds between two calls of ``idle``; an untimed wait could not be interrupted on Windows.
_LOOK: Final = 0.05


@dataclass(eq=False, slots=True)
class _Job(Generic[T]):
    place: int
    run: Callable[[], T]
    seconds: float | None
    context: contextvars.Context = field(default_factory=contextvars.copy_context)  # it carries where print and display go
    left: threading.Event = field(default_factory=threading.Event)
    began: float | None = None

    def __post_init__(self) -> None:
        self.context.run(left_behind.set, self.left)


class Threads(Generic[T]):
    """Runs jobs side by side.

    Args:
        most: threads at the same time.
        clock: gives seconds.
    """

    def __init__(self, *, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._waiting: deque[_Job[T]] = deque()
        self._open: dict[int, _Job[T]] = {}
        self._results: queue.SimpleQueue[tuple[int, T | BaseException]] = queue.SimpleQueue()

    def begin(self, jobs: Sequence[tuple[Callable[[], T], float | None]]) -> None:
        """Start as many threads as there are jobs, within the limit. With each job stands its time limit, in seconds."""
        self._open = {place: _Job(place, run, seconds) for place, (run, seconds) in enumerate(jobs)}
        self._waiting.extend(self._open.values())
        for _ in jobs[: self._most]:
            self._start()

    def ended(self, idle: Callable[[], None] | None = None) -> Iterator[tuple[int, T | None]]:
        """Each job's place and what it gave, as it ends; ``None`` for one that took too long.

        Args:
            idle: called about every 50 ms while there is nothing to report.

        Raises:
            BaseException: what a job raised.
        """
        while self._open:
            try:
                place, outcome = self._results.get(timeout=_LOOK)
            except queue.Empty:
                if idle is not None:
                    idle()
                for late in self._late():
                    yield late, None
                continue
            if self._open.pop(place, None) is None:
                continue  # it was given up before
            if isinstance(outcome, BaseException):
                raise outcome
            yield place, outcome

    def leave(self) -> None:
        """Begin nothing more, and wait for nothing."""
        self._waiting.clear()
        for job in self._open.values():
            job.left.set()
        self._open = {}

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="nb_agent tool", daemon=True).start()
        except RuntimeError:  # no threads here, as in Pyodide
            self._work()

    def _work(self) -> None:
        while True:
            try:
                job = self._waiting.popleft()
            except IndexError:
                return
            job.began = self._clock()
            try:
                self._results.put((job.place, job.context.run(job.run)))
            except BaseException as error:  # noqa: BLE001  raised again by whoever waits
                self._results.put((job.place, error))

    def _late(self) -> list[int]:
        now = self._clock()
        late = [
            place
            for place, job in self._open.items()
            if job.began is not None and job.seconds is not None and now - job.began >= job.seconds
        ]
        for place in late:
            self._open.pop(place).left.set()
            if self._waiting:
                self._start()  # the other thread may never be free again
        return late
