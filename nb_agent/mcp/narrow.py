"""The standard output of a server, in whole lines, none of them longer than a limit.

The SDK joins a long line anew for each piece of it, so an answer of 50 MB would hold the background loop for many seconds, and then
be 50 MB for the model. A line that is too long is read away, and an error answer to the same request stands in its place.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["MOST", "TOO_LONG", "Lines"]

#: Code of the error in place of a line that was too long (of the range that JSON-RPC leaves to implementations).
TOO_LONG: Final = -32098

#: Bytes of one message that are taken. A picture of a screen is below 8 MB in base64.
MOST: Final = 16 * 2**20

#: Bytes at both ends of a long line that are looked at for the id: some servers write it first, some last.
_ENDS: Final = 300
_FIRST: Final = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"[^"\\]*")')
_LAST: Final = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class Lines:
    """A byte stream in front of another: what it gives ends with a line, always."""

    def __init__(self, inner: Any, *, most: int = MOST) -> None:
        self._inner, self._most = inner, most
        self._pieces: list[bytes] = []
        self._size = 0

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """The next lines.

        Raises:
            anyio.EndOfStream: there are no more; a last piece without an end of line is given before.
        """
        while True:
            try:
                chunk: bytes = await self._inner.receive(max_bytes)
            except Exception:
                if self._pieces:
                    return self._taken(b"")
                raise
            head, newline, tail = chunk.rpartition(b"\n")
            if not newline:
                self._keep(chunk)
                continue
            first, _, rest = (head + b"\n").partition(b"\n")
            whole = self._taken(first + b"\n") + rest
            self._keep(tail)
            return whole

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._most and len(self._pieces) > 2:
            last = b"".join(self._pieces[1:])[-_ENDS:]
            self._pieces = [self._pieces[0], last]

    def _taken(self, end: bytes) -> bytes:
        line, size = b"".join(self._pieces) + end, self._size + len(end)
        self._pieces, self._size = [], 0
        return line if size <= self._most else _instead(line, size, self._most)

    async def aclose(self) -> None:
        """Close the stream behind it."""
        await self._inner.aclose()


def _instead(line: bytes, size: int, most: int) -> bytes:
    found = _FIRST.search(line[:_ENDS]) or _LAST.search(line[-_ENDS:])
    said = f"a message of {size / 1e6:.1f} MB came, which is more than the {most / 1e6:.1f} MB that are taken; ask for less"
    error = {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": {"code": TOO_LONG, "message": said}} if found else said
    return (json.dumps(error) if found else said).encode() + b"\n"
