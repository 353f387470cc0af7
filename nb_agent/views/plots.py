"""Tables and charts beside the one by part: over the rounds, by tool, and bars of anything that has names.

Like `charts`, drawn from the state that `fold` keeps; what was counted and what was reported stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nb_agent.usage import Usage
from nb_agent.values import JSON
from nb_agent.views.charts import caption
from nb_agent.views.drawing import Sheet, line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["bars", "plot_rounds", "plot_tools", "rounds_frame", "tools_frame"]

#: Series in the order in which they are drawn, the same in both themes.
_COLOURS: Final = ("#2563eb", "#a16207", "#7c3aed", "#15803d", "#be185d", "#64748b")
#: Groups of bars that get a place of their own.
_MOST: Final = 40

_ROUNDS: Final = {
    "round": "int64",
    "counted": "Int64",
    "reported_input": "Int64",
    "cache_read": "Int64",
    "output": "Int64",
    "reasoning": "Int64",
    "total_so_far": "int64",
    "window": "Int64",
    "share_of_window": "float64",
    "seconds": "float64",
}


def rounds_frame(state: JSON) -> pd.DataFrame:
    """A row for each round.

    Columns:
        round: number of the request, from 1.
        counted: input tokens as counted here.
        reported_input: input tokens that the provider says it read, cached or not; ``NA`` where it did not say, here as below.
        cache_read: of these, those that came out of a cache.
        output: tokens that it says it wrote, reasoning included.
        reasoning: of these, those that were reasoning.
        total_so_far: input and output of all rounds up to this one, reported where that is known, else counted.
        window: tokens of the context window.
        share_of_window: of the input, 0 to 1; ``NaN`` where the window is not known.
        seconds: from the request to the end of the reply.
    """
    import pandas as pd  # noqa: PLC0415  0.6 s, so only when a table is wanted

    rows, spent = [], 0
    for entry in state["rounds"]:
        usage = Usage(**((entry["reply"] or {}).get("usage") or {}))
        counted = (entry["request"]["tokens"] or {}).get("total")
        read = counted if usage.input_tokens is None else usage.input_tokens
        spent += (read or 0) + (usage.output_tokens or 0)
        share = read / state["window"] if read is not None and state["window"] else None
        spoken = (counted, usage.input_tokens, usage.cache_read, usage.output_tokens, usage.reasoning)
        seconds = (entry["reply"] or {}).get("seconds")
        rows.append((entry["number"], *spoken, spent, state["window"], share, seconds))
    columns = list(zip(*rows, strict=True)) or [()] * len(_ROUNDS)
    return pd.DataFrame(
        {name: pd.Series(list(column), dtype=dtype) for (name, dtype), column in zip(_ROUNDS.items(), columns, strict=True)}
    )


def tools_frame(state: JSON) -> pd.DataFrame:
    """A row for each tool, the dearest first.

    Columns:
        tool: its name.
        definition: tokens of its definition in one request.
        requests: how many offered it.
        definitions_in_all: tokens that its definition cost in the run.
        calls: how often it was asked for.
        failed: of these, how many did not come to a good end.
    """
    import pandas as pd  # noqa: PLC0415  see `rounds_frame`

    rows: dict[str, list[int]] = {}
    for entry in state["rounds"]:
        for name, tokens in ((entry["request"]["tokens"] or {}).get("tools") or {}).items():
            row = rows.setdefault(name, [0] * 5)
            row[:3] = tokens, row[1] + 1, row[2] + tokens
        for call in entry["calls"]:
            row = rows.setdefault(call["name"], [0] * 5)
            row[3] += 1
            row[4] += bool((call["result"] or {}).get("code"))
    ordered = sorted(rows.items(), key=lambda entry: (-entry[1][2], entry[0]))
    names = ["tool", "definition", "requests", "definitions_in_all", "calls", "failed"]
    return pd.DataFrame([(name, *row) for name, row in ordered], columns=names)


def plot_rounds(state: JSON, *, dark: bool | None = None) -> Figure:
    """Lines over the rounds: input counted and reported, output, all tokens so far; the window where it is near."""
    table = rounds_frame(state)
    series = {
        "input, counted": table["counted"],
        "input, reported": table["reported_input"],
        "output": table["output"],
        "all tokens so far": table["total_so_far"],
    }
    sheet = Sheet(f"{line(state['prompt'])}\n{line(caption(state))}", rows=8, dark=dark)
    for colour, (name, column) in zip(_COLOURS, series.items(), strict=False):
        known = column.notna()
        if known.any():
            style = "--o" if name == "input, counted" else "-o"
            sheet.axes.plot(table["round"][known], column[known].astype(int), style, ms=3, color=colour, label=name)
    highest = max((int(column.max()) for column in series.values() if column.notna().any()), default=0)
    if state["window"] and state["window"] <= 2 * highest:
        sheet.axes.axhline(state["window"], color=sheet.colours[1], linewidth=1, linestyle=":", label="context window")
    sheet.axes.set_ylim(bottom=0)
    sheet.quiet("round")
    sheet.axes.yaxis.set_major_formatter("{x:,.0f}")
    sheet.axes.locator_params(axis="x", integer=True)
    last = table.iloc[-1] if len(table) else None
    words = "no round yet" if last is None else f"{len(table)} rounds, {last['total_so_far']:,} tokens in all"
    return sheet.finished(f"Tokens over the rounds: {words}.")


def plot_tools(state: JSON, *, dark: bool | None = None) -> Figure:
    """Bars by tool: what its definition cost in the run. Beside its name stand its calls: a tool nobody calls costs as well."""
    table = tools_frame(state)
    names = [f"{row.tool} ({row.calls} call{'s' * (row.calls != 1)})" for row in table.itertuples()]
    return bars(
        names, {"tokens of its definition, all requests": table["definitions_in_all"].tolist()}, title=caption(state), dark=dark
    )


def bars(
    names: Sequence[str], series: Mapping[str, Sequence[float]], *, title: str, dark: bool | None = None, axis: str = "tokens"
) -> Figure:
    """A group of bars for each name, a bar for each series in it; the figures stand at their ends."""
    names = list(names)[:_MOST]
    sheet = Sheet(title, rows=len(names) * max(len(series), 1), dark=dark)
    height = 0.8 / max(len(series), 1)
    for place, (label, values) in enumerate(series.items()):
        at = [row + (place - (len(series) - 1) / 2) * height for row in range(len(names))]
        drawn: Any = sheet.axes.barh(
            at, list(values)[: len(names)], height * 0.9, label=label, color=_COLOURS[place % len(_COLOURS)], zorder=2
        )
        for text in sheet.axes.bar_label(drawn, fmt="{:,.0f}", padding=3):
            text.set(color=sheet.colours[2], fontsize=8)
    sheet.labelled(range(len(names)), names)
    sheet.axes.margins(x=0.12)
    sheet.quiet(axis)
    said = "; ".join(
        f"{name}: {', '.join(f'{label} {values[row]:,.0f}' for label, values in series.items())}" for row, name in enumerate(names)
    )
    return sheet.finished(f"{title}. {said or 'nothing to show'}.")
