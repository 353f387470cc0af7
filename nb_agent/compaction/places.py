"""Where a history can be cut, and what then stands in the place of what went.

A call is never parted from its results; system and developer messages, the prompt and the last round are never among what may go.
Nothing here decides how much has to go, which is the work of `strategies`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from nb_agent.messages import Message

__all__ = ["fault", "groups", "keep_last", "last_round", "note", "place_of", "units", "went", "without"]

_STANDING: Final = frozenset({"system", "developer"})


def units(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The pieces that cannot be cut: an assistant message with the results of all its calls, or any other message alone.

    >>> from nb_agent.messages import ToolCall, ToolResult
    >>> call = Message("assistant", (ToolCall("c", "f"),))
    >>> [len(unit) for unit in units([Message.of("user", "go"), call, Message("tool", (ToolResult("c", "f"),))])]
    [1, 2]
    """
    found: list[tuple[Message, ...]] = []
    for message in messages:
        if message.role == "tool" and found:
            found[-1] = (*found[-1], message)
        else:
            found.append((message,))
    return found


def place_of(messages: Sequence[Message], prompt: Message | None) -> int:
    """Where the prompt stands; the last user message where none is named, -1 where there is none."""
    asked = (place for place, message in enumerate(messages) if message is prompt or (prompt is None and message.role == "user"))
    return max(asked, default=-1)


def last_round(messages: Sequence[Message]) -> int:
    """Where the last round begins: what comes after it the model has not seen."""
    return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)


def groups(messages: Sequence[Message], prompt: int) -> list[list[int]]:
    """The places of what may go, oldest first, each group at once: turns before the prompt, then rounds after it but the last."""
    kept, found = max(last_round(messages), prompt), list[list[int]]()
    for place, message in enumerate(messages[:kept]):
        if message.role in _STANDING or place == prompt or note(messages, place):
            continue
        if not found or message.role == "user" or (place > prompt and message.role != "tool"):
            found.append([])
        found[-1].append(place)
    return found


# ------------------------------------------------------------------------------------------------------- what stands there instead

_NOTE: Final = re.compile(
    r"\[(\d+) earlier messages? (?:was|were) left out to save room(?:; calls in them: ([^\]]*))?\](?:\n\nA summary[^\n]*:\n(.*))?",
    re.DOTALL,
)
_SUMMARISED: Final = "A summary of them, written by a model and no words of the user:"


def note(messages: Sequence[Message], place: int) -> re.Match[str] | None:
    """The note that an earlier cut has left: the first message that is no system message, unless it is all that was asked."""
    first = next((n for n, message in enumerate(messages) if message.role not in _STANDING), -1)
    if place != first or messages[place].role != "user" or place + 1 == len(messages):
        return None
    return _NOTE.fullmatch(messages[place].text)


def without(messages: Sequence[Message], gone: Collection[int], summary: str = "") -> list[Message]:
    """The messages without those at these places, and one note in front that says how many went, here and in earlier cuts."""
    if not gone:
        return list(messages)
    first = next(place for place, message in enumerate(messages) if message.role not in _STANDING)
    before = note(messages, first)
    calls = Counter({name: int(times) for name, times in re.findall(r"(\S+) ×(\d+)", (before and before[2]) or "")})
    calls.update(call.name for place in gone for call in messages[place].tool_calls)
    words = _noted(len(gone) + (int(before[1]) if before else 0), calls, summary or (before and before[3]) or "")
    kept = [message for place, message in enumerate(messages) if place not in gone and not (before and place == first)]
    return [*kept[:first], Message.of("user", words), *kept[first:]]


def _noted(number: int, calls: Counter[str], summary: str) -> str:
    among = "; calls in them: " + ", ".join(f"{name} ×{times}" for name, times in calls.items()) if calls else ""
    words = f"[{number} earlier message{'s were' if number > 1 else ' was'} left out to save room{among}]"
    return f"{words}\n\n{_SUMMARISED}\n{summary}" if summary else words


def keep_last(messages: Sequence[Message], count: int) -> list[Message]:
    """At most so many messages beside the system's, and a note for what went; more where the last question needs them.

    >>> talk = [Message.of("user", "one"), Message.of("assistant", "1"), Message.of("user", "two")]
    >>> [message.text for message in keep_last(talk, 1)]
    ['[2 earlier messages were left out to save room]', 'two']
    """
    left = sum(message.role not in _STANDING and not note(messages, place) for place, message in enumerate(messages))
    gone: set[int] = set()
    for group in groups(messages, place_of(messages, None)):
        if left - len(gone) > count:
            gone.update(group)
    return without(messages, gone)


# ------------------------------------------------------------------------------------------------------- what was done


def fault(before: Sequence[Message], after: Sequence[Message], prompt: Message | None = None) -> str:
    """Why what a strategy gave cannot be sent, in words; empty where it can."""
    asked = place_of(before, prompt)
    must = [message for place, message in enumerate(before) if message.role in _STANDING or place == asked]
    first = next((message.role for message in after if message.role not in _STANDING), "user")
    if missing := next((message.role for message in must if not any(message is other for other in after)), None):
        return "it lost the prompt" if missing == "user" else f"it lost a {missing} message"
    if first != "user":
        return f"the first message would be the {first}'s"
    for unit in units(after):
        if sorted(call.id for call in unit[0].tool_calls) != sorted(message.tool_call_id or "" for message in unit[1:]):
            return "it parted a call from its result"
    return ""


def went(before: Sequence[Message], after: Sequence[Message]) -> tuple[str, ...]:
    """Lines that say what is no longer sent."""
    old, new = {id(message) for message in before}, {id(message) for message in after}
    stubs = Counter(message.tool_result.name for message in after if message.tool_result and id(message) not in old)
    lost = Counter(message.role for place, message in enumerate(before) if id(message) not in new and not note(before, place))
    lost["tool"] -= stubs.total()
    lines = [f"{_plural(times, 'result')} of {name} became {'stubs' if times > 1 else 'a stub'}" for name, times in stubs.items()]
    return (*lines, *(f"{_plural(times, f'{role} message')} left out" for role, times in lost.items() if times > 0))


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
