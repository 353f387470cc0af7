"""The one place where HTTP is spoken: a request goes out with the address and the key added, the bytes of the answer come back.

Nothing above it ever holds the key: what is shown, recorded and exported is the request as it was before it came here. It puts
together `network` (sockets and their time limits; imported with the first request, since httpx is heavy), `retrying` (what is
tried again, and when) and `adapters.refusals` (what an error answer means).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit, urlunsplit

from nb_agent.adapters.refusals import readable, refusal
from nb_agent.errors import ProviderError, SettingError
from nb_agent.events import Waiting
from nb_agent.messages import Request
from nb_agent.retrying import Patience, Waits, noted
from nb_agent.values import chunks

if TYPE_CHECKING:
    import httpx

    from nb_agent.network import Answer, Watch

__all__ = ["SHORTEST_KEY", "Secret", "Transport", "address"]

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
#: Characters from which on a key is no word of a language.
SHORTEST_KEY: Final = 16
#: Wire formats whose vendor's own client adds the version itself, so that people write addresses without it.
_VERSIONED: Final = frozenset({"anthropic_messages", "gemini_generate"})
_VERSION: Final = re.compile(r"/v\d\w*$")

#: Ends of paths that belong to a request and that people copy together with the address.
_ENDS: Final = re.compile(r"/(chat/completions|responses|messages|models/[^/]+:\w+)$")
_MOST_BYTES: Final = 65_536  # of an error answer: some servers send pages


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
    parts = urlsplit(base_url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _has_port(parts.netloc):
        shown = re.sub(r"//[^/@]*@", "//", base_url)  # a password may stand there
        raise SettingError(f"base_url {shown!r} is no address; write it like 'http://127.0.0.1:8000/v1'")
    path = _ENDS.sub("", parts.path.rstrip("/"))
    if not path or (wire in _VERSIONED and not _VERSION.search(path)):
        path += _ROOTS.get(wire, "/v1")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _has_port(netloc: str) -> bool:
    """Whether what stands after the host is a port, or nothing does."""
    found = re.search(r":([^:\]@]*)$", netloc)
    return found is None or not found[1] or (found[1].isdecimal() and int(found[1]) < 65_536)


@dataclass(frozen=True, slots=True)
class _Begun:
    """An answer whose first bytes are there."""

    response: Answer
    watch: Watch
    first: bytes
    rest: Iterator[bytes]


class Transport:
    """Sends requests of one wire format to one server.

    Args:
        base_url: the server's address, with or without ``/v1``.
        key: what it asks for, if anything.
        wire: the wire format.
        patience: how often, and how, a request that failed is sent again.
        waits: time limits of one attempt.
        client: for tests; otherwise all share one pooled client.
        clock: gives seconds.
        now: gives seconds since 1970.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret | None = None,
        *,
        wire: str = "chat_completions",
        patience: Patience | None = None,
        waits: Waits | None = None,
        client: httpx.Client | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.base_url = address(base_url, wire)
        self._key = key
        self._patience = patience or Patience()
        self._waits = waits
        self._client = client
        self._clock = clock
        self._now = now

    def __repr__(self) -> str:
        return f"Transport({self.server!r})"

    @property
    def server(self) -> str:
        """The address as it may be shown: without a name, a password or a query that stand in it."""
        return _shown(self.base_url)

    def send(self, request: Request, *, until: float | None = None) -> Iterator[bytes | Waiting]:
        """The bytes of the answer as they come; before them, each wait after which the request is sent again.

        Args:
            request: as it was shown; the address and the key are added here.
            until: when the run's own time limit passes, in seconds of ``clock`` (`time.monotonic`).

        Raises:
            ProviderError: the server cannot be reached, refuses, breaks off, or lets too much time pass.
            TimeLimitError: the run's own limit has passed.
        """
        from nb_agent.network import time_is_up  # noqa: PLC0415  0.15 s that a run against the mock model does not need

        end = math.inf if until is None else until
        begun = yield from self._patience.until_begun(lambda: self._begin(request, end), lambda: end - self._clock())
        key = self._long_key()
        over = begun.watch.run_is_over
        with closing(begun.response), self._translated(begun.watch):
            for chunk in chain((begun.first,), begun.rest):
                yield chunk.replace(key, b"***") if key else chunk  # some servers repeat what they were sent
                if over():
                    raise time_is_up(begun.watch, self.server)

    def _begin(self, request: Request, end: float) -> _Begun:
        """Send the request once, and wait for the first bytes of its answer."""
        from nb_agent.network import Watch, pooled, post, time_is_up  # noqa: PLC0415  likewise

        watch = Watch(self._waits or Waits(), end, self._clock)
        if watch.run_is_over():
            raise time_is_up(watch, self.server)
        with self._translated(watch), ExitStack() as failing:
            client = self._client = self._client or pooled()  # once: looking for proxies eight times takes its time
            response = post(client, self._url(request.path), chunks(request.body), self._headers(request), watch)
            failing.callback(response.close)
            if response.status_code >= 300:
                raise self._refused(request, response)
            rest = response.iter_bytes()
            first = next(rest, b"")
            if not first:
                raise ProviderError(f"{self.server} answered with nothing at all", kind="stream_interrupted")
            if first.lstrip().startswith(b"<"):
                raise _web_page(first, self.server)
            watch.heard = True
            failing.pop_all()
        return _Begun(response, watch, first, rest)

    @contextmanager
    def _translated(self, watch: Watch) -> Iterator[None]:
        """Errors of the way there and back as our own, and the key in none of them."""
        from nb_agent.network import FAULTS, broken  # noqa: PLC0415  likewise

        try:
            yield
        except FAULTS as error:
            ours = broken(error, watch, self.server)
            ours.args = (self._mask(str(ours)),)
            raise ours from None

    def _refused(self, request: Request, response: Answer) -> ProviderError:
        """What an answer that is none means."""
        from nb_agent.network import body_of  # noqa: PLC0415  likewise

        if response.status_code < 400:
            return _redirected(response, self.server, self._mask(response.headers.get("location", "")))
        words = self._mask(body_of(response, _MOST_BYTES).decode("utf-8", "replace"))
        error = refusal(response.status_code, words.encode(), model=_model(request))
        return noted(error, response.headers, self._now())

    def _mask(self, words: str) -> str:
        if self._key is None:
            return words
        key = self._key.reveal()
        return words.replace(key, "***").replace(quote(key, safe=""), "***")

    def _long_key(self) -> bytes | None:
        """The key, where it is long enough to be no word: local servers take any, and an answer may well have "ollama" in it."""
        key = self._key.reveal().encode() if self._key else b""
        return key if len(key) >= SHORTEST_KEY else None

    def _url(self, path: str) -> str:
        base, _, query = self.base_url.partition("?")
        return base + path + (("&" if "?" in path else "?") + query if query else "")

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream" if request.stream else "application/json"}
        headers |= _HEADERS.get(request.wire, {})
        if self._key is not None:
            name, before = _KEYS[request.wire]
            headers[name] = before + self._key.reveal()
        return headers


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _model(request: Request) -> str:
    """The model that a request is for: Gemini has it in the path."""
    found = re.search(r"/models/([^/:?]+)", request.path)
    return str(request.body.get("model") or (found[1] if found else ""))


def _redirected(response: Answer, server: str, where: str) -> ProviderError:
    place = f"redirects to {_shown(where)}" if where else f"answered HTTP {response.status_code} with no place to go to"
    words = f"{server} {place}; the key is not sent on to another address: set base_url to the right one"
    return ProviderError(words, kind="not_found", status=response.status_code)


def _web_page(start: bytes, server: str) -> ProviderError:
    title = " ".join(readable(start.decode("utf-8", "replace")).split())[:100]
    words = f"{server} answered with a web page ({title!r}); base_url is probably wrong: most servers' addresses end in /v1"
    return ProviderError(words, kind="protocol", status=200)
