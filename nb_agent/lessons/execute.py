"""``python -m nb_agent.lessons.execute PATH…`` runs notebooks from top to bottom and keeps their outputs in the files.

Each gets a fresh kernel in its own folder, two run at a time. What changes from run to run and means nothing is left out: times of
execution in the metadata, the patch version of Python, widget state. A notebook with a failing cell is not written; the others are,
whole or not at all.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from nb_agent.errors import AgentError, SettingError

__all__ = ["Outcome", "execute", "main", "strip", "write"]

#: Notebooks that run at the same time: a kernel keeps a core busy, and the smallest machines have two.
AT_A_TIME: Final = 2
#: Seconds that a cell may take. The notebooks are made to take a few; this only ends what hangs.
CELL_LIMIT: Final = 60

_DROPPED_CELL: Final = ("execution", "collapsed", "scrolled")
_DROPPED_NOTEBOOK: Final = ("widgets", "signature")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A notebook that was run: its cells with their outputs, the seconds it took, and a line for each cell that failed."""

    path: Path
    notebook: NotebookNode
    seconds: float
    faults: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks that the command line names; the exit status is 1 where a cell failed."""
    parser = argparse.ArgumentParser(prog="python -m nb_agent.lessons.execute", description="Run notebooks and keep their outputs.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a notebook, or a folder of notebooks")
    try:
        outcomes = execute(_notebooks(parser.parse_args(arguments).paths))
        for outcome in outcomes:
            if not outcome.faults:
                write(outcome.notebook, outcome.path)
    except AgentError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for outcome in outcomes:
        sys.stdout.write(f"{outcome.path}: {outcome.seconds:.1f} s{', not written' if outcome.faults else ''}\n")
        sys.stderr.writelines(f"{fault}\n" for fault in outcome.faults)
    return int(any(outcome.faults for outcome in outcomes))


def _notebooks(paths: Iterable[Path]) -> list[Path]:
    """The notebooks that the paths stand for, each once.

    Raises:
        SettingError: a path is neither a notebook nor a folder with notebooks.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inside = sorted(path.glob("*.ipynb")) if path.is_dir() else [path] if path.is_file() and path.suffix == ".ipynb" else []
        if not inside:
            raise SettingError(f"{str(path)!r} is no notebook and no folder of notebooks")
        found |= dict.fromkeys(inside)
    return list(found)


# ------------------------------------------------------------------------------------------------------------- running


def execute(paths: Sequence[Path], *, folder: Path | None = None) -> list[Outcome]:
    """Run notebooks, two at a time, and come back with what came of each, in the order of the paths. No file is written.

    Args:
        paths: the notebooks.
        folder: where they run; without it, each in the folder that it is in.

    Raises:
        SettingError: a file holds no notebook.
    """
    books = [(path, _read(path)) for path in paths]
    return asyncio.run(_execute(books, folder))


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)  # type: ignore[no-any-return,no-untyped-call]  # nbformat is half typed
    except (OSError, ValueError, AttributeError, nbformat.ValidationError) as error:
        raise SettingError(f"{str(path)!r} holds no notebook: {' '.join(str(error).split())[:300]}") from None


async def _execute(books: list[tuple[Path, NotebookNode]], folder: Path | None) -> list[Outcome]:
    free = asyncio.Semaphore(AT_A_TIME)
    return await asyncio.gather(*(_execute_one(path, book, folder or path.parent, free) for path, book in books))


async def _execute_one(path: Path, book: NotebookNode, folder: Path, free: asyncio.Semaphore) -> Outcome:
    async with free:
        with tempfile.TemporaryDirectory() as profile:
            client = NotebookClient(
                book,
                timeout=CELL_LIMIT,
                kernel_name="python3",
                allow_errors=True,  # all failing cells are told, not only the first
                store_widget_state=False,
                record_timing=False,
                coalesce_streams=True,
                extra_arguments=["--log-level=ERROR"],  # kernels of 7.4 and later warn of their loopback sockets
                resources={"metadata": {"path": str(folder)}},
            )
            begun = time.monotonic()
            fault = ""
            try:
                await client.async_execute(env=_environment(profile))
            except (CellTimeoutError, DeadKernelError) as error:
                fault = f"{path}: {' '.join(str(error).split())[:300]}"
            seconds = time.monotonic() - begun
    strip(book)
    return Outcome(path, book, seconds, (*([fault] if fault else []), *_faults(path, book)))


def _environment(profile: str) -> dict[str, str]:
    """This process's environment without what a person has set for themselves: start-up files, model servers and keys."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NB_AGENT_")}
    return kept | {"IPYTHONDIR": profile, "PYTHONHASHSEED": "0"}


def _faults(path: Path, book: NotebookNode) -> Iterator[str]:
    for number, cell in enumerate(book.cells, 1):
        expected = "raises-exception" in cell.metadata.get("tags", ())
        for output in cell.get("outputs", ()):
            if output.output_type == "error" and not expected:
                yield f"{path}: cell {number} ({cell.id}): {output.ename}: {' '.join(output.evalue.split())[:300]}"


# ------------------------------------------------------------------------------------------------------------- the file


def strip(book: NotebookNode) -> None:
    """Take out what changes from run to run and from machine to machine, and means nothing to a reader.

    That is metadata, and in tracebacks the name of the file that a kernel invents for a cell.
    """
    for name in _DROPPED_NOTEBOOK:
        book.metadata.pop(name, None)
    book.metadata.get("language_info", {}).pop("version", None)
    for cell in book.cells:
        for name in _DROPPED_CELL:
            cell.metadata.pop(name, None)


def write(book: NotebookNode, path: Path) -> None:
    """Write a notebook, whole or not at all.

    Raises:
        SettingError: the file cannot be written.
    """
    content: Any = nbformat.writes(book, version=4)  # type: ignore[no-untyped-call]  # nbformat is half typed
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        try:
            beside.write_text(content.rstrip("\n") + "\n", encoding="utf-8", newline="\n")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SettingError(f"cannot write {str(path)!r}: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
