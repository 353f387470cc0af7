"""A socket to serve HTTP on, its address, and a server on it in a thread. What is served, `mock.server` and `mcp.serving` say."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from nb_agent.errors import SettingError

if TYPE_CHECKING:
    import uvicorn

__all__ = ["address", "in_thread", "listen"]

#: Seconds that a server has to end.
_LEAVE: Final = 5.0


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections already: whoever is told of it can connect, before the first request is read.

    Raises:
        SettingError: the port is none, or is not free.
    """
    if not 0 <= port <= 65535:
        raise SettingError(f"cannot listen on port {port}; a port is a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        reason = "it is in use; choose another with --port, or 0 for a free one" if taken else error
        raise SettingError(f"cannot listen on {host} port {port}: {reason}") from None


def address(listener: socket.socket) -> str:
    """The URL of what listens there."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def in_thread(server: uvicorn.Server, listener: socket.socket, name: str) -> Iterator[None]:
    """The server runs in a thread of this name until the block ends."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_LEAVE)
