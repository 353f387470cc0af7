"""Three tools for the files of one folder: read a text, find files by a pattern, write a text.

They refuse every path that leads out of the folder, whichever way: ``..``, an absolute path, a link, a drive, ``~``. What is
compared are resolved paths, part by part, never texts. Unlike `mcp.lesson_server` they run in this process and may write.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PureWindowsPath
from typing import Final

from nb_agent.errors import SettingError, ToolError
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["Workspace", "file_tools"]

#: Bytes of a file that are read or written at most.
MOST_BYTES: Final = 1_000_000
#: Files that one search returns, and files and folders that it looks at, at most.
MOST_FOUND: Final = 200
MOST_SEEN: Final = 20_000
#: Characters of a path or a pattern; longer ones are no names that anybody gave.
MOST_LETTERS: Final = 1_000


def file_tools(root: str | os.PathLike[str]) -> list[Tool]:
    """The tools ``read_file``, ``search_files`` and ``write_file`` for the files inside ``root``, in this order.

    Raises:
        SettingError: ``root`` is no folder.
    """
    space = Workspace(root)
    return [space.read_file, space.search_files, space.write_file]


class Workspace:
    """One folder, and what may be done in it.

    Args:
        root: the folder; it has to exist.

    Raises:
        SettingError: ``root`` is no folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise SettingError(f"{os.fspath(root)!r} is no folder; make it first, or name another one")

    def __repr__(self) -> str:
        return f"Workspace({self.root.name!r})"

    # ------------------------------------------------------------------------------------------------- the three tools

    @tool
    def read_file(self, path: str) -> JSON:
        """Read a text file.

        Args:
            path: the file, relative to the folder, e.g. config.yaml
        """
        place = self._file(path)
        try:
            with place.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise ToolError(f"there is no file {path!r}; search_files lists what there is", code="not_found") from None
        except OSError as error:
            raise ToolError(f"{path!r} cannot be read: {error.strerror}", code="not_readable") from None
        _check_size(path, len(content))
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ToolError(f"{path!r} is no UTF-8 text and cannot be read", code="not_text") from None
        return {"success": True, "path": self._name(place), "content": text}

    @tool
    def search_files(self, pattern: str) -> JSON:
        """Find files by a pattern of their names, in the folder and in all folders inside it.

        Args:
            pattern: names such as *.md are looked for in all folders, docs/*.md in one; a folder's name stands for all its files
        """
        parts = self._pattern(pattern)
        found = []
        for place in self._files(parts):
            name = self._name(place)
            if _matches(tuple(name.split("/")), parts):
                found.append(name)
        return {"success": True, "pattern": pattern, "files": sorted(found)[:MOST_FOUND], "count": len(found)}

    @tool
    def write_file(self, path: str, content: str) -> JSON:
        """Write a text file, whole or not at all. A file of that name is replaced, missing folders are made.

        Args:
            path: the file, relative to the folder, e.g. report.md
            content: the whole new text of the file
        """
        place = self._file(path)
        try:
            text = content.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolError("the content holds half of a surrogate pair; send whole characters", code="not_text") from None
        _check_size(path, len(text))
        new = not place.exists()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(place, text)
        except OSError as error:
            raise ToolError(f"{path!r} cannot be written: {error.strerror}", code="not_writable") from None
        return {"success": True, "path": self._name(place), "bytes": len(text), "created": new}

    # ----------------------------------------------------------------------------------------------------- where things are

    def _file(self, path: str) -> Path:
        place = self._place(path)
        try:
            mode = place.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return place
        except OSError as error:  # too long a name, a folder that may not be entered
            raise ToolError(f"{path!r} cannot be reached: {error.strerror}", code="not_readable") from None
        if stat.S_ISDIR(mode):
            raise ToolError(f"{path!r} is a folder, not a file", code="is_a_folder")
        if not stat.S_ISREG(mode):  # reading a pipe would wait for ever
            raise ToolError(f"{path!r} is no ordinary file", code="path_not_allowed")
        return place

    def _place(self, path: str) -> Path:
        """Where a path leads once links and ``..`` are followed.

        Raises:
            ToolError: out of the folder, or nowhere.
        """
        _check_spelling(path)
        try:
            place = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError):  # links in a circle (RuntimeError before Python 3.13), a name that is no name
            raise ToolError(f"{path!r} leads nowhere", code="path_not_allowed") from None
        if not place.is_relative_to(self.root):
            raise ToolError(f"{path!r} is outside the folder; give a path inside it, such as 'report.md'", code="path_not_allowed")
        inside = [step for step in (place, *place.parents) if step.is_relative_to(self.root)]
        if any(os.path.islink(step) for step in inside):  # noqa: PTH114  Path.is_symlink raises where a name is too long
            raise ToolError(f"{path!r} leads nowhere", code="path_not_allowed")  # a circle, which Python 3.13 leaves as it is
        return place

    def _name(self, place: Path) -> str:
        """A path as the model knows it: relative to the folder, with ``/`` on every system."""
        return place.relative_to(self.root).as_posix()

    def _pattern(self, pattern: str) -> tuple[str, ...]:
        """The parts of a pattern. One part is looked for at every depth, and a folder stands for what is in it."""
        parts = self._name(self._place(pattern)).split("/") if pattern else ["."]
        if parts == ["."]:
            return ("**",)
        if self.root.joinpath(*parts).is_dir():
            return (*parts, "**")
        return tuple(parts) if len(parts) > 1 else ("**", *parts)

    def _files(self, parts: tuple[str, ...]) -> Iterator[Path]:
        """The ordinary files where a pattern can be found; links and hidden files are left out."""
        fixed = takewhile(lambda part: not set(part) & set("*?["), parts[:-1])
        seen = 0
        for folder, folders, names in os.walk(self.root.joinpath(*fixed)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                place = Path(folder, name)
                with contextlib.suppress(OSError):  # it has gone in between
                    if not name.startswith(".") and stat.S_ISREG(place.lstat().st_mode):
                        yield place
            seen += len(folders) + len(names)
            if seen > MOST_SEEN:
                raise ToolError(f"more than {MOST_SEEN:,} files to look at; search one folder, as docs/*.md does", code="too_large")


def _check_spelling(path: str) -> None:
    """Refuse what means something else on another system, or nothing at all."""
    if len(path) > MOST_LETTERS:
        raise ToolError(f"a path of {len(path):,} characters is too long", code="path_not_allowed")
    if any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in path):  # null bytes, line ends, halves of surrogate pairs
        raise ToolError(f"{path!r} holds a character that no path may hold", code="path_not_allowed")
    if path.startswith("~"):
        raise ToolError(f"{path!r}: ~ stands for nothing here; give a path inside the folder", code="path_not_allowed")
    if "\\" in path or PureWindowsPath(path).drive:
        raise ToolError(f"{path!r}: write folders with / and without a drive, such as 'docs/a.md'", code="path_not_allowed")


def _check_size(path: str, size: int) -> None:
    if size > MOST_BYTES:
        raise ToolError(f"{path!r} is larger than {MOST_BYTES:,} bytes; take a smaller file", code="too_large")


@lru_cache(maxsize=1024)
def _matches(name: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the parts of a path fit those of a pattern, where ``**`` stands for any number of folders, even none."""
    if not pattern:
        return not name
    if pattern[0] == "**":
        return _matches(name, pattern[1:]) or (bool(name) and _matches(name[1:], pattern)) or (bool(name) and len(pattern) == 1)
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _matches(name[1:], pattern[1:])


def _write_whole(place: Path, content: bytes) -> None:
    """Write beside the file, then take its place in one step: who reads sees the old text or the new one, never a half."""
    beside = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
        if place.exists():
            beside.chmod(stat.S_IMODE(place.stat().st_mode))
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
