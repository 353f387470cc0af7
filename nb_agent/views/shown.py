"""What stands in events, in the form in which a view's state holds it: JSON, sendable as UTF-8, not longer than anybody reads.

`fold` says where in the state it belongs.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from nb_agent import events
from nb_agent.messages import Image, Message, Thinking, ToolResult
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = [
    "MOST_CHARACTERS",
    "capped",
    "moment",
    "not_chosen",
    "sendable",
    "shown_image",
    "shown_result",
    "shown_steps",
    "shown_thinking",
    "shown_usage",
    "thinned",
]

#: Longer texts are cut in the views, with their whole length said; the run object and the recording keep them whole.
MOST_CHARACTERS: Final = 20_000
#: Longer streams are stored with neighbours put together, so that what is kept of a reply is not much longer than the reply.
_MOST_MOMENTS: Final = 2_000


def moment(event: events.Delta) -> list[Any]:
    """When pieces came, and what they said."""
    pieces = [[piece.kind, piece.index, sendable(piece.text)] for piece in event.pieces if not piece.choice]
    return [None if event.seconds is None else round(event.seconds * 1000), pieces]


def thinned(stream: list[Any]) -> list[Any]:
    """The same stream in fewer moments, where there are very many; a text longer than the views show is not kept in pieces."""
    if sum(len(text) for _, pieces in stream for _, _, text in pieces) > MOST_CHARACTERS:
        return []
    step = -(-len(stream) // _MOST_MOMENTS)
    if step <= 1:
        return stream
    groups = (stream[start : start + step] for start in range(0, len(stream), step))
    return [[group[-1][0], [piece for _, pieces in group for piece in pieces]] for group in groups]


def sendable(text: str) -> str:
    """Half of a surrogate pair has no UTF-8 form; it is shown as it is sent (see `values.encode`)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def capped(value: Any) -> Any:
    """A JSON value with the middle of each long text left out."""
    if isinstance(value, str):
        if len(value) <= MOST_CHARACTERS:
            return sendable(value)
        half = MOST_CHARACTERS // 2
        said = f"\n… {len(value):,} characters in all, {len(value) - 2 * half:,} not shown here …\n"
        return sendable(f"{value[:half]}{said}{value[-half:]}")
    if isinstance(value, dict):
        return {key: capped(part) for key, part in value.items()}
    if isinstance(value, list):
        return [capped(part) for part in value]
    return value


def not_chosen(others: tuple[Message, ...]) -> list[str]:
    """A line for each further choice of ``n > 1``: it is shown, and nothing in it is ever run."""
    asked = [", ".join(f"{call.name}({call.arguments})" for call in other.tool_calls) for other in others]
    return [
        f"choice {n} was not chosen: {other.text}{' ' if other.text and calls else ''}{calls}"
        for n, (other, calls) in enumerate(zip(others, asked, strict=True), 2)
    ]


def shown_steps(steps: tuple[events.Step, ...]) -> list[JSON]:
    """How far a call has come."""
    return [{"name": step.name, "state": step.state, "note": capped(step.note)} for step in steps]


def shown_image(image: Image) -> JSON:
    """A picture, whole."""
    return {"data": image.data, "media_type": image.media_type, "url": image.url}


def shown_result(result: ToolResult) -> JSON:
    """What the model got of a call."""
    images = [shown_image(part) for part in result.parts if isinstance(part, Image)]
    return {"text": capped(result.text), "images": images, "code": result.code}


def shown_thinking(message: Message) -> str:
    """What the model thought, where its provider shows it."""
    return "".join(part.text for part in message.parts if isinstance(part, Thinking))


def shown_usage(usage: Usage | None) -> JSON | None:
    """What was reported, in tokens."""
    return None if usage is None else asdict(usage)
