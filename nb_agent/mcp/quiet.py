"""What the SDK writes to its log becomes a note of the connection that it is about, instead of a traceback in the cell.

Only what happens on behalf of our own connections: a context variable tells, and tasks that the SDK starts inherit it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["telling"]

_note: ContextVar[Callable[[str], None] | None] = ContextVar("nb_agent_mcp_note", default=None)

#: Loggers of the SDK's client. A filter does not reach the loggers below, so they are named one by one.
_LOGGERS: Final = (
    "mcp.client.client",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
    "mcp.os.posix.utilities",
    "client",  # mcp/client/session.py calls itself so
)

#: What is told better elsewhere: the wiretap quotes the line itself.
_KNOWN: Final = "Failed to parse JSONRPC message"


@contextmanager
def telling(note: Callable[[str], None]) -> Iterator[None]:
    """Inside, warnings and errors of the SDK go to ``note``."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_told)  # the same filter is only added once
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


def _told(record: logging.LogRecord) -> bool:
    note = _note.get()
    if note is None or record.levelno < logging.WARNING:
        return True
    if not record.getMessage().startswith(_KNOWN):
        note(record.getMessage())
    return False
