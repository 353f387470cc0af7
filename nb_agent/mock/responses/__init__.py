"""The Responses format from the server's side: reads requests and writes answers as OpenAI does, streamed and whole.

The other end of `nb_agent.adapters.responses`. What that server refuses is refused here, in the checks of `checks`.
Unlike the real one it stores nothing. Asked to reason (``reasoning``), it puts a reasoning item before its answer, and then wants
that item back before the calls it belongs to, unchanged, as the real one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nb_agent import tokens
from nb_agent.adapters import responses as adapter
from nb_agent.messages import Definition, Image, Message, Part, Role, Text, ToolCall, ToolResult
from nb_agent.mock.plans import Ask
from nb_agent.mock.responses.checks import check
from nb_agent.mock.responses.items import seal, tied
from nb_agent.mock.wire import Draft, Frame, Refused, Usage, fragments, token
from nb_agent.values import JSON, encode

__all__ = ["PATH", "broken_off", "carried", "error", "read", "segments", "stream", "too_long", "whole"]

PATH: str = f"/v1{adapter.PATH}"
segments = adapter.segments  # the adapter reads the text of a request by part, for both ends

_CREATED: Final = 1_767_225_600  # 2026-01-01; an answer is a function of its request, so there is no clock in it
_THOUGHT: Final = "**Looking at the request**\n\nI compare it with the tools that I was given."
#: How a draft ended -> the reason of an incomplete response.
_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
#: Field of the request -> its value in the answer where the request has none.
_ECHOED: Final[JSON] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def carried(route: str) -> JSON | None:
    """Nothing: the body says it all."""
    return {} if route == adapter.PATH else None


def too_long(window: int, prompt: int) -> Refused:
    """OpenAI's refusal of a prompt that does not fit, with the numbers that it keeps to itself."""
    return Refused(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. "
        f"(It is {prompt} tokens; the window holds {window}.)",
        code="context_length_exceeded",
        param="input",
    )


# ------------------------------------------------------------------------------------------------------------- reading


def read(body: JSON, *, counting: bool = False) -> Ask:
    """What a request asks for; it is the same where it is only to be counted.

    Raises:
        Refused: OpenAI's server would refuse it; the text names the field.
    """
    del counting
    check(body)
    tools = tuple(_definition(tool) for tool in body.get("tools") or () if tool["type"] == "function")
    choice, tools = _choice(body.get("tool_choice"), tools)
    form = (body.get("text") or {}).get("format") or {}
    return Ask(
        model=body["model"],
        messages=_messages(body),
        tools=tools,
        choice=choice,
        named=isinstance(body.get("tool_choice"), dict) and "name" in body["tool_choice"],
        parallel=body.get("parallel_tool_calls") is not False,
        limit=body.get("max_output_tokens"),
        form=_form(form),
    )


def _form(wanted: JSON) -> JSON | None:
    if wanted.get("type") == "json_schema":
        schema: JSON = wanted.get("schema") or {}
        return schema
    return {} if wanted.get("type") == "json_object" else None


def _choice(choice: Any, tools: tuple[Definition, ...]) -> tuple[str, tuple[Definition, ...]]:
    """The choice in one word, with the tools that it leaves."""
    if not isinstance(choice, dict):
        return choice or "auto", tools
    if choice.get("type") == "allowed_tools":
        names = {tool.get("name") for tool in choice.get("tools") or ()}
        return choice.get("mode", "auto"), tuple(tool for tool in tools if tool.name in names)
    return "required", tuple(tool for tool in tools if tool.name == choice.get("name"))


def _definition(tool: JSON) -> Definition:
    return Definition(tool["name"], str(tool.get("description") or ""), tool.get("parameters") or {})


def _messages(body: JSON) -> tuple[Message, ...]:
    """The items as turns: what the model said and asked for between two others' turns is one message."""
    given = body["input"]
    items: list[JSON] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    names = {item["call_id"]: item["name"] for item in items if item.get("type") == "function_call"}
    found = [Message.of("system", body["instructions"])] if body.get("instructions") else []
    for item in items:
        message = _message(item, names)
        if found and message.role == found[-1].role == "assistant":
            message = Message("assistant", (*found.pop().parts, *message.parts))
        if message.parts or message.role != "assistant":
            found.append(message)
    return tuple(found)


def _message(item: JSON, names: dict[str, str]) -> Message:
    kind = item.get("type") or "message"
    if kind == "function_call_output":
        parts = tuple(part for part in _content(item.get("output")) if isinstance(part, (Text, Image)))
        return Message("tool", (ToolResult(item["call_id"], names.get(item["call_id"], ""), parts),))
    if kind == "function_call":
        return Message("assistant", (ToolCall(item["call_id"], item["name"], item.get("arguments") or "{}"),))
    role: Role = item["role"] if kind == "message" else "assistant"
    return Message(role, _content(item.get("content")) if kind == "message" else ())


def _content(content: Any) -> tuple[Part, ...]:
    if not isinstance(content, list):
        return (Text(content),) if content else ()
    return tuple(_part(part) for part in content)


def _part(part: JSON) -> Part:
    words = part.get("text", part.get("refusal"))
    return Text(words) if isinstance(words, str) else Image(url="")


# ------------------------------------------------------------------------------------------------------------- writing


def whole(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> JSON:
    """A ``response`` object."""
    draft = answer[0]  # this format has no `n`
    reason = _REASONS.get(draft.finish)
    response = _response(body, seed, "incomplete" if reason else "completed")
    response["incomplete_details"] = {"reason": reason} if reason else None
    response["output"] = _items(body, draft, seed)
    return {**response, "usage": _usage(body, usage)}


def _response(body: JSON, seed: str, status: str) -> JSON:
    echoed = {key: body.get(key) if body.get(key) is not None else value for key, value in _ECHOED.items()}
    return {
        "id": f"resp_{token(seed)}",
        "object": "response",
        "created_at": _CREATED,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": body["model"],
        "output": [],
        **echoed,
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "text": {"format": {"type": "text"}, "verbosity": "medium", **(body.get("text") or {})},
        "tools": [{**tool, "strict": tool.get("strict") is not False} for tool in body.get("tools") or ()],
        "usage": None,
    }


def _thinks(body: JSON) -> bool:
    return bool(body.get("reasoning")) and body["reasoning"].get("effort") != "none"


def _thought(body: JSON) -> str:
    """The summary of its reasoning, where one is asked for."""
    return _THOUGHT if _thinks(body) and (body.get("reasoning") or {}).get("summary") else ""


def _items(body: JSON, draft: Draft, seed: str) -> list[JSON]:
    """The items of an answer: reasoning, a message, calls. All after a reasoning item bear its mark in their ids."""
    items: list[JSON] = []
    mark = ""
    if _thinks(body):
        mark = token(seed, "reasoning")
        summary = [{"type": "summary_text", "text": thought}] if (thought := _thought(body)) else []
        items.append(
            {"id": f"rs_{mark}", "type": "reasoning", "summary": summary, "encrypted_content": seal(f"rs_{mark}", summary)}
        )
    cut = draft.finish in _REASONS
    if draft.text or not draft.calls:
        content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": draft.text}]
        status = "incomplete" if cut and not draft.calls else "completed"
        identity = tied("msg", token(seed, "message"), mark)
        items.append({"id": identity, "type": "message", "status": status, "content": content, "role": "assistant"})
    for place, call in enumerate(draft.calls):
        status = "incomplete" if cut and place == len(draft.calls) - 1 else "completed"
        made = {"arguments": call.arguments, "call_id": call.id, "name": call.name}
        items.append({"id": tied("fc", token(seed, "item", place), mark), "type": "function_call", "status": status, **made})
    return items


def _usage(body: JSON, usage: Usage) -> JSON:
    """The count of the answer, and of what it shows of its reasoning."""
    thought = tokens.count(_thought(body), model=body["model"])
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion + thought,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": usage.prompt + usage.completion + thought,
    }


# ----------------------------------------------------------------------------------------------------------- streaming


def stream(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> Iterator[Frame]:
    """Server-sent events: one item after the other, each named when it begins and when it is done; no ``[DONE]``."""
    response = whole(body, answer, usage, seed)
    for number, (kind, event, cost) in enumerate(_events(body, response, seed)):
        content = encode({"type": kind, "sequence_number": number, **event})
        yield Frame(b"event: " + kind.encode() + b"\ndata: " + content + b"\n\n", cost)


_Event = tuple[str, JSON, int]  # its type, what is in it, the tokens that it carries


def _events(body: JSON, response: JSON, seed: str) -> Iterator[_Event]:
    begun = _response(body, seed, "in_progress")
    yield "response.created", {"response": begun}, 0
    yield "response.in_progress", {"response": begun}, 0
    for place, item in enumerate(response["output"]):
        empty = {**item, **_EMPTY[item["type"]]}
        yield "response.output_item.added", {"output_index": place, "item": empty}, 1
        yield from _WITHIN[item["type"]](item, {"item_id": item["id"], "output_index": place})
        yield "response.output_item.done", {"output_index": place, "item": item}, 0
    yield f"response.{response['status']}", {"response": response}, 0


def _message_events(item: JSON, where: JSON) -> Iterator[_Event]:
    for place, part in enumerate(item["content"]):
        here = {**where, "content_index": place}
        yield "response.content_part.added", {**here, "part": {**part, "text": ""}}, 0
        for piece in fragments(part["text"]):
            yield "response.output_text.delta", {**here, "delta": piece, "logprobs": []}, 1 + len(piece) // 8
        yield "response.output_text.done", {**here, "text": part["text"], "logprobs": []}, 0
        yield "response.content_part.done", {**here, "part": part}, 0


def _call_events(item: JSON, where: JSON) -> Iterator[_Event]:
    for piece in fragments(item["arguments"]):
        yield "response.function_call_arguments.delta", {**where, "delta": piece}, 1 + len(piece) // 8
    yield "response.function_call_arguments.done", {**where, "name": item["name"], "arguments": item["arguments"]}, 0


def _reasoning_events(item: JSON, where: JSON) -> Iterator[_Event]:
    for place, part in enumerate(item["summary"]):
        here = {**where, "summary_index": place}
        yield "response.reasoning_summary_part.added", {**here, "part": {**part, "text": ""}}, 0
        for piece in fragments(part["text"]):
            yield "response.reasoning_summary_text.delta", {**here, "delta": piece}, 1 + len(piece) // 8
        yield "response.reasoning_summary_text.done", {**here, "text": part["text"]}, 0
        yield "response.reasoning_summary_part.done", {**here, "part": part}, 0


#: Type of an item -> how it looks when it begins, and the events inside it.
_EMPTY: Final[dict[str, JSON]] = {
    "message": {"status": "in_progress", "content": []},
    "function_call": {"status": "in_progress", "arguments": ""},
    "reasoning": {"summary": []},
}
_WITHIN: Final = {"message": _message_events, "function_call": _call_events, "reasoning": _reasoning_events}


def error(refused: Refused) -> JSON:
    """OpenAI's error body."""
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    return {"error": {"message": str(refused), "type": kind, "param": refused.param, "code": refused.code}}


def broken_off(refused: Refused) -> bytes:
    """The event of an error, which has its fields beside its type."""
    event = {"type": "error", "code": refused.code, "message": str(refused), "param": refused.param, "sequence_number": 1}
    return b"event: error\ndata: " + encode(event) + b"\n\n"
