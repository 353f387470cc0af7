"""Gemini's generateContent from the server's side: reads requests and writes answers as Google does, streamed and whole.

The other end of `nb_agent.adapters.gemini_generate`. What that server refuses is refused here, in the checks of
`checks`. Calls have no ids and no signatures, as from most models; a model named like ``gemini-3`` gives both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import unquote

from nb_agent.adapters import gemini_generate as adapter
from nb_agent.adapters.gemini_generate import field, items, result_text
from nb_agent.adapters.gemini_generate.parts import argument_object
from nb_agent.messages import Definition, Image, Message, Part, Text, ToolCall, ToolResult
from nb_agent.mock.gemini_generate.checks import check, signature, signs
from nb_agent.mock.plans import Ask
from nb_agent.mock.wire import Draft, Frame, Refused, Usage, fragments, token
from nb_agent.values import JSON, dumps, encode

__all__ = ["PATH", "broken_off", "carried", "error", "read", "segments", "stream", "too_long", "whole"]

PATH: str = "/v1beta/models/{model}:generateContent"
segments = adapter.segments  # the adapter reads the text of a request by part, for both ends

_ROUTE: Final = re.compile(r"/models/([^/]+):(generateContent|streamGenerateContent)")
_STATUS: Final = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"} | {
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_CHOICES: Final = {"ANY": "required", "NONE": "none"}


def carried(route: str) -> JSON | None:
    """The model, and whether to stream: both are said by the path alone."""
    found = _ROUTE.fullmatch(route)
    return found and {"model": unquote(found[1]), "stream": found[2] == "streamGenerateContent"}


def too_long(window: int, prompt: int) -> Refused:
    """Google's refusal of a prompt that does not fit."""
    return Refused(f"The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window}).", param="contents")


# ------------------------------------------------------------------------------------------------------------- reading


def read(body: JSON, *, counting: bool = False) -> Ask:
    """What a request asks for; it is the same where it is only to be counted.

    Raises:
        Refused: Google's server would refuse it; the text names the field.
    """
    del counting
    check(body)
    config: JSON = field(body, "generationConfig") or {}
    choice, allowed = _choice(body)
    declared = [entry for tool in items(body, "tools") for entry in items(tool, "functionDeclarations")]
    tools = tuple(_definition(entry) for entry in declared if not allowed or entry["name"] in allowed)
    return Ask(
        model=body["model"],
        messages=_messages(body),
        tools=tools,
        choice=choice,
        named=len(allowed) == 1,
        limit=field(config, "maxOutputTokens"),
        stop=tuple(items(config, "stopSequences")),
        copies=field(config, "candidateCount") or 1,
        form=_form(config),
    )


def _choice(body: JSON) -> tuple[str, list[str]]:
    """The choice in one word, and the names that it leaves (none: all of them)."""
    config = field(field(body, "toolConfig"), "functionCallingConfig")
    mode = str(field(config, "mode") or "AUTO").upper()
    return _CHOICES.get(mode, "auto"), items(config, "allowedFunctionNames")


def _form(config: JSON) -> JSON | None:
    schema = field(config, "responseJsonSchema") or field(config, "responseSchema")
    if isinstance(schema, dict):
        form: JSON = _lowered(schema)
        return form
    return {} if field(config, "responseMimeType") == "application/json" else None


def _definition(entry: JSON) -> Definition:
    schema = field(entry, "parametersJsonSchema") or field(entry, "parameters") or {}
    return Definition(entry["name"], str(field(entry, "description") or ""), _lowered(schema))


def _lowered(schema: Any) -> Any:
    """A schema with its types in small letters, as JSON Schema has them; Google takes both."""
    if isinstance(schema, list):
        return [_lowered(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else value if key == "enum" else _lowered(value)
        for key, value in schema.items()
    }


def _messages(body: JSON) -> tuple[Message, ...]:
    messages: list[Message] = []
    system = [str(field(part, "text") or "") for part in items(field(body, "systemInstruction"), "parts")]
    if system:
        messages.append(Message.of("system", "\n".join(system)))
    calls: list[ToolCall] = []
    for place, content in enumerate(items(body, "contents")):
        parts = items(content, "parts")
        if field(content, "role") == "model":
            message = _said(place, parts)
            calls = list(message.tool_calls)
            messages.append(message)
        else:
            messages += _heard(parts, calls)
    return tuple(messages)


def _said(place: int, parts: list[Any]) -> Message:
    """What the model said; calls without an id get one of their place, which is never seen outside."""
    made: list[Part] = []
    for number, part in enumerate(parts):
        if call := field(part, "functionCall"):
            made.append(ToolCall(f"call_{place}_{number}", call["name"], dumps(field(call, "args") or {})))
        elif (text := field(part, "text")) and not field(part, "thought"):
            made.append(Text(text))
    return Message("assistant", tuple(made))


def _heard(parts: list[Any], calls: list[ToolCall]) -> Iterator[Message]:
    """The results that are in a content, in its order, and what the user says there."""
    left = list(calls)
    rest: list[Part] = []
    results = False
    for part in parts:
        if not (form := field(part, "functionResponse")):
            image = field(part, "inlineData") or field(part, "fileData")
            rest.append(Image(url="") if image else Text(str(field(part, "text") or "")))
            continue
        call = next(call for call in left if call.name == form["name"])
        left.remove(call)
        results = True
        yield Message("tool", (ToolResult(call.id, call.name, (Text(_result(form["response"])),)),))
    if rest and not (results and all(isinstance(part, Image) for part in rest)):  # images beside results belong to them
        yield Message("user", tuple(rest))


def _result(response: JSON) -> str:
    """A result's text. An error that is not in our own words stays an object, by which the planner knows it as one."""
    text = result_text(response)
    return dumps(response) if "error" in response and not text.lstrip().startswith("{") else text


# ------------------------------------------------------------------------------------------------------------- writing


def whole(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> JSON:
    """A ``GenerateContentResponse``."""
    candidates = [
        {"content": {"role": "model", "parts": _parts(draft, body["model"])}, **_end(draft), "index": place}
        for place, draft in enumerate(answer)
    ]
    return {"candidates": candidates, **_tail(body, usage.prompt, usage.completion, seed)}


def _parts(draft: Draft, model: str) -> list[JSON]:
    return [*([{"text": draft.text}] if draft.text else []), *_calls(draft, model)]


def _calls(draft: Draft, model: str) -> list[JSON]:
    """The calls that are whole: Gemini never shows half of one."""
    parts = []
    for place, call in enumerate(draft.calls):
        args = argument_object(call.arguments)
        if args is None:
            continue
        signed = {"thoughtSignature": signature(call.name, args)} if signs(model) and place == 0 else {}
        given = {"id": token(call.id)[:8]} if signs(model) else {}
        parts.append({"functionCall": {**given, "name": call.name, "args": args}, **signed})
    return parts


def _end(draft: Draft) -> JSON:
    """Why it ended. A call that cannot be read as JSON is found out by the server, and no call is handed out then."""
    broken = next((call for call in draft.calls if argument_object(call.arguments) is None), None)
    if draft.finish == "length":
        return {"finishReason": "MAX_TOKENS"}
    if broken is not None:
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": f"Malformed function call: {broken.name}"}
    return {"finishReason": "SAFETY" if draft.finish == "content_filter" else "STOP"}


def _tail(body: JSON, prompt: int, completion: int, seed: str) -> JSON:
    """What stands behind the candidates; a number that is zero is left out, as in all proto JSON."""
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": completion, "totalTokenCount": prompt + completion}
    return {
        "usageMetadata": {key: number for key, number in counts.items() if number},
        "modelVersion": body["model"],
        "responseId": token(seed),
    }


def stream(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> Iterator[Frame]:
    """Whole answers with a stretch of each candidate by turns, as server-sent events; the last one of each has its end."""
    written = 0
    lanes = [_stretches(draft, place, body["model"]) for place, draft in enumerate(answer)]
    steps = [step for turn in zip_longest(*lanes) for step in turn if step is not None]
    for number, (candidate, cost) in enumerate(steps):
        last = number == len(steps) - 1
        written = usage.completion if last else min(written + cost, usage.completion)
        chunk = {"candidates": [candidate], **_tail(body, usage.prompt, written, seed)}
        yield Frame(b"data: " + encode(chunk) + b"\r\n\r\n", cost)


def _stretches(draft: Draft, place: int, model: str) -> Iterator[tuple[JSON, int]]:
    """Text in pieces, each call whole in an answer of its own, and an empty text with the finish reason."""
    for piece in fragments(draft.text):
        yield _candidate({"text": piece}, place), 1 + len(piece) // 8
    for part in _calls(draft, model):
        yield _candidate(part, place), 2 + len(dumps(part["functionCall"]["args"])) // 4
    yield _candidate({"text": ""}, place) | _end(draft), 0


def _candidate(part: JSON, place: int) -> JSON:
    return {"content": {"parts": [part], "role": "model"}, "index": place}


def error(refused: Refused) -> JSON:
    """Google's error body."""
    word = _STATUS.get(refused.status, "INVALID_ARGUMENT" if refused.status < 500 else "INTERNAL")
    return {"error": {"code": refused.status, "message": str(refused), "status": word}}


def broken_off(refused: Refused) -> bytes:
    """The same body as an event."""
    return b"data: " + encode(error(refused)) + b"\r\n\r\n"
