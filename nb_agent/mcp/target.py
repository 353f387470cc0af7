"""Where an MCP server is to be found, and how to speak of it in an error without giving away what it was told in private."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from nb_agent.errors import SettingError

__all__ = ["NAME", "Target", "one_line"]

#: The pattern of a connection's name: it becomes the front part of its tools' names, which providers allow 64 characters.
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")

#: Shorter environment values (``1``, ``on``) are no secrets, and hiding them would make a text unreadable.
_SECRET_FROM: Final = 4


@dataclass(frozen=True, repr=False)
class Target:
    """A server: a command to start, an address, or an object in this process. Two that are equal are the same server."""

    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    server: object | None = None

    @classmethod
    def of(
        cls,
        command: Sequence[str | os.PathLike[str]] | None = None,
        *,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        server: object | None = None,
    ) -> Target:
        """The target that the arguments name.

        Raises:
            SettingError: not exactly one of command, url and server, or a command that is no list of words.
        """
        if sum(given is not None for given in (command, url, server)) != 1:
            raise SettingError("an MCP server needs exactly one of command=[…], url=… and server=…")
        if isinstance(command, (str, bytes)):
            words = shlex.split(os.fsdecode(command))
            raise SettingError(f"command is a list of words: write command={words!r} instead of {command!r}")
        words = [os.fspath(word) for word in command or ()]
        if command is not None and not words:
            raise SettingError("command is empty; name the program first, such as ['python', 'server.py']")
        place = None if cwd is None else os.fspath(cwd)
        return cls(tuple(words), url, {key: str(value) for key, value in (env or {}).items()}, place, server)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        """The command line, cut if it is long, or the address without user, password, query and fragment."""
        if self.url is not None:
            parts = urlsplit(self.url)
            return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        return (
            one_line(self.hide(shlex.join(self.command)), 200) if self.command else f"{type(self.server).__name__} in this process"
        )

    def hide(self, text: str) -> str:
        """The text with every value of the given environment replaced by ``***``.

        >>> Target.of(["srv"], env={"KEY": "s3cret"}).hide("bad key s3cret")
        'bad key ***'
        """
        secrets = {part for value in self.env.values() for part in (value, value.strip()) if len(part) >= _SECRET_FROM}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def one_line(text: str, most: int = 400) -> str:
    r"""Lines joined by bars, blank ones left out, cut in the middle.

    >>> one_line("first\n\n  second ")
    'first | second'
    """
    line = " | ".join(part.strip() for part in text.splitlines() if part.strip())
    half = most // 2
    return line if len(line) <= most else f"{line[:half]} … {line[-half:]}"
