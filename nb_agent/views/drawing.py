"""A sheet to draw a chart on: colours of the page, fonts that can write every script, a title, a legend, a description in words.

matplotlib is imported when the first sheet is made. What is drawn is the business of `charts` and `plots`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from nb_agent.values import JSON
from nb_agent.views.fonts import drawable, families_present

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Sheet", "line"]

#: Background, text, quieter text, lines and track, as in the inspector.
_LIGHT: Final = ("#ffffff", "#1b1f24", "#5a6472", "#dfe3e8", "#eceef2")
_DARK: Final = ("#111418", "#e6e9ee", "#9aa5b4", "#2b323c", "#222832")

_WIDTH, _ROW, _DPI = 9.0, 0.36, 144  # inches, inches, and pixels to the inch: twice what is shown, for sharp screens


class Sheet:
    """An empty chart.

    Args:
        title: stands at its left.
        rows: how many bars stand under one another; the chart is as high as they need.
        dark: colours for a dark page; ``None`` follows matplotlib's own setting (``plt.style.use("dark_background")``).

    Attributes:
        axes: what to draw on.
        colours: of the background, the text, quieter text, lines and tracks.
    """

    axes: Axes
    colours: tuple[str, ...]

    def __init__(self, title: str, *, rows: int, dark: bool | None) -> None:
        self.colours = _DARK if (_is_dark() if dark is None else dark) else _LIGHT
        self._families = families_present()
        height = 1.9 + _ROW * max(rows, 1)
        self._figure: Figure = _chart()(figsize=(_WIDTH, height), facecolor=self.colours[0], layout="constrained")
        self.axes = self._figure.add_subplot(facecolor=self.colours[0])
        self.axes.set_title(
            self.drawable(title), loc="left", color=self.colours[1], fontsize=11, family=self._families, parse_math=False
        )

    def drawable(self, text: str) -> str:
        """The text with what no font can draw written in another way."""
        return drawable(text, self._families)

    def labelled(self, places: Iterable[float], names: Iterable[str]) -> None:
        """Write names at the left, the first on top."""
        self.axes.set_yticks(list(places), [self.drawable(line(name, 40)) for name in names])
        self.axes.invert_yaxis()

    def quiet(self, xlabel: str) -> None:
        """Take away what only frames, and name what lies along the axis."""
        axes, colours = self.axes, self.colours
        axes.set_xlabel(xlabel, color=colours[2])
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(colors=colours[2], length=0)
        axes.grid(axis="both" if axes.lines else "x", color=colours[3], linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)
        for side in axes.spines.values():
            side.set_visible(False)

    def finished(self, description: str) -> Figure:
        """The figure, with the legend that its parts need and a description for those who do not see it."""
        axes, families = self.axes, self._families
        self._figure.set_label(description)
        for text in [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts, axes.xaxis.label, axes.yaxis.label]:
            text.set_fontfamily(families)
        if handles := axes.get_legend_handles_labels()[0]:
            kept = self._figure.legend(
                handles=handles, loc="outside lower left", ncols=5, frameon=False, prop={"family": families, "size": 9}
            )
            for text in kept.get_texts():
                text.set_color(self.colours[1])
        return self._figure


def line(text: str, most: int = 80) -> str:
    """A text on one line, cut where it is long."""
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


class _Shown:
    """Shows a figure as one picture with its description; a bare Figure without pyplot is shown as a line of text."""

    def _repr_mimebundle_(self: Any, include: Any = None, exclude: Any = None) -> tuple[JSON, JSON]:
        del include, exclude  # there is one form
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=_DPI)
        width, height = (round(inches * 72) for inches in self.get_size_inches())
        about = {"alt": self.get_label(), "width": width, "height": height}
        return {"image/png": content.getvalue(), "text/plain": self.get_label()}, {"image/png": about}


@lru_cache(maxsize=1)
def _chart() -> Any:
    from matplotlib.figure import Figure  # noqa: PLC0415  0.4 s, so only when a picture is wanted

    return type("Chart", (_Shown, Figure), {"__module__": __name__})


def _is_dark() -> bool:
    from matplotlib import colors, rcParams  # noqa: PLC0415  see `_chart`

    red, green, blue = colors.to_rgb(rcParams["figure.facecolor"])
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
