"""What a round of the tool-calling loop costs, against the same loop written by hand on httpx; and whether it grows.

    python benchmarks/loop.py [--runs 9] [--check]

README.md says what each row means.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

from measuring import FLOOR, OURS, THEIRS, Cost, Row, main, middle, ratio, started
from server import Script

BAR, AIM, GROWTH = 1.3, 1.0, 1.25
RESULTS = (("2 KB results", "fetch"), ("short results", "count"))


def pace(stamps: Sequence[float]) -> float:
    """CPU seconds from one tool call to the next: a request, its answer and the call."""
    return statistics.median(later - earlier for earlier, later in pairwise(stamps))


def first_ten(cost: Cost) -> float:
    return pace(cost["stamps"][:11])


def last_ten(cost: Cost) -> float:
    return pace(cost["stamps"][-11:])


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def cost_rows(taken: dict[str, list[Cost]], rounds: int, results: str) -> Iterator[Row]:
    ours, theirs, floor = (shown(middle(taken[side]) / (rounds + 1)) for side in (OURS, THEIRS, FLOOR))
    name = f"CPU per request, {rounds} rounds, {results}"
    yield Row(f"{name} / httpx loop (aim: {AIM})", ours, theirs, ratio(taken[OURS], taken[THEIRS]), BAR)
    yield Row(f"{name} / httpx, pieces joined", ours, floor, ratio(taken[OURS], taken[FLOOR]))


def growth_rows(taken: dict[str, list[Cost]], results: str) -> Iterator[Row]:
    for side, costs in taken.items():
        last, first = middle(costs, last_ten), middle(costs, first_ten)
        growth = middle(costs, lambda cost: last_ten(cost) / first_ten(cost))
        name = f"last ten requests / first ten, {results}, {side}"
        yield Row(name, shown(last), shown(first), growth, GROWTH if side == OURS else None)


def rows(runs: int) -> Iterator[Row]:
    sides = (OURS, THEIRS, FLOOR)
    with started(*sides) as bench:
        for results, tool in RESULTS:
            for rounds in (10, 100):
                taken = bench.turns(runs, Script(rounds, tool), sides)
                yield from cost_rows(taken, rounds, results)
            yield from growth_rows(taken, results)


if __name__ == "__main__":
    sys.exit(main("A round of the loop against a loop written by hand.", ("ours", "against", "ratio"), 9, rows))
