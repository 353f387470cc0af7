"""What the benchmarks of running conversations share: the server and the sides as processes, turns, medians, and the table.

Costs are CPU seconds of the side's process, all its threads together: other work on the machine changes them little. The sides take
turns, and a ratio is the median of the ratios of the turns, since a noisy moment hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from server import Script

HERE = Path(__file__).resolve().parent
OURS, THEIRS, FLOOR = "nb_agent", "httpx loop", "httpx, pieces joined"

Cost = dict[str, Any]  # what `sides.cost` says


class Row(NamedTuple):
    """A line of a table; ``bar`` is the most that ``value`` may be, ``None`` for a line that is only told."""

    name: str
    ours: str
    theirs: str
    value: float
    bar: float | None = None

    @property
    def met(self) -> bool:
        return self.bar is None or self.value <= self.bar

    def __str__(self) -> str:
        bar = "     -" if self.bar is None else f"{self.bar:6.2f}"
        verdict = "" if self.bar is None else "ok" if self.met else "MISSED"
        return f"{self.ours:>9} {self.theirs:>9} {self.value:7.2f} {bar}  {verdict:6}  {self.name}".rstrip()


class Bench:
    """A server and the sides that talk to it."""

    def __init__(self, processes: dict[str, subprocess.Popen[str]], port: int) -> None:
        self._processes = processes
        self._port = port

    def run(self, side: str, script: Script, *, stream: bool) -> Cost:
        """Let a side hold one conversation."""
        process = self._processes[side]
        job = {"url": f"http://127.0.0.1:{self._port}{script.path}", "tool": script.tool, "stream": stream}
        print(json.dumps(job), file=process.stdin, flush=True)
        answer = process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        if not answer:
            raise SystemExit(f"{side} ended in the middle of a conversation; its error stands above")
        cost: Cost = json.loads(answer)
        if cost["text"] != "done" or len(cost["stamps"]) != script.rounds * script.calls:
            raise SystemExit(f"{side} did not get through: {cost['text']!r} after {len(cost['stamps'])} calls")
        return cost

    def turns(
        self, runs: int, script: Script, sides: Sequence[str] = (OURS, THEIRS), *, stream: bool = False
    ) -> dict[str, list[Cost]]:
        """So many conversations of each side, in turns; one of each before them is thrown away."""
        for side in sides:
            self.run(side, script, stream=stream)
        taken = [{side: self.run(side, script, stream=stream) for side in sides} for _ in range(runs)]
        return {side: [turn[side] for turn in taken] for side in sides}


@contextmanager
def started(*sides: str) -> Iterator[Bench]:
    """The server and the sides; all are ended afterwards."""
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    with ExitStack() as ending:

        def start(script: str, *arguments: str) -> subprocess.Popen[str]:
            command = [sys.executable, str(HERE / script), *arguments]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            return ending.enter_context(process)  # its input is closed, which ends it, and it is waited for

        server = start("server.py")
        port = int(server.stdout.readline())  # type: ignore[union-attr]  # it is a pipe
        yield Bench({side: start("sides.py", side) for side in sides}, port)


def middle(costs: Iterable[Cost], of: Callable[[Cost], float] = lambda cost: cost["cpu"]) -> float:
    return statistics.median(map(of, costs))


def ratio(ours: Sequence[Cost], theirs: Sequence[Cost]) -> float:
    """CPU of one side against the other's, turn by turn."""
    return statistics.median(our["cpu"] / their["cpu"] for our, their in zip(ours, theirs, strict=True))


def main(about: str, head: tuple[str, str, str], runs: int, rows: Callable[[int], Iterable[Row]]) -> int:
    """The command line of a benchmark: a table, and 1 where ``--check`` finds a bar missed."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--runs", type=int, default=runs, help=f"conversations of each side ({runs})")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed")
    asked = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, medians of {asked.runs}")
    print(f"{head[0]:>9} {head[1]:>9} {head[2]:>7} {'bar':>6}")
    met = []
    for row in rows(asked.runs):
        print(row, flush=True)
        met.append(row.met)
    return 0 if all(met) or not asked.check else 1
