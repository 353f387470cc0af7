"""What can be wrong with one tool: its description, its name, its tier, how many parameters it has, what its errors say."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any, Final

from nb_agent.adapters import WIRES
from nb_agent.adapters.fitting import fitting_name
from nb_agent.clinic.subjects import Subject
from nb_agent.clinic.wording import describe_tool, syntax_of
from nb_agent.clinic.words import CHANGES, DANGERS, SAYS_EFFECT, VAGUE, content, pieces, verb

__all__ = [
    "Fault",
    "catches_all",
    "describes_little",
    "has_many",
    "is_deep",
    "misnamed",
    "says_no_effect",
    "says_no_tier",
    "swallows",
]

#: A parameter, or ``None`` for the tool itself; the reason; a wording to start from.
Fault = tuple[str | None, str, str]

#: Words of a description, and Chinese characters, under which it says too little.
_LEAST_WORDS: Final = 4
_LEAST_CHARACTERS: Final = 5
#: Parameters of a tool, and objects in objects.
_MOST_PARAMETERS: Final = 8
_MOST_LEVELS: Final = 3


def describes_little(subject: Subject) -> Iterator[Fault]:
    """A description that is missing, too short, vague, or only the name once more."""
    text = subject.description
    if not text:
        yield None, "it has no description: the model chooses by its name alone", describe_tool(subject)
    elif found := VAGUE.search(text):
        yield None, f"{found[0].strip() or text!r} says nothing about what it does", describe_tool(subject)
    elif not content(text) - content(" ".join(pieces(subject.name))):
        yield None, f"{text!r} only repeats the name", describe_tool(subject)
    elif len(text.split()) < _LEAST_WORDS and sum("\u3400" <= letter <= "\u9fff" for letter in text) < _LEAST_CHARACTERS:
        yield None, f"{text!r} is too short to tell when to use it", describe_tool(subject)


def misnamed(subject: Subject) -> Iterator[Fault]:
    """A name that a provider refuses; it would be sent under another one."""
    for wire in WIRES:
        sent = fitting_name(subject.name, wire)
        if sent != subject.name:
            yield None, f"{wire} does not take this name; it would be sent as {sent!r}", sent
            return


def has_many(subject: Subject) -> Iterator[Fault]:
    """More parameters than a model fills in reliably."""
    count = sum(field.level == 1 for field in subject.fields)
    if count > _MOST_PARAMETERS:
        wording = "two tools of one task each; or leave out what the program knows itself"
        yield None, f"it has {count} parameters; more than {_MOST_PARAMETERS} are filled in badly", wording


def is_deep(subject: Subject) -> Iterator[Fault]:
    """Objects in objects in objects."""
    deepest = max(subject.fields, key=lambda field: field.level, default=None)
    if deepest and deepest.level > _MOST_LEVELS:
        flat = "_".join(deepest.path.split(".")[-2:])
        reason = f"it stands {deepest.level} levels deep; past {_MOST_LEVELS} models lose brackets and keys"
        yield deepest.path, reason, f"a parameter of its own: {flat}"


def says_no_tier(subject: Subject) -> Iterator[Fault]:
    """A name that sounds dangerous, and nobody says what the tool may do, or it is said that it only looks."""
    if verb(subject.name) not in DANGERS:
        return
    if subject.tool.tier is None:
        yield None, "its name sounds dangerous and it has no tier, so that it counts as write and runs unasked", _tier(subject)
    elif subject.tool.tier == "read":
        yield None, "its name sounds dangerous and its tier is read, so that it runs unasked", _tier(subject)


def _tier(subject: Subject) -> str:
    return '@tool(tier="danger")' if subject.function else "annotations: destructiveHint true, or false where it can be put right"


def says_no_effect(subject: Subject) -> Iterator[Fault]:
    """A tool that changes something, and its description does not say so."""
    changes = subject.tool.tier in {"write", "danger"} or (subject.tool.tier is None and verb(subject.name) in CHANGES)
    if changes and subject.description and not SAYS_EFFECT.search(subject.description):
        wording = f"{subject.description.rstrip('.')}. This changes …; it can(not) be undone."
        yield None, "it changes something, and its description does not say what", wording


def catches_all(subject: Subject) -> Iterator[Fault]:
    """``*args`` or ``**kwargs``, which no model is told of."""
    if subject.function is None:
        return
    for entry in inspect.signature(subject.function).parameters.values():
        if entry.kind in {entry.VAR_POSITIONAL, entry.VAR_KEYWORD} and "Unpack[" not in str(entry.annotation):
            reason = f"{entry} is left out of the definition: the model cannot give it"
            yield entry.name, reason, "the parameters by their names, each with its type"


# ------------------------------------------------------------------------------------------------- errors


def swallows(subject: Subject) -> Iterator[Fault]:
    """Errors that tell the model nothing: swallowed, without words, or a bare ``KeyError``."""
    tree = syntax_of(subject.function)
    names = {field.name for field in subject.fields if field.level == 1 and not any("enum" in form for form in field.texts)}
    for reason, wording in dict.fromkeys([*_handlers(tree), *_raises(tree), *_lookups(tree, names)]):
        yield None, reason, wording


_SAY: Final = 'raise ToolError("what went wrong, and what would work", code="not_found")'


def _handlers(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        match node.body[-1]:
            case ast.Pass() | ast.Return(value=None | ast.Constant(value=None | False | "")) if len(node.body) == 1:
                yield "an error inside is swallowed: the model takes nothing for an answer", _SAY


def _raises(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name), args=[], keywords=[])) if name[:1].isupper():
                yield f"raise {name} has no words: the model learns nothing from it", _SAY


def _lookups(tree: ast.AST, names: set[str]) -> Iterator[tuple[str, str]]:
    """A parameter as a key, with no look before whether it is there."""
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.Try) for node in nodes):
        return
    looked: set[tuple[str, str]] = set()
    for node in nodes:
        match node:
            case ast.Compare(left=ast.Name(id=key), ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=holder)]):
                looked.add((holder, key))
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=holder), slice=ast.Name(id=key), ctx=ast.Load()) if key in names:
                if (holder, key) not in looked and not _is_written(nodes, holder):
                    yield f"where {holder} has no such key, the model is told KeyError and not what there is", _missing(holder, key)


def _is_written(nodes: list[Any], holder: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == holder and isinstance(node.ctx, ast.Store) for node in nodes)


def _missing(holder: str, key: str) -> str:
    words = key.replace("_", " ")
    return (
        f"if {key} not in {holder}: raise ToolError(f\"there is no {words} {{{key}!r}}; there are {{', '.join({holder})}}\", "
        'code="not_found")'
    )
