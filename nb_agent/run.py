"""A run as the person has it in hand: its events, and everything that can be read off them.

It holds no agent and no connection: what is here is the same for a run that has just ended and for one read from a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nb_agent import adapters, recording, tokens
from nb_agent.errors import SettingError
from nb_agent.events import Changed, Event, ReplyDone, RequestReady, RunEnded, RunStarted, ToolDone
from nb_agent.messages import Message, Reply, Request, ToolResult
from nb_agent.nodes import XRay, xray
from nb_agent.pricing import Cost, Prices, cost
from nb_agent.usage import Usage
from nb_agent.values import JSON
from nb_agent.views import charts, notebook, plots, taps, text
from nb_agent.views.fold import Fold

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Run", "counted", "counting"]


def counted(request: Request, model: str) -> JSON:
    """The tokens of a request by part, in the form that the views show (see `views.fold`)."""
    return tokens.breakdown(adapters.WIRES[request.wire].segments(request.body), model=model).shown()


def counting(model: str) -> Callable[[Request], JSON]:
    """Counts a request once, however many ask for it one after the other: the view, the limits and compaction."""
    last: list[tuple[Request, JSON]] = []

    def count(request: Request) -> JSON:
        if not last or last[0][0] is not request:
            last[:] = [(request, counted(request, model))]
        return last[0][1]

    return count


#: What tokens can be plotted by, and how.
_PLOTS: Final[dict[str, Callable[..., Figure]]] = {"part": charts.plot, "round": plots.plot_rounds, "tool": plots.plot_tools}


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a run was left, for another one that begins as it did: before the request of a round, or before its ``calls``."""

    number: int  # of the round, from 1
    run: Run
    calls: bool = False


class Run:
    """One run. ``events`` is the whole of it; everything else is a function of them.

    Attributes:
        events: what the loop yielded, in order.
        branches: earlier lines of this run, each left for the next one (see `Agent.branch`). They are not saved with it.
        prices: your own, for `cost`.
    """

    def __init__(self, events: list[Event] | None = None, branches: Sequence[Branch] = (), prices: Prices | None = None) -> None:
        self.events: list[Event] = [] if events is None else events
        self.branches = tuple(branches)
        self.prices = prices
        self._fold: tuple[int, JSON] | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Run:
        """A run that `save` wrote.

        Raises:
            SettingError: the file cannot be read, or holds something else.
        """
        return cls(recording.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to a file of JSON lines, whole or not at all.

        Raises:
            SettingError: the file cannot be written.
        """
        recording.save(self.events, path)

    # ---------------------------------------------------------------------------------------------- what happened

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation when the run ended: system, user, assistant and tool messages, earlier runs included."""
        ended = self._last(RunEnded)
        return ended.history if ended else ()

    @property
    def text(self) -> str:
        """The last text that the model wrote, put together where it came in several replies."""
        ended = self._last(RunEnded)
        return ended.text if ended else ""

    @property
    def reason(self) -> str | None:
        """How it ended: one of `events.ENDINGS`; ``None`` while it goes on."""
        ended = self._last(RunEnded)
        return ended.reason if ended else None

    @property
    def error(self) -> str | None:
        """What the model server said when it failed."""
        ended = self._last(RunEnded)
        return ended.error if ended else None

    @property
    def usage(self) -> Usage | None:
        """What the provider reported for all rounds together, in tokens."""
        ended = self._last(RunEnded)
        return ended.usage if ended else None

    @property
    def cost(self) -> Cost | None:
        """What the reported usage costs; ``None`` where nothing was reported, or no price is known (see `pricing.cost`)."""
        started = self._last(RunStarted)
        return None if self.usage is None else cost(self.usage, started.model, prices=self.prices)

    @property
    def requests(self) -> list[Request]:
        """The requests as they went out, those for a summary included."""
        sent: list[Request] = []
        for event in self.events:
            if isinstance(event, RequestReady):
                sent.append(event.request)
            elif isinstance(event, Changed) and event.request is not None:
                sent[-1] = event.request
        return sent

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation before this run."""
        started = self._last(RunStarted)
        return started.history if started else ()

    @property
    def prompt(self) -> Message:
        """What the user said, pictures included where the run holds an answer to it."""
        place = len(self.history)
        said = self.messages[place : place + 1]
        return said[0] if said and said[0].role == "user" else Message.of("user", self._last(RunStarted).prompt)

    @property
    def replies(self) -> list[Reply]:
        """The replies that came back whole, those to a request for a summary included."""
        return [event.reply for event in self.events if isinstance(event, ReplyDone)]

    @property
    def tool_results(self) -> list[ToolResult]:
        """What came of the calls, in the order in which they ended, as the model got it."""
        results: list[ToolResult] = []
        for event in self.events:
            if isinstance(event, ToolDone):
                results.append(event.result)
            elif isinstance(event, Changed) and event.result is not None:
                changed = event.result
                place = max(place for place, result in enumerate(results) if result.call_id == changed.call_id)
                results[place] = changed
        return results

    def _last(self, kind: type[Any]) -> Any:
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)

    # -------------------------------------------------------------------------------------------- what can be seen

    @property
    def state(self) -> JSON:
        """What the views draw (see `views.fold`)."""
        if self._fold is None or self._fold[0] != len(self.events):
            fold = self.folding(counted)
            for event in self.events:
                fold.apply(event)
            self._fold = len(self.events), fold.state
        return self._fold[1]

    def folding(self, count: Callable[[Request, str], JSON]) -> Fold:
        """A fold for its events, with the lines that were left for it."""
        left = [
            {"label": f"line {place}", "from_round": branch.number, "state": {**branch.run.state, "branches": []}}
            for place, branch in enumerate(self.branches, 1)
        ]
        return Fold(count, branches=left)

    @property
    def tokens(self) -> pd.DataFrame:
        """The tokens of each request by part (see `views.charts.frame` for the columns)."""
        return charts.frame(self.state)

    @property
    def tokens_by_round(self) -> pd.DataFrame:
        """Input, output and all tokens so far, a row for each round (see `views.plots.rounds_frame` for the columns)."""
        return plots.rounds_frame(self.state)

    @property
    def tokens_by_tool(self) -> pd.DataFrame:
        """What each tool's definition cost, and its calls (see `views.plots.tools_frame` for the columns)."""
        return plots.tools_frame(self.state)

    @property
    def wire(self) -> pd.DataFrame:
        """What went over the wires of MCP servers for the calls of this run (see `views.taps.frame` for the columns)."""
        return taps.frame(
            [
                {**message, "call_id": event.result.call_id}
                for event in self.events
                if isinstance(event, ToolDone)
                for message in event.wire
            ]
        )

    def plot_tokens(self, by: str = "part", *, dark: bool | None = None) -> Figure:
        """The tokens as a chart.

        Args:
            by: ``"part"`` stacks those of each request against the context window, ``"round"`` draws lines over the rounds, and
                ``"tool"`` shows what the definitions cost.
            dark: colours for a dark page; ``None`` follows matplotlib's own setting.

        Raises:
            SettingError: there is no such chart.
        """
        if by not in _PLOTS:
            raise SettingError(f"no chart of tokens by {by!r}; there are: {', '.join(_PLOTS)}")
        return _PLOTS[by](self.state, dark=dark)

    def xray(self, number: int = -1) -> XRay:
        """The tokens of every node of a request's JSON.

        Args:
            number: place among the requests, from 0; negative ones count from the end.

        Raises:
            SettingError: there is no such request.
        """
        try:
            request = self.requests[number]
        except IndexError:
            raise SettingError(f"no request {number}; this run has {len(self.requests)}") from None
        return xray(request, self._last(RunStarted).model)

    def inspect(self) -> Any:
        """The live inspector on this run; leave it as the last line of a cell.

        Raises:
            SettingError: there is nothing to show yet.
        """
        if not self.events:
            raise SettingError("this run has no events yet; run a prompt first")
        from nb_agent.views.widget import Inspector  # noqa: PLC0415  anywidget costs 0.2 s and only a notebook needs it

        return Inspector(state=self.state)

    def __repr__(self) -> str:
        started = self._last(RunStarted)
        rounds = len(self.requests)
        spent = self.usage or Usage()
        return (
            f"<Run of {started.model if started else 'no model'}: {rounds} round{'s' * (rounds != 1)}, "
            f"{self.reason or 'not ended'}, {spent.input_tokens or 0:,} tokens in, {spent.output_tokens or 0:,} out>"
        )

    def __str__(self) -> str:
        return text.text(self.state)

    def _ipython_display_(self) -> None:
        """As the last line of the cell that ran it, nothing, since the run is shown there already; elsewhere the whole."""
        if not notebook.shown_here(self):
            notebook.show(self.state)
