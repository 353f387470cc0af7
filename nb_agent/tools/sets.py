"""Groups of tools by name, and the choice among them: fewer tools in a request cost fewer tokens and are chosen better.

A group is chosen by its name, or by a function of the prompt. Unlike `toolbox`, which holds what one run offers, this holds all
that could be offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from nb_agent.errors import SettingError
from nb_agent.tools.toolbox import AnyTool, Toolbox

__all__ = ["MANY", "Route", "ToolSets", "by_words", "crowded"]

#: More tools than this in one request, and models begin to mix them up (mission C6).
MANY: Final = 30

#: Gives the names of groups or of single tools that a prompt needs.
Route: TypeAlias = "Callable[[str, ToolSets], Iterable[str]]"

_WORD: Final = re.compile(r"[^\W\d_]{3,}|[\u3400-\u9fff]")
#: Words that say nothing about what a tool is for.
_COMMON: Final = frozenset(
    _WORD.findall("the and for with that this from its are one all you what how can has into out not per get set use")
)


class ToolSets:
    """Groups of tools. A tool may be in several.

    Args:
        sets: tools, or functions that are made into tools, by the name of their group.
        others: tools that are in no group.

    Attributes:
        all: all tools, each once.

    Raises:
        ToolDefinitionError: see `Toolbox`.
    """

    def __init__(
        self, sets: Mapping[str, Iterable[AnyTool | Callable[..., Any]]], others: Iterable[AnyTool | Callable[..., Any]] = ()
    ) -> None:
        self._sets = {name: Toolbox(tools) for name, tools in sets.items()}
        self.all = Toolbox([*self, *others])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self._sets)

    def __iter__(self) -> Iterator[AnyTool]:
        for tools in self._sets.values():
            yield from tools

    def __getitem__(self, name: str) -> Toolbox:
        return self._sets[name]

    def chosen(self, names: str | Iterable[str]) -> Toolbox:
        """The tools of these groups, or of these names, separated by commas or as a list.

        Raises:
            SettingError: there is no group and no tool of that name.
        """
        wanted = re.split(r"[,\s]+", names.strip()) if isinstance(names, str) else list(names)
        found: list[AnyTool] = []
        for name in filter(None, wanted):
            single = self.all.find(name)
            if name not in self._sets and single is None:
                raise SettingError(
                    f"no group of tools and no tool named {name!r}; the groups are: {', '.join(self._sets) or 'none'}"
                )
            found += self._sets[name] if name in self._sets or single is None else [single]
        return Toolbox(found)


def by_words(prompt: str, sets: ToolSets) -> list[str]:
    """The groups whose names and definitions share words with the prompt, the best first; all of them where none does."""
    said = _words(prompt)
    shared = {name: len(said & _words(" ".join([name, *map(_told, sets[name])]))) for name in sets.names}
    best = sorted((name for name in sets.names if shared[name]), key=lambda name: -shared[name])
    return best or list(sets.names)


def crowded(count: int) -> str | None:
    """What is said of a request with so many tools, where they are many."""
    if count <= MANY:
        return None
    return f"{count} tools are offered in this request; past {MANY} models mix them up: choose a group with tools='…', or a route"


def _told(tool: AnyTool) -> str:
    return (
        f"{tool.name.replace('_', ' ')} {tool.definition.description} {' '.join(tool.definition.parameters.get('properties', {}))}"
    )


def _words(text: str) -> set[str]:
    """The words of a text without their endings, so that orders are an order."""
    return {word.rstrip("s") for word in _WORD.findall(text.lower().replace("_", " "))} - _COMMON
