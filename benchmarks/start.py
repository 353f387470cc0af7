"""How long a start takes: importing nb_agent, loading it as an extension, and the first token count.

    python benchmarks/start.py [--runs 9] [--check]

Every measurement is a process of its own. A row's two sides take turns (ours, theirs, ours, ...), and what counts is the ratio
of their medians, held against the row's bar: machines differ and are noisy, ratios carry over. README.md says what each row means.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
VOCABULARIES = REPOSITORY / "nb_agent" / "data"

#: A notebook's kernel has made its shell before any cell runs: making one is on neither side of the clock.
SHELL = "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance()"
TEXT = "'The quick brown fox jumps over the lazy dog.'"


class Row(NamedTuple):
    """Two statements to compare; ``bar`` is the most that ours / theirs may be, ``None`` for a row that is only told."""

    name: str
    ours: str
    theirs: str
    bar: float | None
    before: str = "pass"  # run on our side before the clock starts
    before_theirs: str = "pass"


ROWS = (
    Row("import nb_agent / import httpx", "import nb_agent", "import httpx", 0.5),
    Row(
        "%load_ext nb_agent / import httpx, pydantic, IPython.core.magic, traitlets",
        "import nb_agent; nb_agent.load_ipython_extension(shell)",
        "import httpx, pydantic, IPython.core.magic, traitlets",
        1.1,
        before=SHELL,
    ),
    Row(
        "the same, both in a process that has a shell",
        "import nb_agent; nb_agent.load_ipython_extension(shell)",
        "import httpx, pydantic, IPython.core.magic, traitlets",
        None,
        before=SHELL,
        before_theirs=SHELL,
    ),
    *(
        Row(
            f"first count, {encoding} / tiktoken with its cache",
            f"import nb_agent.tokens; nb_agent.tokens.count({TEXT}, model={model!r})",
            f"import tiktoken; len(tiktoken.get_encoding({encoding!r}).encode_ordinary({TEXT}))",
            bar,
        )
        for encoding, model, bar in (("o200k_base", "gpt-4o", 0.8), ("cl100k_base", "gpt-4", None))
    ),
)

CHILD = """
import sys, time
before, measured = sys.argv[1:]
scope = {}
exec(before, scope)
begun = time.perf_counter()
exec(measured, scope)
print("seconds", time.perf_counter() - begun)
"""


class Failed(Exception):  # noqa: N818  it is a row that failed, not a fault of this script
    """A side of a row did not run; the text is the last line that it wrote."""


def seconds(before: str, measured: str, environment: dict[str, str]) -> float:
    """Run a statement in a fresh process.

    Raises:
        Failed: it did not run to its end.
    """
    command = [sys.executable, "-c", CHILD, before, measured]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=120, check=False)
    found = re.search(r"^seconds (\S+)$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise Failed((done.stderr.strip().splitlines() or ["it wrote nothing"])[-1])
    return float(found[1])


def measure(row: Row, runs: int, environment: dict[str, str]) -> tuple[float, float]:
    """The medians of both sides; one run of each first, so that files are in the page cache and compiled."""
    sides = ((row.before, row.ours), (row.before_theirs, row.theirs))
    taken = [[seconds(*side, environment) for side in sides] for _ in range(runs + 1)][1:]
    ours, theirs = (statistics.median(side) for side in zip(*taken, strict=True))
    return ours, theirs


def fill_cache(folder: Path) -> None:
    """Put our vocabularies where tiktoken looks for its own: under the SHA-1 of the address that it would load them from."""
    from tiktoken_ext import openai_public

    for path in VOCABULARIES.glob("*.tiktoken"):
        address = re.search(rf'"(\S+/{path.name})"', inspect.getsource(openai_public))
        if address is None:
            raise SystemExit(f"tiktoken_ext.openai_public no longer names {path.name}; see benchmarks/README.md")
        (folder / hashlib.sha1(address[1].encode()).hexdigest()).write_bytes(path.read_bytes())


def compare(row: Row, runs: int, environment: dict[str, str]) -> bool:
    """Print a row; whether its bar is met."""
    bar = f"{row.bar:5.2f}" if row.bar is not None else "    -"
    try:
        ours, theirs = measure(row, runs, environment)
    except Failed as fault:
        print(f"{'-':>8} {'-':>8} {'-':>6} {bar}  failed  {row.name}: {fault}", flush=True)
        return row.bar is None
    met = row.bar is None or ours <= row.bar * theirs
    verdict = "" if row.bar is None else "ok" if met else "MISSED"
    print(f"{ours * 1e3:8.1f} {theirs * 1e3:8.1f} {ours / theirs:6.2f} {bar}  {verdict:6}  {row.name}", flush=True)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description="Start-up times against what they rest on.")
    parser.add_argument("--runs", type=int, default=9, help="measurements of each side (9)")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed")
    asked = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, medians of {asked.runs}")
    print(f"{'ours ms':>8} {'theirs':>8} {'ratio':>6} {'bar':>5}")
    with tempfile.TemporaryDirectory() as folder:
        fill_cache(Path(folder))
        # IPYTHONDIR: a profile of its own, so that nobody's start-up files and history count
        environment = {**os.environ, "TIKTOKEN_CACHE_DIR": folder, "IPYTHONDIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a start without compiled files is not a usual one
        met = [compare(row, asked.runs, environment) for row in ROWS]
    return 0 if all(met) or not asked.check else 1


if __name__ == "__main__":
    sys.exit(main())
