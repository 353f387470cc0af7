"""Anthropic's Messages wire format: POST /v1/messages.

Unlike Chat Completions: a message is a list of blocks, system text stands outside the list, results are blocks of a user message, a
call's arguments are an object, and ``max_tokens`` has to be there. `history` writes the messages,
`fields` the rest of a request, `stream` reads replies. Source: the types of the official
client and recorded traffic.

Pure: no network, no clock, no environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nb_agent.adapters.anthropic_messages.fields import fields, tools
from nb_agent.adapters.anthropic_messages.history import began_without_thinking, write
from nb_agent.adapters.anthropic_messages.stream import Accumulator
from nb_agent.messages import Definition, Message, Reply, Request, Segment
from nb_agent.tokens.images import described
from nb_agent.tokens.segments import Segments, defined, spoken
from nb_agent.values import JSON, dumps

__all__ = ["NAME", "PATH", "Accumulator", "decode", "request", "segments"]

NAME: Final = "anthropic_messages"
PATH: Final = "/messages"
_LEFT_OFF: Final = (
    "thinking was left off: the model has not thought in this turn so far, and cannot begin with results of its calls"
)


def request(
    history: Sequence[Message], definitions: Sequence[Definition], *, model: str, stream: bool = False, settings: JSON | None = None
) -> Request:
    """The request that asks for the next turn of ``history``.

    Args:
        history: the conversation, valid as `nb_agent.history.mend` leaves it.
        definitions: the tools that may be called.
        model: its name as the server knows it.
        stream: whether the answer is asked for piece by piece.
        settings: by neutral name (`anthropic_messages_fields.SETTINGS`) or by this API's own; ``tools`` among them, such as those
            that the server itself carries out, are added to the definitions.
    """
    given = dict(settings or {})
    written, unfit = tools(definitions, given)
    offered: list[JSON] = [*written, *(given.pop("tools", None) or ())]
    system, messages, lost = write(history)
    if _is_enabled(given.get("thinking")) and began_without_thinking(messages):
        del given["thinking"]
        lost += (_LEFT_OFF,)
    made, left_out = fields(given, tools=bool(offered))
    body: JSON = {"model": model, "max_tokens": made.pop("max_tokens")}
    if system:
        body["system"] = system[0]["text"] if len(system) == 1 and len(system[0]) == 2 else system
    body["messages"] = messages
    if offered:
        body["tools"] = offered
    if stream:
        body["stream"] = True
    return Request(NAME, PATH, body | made, stream, (*lost, *unfit, *left_out))


def _is_enabled(thinking: Any) -> bool:
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


def decode(body: JSON, *, turn: int = 0) -> Reply:
    """The reply in a whole, unstreamed answer.

    Raises:
        ProviderError: the body holds an error, or no answer at all.
    """
    accumulator = Accumulator(turn=turn)
    accumulator.feed(body)
    return accumulator.done(whole=True)


# ------------------------------------------------------------------------------------------------------------ counting


def segments(body: JSON) -> Segments:
    """Which text of a request belongs to which part, in the order of the body; what stands around it is not in here.

    What only the server reads, such as signatures and sealed reasoning, is counted as text of the model: how it is billed is not
    known.
    """
    apart = [Segment("system", text) for text in _texts(body.get("system"))]
    found, memo = spoken(body.get("messages") or [], _segments, asks=_is_said)
    tools = [defined(tool, tool.get("name") or tool.get("type")) for tool in body.get("tools") or ()]
    return Segments([*apart, *found, *tools], wire=NAME, choice=body.get("tool_choice"), memo=memo)


def _segments(message: JSON, place: int, prompt: str, _names: dict[str, str]) -> Iterator[Segment]:
    part = _PART_OF_ROLE.get(str(message.get("role")), prompt)
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    for block in blocks:
        yield from _counted(block if isinstance(block, dict) else {}, part, place)


_PART_OF_ROLE: Final = {"assistant": "assistant", "system": "system"}
_PICTURES: Final = ("image", "document")  # never their base64


def _is_said(message: JSON) -> bool:
    """Whether the user speaks in it, beside results."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{}]
    return message.get("role") == "user" and any(block.get("type") != "tool_result" for block in blocks if isinstance(block, dict))


def _counted(block: JSON, part: str, place: int) -> Iterator[Segment]:
    kind = block.get("type")
    if kind == "text":
        yield Segment(part, str(block.get("text") or ""), message=place)
    elif kind in _PICTURES:
        yield Segment("images", _described(block), message=place)
    elif kind == "tool_use":
        name = str(block.get("name") or "")
        yield Segment("tool_calls", name, message=place, tool=name or None)
        yield Segment("tool_calls", dumps(block.get("input") or {}), message=place)
    elif kind == "tool_result":
        yield Segment("tool_results", "".join(_texts(block.get("content"))), message=place)
        for inner in block["content"] if isinstance(block.get("content"), list) else ():
            if inner.get("type") in _PICTURES:
                yield Segment("images", _described(inner), message=place)
    else:
        yield Segment(part, str(block.get("thinking") or dumps(block)), message=place)


def _described(block: JSON) -> str:
    source = block.get("source")
    return described(source.get("data")) if isinstance(source, dict) else ""


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [str(block["text"]) for block in content or () if isinstance(block, dict) and "text" in block]
