"""The tools of one run, by name: functions of the notebook and tools of MCP servers side by side.

A toolbox never changes. Whoever redefines a function makes a new one for the next run; two tools of one name at the same time are a
mistake that is said at once, for a model could not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeGuard, runtime_checkable

from nb_agent.errors import ToolDefinitionError
from nb_agent.guards.policy import Tier
from nb_agent.messages import Definition
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["AnyTool", "Toolbox"]


@runtime_checkable
class AnyTool(Protocol):
    """What can be offered to a model: a `Tool` made of a function, or one of an MCP server."""

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def definition(self) -> Definition:
        """What the model is told of it."""

    @property
    def main_thread(self) -> bool:
        """Whether it has to run in the thread of the cell."""

    @property
    def tier(self) -> Tier | None:
        """What it may do; ``None`` where nobody said."""

    @property
    def untrusted(self) -> bool:
        """Whether its results are words of strangers."""

    @property
    def vouched(self) -> bool:
        """Whether what is said of it can be relied on."""

    @property
    def time_limit(self) -> float | None:
        """Seconds that one call may take; ``None`` for what the run sets."""

    def check(self, arguments: JSON) -> dict[str, Any]:
        """The arguments that `call` takes; raises `ArgumentsError` where they do not fit."""

    def call(self, arguments: dict[str, Any]) -> Any:
        """Carry it out, and come back with what it gives."""


class Toolbox:
    """Tools by name, in the order in which they were given.

    Args:
        tools: tools, or functions that are made into tools. The same one twice is one.

    Raises:
        ToolDefinitionError: two different tools have one name, one cannot be told to a model, or one is a method without an object.
    """

    def __init__(self, tools: Iterable[AnyTool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for given in tools:
            made = given if _is_tool(given) else _made(given)
            _check_bound(made)
            if self._tools.setdefault(made.name, made) != made:
                raise ToolDefinitionError(
                    f"two different tools are called {made.name!r}: {self._tools[made.name]!r} and {made!r}; "
                    f"give one of them another name with tool(function, name='…')"
                )
        self.definitions: tuple[Definition, ...] = tuple(made.definition for made in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._tools)

    def find(self, name: str) -> AnyTool | None:
        """The tool of this name, spelled exactly so."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)


def _is_tool(given: object) -> TypeGuard[AnyTool]:
    return isinstance(given, Tool) or (not isinstance(given, type) and isinstance(given, AnyTool))


def _made(given: Any) -> AnyTool:
    if given is None:  # to tool() this means that the function comes later
        raise ToolDefinitionError("None cannot be called; a tool is made of a function: @tool above it, or tool(function)")
    made: AnyTool = tool(given)
    return made


def _check_bound(made: AnyTool) -> None:
    if not getattr(made, "bound", True):
        raise ToolDefinitionError(
            f"{made.name!r} is a method and needs its object: give the tool of an object, such as shop.{made.name} where "
            f"shop = Shop(), instead of Shop.{made.name}"
        )
