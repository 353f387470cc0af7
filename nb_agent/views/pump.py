"""Lets clicks through while a cell keeps the kernel's main thread: comm messages are handled, everything else waits for its turn.

A kernel reads one message at a time, and the cell is one. While a person is asked, this reads the main shell's own socket in the
main thread, hands comm messages to their widgets, and keeps the rest (queued cells, completions) to be given back in their order
when the cell has ended. It uses names that ipykernel does not promise, seen to work from 6.31 to 7.4; where they are gone, there is
no pump, and the person is asked in another way.
"""

from __future__ import annotations

import threading
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
        self._kept: list[Any] = []

    @classmethod
    def of(cls, kernel: Any) -> Pump | None:
        """A pump for this kernel; ``None`` where there is no way, or where another thread than its main one would use it."""
        if kernel is None or threading.current_thread() is not threading.main_thread():
            return None
        try:
            thread = getattr(kernel, "shell_channel_thread", None)
            if thread is None:  # ipykernel 6: the socket is the main thread's own
                return cls(kernel, kernel.shell_stream.socket, lambda kept: kernel.schedule_dispatch(kernel.dispatch_shell, kept))
            pair = thread.manager.get_shell_channel_to_subshell_pair(None)  # 7: another thread reads, and passes on
            return cls(kernel, pair.to_socket, lambda kept: kernel.io_loop.add_callback(kernel.shell_main, None, kept))
        except (AttributeError, TypeError):
            return None

    def poll(self) -> None:
        """Handle the comm messages that have come, and keep the others."""
        import zmq  # noqa: PLC0415  there is a kernel, so it is there

        while True:
            try:
                message = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.ZMQError:
                return
            if not self._handled(message):
                self._kept.append(message)

    def _handled(self, message: Any) -> bool:
        if len(message) == 1:  # ipykernel's own sign to itself
            return False
        session = self._kernel.session
        identities, frames = session.feed_identities(message, copy=False)
        kind = session.unpack(frames[1].bytes)["msg_type"]
        if kind not in _COMMS:
            return False  # reading it whole would use up its signature
        told = session.deserialize(frames, content=True, copy=False)
        self._kernel._publish_status("busy", "shell", parent=told)  # noqa: SLF001  as the kernel itself does around a message
        try:
            getattr(self._kernel.comm_manager, kind)(None, identities, told)
        finally:
            self._kernel._publish_status("idle", "shell", parent=told)  # noqa: SLF001
        return True

    def close(self) -> None:
        """Give back what was kept, in its order. It runs when the cell has ended."""
        kept, self._kept = self._kept, []
        for message in kept:
            self._queued(message)
