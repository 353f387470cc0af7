"""One open line to one server, from its start to its end: a task on the background loop that opens, waits, and closes.

The SDK wants a client entered and left by the same task, and in a notebook each cell is another one; so this task does both, and
everybody else only calls. A line is used once: when its server has gone, `hub` opens the next. This is the only module that uses
the SDK's client, and it is imported when the first server is connected. How a line ended is told in one line of text, never as the
nest of exception groups that the SDK raises.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import warnings
from collections.abc import AsyncIterator, Callable
from concurrent.futures import wait
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND, REQUEST_TIMEOUT, Implementation

from nb_agent import __version__
from nb_agent.errors import ServerError, ToolError
from nb_agent.mcp import quiet
from nb_agent.mcp.child import Child
from nb_agent.mcp.target import Target, one_line
from nb_agent.mcp.wiretap import Tap
from nb_agent.values import JSON

__all__ = ["Line", "hang_up"]

#: How to open, in this order. Every server of before 2026-07-28 knows the handshake, and a probe for anything newer can cost ten
#: seconds with a server that does not answer what it does not know; so the handshake comes first.
_MODES: Final = ("legacy", "auto")

#: Seconds to close (the SDK waits 0.5 + 2 + 2 + 2 at the most), and seconds that a call may take beyond its own limit.
_CLOSING: Final = 7.0
_BEYOND: Final = 1.0

#: Pages of tools/list that are read: a server that never ends its list must not hold a cell.
_MOST_PAGES: Final = 200

#: Errors that mean that the other end is no longer there; those of closed streams have no text of their own.
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, httpx2.TransportError)

#: What the SDK answers when an HTTP server no longer knows the session.
_TERMINATED: Final = "Session terminated"

_open_lines: set[Line] = set()


class Line:
    """Opens as soon as it is made, which must happen on the background loop.

    Args:
        limit: seconds that the server may take to start and list its tools.
        note: is told in a sentence what a person should know.

    Attributes:
        tools: the server's tools as it listed them, in the JSON of the protocol.
        ended: whether no more calls can be made.
    """

    def __init__(self, name: str, target: Target, *, limit: float, note: Callable[[str], None]) -> None:
        self.tools: tuple[JSON, ...] = ()
        self.ended = False
        self.child = Child(target)
        self.loop = asyncio.get_running_loop()
        self._name, self._target, self._limit, self._tell = name, target, limit, note
        self._noted: list[str] = []
        self._client: Client | None = None
        self._fault: ServerError | None = None
        self._refused = ""  # what an HTTP server said last when it refused
        self._opened, self._stop = asyncio.Event(), asyncio.Event()
        self._scope = anyio.CancelScope()
        self._task = self.loop.create_task(self._live(), name=f"MCP server {name}")
        _open_lines.add(self)
        atexit.unregister(hang_up)
        atexit.register(hang_up)  # later than what background has registered, so that it runs before

    # --------------------------------------------------------------------------------------------- for the others

    async def ready(self) -> None:
        """Wait until calls can be made.

        Raises:
            ServerError: the server did not start.
        """
        await self._opened.wait()
        if self._fault is not None:
            raise self._fault

    async def refresh(self) -> None:
        """Read the list of tools again."""
        with quiet.telling(self._note):
            self.tools = await self._listed()

    async def call(self, tool: str, arguments: JSON, limit: float) -> JSON:
        """The result of ``tools/call`` as JSON of the protocol.

        Raises:
            ToolError: it took longer than ``limit`` seconds, the server has gone, or it broke the protocol.
        """
        try:
            with quiet.telling(self._note):
                async with asyncio.timeout(limit + _BEYOND):  # what the SDK may do after the answer is not in its own limit
                    result = await self._talk().call_tool(tool, arguments, read_timeout_seconds=limit)
        except Exception as error:  # noqa: BLE001  the SDK raises MCPError, RuntimeError, ValidationError and groups of them
            raise await self._failure(_leaf(error), limit) from None
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def stop(self) -> None:
        """Ask the line to end; from its own loop."""
        self._stop.set()
        if not self._opened.is_set():
            self._scope.cancel()

    async def close(self) -> None:
        """End the line and wait until the server has left, a few seconds at the most."""
        self.stop()
        await asyncio.wait({self._task}, timeout=_CLOSING)

    # --------------------------------------------------------------------------------------------- the task

    async def _live(self) -> None:
        self._scope.deadline = anyio.current_time() + self._limit
        warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
        fault: BaseException | None = None
        try:
            with quiet.telling(self._note), self._scope:
                for mode in _MODES:
                    fault = await self._attempt(mode)
                    if not isinstance(fault, MCPError) or fault.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                        break
            if self._scope.cancelled_caught and not self._stop.is_set():
                fault = TimeoutError()
        finally:
            self._over(fault)

    async def _attempt(self, mode: str) -> BaseException | None:
        """Open, wait for the stop, close; what went wrong, if anything did."""
        try:
            async with Client(self._server(), mode=mode, cache=None, client_info=_me()) as self._client:
                self.tools = await self._listed()
                self._scope.deadline = math.inf
                self._opened.set()
                await self._stop.wait()
        except Exception as error:  # noqa: BLE001  groups of anything; see _leaf
            return _leaf(error)
        finally:
            self._client = None
        return None

    def _over(self, fault: BaseException | None) -> None:
        if not self._opened.is_set():
            closed = ServerError(f"MCP server {self._name!r} was closed before it had started", kind="server_gone")
            self._fault = closed if fault is None else self._not_started(fault)
        if self.ended:
            self._note(f"the server ended{self._how()}")
        self.ended = True
        self._opened.set()
        _open_lines.discard(self)

    def _server(self) -> Any:
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
                if not self._opened.is_set():
                    self.child.end()

    @asynccontextmanager
    async def _over_http(self, url: str) -> AsyncIterator[tuple[Any, Any]]:
        hooks: Any = {"response": [self._saw]}
        async with (
            httpx2.AsyncClient(timeout=httpx2.Timeout(30, read=300), event_hooks=hooks) as http,  # the SDK's own limits
            streamable_http_client(url, http_client=http) as (read, write),
        ):
            yield self._tapped(read, write)

    async def _saw(self, response: httpx2.Response) -> None:
        """The SDK tells of no HTTP status, so what a server says when it refuses is kept here."""
        if response.is_error:
            await response.aread()
            self._refused = f"HTTP {response.status_code}: {one_line(response.text, 200)}"

    def _tapped(self, read: Any, write: Any) -> tuple[Any, Any]:
        tap = Tap(read, write, note=self._note, ended=self._gone)
        return tap.reading, tap.writing

    def _note(self, text: str) -> None:
        if not self._opened.is_set():
            self._noted.append(text)
        self._tell(text)

    def _gone(self) -> None:
        """The other end has closed: an open line is over, one that is opening will say why it could not."""
        if self._opened.is_set() and not self._stop.is_set():
            self.ended = True
            self._stop.set()

    async def _listed(self) -> tuple[JSON, ...]:
        """The tools on all pages; of several with one name the first."""
        tools: dict[str, JSON] = {}
        seen: list[str | None] = []
        cursor: str | None = None
        while cursor not in seen and len(seen) < _MOST_PAGES:
            seen.append(cursor)
            try:
                page = await self._talk().list_tools(cursor=cursor)
            except MCPError as error:
                if cursor is None and error.code == METHOD_NOT_FOUND:
                    return ()  # a server may have only resources or prompts
                if cursor is None or error.code == CONNECTION_CLOSED:
                    raise
                self._note(f"its list of tools broke off at page {len(seen)}: {error.message}")
                break
            for tool in page.tools:
                tools.setdefault(tool.name, tool.model_dump(by_alias=True, mode="json", exclude_none=True))
            if (cursor := page.next_cursor) is None:
                break
        else:
            self._note(f"its list of tools has no end: after page {len(seen)} comes {cursor!r}")
        return tuple(tools.values())

    def _talk(self) -> Client:
        if self._client is None or self.ended:
            raise anyio.ClosedResourceError
        return self._client

    # --------------------------------------------------------------------------------------------- what went wrong, in one line

    def _not_started(self, fault: BaseException) -> ServerError:
        words = self.child.last_words()
        told = "".join(f"; {note}" for note in self._noted[:2]) + (f"; the end of its stderr: {words}" if words else "")
        if isinstance(fault, TimeoutError):
            said = f"did not answer within {self._limit:g} s: {self._target}{told}; give a slow one longer with start_limit=SECONDS"
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

    async def _failure(self, fault: BaseException, limit: float) -> ToolError:
        code = fault.code if isinstance(fault, MCPError) else None
        if isinstance(fault, TimeoutError) or code == REQUEST_TIMEOUT:
            return ToolError(f"no answer from the MCP server {self._name!r} within {limit:g} s", code="tool_timeout")
        if not (code == CONNECTION_CLOSED or isinstance(fault, _GONE) or (code is not None and str(fault) == _TERMINATED)):
            return ToolError(one_line(str(fault)) or type(fault).__name__, code="protocol_error")
        self.ended = True
        self.stop()
        await self.child.exited()
        told = f"the MCP server {self._name!r} ended during this call, which may have had its effect{self._how()}"
        return ToolError(self._target.hide(f"{told}; it is opened again at the next call"), code="server_gone")

    def _how(self) -> str:
        code, words = self.child.exit_code, self.child.last_words()
        return ("" if code is None else f"; exit code {code}") + (f"; the end of its stderr: {words}" if words else "")


def hang_up() -> None:
    """End all lines that are open, at the same time; registered to run at exit."""
    leaving = [asyncio.run_coroutine_threadsafe(line.close(), line.loop) for line in list(_open_lines) if line.loop.is_running()]
    wait(leaving, _CLOSING)


def _me() -> Implementation:
    return Implementation(name="nb_agent", version=__version__)


def _leaf(error: BaseException) -> BaseException:
    """The first exception inside nested groups: the SDK's task groups wrap whatever leaves them, more than once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
