"""MCP servers as sources of tools: connected in one cell, called in any other, closed in a third.

``hub`` is the door. ``line`` is the only user of the SDK's client (slow to import, so only when the first server is connected),
``child`` the process of a server, ``wiretap`` what stands between the SDK and the wire. ``mending``, ``mapping`` and ``arguments``
are pure. ``lesson_server`` is a small server to learn with. A server is never trusted: what it says is data, and nothing that it
does can put more than one line into a cell.
"""

from __future__ import annotations

from nb_agent.mcp.hub import Connection, Hub
from nb_agent.mcp.offered import McpTool

__all__ = ["Connection", "Hub", "McpTool"]
