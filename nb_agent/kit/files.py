"""Tools for the files of one folder: read, search, write, append, patch, and hash.

They work with UTF-8 texts and with bytes as they are: line ends and a byte order mark stay. A file is read in pages and can be
written in pieces, whose repeats are noticed. Paths are `guards.workspace`'s business: nothing here opens a file by its path.
Unlike `mcp.lesson_server` they run in this process and may write.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from io import BufferedReader, FileIO
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from nb_agent.errors import ToolError
from nb_agent.guards.workspace import Workspace
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["file_tools"]

#: Bytes that one call writes, and of a file that is read, patched, searched or grows piece by piece.
MOST_BYTES: Final = 1_000_000
MOST_FILE: Final = 20_000_000
#: Characters of one page; a result is cut in its middle at about 20,000, and JSON writes some characters as two.
PAGE: Final = 12_000
#: Files, or lines that hold a text, that one search returns; bytes that it reads; characters of a line that it shows.
MOST_FOUND: Final = 200
MOST_SEARCHED: Final = 50_000_000
MOST_SHOWN: Final = 200

_Count = Annotated[int, Field(ge=0)]


def file_tools(root: str | os.PathLike[str]) -> list[Tool]:
    """Tools for the files inside ``root``: read_file, search_files, write_file, append_file, patch_file, file_hash, in this order.

    Those that only look have the tier ``read``, the others ``write``.

    Raises:
        SettingError: ``root`` is no folder.
    """
    files = _Files(Workspace(root))
    return [files.read_file, files.search_files, files.write_file, files.append_file, files.patch_file, files.file_hash]


class _Files:
    """The tools of one folder. Its methods are what the model sees."""

    def __init__(self, space: Workspace) -> None:
        self._space = space
        self._one = threading.Lock()  # calls of one round run side by side; a look and the change that rests on it belong together

    @tool(tier="read")
    def read_file(self, path: str, offset: _Count = 0, limit: Annotated[int, Field(ge=1)] = PAGE) -> JSON:
        """Read a text file. Of a long one a page comes, with the offset of the next.

        Args:
            path: the file, relative to the folder, e.g. config.yaml
            offset: characters to leave out at the start
            limit: the most characters to read
        """
        place = self._space.place(path)
        content = self._content(place, path)
        text = _text(content, path).removeprefix("\ufeff")
        if offset > len(text):
            raise ToolError(f"{path!r} has {len(text):,} characters; offset={offset} is past its end", code="past_the_end")
        end = _page_end(text, offset, min(limit, PAGE))
        answer = {"success": True, "path": self._space.name(place), "content": text[offset:end]}
        if end - offset < len(text):
            going = f"go on with offset={end}" if end < len(text) else "this is its end"
            note = f"characters {offset} to {end} of {len(text)}; {going}"
            answer |= {"characters": len(text), "next": end if end < len(text) else None, "note": note, **_state(content)}
        return answer

    @tool(tier="read")
    def search_files(self, pattern: str, text: str | None = None) -> JSON:
        """Find files by a pattern of their names, in the folder and in all folders inside it.

        Args:
            pattern: names such as *.md are looked for in all folders, docs/*.md in one; a folder's name stands for all its files
            text: only files that hold this text, with the lines that do; upper and lower case are the same
        """
        found = self._found(pattern)
        if text is None:
            return {"success": True, "pattern": pattern, "files": found[:MOST_FOUND], "count": len(found)}
        if not text.strip() or len(text.splitlines()) > 1:
            raise ToolError(f"text={text!r} is not a part of one line; give a word or a phrase", code="bad_text")
        lines = self._lines(found, text.casefold())
        files = list(dict.fromkeys(str(line["path"]) for line in lines))
        return {"success": True, "pattern": pattern, "files": files[:MOST_FOUND], "lines": lines[:MOST_FOUND], "count": len(lines)}

    @tool(tier="write")
    def write_file(self, path: str, content: str) -> JSON:
        """Write a text file, whole or not at all. A file of that name is replaced, missing folders are made.

        Args:
            path: the file, relative to the folder, e.g. report.md
            content: the whole new text of the file
        """
        place = self._space.place(path)
        new = _bytes(content, path)
        with self._one, _said(path, "written"):
            created = self._space.replace(place, new)
        return {"success": True, "path": self._space.name(place), "bytes": len(new), "created": created}

    @tool(tier="write")
    def append_file(self, path: str, content: str, offset: _Count) -> JSON:
        """Write a long text file piece by piece: add a piece to its end. A piece that is there already is not added again.

        Args:
            path: the file, relative to the folder, e.g. report.md
            content: the next piece of the text
            offset: size of the file in bytes before this piece: 0 for a new file, then the bytes that the last answer gave
        """
        place = self._space.place(path)
        piece = _bytes(content, path)
        with self._one, _said(path, "written"), self._space.changing(place, make=offset == 0) as file:
            repeated = _append(file, piece, offset, path)
            return {"success": True, "path": self._space.name(place), "repeated": repeated, **_state_of(file)}

    @tool(tier="write")
    def patch_file(self, path: str, old: str, new: str, sha256: str | None = None) -> JSON:
        """Change one place in a text file: put a new text where the old one stands.

        Args:
            path: the file, relative to the folder, e.g. config.yaml
            old: the text to replace, exactly as it is in the file, with so much around it that it occurs only once
            new: the text to put there
            sha256: hash that the file must have before, where it may have changed since it was read
        """
        place = self._space.place(path)
        with self._one:
            content = self._content(place, path)
            _text(content, path)
            if sha256 is not None and sha256.lower() != _state(content)["sha256"]:
                raise ToolError(f"{path!r} has changed: its sha256 is {_state(content)['sha256']}; read it again", code="changed")
            at = _only(content, _bytes(old, path), _bytes(new, path), path)
            patched = content[:at] + new.encode() + content[at + len(old.encode()) :]
            _check_size(path, len(patched), MOST_FILE)
            with _said(path, "written"):
                self._space.replace(place, patched)
        return {"success": True, "path": self._space.name(place), "line": content[:at].count(b"\n") + 1, **_state(patched)}

    @tool(tier="read")
    def file_hash(self, path: str) -> JSON:
        """Size in bytes and SHA-256 of a file, to check that it is whole or has not changed.

        Args:
            path: the file, relative to the folder, e.g. report.md
        """
        place = self._space.place(path)
        with _said(path, "read"), self._space.reading(place) as file:
            return {"success": True, "path": self._space.name(place), **_state_of(file)}

    # ------------------------------------------------------------------------------------------------- files and names

    def _content(self, place: Path, path: str) -> bytes:
        with _said(path, "read"), self._space.reading(place) as file:
            content = file.read(MOST_FILE + 1)
        _check_size(path, len(content), MOST_FILE)
        return content

    def _found(self, pattern: str) -> list[str]:
        """The files whose paths fit a pattern; one part is looked for at every depth, and a folder stands for what is in it."""
        place = self._space.place(pattern)
        parts = place.relative_to(self._space.root).parts
        if place.is_dir():
            parts = (*parts, "**")
        elif len(parts) == 1:
            parts = ("**", *parts)
        fixed = takewhile(lambda part: not set(part) & set("*?["), parts[:-1])
        names = map(self._space.name, self._space.files(self._space.root.joinpath(*fixed)))
        return sorted(name for name in names if _matches(tuple(name.split("/")), parts))

    def _lines(self, names: list[str], text: str) -> list[JSON]:
        """The lines that hold a text, whatever their case. Files that are no texts, too large or unreadable hold none."""
        lines, left = [], MOST_SEARCHED
        for name in names:
            content = ""
            with contextlib.suppress(ToolError):
                content = _text(self._content(self._space.root / name, name), name)
            left -= len(content)
            if left < 0:
                raise ToolError(f"more than {MOST_SEARCHED:,} characters to look at; search fewer files", code="too_large")
            for number, line in enumerate(content.split("\n"), 1):
                if text in line.casefold():
                    lines.append({"path": name, "line": number, "text": line.strip()[:MOST_SHOWN]})
        return lines


# ------------------------------------------------------------------------------------------------- contents


def _state(content: bytes) -> JSON:
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _state_of(file: BufferedReader | FileIO) -> JSON:
    file.seek(0)
    return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": file.tell()}


def _text(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path!r} is no UTF-8 text and cannot be read", code="not_text") from None


def _bytes(text: str, path: str) -> bytes:
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("the content holds half of a surrogate pair; send whole characters", code="not_text") from None
    _check_size(path, len(content), MOST_BYTES)
    return content


def _page_end(text: str, start: int, length: int) -> int:
    """Where a page ends: after a whole line, where lines are not too long."""
    end = start + length
    return min(len(text), end if end >= len(text) else text.rfind("\n", start + length * 3 // 4, end) + 1 or end)


def _append(file: FileIO, piece: bytes, offset: int, path: str) -> bool:
    """Write a piece where a file ends, or see that it is there already. What was half written is taken back."""
    size = file.seek(0, os.SEEK_END)
    if size == offset:
        _check_size(path, size + len(piece), MOST_FILE)
        rest = memoryview(piece)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            os.ftruncate(file.fileno(), size)
            raise
        return False
    file.seek(offset)
    if offset < size and piece and file.read(len(piece)) == piece:
        return True
    raise ToolError(f"{path!r} has {size} bytes, not {offset}; go on with offset={size}, or write it anew", code="wrong_offset")


def _only(content: bytes, old: bytes, new: bytes, path: str) -> int:
    """Where the one occurrence of a text begins."""
    at = content.find(old)
    if not old or at < 0:
        there = "; the new text is there already" if new and new in content else ""
        ends = "; its lines end in \\r\\n" if b"\r\n" in content and b"\n" in old.replace(b"\r\n", b"") else ""
        raise ToolError(f"the old text is not in {path!r}{there}{ends}; read the file and copy it exactly", code="no_match")
    again = content.find(old, at + 1)
    if again >= 0:
        first, second = (content[:place].count(b"\n") + 1 for place in (at, again))
        raise ToolError(f"the old text is in {path!r} more than once, in lines {first} and {second}; give more", code="not_unique")
    return at


def _check_size(path: str, size: int, most: int) -> None:
    if size > most:
        raise ToolError(f"{path!r} is larger than {most:,} bytes; take a smaller file or piece", code="too_large")


@contextlib.contextmanager
def _said(path: str, done: str) -> Iterator[None]:
    """What the system says about a file, in words and a code for the model."""
    try:
        yield
    except OSError as error:
        missing = (FileNotFoundError, NotADirectoryError) if done == "read" else FileNotFoundError
        if isinstance(error, missing):
            raise ToolError(f"there is no file {path!r}; search_files lists what there is", code="not_found") from None
        code = "not_readable" if done == "read" else "not_writable"
        raise ToolError(f"{path!r} cannot be {done}: {error.strerror}", code=code) from None


@lru_cache(maxsize=1024)
def _matches(name: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the parts of a path fit those of a pattern, where ``**`` stands for any number of folders, even none."""
    if not pattern:
        return not name
    if pattern[0] == "**":
        return _matches(name, pattern[1:]) or (bool(name) and _matches(name[1:], pattern)) or (bool(name) and len(pattern) == 1)
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _matches(name[1:], pattern[1:])
