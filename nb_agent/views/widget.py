"""The live inspector as a Jupyter widget: static/inspector.js with the state of one run behind it.

Custom messages carry haste: each holds the next few changes, never a list that grows. The trait ``truth`` carries the state and the
number of the last change in it: a view that opens late, or after a page reload, says hello until it gets that. A cell that blocks
the main thread may hear no hello before it ends, so until one was heard the truth is also sent unasked, after twice the time each
time. The widget keeps its own copy of the state, so that state and number agree while the driver holds back changes. It asks
nothing and runs nothing; `notebook` drives it, `html` is what is saved in its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from nb_agent.values import JSON
from nb_agent.views import html, text
from nb_agent.views.fold import Change, change_state

__all__ = ["Inspector", "merge"]

_STATIC: Final = Path(__file__).parent / "static"

#: Seconds in which the same view gets the same state only once: hellos queue up while a cell blocks, and come all together.
_ONCE: Final = 1.0

#: Longer runs are not sent whole unasked: a page that missed the changes gets them when its hello is heard.
_MOST_UNASKED: Final = 10

#: Seconds from the first change to the first truth that is sent unasked.
_SOON: Final = 0.25


def merge(changes: list[Change]) -> list[Change]:
    """The same changes in fewer: pieces that are added to the same text, with no other kind of change between, become one.

    >>> merge([["add", ["a"], "x"], ["add", ["b"], "1"], ["add", ["a"], "y"]])
    [['add', ['a'], 'xy'], ['add', ['b'], '1']]
    """
    merged: list[Change] = []
    open_texts: dict[tuple[str | int, ...], list[str]] = {}
    for kind, path, value in [*changes, ["end", [], None]]:
        if kind == "add":
            open_texts.setdefault(tuple(path), []).append(value)
            continue
        merged += [["add", list(place), "".join(pieces)] for place, pieces in open_texts.items()]
        open_texts = {}
        if kind != "end":
            merged.append([kind, path, value])
    return merged


class Inspector(anywidget.AnyWidget):
    """The inspector of one run.

    Args:
        state: what `nb_agent.views.fold.Fold` has folded so far; it is copied.

    Attributes:
        greeted: whether a view has said hello, so that somebody can see it.
        answered: is called with what a person answers, in whichever thread it comes.
    """

    _esm = _STATIC / "inspector.js"
    _css = _STATIC / "inspector.css"
    truth = traitlets.Dict().tag(sync=True)

    def __init__(self, state: JSON) -> None:
        self._lock = threading.Lock()  # a hello may come in another thread than the one that pulls the run
        self._answered: dict[str, tuple[int, float]] = {}
        self._begun: float | None = None
        self._wait = _SOON
        self.greeted = False
        self.answered: Callable[[JSON], None] = lambda _: None
        super().__init__(truth={"seq": 0, "state": deepcopy(state)})
        self.on_msg(self._hear)

    @property
    def state(self) -> JSON:
        """The state as the views have it."""
        state: JSON = self.truth["state"]
        return state

    @property
    def seq(self) -> int:
        """How many messages with changes have been sent."""
        return int(self.truth["seq"])

    def apply(self, changes: list[Change]) -> None:
        """Send changes to all views, and keep them for those that open later."""
        if not changes:
            return
        with self._lock:
            few = merge(changes)
            change_state(self.state, few)  # in place: the trait goes out only in `settle`, unasked, and to a new page
            self.truth["seq"] += 1
            self.send({"type": "changes", "seq": self.seq, "changes": few})
            self._send_unasked()

    def settle(self) -> None:
        """Send the whole state as the trait, for front ends that store it; when the run has ended."""
        with self._lock:
            self.send_state("truth")

    def _send_unasked(self) -> None:
        now = time.monotonic()
        self._begun = now if self._begun is None else self._begun
        if not self.greeted and now - self._begun >= self._wait and len(self.state.get("rounds", ())) <= _MOST_UNASKED:
            self._wait *= 2
            self.send_state("truth")

    def _hear(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and content.get("kind") == "answer":
            self.answered(content)
        if not isinstance(content, dict) or content.get("type") != "hello":
            return
        view, now = str(content.get("view")), time.monotonic()
        with self._lock:
            self.greeted = True
            seq, when = self._answered.get(view, (-1, 0.0))
            if seq == self.seq and now - when < _ONCE:
                return
            self._answered[view] = (self.seq, now)
            self.send({"type": "state", **self.truth})

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and for front ends without widgets the run as it stands now."""
        shown = super()._repr_mimebundle_(**kwargs)
        bundle = shown[0] if isinstance(shown, tuple) else shown
        if bundle is not None:
            bundle["text/html"] = html.page(self.state)
            bundle["text/plain"] = text.text(self.state)
        return shown
