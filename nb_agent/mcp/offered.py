"""Tools of MCP servers as tools of the loop: what the model is told of them, what they may do, how they are called.

Holds no connection open; `hub` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nb_agent.adapters.property_names import renamed, restored
from nb_agent.errors import ToolError
from nb_agent.guards.policy import Tier
from nb_agent.mcp.arguments import argument_faults
from nb_agent.mcp.mapping import parameters, result_parts, wire_names
from nb_agent.messages import Definition, Image, Text
from nb_agent.tools.schema import ArgumentsError
from nb_agent.values import JSON

if TYPE_CHECKING:
    from nb_agent.mcp.connection import Connection

__all__ = ["McpTool", "tools_of"]


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server, as a tool of the loop.

    Attributes:
        definition: what the model sees; its name has the connection's name in front and fits every provider.
        origin: the name under which the server knows it.
        schema: the server's own inputSchema, which arguments are checked against.
        hints: what the server says of its effects (``readOnlyHint`` …). Hints only: a server may say what it likes.
    """

    connection: Connection
    origin: str
    definition: Definition
    schema: JSON
    hints: JSON
    main_thread: bool = False
    asks_back: bool = True  # its server may ask a person while the call runs, who is asked in the thread of the cell
    time_limit: float | None = None  # the connection's holds

    @property
    def tier(self) -> Tier | None:
        """What the server's hints say that it may do; ``None`` where they say nothing.

        Its defaults for what is not hinted (MCP specification, ToolAnnotations: destructive until denied) are not taken over: of a
        server that hints nothing nothing is known.
        """
        if self.hints.get("readOnlyHint") is True:
            return "read"
        destructive = self.hints.get("destructiveHint")
        return None if destructive is None else "danger" if destructive else "write"

    @property
    def vouched(self) -> bool:
        """Whether the person vouches for its server."""
        return self.connection.trusted

    @property
    def untrusted(self) -> bool:
        """Whether its answers are words of strangers."""
        return not self.connection.trusted

    @property
    def name(self) -> str:
        """The name on the wire."""
        return self.definition.name

    def check(self, arguments: JSON) -> JSON:
        """The arguments as they are, if they fit the server's schema.

        Raises:
            ArgumentsError: they do not; each fault names its argument.
        """
        arguments = restored(arguments, renamed(self.schema.get("properties") or {}))  # names that one provider does not take
        if faults := argument_faults(self.schema, arguments):
            raise ArgumentsError(f"the arguments do not fit {self.name}: {'; '.join(faults)}")
        return arguments

    def call(self, arguments: JSON) -> tuple[Text | Image, ...]:
        """What the tool answered, part by part.

        Raises:
            ToolError: ``tool_failed`` where the tool itself says so; else see `Connection.call`.
        """
        result = self.connection.call(self.origin, arguments)
        parts = result_parts(result)
        if result.get("isError"):
            raise ToolError("\n".join(part.text for part in parts if isinstance(part, Text)) or "the tool failed without a word")
        return parts

    def wire(self, key: str) -> list[JSON]:
        """The messages that a call with this idempotency key sent and got (see `wirelog.WireLog.entries`)."""
        log = self.connection.log
        return [] if log is None else [entry for entry in log.entries() if entry["call_id"] == key]


def tools_of(connections: Sequence[Connection]) -> tuple[McpTool, ...]:
    """The tools of all connections as they were listed last, each under a name of its own."""
    listed = [(connection, tool) for connection in connections for tool in connection.listed]
    names = wire_names((connection.name, tool["name"]) for connection, tool in listed)
    return tuple(_tool(connection, tool, names[connection.name, tool["name"]]) for connection, tool in listed)


def _tool(connection: Connection, tool: JSON, name: str) -> McpTool:
    described = tool.get("description") or tool.get("title") or ""
    definition = Definition(name, described, parameters(tool["inputSchema"]))
    return McpTool(connection, tool["name"], definition, tool["inputSchema"], tool.get("annotations", {}))
