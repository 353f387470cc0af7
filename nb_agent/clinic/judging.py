"""Whether the calls of a model are those that were expected, and in which round the last of them came. It runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from nb_agent.messages import ToolCall
from nb_agent.tools.arguments import parsed
from nb_agent.values import JSON

__all__ = ["Expected", "all_right", "right_after", "written"]

#: A name and arguments. One that is not named may be anything, and one that is a function says itself whether it is right.
Expected: TypeAlias = Mapping[str, Any]
#: The calls of one reply.
_Calls: TypeAlias = Sequence[ToolCall]


def all_right(expected: Sequence[Expected], calls: _Calls) -> bool:
    """Whether each of these calls is an expected one, and there are some where some are expected."""
    return bool(calls) == bool(expected) and len(_open(expected, calls)) == len(expected) - len(calls)


def right_after(expected: Sequence[Expected], replies: Sequence[_Calls]) -> int | None:
    """Number of the reply with which the last expected call came; where none is expected, of a first one without calls."""
    if not expected:
        return 1 if replies and not replies[0] else None
    left = expected
    for number, calls in enumerate(replies, 1):
        left = _open(left, calls)
        if not left:
            return number
    return None


def written(call: ToolCall) -> str:
    """A call as it reads in Python."""
    given = _arguments(call)
    inside = call.arguments if given is None else ", ".join(f"{key}={value!r}" for key, value in given.items())
    return f"{call.name}({inside})"


def _open(expected: Sequence[Expected], calls: _Calls) -> list[Expected]:
    """The expected calls that are not among these, of which each stands for one."""
    left = list(expected)
    for call in calls:
        place = next((place for place, wanted in enumerate(left) if _is(call, wanted)), None)
        if place is not None:
            del left[place]
    return left


def _is(call: ToolCall, wanted: Expected) -> bool:
    given = _arguments(call)
    if call.name != wanted["name"] or given is None:
        return False
    return all(key in given and _fits(given[key], value) for key, value in (wanted.get("arguments") or {}).items())


def _fits(given: Any, value: Any) -> bool:
    return bool(value(given)) if callable(value) else bool(given == value)


def _arguments(call: ToolCall) -> JSON | None:
    try:
        return parsed(call.arguments)
    except ValueError:
        return None
