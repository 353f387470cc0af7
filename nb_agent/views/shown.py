"""What stands in events, in the form in which a view's state holds it: JSON, sendable as UTF-8, not longer than anybody reads.

`fold` says where in the state it belongs.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any, Final, TypeAlias

from nb_agent import events
from nb_agent.messages import Image, Message, Thinking, ToolResult
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = [
    "MOST_CHARACTERS",
    "capped",
    "moments",
    "not_chosen",
    "packed",
    "sendable",
    "shown_image",
    "shown_result",
    "shown_steps",
    "shown_thinking",
    "shown_usage",
]

#: When a fragment came (milliseconds since its request, or none), its kind, of which call, and its text.
Moment: TypeAlias = tuple[int | None, str, int, str]

#: Longer texts are cut in the views, with their whole length said; the run object and the recording keep them whole.
MOST_CHARACTERS: Final = 20_000
#: Longer streams are stored with neighbours put together, so that what is kept of a reply is not much longer than the reply.
_MOST_MOMENTS: Final = 2_000


def moments(event: events.Delta) -> list[Moment]:
    """When pieces came, and what they said."""
    time = None if event.seconds is None else round(event.seconds * 1000)
    return [(time, piece.kind, piece.index, sendable(piece.text)) for piece in event.pieces if not piece.choice]


def packed(stream: list[Moment]) -> list[Any]:
    """A stream as runs of fragments of one kind: ``[kind, index, [milliseconds], [text]]``, which is a third of the length.

    Where there are very many fragments, neighbours are put together; a text longer than the views show is not kept in pieces.
    """
    if sum(len(text) for *_, text in stream) > MOST_CHARACTERS:
        return []
    step = -(-len(stream) // _MOST_MOMENTS)
    runs: list[Any] = []
    for (kind, index), fragments in groupby(stream, key=lambda moment: moment[1:3]):
        came = list(fragments)
        groups = [came[start : start + step] for start in range(0, len(came), step)]
        runs.append([kind, index, [group[-1][0] for group in groups], ["".join(text for *_, text in group) for group in groups]])
    return runs


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
