"""An exception of a tool in two forms: a line for the model, which says what went wrong, and the traceback for the person.

No traceback ever goes to the model: it would read paths and code that it cannot act on.
"""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from typing import Final

from nb_agent.errors import ServerError, ToolError
from nb_agent.tools.results import cut

__all__ = ["code_of", "line_of", "traceback_of"]

#: Characters of an error text that the model gets.
MOST_CHARACTERS: Final = 2_000
MOST_LEAVES: Final = 10

_HERE: Final = str(Path(__file__).parents[1])
#: Folders of the package whose tools are shown like anybody's.
_TOOLS: Final = tuple(str(Path(__file__).parents[1] / folder) for folder in ("lessons", "kit"))
_ADDRESS: Final = re.compile(r"\n\s*For further information visit https://errors\.pydantic\.dev\S*")


def line_of(error: BaseException) -> str:
    """What the model is told: the type and the message; of a group of exceptions, each one's.

    >>> line_of(KeyError(""))
    "KeyError: ''"
    >>> line_of(ExceptionGroup("two", [OSError("disk"), AssertionError()]))
    'ExceptionGroup: two (2 sub-exceptions): OSError: disk; AssertionError, without a message'
    """
    return cut(_line(error), MOST_CHARACTERS)


def code_of(error: BaseException) -> str:
    """The stable word for it: a `ToolError`'s own, what happened to a server, or ``tool_failed``."""
    code = error.code if isinstance(error, ToolError) else error.kind if isinstance(error, ServerError) else ""
    return code if isinstance(code, str) and code else "tool_failed"


def traceback_of(error: BaseException) -> str:
    """The traceback as Python prints it, from the tool's own code on."""
    try:
        shown = traceback.TracebackException.from_exception(error)
        _forget_plumbing(shown)
        return "".join(shown.format())
    except Exception as fault:  # noqa: BLE001  an exception's own attributes may be anything
        return f"{_line(error)} (its traceback cannot be shown: {type(fault).__name__})\n"


def _line(error: BaseException) -> str:
    name, message = type(error).__name__, _message(error)
    line = (
        message if isinstance(error, ToolError) and message else f"{name}: {message}" if message else f"{name}, without a message"
    )
    if isinstance(error, BaseExceptionGroup):
        leaves = _leaves(error)
        more = f" and {len(leaves) - MOST_LEAVES} more" if len(leaves) > MOST_LEAVES else ""
        return f"{line}: {'; '.join(_line(leaf) for leaf in leaves[:MOST_LEAVES])}{more}"
    return line


def _message(error: BaseException) -> str:
    try:
        return _ADDRESS.sub("", str(error)).strip()
    except Exception as fault:  # noqa: BLE001  somebody else's __str__
        return f"(its message cannot be shown: {type(fault).__name__})"


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _forget_plumbing(shown: traceback.TracebackException) -> None:
    own = [frame for frame in shown.stack if not frame.filename.startswith(_HERE) or frame.filename.startswith(_TOOLS)]
    for frame in own:
        frame.filename = _cell_name(frame.filename)
    shown.stack = traceback.StackSummary.from_list(own)
    for inner in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if inner is not None:
            _forget_plumbing(inner)


def _cell_name(filename: str) -> str:
    """A kernel compiles cells under the name of a file that is not there; IPython knows which cell it was."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = shell.compile.format_code_name(filename) if shell is not None else None
    return " ".join(named) if named else filename
