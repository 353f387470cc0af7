"""One MCP server under one name: started when it is needed, called from any cell, told of when it breaks.

The blocking side; `line` has the task that owns the SDK's client for one life of the server, `hub` has all connections by name. A
server that has gone is started again at the next call, later each time that it fails; a call that was lost is never repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from nb_agent import background
from nb_agent.errors import ServerError, ToolError
from nb_agent.mcp.target import Era, Target, Wishes, one_line
from nb_agent.values import JSON

if TYPE_CHECKING:
    from nb_agent.mcp.line import Line
    from nb_agent.mcp.wirelog import WireLog

__all__ = ["CALL_LIMIT", "Connection", "open_all"]

#: Seconds that one call may take, unless its tool says otherwise.
CALL_LIMIT: Final = 30.0
#: Seconds that reading the lists of tools again may take at the start of a run.
_REFRESH: Final = 5.0
#: Seconds before a server that failed twice in a row is started again, and the most after it failed often.
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 8.0
#: Notes that are kept of one connection: a server that floods its standard output must not fill the memory.
_MOST_NOTES: Final = 200


class Connection:
    """One server under one name.

    Attributes:
        name: the front part of its tools' names.
        notes: what a person should know: stray lines on its standard output, tools that were left out, an end nobody asked for.
        call_limit: seconds that one call may take.
        trusted: whether the person vouches for it (see `McpTool.tier`).
        wishes: who is told of progress, of messages that come unasked and of those on the wire; who answers the server.
        log: where its messages are kept, where somebody keeps them.
        starts: how often the server was started, or tried to be.
    """

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        start_limit: float,
        call_limit: float = CALL_LIMIT,
        idle_limit: float | None = None,
        trusted: bool = False,
    ) -> None:
        self.name = name
        self.target = target
        self.start_limit = start_limit
        self.trusted = trusted
        self.call_limit = call_limit
        self.notes: list[str] = []
        self.wishes = Wishes(idle_limit)
        self.log: WireLog | None = None
        self.starts = 0
        self._failures = 0  # starts and lines in a row that no call came back from
        self._failed_at = 0.0
        self._line: Line | None = None
        self._tools: tuple[JSON, ...] = ()

    def __repr__(self) -> str:
        return f"<MCP server {self.name}: {self}>"

    def __str__(self) -> str:
        state = f"open, speaks {self.version} ({self.era})" if self.alive and self.version else "closed"
        return f"{self.target}, {len(self.listed)} tools, {state}"

    @property
    def alive(self) -> bool:
        """Whether the server is there; one that is not is started again at the next call."""
        return self._line is not None and not self._line.ended

    @property
    def listed(self) -> tuple[JSON, ...]:
        """Its tools as the server listed them last, in the JSON of the protocol."""
        if self._line is not None and self._line.opened:
            self._tools = self._line.listing.tools
        return self._tools

    @property
    def version(self) -> str | None:
        """Version of the protocol that is, or was last, spoken; ``None`` before the server has answered."""
        return None if self._line is None else self._line.version or None

    @property
    def era(self) -> Era | None:
        """``"legacy"`` where a handshake began it, ``"modern"`` where nothing did (2026-07-28)."""
        return None if self.version is None else "legacy" if self.version < "2026-07-28" else "modern"

    @property
    def facts(self) -> JSON:
        """What the server said of itself: ``server``, ``capabilities``, ``instructions``, in the JSON of the protocol."""
        return {} if self._line is None else self._line.facts

    @property
    def stderr(self) -> str:
        """The end of what the server wrote to its standard error, its given secrets hidden."""
        return "" if self._line is None else self.target.hide(self._line.child.stderr())

    @property
    def pid(self) -> int | None:
        """Number of the server's process, where it is a child of this one."""
        return None if self._line is None else self._line.child.pid

    def open(self) -> None:
        """Start the server, unless it is there already.

        Raises:
            ServerError: it did not start, or did not answer within ``start_limit`` seconds.
        """
        import nb_agent.mcp.line  # noqa: F401, PLC0415  imports the SDK, which is slow; here and not on the background loop

        try:
            background.run(self._ready())
        except BaseException:
            self.drop()  # an interrupt while it starts must leave no process behind
            raise

    def close(self) -> None:
        """End the server and wait until it has left, for a few seconds at the most."""
        background.run(self._close())

    def drop(self) -> None:
        """Ask the server to end, and do not wait. May be called from anywhere, a finalizer included."""
        if (line := self._line) is not None:
            with suppress(RuntimeError):  # the loop is gone, and the server with it
                line.loop.call_soon_threadsafe(line.stop)

    def call(self, tool: str, arguments: JSON, *, limit: float | None = None) -> JSON:
        """Result of a tool under its own name, as JSON of the protocol; an interrupt cancels the call on the server too.

        Raises:
            ToolError: ``tool_timeout``, ``server_gone``, ``server_start_failed`` or ``protocol_error``.
        """
        limit = self.call_limit if limit is None else limit
        return background.run(self._asked(lambda line: line.call(tool, arguments, limit)))

    def ask(self, begin: Callable[[Any, Any], Awaitable[Any]], *, limit: float | None = None) -> JSON:
        """Result of any other request, such as ``ask(lambda client, progress: client.list_prompts())``, as JSON of the protocol.

        Args:
            begin: is given the SDK's ``mcp.Client`` and a ``progress_callback``; it runs on the background loop.
            limit: seconds; progress begins them anew.

        Raises:
            ToolError: see `call`.
        """
        limit = self.call_limit if limit is None else limit
        return background.run(self._asked(lambda line: line.ask(begin, limit)))

    def ping(self) -> float:
        """Seconds that the server takes to answer what costs it nothing.

        Raises:
            ToolError: it did not answer within five seconds, or has gone.
        """
        begun = time.monotonic()
        background.run(self._asked(lambda line: line.ask(_pinged(line), _REFRESH)))
        return time.monotonic() - begun

    async def _ready(self) -> Line:
        from nb_agent.mcp.line import Line  # noqa: PLC0415  see open

        # From here to the assignment nothing is awaited, so calls that come together start one server and not several.
        if self._line is None or self._line.ended or self._line.loop is not asyncio.get_running_loop():
            self.starts += 1
            self._line = Line(self.name, self.target, limit=self.start_limit, note=self._note, wishes=self.wishes)
        line = self._line
        try:
            await line.ready()
        except ServerError:
            self._failed()
            raise
        return line

    async def _asked(self, act: Callable[[Line], Awaitable[JSON]]) -> JSON:
        """Ask once; what was lost with a server is told and not asked again."""
        try:
            if not self.alive:
                await asyncio.sleep(self._pause())
            line = await self._ready()
        except ServerError as error:
            raise ToolError(str(error), code=error.kind) from None
        try:
            result = await act(line)
        except ToolError as error:
            if error.code == "server_gone":
                self._failed()
            raise
        self._failures = 0
        return result

    def _failed(self) -> None:
        self._failures, self._failed_at = self._failures + 1, time.monotonic()

    def _pause(self) -> float:
        """Seconds to wait before the next start: none after the first failure, then twice as long each time."""
        if self._failures < 2:
            return 0.0
        wait = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._failures - 2))
        return max(0.0, self._failed_at + wait - time.monotonic())

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(_REFRESH):
                line = await self._ready()
                await line.refresh()
        except Exception as error:  # noqa: BLE001  one server's trouble is its own; its calls will tell the model
            self._note(f"its tools could not be listed again: {one_line(str(error)) or type(error).__name__}")

    async def _close(self) -> None:
        if (line := self._line) is not None and line.loop is asyncio.get_running_loop():
            await line.close()

    def _note(self, text: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(one_line(self.target.hide(text), 500))


def _pinged(line: Line) -> Callable[[Any, Any], Awaitable[Any]]:
    from mcp.types import EmptyResult  # noqa: PLC0415  slow to import

    async def begin(*_: Any) -> EmptyResult:
        await line.ping()
        return EmptyResult()

    return begin


def open_all(connections: Sequence[Connection]) -> list[str | None]:
    """Open several at the same time; for each why it did not open, or nothing."""
    if not connections:
        return []
    import nb_agent.mcp.line  # noqa: F401, PLC0415  see `Connection.open`

    async def one(connection: Connection) -> str | None:
        try:
            await connection._ready()  # noqa: SLF001  the class just above
        except ServerError as fault:
            return str(fault)
        return None

    async def together() -> list[str | None]:
        return await asyncio.gather(*map(one, connections))

    try:
        return background.run(together())
    except BaseException:
        for connection in connections:
            connection.drop()
        raise
