"""Sockets below `network`: waits that end when their allowance does, names that are looked up aside, requests that go out at once.

httpcore asks for these through its own interface of a network (`httpcore.NetworkBackend`). Nothing here knows HTTP, but for the one
thing that `rechunking` does to an answer on its way up.
"""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import httpcore

from nb_agent.rechunking import Chunks

__all__ = ["SHORTEST", "Allowance", "Backend", "NoSuchNameError"]

#: Seconds that a wait lasts at most before an interrupt is looked for.
_SLICE: Final = 0.2
SHORTEST: Final = 0.01  # seconds: a socket takes 0 for "do not wait"


class Allowance(float):
    """Seconds that a wait may last when it is given out, and what is left of them later."""

    ends: Callable[[], float]

    @classmethod
    def of(cls, ends: Callable[[], float], now: float) -> Allowance:
        """The allowance of a wait that ends at a time which is asked for again before each read."""
        this = cls(max(SHORTEST, ends() - now))
        this.ends = ends
        return this


class Backend(httpcore.SyncBackend):
    """Connects as httpcore does; a name is looked up where an interrupt can leave the wait for it."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first of a host's addresses that takes one."""
        fault: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in _addresses(host, port, timeout):
            try:
                return _Stream(super().connect_tcp(address, port, _left(timeout), local_address, socket_options))
            except httpcore.ConnectError as error:
                fault = error
        raise fault


class _Stream(httpcore.NetworkStream):
    """A socket whose waits end when their allowance does, and whose answers come in as few chunks as reads."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._chunks = Chunks()
        self._waiting: list[bytes] = []  # pieces of a request
        gathers = hasattr(socket.socket, "sendmsg") and inner.get_extra_info("ssl_object") is None
        self._plain: socket.socket | None = inner.get_extra_info("socket") if gathers else None
        self.close = inner.close  # type: ignore[method-assign]  # nothing to add
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]  # likewise

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._waiting:  # whoever wrote them ends nothing with an empty piece
            self._send(timeout)
        while read := self._read(max_bytes, timeout):
            if merged := self._chunks.merged(read):
                return merged
        return b""

    def _read(self, max_bytes: int, timeout: float | None) -> bytes:
        if not isinstance(timeout, Allowance):
            return self._inner.read(max_bytes, timeout)
        ends = timeout.ends()
        while True:
            left = ends - time.monotonic()
            try:
                return self._inner.read(max_bytes, max(SHORTEST, min(_SLICE, left)))
            except httpcore.ReadTimeout:
                if left <= _SLICE:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Pieces wait for the empty one with which httpcore ends a request: one call of the system, and the server wakes once."""
        if buffer:
            self._waiting.append(buffer)
        elif self._waiting:
            self._send(timeout)

    def _send(self, timeout: float | None) -> None:
        pieces, self._waiting, sent = self._waiting, [], 0
        self._chunks.begin()
        if self._plain is not None:
            with contextlib.suppress(OSError):  # what does not go at once, and every fault, is httpcore's
                self._plain.settimeout(0)
                sent = self._plain.sendmsg(pieces)
        if sent < sum(map(len, pieces)):
            self._inner.write(b"".join(pieces)[sent:], _left(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        with _cut_at_interrupt(self._inner.get_extra_info("socket")):
            return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))


@contextlib.contextmanager
def _cut_at_interrupt(plain: socket.socket) -> Iterator[None]:
    """Ends the connection where a handshake does not: an interrupt leaves it in a half-made object that the traceback keeps."""
    if isinstance(plain, ssl.SSLSocket):  # to a proxy; it has no twin
        yield
        return
    with plain.dup() as twin:
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                twin.shutdown(socket.SHUT_RDWR)
            raise


def _left(timeout: float | None) -> float | None:
    return max(SHORTEST, timeout.ends() - time.monotonic()) if isinstance(timeout, Allowance) else timeout


def _addresses(host: str, port: int, timeout: float | None) -> Iterable[str]:
    """The addresses of a host. The system's lookup cannot be interrupted, so a thread waits for it and may be left behind."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return [host]
    found: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))
        except OSError as error:
            found.put(error)

    try:
        threading.Thread(target=look_up, name="nb_agent lookup", daemon=True).start()
    except RuntimeError:  # no threads here
        look_up()
    return _awaited(found, host, timeout)


def _awaited(found: queue.SimpleQueue[list[str] | OSError], host: str, timeout: float | None) -> list[str]:
    while True:
        left = _left(timeout)
        try:
            outcome = found.get(timeout=_SLICE if left is None else min(_SLICE, left))
        except queue.Empty:
            if left is not None and left <= SHORTEST:
                raise httpcore.ConnectTimeout(f"the name {host} was not found in time") from None
            continue
        if isinstance(outcome, OSError):
            fault = httpcore.ConnectError if outcome.errno == socket.EAI_AGAIN else NoSuchNameError
            raise fault(f"{host}: {outcome.strerror or outcome}")
        return outcome


class NoSuchNameError(httpcore.ConnectError):
    """Nobody knows an address for the name; asking again would change nothing."""
