"""What a round of the tool-calling loop costs, against the same loop written by hand on httpx; and whether it grows.

    python benchmarks/loop.py [--runs 9] [--check]

README.md says what each row means.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence

from measuring import FLOOR, OURS, THEIRS, Bench, Cost, Row, main, middle, ratio, started
from server import Script

BAR, AIM, GROWTH = 1.3, 1.0, 1.25


def pace(stamps: Sequence[float]) -> float:
    """CPU seconds from one tool call to the next: a request, its answer and the call."""
    return statistics.median(later - earlier for earlier, later in zip(stamps, stamps[1:], strict=False))


def growth(cost: Cost) -> float:
    """The last ten requests against the first ten."""
    return pace(cost["stamps"][-11:]) / pace(cost["stamps"][:11])


def round_rows(bench: Bench, runs: int, rounds: int) -> Iterator[Row]:
    script = Script(rounds, "fetch")
    taken = bench.turns(runs, script, (OURS, THEIRS, FLOOR))

    def milliseconds(side: str) -> str:
        return f"{middle(taken[side]) * 1e3 / (rounds + 1):.2f} ms"

    name = f"CPU per request, {rounds} rounds"
    yield Row(f"{name} / httpx loop (aim: {AIM})", milliseconds(OURS), milliseconds(THEIRS), ratio(taken[OURS], taken[THEIRS]), BAR)
    yield Row(f"{name} / httpx, pieces joined", milliseconds(OURS), milliseconds(FLOOR), ratio(taken[OURS], taken[FLOOR]))
    if rounds >= 20:
        for side, bar in ((OURS, GROWTH), (THEIRS, None)):
            first, last = (
                middle(taken[side], lambda cost, part=part: pace(cost["stamps"][part])) for part in (slice(11), slice(-11, None))
            )
            name = f"last ten requests / first ten, {side}"
            yield Row(name, f"{last * 1e3:.2f} ms", f"{first * 1e3:.2f} ms", middle(taken[side], growth), bar)


def rows(runs: int) -> Iterator[Row]:
    with started(OURS, THEIRS, FLOOR) as bench:
        for rounds in (10, 100):
            yield from round_rows(bench, runs, rounds)


if __name__ == "__main__":
    sys.exit(main("A round of the loop against a loop written by hand.", ("ours", "against", "ratio"), 9, rows))
