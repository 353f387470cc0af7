"""A list of messages -> one that a provider accepts, with a sentence for each mend; what cannot be mended safely is an error.

It looks at the whole list once, when a run begins; inside a run the loop only adds whole turns and needs no mending.
"""

from __future__ import annotations

from collections.abc import Sequence

from nb_agent.errors import HistoryError
from nb_agent.messages import Message, Part, Text, ToolResult

__all__ = ["mend"]


def mend(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages with every call answered right after it, no empty turn, and one user turn at a time.

    Raises:
        HistoryError: a result whose call is nowhere before it, or a second result for one call.
    """
    mended: list[Message] = []
    notices: list[str] = []
    waiting = list(enumerate(messages))
    while waiting:
        place, message = waiting.pop(0)
        if message.role == "tool":
            raise HistoryError(
                f"message {place} is a result for call {message.tool_call_id!r}, which no message before it makes; remove it"
            )
        if not message.parts:
            notices.append(f"message {place} ({message.role}) is empty and was left out")
        elif message.tool_calls:
            mended += _group(place, message, waiting, notices)
        elif message.role == "user" and mended and mended[-1].role == "user":
            mended[-1] = _joined(mended[-1], message)
            notices.append(f"message {place} and the user message before it were joined")
        else:
            mended.append(message)
    return tuple(mended), tuple(notices)


def _group(place: int, message: Message, waiting: list[tuple[int, Message]], notices: list[str]) -> list[Message]:
    """An assistant message and the results of its calls in their order, taken out of what stands before the next turn."""
    results: dict[str, Message] = {}
    wanted = {call.id for call in message.tool_calls}
    end = next((n for n, (_, later) in enumerate(waiting) if later.role == "assistant"), len(waiting))
    kept: list[tuple[int, Message]] = []
    for entry in waiting[:end]:
        answered = entry[1].tool_call_id
        if answered is None or answered not in wanted:
            kept.append(entry)
        elif answered in results:
            raise HistoryError(f"message {entry[0]} is a second result for call {answered!r}; keep one of the two")
        else:
            if kept:
                notices.append(f"message {entry[0]}, a result, was moved up to its call")
            results[answered] = entry[1]
    waiting[:end] = kept
    for call in message.tool_calls:
        if call.id not in results:
            cancelled = ToolResult.failure(call, "the call was interrupted before it had a result", code="cancelled")
            results[call.id] = Message("tool", (cancelled,))
            notices.append(f"call {call.id!r} of message {place} had no result and was given one that says so")
    return [message, *(results[call.id] for call in message.tool_calls)]


def _joined(first: Message, second: Message) -> Message:
    parts: tuple[Part, ...] = (*first.parts, *second.parts)
    if all(isinstance(part, Text) for part in parts):
        parts = (Text(f"{first.text}\n\n{second.text}"),)
    return Message("user", parts, name=first.name)
