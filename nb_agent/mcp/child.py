"""A server as a child process: started by the SDK, in a session of its own, with its stderr in a file of its own.

Of its own session, so that an interrupt of the kernel does not reach it (the SDK sees to that). Of its own file, because a kernel's
``sys.stderr`` may have no file descriptor, and because without its last words a server that fails to start cannot be understood.
What comes over the pipes is the business of `wiretap`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from mcp import StdioServerParameters, stdio_client

from nb_agent.mcp.narrow import Lines
from nb_agent.mcp.target import Target, one_line

__all__ = ["Child", "started_as"]

#: What lies on PATH under these names need not be the Python that the kernel and its packages live in: they mean that one.
_PYTHON: Final = {"python", "python3"}

#: Bytes of stderr that are looked at for its last words, how many lines of it are told, and how many characters.
_TAIL: Final = 4096
_LAST_LINES: Final = 5
_LAST_CHARACTERS: Final = 600

#: Characters of stderr that are kept, bytes that its file may have, and seconds between two looks at it.
_KEPT: Final = 64_000
_MOST: Final = 8_000_000
_LOOK: Final = 0.2

#: Seconds to wait for the exit code of a child whose pipes are closed.
_EXIT_CODE: Final = 0.5


class Child:
    """One start of one command."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._process: Any = None
        self._stderr: Path | None = None
        self._words = self._before = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, Any]]:
        """The streams of the SDK's transport; at the end the process has gone, whatever happened.

        Raises:
            OSError: the directory is not there, or the command cannot be started.
        """
        parameters = self._parameters()
        descriptor, path = tempfile.mkstemp(prefix="nb_agent-", suffix=".stderr")
        self._stderr = Path(path)
        try:
            with os.fdopen(descriptor, "a", encoding="utf-8") as errlog:
                async with (manager := stdio_client(parameters, errlog=errlog)) as streams:
                    self._process = _process(manager)
                    # Before anything is read: the SDK's reader is a task that has not run yet.
                    if self._process is not None and hasattr(self._process, "_stdout"):
                        self._process._stdout = Lines(self._process.stdout)  # noqa: SLF001  it has no other door
                    watch = asyncio.get_running_loop().create_task(self._keep_short())
                    try:
                        yield streams
                    finally:
                        watch.cancel()
        finally:
            self._words = self.stderr()
            with suppress(OSError):
                self._stderr.unlink()
            self._stderr = None

    def _parameters(self) -> StdioServerParameters:
        command, cwd = self._target.command, self._target.cwd
        if cwd is not None and not Path(cwd).is_dir():  # Python would say that the command was not found
            raise NotADirectoryError(f"there is no directory cwd={cwd!r}")
        program, *words = _guarded(started_as(command))
        return StdioServerParameters(
            command=program, args=words, env=dict(self._target.env), cwd=cwd, encoding_error_handler="replace"
        )

    @property
    def pid(self) -> int | None:
        """Its number, once it has been started."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; negative for a signal, ``None`` while it runs or where it is not known."""
        return None if self._process is None else self._process.returncode

    async def exited(self) -> None:
        """Give the loop a moment to learn the exit code of a child that has just ended."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + _EXIT_CODE
        while self._process is not None and self.exit_code is None and loop.time() < ends:  # noqa: ASYNC110  no event tells it earlier
            await asyncio.sleep(0.01)

    def end(self) -> None:
        """Ask the process and its own children to end now: for one that did not answer in time, and need not be waited for."""
        if self._process is None or self.exit_code is not None:
            return
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGTERM)  # it leads a session, so its group has its number
            else:
                self._process.terminate()

    def last_words(self) -> str:
        """The last lines of its stderr in one line, or nothing."""
        lines = [line for line in self.stderr()[-_TAIL:].splitlines() if line.strip()]
        return one_line("\n".join(lines[-_LAST_LINES:]), _LAST_CHARACTERS)

    def stderr(self) -> str:
        """The end of its stderr, as it was written."""
        if self._stderr is None:
            return self._words
        with self._stderr.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _KEPT))
            now = file.read().decode("utf-8", "replace")
        return (self._before + now)[-_KEPT:]

    async def _keep_short(self) -> None:
        """Cut the file of a server that floods its stderr: all of it on a disk helps nobody, and the disk would fill."""
        while self._stderr is not None:
            if self._stderr.stat().st_size > _MOST:
                self._before = self.stderr()
                os.truncate(self._stderr, 0)  # the server appends, so it goes on at the beginning
            await asyncio.sleep(_LOOK)

    def why_not_started(self, fault: OSError) -> str:
        """What kept the command from being run at all."""
        command = self._target.command[0]
        if fault.errno is None:
            return str(fault)
        if shutil.which(command) is None and isinstance(fault, FileNotFoundError):
            return f"the command {command!r} was not found; PATH is {os.environ.get('PATH', '')}"
        return f"the command {command!r} cannot be run: {fault.strerror}"


def started_as(
    command: Sequence[str], *, platform: str = sys.platform, which: Callable[[str], str | None] = shutil.which
) -> list[str]:
    r"""The words that are started for a command.

    On Windows ``npx`` and its like are files for the command interpreter, found only by their whole name.

    >>> started_as(["npx", "-y", "a&b"], platform="win32", which={"npx": r"C:\node\npx.cmd"}.get)
    ['C:\\node\\npx.cmd', '-y', 'a&b']
    """
    program, *words = command
    if program in _PYTHON:
        return [sys.executable, *words]
    found = which(program) if platform == "win32" else None
    return [found if found and found.lower().endswith((".cmd", ".bat")) else program, *words]


#: Linux ends a process that asks for it when the thread that started it is gone, which a kernel that is killed can no longer do.
#: The wish stays over exec; a parent that has gone before it was made is seen by its number.
_GUARD: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG, prctl(2)
os.getppid() == int(sys.argv[1]) or sys.exit()
os.execvp(sys.argv[2], sys.argv[2:])
"""


def _guarded(words: list[str]) -> list[str]:
    if sys.platform != "linux" or shutil.which(words[0]) is None:  # what cannot be started is told better without it
        return words
    return [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *words]


def _process(manager: AbstractAsyncContextManager[Any]) -> Any:
    """The process that the SDK's `stdio_client` has started, which it keeps to itself; ``None`` where it cannot be found.

    Needed for the exit code, which is half of the answer to "why did it not start", and to end a child that never answers.
    """
    frame = getattr(getattr(manager, "gen", None), "ag_frame", None)
    return None if frame is None else frame.f_locals.get("process")
