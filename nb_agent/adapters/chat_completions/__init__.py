"""OpenAI's Chat Completions wire format, and that of the many servers that imitate it.

Unlike the other formats: system text is a message, a call's arguments are a string, a result is a message of its own and can only
hold text, and a stream gives the same fields as a whole answer, piece by piece. Source: the API reference of POST
/v1/chat/completions; what the imitating servers do differently was read off recorded traffic.

Pure: no network, no clock, no environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from nb_agent.adapters.chat_completions.stream import NAME, Accumulator
from nb_agent.adapters.model_names import reasons
from nb_agent.messages import (
    Definition,
    Image,
    Message,
    Opaque,
    Part,
    Reply,
    Request,
    Segment,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from nb_agent.values import JSON, Encoded, dumps

__all__ = ["NAME", "PATH", "Accumulator", "decode", "request", "segments"]

PATH: Final = "/chat/completions"

#: Key of a message's memo, where there is something: images that have to follow it, and whether some of it cannot be sent.
_APART: Final = f"{NAME} apart"
_IMAGE_FOLLOWS: Final = "(the image is in the next user message)"  # a tool message can only hold text


# ------------------------------------------------------------------------------------------------------------- writing


def request(
    history: Sequence[Message], definitions: Sequence[Definition], *, model: str, stream: bool = False, settings: JSON | None = None
) -> Request:
    """The request that asks for the next turn of ``history``.

    Args:
        history: the conversation, valid as `nb_agent.history.mend` leaves it.
        definitions: the tools that may be called.
        model: its name as the server knows it.
        stream: whether the answer is asked for piece by piece.
        settings: further body fields, in the words of this format, which are the neutral ones too.
    """
    fields, notices = _settings(settings or {}, model)
    messages, foreign = _messages(history)
    body: JSON = {"model": model, "messages": messages}
    if definitions:
        body["tools"] = [_definition(definition) for definition in definitions]
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if foreign:
        notices = (*notices, "reasoning of another wire format was left out")
    return Request(NAME, PATH, body | fields, stream, notices)


#: What models that reason refuse, since it would steer the sampling.
_REFUSED: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias")


def _settings(settings: JSON, model: str) -> tuple[JSON, tuple[str, ...]]:
    """The settings as this model takes them, and what was left out."""
    if not reasons(model):
        return settings, ()
    kept = {("max_completion_tokens" if name == "max_tokens" else name): value for name, value in settings.items()}
    left_out = [name for name in _REFUSED if kept.pop(name, None) is not None]
    return kept, tuple(f"{name} was left out, because {model} refuses it" for name in left_out)


def _messages(history: Sequence[Message]) -> tuple[list[Encoded], bool]:
    """One entry a message, and whether something was left out; the images of a group of results follow it in a user message."""
    items: list[Encoded] = []
    pictures: tuple[Image, ...] = ()
    foreign = False
    for message in history:
        memo = message.memo
        if NAME not in memo:
            _remember(message)
        if pictures and message.role != "tool":
            items.append(_pictures(pictures))
            pictures = ()
        items += (memo[NAME],)  # and no call: a long history costs next to nothing
        if _APART in memo:
            more, left_out = memo[_APART]
            pictures, foreign = pictures + more, foreign or left_out
    return ([*items, _pictures(pictures)] if pictures else items), foreign


def _remember(message: Message) -> None:
    """Put into a message's memo what it has become, so that a long history costs next to nothing."""
    message.memo[NAME] = Encoded(_WRITE[message.role](message))
    pictures, foreign = tuple(_images(message)) if message.role == "tool" else (), any(map(_is_foreign, message.parts))
    if pictures or foreign:
        message.memo[_APART] = pictures, foreign


def _images(message: Message) -> Iterator[Image]:
    result = message.tool_result
    return (part for part in (result.parts if result else ()) if isinstance(part, Image))


def _pictures(images: Sequence[Image]) -> Encoded:
    return Encoded(role="user", content=[_part(image) for image in images])


def _plain(message: Message) -> JSON:
    form: JSON = {"role": message.role, "content": message.text}
    if any(isinstance(part, Image) for part in message.parts):
        form["content"] = [_part(part) for part in message.parts if isinstance(part, (Text, Image))]
    if message.name:
        form["name"] = message.name
    return form


def _part(part: Text | Image) -> JSON:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.url or f"data:{part.media_type};base64,{part.data}"}}


def _assistant(message: Message) -> JSON:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}} | _own(call)
        for call in message.tool_calls
    ]
    form: JSON = {"role": "assistant", "content": message.text or (None if calls else "")}
    for part in message.parts:
        if isinstance(part, Thinking) and part.extra and part.extra.get("wire") == NAME:
            form[part.extra["field"]] = part.text  # a server that sent its reasoning wants it back; no other gets it
    return form | {"tool_calls": calls} if calls else form


def _own(call: ToolCall) -> JSON:
    """What this format's server had put beside the call, such as a signature that it wants to see again."""
    own: JSON = call.extra["fields"] if call.extra and call.extra.get("wire") == NAME else {}
    return own


def _is_foreign(part: Part) -> bool:
    """Whether it is reasoning that only another wire format understands."""
    if isinstance(part, Opaque):
        return part.wire != NAME
    return isinstance(part, Thinking) and (part.extra or {}).get("wire", NAME) != NAME


def _result(message: Message) -> JSON:
    result = message.tool_result or ToolResult("", "")
    hint = [_IMAGE_FOLLOWS] if any(isinstance(part, Image) for part in result.parts) else []
    return {"role": "tool", "tool_call_id": result.call_id, "content": "\n".join([result.text, *hint] if result.text else hint)}


_WRITE: Final = {"system": _plain, "developer": _plain, "user": _plain, "assistant": _assistant, "tool": _result}


def _definition(definition: Definition) -> Encoded:
    written: Encoded | None = definition.memo.get(NAME)
    if written is None:
        function: JSON = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
        if definition.strict is not None:
            function["strict"] = definition.strict
        written = definition.memo[NAME] = Encoded(type="function", function=function)
    return written


# ------------------------------------------------------------------------------------------------------------- reading


def decode(body: JSON, *, turn: int = 0) -> Reply:
    """The reply in a whole, unstreamed answer.

    Raises:
        ProviderError: the body holds an error, or no answer at all.
    """
    accumulator = Accumulator(turn=turn)
    accumulator.feed(body)
    return accumulator.done(whole=True)


# ------------------------------------------------------------------------------------------------------------ counting

_PART_OF_ROLE: Final = {"system": "system", "developer": "developer", "assistant": "assistant", "tool": "tool_results"}


def segments(body: JSON) -> list[Segment]:
    """Which text of a request belongs to which part, in the order of the body; what stands around it is not in here."""
    messages: list[JSON] = body.get("messages") or []
    current = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    found: list[Segment] = []
    for place, message in enumerate(messages):
        part = _PART_OF_ROLE.get(message.get("role", ""), "user" if place == current else "history")
        found.extend(_content(message.get("content"), part, place))
        if message.get("name"):
            found.append(Segment("overhead", str(message["name"]), message=place))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            found += [Segment("tool_calls", str(function.get(key) or ""), message=place) for key in ("name", "arguments")]
    for tool in body.get("tools") or ():
        text = tool.content.decode() if isinstance(tool, Encoded) else dumps(tool)
        found.append(Segment("tools", text, tool=(tool.get("function") or {}).get("name")))
    return found


def _content(content: Any, part: str, place: int) -> Iterable[Segment]:
    if not isinstance(content, list):
        yield Segment(part, content if isinstance(content, str) else "", message=place)
        return
    for entry in content:
        if isinstance(entry, dict) and "text" in entry:
            yield Segment(part, str(entry["text"]), message=place)
        else:
            yield Segment("images", "", message=place)
