"""From a plan to what every wire format needs: ids, argument text, the cut at the limit, fragments for a stream, the real count.

The formats themselves are modules beside this one, named like the adapters that they are the other end of. Each offers what
`Format` names. Another format is one more module, and a place in `respond.FORMATS`.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from nb_agent import tokens
from nb_agent.messages import Finish, Message, Segment, Text, ToolCall
from nb_agent.mock.models import Refused
from nb_agent.mock.plans import Ask, Plan
from nb_agent.values import JSON, dumps

__all__ = ["Draft", "Format", "Frame", "Refused", "Usage", "count", "drafts", "fragments", "paced", "parse", "token"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One finished choice of an answer, before it is written down.

    Attributes:
        stop: the stop sequence that ended its text, if one did.
        crowded: whether it was the window that cut it, and not the limit that the request sets.
    """

    text: str
    calls: tuple[ToolCall, ...]
    finish: Finish
    stop: str = ""
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request and its answer cost, counted and not made up."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream with the tokens that it carries, by which a slow model is paced."""

    payload: bytes
    tokens: int = 0


class Format(Protocol):
    """What a module of a wire format offers."""

    PATH: str

    def carried(self, route: str) -> JSON | None:
        """What the path itself says, as fields of the body (Gemini names the model there); ``None`` where it is another's."""

    def too_long(self, window: int, prompt: int) -> Refused:
        """The refusal of a prompt of so many tokens, in the words of the format's vendor."""

    def read(self, body: JSON, *, counting: bool = False) -> Ask:
        """What the request asks for, or what is to be counted; raises `Refused` for what a server would refuse."""

    def segments(self, body: JSON) -> list[Segment]:
        """The request's text by part, as the adapter of the format gives it."""

    def whole(self, body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> JSON:
        """The unstreamed answer."""

    def stream(self, body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> Iterator[Frame]:
        """The streamed answer."""

    def error(self, refused: Refused) -> JSON:
        """The body of an error answer."""

    def broken_off(self, refused: Refused) -> bytes:
        """The event of a stream that says that it ends with an error."""


_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LONGEST_SLEEP: Final = 0.05  # seconds: an interrupt acts at once
_FRAGMENT: Final = re.compile(r"\s*(?:[^\W_]{1,12}[,.;:!?]?|[\W_]{1,3}|.)|\s+", re.ASCII | re.DOTALL)


def parse(content: bytes) -> JSON:
    """The JSON object of a request body.

    Raises:
        Refused: it is no JSON object.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused("We could not parse the JSON body of your request. The body has to be one JSON object.") from None
    if not isinstance(body, dict):
        raise Refused(f"The body has to be a JSON object and is a {type(body).__name__}.")
    return body


def token(*parts: Any) -> str:
    """24 letters and digits made from these parts alone, as ids have them."""
    digest = int.from_bytes(hashlib.sha256(dumps(parts).encode("utf-8", "replace")).digest(), "big")
    return "".join(_ALPHABET[digest // 62**place % 62] for place in range(24))


def drafts(plan: Plan, ask: Ask, *, room: int, seed: str) -> list[Draft]:
    """The choices of an answer, as many as were asked for; ``room`` is what the window leaves, in tokens."""
    return [_draft(plan, ask, room, f"{seed}{copy or ''}") for copy in range(ask.copies)]


def _draft(plan: Plan, ask: Ask, room: int, seed: str) -> Draft:
    calls = tuple(
        ToolCall(f"call_{token(seed, place)}{ask.mark}", call.name, dumps(call.arguments)) for place, call in enumerate(plan.calls)
    )
    end, stop = min(((plan.text.index(mark), mark) for mark in ask.stop if mark and mark in plan.text), default=(None, ""))
    draft = Draft(plan.text[:end], () if stop else calls, "tool_calls" if calls and not stop else "stop", stop)
    limit = room if ask.limit is None else min(room, ask.limit)
    if _cost(draft.text, draft.calls, ask.model) <= limit:
        return draft
    return replace(_cut(draft.text, draft.calls, limit, ask.model), crowded=limit == room != ask.limit)


def _cost(text: str, calls: tuple[ToolCall, ...], model: str) -> int:
    parts = ((Text(text),) if text else ()) + calls
    return tokens.breakdown_reply(Message("assistant", parts), model=model).total


def _cut(text: str, calls: tuple[ToolCall, ...], limit: int, model: str) -> Draft:
    """As much of an answer as the limit allows: a call may lose the end of its arguments, but not its name."""
    text = _beginning(text, limit, model)
    left = limit - tokens.count(text, model=model)
    kept: list[ToolCall] = []
    for call in calls:
        left -= tokens.count(call.name, model=model)
        if left < 0:
            break
        arguments = _beginning(call.arguments, left, model)
        kept.append(ToolCall(call.id, call.name, arguments))
        left -= tokens.count(arguments, model=model)
        if arguments != call.arguments:
            break
    return Draft(text, tuple(kept), "length")


def _beginning(text: str, limit: int, model: str) -> str:
    """The longest beginning that is not over the limit."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens.count(text[:middle], model=model) <= limit else (low, middle - 1)
    return text[:low]


def count(body: JSON, wire: Format) -> int:
    """The tokens of a request, by the very counter that the views use."""
    return tokens.breakdown(wire.segments(body), model=str(body.get("model") or "")).total


def completion(answer: Sequence[Draft], model: str) -> int:
    """The tokens of an answer, all its choices together."""
    return sum(_cost(draft.text, draft.calls, model) for draft in answer)


def fragments(text: str) -> list[str]:
    """A text in pieces of about a token, as a stream brings it.

    >>> fragments("Hello, world! 你好")
    ['Hello,', ' world!', ' 你好']
    """
    return _FRAGMENT.findall(text)


def paced(frames: Iterable[Frame], speed: float, tokens: int) -> Iterator[bytes]:
    """The bytes of a stream; with a speed so many tokens per second, ``tokens`` in all."""
    if speed:
        frames = list(frames)
        speed *= sum(frame.tokens for frame in frames) / max(tokens, 1)  # those of the frames are estimates
    for frame in frames:
        left = frame.tokens / speed if speed else 0.0
        while left > 0:
            time.sleep(min(left, _LONGEST_SLEEP))
            left -= _LONGEST_SLEEP
        yield frame.payload
