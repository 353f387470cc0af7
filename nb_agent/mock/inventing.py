"""What a model does where a definition gives it nothing to go by: it makes an id up, and mends it from the refusal that follows.

"The east warehouse" is no value of a parameter ``warehouse`` that nobody describes; a model that wants one writes ``east-99``. It
takes the nearest where the description lists the values. Unlike the fault ``invented_argument`` this is nobody's wish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nb_agent.messages import Definition
from nb_agent.mock.params import Param, params
from nb_agent.mock.plans import Call, Outcome

__all__ = ["guessed", "mended"]

#: What an id looks like that stands in a description or in a refusal.
_ID: Final = re.compile(r"(?<![\w-])[A-Za-z]+(?:[-_][A-Za-z0-9]+)+(?![\w-])")
_MADE_UP: Final = "-99"
#: Words of a description that says nothing.
_FEW: Final = 4


def guessed(call: Call, tools: Sequence[Definition], prompt: str) -> Call:
    """The call with ids in the place of words that only name a thing loosely."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    loose = [param for param in params(tool) if _is_loose(param, call.arguments.get(param.name), prompt)] if tool else []
    if not loose:
        return call
    described = _is_described(tool) if tool else True
    made = {
        param.name: _id_for(str(call.arguments[param.name]), str(param.schema.get("description") or ""), described=described)
        for param in loose
    }
    return replace(call, arguments={**call.arguments, **made})


def _is_described(tool: Definition) -> bool:
    """Whether somebody took the trouble to say what the tool is for."""
    return len(tool.description.split()) > _FEW or any(param.schema.get("description") for param in params(tool))


def _is_loose(param: Param, value: object, prompt: str) -> bool:
    """Whether a text is one word beside the name of its parameter, which says of no kind of value that it takes."""
    if param.type != "string" or param.likes or param.examples or param.schema.keys() & {"enum", "format", "pattern"}:
        return False
    if not isinstance(value, str) or not re.fullmatch(r"[a-z]{2,20}", value):
        return False
    return any(re.search(rf"\b{value}\s+{re.escape(noun)}\b", prompt, re.IGNORECASE) for noun in param.nouns)


def _id_for(word: str, description: str, *, described: bool) -> str:
    return _nearest(word, _ID.findall(description)) or (word if described else f"{word}{_MADE_UP}")


def mended(done: Sequence[Outcome], prompt: str) -> tuple[Call, ...]:
    """The calls that were refused for a value, each with the value that the refusal offers and that is nearest to it."""
    tried = [outcome.call for outcome in done]
    calls: list[Call] = []
    for outcome in done:
        for name, value in outcome.call.arguments.items():
            offered = [other for other in _ID.findall(outcome.error or "") if other != value]
            if not isinstance(value, str) or not offered or value not in str(outcome.error):
                continue
            better = _nearest(value, offered) or _nearest(prompt.lower(), offered)
            call = replace(outcome.call, arguments={**outcome.call.arguments, name: better})
            if better and not any(call.same(other) for other in (*tried, *calls)):
                calls.append(call)
    return tuple(calls)


def _nearest(word: str, offered: Sequence[str]) -> str:
    """The first of those offered whose first part is in the word; nothing where none is."""
    return next((other for other in offered if re.split(r"[-_]", other)[0].lower() in re.split(r"\W|_", word.lower())), "")
