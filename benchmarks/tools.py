"""Whether calls that come together run together: several calls of 0.2 s each in one reply, against one.

    python benchmarks/tools.py [--runs 5] [--check]

This is the one benchmark of wall time, since waiting costs no CPU. README.md says what each row means.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from measuring import OURS, Row, main, middle, started
from server import Script
from sides import CALL_SECONDS

KINDS = (("plain functions", "wait"), ("coroutines", "await_"))
BARS = {8: 0.24, 32: 0.26}  # calls at once -> the most seconds that they may take together


def rows(runs: int) -> Iterator[Row]:
    with started(OURS) as bench:
        for kind, tool in KINDS:
            for calls, bar in BARS.items():
                taken = bench.turns(runs, Script(1, tool, calls=calls), (OURS,))[OURS]
                name = f"{calls} calls of {CALL_SECONDS} s, {kind}: seconds of the whole run; most at once"
                yield Row(name, f"{min(cost['most'] for cost in taken)}", "", middle(taken, lambda cost: cost["wall"]), bar)


if __name__ == "__main__":
    sys.exit(main("Calls of one reply side by side.", ("at once", "", "seconds"), 5, rows))
