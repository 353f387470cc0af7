"""What a tool displays while it runs, passed on to whoever shows its call, instead of into the cell's output.

In a kernel, ``display(…)`` and ``plt.show()`` are taken, and so are figures that a tool leaves open, which the kernel would show at
the end of the cell. What is displayed in other contexts is not touched. Without IPython nothing happens: nothing can be displayed.
Unlike `notebook`, this shows nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from nb_agent.tools.pictures import picture_of, release

__all__ = ["note_figure", "shown_by_tool"]

Show: TypeAlias = Callable[[Mapping[str, Any]], None]

#: Where what is displayed in this context goes, and the figures that pyplot has made in it.
_taker: ContextVar[Show | None] = ContextVar("taker", default=None)
_figures: ContextVar[list[Any] | None] = ContextVar("figures", default=None)

#: matplotlib calls it with every figure that pyplot makes (rcParams["figure.hooks"]).
_HOOK: Final = f"{__name__}:note_figure"

_lock = threading.Lock()
_open: dict[int, int] = {}  # by the id of a display publisher: how many contexts take from it


@contextmanager
def shown_by_tool(show: Show) -> Iterator[None]:
    """Give ``show`` all that is displayed in this context until the block ends, each as a mapping of media types.

    Made for `tools.capture.captured`, which it is an argument of.

    The hooks that ipykernel has for this belong to a thread, and all coroutine tools share one: so the publisher's method is
    replaced, and the context decides.
    """
    publisher = _publisher()
    if publisher is None:
        yield
        return
    made: list[Any] = []
    tokens = _taker.set(show), _figures.set(made)
    first = "matplotlib" not in sys.modules
    _take_from(publisher)
    try:
        yield
    finally:
        _show_open(_all_figures() if first and _open[id(publisher)] == 1 else made, show)
        _leave(publisher)
        _taker.reset(tokens[0])
        _figures.reset(tokens[1])


def note_figure(figure: Any) -> None:
    """Remember a figure for the tool that has made it."""
    made = _figures.get()
    if made is not None:
        made.append(figure)


def _publisher() -> Any:
    """The kernel's display publisher. A terminal has none to speak of: what is displayed there is printed."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return None if getattr(shell, "kernel", None) is None else shell.display_pub


def _take_from(publisher: Any) -> None:
    with _lock:
        if not _open.get(id(publisher)):
            _replace(publisher)
        _open[id(publisher)] = _open.get(id(publisher), 0) + 1
        _set_hook(wanted=True)


def _leave(publisher: Any) -> None:
    with _lock:
        _open[id(publisher)] -= 1
        if not _open[id(publisher)]:
            del _open[id(publisher)], publisher.publish, publisher.clear_output
            _set_hook(wanted=False)


def _set_hook(*, wanted: bool) -> None:
    """Have each new figure noted, or no longer; as long as matplotlib is not imported, there is none."""
    parameters: Any = getattr(sys.modules.get("matplotlib"), "rcParams", None)
    if parameters is not None:
        others = [hook for hook in parameters["figure.hooks"] if hook != _HOOK]
        parameters["figure.hooks"] = [*others, *([_HOOK] if wanted else [])]


def _replace(publisher: Any) -> None:
    publish, clear_output = publisher.publish, publisher.clear_output

    def publish_or_take(data: Mapping[str, Any], *rest: Any, **options: Any) -> None:
        show = _taker.get()
        if show is None:
            publish(data, *rest, **options)
        else:
            show(data)

    def clear_or_ignore(*rest: Any, **options: Any) -> None:
        if _taker.get() is None:  # a tool does not clear the output of the cell that shows it
            clear_output(*rest, **options)

    publisher.publish, publisher.clear_output = publish_or_take, clear_or_ignore


def _all_figures() -> list[Any]:
    """All open figures: those of a tool that was the first to import matplotlib."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else [pyplot.figure(number) for number in pyplot.get_fignums()]


def _show_open(made: list[Any], show: Show) -> None:
    """Show and close the figures that were left open, where the kernel would show them at the end of the cell."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    for figure in made:
        if not pyplot.fignum_exists(figure.number) or pyplot.figure(figure.number) is not figure:
            continue  # closed; another one may have its number
        try:
            picture = picture_of(figure)
        except Exception:  # noqa: BLE001  a plot that cannot be drawn is no failure of the tool
            picture = None
        show({"text/plain": f"{figure}"} if picture is None else {picture.media_type: picture.data})
        release(figure)
