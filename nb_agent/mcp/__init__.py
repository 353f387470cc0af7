"""MCP servers as sources of tools: connected in one cell, called in any other, closed in a third.

``hub`` is the door, ``connection`` one server, ``configuration`` a file of them. ``line`` and ``way`` use the SDK (slow to import),
``child`` the process of a server, ``wiretap`` what stands between the SDK and the wire. ``mending``, ``mapping`` and ``arguments``
are pure. ``lesson_server`` is a small server to learn with. A server is never trusted: what it says is data, and nothing that it
does can put more than one line into a cell.
"""

from __future__ import annotations

from nb_agent.mcp.connection import Connection
from nb_agent.mcp.hub import Hub
from nb_agent.mcp.offered import McpTool

__all__ = ["Connection", "Hub", "McpTool"]
