"""What a tool prints and displays while it runs, kept for its own call, also where several tools run side by side.

One router stands in for ``sys.stdout`` and one for ``sys.stderr`` while anything is captured; the context of whoever writes decides
where it goes, and everything of others goes on to the stream behind. Unlike `contextlib.redirect_stdout`, no thread takes away the
output of another. Threads that a tool starts in a context of their own, handlers that hold the old stream, and what a child process
writes to the file itself pass through.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from nb_agent.messages import Image
from nb_agent.tools.bundles import words_in
from nb_agent.tools.pictures import UnreadableError, fitting, picture_in

__all__ = ["MOST_CHARACTERS", "MOST_PICTURES", "Capture", "Shown", "captured"]

#: Characters that are kept of what one call prints, half of them from its end.
MOST_CHARACTERS: Final = 100_000
#: Pictures that are kept of one call.
MOST_PICTURES: Final = 20

#: Opens something that passes on what is displayed, as mappings of media types.
Shown: TypeAlias = Callable[[Callable[[Mapping[str, Any]], None]], AbstractContextManager[object]]


class Capture:
    """What one call has printed and displayed so far. It may be written to by several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer may print while something is being written
        self._start: list[str] = []
        self._end: deque[str] = deque()
        self._free, self._ends, self._length = MOST_CHARACTERS // 2, 0, 0
        self._pictures: list[Image] = []

    @property
    def text(self) -> str:
        """The printed text; of a very long one the start and the end, with the whole length said between."""
        with self._lock:
            start, end = "".join(self._start), "".join(self._end)
            left = self._length - len(start) - len(end)
        end = end[max(0, len(end) - MOST_CHARACTERS // 2) :] if left else end
        left = self._length - len(start) - len(end)
        note = f"\n[… {left:,} of {self._length:,} characters are left out here …]\n" if left else ""
        return _settled(f"{start}{note}{end}")

    @property
    def pictures(self) -> tuple[Image, ...]:
        """What it displayed that can be seen."""
        return tuple(self._pictures)

    def write(self, text: str) -> int:
        """Add what was printed."""
        with self._lock:
            self._length += len(text)
            first, rest = text[: self._free], text[self._free :]
            if first:
                self._start.append(first)
                self._free -= len(first)
            if rest:
                rest = rest[-MOST_CHARACTERS:]
                self._end.append(rest)
                self._ends += len(rest)
            while self._ends - len(self._end[0] if self._end else "") > MOST_CHARACTERS // 2:
                self._ends -= len(self._end.popleft())
        return len(text)

    def show(self, bundle: Mapping[str, Any]) -> None:
        """Add what was displayed: a picture where it has one, else its words as if they were printed."""
        picture = picture_in(bundle)
        if picture is None:
            words = words_in(bundle) or str(bundle.get("text/plain") or "")
            self.write(f"{words}\n" if words else "")
        elif len(self._pictures) < MOST_PICTURES:
            try:
                self._pictures.append(fitting(picture)[0])
            except UnreadableError as error:
                self.write(f"(a picture that cannot be shown: {error})\n")
        else:
            self.write("(one more picture)\n")


def _settled(text: str) -> str:
    """A text as a terminal would show it in the end: a progress bar writes over its own line."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")) if "\r" in text else text


#: The capture of whoever runs in this context.
_current: ContextVar[Capture | None] = ContextVar("capture", default=None)


class _Router:
    """In the place of a stream: passes on what belongs to no capture, and answers all questions like the stream behind."""

    def __init__(self, behind: Any) -> None:
        self.behind = behind
        self.captures = 0

    def write(self, text: str) -> Any:
        capture = _current.get()
        if capture is None:
            return len(text) if self.behind is None else self.behind.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return capture.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _current.get() is None and self.behind is not None:
            self.behind.flush()

    def isatty(self) -> bool:
        return _current.get() is None and self.behind is not None and self.behind.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


_STREAMS: Final = ("stdout", "stderr")
_lock = threading.Lock()


def _route() -> list[_Router]:
    """Put routers in the place of the streams, where there are none yet."""
    routers: list[_Router] = []
    with _lock:
        for name in _STREAMS:
            stream = getattr(sys, name)
            router = stream if isinstance(stream, _Router) else _Router(stream)
            router.captures += 1
            routers.append(router)
            setattr(sys, name, router)
    return routers


def _restore(routers: list[_Router]) -> None:
    """Take away the routers that no other capture uses; a stream that somebody else has put there stays."""
    with _lock:
        for name, router in zip(_STREAMS, routers, strict=True):
            router.captures -= 1
            if not router.captures and getattr(sys, name) is router:
                setattr(sys, name, router.behind)


@contextmanager
def captured(shown: Shown | None = None) -> Iterator[Capture]:
    """Capture what is printed in this context, until the block ends. A capture inside another one takes its own part.

    Args:
        shown: captures what is displayed, too (see `views.outputs.shown_by_tool`).
    """
    capture = Capture()
    token = _current.set(capture)
    try:
        routers = _route()
        try:
            with nullcontext() if shown is None else shown(capture.show):
                yield capture
        finally:
            _restore(routers)
    finally:
        _current.reset(token)
