"""OpenAI's Chat Completions wire format, and that of the many servers that imitate it.

Unlike the other formats: system text is a message, a call's arguments are a string, a result is a message of its own and can only
hold text, and a stream gives the same fields as a whole answer, piece by piece. Source: the API reference of POST
/v1/chat/completions; what the imitating servers do differently was read off recorded traffic.

Pure: no network, no clock, no environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from nb_agent.adapters.chat_completions.stream import NAME, Accumulator
from nb_agent.adapters.fitting import Dialect, dialect, fitting_id, fitting_name, stand_in, taken, unfit_type
from nb_agent.adapters.history_rules import said
from nb_agent.adapters.model_names import reasons
from nb_agent.adapters.strictness import parameters
from nb_agent.growing import begun, keep
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
from nb_agent.tokens.images import described
from nb_agent.tokens.segments import Segments, defined, spoken
from nb_agent.values import JSON, Encoded, dumps

__all__ = ["NAME", "PATH", "Accumulator", "decode", "request", "segments"]

PATH: Final = "/chat/completions"

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
    messages, lost = _messages(history, dialect(model))
    body: JSON = {"model": model, "messages": messages}
    if definitions:
        written = [_definition(definition) for definition in definitions]
        body["tools"] = [form for form, _ in written]
        notices += tuple(said for _, said in written if said)
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return Request(NAME, PATH, body | fields, stream, (*notices, *lost))


#: What models that reason refuse, since it would steer the sampling.
_REFUSED: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias")


def _settings(settings: JSON, model: str) -> tuple[JSON, tuple[str, ...]]:
    """The settings as this model takes them, and what was left out."""
    if not reasons(model):
        return settings, ()
    kept = {("max_completion_tokens" if name == "max_tokens" else name): value for name, value in settings.items()}
    left_out = [name for name in _REFUSED if kept.pop(name, None) is not None]
    return kept, tuple(f"{name} was left out, because {model} refuses it" for name in left_out)


def _messages(history: Sequence[Message], spoken: Dialect) -> tuple[list[Encoded], tuple[str, ...]]:
    """One entry a message, and what was left out; the images of a group of results follow it in a user message."""
    key, apart = spoken.key, spoken.apart
    size, made = begun((key, "written"), history)  # see `growing`
    written, pictures, notices = made or ((), (), ())
    items: list[Encoded] = [*written]
    for message in history[size:]:
        memo = message.memo
        if key not in memo:
            _remember(message, spoken)
        if pictures and message.role != "tool":
            items.append(_pictures(pictures))
            pictures = ()
        items += memo[key]
        if apart in memo:
            more, lost = memo[apart]
            pictures, notices = pictures + more, notices + lost
    keep((key, "written"), history, (items, pictures, notices))
    whole = [*items, *([_pictures(pictures)] if pictures else ())]
    bridged = _bridged(whole) if spoken.strict else whole
    told = notices if len(bridged) == len(whole) else (*notices, said("user_after_result"))
    return bridged, tuple(dict.fromkeys(told))


def _remember(message: Message, spoken: Dialect) -> None:
    """Put into a message's memo what it has become; none where nothing is left."""
    form, pictures = _WRITE[message.role](message, spoken), tuple(_images(message)) if message.role == "tool" else ()
    message.memo[spoken.key] = (Encoded(form),) if form else ()
    if notices := tuple(_lost(message, spoken, written=bool(form))):
        message.memo[spoken.apart] = pictures, notices


def _lost(message: Message, spoken: Dialect, *, written: bool) -> Iterator[str]:
    """What of a message is left out or spelled another way."""
    if not written:
        yield said("nothing_left")
    if message.role == "developer" and not spoken.developer:
        yield said("developer_role", model=spoken.named)
    for part in (*message.parts, *(message.tool_result.parts if message.tool_result else ())):
        if _is_foreign(part):
            yield (
                said("foreign_part", wire=part.wire)
                if isinstance(part, Opaque) and message.role == "user"
                else said("foreign_reasoning")
            )
        elif isinstance(part, Image):
            yield from _about_image(part, message.role)
        elif isinstance(part, ToolCall):
            yield from [said("call_id")] * (fitting_id(part.id, spoken.ids, spoken.longest) != part.id)
            yield from [said("tool_name")] * (fitting_name(part.name, NAME) != part.name)


def _about_image(image: Image, role: str) -> Iterator[str]:
    media = unfit_type(image, NAME)
    if role not in ("user", "tool"):
        yield said("image_role", role=role)
    elif media is not None:
        yield said("image_type", media=media, taken=taken(NAME))
    elif role == "tool":
        yield said("image_apart")


_BRIDGE: Final = Encoded(role="assistant", content="OK.")


def _bridged(items: Sequence[Encoded]) -> list[Encoded]:
    """The same, with a word of the model between a result and what the user says."""
    made: list[Encoded] = []
    for item in items:
        if item["role"] == "user" and made and made[-1]["role"] == "tool":
            made.append(_BRIDGE)
        made.append(item)
    return made


def _images(message: Message) -> Iterator[Image]:
    result = message.tool_result
    parts = result.parts if result else ()
    return (part for part in parts if isinstance(part, Image) and unfit_type(part, NAME) is None)


def _pictures(images: Sequence[Image]) -> Encoded:
    return Encoded(role="user", content=[_part(image) for image in images])


def _plain(message: Message, spoken: Dialect) -> JSON:
    role = "system" if message.role == "developer" and not spoken.developer else message.role
    form: JSON = {"role": role, "content": message.text}
    if role == "user" and any(isinstance(part, Image) for part in message.parts):
        form["content"] = [_part(part) for part in message.parts if isinstance(part, (Text, Image))]
    if message.name:
        form["name"] = message.name
    return form


def _part(part: Text | Image) -> JSON:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if (media := unfit_type(part, NAME)) is not None:
        return {"type": "text", "text": stand_in(media)}
    return {"type": "image_url", "image_url": {"url": part.url or f"data:{part.media_type};base64,{part.data}"}}


def _assistant(message: Message, spoken: Dialect) -> JSON | None:
    calls = [_call(call, spoken) for call in message.tool_calls]
    form: JSON = {"role": "assistant", "content": message.text or (None if calls else "")}
    for part in message.parts:
        if isinstance(part, Thinking) and part.extra and part.extra.get("wire") == NAME:
            form[part.extra["field"]] = part.text  # a server that sent its reasoning wants it back; no other gets it
    if calls:
        form["tool_calls"] = calls
    return form if message.text or len(form) > len(("role", "content")) else None


def _call(call: ToolCall, spoken: Dialect) -> JSON:
    function = {"name": fitting_name(call.name, NAME), "arguments": call.arguments or "{}"}
    return {"id": fitting_id(call.id, spoken.ids, spoken.longest), "type": "function", "function": function} | _own(call)


def _own(call: ToolCall) -> JSON:
    """What this format's server had put beside the call, such as a signature that it wants to see again."""
    own: JSON = call.extra["fields"] if call.extra and call.extra.get("wire") == NAME else {}
    return own


def _is_foreign(part: Part) -> bool:
    """Whether it is reasoning that only another wire format understands."""
    if isinstance(part, Opaque):
        return part.wire != NAME
    return isinstance(part, Thinking) and (part.extra or {}).get("wire", NAME) != NAME


def _result(message: Message, spoken: Dialect) -> JSON:
    result = message.tool_result or ToolResult("", "")
    pictures = [part for part in result.parts if isinstance(part, Image)]
    lost = [stand_in(media) for part in pictures if (media := unfit_type(part, NAME)) is not None]
    hints = [*([_IMAGE_FOLLOWS] if len(lost) < len(pictures) else []), *lost]
    content = "\n".join([result.text, *hints] if result.text else hints)
    return {"role": "tool", "tool_call_id": fitting_id(result.call_id, spoken.ids, spoken.longest), "content": content}


_WRITE: Final[dict[str, Callable[[Message, Dialect], JSON | None]]] = {
    "system": _plain,
    "developer": _plain,
    "user": _plain,
    "assistant": _assistant,
    "tool": _result,
}


def _definition(definition: Definition) -> tuple[Encoded, str]:
    """The tool in wire form, and what was given up. Only a tool that says something about strictness has the field."""
    written: tuple[Encoded, str] | None = definition.memo.get(NAME)
    if written is None:
        schema, strict, said = parameters(definition)
        function: JSON = {"name": definition.name, "description": definition.description, "parameters": schema}
        if definition.strict is not None:
            function["strict"] = strict
        written = definition.memo[NAME] = Encoded(type="function", function=function), said
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

_PART_OF_ROLE: Final = {
    "system": "system",
    "developer": "developer",
    "assistant": "assistant",
    "tool": "tool_results",
    "function": "tool_results",
}


def segments(body: JSON) -> Segments:
    """Which text of a request belongs to which part, in the order of the body; what stands around it is not in here."""
    found, memo = spoken(body.get("messages") or [], _segments, asks=lambda message: message.get("role") == "user")
    schema = (body.get("response_format") or {}).get("json_schema")  # billed as prompt, in a form that is not known
    apart = [Segment("overhead", dumps(schema))] if schema else []
    forms = [*(body.get("tools") or ()), *(body.get("functions") or ())]
    tools = [defined(form, (form.get("function") or form).get("name")) for form in forms]
    return Segments([*apart, *found, *tools], wire=NAME, choice=body.get("tool_choice") or body.get("function_call"), memo=memo)


def _segments(message: JSON, place: int, prompt: str, names: dict[str, str]) -> Iterator[Segment]:
    part = _PART_OF_ROLE.get(message.get("role", ""), prompt)
    answered = names.get(str(message.get("tool_call_id"))) if part == "tool_results" else None
    yield from _content(message.get("content"), part, place, answered)
    if message.get("name"):
        yield Segment("overhead", str(message["name"]), message=place)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        name = names[str(call.get("id"))] = str(function.get("name") or "")
        yield Segment("tool_calls", name, message=place, tool=name or None)
        yield Segment("tool_calls", str(function.get("arguments") or ""), message=place)
    if asked := message.get("function_call"):  # the form before ``tool_calls``
        yield from (Segment("tool_calls", str(asked.get(key) or ""), message=place) for key in ("name", "arguments"))


def _content(content: Any, part: str, place: int, tool: str | None) -> Iterable[Segment]:
    if not isinstance(content, list):
        yield Segment(part, content if isinstance(content, str) else "", message=place, tool=tool)
        return
    for entry in content:
        if isinstance(entry, dict) and "text" in entry:
            yield Segment(part, str(entry["text"]), message=place, tool=tool)
        else:
            picture = entry.get("image_url") if isinstance(entry, dict) else None
            known = described(picture.get("url"), picture.get("detail")) if isinstance(picture, dict) else ""
            yield Segment("images", known, message=place)
