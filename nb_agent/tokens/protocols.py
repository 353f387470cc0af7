"""What definitions, calls and results cost beside their own text: a table, and the texts that a model reads in their place.

Each constant was measured against recorded ``usage`` of the real services, by generation of models and wire format. Unlike
`requests`, nothing here adds up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from nb_agent.tokens.families import Family
from nb_agent.tokens.rendering import written
from nb_agent.values import dumps

__all__ = ["PARALLEL", "Protocol", "compact", "forced", "protocol", "rendered", "together"]

#: The name under which calls that came together are written as one.
PARALLEL: Final = "multi_tool_use.parallel"


class Protocol(NamedTuple):
    """Numbers are tokens.

    Attributes:
        pair: around a call and its result.
        parallel: the same for calls that came together.
        stranger: more for a call of a tool that the request does not define.
        legacy: around a ``function_call``; a ``function`` message costs two less than others.
        definitions: around the definitions.
        alone: more where no system message comes before them.
        joint: what is put between the first system message and the definitions; "" where they stand apart.
        seam: more where that is done.
        steady: false where the service was seen to add other amounts when a call is demanded.
        leading: only where the system message is the first of all; and the blanks at its end are not read.
    """

    pair: int
    parallel: int
    definitions: int
    stranger: int = 0
    legacy: int = 0
    alone: int = 0
    joint: str = ""
    seam: int = 0
    leading: bool = False
    steady: bool = True


_PROTOCOLS: Final = {
    ("old", "chat_completions"): Protocol(11, 13, 9, legacy=3, joint="\n", seam=-4),
    ("omni", "chat_completions"): Protocol(11, 13, -1, alone=4, joint="\n\n"),
    ("omni", "responses"): Protocol(9, 0, -3, stranger=3, joint="\n\n", steady=False),
    ("reasoning", "chat_completions"): Protocol(17, 20, 97, joint="\n\n", seam=-1, leading=True),
    ("reasoning", "responses"): Protocol(18, 24, 15, stranger=3),
}


def protocol(read_by: Family, wire: str) -> tuple[Protocol | None, bool]:
    """The protocol of a family in a wire format, and whether it was measured; ``None`` for families that read JSON."""
    known = _PROTOCOLS.get((read_by.generation, wire or "chat_completions"))
    return known or _PROTOCOLS.get((read_by.generation, "chat_completions")), known is not None


def forced(choice: Any) -> str | None:
    """The name of the one tool that has to be called, in any wire format's words."""
    inner = choice.get("function", choice) if isinstance(choice, dict) else {}
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


class Rendered(NamedTuple):
    """Definitions as one text, cut where it changes no token: ``opening``, a stretch for each, ``closing``.

    ``known`` says of each whether a model reads it in this form; what is no function stands in ``each`` as the JSON that is sent.
    """

    opening: str
    each: tuple[str, ...]
    closing: str
    known: tuple[bool, ...]


_NAMESPACE: Final = "namespace functions {\n\n"
_OPENINGS: Final = {"old": _NAMESPACE, "omni": f"# Tools\n\n## functions\n\n{_NAMESPACE}", "reasoning": ""}
_CLOSING: Final = "} // namespace functions"


@lru_cache(maxsize=64)
def rendered(forms: tuple[str, ...], read_by: Family) -> Rendered:
    """Definitions as a model reads them, from the JSON that is sent."""
    texts = [_text(form, terse=read_by.terse or read_by.generation != "old") for form in forms]
    functions = [text for text in texts if text is not None]
    opening = _OPENINGS[read_by.generation] if functions else ""
    begun, *stretches = _stretches(opening, functions, last="\n\n" if opening else "")
    left = iter(stretches)
    each = tuple(form if text is None else next(left) for text, form in zip(texts, forms, strict=True))
    return Rendered(begun, each, _CLOSING if opening else "", tuple(text is not None for text in texts))


def _stretches(opening: str, functions: Sequence[str], *, last: str) -> list[str]:
    """The opening, and a stretch for each function, that together are the whole text.

    The slashes of a comment may be one token with the line ends before them, and so stand at the end of the stretch before.
    """
    ends = [opening, *(f"{function}\n\n" for function in functions[:-1]), *(function + last for function in functions[-1:])]
    slashes = [len(text) - len(text.lstrip("/\n")) if place > 1 or opening else 0 for place, text in enumerate(ends)]
    slashes[0] = 0
    return [text[skip:] + after[:more] for (text, skip), (after, more) in pairwise([*zip(ends, slashes, strict=True), ("", 0)])]


def _text(content: str, *, terse: bool) -> str | None:
    """A function as it is read; ``None`` for anything else, such as a tool that the provider carries out."""
    try:
        tool = json.loads(content)
        form = tool.get("function", tool)
        is_function = tool.get("type", "function") == "function" and isinstance(form["name"], str)
        return written(form, terse=terse) if is_function else None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def compact(arguments: str) -> str:
    """Arguments as they are read: their own white space does not matter.

    >>> compact('{ "a": 1 }')
    '{"a":1}'
    """
    try:
        return dumps(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def together(calls: Sequence[tuple[str, str]]) -> list[str]:
    """Calls that came together as one call's arguments, in as many pieces as there are calls."""
    pieces = [f'{{"recipient_name":{dumps(f"functions.{name}")},"parameters":{arguments}}}' for name, arguments in calls]
    return [f'{{"tool_uses":[{pieces[0]}', *(f",{piece}" for piece in pieces[1:-1]), f",{pieces[-1]}]}}"]
