"""A run's tokens as a table (pandas) and as a picture (matplotlib), drawn from the state that `fold` keeps.

Unlike the inspector these are made when they are asked for, so that neither library is imported by a run. What was counted and what
the provider reported stand side by side; neither is scaled to agree with the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from nb_agent.messages import PARTS
from nb_agent.usage import Usage
from nb_agent.values import JSON
from nb_agent.views.drawing import Sheet, line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["caption", "describe", "frame", "plot"]

# ------------------------------------------------------------------------------------------------- as a table

_DTYPES: Final = {
    "round": "int64",
    "part": "object",
    "tool": "object",
    "counted": "Int64",
    "share": "float64",
    "exact": "bool",
    "encoding": "object",
    "reported_input": "Int64",
    "reported_output": "Int64",
}


def frame(state: JSON) -> pd.DataFrame:
    """Input tokens of each request by part: a row for each, and for the part ``tools`` a row for each tool.

    Columns:
        round: number of the request, from 1.
        part: one of `messages.PARTS`; ``None`` where the request was not counted.
        tool: the tool's name in rows of the part ``tools``, else ``None``.
        counted: tokens; a round's rows add up to the request's total.
        share: of that total, 0 to 1.
        exact: whether the provider should report the same total; false for an estimate.
        encoding: the vocabulary, or ``estimate``.
        reported_input: tokens that the provider says it read, cached or not; ``NA`` where it did not say. The same in all rows of
            a round: take one, do not add them.
        reported_output: tokens that it says it wrote, reasoning included.
    """
    import pandas as pd  # noqa: PLC0415  0.6 s, so only when a table is wanted

    rows = [row for entry in state["rounds"] for row in _rows(entry)]
    # column by column: a table without rows keeps its types
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=dtype) for name, dtype in _DTYPES.items()})


def _rows(entry: JSON) -> Iterator[JSON]:
    counted = entry["request"]["tokens"]
    usage = _usage(entry)
    same = {
        "round": entry["number"],
        "exact": bool(counted and counted["exact"]),
        "encoding": counted["encoding"] if counted else None,
        "reported_input": usage.input_tokens,
        "reported_output": usage.output_tokens,
    }
    if not counted:
        yield {**same, "part": None, "tool": None, "counted": None, "share": None}
        return
    for part, tool, number in _split(counted):
        yield {**same, "part": part, "tool": tool, "counted": number, "share": number / (counted["total"] or 1)}


def _split(counted: JSON) -> Iterator[tuple[str, str | None, int]]:
    for part, number in counted["parts"].items():
        if part != "tools":
            yield part, None, number
            continue
        for tool, cost in counted["tools"].items():
            yield part, tool, cost
        if rest := number - sum(counted["tools"].values()):
            yield part, None, rest


def _usage(entry: JSON) -> Usage:
    return Usage(**((entry["reply"] or {}).get("usage") or {}))


# ------------------------------------------------------------------------------------------------- in words


_MOST_TOLD: Final = 10


def describe(state: JSON) -> str:
    """The chart in words, for those who do not see it: a sentence for each request, of many the first ones and the last."""
    rounds = state["rounds"]
    window = f", window {state['window']:,} tokens" if state["window"] else ""
    sentences = [f"Input tokens by part. Requests: {len(rounds)}, to {state['model']}{window}."]
    told = rounds if len(rounds) <= _MOST_TOLD else [*rounds[: _MOST_TOLD - 1], rounds[-1]]
    return " ".join([*sentences, *map(_sentence, told)])


def _sentence(entry: JSON) -> str:
    counted = entry["request"]["tokens"]
    if not counted:
        return f"Request {entry['number']}: not counted."
    parts = ", ".join(f"{_NAMES[part]} {number:,}" for part, number in counted["parts"].items())
    return f"Request {entry['number']}: {_figures(counted, _usage(entry))} ({parts})."


def _figures(counted: JSON, usage: Usage) -> str:
    ours = f"{counted['total']:,} counted" if counted["exact"] else f"{counted['total']:,} estimated"
    return ours if usage.input_tokens is None else f"{ours}, {usage.input_tokens:,} reported"


# ------------------------------------------------------------------------------------------------- as a picture

#: Part -> its name for people and its colour, the same in both themes and in the inspector.
_LOOK: Final = {
    "system": ("system", "#64748b"),
    "developer": ("developer", "#475569"),
    "history": ("earlier user messages", "#60a5fa"),
    "assistant": ("assistant text", "#7c3aed"),
    "tool_calls": ("tool calls", "#0e7490"),
    "tool_results": ("tool results", "#15803d"),
    "user": ("user", "#2563eb"),
    "tools": ("tool definitions", "#a16207"),
    "images": ("images", "#be185d"),
    "overhead": ("overhead", "#9ca3af"),
}
_NAMES: Final = {part: name for part, (name, _) in _LOOK.items()}

#: A window more than this many times the fullest request would leave no bar to see; then it is told in words.
_MOST_EMPTY: Final = 6
#: Rows beyond this many get no label of their own, and the picture grows no further.
_MOST_LABELS: Final = 30


def plot(state: JSON, *, dark: bool | None = None) -> Figure:
    """A bar for each request, its input tokens stacked by part, with what the provider reported marked on it.

    The bars stand against the model's window where that is known and they do not vanish in it. The figure belongs to no pyplot
    state: a notebook shows it once, as a cell's value, and `Figure.savefig` writes it.

    Args:
        state: of a `fold.Fold`.
        dark: colours for a dark page; ``None`` follows matplotlib's own setting (``plt.style.use("dark_background")``).
    """
    rounds, reach = state["rounds"], _reach(state)
    sheet = Sheet(f"{line(state['prompt'])}\n{line(caption(state))}", rows=min(len(rounds), _MOST_LABELS), dark=dark)
    _draw_bars(sheet.axes, state, reach, sheet.colours)
    _draw_frame(sheet.axes, rounds, reach, sheet.colours)
    return sheet.finished(describe(state))


def _draw_bars(axes: Axes, state: JSON, reach: float, colours: tuple[str, ...]) -> None:
    rounds, window = state["rounds"], state["window"]
    if window and window <= reach:
        axes.barh(range(len(rounds)), window, height=0.62, color=colours[4], zorder=1)
    starts = [0] * len(rounds)
    for part in PARTS:
        widths = [(entry["request"]["tokens"] or {"parts": {}})["parts"].get(part, 0) for entry in rounds]
        if any(widths):
            name, colour = _LOOK[part]
            axes.barh(
                range(len(rounds)), widths, 0.62, starts, label=name, color=colour, edgecolor=colours[0], linewidth=0.6, zorder=2
            )
            starts = [start + width for start, width in zip(starts, widths, strict=True)]
    told = {place: number for place, entry in enumerate(rounds) if (number := _usage(entry).input_tokens) is not None}
    if told:  # a line across the bar, a little longer than it is high
        low, high = ([place + side * 0.42 for place in told] for side in (-1, 1))
        axes.vlines(list(told.values()), low, high, color=colours[1], linewidth=2, zorder=3)
        look: Any = {"marker": "|", "markersize": 10, "markeredgewidth": 2, "linestyle": "none"}
        axes.plot([], [], label="reported by the provider", color=colours[1], **look)  # for the legend


def _draw_frame(axes: Axes, rounds: list[JSON], reach: float, colours: tuple[str, ...]) -> None:
    step = -(-len(rounds) // _MOST_LABELS) or 1
    places = range(0, len(rounds), step)
    axes.set_yticks(places, [f"request {rounds[place]['number']}" for place in places])
    axes.set_ylim(max(len(rounds), 1) - 0.5, -0.5)  # the first on top
    axes.set_xlim(0, reach)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("input tokens", color=colours[2])
    axes.tick_params(colors=colours[2], length=0)
    axes.grid(axis="x", color=colours[3], linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    if not rounds:
        axes.text(0.5, 0.5, "no request yet", transform=axes.transAxes, ha="center", color=colours[2])
        axes.set_xticks([])
    for place in places:
        counted = rounds[place]["request"]["tokens"]
        figures = _figures(counted, _usage(rounds[place])) if counted else "not counted"
        axes.annotate(
            figures, (1, place), xytext=(6, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center"
        )
        axes.texts[-1].set(color=colours[2], fontsize=9)


def _reach(state: JSON) -> float:
    """Where the axis ends: at the window, or a little beyond the fullest request."""
    fullest = max((number for entry in state["rounds"] for number in _totals(entry)), default=0)
    window = state["window"] or 0
    return float(window if fullest <= window <= _MOST_EMPTY * fullest else max(fullest, 1) * 1.04)


def _totals(entry: JSON) -> Iterator[int]:
    yield (entry["request"]["tokens"] or {"total": 0})["total"]
    yield _usage(entry).input_tokens or 0


def caption(state: JSON) -> str:
    """Which model it was, and how full its window became."""
    model = f"{state['model']}, the mock model" if state["mock"] else str(state["model"])
    fullest = max((number for entry in state["rounds"] for number in _totals(entry)), default=0)
    if not state["window"]:
        return f"{model} · window not known"
    if not fullest:
        return f"{model} · window {state['window']:,} tokens"
    return f"{model} · window {state['window']:,} tokens · fullest request {fullest / state['window']:.1%} of it"
