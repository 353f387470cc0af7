"""Connections to MCP servers that outlive the cell which made them, and their tools as tools of the loop.

A connection is opened in one cell, called from any other, closed in a third, and closed at exit in any case. Here they are held by
name; `connection` is one of them, and starts its server again when it has gone.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nb_agent import background
from nb_agent.errors import SettingError
from nb_agent.mcp.configuration import configured
from nb_agent.mcp.connection import CALL_LIMIT, Connection, open_all
from nb_agent.mcp.offered import McpTool, tools_of
from nb_agent.mcp.target import NAME, Target
from nb_agent.mcp.wirelog import WireLog

__all__ = ["Connection", "Hub"]


class Hub:
    """The MCP servers of one agent. When the hub is no longer referred to, its servers are ended.

    Attributes:
        connections: by name.
        log: the messages that went over their wires; `views.taps` draws them.
        prepare: is called with each new connection before it opens; a server learns then what it may ask (see `asking.attach`).
    """

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}
        self.log = WireLog()
        self.prepare: Callable[[Connection], None] = lambda _: None
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
        headers: Mapping[str, str] | None = None,
        era: str | None = None,
        start_limit: float = 20.0,
        call_limit: float = CALL_LIMIT,
        idle_limit: float | None = None,
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
            headers: sent with every request to ``url``, such as ``{"Authorization": "Bearer …"}``.
            era: ``"legacy"`` (handshake) or ``"modern"`` (2026-07-28) to speak only that one.
            call_limit: seconds that one call may take; each report of progress gives it as many anew, ten times at the most.
            idle_limit: seconds without a call after which the server is ended, to be started again at the next call.
            start_limit: seconds to wait for its first answer. Programs that are downloaded at first use need more.
            trusted: vouch for it: its hints decide what needs leave, and its answers are not framed as strangers' words.

        Raises:
            SettingError: the name or the combination of arguments cannot work.
            ServerError: the server did not start or did not answer; the text says why, with the end of its stderr.
        """
        settings: dict[str, Any] = {
            "start_limit": start_limit,
            "call_limit": call_limit,
            "idle_limit": idle_limit,
            "trusted": trusted,
        }
        place: dict[str, Any] = {
            "command": command,
            "url": url,
            "env": env,
            "cwd": cwd,
            "server": server,
            "headers": headers,
            "era": era,
        }
        connection = self._begun(name, **place, **settings)
        connection.open()
        self.connections[name] = connection
        return connection

    def _begun(
        self,
        name: str,
        *,
        start_limit: float,
        trusted: bool,
        call_limit: float = CALL_LIMIT,
        idle_limit: float | None = None,
        **place: Any,
    ) -> Connection:
        """The connection with these settings, not open yet where it is new; another one of this name is closed."""
        if not NAME.fullmatch(name):
            raise SettingError(f"MCP server name {name!r} does not fit: 1 to 32 of the characters A-Z a-z 0-9 _ -")
        target = Target.of(**place)
        known = self.connections.get(name)
        if known is not None and known.target == target:
            known.start_limit, known.call_limit, known.trusted = start_limit, call_limit, trusted
            known.wishes.idle_limit = idle_limit
            return known
        if known is not None:
            self.close(name)
        made = Connection(name, target, start_limit=start_limit, call_limit=call_limit, idle_limit=idle_limit, trusted=trusted)
        made.log = self.log
        self.log.watch(made)  # before it opens: the handshake is seen too
        self.prepare(made)
        return made

    def configure(self, path: str | os.PathLike[str], *, start_limit: float = 20.0, trusted: bool = False) -> tuple[str, ...]:
        """Connect to all servers of a configuration file, at the same time; a sentence for each that could not be.

        Unlike `connect` it goes on where one server does not start: the others have nothing to do with that.

        Args:
            path: a file as Claude Desktop, Cursor or VS Code write it (see `configuration.configured`).
            start_limit: see `connect`; it holds for each.
            trusted: see `connect`; it holds for all.

        Raises:
            SettingError: the file cannot be read, is no JSON, or lists no servers.
        """
        found = configured(path)
        told, begun = [*found.notes], []
        for name, arguments in found.servers.items():
            try:
                begun.append(self._begun(name, start_limit=start_limit, trusted=trusted, **arguments))
            except SettingError as fault:
                told.append(f"server {name!r} is left out: {fault}")
        for connection, why in zip(begun, open_all(begun), strict=True):
            if why is None:
                self.connections[connection.name] = connection
            else:
                told.append(why)
        return tuple(told)

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
        _all(connections, Connection._close)  # noqa: SLF001  the class beside this one

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
