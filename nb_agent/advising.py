"""Says whether tools should be functions of the notebook, an MCP server, or both, with the reasons and the numbers that it used.

Every number is counted, measured here or given by the caller, and says which; none is a guess. Unlike the clinic, which judges how
single tools are described, this is about where they live.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Final, Literal, TypeAlias, get_args

from nb_agent import tokens
from nb_agent.errors import SettingError
from nb_agent.mcp.offered import McpTool
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.values import JSON, dumps

__all__ = ["Advice", "Number", "Place", "advise"]

Choice: TypeAlias = Literal["functions", "mcp", "both"]
#: Where the code of the tools runs: in the kernel, in a process of its own on this machine, or on another machine.
Place: TypeAlias = Literal["kernel", "process", "remote"]

_PLACES: Final[tuple[Place, ...]] = get_args(Place)
#: Calls that a measurement makes; the middle one is told.
_CALLS: Final = 5
_PYTHON: Final = "python"


@dataclass(frozen=True, slots=True)
class Number:
    """One number, its unit, and where it comes from: ``counted``, ``measured`` or ``given``."""

    what: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Advice:
    """Functions, MCP or both; why; with which numbers; and what nothing is known of."""

    choice: Choice
    reasons: tuple[str, ...]
    numbers: tuple[Number, ...]
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"use {_SAID[self.choice]}", *(f"- {reason}" for reason in self.reasons), "numbers:"]
        lines += [f"  {number.what}: {number.value:,g} {number.unit} ({number.source})" for number in self.numbers]
        return "\n".join([*lines, *(f"  not known: {text}" for text in self.unknown)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> JSON:
        """The same as JSON."""
        return asdict(self)


_SAID: Final[dict[Choice, str]] = {
    "functions": "functions of the notebook",
    "mcp": "an MCP server",
    "both": "both: functions for what only this notebook needs, an MCP server for the rest, in one loop",
}


def advise(
    tools: Iterable[AnyTool | Callable[..., Any]] = (),
    *,
    shared_by: int = 1,
    runs_where: Place = "kernel",
    languages: Iterable[str] = (_PYTHON,),
    isolated: bool = False,
    measure: Callable[[], object] | None = None,
    model: str | None = None,
) -> Advice:
    """Which of the two, and why.

    Args:
        tools: functions, tools of the notebook, and tools of MCP servers as `Hub.tools` gives them.
        shared_by: programs that use them, this notebook included.
        runs_where: ``"kernel"``, ``"process"`` or ``"remote"``.
        languages: of those programs and of the tools.
        isolated: whether the tools must not be able to harm the kernel: its memory, its keys, its packages.
        measure: makes one call, such as ``lambda: hub.connections["db"].ping()``; it is timed five times.
        model: whose vocabulary the definitions are counted with.

    Raises:
        SettingError: ``shared_by`` is under 1, or ``runs_where`` is not known.

    >>> advise(shared_by=3).choice
    'mcp'
    """
    if shared_by < 1:
        raise SettingError(
            f"shared_by={shared_by}: the number of programs that use the tools, this notebook included, is 1 or more"
        )
    if runs_where not in _PLACES:
        raise SettingError(f"runs_where={runs_where!r} is not known; write one of {', '.join(map(repr, _PLACES))}")
    box = Toolbox(tools)
    foreign = sum(isinstance(tool, McpTool) for tool in box)
    own = len(box) - foreign
    others = sorted({language.lower() for language in languages} - {_PYTHON})
    for_mcp = [
        reason
        for holds, reason in (
            (shared_by > 1, f"{shared_by} programs use them: a server is written once, and each of them speaks the same protocol"),
            (runs_where == "remote", "they run on another machine, which a function cannot"),
            (runs_where == "process", "they run in a process of their own: a crash of theirs leaves the kernel alive"),
            (bool(others), f"not all of it is Python ({', '.join(others)})"),
            (isolated, "they must not reach the kernel's memory, keys and packages; a child process inherits none of the keys"),
            (foreign > 0, f"{foreign} of them are served already"),
        )
        if holds
    ]
    for_functions = [f"{own} of them are Python functions: registered in a line, called without a process between"] if own else []
    apart = own > 0 and foreign > 0 and shared_by == 1 and runs_where == "kernel" and not others and not isolated
    choice: Choice = "both" if apart else "mcp" if for_mcp else "functions"
    if choice == "functions":
        reasons = [*for_functions, "one notebook uses them, in its own kernel and language: a server would only add a process"]
    else:
        reasons = [*for_mcp, *for_functions] if choice == "both" else for_mcp
    if choice == "mcp" and own:
        reasons.append(f"{own} of them are Python functions: `nb-agent serve MODULE:NAME` serves them as they are")
    return Advice(choice, tuple(reasons), *_numbers(box, shared_by, measure, model))


def _numbers(
    box: Toolbox, shared_by: int, measure: Callable[[], object] | None, model: str | None
) -> tuple[tuple[Number, ...], tuple[str, ...]]:
    texts = [dumps([told.name, told.description, told.parameters]) for told in box.definitions]
    cost = sum(tokens.count(text, model=model) for text in texts)
    numbers = [
        Number("programs that use them", shared_by, "programs", "given"),
        Number("tools", len(box), "tools", "counted"),
        Number("definitions, in every request, the same for functions and MCP", cost, "tokens", "counted"),
    ]
    if measure is None:
        return tuple(numbers), ("how long a call takes; give measure=lambda: … to have it timed here",)
    return (*numbers, Number(f"one call, the middle of {_CALLS}", _middle(measure) * 1000, "ms", "measured")), ()


def _middle(measure: Callable[[], object]) -> float:
    """Seconds of the middle one of some calls."""
    taken = []
    for _ in range(_CALLS):
        begun = time.perf_counter()
        measure()
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[_CALLS // 2]
