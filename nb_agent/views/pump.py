"""Lets clicks through while a cell keeps the kernel's main thread: comm messages are handled, everything else waits for its turn.

A kernel reads one message at a time, and the cell is one. While a person is asked, this reads the main shell's own socket in the
main thread, hands comm messages to their widgets, and keeps the rest (queued cells, completions) to be given back in their order
when the cell has ended. It uses names that ipykernel does not promise, seen to work from 6.31 to 7.4; where they are gone or take
something else, there is no pump, and the person is asked in another way.
"""

from __future__ import annotations

import inspect
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["Pump"]

_COMMS: Final = frozenset({"comm_open", "comm_msg", "comm_close"})


class Pump:
    """Reads the main shell's socket of a kernel.

    Args:
        kernel: an ipykernel.
        socket: where the main shell's messages come.
        queued: has the kernel do something with a message when the cell has ended.
    """

    def __init__(self, kernel: Any, socket: Any, queued: Any) -> None:
        self._kernel = kernel
        self._socket = socket
        self._queued = queued
        self._comms: deque[Any] = deque()
        self._kept: deque[Any] = deque()

    @classmethod
    def of(cls, kernel: Any) -> Pump | None:
        """A pump for this kernel; ``None`` where there is no way, or where another thread than its main one would use it."""
        if kernel is None or threading.current_thread() is not threading.main_thread():
            return None
        try:
            inspect.signature(kernel._publish_status).bind("busy", "shell", parent={})  # noqa: SLF001  as it is called below
            for name in _COMMS:
                getattr(kernel.comm_manager, name)
            thread = getattr(kernel, "shell_channel_thread", None)
            if thread is None:  # ipykernel 6: the socket is the main thread's own
                inspect.signature(kernel.schedule_dispatch).bind(kernel.dispatch_shell, [])
                return cls(kernel, kernel.shell_stream.socket, lambda kept: kernel.schedule_dispatch(kernel.dispatch_shell, kept))
            inspect.signature(kernel.shell_main).bind(None, [])
            pair = thread.manager.get_shell_channel_to_subshell_pair(None)  # 7: another thread reads, and passes on
            return cls(kernel, pair.to_socket, lambda kept: kernel.io_loop.add_callback(kernel.shell_main, None, kept))
        except (AttributeError, TypeError):
            return None

    def poll(self) -> None:
        """Handle the comm messages that have come, and keep the others.

        Raises:
            KeyboardInterrupt: after reading, so that no message is lost by it.
        """
        with _held_interrupts():
            self._read()
        while self._comms:
            self._dispatch(self._comms.popleft())

    def _read(self) -> None:
        import zmq  # noqa: PLC0415  there is a kernel, so it is there

        while True:
            try:
                message = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.ZMQError:
                return
            (self._comms if self._kind(message) in _COMMS else self._kept).append(message)

    def _kind(self, message: Any) -> str:
        """The type of a message, read no further: reading it whole would use up its signature. The kernel judges what it is not."""
        if len(message) == 1:  # ipykernel's own sign to itself
            return ""
        try:
            frames = self._kernel.session.feed_identities(message, copy=False)[1]
            return str(self._kernel.session.unpack(frames[1].bytes)["msg_type"])
        except (LookupError, TypeError, ValueError):
            return ""

    def _dispatch(self, message: Any) -> None:
        session, publish = self._kernel.session, self._kernel._publish_status  # noqa: SLF001  as the kernel itself does
        identities, frames = session.feed_identities(message, copy=False)
        try:
            told = session.deserialize(frames, content=True, copy=False)
        except (LookupError, TypeError, ValueError):  # not signed by this notebook, or broken
            self._kernel.log.warning("A message for a widget could not be read", exc_info=True)
            return
        publish("busy", "shell", parent=told)
        try:
            getattr(self._kernel.comm_manager, told["msg_type"])(None, identities, told)
        except Exception:  # any widget of the notebook may have sent it, and its faults are not the run's
            self._kernel.log.exception("A message for a widget could not be used")
        finally:
            publish("idle", "shell", parent=told)

    def close(self) -> None:
        """Give back what was kept, in its order. It runs when the cell has ended."""
        for messages in (self._comms, self._kept):
            while messages:
                self._queued(messages.popleft())


@contextmanager
def _held_interrupts() -> Iterator[None]:
    """An interrupt takes effect at the end: between the frames of a message it would lose them, and a queued cell with them."""
    came: list[Any] = []
    usual = signal.getsignal(signal.SIGINT)
    if not callable(usual):  # interrupts do not reach Python here
        yield
        return
    signal.signal(signal.SIGINT, lambda *told: came.append(told))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            usual(*came[0])
