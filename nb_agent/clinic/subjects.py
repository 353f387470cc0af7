"""What the clinic looks at: a tool with its parameters laid out flat, whatever it was given as.

Functions, tools and tools of MCP servers are taken as `tools.toolbox` takes them; so are bare definitions, which nothing can carry
out. Unlike `tools.parameters` this reads schemas and makes none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from nb_agent.adapters.schema_reading import dict_of, find, is_null, kinds_of, list_of, one_of_all, rooted
from nb_agent.errors import ToolDefinitionError
from nb_agent.guards.policy import Tier
from nb_agent.mcp.arguments import argument_faults
from nb_agent.messages import Definition
from nb_agent.tools.schema import ArgumentsError
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.values import JSON, dumps

__all__ = ["Field", "Given", "Subject", "Told", "made"]

#: What can be looked at: a function, a tool, a definition, or the JSON of one.
Given: TypeAlias = AnyTool | Callable[..., Any] | Definition | JSON

_MOST_LEVELS: Final = 8  # of objects in objects that are looked into
_MOST_REFERENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Told:
    """A tool of which there is only the definition. A call that fits it is answered with a line that says so."""

    definition: Definition
    main_thread: bool = False
    tier: Tier | None = "read"  # nothing is carried out
    untrusted: bool = False
    vouched: bool = True
    time_limit: float | None = None

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.definition.name

    def check(self, arguments: JSON) -> dict[str, Any]:
        """The arguments as they are; raises `ArgumentsError` where they do not fit."""
        if wrong := argument_faults(self.definition.parameters, arguments):
            raise ArgumentsError(f"the arguments do not fit {self.name}: {'; '.join(wrong)}")
        return arguments

    def call(self, arguments: dict[str, Any]) -> Any:
        """Say that there is nothing behind it."""
        return {"note": f"{self.name} is only a definition; nothing was carried out", "arguments": arguments}


def made(given: Given) -> AnyTool:
    """What was given, as a tool.

    Raises:
        ToolDefinitionError: it cannot be told to a model.
    """
    if isinstance(given, Definition):
        return Told(given)
    if isinstance(given, dict):
        return Told(_definition(given))
    (found,) = Toolbox([given])
    return found


def _definition(given: JSON) -> Definition:
    """The JSON of a definition: as `Tool.schema` gives it, as providers take it, or as an MCP server lists it."""
    form = {**given, **dict_of(given.get("function"))}
    keys = ("parameters", "input_schema", "inputSchema")
    parameters: JSON = next((form[key] for key in keys if isinstance(form.get(key), dict)), {})
    if not isinstance(form.get("name"), str):
        raise ToolDefinitionError(f"a definition needs a name: {dumps(given)[:200]}")
    sound = {"type": "object", "properties": dict_of(parameters.get("properties")), "required": list_of(parameters.get("required"))}
    return Definition(form["name"], str(form.get("description") or ""), {**parameters, **sound})


# ------------------------------------------------------------------------------------------------- a tool


class Subject:
    """A tool that is looked at."""

    def __init__(self, tool: AnyTool) -> None:
        self.tool = tool
        self.name = tool.name
        self.description = " ".join(tool.definition.description.split())

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Its parameters, and what is inside of them, each behind the one that it is in."""
        schema = rooted(self.tool.definition.parameters)
        return tuple(_fields(schema, schema, "", 1, frozenset()))

    @cached_property
    def function(self) -> Callable[..., Any] | None:
        """The function behind it, where there is one."""
        found: Any = inspect.unwrap(getattr(self.tool, "__wrapped__", None) or _nothing)
        found = getattr(found, "__func__", found)
        return found if inspect.isfunction(found) and found is not _nothing else None


def _nothing() -> None:
    """Stands where a tool has no function."""


@dataclass(frozen=True)
class Field:
    """A parameter, or a part of one.

    Attributes:
        path: where it is, as ``address.city``.
        forms: the schemas that it may fit, references followed, without null.
        required: whether it has to be given.
        level: 1 for a parameter of the tool itself.
    """

    path: str
    forms: tuple[JSON, ...]
    required: bool
    level: int

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    @cached_property
    def description(self) -> str:
        """What is said of it."""
        return next((" ".join(form["description"].split()) for form in self.forms if isinstance(form.get("description"), str)), "")

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Its JSON types."""
        return frozenset(kind for form in self.forms for kind in kinds_of(form))

    @cached_property
    def texts(self) -> tuple[JSON, ...]:
        """The forms in which it is a text, or a list of texts."""
        inner = [dict_of(form.get("items")) if "array" in kinds_of(form) else form for form in self.forms]
        return tuple(form for form in inner if "string" in kinds_of(form))

    @property
    def default(self) -> Any:
        """What it is when nothing is given; `...` where nothing is said of that."""
        return next((form["default"] for form in self.forms if "default" in form), ...)


def _fields(schema: JSON, root: JSON, before: str, level: int, seen: frozenset[str]) -> Iterator[Field]:
    required = list_of(schema.get("required"))
    for name, part in dict_of(schema.get("properties")).items():
        forms = tuple(_forms(part, root)) or ({},)
        yield Field(f"{before}{name}", forms, name in required, level)
        for form in forms if level < _MOST_LEVELS else ():
            inner = [form] if "properties" in form else _forms(form.get("items"), root)
            for held in inner:
                mark = dumps(held.get("properties", {}))
                if mark not in seen:  # a class that holds itself
                    yield from _fields(held, root, f"{before}{name}.", level + 1, seen | {mark})


def _forms(schema: Any, root: JSON, level: int = 0) -> Iterable[JSON]:
    """The alternatives of a schema. What is said around a choice holds for each of them."""
    given = one_of_all(root, dict_of(schema))
    if level > _MOST_REFERENCES:
        return []
    if isinstance(given.get("$ref"), str):
        around = {key: value for key, value in given.items() if key != "$ref"}
        return [{**form, **around} for form in _forms(find(root, given["$ref"]) or {}, root, level + 1)]
    for key in ("anyOf", "oneOf"):
        if members := list_of(given.get(key)):
            around = {word: value for word, value in given.items() if word != key}
            return [{**form, **around} for member in members for form in _forms(member, root, level + 1)]
    return [] if is_null(given) else [given]
