"""OpenAI's Responses wire format, used without its memory: the whole history goes out with every request.

Unlike Chat Completions: the history is a flat list of items in which a call and its result stand beside the messages, system text
stands apart (``instructions``), a tool is described flatly, results may hold images, and reasoning comes as items that have to go
back exactly as they came. Source: the API reference of POST /v1/responses.

What is sent unasked, and why:

- ``strict: false`` with a tool that says nothing about it: the server would otherwise turn strictness on and rewrite the schema.
- ``include: ["reasoning.encrypted_content"]`` for models that reason: without it their items cannot be sent back where the server
  keeps nothing. Other models refuse the field ("Encrypted content is not supported with this model").
- ``store`` is not sent. The server's default is to keep responses; ``extra_body={"store": False}`` turns that off, and everything
  here works as before, since no item is ever referred to by its id alone.

Pure: no network, no clock, no environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from nb_agent.adapters.fitting import IDS, fitting_id, fitting_name, stand_in, taken, unfit_type
from nb_agent.adapters.history_rules import said
from nb_agent.adapters.model_names import reasons
from nb_agent.adapters.responses.items import NAME, call_item, message_items, word
from nb_agent.adapters.responses.stream import Accumulator
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

PATH: Final = "/responses"

_ALL: Final = f"{NAME} all"  # key of the first message's memo (see `growing`)
_SEALED: Final = "reasoning.encrypted_content"


# ------------------------------------------------------------------------------------------------------------- writing


def request(
    history: Sequence[Message], definitions: Sequence[Definition], *, model: str, stream: bool = False, settings: JSON | None = None
) -> Request:
    """The request that asks for the next turn of ``history``; ``settings`` are in the neutral names, or fields of this format."""
    fields, notices = _fields(settings or {}, model)
    first = "instructions" not in fields and bool(history) and _is_instructions(history[0])
    items, lost = _items(history[1:] if first else history)
    body: JSON = {"model": model, **({"instructions": history[0].text} if first else {}), "input": items}
    notices += lost
    if definitions:
        tools = [_definition(definition) for definition in definitions]
        body["tools"] = [form for form, _ in tools]
        notices += [said for _, said in tools if said]
    if stream:
        body["stream"] = True
    return Request(NAME, PATH, body | fields, stream, tuple(dict.fromkeys(notices)))


def _items(history: Sequence[Message]) -> tuple[list[Encoded], list[str]]:
    """The items, and what was left out; only messages that are new since the last request are looked at."""
    size, made = begun(_ALL, history)
    items, notices = [*made[0]] if made else [], [*made[1]] if made else []
    for message in history[size:]:
        if NAME not in message.memo:
            message.memo[NAME] = _write(message)
        items += message.memo[NAME].items
        notices += message.memo[NAME].notices
    keep(_ALL, history, (tuple(items), tuple(notices)))
    return items, notices


def _is_instructions(message: Message) -> bool:
    return message.role == "system" and all(isinstance(part, Text) for part in message.parts)


class _Written(NamedTuple):
    """What a message has become, kept in its memo."""

    items: list[Encoded]
    notices: tuple[str, ...]


def _write(message: Message) -> _Written:
    name = f" {message.name!r}"
    notices = [said("speaker_name", name=name, why=": this wire format has none")] if message.name else []
    items = _ITEMS[message.role](message, notices)
    inside = message.tool_result.parts if message.tool_result else ()
    unfit = [unfit_type(part, NAME) for part in (*message.parts, *inside) if isinstance(part, Image)]
    if message.role != "assistant":  # there no image goes out at all
        notices += [said("image_type", media=media, taken=taken(NAME)) for media in unfit if media is not None]
        notices += [
            said("foreign_part", wire=part.wire) for part in message.parts if isinstance(part, Opaque) and _is_strange(part)
        ]
    return _Written([Encoded(item) for item in items], tuple(notices))


def _plain(message: Message, _: list[str]) -> list[JSON]:
    content: Any = message.text
    if any(isinstance(part, Image) for part in message.parts):
        content = _content(message.parts)
    return [{"role": message.role, "content": content}]


def _content(parts: Iterable[Any]) -> list[JSON]:
    return [_part(part) for part in parts if isinstance(part, (Text, Image))]


def _part(part: Text | Image) -> JSON:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if (media := unfit_type(part, NAME)) is not None:
        return {"type": "input_text", "text": stand_in(media)}
    url = part.url or f"data:{part.media_type};base64,{part.data}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}  # servers that check the type want the detail


def _result(message: Message, _: list[str]) -> list[JSON]:
    result = message.tool_result or ToolResult("", "")
    images = any(isinstance(part, Image) for part in result.parts)
    output: Any = _content(result.parts) if images else result.text
    return [{"type": "function_call_output", "call_id": _call_id(result.call_id), "output": output}]


def _call_id(given: str) -> str:
    return fitting_id(given, IDS[NAME])  # a call and its result get the same


def _assistant(message: Message, notices: list[str]) -> list[JSON]:
    """Its parts as items in their order, those that came from this format exactly as they came."""
    items: list[JSON] = []
    for kind, run in groupby(message.parts, type):
        if kind is Text:
            items += message_items([part for part in run if isinstance(part, Text)])
            continue
        for part in run:
            if isinstance(part, ToolCall):
                items.append(call_item(replace(part, name=fitting_name(part.name, NAME)), _call_id(part.id)))
            elif isinstance(part, Opaque) and part.wire == NAME:
                items.append(part.body)
            elif isinstance(part, Thinking) and part.extra and part.extra.get("wire") == NAME:
                items.append(part.extra["item"])
    notices += dict.fromkeys(notice for part in message.parts for notice in _lost(part))
    while items and items[-1].get("type") == "reasoning":  # a server refuses it without the item that it led to
        items.pop()
        notices.append(said("lonely_reasoning"))
    return items


def _lost(part: Part) -> Iterator[str]:
    """What of a part cannot go out, or is spelled another way."""
    origin = (getattr(part, "extra", None) or {}).get("wire")
    if isinstance(part, Image):
        yield said("image_role", role="assistant")
    elif _is_strange(part) or (isinstance(part, Thinking) and origin != NAME):
        yield said("foreign_reasoning")
    elif origin not in (None, NAME):
        yield said("foreign_marks")
    if isinstance(part, ToolCall):
        yield from [said("call_id")] * (_call_id(part.id) != part.id)
        yield from [said("tool_name")] * (fitting_name(part.name, NAME) != part.name)


def _is_strange(part: Part) -> bool:
    return isinstance(part, Opaque) and part.wire != NAME


_ITEMS: Final = {"system": _plain, "developer": _plain, "user": _plain, "assistant": _assistant, "tool": _result}


def _definition(definition: Definition) -> tuple[Encoded, str]:
    written: tuple[Encoded, str] | None = definition.memo.get(NAME)
    if written is None:
        schema, strict, said = parameters(definition)
        form: JSON = {"type": "function", "name": definition.name, "description": definition.description}
        written = definition.memo[NAME] = Encoded(form, parameters=schema, strict=strict), said
    return written


# ------------------------------------------------------------------------------------------------------------ settings

#: Neutral name of a setting -> where it stands in the body.
PLACES: Final = {
    "max_tokens": ("max_output_tokens",),
    "max_completion_tokens": ("max_output_tokens",),
    "reasoning_effort": ("reasoning", "effort"),
    "response_format": ("text", "format"),
    "tool_choice": ("tool_choice",),
}
#: Neutral names that this format has no field for.
ABSENT: Final = frozenset({"frequency_penalty", "logit_bias", "n", "presence_penalty", "seed", "stop"})
#: What models that reason refuse, unless their effort is "none".
_NOT_WHILE_REASONING: Final = ("temperature", "top_p")


def _fields(settings: JSON, model: str) -> tuple[JSON, list[str]]:
    """The settings as fields of the body, and what of them was left out."""
    fields: JSON = {}
    notices: list[str] = []
    for name, value in settings.items():
        if name in ABSENT:
            if value is not None and not (name == "n" and value == 1):
                notices.append(f"{name} was left out: the Responses format has no such field")
        elif name == "logprobs":
            fields |= {"include": [*fields.get("include", []), "message.output_text.logprobs"]} if value else {}
        else:
            _put(fields, PLACES.get(name, (name,)), _flat(value) if name in PLACES else value)
    if reasons(model) and (fields.get("reasoning") or {}).get("effort") != "none":
        refused = [name for name in _NOT_WHILE_REASONING if fields.pop(name, None) is not None]
        notices += [f"{name} was left out: {model} is a model that reasons, and those refuse it" for name in refused]
    if (reasons(model) or fields.get("reasoning")) and "include" not in settings:
        fields["include"] = [*fields.get("include", []), _SEALED]
    return fields, notices


def _put(fields: JSON, path: tuple[str, ...], value: Any) -> None:
    *outer, last = path
    for key in outer:
        if not isinstance(fields.get(key), dict):
            fields[key] = {}
        fields = fields[key]
    held = fields.get(last)
    fields[last] = {**(held if isinstance(held, dict) else {}), **value} if isinstance(value, dict) else value


def _flat(value: Any) -> Any:
    """Chat Completions puts what a type is about under the type's name; here it stands beside it.

    >>> _flat({"type": "function", "function": {"name": "f"}})
    {'type': 'function', 'name': 'f'}
    """
    if not isinstance(value, dict) or not isinstance(value.get(value.get("type")), dict):
        return value
    inner = {key: list(map(_flat, part)) if key == "tools" else part for key, part in value[value["type"]].items()}
    return {"type": value["type"], **inner}


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

_PART_OF_ROLE: Final = {"system": "system", "developer": "developer", "assistant": "assistant"}


def segments(body: JSON) -> Segments:
    """Which text of a request belongs to which part, in the order of the body; sealed reasoning is not counted.

    The place of a message is its item's place in ``input``. Summaries of reasoning count as text that the model wrote.
    """
    given = body.get("input")
    items: list[JSON] = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    apart = [Segment("system", body["instructions"])] if isinstance(body.get("instructions"), str) else []
    form = (body.get("text") or {}).get("format") or {}
    apart += [Segment("overhead", dumps(form))] if form.get("schema") else []  # billed as prompt, in a form that is not known
    found, memo = spoken(items, _item_segments, asks=lambda item: item.get("role") == "user")
    tools = [defined(tool, tool.get("name") or tool.get("type")) for tool in body.get("tools") or ()]
    return Segments([*apart, *found, *tools], wire=NAME, choice=body.get("tool_choice"), memo=memo)


def _item_segments(item: JSON, place: int, prompt: str, names: dict[str, str]) -> Iterator[Segment]:
    kind = word(item.get("type")) or "message"
    if kind in ("function_call", "custom_tool_call"):
        name = names[str(item.get("call_id"))] = str(item.get("name") or "")
        yield Segment("tool_calls", name, message=place, tool=name or None)
        yield Segment("tool_calls", str(item.get("arguments" if kind == "function_call" else "input") or ""), message=place)
    elif kind.endswith("_output"):
        yield from _texts(item.get("output"), "tool_results", place, names.get(str(item.get("call_id"))))
    elif kind == "reasoning":
        yield from _texts([*(item.get("summary") or ()), *(item.get("content") or ())], "assistant", place)
    elif kind == "message":
        part = _PART_OF_ROLE.get(word(item.get("role")), prompt)
        yield from _texts(item.get("content"), part, place)


def _texts(content: Any, part: str, place: int, tool: str | None = None) -> Iterator[Segment]:
    for entry in content if isinstance(content, list) else [{"text": content}]:
        if isinstance(entry, dict) and entry.get("type") == "input_image":
            yield Segment("images", described(entry.get("image_url"), entry.get("detail")), message=place)
            continue
        words = entry.get("text", entry.get("refusal")) if isinstance(entry, dict) else None
        yield Segment(part, words if isinstance(words, str) else "", message=place, tool=tool)
