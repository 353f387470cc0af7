"""HTTP below `transport`: one pooled httpx client, time limits that are kept to the moment, and their errors in one vocabulary.

httpx counts a time limit anew for each read and fixes it before the first one, so a run's own limit would be passed by a minute.
Here the number that httpx carries down to the socket knows when its wait ends (`sockets`). httpx decides on the way: proxies,
certificates, addresses. The request itself goes straight to the pool that httpx has for that way, since what httpx does around a
request takes as long as all the rest. Imports httpx: `transport` imports it late.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol, cast

import httpcore
import httpx

from nb_agent.errors import ProviderError, TimeLimitError
from nb_agent.retrying import Waits
from nb_agent.sockets import SHORTEST, Allowance, Backend, NoSuchNameError

__all__ = ["FAULTS", "Answer", "Watch", "body_of", "broken", "pooled", "post", "time_is_up"]

_KEPT: Final = 30.0  # seconds that an unused connection is kept: a notebook's next round or cell


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
        return self.clock() >= self.until - SHORTEST

    def waited(self) -> float:
        """Seconds since the attempt began."""
        return self.clock() - self.began


#: What goes wrong on the way, in httpcore's words and in httpx's.
FAULTS: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpx.HTTPError,
    httpx.InvalidURL,
)


def _in_httpx_words(error: Exception) -> Exception:
    """The same fault as httpx calls it, which has a class of the same name for each of httpcore's."""
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("httpcore")), "")
    ours: Exception = getattr(httpx, name)(str(error)) if name else error
    ours.__cause__ = error if name else error.__cause__
    return ours


def broken(error: Exception, watch: Watch, server: str) -> ProviderError:
    """The error that one of httpx's stands for: which limit has passed and how long it was, or what has failed.

    ``server`` is the address as it may be shown.
    """
    error = _in_httpx_words(error)
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


def body_of(response: Answer, most: int) -> bytes:
    """The body of an error answer, as far as it comes and no more than so many bytes: what has come says enough."""
    content = b""
    with contextlib.suppress(*FAULTS):
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
    return ProviderError(words, kind="network", retryable=not isinstance(error.__cause__, NoSuchNameError))


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
            transport._pool._network_backend = Backend()  # type: ignore[union-attr]  # noqa: SLF001  likewise
    atexit.register(client.close)
    return client


class _NoCookies(httpx.Cookies):
    """A jar that stays empty: no request sends any, and looking for them takes a tenth of a request's time."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Keep none."""


class Answer(Protocol):
    """What comes back: an `httpx.Response`, or as much of one as is needed."""

    @property
    def status_code(self) -> int:
        """The status."""

    @property
    def headers(self) -> httpx.Headers:
        """The headers."""

    def iter_bytes(self) -> Iterator[bytes]:
        """The body as it comes, unpacked."""

    def close(self) -> None:
        """Give the connection back, or close it where the body has not come to its end."""


class _Direct:
    """An answer that comes straight from httpcore."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response
        self.status_code = response.status
        self.close = response.close

    @property
    def headers(self) -> httpx.Headers:
        return httpx.Headers(self._response.headers)

    def iter_bytes(self) -> Iterator[bytes]:
        raw, body = self._response.headers, cast("Iterator[bytes]", self._response.stream)
        if any(name.lower() == b"content-encoding" for name, _ in raw):
            return httpx.Response(200, headers=raw, content=body).iter_bytes()
        return filter(None, body)


def post(client: httpx.Client, url: str, chunks: Sequence[bytes], headers: dict[str, str], watch: Watch) -> Answer:
    """Send a request; its answer is there as soon as its head has come.

    Not through the client: that takes twice the time, and would send the cookies of earlier answers along.
    """
    pool, place, common = _way(client, url)
    headers = common | headers | {"content-length": str(sum(map(len, chunks)))}  # httpx does not know it of a body in chunks
    extensions = {"timeout": watch.limits()}
    if pool is None:
        return client.send(httpx.Request("POST", url, headers=headers, content=chunks, extensions=extensions), stream=True)
    raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    return _Direct(pool.handle_request(httpcore.Request("POST", place, headers=raw, content=chunks, extensions=extensions)))


@lru_cache(maxsize=64)
def _way(client: httpx.Client, url: str) -> tuple[httpcore.ConnectionPool | None, httpcore.URL, dict[str, str]]:
    """The pool that the client has for an address, the address in httpcore's form, and what every request's head has in it.

    No pool where the client has another kind of transport, and where a name and a password stand in the address, of which httpx
    makes a header.
    """
    parsed = httpx.URL(url)
    pool = None if parsed.userinfo else getattr(client._transport_for_url(parsed), "_pool", None)  # noqa: SLF001  as above
    place = httpcore.URL(scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path)
    common = {name: client.headers[name] for name in ("accept-encoding", "user-agent")}
    return pool, place, {"host": parsed.netloc.decode("ascii"), **common}
