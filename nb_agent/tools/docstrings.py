"""What a docstring says: what the tool does, and what each of its parameters means.

The reading is `docstring_parser`'s, for Google, NumPy and reST style. It gives up on a whole docstring for one odd line, so what it
stumbles over is mended first, and it is given the parameters only: ``Returns``, ``Raises`` and the like are not for the model.
Nothing here raises; a docstring that cannot be read is a description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from docstring_parser import Docstring, ParseError, google, numpydoc, rest

__all__ = ["Described", "read"]

_PARAMETERS: Final = ("Args", "Arguments", "Parameters", "Params", "Keyword Args", "Keyword Arguments", "Other Parameters")
_OTHERS: Final = ("Returns?", "Raises?", "Yields?", "Receives?", "Warns?", "Examples?", "Attributes", "Exceptions?", "Except")
_TITLES: Final = "|".join((*_PARAMETERS, *_OTHERS))

#: ``Args:`` alone in its line, also with a Chinese colon. The library wants exactly this spelling.
_HEADING: Final = re.compile(rf"^(?:{_TITLES})[ \t]*[:\uff1a][ \t]*$", re.MULTILINE | re.IGNORECASE)
#: ``Parameters`` over a line of dashes. The library wants exactly as many dashes as letters.
_UNDERLINED: Final = re.compile(
    rf"^({_TITLES}|Notes?|Warnings?|See Also|References?)[ \t]*\n[ \t]*-{{2,}}[ \t]*$", re.MULTILINE | re.IGNORECASE
)
#: ``:param int x:``, and ``@param x:`` of epytext. A line that begins with ``:class:`X` `` is none.
_FIELD: Final = re.compile(
    r"^[:@](param|parameter|arg|argument|key|keyword|kwarg|type"
    r"|returns?|rtype|raises?|except|exception|yields?|ytype|meta|var|ivar|cvar|vartype)\b([^:\n]*):",
    re.MULTILINE,
)
#: ``x (int): text``, ``x - text`` (any dash) or ``x, y: text`` at the start of a Google entry.
_ENTRY: Final = re.compile(
    r"(?P<names>\\?\*{0,2}\w+(?:\s*,\s*\\?\*{0,2}\w+)*)\s*(?P<type>\((?:[^()]|\([^()]*\))*\))?"
    r"\s*(?P<mark>[:\uff1a]|\s[-\u2013\u2014]+\s|$)\s*(?P<text>.*)"
)
#: A line that goes on with the sentence before it; anything else, such as an item of a list, keeps its line break.
_GOES_ON: Final = re.compile(r"(?!\d+[.)]\s)[\w(\"'`\[{]")

_GOOGLE: Final = google.GoogleParser([google.Section(title, "param", google.SectionType.MULTIPLE) for title in _PARAMETERS])
_NUMPY: Final = numpydoc.NumpydocParser()


@dataclass(frozen=True, slots=True)
class Described:
    """What a docstring says. ``types`` holds the types that it names, as text, by parameter."""

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


def read(docstring: str | None, names: Collection[str] = ()) -> Described:
    r"""The description of a tool and of its parameters.

    Args:
        docstring: as its author wrote it, in any of the three styles.
        names: the parameters that the function has; they tell an entry from a line of text.

    >>> read("Count birds.\n    Args:\n        lake: name of\n            the lake\n", {"lake"})
    Described(text='Count birds.', parameters={'lake': 'name of the lake'}, types={})
    """
    text = inspect.cleandoc(docstring or "")
    for begins, parse in ((_UNDERLINED, _numpy), (_FIELD, _rest), (_HEADING, _google)):
        if found := begins.search(text):
            return _described(text[: found.start()], text[found.start() :], parse, names)
    return Described(text.strip())


def _described(text: str, fields: str, parse: Callable[[str, Collection[str]], Docstring], names: Collection[str]) -> Described:
    described = Described(text.strip())
    try:
        parsed = parse("\n" + fields, names)  # the library dedents all lines but the first
    except (ParseError, ValueError):
        return described
    for entry in parsed.params:
        for written in entry.arg_name.split(","):
            name = written.strip().lstrip("\\*")
            if entry.args[0] != "attribute" and name not in described.parameters:
                described.parameters[name] = _joined(entry.description or "")
                if entry.type_name:
                    described.types[name] = entry.type_name
    return described


def _joined(text: str) -> str:
    """One line for each sentence or item, whatever width the author's lines had."""
    joined = ""
    for line in text.strip().splitlines():
        goes_on = joined and not joined.endswith("\n") and _GOES_ON.match(line.strip())
        joined += f" {line.strip()}" if goes_on else f"\n{line.rstrip()}"
    return joined.strip()


# ------------------------------------------------------------------------------------------------- what the library wants


def _numpy(text: str, _names: Collection[str]) -> Docstring:
    return _NUMPY.parse(_UNDERLINED.sub(lambda found: f"{found[1].title()}\n{'-' * len(found[1])}", text))


def _rest(text: str, _names: Collection[str]) -> Docstring:
    return rest.parse(_FIELD.sub(_field, text))


def _field(found: re.Match[str]) -> str:
    kind, words = found[1], found[2].split()
    if kind == "type" and len(words) == 1:
        return f":type {words[0]}:"
    if not words or kind not in {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg"}:
        return ":meta:"  # the library raises for some of these, and they are not wanted
    return f":param {''.join(words[:-1])} {words[-1]}:"  # a type of several words is more than it takes


def _google(text: str, names: Collection[str]) -> Docstring:
    lines: list[str] = []
    indent: int | None = None  # of the entries of this section; -1 before the first one, None outside
    for line in text.splitlines():
        own = len(line) - len(line.lstrip())
        if _HEADING.match(line):
            title = line.strip().rstrip(":\uff1a").strip().title()
            indent = -1 if title in _PARAMETERS else None
            lines.append(f"{title}:")
        elif line.strip() and indent is not None:
            entry = _entry(line.strip(), names) if own and indent in {-1, own} else None
            if entry:
                indent = own
            if indent != -1:  # text before the first entry belongs to no parameter
                lines.append(" " * own + entry if entry else " " * 4 + line if own else line)
            indent = indent if own else None
        else:
            lines.append(line)
    return _GOOGLE.parse("\n".join(lines))


def _entry(line: str, names: Collection[str]) -> str | None:
    """A line as the library wants an entry, or ``None`` where it is one more line of the entry before."""
    found = _ENTRY.match(line)
    if not found:
        return None
    if found["mark"] not in {":", "\uff1a"} and found["names"].lstrip("\\*") not in names:
        return None
    kind = f" {found['type']}" if found["type"] else ""
    return f"{found['names']}{kind}: {found['text']}"
