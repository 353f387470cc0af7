"""Two versions of definitions as a picture (matplotlib) and in words.

Each measure has a scale of its own: its two bars are compared with each other, never with those of another measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nb_agent.values import JSON
from nb_agent.views.drawing import Sheet, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["describe", "plot"]

#: Key of a summary -> what it is, and how a number is written.
_MEASURES: Final = {
    "first_right": ("first calls right", "{:.0%}"),
    "right_after": ("rounds until right", "{:.1f}"),
    "bad_calls": ("calls that failed", "{:.0f}"),
    "definitions": ("tokens of the definitions", "{:,.0f}"),
    "sent": ("tokens sent for a prompt", "{:,.0f}"),
}
_COLOURS: Final = ("#64748b", "#2563eb")  # one version, the other; they differ in lightness too
_BAR: Final = 0.36  # of the height of a row


def describe(summary: dict[str, JSON]) -> str:
    """The chart in words, a sentence for each version."""
    return " ".join(f"{name}: {', '.join(_told(entry))}." for name, entry in summary.items())


def _told(entry: JSON) -> list[str]:
    return [f"{title} {_number(entry, key)}" for key, (title, _) in _MEASURES.items()]


def _number(entry: JSON, key: str) -> str:
    return "–" if entry[key] is None else _MEASURES[key][1].format(entry[key])


def plot(summary: dict[str, JSON], title: str, *, dark: bool | None = None) -> Figure:
    """A row for each measure with a bar for each version.

    Args:
        summary: version -> measures, as `trials.Comparison.summary` gives them.
        title: stands above them.
        dark: colours for a dark page; ``None`` follows matplotlib's own setting.
    """
    sheet = Sheet(title, rows=7, dark=dark)
    axes = sheet.axes
    longest = {key: max([1.0, *(entry[key] or 0 for entry in summary.values())]) for key in _MEASURES}
    for place, (name, entry) in enumerate(summary.items()):
        rows = [row + (place - 0.5) * _BAR for row in range(len(_MEASURES))]
        lengths = [(entry[key] or 0) / longest[key] for key in _MEASURES]
        axes.barh(rows, lengths, _BAR * 0.92, label=sheet.drawable(line(name, 30)), color=_COLOURS[place])
        for row, length, key in zip(rows, lengths, _MEASURES, strict=True):
            axes.annotate(_number(entry, key), (length, row), xytext=(5, 0), textcoords="offset points", va="center")
            axes.texts[-1].set(color=sheet.colours[1], fontsize=9)
    sheet.labelled(range(len(_MEASURES)), [title for title, _ in _MEASURES.values()])
    sheet.quiet("")
    axes.set_xticks([])  # each row has its own scale
    axes.set_xlim(0, 1.12)  # room for the numbers
    return sheet.finished(describe(summary))
