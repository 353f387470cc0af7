"""Where an MCP server is to be found, and how to speak of it in an error without giving away what it was told in private."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from nb_agent.errors import SettingError
from nb_agent.values import JSON

__all__ = ["ERAS", "NAME", "Era", "Target", "Wishes", "one_line"]

#: The pattern of a connection's name: it becomes the front part of its tools' names, which providers allow 64 characters.
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")

#: How a conversation with a server is begun: by the handshake, or by the discovery of 2026-07-28.
Era: TypeAlias = Literal["legacy", "modern"]

#: What may be given for an era, versions included, and which it is.
ERAS: Final[dict[str, Era]] = {
    "legacy": "legacy",
    "2024-11-05": "legacy",
    "2025-03-26": "legacy",
    "2025-06-18": "legacy",
    "2025-11-25": "legacy",
    "modern": "modern",
    "2026-07-28": "modern",
}

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
    headers: Mapping[str, str] = field(default_factory=dict)
    era: Era | None = None

    @classmethod
    def of(
        cls,
        command: Sequence[str | os.PathLike[str]] | None = None,
        *,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        server: object | None = None,
        headers: Mapping[str, str] | None = None,
        era: str | None = None,
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
        if headers and url is None:
            raise SettingError("headers belong to a server with url=…; a program is told by env={…}")
        if era is not None and era not in ERAS:
            raise SettingError(f"era={era!r} is not known; write 'legacy' (initialize) or 'modern' (2026-07-28), or leave it out")
        place = None if cwd is None else os.fspath(cwd)
        return cls(tuple(words), url, _texts(env), place, server, _texts(headers), ERAS[era] if era else None)

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
        """The text with every value of the given environment and headers replaced by ``***``.

        >>> Target.of(["srv"], env={"KEY": "s3cret"}).hide("bad key s3cret")
        'bad key ***'
        """
        words = [value.rpartition(" ")[2] for value in self.headers.values()]  # the key of "Bearer KEY"
        told = [*self.env.values(), *self.headers.values(), *words]
        secrets = {part for value in told for part in (value, value.strip()) if len(part) >= _SECRET_FROM}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def _texts(given: Mapping[str, str] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (given or {}).items()}


@dataclass(eq=False)
class Wishes:
    """What a connection wants of its lines beside a target; the lists may grow while a line is open.

    Attributes:
        idle_limit: seconds without a call after which the server is ended, to be started again at the next call.
        client: more arguments for the SDK's client, such as ``sampling_callback``; read when a line opens.
        heard: is given each message that the server sends unasked, as the SDK's object.
        progress: is given the numbers and the text of each report of progress.
        wire: is given ``"sent"`` or ``"received"`` and the message, as it goes over the wire, in JSON.
        deadlines: of the calls under way, for whoever stops the clock while a person is asked.
    """

    idle_limit: float | None = None
    client: dict[str, Any] = field(default_factory=dict)
    heard: list[Callable[[Any], None]] = field(default_factory=list)
    progress: list[Callable[[float, float | None, str | None], None]] = field(default_factory=list)
    wire: list[Callable[[str, JSON], None]] = field(default_factory=list)
    deadlines: set[asyncio.Timeout] = field(default_factory=set)


def one_line(text: str, most: int = 400) -> str:
    r"""Lines joined by bars, blank ones left out, cut in the middle.

    >>> one_line("first\n\n  second ")
    'first | second'
    """
    line = " | ".join(part.strip() for part in text.splitlines() if part.strip())
    half = most // 2
    return line if len(line) <= most else f"{line[:half]} … {line[-half:]}"
