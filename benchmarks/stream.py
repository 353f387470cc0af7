"""What an event of a stream costs, against the same stream read by hand with httpx: a call whose arguments come in tiny pieces.

    python benchmarks/stream.py [--runs 7] [--check]

README.md says what each row means.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from measuring import OURS, THEIRS, Cost, Row, main, middle, ratio, started
from server import Script, events

BAR, GROWTH = 1.3, 1.15
SMALL, LARGE = 16, 256  # KB of arguments


def microseconds(costs: list[Cost], count: int) -> float:
    return middle(costs) * 1e6 / count


def rows(runs: int) -> Iterator[Row]:
    each: dict[str, list[float]] = {OURS: [], THEIRS: []}
    with started(OURS, THEIRS) as bench:
        for size in (SMALL, LARGE):
            script = Script(1, "save", size=size * 1024)
            count = sum(len(events(script, turn)) for turn in range(2))
            taken = bench.turns(runs, script, stream=True)
            for side, costs in taken.items():
                each[side].append(microseconds(costs, count))
            ours, theirs = each[OURS][-1], each[THEIRS][-1]
            name = f"CPU per event, {size} KB of arguments in {count:,} events / httpx loop"
            yield Row(name, f"{ours:.1f} us", f"{theirs:.1f} us", ratio(taken[OURS], taken[THEIRS]), BAR)
    for side, bar in ((OURS, GROWTH), (THEIRS, None)):
        small, large = each[side]
        yield Row(f"{LARGE} KB / {SMALL} KB, {side}", f"{large:.1f} us", f"{small:.1f} us", large / small, bar)


if __name__ == "__main__":
    sys.exit(main("An event of a stream against a stream read by hand.", ("ours", "against", "ratio"), 7, rows))
