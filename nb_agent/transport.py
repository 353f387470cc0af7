"""The one place where HTTP is spoken: a request goes out with the address and the key added, the bytes of the answer come back.

Nothing above it ever holds the key: what is shown, recorded and exported is the request as it was before it came here. httpx is
imported when the first request is sent.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from nb_agent.adapters.refusals import refusal
from nb_agent.errors import ProviderError, SettingError
from nb_agent.messages import Request

if TYPE_CHECKING:
    import httpx

__all__ = ["Secret", "Transport", "address"]

#: Wire format -> the header that carries the key, and what stands before it there.
_KEYS: Final = {
    "chat_completions": ("authorization", "Bearer "),
    "responses": ("authorization", "Bearer "),
    "anthropic_messages": ("x-api-key", ""),
    "gemini_generate": ("x-goog-api-key", ""),
}
#: Wire format -> headers that its servers ask for beside that. The version is the oldest that has all that is used here.
_HEADERS: Final = {"anthropic_messages": {"anthropic-version": "2023-06-01"}}
#: Wire format -> what a server's bare address is completed with.
_ROOTS: Final = {"gemini_generate": "/v1beta"}

#: Seconds to wait for a connection, and for the next byte of an answer.
CONNECT, STALL = 10.0, 60.0
_SHORTEST: Final = 0.05  # seconds: httpx takes 0 for "no limit"


class Secret:
    """A key that no view can show: it has no other form than ``***`` until it is sent.

    >>> Secret(" sk-1 ")
    ***

    Raises:
        SettingError: it holds white space or characters that no header can carry; the text does not show it.
    """

    __slots__ = ("reveal",)

    def __init__(self, text: str) -> None:
        key = text.strip()
        if not key or any(character.isspace() or not character.isascii() or not character.isprintable() for character in key):
            raise SettingError("the API key is empty, or has white space or other characters inside that no key has; copy it again")
        self.reveal: Callable[[], str] = lambda: key

    def __repr__(self) -> str:
        return "***"


def address(base_url: str, wire: str = "chat_completions") -> str:
    """The URL that paths are appended to; a server's bare address gets the ``/v1`` that every compatible server has.

    >>> address("http://127.0.0.1:8000"), address("https://llm.example.test/api/v3/")
    ('http://127.0.0.1:8000/v1', 'https://llm.example.test/api/v3')

    Raises:
        SettingError: it is no http or https URL.
    """
    cleaned = re.sub(r"/(chat/completions|responses|messages)$", "", base_url.strip().rstrip("/"))
    parts = urlsplit(cleaned)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise SettingError(f"base_url {base_url!r} is no address; write it like 'http://127.0.0.1:8000/v1'")
    return cleaned if parts.path else cleaned + _ROOTS.get(wire, "/v1")


class Transport:
    """Sends requests of one wire format to one server. ``client`` is for tests; otherwise all share one pooled client."""

    def __init__(
        self, base_url: str, key: Secret | None = None, *, wire: str = "chat_completions", client: httpx.Client | None = None
    ) -> None:
        self.base_url = address(base_url, wire)
        self._key = key
        self._client = client

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    def send(self, request: Request, *, until: float | None = None) -> Iterator[bytes]:
        """The bytes of the answer as they come; ``until`` (of `time.monotonic`, seconds) ends the wait for them.

        Raises:
            ProviderError: the server cannot be reached, refuses, breaks off, or lets too much time pass.
        """
        import httpx  # noqa: PLC0415  0.15 s that a run against the mock model does not need

        client = self._client or _pooled()
        headers = {"content-type": "application/json", "accept": "text/event-stream" if request.stream else "application/json"}
        headers |= _HEADERS.get(request.wire, {})
        if self._key is not None:
            name, before = _KEYS[request.wire]
            headers[name] = before + self._key.reveal()
        url = self.base_url + request.path
        begun = False
        try:
            with client.stream("POST", url, content=request.content, headers=headers, timeout=_timeout(until)) as response:
                if response.status_code >= 400:
                    raise refusal(response.status_code, response.read())
                for chunk in response.iter_bytes():
                    begun = True
                    yield chunk
        except httpx.HTTPError as error:
            raise _broken(error, self.base_url, begun=begun) from None
        except ProviderError as error:
            raise self._masked(error) from None

    def _masked(self, error: ProviderError) -> ProviderError:
        if self._key is None or self._key.reveal() not in str(error):
            return error
        words = str(error).replace(self._key.reveal(), "***")
        return ProviderError(words, kind=error.kind, status=error.status, retryable=error.retryable)


def _timeout(until: float | None) -> httpx.Timeout:
    import httpx  # noqa: PLC0415

    left = STALL if until is None else max(_SHORTEST, until - time.monotonic())
    return httpx.Timeout(min(STALL, left), connect=min(CONNECT, left))


def _broken(error: httpx.HTTPError, base_url: str, *, begun: bool) -> ProviderError:
    import httpx  # noqa: PLC0415

    words = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return ProviderError(f"no answer from {base_url} in time ({words})", kind="timeout")
    if begun:
        return ProviderError(
            f"the connection to {base_url} broke off in the middle of the answer ({words})", kind="stream_interrupted"
        )
    return ProviderError(f"cannot reach {base_url} ({words}); check the address and whether the server runs", kind="network")


_shared: list[httpx.Client] = []


def _pooled() -> httpx.Client:
    import httpx  # noqa: PLC0415

    if not _shared:
        _shared.append(httpx.Client(follow_redirects=False))
    return _shared[0]
