"""A tool from a Python function: `tool` makes it; a `Tool` tells the model what it is, checks arguments, and calls the function.

Everything that can be wrong with a tool is said when it is made. Nothing here knows a run, a thread or a result's text: see
`calling` and `results`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import re
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack, get_args, overload

from nb_agent import background
from nb_agent.adapters.property_names import renamed, restored
from nb_agent.errors import AgentError, ToolDefinitionError
from nb_agent.guards.policy import Tier
from nb_agent.messages import Definition
from nb_agent.tools.arguments import checked_arguments
from nb_agent.tools.docstrings import Described, read
from nb_agent.tools.functions import docstrings_of, is_in_class, name_of, names_of, signature_of, starts_with_self
from nb_agent.tools.parameters import parameters_of, schema_of
from nb_agent.values import JSON

__all__ = ["ArgumentsError", "Tool", "ToolOptions", "tool"]


#: What the APIs take as a name. With any other one they refuse the whole request.
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FIRST: Final = re.compile("[a-zA-Z_]")
#: Items that are read from a generator that a tool gives back: it may be without end.
MOST_ITEMS: Final = 10_000


class ArgumentsError(AgentError, ValueError):
    """The arguments of a call do not fit; the text names each bad parameter and what was expected."""


class ToolOptions(TypedDict, total=False):
    """What may be said of a tool where it is made (see `tool`)."""

    name: str | None
    description: str | None
    main_thread: bool
    tier: Tier | None
    time_limit: float | None
    untrusted: bool
    strict: bool | None


class Tool:
    """A function that a model may ask for. It is still called like the function.

    Attributes:
        name: what the model calls it.
        definition: what the model is told of it.
        options: what was said of it where it was made.
        main_thread: whether it has to run in the thread of the cell, as pyplot and sqlite connections must.
        tier: what it may do (`Tier`); ``None`` where nobody said.
        time_limit: seconds after which a call is left behind, ``None`` for what the run sets.
        untrusted: whether its results are words of strangers, such as a web page.
        bound: ``False`` for a method that was not taken from an object, and cannot be called by a model.
    """

    vouched = True  # its author says what it may do
    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], **options: Unpack[ToolOptions]) -> None:
        plain: Any = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
        functools.update_wrapper(self, plain, updated=())
        name = options.get("name")
        self.name = _checked(name_of(plain) if name is None else name)
        self.options = _checked_options(options, self.name)
        self.main_thread = options.get("main_thread", False)
        self.tier = options.get("tier")
        self.time_limit = options.get("time_limit")
        self.untrusted = options.get("untrusted", False)
        self._function = plain
        self._description = options.get("description")
        #: What __get__ binds it to: "object", "class" or nothing.
        self._binds = "class" if isinstance(function, classmethod) else "object" if is_in_class(function) else ""
        self._define(skip_first=None if self._binds == "object" else bool(self._binds))

    def _define(self, *, skip_first: bool | None) -> None:
        signature = signature_of(self._function, self.name)
        self.bound = not (starts_with_self(signature) if skip_first is None else skip_first)
        if not self.bound:
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        described = _described(self._function, signature)
        text = described.text if self._description is None else inspect.cleandoc(self._description)
        self._parameters = parameters_of(signature, described, names_of(self._function), self.name)
        self._renamed = renamed(entry.key for entry in self._parameters)
        self._placed = tuple(entry for entry in signature.parameters.values() if entry.kind is entry.POSITIONAL_ONLY)
        self.definition = Definition(self.name, text, schema_of(self._parameters), self.options.get("strict"))

    @property
    def description(self) -> str:
        """What it does, in the words that the model reads."""
        return self.definition.description

    @property
    def schema(self) -> JSON:
        """The finished definition as JSON: name, description, and the parameters as a JSON Schema."""
        return {"name": self.name, "description": self.description, "parameters": copy.deepcopy(self.definition.parameters)}

    def check(self, arguments: JSON) -> dict[str, Any]:
        """The arguments of a call as keyword arguments of the annotated types. Defaults are left to the function.

        Raises:
            ArgumentsError: one is missing, unknown, or does not fit.
        """
        given = restored(arguments, self._renamed)
        checked, wrong = checked_arguments(self._parameters, given, strict=bool(self.definition.strict))
        if wrong:
            raise ArgumentsError(f"the arguments do not fit {self.name}: {'; '.join(wrong)}")
        return checked

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call the function with what `check` gave. What can be awaited is waited for, and generators are read to their end."""
        named = dict(arguments)
        placed = [named.pop(entry.name, entry.default) for entry in self._placed]
        return _settled(self._function(*placed, **named))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        return self._function(*args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        if self._binds and self.bound:  # a method whose first parameter is not called self
            self._define(skip_first=True)

    def __get__(self, instance: Any, owner: type | None = None) -> Tool:
        """The tool of one object, like a method."""
        to = (owner or type(instance)) if self._binds == "class" else instance
        if not self._binds or to is None:
            return self
        taken = copy.copy(self)
        if taken.bound:
            taken._define(skip_first=True)  # noqa: SLF001  its own copy
        taken._function = taken.__wrapped__ = types.MethodType(self._function, to)  # noqa: SLF001
        taken._binds, taken.bound = "", True  # noqa: SLF001
        return taken

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tool):
            return NotImplemented
        return self is other or (
            self._function == other._function and (self.definition, self.options) == (other.definition, other.options)
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join(entry.key for entry in self._parameters)})>"


@overload
def tool(function: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
@overload
def tool(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> Tool: ...
def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: ``@tool``, ``@tool(name="…")`` or ``tool(function)``.

    Args:
        function: anything that can be called; a tool is given back as it is, with the further options where there are any.
        options:
            ``name``: what the model calls it; without one, the function's own name.
            ``description``: what it does; without one, the docstring says it. Parameters are described by the docstring either way.
            ``main_thread``: run it in the thread of the cell, one after the other, as pyplot and sqlite connections need it.
            ``tier``: ``"read"``, ``"write"`` or ``"danger"``, which the policy of a run decides by (see `guards.policy`).
            ``time_limit``: seconds after which a call is left behind and the model is told so.
            ``untrusted``: its results are words of strangers, such as a web page, and are framed as such for the model.
            ``strict``: whether providers that can are asked to hold the arguments to the schema.

    Raises:
        ToolDefinitionError: the name or a parameter cannot be told to a model.
    """
    if function is None:
        return lambda decorated: tool(decorated, **options)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, Tool):  # @classmethod over @tool, from Python 3.13
        function = function.__func__.__get__(function.__self__)
    if isinstance(function, Tool):
        if not options:
            return function
        said: Any = function.options | {key: value for key, value in options.items() if value is not None}
        return Tool(function._function, **said)  # noqa: SLF001  the same class
    if not (callable(function) or isinstance(function, (staticmethod, classmethod))):
        raise ToolDefinitionError(f"{function!r} cannot be called; a tool is made of a function: @tool above it, or tool(function)")
    return Tool(function, **options)


def _checked_options(options: ToolOptions, name: str) -> ToolOptions:
    for key in options:
        if key not in ToolOptions.__annotations__:
            raise ToolDefinitionError(f"{name}: a tool has no option {key!r}; there are {', '.join(ToolOptions.__annotations__)}")
    tier, seconds = options.get("tier"), options.get("time_limit")
    if tier is not None and tier not in get_args(Tier):
        raise ToolDefinitionError(f"{name}: tier={tier!r} is none of {', '.join(get_args(Tier))}")
    if seconds is not None and not seconds > 0:
        raise ToolDefinitionError(f"{name}: time_limit={seconds!r} is no number of seconds above 0")
    return options


def _checked(name: str) -> str:
    if not isinstance(name, str) or not (_NAME.fullmatch(name) and _FIRST.match(name)):
        raise ToolDefinitionError(
            f"{name!r} cannot be the name of a tool: model APIs take 1 to 64 of the characters a-z, A-Z, 0-9, _ and - "
            f"(^{_NAME.pattern}$), the first a letter or _; give it another one with tool(…, name='…')"
        )
    return name


def _described(function: Any, signature: inspect.Signature) -> Described:
    found = [read(text, signature.parameters) for text in docstrings_of(function)] or [Described()]
    text = next((described.text for described in found if described.text), "")
    for described in found[1:]:
        found[0].parameters.update({**described.parameters, **found[0].parameters})
    return Described(text, found[0].parameters, found[0].types)


# ------------------------------------------------------------------------------------------------- what a function gives back


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


def _settled(value: Any) -> Any:
    if isinstance(value, AsyncGenerator):
        value = _collected(value)
    if inspect.isawaitable(value):
        # Errors come back as values: SystemExit in a task would end the loop, and the frames of the loop would be in the traceback.
        outcome = background.run(_guarded(value))
        if isinstance(outcome, _Raised):
            raise outcome.error
        return _settled(outcome)
    if isinstance(value, Generator) or (isinstance(value, Iterator) and type(value).__repr__ is object.__repr__):
        items = list(itertools.islice(value, MOST_ITEMS + 1))
        return [*items[:MOST_ITEMS], f"… only the first {MOST_ITEMS:,} items were read"] if len(items) > MOST_ITEMS else items
    return value


async def _guarded(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001  raised again by the caller
        return _Raised(error)


async def _collected(stream: AsyncGenerator[Any, None]) -> list[Any]:
    items = []
    async for item in stream:
        items.append(item)
        if len(items) > MOST_ITEMS:
            return [*items[:MOST_ITEMS], f"… only the first {MOST_ITEMS:,} items were read"]
    return items
