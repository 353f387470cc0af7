"""The tools of one server, read page by page, and read again when the server says that they changed.

Knows no transport: it is given what fetches one page. A bad tool inside a page is `mending`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND

from nb_agent.mcp.target import one_line
from nb_agent.values import JSON

__all__ = ["Listing"]

#: Pages that are read: a server that never ends its list must not hold a cell.
_MOST_PAGES: Final = 200


class Listing:
    """The list as it was read last.

    Args:
        fetch: gives the page of a cursor.
        note: is told in a sentence what a person should know.

    Attributes:
        tools: in the JSON of the protocol; of several with one name the first.
    """

    def __init__(self, fetch: Callable[[str | None], Awaitable[Any]], note: Callable[[str], None]) -> None:
        self.tools: tuple[JSON, ...] = ()
        self._fetch, self._note = fetch, note
        self._again = False
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Read all pages.

        Raises:
            MCPError: the first page did not come, or the connection closed.
        """
        tools: dict[str, JSON] = {}
        seen: list[str | None] = []
        cursor: str | None = None
        while cursor not in seen and len(seen) < _MOST_PAGES:
            seen.append(cursor)
            try:
                page = await self._fetch(cursor)
            except MCPError as error:
                if cursor is None and error.code == METHOD_NOT_FOUND:
                    break  # a server may have only resources or prompts
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
        self.tools = tuple(tools.values())

    def changed(self) -> None:
        """Read it again soon; several changes that come together are one."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._reread())

    async def _reread(self) -> None:
        while self._again:
            self._again = False
            before = {tool["name"] for tool in self.tools}
            try:
                await self.read()
            except Exception as error:  # noqa: BLE001  whoever calls next is told why; nobody waits for this
                self._note(f"its tools changed and could not be listed again: {one_line(str(error)) or type(error).__name__}")
                return
            now = {tool["name"] for tool in self.tools}
            if now != before:
                told = [f"new: {name}" for name in sorted(now - before)] + [f"gone: {name}" for name in sorted(before - now)]
                self._note(f"its list of tools changed: {one_line(', '.join(told), 200)}")

    def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
