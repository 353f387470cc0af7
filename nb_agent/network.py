"""Sockets below `transport`: one pooled httpx client, time limits that are kept to the moment, and their errors in one vocabulary.

httpx counts a time limit anew for each read and fixes it before the first one, so a run's own limit would be passed by a minute.
Here the number that httpx carries down to the socket knows when its wait ends (`Allowance`). Waits are cut into slices and names
are looked up in a thread, so that an interrupt ends each of them on every system. Imports httpx: `transport` imports it late.
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import math
import os
import queue
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import httpcore
import httpx

from nb_agent.errors import ProviderError, TimeLimitError
from nb_agent.rechunking import Chunks
from nb_agent.retrying import Waits

__all__ = ["Watch", "body_of", "broken", "pooled", "request_for", "time_is_up"]

#: Seconds that a wait lasts at most before an interrupt is looked for.
_SLICE: Final = 0.2
_SHORTEST: Final = 0.01  # seconds: a socket takes 0 for "do not wait"
_KEPT: Final = 30.0  # seconds that an unused connection is kept: a notebook's next round or cell


class Allowance(float):
    """Seconds that a wait may last when it is given out, and what is left of them later."""

    ends: Callable[[], float]

    @classmethod
    def of(cls, ends: Callable[[], float], now: float) -> Allowance:
        """The allowance of a wait that ends at a time which is asked for again before each read."""
        this = cls(max(_SHORTEST, ends() - now))
        this.ends = ends
        return this


@dataclass
class Watch:
    """The clock of one attempt. ``until`` is when the run ends, ``heard`` whether a byte of the answer has come."""

    waits: Waits
    until: float = math.inf
    clock: Callable[[], float] = time.monotonic
    heard: bool = False
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def limits(self) -> dict[str, float]:
        """The limits in the form that httpx carries to the socket."""
        connect, read, write = (Allowance.of(ends, self.began) for ends in (self._connected, self._read, self._written))
        return {"connect": connect, "read": read, "write": write, "pool": connect}

    def _connected(self) -> float:
        return min(self.began + self.waits.connect, self.until)

    def _read(self) -> float:
        return min(self.clock() + self.waits.stall if self.heard else self.began + self.waits.first_byte, self.until)

    def _written(self) -> float:
        return min(self.clock() + self.waits.stall, self.until)

    def run_is_over(self) -> bool:
        """Whether the run's own limit has passed."""
        return self.clock() >= self.until - _SHORTEST

    def waited(self) -> float:
        """Seconds since the attempt began."""
        return self.clock() - self.began


def broken(error: Exception, watch: Watch, server: str) -> ProviderError:
    """The error that one of httpx's stands for: which limit has passed and how long it was, or what has failed.

    ``server`` is the address as it may be shown.
    """
    if isinstance(error, httpx.TimeoutException):
        return time_is_up(watch, server) if watch.run_is_over() else _too_late(error, watch, server)
    words = str(error) or type(error).__name__
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return ProviderError(f"the request to {server} cannot be sent ({words}); check base_url", kind="bad_request")
    if isinstance(error, httpx.DecodingError):
        return ProviderError(f"the answer of {server} cannot be unpacked ({words})", kind="protocol")
    if watch.heard:
        return ProviderError(
            f"the connection to {server} broke off in the middle of the answer ({words})", kind="stream_interrupted"
        )
    return _unreachable(error, words, server)


def time_is_up(watch: Watch, server: str) -> TimeLimitError:
    """The error for a run whose own limit has passed during this attempt."""
    return TimeLimitError(f"the time limit of the run passed after {server} had been waited for {watch.waited():.1f} s")


def body_of(response: httpx.Response, most: int) -> bytes:
    """The body of an error answer, as far as it comes and no more than so many bytes: what has come says enough."""
    content = b""
    with contextlib.suppress(httpx.HTTPError):
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) >= most:
                break
    return content[:most]


def _too_late(error: httpx.TimeoutException, watch: Watch, server: str) -> ProviderError:
    waits = watch.waits
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        words = f"no connection to {server} within {waits.connect:g} s; check the address and whether the server runs"
    elif isinstance(error, httpx.WriteTimeout):
        words = f"{server} took nothing more of the request for {waits.stall:g} s"
    elif watch.heard:
        words = f"{server} went silent in the middle of the answer for {waits.stall:g} s"
    else:
        words = f"no first byte of an answer from {server} within {waits.first_byte:g} s"
    return ProviderError(words, kind="timeout")


def _unreachable(error: Exception, words: str, server: str) -> ProviderError:
    if "CERTIFICATE_VERIFY_FAILED" in words:
        advice = "behind a company's proxy, let SSL_CERT_FILE name its certificates"
        return ProviderError(f"cannot trust {server} ({words}); {advice}", kind="network", retryable=False)
    if isinstance(error, httpx.ProxyError):
        return ProviderError(f"the proxy on the way to {server} refused ({words}); check HTTP_PROXY and NO_PROXY", kind="network")
    words = f"cannot reach {server} ({words}); check the address and whether the server runs"
    return ProviderError(words, kind="network", retryable=not isinstance(error.__cause__, _NoSuchNameError))


# ------------------------------------------------------------------------------------------------------- the pooled client

_lock = threading.Lock()
_shared: dict[tuple[str | None, ...], httpx.Client] = {}
_PROXIES: Final = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
#: A server on this machine is not behind a proxy, whatever NO_PROXY forgets.
_DIRECT: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")


def pooled() -> httpx.Client:
    """The client that all share, whichever thread asks; another one when the proxies of the environment have changed.

    Raises:
        ProviderError: a proxy of the environment cannot be used.
    """
    key = tuple(map(os.environ.get, _PROXIES))
    with _lock:
        if key not in _shared:
            _shared[key] = _client()
        return _shared[key]


def _client() -> httpx.Client:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=_KEPT)
    try:
        client = httpx.Client(follow_redirects=False, limits=limits, mounts=dict.fromkeys(_DIRECT))
    except (ValueError, ImportError) as error:  # a SOCKS proxy needs a package more
        words = f"a proxy that the environment names cannot be used: {error}"
        raise ProviderError(words, kind="network", retryable=False) from None
    client._cookies = _NoCookies()  # noqa: SLF001  httpx copies the jar that it is given
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001  httpx has no public place for a backend
        with contextlib.suppress(AttributeError):  # without it, limits are as exact as httpx's own
            transport._pool._network_backend = _Backend()  # type: ignore[union-attr]  # noqa: SLF001  likewise
    atexit.register(client.close)
    return client


class _NoCookies(httpx.Cookies):
    """A jar that stays empty: no request sends any, and looking for them takes a tenth of a request's time."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Keep none."""


def request_for(client: httpx.Client, url: str, chunks: Sequence[bytes], headers: dict[str, str], watch: Watch) -> httpx.Request:
    """A POST request. Not the client's own: that costs twice the time, and sends the cookies of earlier answers along."""
    headers["content-length"] = str(sum(map(len, chunks)))  # httpx does not know it of a body in chunks
    ours = _COMMON.get(client) or _COMMON.setdefault(client, {name: client.headers[name] for name in _FROM_CLIENT})
    return httpx.Request("POST", _parsed(url), headers=ours | headers, content=chunks, extensions={"timeout": watch.limits()})


_FROM_CLIENT: Final = ("accept-encoding", "user-agent")
_COMMON: Final[weakref.WeakKeyDictionary[httpx.Client, dict[str, str]]] = weakref.WeakKeyDictionary()
_parsed: Final = lru_cache(maxsize=64)(httpx.URL)  # a dozen microseconds each


class _Backend(httpcore.SyncBackend):
    """Connects as httpcore does; a name is looked up where an interrupt can leave the wait for it."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
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
                return self._inner.read(max_bytes, max(_SHORTEST, min(_SLICE, left)))
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
    return max(_SHORTEST, timeout.ends() - time.monotonic()) if isinstance(timeout, Allowance) else timeout


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
            if left is not None and left <= _SHORTEST:
                raise httpcore.ConnectTimeout(f"the name {host} was not found in time") from None
            continue
        if isinstance(outcome, OSError):
            fault = httpcore.ConnectError if outcome.errno == socket.EAI_AGAIN else _NoSuchNameError
            raise fault(f"{host}: {outcome.strerror or outcome}")
        return outcome


class _NoSuchNameError(httpcore.ConnectError):
    """Nobody knows an address for the name; asking again would change nothing."""
