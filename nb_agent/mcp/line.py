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
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from contextlib import suppress
from typing import Any, Final

import anyio
import httpx2
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT, ToolListChangedNotification

from nb_agent.errors import ServerError, ToolError
from nb_agent.mcp import quiet
from nb_agent.mcp.child import Child
from nb_agent.mcp.listing import Listing
from nb_agent.mcp.narrow import TOO_LONG
from nb_agent.mcp.target import Target, Wishes, one_line
from nb_agent.mcp.way import Way, facts_of, leaf, ourselves
from nb_agent.mcp.wiretap import Tap
from nb_agent.values import JSON

__all__ = ["Line", "hang_up"]

#: Seconds to close (the SDK waits 0.5 + 2 + 2 + 2 at the most).
_CLOSING: Final = 7.0

#: A server that reports progress may take this many times its limit, and no more (specification, Timeouts: always a maximum).
_LONGEST: Final = 10

#: Seconds that a server which let a call run out may take to answer a ping before it is taken for hanging.
_PING: Final = 2.0

#: Modes of the SDK by the era that was pinned. Unpinned: every server of before 2026-07-28 knows the handshake, and a probe for
#: anything newer can cost ten seconds with a server that does not answer what it does not know; so the handshake comes first.
_MODES: Final[dict[str | None, tuple[str, ...]]] = {None: ("legacy", "auto"), "legacy": ("legacy",), "modern": ("2026-07-28",)}

#: Errors that mean that the other end is no longer there; those of closed streams have no text of their own.
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, httpx2.TransportError)

#: What the SDK answers when an HTTP server no longer knows the session.
_TERMINATED: Final = "Session terminated"

#: The first version of the protocol without a handshake.
_MODERN: Final = "2026-07-28"

#: What the SDK says, beside the code of a lost connection, when one event over HTTP is longer than we take.
_TOO_LONG_EVENT: Final = "Server-sent event exceeded"

_open_lines: set[Line] = set()


class Line:
    """Opens as soon as it is made, which must happen on the background loop.

    Args:
        limit: seconds that the server may take to start and list its tools.
        note: is told in a sentence what a person should know.
        wishes: what else its connection wants.

    Attributes:
        listing: the server's tools as it listed them.
        ended: whether no more calls can be made.
        version: of the protocol, once it is open.
        facts: what the server said of itself.
        listens: whether a server of the newer era tells of changes.
    """

    def __init__(self, name: str, target: Target, *, limit: float, note: Callable[[str], None], wishes: Wishes) -> None:
        self.ended = self.listens = False
        self.version = ""
        self.facts: JSON = {}
        self.listing = Listing(lambda cursor: self._talk().list_tools(cursor=cursor), self._note)
        self._wishes = wishes
        self._way = Way(name, target, self._tapped)
        self._calls = 0
        self._idle: asyncio.TimerHandle | None = None
        self._retired = False
        self.loop = asyncio.get_running_loop()
        self._name, self._target, self._limit, self._tell = name, target, limit, note
        self._noted: list[str] = []
        self._client: Client | None = None
        self._fault: ServerError | None = None
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

    @property
    def child(self) -> Child:
        """Its process, which has not been started where the server is no program."""
        return self._way.child

    @property
    def opened(self) -> bool:
        """Whether calls could be made once."""
        return self._opened.is_set() and self._fault is None

    async def refresh(self) -> None:
        """Read the list of tools again."""
        with quiet.telling(self._note):
            await self.listing.read()

    async def call(self, tool: str, arguments: JSON, limit: float) -> JSON:
        """The result of ``tools/call`` as JSON of the protocol; each report of progress gives it ``limit`` seconds anew.

        Raises:
            ToolError: it took longer, the server has gone, or it broke the protocol.
        """

        def begin(client: Client, heard: Any) -> Awaitable[Any]:
            return client.call_tool(tool, arguments, progress_callback=heard)

        return await self.ask(begin, limit)

    async def ask(self, begin: Callable[[Client, Any], Awaitable[Any]], limit: float) -> JSON:
        """The result of any request as JSON of the protocol.

        Args:
            begin: is given the SDK's client and what hears of progress.
            limit: seconds.

        Raises:
            ToolError: see `call`.
        """
        loop = asyncio.get_running_loop()
        last = loop.time() + limit * _LONGEST
        ends = asyncio.timeout(limit)
        self._busy(1)
        self._wishes.deadlines.add(ends)
        try:
            with quiet.telling(self._note):
                async with ends:  # when it passes, the SDK tells the server that nobody waits

                    async def heard(done: float, total: float | None, text: str | None) -> None:
                        if not ends.expired() and ends.when() is not None:  # none while a person is asked
                            ends.reschedule(min(last, loop.time() + limit))
                        for listener in self._wishes.progress:
                            listener(done, total, text)

                    result = await begin(self._talk(), heard)
        except Exception as error:  # noqa: BLE001  the SDK raises MCPError, RuntimeError, ValidationError and groups of them
            raise await self._failure(leaf(error), limit) from None
        finally:
            self._wishes.deadlines.discard(ends)
            self._busy(-1)
        answer: JSON = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return answer

    async def ping(self) -> None:
        """Come back when the server has answered something that costs it nothing."""
        client = self._talk()
        await (client.send_ping() if self.version < _MODERN else client.list_tools())

    def _busy(self, more: int) -> None:
        self._calls += more
        if self._idle is not None:
            self._idle.cancel()
        if self._calls == 0 and self._wishes.idle_limit is not None and not self.ended:
            self._idle = self.loop.call_later(self._wishes.idle_limit, self._retire)

    def _retire(self) -> None:
        self._retired = self.ended = True
        self.stop()

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
                for mode in _MODES[self._target.era]:
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
            options = {"client_info": ourselves(), "message_handler": self._heard, **self._wishes.client}
            async with Client(self._way.server(), mode=mode, cache=None, **options) as self._client:
                self.version = self._client.protocol_version
                self.facts = facts_of(self._client)
                await self.listing.read()
                self._scope.deadline = math.inf
                self._way.stands = True
                self._opened.set()
                self._busy(0)
                listening = self.loop.create_task(self._listen()) if self.version >= _MODERN else None
                try:
                    await self._stop.wait()
                finally:
                    self.listing.stop()
                    if listening is not None:
                        listening.cancel()
        except Exception as error:  # noqa: BLE001  groups of anything; see leaf
            return leaf(error)
        finally:
            self._client = None
        return None

    async def _heard(self, message: Any) -> None:
        """What the server says unasked; of the older era."""
        if isinstance(message, ToolListChangedNotification):
            self._relist()
        for listener in self._wishes.heard:
            listener(message)

    async def _listen(self) -> None:
        """Hear of changes in the newer era, where a server only tells those who listen; not all can be listened to."""
        with quiet.telling(self._note), suppress(Exception):
            async with self._talk().listen(tools_list_changed=True) as changes:
                self.listens = True
                async for _ in changes:
                    self._relist()

    def _relist(self) -> None:
        if self._opened.is_set():  # else the list is about to be read anyway
            self.listing.changed()

    def _over(self, fault: BaseException | None) -> None:
        if not self._opened.is_set():
            closed = ServerError(f"MCP server {self._name!r} was closed before it had started", kind="server_gone")
            self._fault = closed if fault is None else self._way.not_started(fault, self._limit, self._noted)
        if self.ended and not self._retired:
            self._note(f"the server ended{self._way.how()}")
        self.ended = True
        self._opened.set()
        _open_lines.discard(self)

    def _tapped(self, read: Any, write: Any) -> tuple[Any, Any]:
        tap = Tap(read, write, note=self._note, ended=self._gone, watched=self._wishes.wire)
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

    def _talk(self) -> Client:
        if self._client is None or self.ended:
            raise anyio.ClosedResourceError
        return self._client

    # --------------------------------------------------------------------------------------------- what went wrong, in one line

    async def _failure(self, fault: BaseException, limit: float) -> ToolError:
        code = fault.code if isinstance(fault, MCPError) else None
        if isinstance(fault, TimeoutError) or code == REQUEST_TIMEOUT:
            hangs = await self._hangs()
            told = "; nor to a ping: it is ended, and opened again at the next call" if hangs else ""
            return ToolError(f"no answer from the MCP server {self._name!r} within {limit:g} s{told}", code="tool_timeout")
        if code == TOO_LONG or _TOO_LONG_EVENT in str(fault):
            return ToolError(f"MCP server {self._name!r}: {one_line(str(fault))}", code="result_too_large")
        if not (code == CONNECTION_CLOSED or isinstance(fault, _GONE) or (code is not None and str(fault) == _TERMINATED)):
            return ToolError(one_line(str(fault)) or type(fault).__name__, code="protocol_error")
        self.ended = True
        self.stop()
        await self.child.exited()
        told = f"the MCP server {self._name!r} ended during this call, which may have had its effect{self._way.how()}"
        return ToolError(self._target.hide(f"{told}; it is opened again at the next call"), code="server_gone")

    async def _hangs(self) -> bool:
        """End a child that does not even answer a ping: all later calls would wait behind the one that it is stuck in."""
        if not self._target.command or self.ended:
            return False
        try:
            async with asyncio.timeout(_PING):
                await self.ping()
        except MCPError:
            return False  # an error is an answer too
        except TimeoutError:
            self._note("the server hangs: it answered neither a call nor a ping, and is ended")
            self._retire()
            self.child.end()
            return True
        except Exception:  # noqa: BLE001  it has gone meanwhile, which is told by whoever sees it end
            return False
        return False


def hang_up() -> None:
    """End all lines that are open, at the same time; registered to run at exit."""
    leaving = [asyncio.run_coroutine_threadsafe(line.close(), line.loop) for line in list(_open_lines) if line.loop.is_running()]
    wait(leaving, _CLOSING)
