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
from typing import Final, TypeAlias

from docstring_parser import Docstring, ParseError, google, numpydoc, rest

__all__ = ["Described", "read"]

_PARAMETERS: Final = ("Args", "Arguments", "Parameters", "Params", "Keyword Args", "Keyword Arguments", "Other Parameters")
_CHINESE: Final = (
    "\u53c2\u6570",
    "\u53c2\u6570\u8bf4\u660e",
    "\u53c3\u6578",
)  # "parameters", twice simplified and once traditional
_OTHERS: Final = ("Returns?", "Raises?", "Yields?", "Receives?", "Warns?", "Examples?", "Attributes", "Exceptions?", "Except")
_OTHERS_CHINESE: Final = (
    "\u8fd4\u56de\u503c?",
    "\u8fd4\u56de",
    "\u56de\u50b3",
    "\u5f02\u5e38",
    "\u629b\u51fa",
    "\u793a\u4f8b",
    "\u4f8b\u5b50",
)  # returns, raises, example
_TITLES: Final = "|".join((*_PARAMETERS, *_OTHERS, *_CHINESE, *_OTHERS_CHINESE))

#: ``Args:`` alone in its line, also with a Chinese colon, or as a heading of Markdown. The library wants exactly this spelling.
_HEADING: Final = re.compile(
    rf"^(?:({_TITLES})[ \t]*[:\uff1a]|(?:#+[ \t]*|\*\*)({_TITLES})\**[ \t]*[:\uff1a]?\**)[ \t]*$", re.MULTILINE | re.IGNORECASE
)
#: ``Returns: a number``, a section of one line.
_INLINE: Final = re.compile(rf"^(?:{_TITLES})[ \t]*[:\uff1a]", re.IGNORECASE)
#: ``Parameters`` over a line of dashes. The library wants exactly as many dashes as letters.
_UNDERLINED: Final = re.compile(
    rf"^({_TITLES}|Notes?|Warnings?|See Also|References?)[ \t]*\n[ \t]*(?:-{{2,}}|={{2,}})[ \t]*$", re.MULTILINE | re.IGNORECASE
)
#: ``:param int x:``, and ``@param x:`` of epytext. A line that begins with ``:class:`X` `` is none.
_FIELD: Final = re.compile(
    r"^[:@](param|parameter|arg|argument|key|keyword|kwarg|type"
    r"|returns?|rtype|raises?|except|exception|yields?|ytype|meta|var|ivar|cvar|vartype"
    r"|see|note|warning|attention|todo|author|since|version|deprecated|requires|bug)\b([^:\n]*):",
    re.MULTILINE,
)
#: ``x (int): text``, ``x - text`` (any dash) or ``x, y: text`` at the start of a Google entry.
_ENTRY: Final = re.compile(
    r"(?P<names>\\?\*{0,2}\w+(?:\s*,\s*\\?\*{0,2}\w+)*)\s*(?P<type>[(\uff08](?:[^()\uff08\uff09]|\([^()]*\))*[)\uff09])?"
    r"\s*(?P<mark>[:\uff1a]|\s[-\u2013\u2014]+\s|$)\s*(?P<text>.*)"
)
#: What may stand around a name in Markdown: ``- `x` (int)``, ``* **x**``.
_BULLET: Final = re.compile(r"^[-*+\u2022]\s+(?=[\w`*])")
_MARKED: Final = re.compile(r"^(`{1,2}|\*\*)(\w+)\1")
#: A line that goes on with the sentence before it; anything else, such as an item of a list, keeps its line break.
_GOES_ON: Final = re.compile(r"(?!\d+[.)]\s)[\w(\"'`\[{]")

_GOOGLE: Final = google.GoogleParser([google.Section(title, "param", google.SectionType.MULTIPLE) for title in ("Args",)])
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
    text = inspect.cleandoc((docstring or "").replace("\r\n", "\n"))
    for begins, parse in ((_UNDERLINED, _numpy), (_FIELD, _rest), (_HEADING, _google)):
        if found := begins.search(text):
            return _described(text[: found.start()], text[found.start() :], parse, names)
    return Described(text.strip())


#: The docstring as the library read it, and the text that came after its sections.
_Parsed: TypeAlias = tuple[Docstring, list[str]]


def _described(text: str, fields: str, parse: Callable[[str, Collection[str]], _Parsed], names: Collection[str]) -> Described:
    try:
        parsed, after = parse("\n" + fields, names)
    except (ParseError, ValueError):
        return Described(text.strip())
    more = "\n".join(after).strip()
    described = Described("\n\n".join(part for part in (text.strip(), more) if part))
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


def _numpy(text: str, _names: Collection[str]) -> _Parsed:
    return _NUMPY.parse(_UNDERLINED.sub(lambda found: f"{found[1].title()}\n{'-' * len(found[1])}", text)), []


def _rest(text: str, _names: Collection[str]) -> _Parsed:
    fields: list[str] = []
    after: list[str] = []
    outside, blank = False, False
    for line in text.splitlines():
        if _FIELD.match(line):
            outside = False
        elif line[:1].strip() and blank:  # a paragraph that is not indented belongs to no field
            outside = True
        (after if outside else fields).append(line)
        blank = not line.strip()
    return rest.parse(_FIELD.sub(_field, "\n".join(fields))), after


def _field(found: re.Match[str]) -> str:
    kind, words = found[1], found[2].split()
    if kind == "type" and len(words) == 1:
        return f":type {words[0]}:"
    if not words or kind not in {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg"}:
        return ":meta:"  # the library raises for some of these, and they are not wanted
    return f":param {''.join(words[:-1])} {words[-1]}:"  # a type of several words is more than it takes


def _google(text: str, names: Collection[str]) -> _Parsed:
    """The sections of parameters for the library, each entry as it wants it, and what stands behind all sections."""
    lines, after = ["", "Args:"], list[str]()  # the library dedents all lines but the first
    indent: int | None = None  # of the entries of this section; -1 before the first one, None outside
    keep, began, blank = False, False, False
    for line in text.splitlines():
        own = len(line) - len(line.lstrip())
        if heading := _HEADING.match(line):
            indent = -1 if (heading[1] or heading[2]).title() in (*_PARAMETERS, *_CHINESE) else None
            keep, began, blank = False, False, False
            continue
        if not own and line.strip() and (blank or (indent or 0) > 0) and not (indent == 0 and _entry(line, names, sure=True)):
            keep, indent = not _INLINE.match(line), None  # what is not indented belongs to no section
        if keep:
            after.append(line)
        elif indent is not None:
            entry = _entry(line.strip(), names, sure=not own) if indent in {-1, own} else None
            indent = own if entry else indent
            if indent != -1:  # text before the first entry belongs to no parameter
                lines.append(f"    {entry}" if entry else " " * 8 + line[min(own, indent) :])
        began = began or bool(line.strip())
        blank = began and not line.strip()
    return _GOOGLE.parse("\n".join(lines)), after


def _entry(line: str, names: Collection[str], *, sure: bool) -> str | None:
    """A line as the library wants an entry, or ``None`` where it is one more line of the entry before.

    Args:
        line: without its indentation.
        names: the parameters that there are.
        sure: whether it is an entry only if it begins with one of them.
    """
    plain = line if line[:1].isalnum() else _MARKED.sub(r"\2", _BULLET.sub("", line))
    found = _ENTRY.match(plain)
    if not found:
        return None
    sure = sure or plain != line or found["mark"] not in {":", "\uff1a"}
    doubtful = sure or (names and plain[0].isupper())  # "Example: Oslo" goes on with the entry before
    if doubtful and found["names"].lstrip("\\*") not in names:
        return None
    kind = f" ({found['type'][1:-1]})" if found["type"] else ""
    return f"{found['names']}{kind}: {found['text']}"
