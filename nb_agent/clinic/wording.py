"""A better wording to start from, made of what is there: the names, the types, and the values that the function itself looks up.

It knows no more than the tool's author wrote: where something has to be filled in there stands ``…``.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, Final

from nb_agent.clinic.subjects import Field, Subject
from nb_agent.clinic.words import kind_of, pieces, verb

__all__ = ["describe_field", "describe_tool", "known_values", "syntax_of"]

#: Values of a list that are proposed as they are; of more of them only an example is.
_MOST_CHOICES: Final = 8
_VERBS: Final = {"get": "Look up", "fetch": "Look up", "list": "List", "find": "Find", "search": "Search for", "read": "Read"}
_NO_NOUN: Final = frozenset({"id", "ids", "code", "key", "no", "number", "uuid", "ref"})


def describe_tool(subject: Subject) -> str:
    """A first sentence from the names, and what else has to be said."""
    parts = pieces(subject.name.rpartition("__")[2])
    first = verb(subject.name)
    noun = " ".join(parts[1:]) or "…"
    by = [" ".join(pieces(field.name)) for field in subject.fields if field.level == 1 and field.required]
    doing = _VERBS.get(first, first.capitalize() or "…")
    return f"{doing} the {noun}{' by ' + ' and '.join(by) if by else ''}. Gives back …. Use it when …, and not when …."


def describe_field(subject: Subject, field: Field) -> str:
    """A line for a parameter: its choices where the function shows them, else its form and an example."""
    values = known_values(subject.function, field.name) if field.level == 1 else []
    if values and len(values) <= _MOST_CHOICES:
        return f"{field.name}: Literal[{', '.join(map(_quoted, values))}]"
    return f"{field.name}: {_form(field, values)}"


def _form(field: Field, values: list[str]) -> str:
    noun = " ".join(piece for piece in pieces(field.name) if piece not in _NO_NOUN) or "…"
    if values:
        return f"name of the {noun}, e.g. {values[0]}"
    number = not field.texts and bool(field.kinds & {"integer", "number"})
    if kind := kind_of(field.name, number=number):
        return kind.form.format(noun=noun, letters=noun[:3].upper() if noun != "…" else "X")
    if "boolean" in field.kinds:
        return f"true to {noun}, false to …"
    if number:
        return f"the {noun} in … (unit), from … to …"
    if isinstance(field.default, str) and field.default:
        return f"the {noun}, e.g. {field.default}; {field.default} where it is left out"
    return f"the {noun}, e.g. …" if field.texts else f"the {noun}: what is in it, e.g. …"


def _quoted(value: str) -> str:
    return f'"{value}"'


# ------------------------------------------------------------------------------------------------- what a function shows


def syntax_of(function: Callable[..., Any] | None) -> ast.AST:
    """The syntax of a function; empty where its source is not at hand."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]  # None is a TypeError, caught below
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, built in, or a lambda in the middle of a line
        return ast.Module([], [])


def known_values(function: Callable[..., Any] | None, name: str) -> list[str]:
    """The texts that a function looks a parameter up in: ``WAREHOUSES[name]``, ``name in WAREHOUSES``."""
    for holder in _holders(syntax_of(function), name):
        held = _value(function, holder)
        if isinstance(held, (dict, list, tuple, set, frozenset)) and held and all(isinstance(value, str) for value in held):
            return sorted(held) if isinstance(held, (set, frozenset)) else list(held)
    return []


def _holders(tree: ast.AST, name: str) -> Iterator[str]:
    """The names of the collections that a parameter is looked up in."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=holder), slice=ast.Name(id=key)) if key == name:
                yield holder
            case ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr="get"), args=[ast.Name(id=key), *_]) if key == name:
                yield holder
            case ast.Compare(left=ast.Name(id=key), ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=holder)]) if key == name:
                yield holder


def _value(function: Any, name: str) -> Any:
    code, cells = function.__code__, function.__closure__ or ()
    held = dict(zip(code.co_freevars, cells, strict=False))
    try:
        return held[name].cell_contents if name in held else function.__globals__.get(name)
    except ValueError:  # a variable that is not set yet
        return None
