"""The way to one server, over pipes, over HTTP or in this process, and what to tell when it does not stand.

Opens and closes; who talks over it, and how long, is the business of `line`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, Implementation

from nb_agent import __version__
from nb_agent.errors import ServerError
from nb_agent.mcp.child import Child
from nb_agent.mcp.narrow import MOST
from nb_agent.mcp.target import Target, one_line
from nb_agent.values import JSON

__all__ = ["Way", "facts_of", "leaf", "ourselves"]


class Way:
    """One server, until it has gone.

    Args:
        tapped: is put between the streams of the transport and the SDK.

    Attributes:
        child: its process, where it is one.
        stands: set once calls can be made; a child that never came so far is ended without waiting.
    """

    def __init__(self, name: str, target: Target, tapped: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self.child = Child(target)
        self.stands = False
        self._name, self._target, self._tapped = name, target, tapped
        self._refused = ""  # what an HTTP server said last when it refused

    def server(self) -> Any:
        """What the SDK's client is to be made of; for each attempt anew."""
        if self._target.url is not None:
            return self._over_http(self._target.url)
        return self._over_pipes() if self._target.command else self._target.server

    @asynccontextmanager
    async def _over_pipes(self) -> AsyncIterator[tuple[Any, Any]]:
        self.child = Child(self._target)
        async with self.child.open() as (read, write):
            try:
                yield self._tapped(read, write)
            finally:
                if not self.stands:
                    self.child.end()

    @asynccontextmanager
    async def _over_http(self, url: str) -> AsyncIterator[tuple[Any, Any]]:
        hooks: Any = {"response": [self._saw]}
        async with (
            httpx2.AsyncClient(
                timeout=httpx2.Timeout(30, read=300),  # the SDK's own limits
                event_hooks=hooks,
                headers=dict(self._target.headers),
            ) as http,
            streamable_http_client(url, http_client=http, max_sse_event_size=MOST) as (read, write),
        ):
            yield self._tapped(read, write)

    async def _saw(self, response: httpx2.Response) -> None:
        """The SDK tells of no HTTP status, so what a server says when it refuses is kept here."""
        if response.is_error:
            await response.aread()
            self._refused = f"HTTP {response.status_code}: {one_line(response.text, 200)}"

    def not_started(self, fault: BaseException, limit: float, noted: Sequence[str]) -> ServerError:
        """Why no call can be made, in one line."""
        words = self.child.last_words()
        told = "".join(f"; {note}" for note in noted[:2]) + (f"; the end of its stderr: {words}" if words else "")
        if isinstance(fault, TimeoutError):
            said = f"did not answer within {limit:g} s: {self._target}{told}; give a slow one longer with start_limit=SECONDS"
            kind = "timeout"
        else:
            said, kind = f"did not start: {self._why(fault)}{told}", "server_start_failed"
        return ServerError(self._target.hide(f"MCP server {self._name!r} {said}"), kind=kind)

    def _why(self, fault: BaseException) -> str:
        if self._target.command and isinstance(fault, OSError) and self.child.pid is None:
            return self.child.why_not_started(fault)
        if self._target.command and isinstance(fault, MCPError) and fault.code == CONNECTION_CLOSED:
            code = self.child.exit_code
            return f"{self._target} ended before it answered" + ("" if code is None else f", with exit code {code}")
        return f"{self._target}: {self._refused or one_line(str(fault)) or type(fault).__name__}"

    def how(self) -> str:
        """How the process ended, as far as it is known, to be put behind a sentence."""
        code, words = self.child.exit_code, self.child.last_words()
        return ("" if code is None else f"; exit code {code}") + (f"; the end of its stderr: {words}" if words else "")


def ourselves() -> Implementation:
    """What we say of ourselves."""
    return Implementation(name="nb_agent", version=__version__)


def facts_of(client: Client) -> JSON:
    """What the server said of itself, in the JSON of the protocol."""
    info, able = client.server_info, client.server_capabilities
    return {
        "server": None if info is None else info.model_dump(by_alias=True, mode="json", exclude_none=True),
        "capabilities": None if able is None else able.model_dump(by_alias=True, mode="json", exclude_none=True),
        "instructions": client.instructions,
    }


def leaf(error: BaseException) -> BaseException:
    """The first exception inside nested groups: the SDK's task groups wrap whatever leaves them, more than once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
