"""Connections to MCP servers that outlive the cell which made them, and their tools as tools of the loop.

A connection is opened in one cell, called from any other, closed in a third, and closed at exit in any case. A server that has gone
is started again at the next call; a call that was lost with it is never repeated, because it may have had its effect. Here is the
blocking side; `line` has the task that owns the SDK's client.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from nb_agent import background
from nb_agent.errors import ServerError, SettingError, ToolError
from nb_agent.mcp.offered import McpTool, tools_of
from nb_agent.mcp.target import NAME, Target, one_line
from nb_agent.values import JSON

if TYPE_CHECKING:
    from nb_agent.mcp.line import Line

__all__ = ["Connection", "Hub"]

#: Seconds that one call may take, unless its tool says otherwise.
CALL_LIMIT: Final = 30.0
#: Seconds that reading the lists of tools again may take at the start of a run.
_REFRESH: Final = 5.0
#: Notes that are kept of one connection: a server that floods its standard output must not fill the memory.
_MOST_NOTES: Final = 200


class Connection:
    """One server under one name.

    Attributes:
        name: the front part of its tools' names.
        notes: what a person should know: stray lines on its standard output, tools that were left out, an end nobody asked for.
        call_limit: seconds that one call may take.
        trusted: whether the person vouches for it (see `McpTool.tier`).
    """

    def __init__(
        self, name: str, target: Target, *, start_limit: float, call_limit: float = CALL_LIMIT, trusted: bool = False
    ) -> None:
        self.name = name
        self.target = target
        self.start_limit = start_limit
        self.trusted = trusted
        self.call_limit = call_limit
        self.notes: list[str] = []
        self._line: Line | None = None
        self._tools: tuple[JSON, ...] = ()

    def __repr__(self) -> str:
        return f"<MCP server {self.name}: {self}>"

    def __str__(self) -> str:
        return f"{self.target}, {len(self._tools)} tools, {'open' if self.alive else 'closed'}"

    @property
    def alive(self) -> bool:
        """Whether the server is there; one that is not is started again at the next call."""
        return self._line is not None and not self._line.ended

    @property
    def listed(self) -> tuple[JSON, ...]:
        """Its tools as the server listed them last, in the JSON of the protocol."""
        return self._tools

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
        return background.run(self._call(tool, arguments, self.call_limit if limit is None else limit))

    async def _ready(self) -> Line:
        from nb_agent.mcp.line import Line  # noqa: PLC0415  see open

        # From here to the assignment nothing is awaited, so calls that come together start one server and not several.
        if self._line is None or self._line.ended or self._line.loop is not asyncio.get_running_loop():
            self._line = Line(self.name, self.target, limit=self.start_limit, note=self._note)
        line = self._line
        await line.ready()
        self._tools = line.tools
        return line

    async def _call(self, tool: str, arguments: JSON, limit: float) -> JSON:
        try:
            line = await self._ready()
        except ServerError as error:
            raise ToolError(str(error), code=error.kind) from None
        return await line.call(tool, arguments, limit)

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(_REFRESH):
                line = await self._ready()
                await line.refresh()
                self._tools = line.tools
        except Exception as error:  # noqa: BLE001  one server's trouble is its own; its calls will tell the model
            self._note(f"its tools could not be listed again: {one_line(str(error)) or type(error).__name__}")

    async def _close(self) -> None:
        if (line := self._line) is not None and line.loop is asyncio.get_running_loop():
            await line.close()

    def _note(self, text: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(one_line(self.target.hide(text), 500))


class Hub:
    """The MCP servers of one agent. When the hub is no longer referred to, its servers are ended.

    Attributes:
        connections: by name.
    """

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}
        self._known: tuple[Any, tuple[McpTool, ...]] = ((), ())
        # Not at exit: `line` does that for all at once, and waits for them.
        weakref.finalize(self, _drop, self.connections).atexit = False

    def connect(
        self,
        name: str,
        *,
        command: Sequence[str | os.PathLike[str]] | None = None,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        server: object | None = None,
        start_limit: float = 20.0,
        trusted: bool = False,
    ) -> Connection:
        """Connect to a server; again with the same settings gives the same connection, with others it replaces it.

        Args:
            name: comes before the names of its tools: ``NAME__tool``.
            command: the program to start and its arguments; it speaks MCP over its standard input and output.
            url: address of a server that runs already (Streamable HTTP).
            env: given to the program beside HOME, LOGNAME, PATH, SHELL, TERM and USER, which is all that it inherits.
            cwd: the directory that the program starts in; the kernel's own where it is not given.
            server: an `mcp.server.MCPServer` in this process, for tests.
            start_limit: seconds to wait for its first answer. Programs that are downloaded at first use need more.
            trusted: vouch for it: its hints decide what needs leave, and its answers are not framed as strangers' words.

        Raises:
            SettingError: the name or the combination of arguments cannot work.
            ServerError: the server did not start or did not answer; the text says why, with the end of its stderr.
        """
        if not NAME.fullmatch(name):
            raise SettingError(f"MCP server name {name!r} does not fit: 1 to 32 of the characters A-Z a-z 0-9 _ -")
        target = Target.of(command, url=url, env=env, cwd=cwd, server=server)
        known = self.connections.get(name)
        if known is not None and known.target == target:
            known.start_limit, known.trusted = start_limit, trusted
            known.open()
            return known
        if known is not None:
            self.close(name)
        connection = Connection(name, target, start_limit=start_limit, trusted=trusted)
        connection.open()
        self.connections[name] = connection
        return connection

    def close(self, name: str) -> None:
        """End a server and forget it.

        Raises:
            SettingError: there is none of this name.
        """
        if name not in self.connections:
            raise SettingError(f"no MCP server named {name!r}; connected are: {', '.join(self.connections) or 'none'}")
        self.connections.pop(name).close()

    def close_all(self) -> None:
        """End all servers, at the same time."""
        connections = list(self.connections.values())
        self.connections.clear()
        _all(connections, Connection._close)  # noqa: SLF001  the class just above

    def refresh(self) -> None:
        """Read the lists of tools again, a few seconds at the most; what cannot be read is noted and stays as it was."""
        _all(list(self.connections.values()), Connection._refresh)  # noqa: SLF001

    def tools(self) -> tuple[McpTool, ...]:
        """The tools of all servers as they were listed last, each under a name of its own."""
        state = tuple((connection, connection.listed) for connection in self.connections.values())
        if state != self._known[0]:
            self._known = (state, tools_of(list(self.connections.values())))
        return self._known[1]


def _all(connections: list[Connection], act: Any) -> None:
    async def together() -> None:
        await asyncio.gather(*(act(connection) for connection in connections))

    if connections:
        background.run(together())


def _drop(connections: dict[str, Connection]) -> None:
    for connection in connections.values():
        connection.drop()
