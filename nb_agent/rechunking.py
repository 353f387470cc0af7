"""Bytes of a chunked HTTP answer -> the same answer in fewer chunks: those that one read brought are made one.

Servers that stream send each token in a chunk of its own, and below httpx a chunk costs more time than all that is done with the
token. How a body is cut into chunks means nothing (RFC 9112, section 7.1), so that whoever passes it on may cut it anew. Nothing is
waited for, and only what is plain is touched: any head, size line or ending that is not as expected goes on as it is, for h11 to
judge. Pure; unlike `adapters.sse` it knows nothing of what the body says.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Chunks"]

_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_SIZE: Final = re.compile(rb"([0-9a-fA-F]{1,8})\r\n")
_BEGUN: Final = re.compile(rb"[0-9a-fA-F]{0,8}\r?")  # of a size line


class Chunks:
    """Where one connection is in its answer."""

    def __init__(self) -> None:
        self._at_head = False
        self._inside = False  # a chunked body
        self._owed = 0  # bytes of a chunk whose beginning has gone on
        self._held = b""  # a size line that is not whole

    def begin(self) -> None:
        """A request goes out: what comes next is the head of its answer."""
        self._at_head, self._inside, self._owed, self._held = True, False, 0, b""

    def merged(self, read: bytes) -> bytes:
        r"""What to go on with after a read; nothing where it only brought a part of a size line.

        >>> chunks = Chunks()
        >>> chunks.begin()
        >>> chunks.merged(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")[-5:]
        b'd\r\n\r\n'
        >>> chunks.merged(b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")
        b'5\r\nabcde\r\n0\r\n\r\n'
        """
        if self._at_head:
            self._at_head = False
            head, end, body = read.partition(b"\r\n\r\n")
            self._inside = bool(end) and head.startswith(b"HTTP/1.1 200 ") and bool(_CHUNKED.search(head + b"\r\n"))
            return head + end + self._fewer(body) if self._inside else read
        return self._fewer(read) if self._inside else read

    def _fewer(self, read: bytes) -> bytes:
        owed, rest = read[: self._owed], self._held + read[self._owed :]
        self._owed -= len(owed)
        found, rest = _whole(rest)
        self._held = rest if _BEGUN.fullmatch(rest) else b""
        if self._held or not rest:
            rest = b""
        else:
            self._follow(rest)
        body = b"".join(found)
        return owed + (b"%x\r\n%b\r\n" % (len(body), body) if found else b"") + rest

    def _follow(self, rest: bytes) -> None:
        """Bytes that are no whole chunk go on: one that has only begun, or something that is left alone from here on."""
        size = _SIZE.match(rest)
        length = int(size[1], 16) if size else 0
        self._owed = size.end() + length + 2 - len(rest) if size and length else 0
        self._inside = self._owed > 0


def _whole(data: bytes) -> tuple[list[bytes], bytes]:
    """What is in the whole chunks that the bytes begin with, and the rest."""
    found, at = [], 0
    while size := _SIZE.match(data, at):
        begin, end = size.end(), size.end() + int(size[1], 16)
        if begin == end or not data.startswith(b"\r\n", end):
            break
        found.append(data[begin:end])
        at = end + 2
    return found, data[at:]
