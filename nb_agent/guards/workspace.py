"""The fence around one folder: where a path leads, and how a file inside is opened, replaced and found.

Every path that a tool takes goes through `Workspace.place`. It refuses what leads out, whichever way, and what means something
else on another system. Resolved paths are compared part by part, never texts. Since a folder can become a link between the check
and the use, files are opened step by step from the root, and a link on the way is refused. Where the system cannot do that
(Windows) the path is resolved once more after opening.

It does not stop a file inside from being the same file as one outside (a hard link, a mount): such a file can be read and
replaced, and is never written in place. Unlike `kit.files` it knows no tools, no texts and no sizes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Final

from nb_agent.errors import SettingError, ToolError

__all__ = ["Workspace"]

#: Characters of a path, and bytes of one name in it. File systems take 255 bytes.
MOST_LETTERS: Final = 1_000
MOST_BYTES: Final = 255
#: Files and folders that one search looks at.
MOST_SEEN: Final = 20_000

#: Names that are devices in every folder of Windows, with any ending (learn.microsoft.com/windows/win32/fileio/naming-a-file).
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE)
#: Control characters, halves of surrogate pairs, line and paragraph ends.
_UNWRITABLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
#: Characters that turn the direction of writing: a name with them is not the one that a person sees.
_TURNS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

#: Whether a file can be reached from an open folder, name by name, so that nothing on the way can be exchanged for a link.
_STEPS: Final = (
    {os.open, os.mkdir, os.stat, os.rename, os.unlink} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_NOFOLLOW")
)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
#: O_NONBLOCK: a pipe that has taken the place of a file must not be waited for.
_FILE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Workspace:
    """One folder, which no path leads out of.

    What opens takes what `place` gave. It raises `ToolError` for what is no ordinary file or was exchanged in between, and lets
    any `OSError` through.

    Attributes:
        root: the folder, resolved.

    Raises:
        SettingError: ``root`` is no folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise SettingError(f"{os.fspath(root)!r} is no folder; make it first, or name another one")

    def __repr__(self) -> str:
        return f"Workspace({self.root.name!r})"

    def place(self, path: str) -> Path:
        """Where a path leads once links and ``..`` are followed. It need not exist; ``""`` is the root itself.

        An absolute path is accepted where it leads into the root and the system has no drives.

        Raises:
            ToolError: with the code ``path_not_allowed``: it leads out or nowhere, or to no ordinary file or folder.
        """
        _check_spelling(path, path.removeprefix(f"{self.root}/"))
        try:
            place = Path(os.path.realpath(self.root / path))
        except (OSError, ValueError):  # a name that is no name for this system
            raise _refused(path, "leads nowhere") from None
        if not place.is_relative_to(self.root):
            raise _refused(path, "is outside the folder; give a path inside it, such as 'report.md'")
        step, mode = place, _mode(place)
        if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):  # reading a pipe would wait for ever
            raise _refused(path, "is no ordinary file")
        while step != self.root:  # links in a circle are left in a resolved path as they are
            if stat.S_ISLNK(mode):
                raise _refused(path, "leads nowhere")
            step = step.parent
            mode = _mode(step)
        return place

    def name(self, place: Path) -> str:
        """A path as the model knows it: relative to the root, with ``/`` on every system."""
        return place.relative_to(self.root).as_posix()

    @contextlib.contextmanager
    def reading(self, place: Path) -> Iterator[BufferedReader]:
        """The file at a place, open for reading."""
        with self._spot(place) as spot, os.fdopen(spot.open(os.O_RDONLY), "rb") as file:
            yield file

    @contextlib.contextmanager
    def changing(self, place: Path, *, make: bool = False) -> Iterator[FileIO]:
        """The file at a place, open for reading and writing in place, unbuffered; ``make`` makes it and its folders where needed.

        A file with a second name (a hard link) is refused: that name may be outside.
        """
        flags = os.O_RDWR | (os.O_CREAT if make else 0)
        with self._spot(place, make=make) as spot, os.fdopen(spot.open(flags), "r+b", buffering=0) as file:
            if os.fstat(file.fileno()).st_nlink > 1:
                raise _refused(spot.said, "has a second name (a hard link) and is not written in place; replace it as a whole")
            yield file

    def replace(self, place: Path, content: bytes) -> bool:
        """Write a file whole or not at all, with the folders above it, and say whether it is new. No reader sees a half of it."""
        with self._spot(place, make=True) as spot:
            before = spot.mode()
            beside = spot.beside(f".{secrets.token_hex(8)}.part")
            try:
                with os.fdopen(beside.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                    file.write(content)
                    if before is not None and hasattr(os, "fchmod"):
                        os.fchmod(file.fileno(), stat.S_IMODE(before))
                os.replace(beside.name, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(beside.name, dir_fd=spot.folder)
                raise
        return before is None

    def files(self, folder: Path) -> Iterator[Path]:
        """The ordinary files in a folder and in all folders inside it, in no order. Links and hidden files are left out.

        Raises:
            ToolError: there are too many to look at.
        """
        folders, seen = [folder], 0
        while folders:
            here = folders.pop()
            entries: list[tuple[str, bool, bool]] = []
            with contextlib.suppress(OSError, ToolError):  # not there, not readable, or a link by now: nothing is found in it
                entries = self._entries(here)
            seen += len(entries)
            if seen > MOST_SEEN:
                raise ToolError(f"more than {MOST_SEEN:,} files to look at; search one folder, as docs/*.md does", code="too_large")
            shown = [entry for entry in entries if not entry[0].startswith(".")]
            folders += [here / name for name, is_folder, _ in shown if is_folder]
            yield from (here / name for name, _, is_file in shown if is_file)

    def _entries(self, folder: Path) -> list[tuple[str, bool, bool]]:
        """What is in a folder, not followed: the name, whether it is a folder, whether it is an ordinary file."""
        with self._open(self._parts(folder)) as handle, os.scandir(folder if handle is None else handle) as found:
            some = itertools.islice(found, MOST_SEEN + 1)
            return [(entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)) for entry in some]

    @contextlib.contextmanager
    def _spot(self, place: Path, *, make: bool = False) -> Iterator[_Spot]:
        if place == self.root:
            raise ToolError("'.' is a folder, not a file", code="is_a_folder")
        *folders, name = self._parts(place)
        with self._open(folders, make=make) as handle:
            yield _Spot(name if handle is not None else str(place), handle, self.name(place))

    @contextlib.contextmanager
    def _open(self, parts: Iterable[str], *, make: bool = False) -> Iterator[int | None]:
        """A descriptor of a folder inside, reached from the root name by name; ``None`` where the system has no such thing."""
        if not _STEPS:
            self._walk(parts, make=make)
            yield None
            return
        handle = os.open(self.root, _FOLDER)
        try:
            for part in parts:
                inner = _enter(handle, part, make=make)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _walk(self, parts: Iterable[str], *, make: bool) -> None:
        """Look at each folder on the way, and make those that are missing, by their paths."""
        for here in itertools.accumulate(parts, Path.joinpath, initial=self.root):
            if make:
                here.mkdir(exist_ok=True)
            _check_still(here, self.name(here))

    def _parts(self, place: Path) -> tuple[str, ...]:
        if not place.is_relative_to(self.root) or ".." in place.parts:  # it does not come from `place`
            raise _refused(str(place), "is outside the folder")
        return place.relative_to(self.root).parts


@dataclass(frozen=True, slots=True)
class _Spot:
    """A name in an open folder; a whole path where ``folder`` is ``None``. ``said`` is what the model calls it."""

    name: str
    folder: int | None
    said: str

    def beside(self, name: str) -> _Spot:
        """Another name in the same folder."""
        return _Spot(name if self.folder is not None else str(Path(self.name).with_name(name)), self.folder, self.said)

    def mode(self) -> int | None:
        """The mode of the ordinary file here, ``None`` where nothing is; anything else is refused."""
        try:
            mode = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(mode):
            raise ToolError(f"{self.said!r} is a folder, not a file", code="is_a_folder")
        if not stat.S_ISREG(mode):
            raise _refused(self.said, "is no ordinary file")
        return mode

    def open(self, flags: int) -> int:
        """A descriptor of the ordinary file here."""
        self.mode()  # before opening, for opening a device may do something
        handle = os.open(self.name, flags | _FILE, 0o666, dir_fd=self.folder)
        try:
            self._check(handle)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _check(self, handle: int) -> None:
        """Refuse what has taken the place of the file between the look and the opening."""
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _refused(self.said, "is no ordinary file")
        if self.folder is None:
            _check_still(Path(self.name), self.said, handle)


def _enter(folder: int, name: str, *, make: bool) -> int:
    """A descriptor of a folder in an open one."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise _refused(name, "has become a link") from None
        raise


def _check_still(place: Path, said: str, handle: int | None = None) -> None:
    """Refuse a place that has come to lead elsewhere, and a descriptor of what is no longer there."""
    if Path(os.path.realpath(place)) != place or (handle is not None and not os.path.samestat(os.fstat(handle), place.lstat())):
        raise _refused(said, "has become a link")


def _check_spelling(path: str, inside: str) -> None:
    """Refuse what means something else on another system, or nothing at all. ``inside`` is the part below the root."""
    if len(path) > MOST_LETTERS:
        raise _refused(f"{path[:50]}…", f"and {len(path) - 50:,} more characters are too long for a path")
    if not path.isprintable() and any(letter in _TURNS or unicodedata.category(letter) in _UNWRITABLE for letter in path):
        raise _refused(path, "holds a character that no path may hold")
    if path.startswith("~"):
        raise _refused(path, "starts with ~, which stands for nothing here; give a path inside the folder")
    if "\\" in path or ":" in inside or path.startswith("//"):
        raise _refused(path, "is refused: write folders with / and without a drive or a colon, such as 'docs/a.md'")
    for name in inside.split("/"):
        _check_name(path, name)


def _check_name(path: str, name: str) -> None:
    if name[-1:] in {".", " "} and name not in {".", ".."}:
        raise _refused(path, f"is refused: {name!r} ends in a dot or a blank, which Windows would leave out")
    if _DEVICE.fullmatch(name):
        raise _refused(path, f"is refused: {name!r} is a device on Windows; take another name")
    if len(name) > MOST_BYTES // 4 and len(name.encode()) > MOST_BYTES:
        raise _refused(path, f"is refused: a name of more than {MOST_BYTES} bytes is too long")


def _refused(path: str, why: str) -> ToolError:
    return ToolError(f"{path!r} {why}", code="path_not_allowed")


def _mode(place: Path) -> int:
    """The mode of what is at a place, links not followed; 0 where nothing is or it cannot be reached."""
    try:
        return os.lstat(place).st_mode
    except OSError:
        return 0
