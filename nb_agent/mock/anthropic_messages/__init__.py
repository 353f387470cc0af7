"""Anthropic Messages from the server's side: reads requests and writes answers as Anthropic does, streamed and whole.

The other end of `nb_agent.adapters.anthropic_messages`. What that server refuses is refused here, in the checks of
`checks`. Where ``thinking`` is on, answers begin with a signed block of it, which has to come back unchanged.
The path ``…/count_tokens`` gets the count of a request instead of an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nb_agent import tokens
from nb_agent.adapters import anthropic_messages as adapter
from nb_agent.adapters.anthropic_messages.words import sound
from nb_agent.messages import Definition, Image, Message, Part, Text, ToolCall, ToolResult
from nb_agent.mock.anthropic_messages.blocks import signature
from nb_agent.mock.anthropic_messages.checks import check
from nb_agent.mock.plans import Ask
from nb_agent.mock.wire import Draft, Frame, Refused, Usage, fragments, token
from nb_agent.values import JSON, dumps, encode

__all__ = ["PATH", "broken_off", "carried", "error", "read", "segments", "stream", "too_long", "whole"]

PATH: str = f"/v1{adapter.PATH}"
segments = adapter.segments  # the adapter reads the text of a request by part, for both ends

#: Our word -> Anthropic's.
_STOP: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "paused": "pause_turn",
}
_CHOICE: Final = {"auto": "auto", "any": "required", "tool": "required", "none": "none"}
#: HTTP status -> type of the error.
_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def carried(route: str) -> JSON | None:
    """Nothing: the body says it all."""
    return {} if route == adapter.PATH else None


def too_long(window: int, prompt: int) -> Refused:
    """Anthropic's refusal of a prompt that does not fit."""
    return Refused(f"prompt is too long: {prompt} tokens > {window} maximum")


# ------------------------------------------------------------------------------------------------------------- reading


def read(body: JSON, *, counting: bool = False) -> Ask:
    """What a request asks for, or what is to be counted.

    Raises:
        Refused: Anthropic's server would refuse it; the text names the field.
    """
    check(body, counting=counting)
    choice: JSON = body.get("tool_choice") or {}
    named = choice.get("type") == "tool"
    offered = [tool for tool in body.get("tools") or () if "input_schema" in tool]
    return Ask(
        model=body["model"],
        messages=tuple(_messages(body)),
        tools=tuple(_definition(tool) for tool in offered if not named or tool["name"] == choice["name"]),
        choice=_CHOICE[choice.get("type", "auto")],
        named=named,
        parallel=not choice.get("disable_parallel_tool_use"),
        limit=body.get("max_tokens"),
        stop=tuple(body.get("stop_sequences") or ()),
        form=((body.get("output_config") or {}).get("format") or {}).get("schema"),
    )


def _definition(tool: JSON) -> Definition:
    return Definition(tool["name"], str(tool.get("description") or ""), tool["input_schema"])


def _messages(body: JSON) -> Iterator[Message]:
    """System text first; the results in a user message are messages of their own, before what the user says."""
    system = [part for part in _parts(body.get("system")) if isinstance(part, Text)]
    if system:
        yield Message.of("system", "\n\n".join(part.text for part in system))
    names: dict[str, str] = {}
    for item in body["messages"]:
        parts = _parts(item["content"])
        names |= {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        for part in parts:
            if isinstance(part, ToolResult):
                yield Message("tool", (ToolResult(part.call_id, names.get(part.call_id, ""), part.parts),))
        said = tuple(part for part in parts if not isinstance(part, ToolResult))
        if said:
            yield Message(item["role"], said)


def _parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(part for block in content or () if (part := _part(block)))


def _part(block: JSON) -> Part | None:
    kind = block["type"]
    if kind == "text":
        return Text(block["text"])
    if kind == "image":
        return Image(url="")
    if kind == "tool_use":
        return ToolCall(block["id"], block["name"], dumps(block["input"]))
    return _result(block) if kind == "tool_result" else None


def _result(block: JSON) -> ToolResult:
    """A result; one that is marked as an error says so in its text too, in the form that the planner reads."""
    text = "\n".join(part.text for part in _parts(block.get("content")) if isinstance(part, Text))
    if block.get("is_error") and '"success":false' not in text.replace(" ", ""):
        text = dumps({"success": False, "error": text})
    return ToolResult(block["tool_use_id"], "", (Text(text),))


# ------------------------------------------------------------------------------------------------------------- writing


def whole(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> JSON:
    """A ``message`` object. Of several choices the first: this API gives one."""
    blocks = _blocks(body, answer[0])
    return {**_head(body, seed), "content": blocks, **_end(answer[0]), "usage": _usage(usage, blocks, body)}


def _head(body: JSON, seed: str) -> JSON:
    return {"id": f"msg_{token(seed, 'answer')}", "type": "message", "role": "assistant", "model": body["model"]}


def _blocks(body: JSON, draft: Draft) -> list[JSON]:
    blocks: list[JSON] = []
    mode: JSON = body.get("thinking") or {}
    if mode.get("type") in ("enabled", "adaptive"):
        thought = "" if mode.get("display") == "omitted" else _thought(draft)
        blocks.append({"type": "thinking", "thinking": thought, "signature": signature(thought)})
    if draft.text:
        blocks.append({"type": "text", "text": draft.text})
    return [*blocks, *(_call(call) for call in draft.calls)]


def _thought(draft: Draft) -> str:
    names = " and ".join(call.name for call in draft.calls)
    return f"I need {names} for this, so I call that first." if names else "I have what I need, so I answer."


def _call(call: ToolCall) -> JSON:
    """A call; arguments that are no JSON object, such as those that were cut off, are left as the text that they are."""
    made = sound(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments if made is None else made}


def _end(draft: Draft) -> JSON:
    """How it ended: by a stop sequence, by the window that was full, or as everywhere."""
    word = (
        "stop_sequence"
        if draft.stop
        else "model_context_window_exceeded"
        if draft.crowded
        else _STOP.get(draft.finish, draft.finish)
    )
    return {"stop_reason": word, "stop_sequence": draft.stop or None}


def _usage(usage: Usage, blocks: list[JSON], body: JSON) -> JSON:
    thought = sum(tokens.count(str(block.get("thinking") or ""), model=body["model"]) for block in blocks)
    details = {"output_tokens_details": {"thinking_tokens": thought}} if any("thinking" in block for block in blocks) else {}
    return {
        "input_tokens": usage.prompt,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": usage.completion + thought,
        **details,
        "service_tier": "standard",
    }


def stream(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> Iterator[Frame]:
    """The events of a message: each block begins, grows and ends before the next one; usage comes at both ends."""
    blocks = _blocks(body, answer[0])
    counted = _usage(usage, blocks, body)
    opened = {**_head(body, seed), "content": [], "stop_reason": None, "stop_sequence": None}
    begun = {key: value for key, value in counted.items() if key != "output_tokens_details"}
    yield _frame("message_start", message={**opened, "usage": begun | {"output_tokens": 1}})
    for index, block in enumerate(blocks):
        yield _frame("content_block_start", index=index, content_block=_empty(block))
        if index == 0:
            yield _frame("ping")
        for delta, cost in _deltas(block):
            yield _frame("content_block_delta", cost, index=index, delta=delta)
        yield _frame("content_block_stop", index=index)
    final = {key: value for key, value in counted.items() if key != "service_tier"}
    yield _frame("message_delta", delta=_end(answer[0]), usage=final)
    yield _frame("message_stop")


def _frame(kind: str, cost: int = 0, **fields: Any) -> Frame:
    return Frame(b"event: " + kind.encode() + b"\ndata: " + encode({"type": kind, **fields}) + b"\n\n", cost)


def _empty(block: JSON) -> JSON:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()} | {"type": block["type"]}


def _deltas(block: JSON) -> Iterator[tuple[JSON, int]]:
    """The deltas of a block with their tokens. A call's first one is empty, and its only one where there are no arguments."""
    if block["type"] == "tool_use":
        given = block["input"]
        text = given if isinstance(given, str) else dumps(given) if given else ""
        for piece in ["", *fragments(text)]:
            yield {"type": "input_json_delta", "partial_json": piece}, 1 + len(piece) // 8
        return
    kind = block["type"]
    for piece in fragments(block[kind]):
        yield {"type": f"{kind}_delta", kind: piece}, 1 + len(piece) // 8
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}, 0


def error(refused: Refused) -> JSON:
    """Anthropic's error body."""
    kind = _TYPES.get(refused.status, "invalid_request_error" if refused.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(refused)}, "request_id": "req_mock"}


def broken_off(refused: Refused) -> bytes:
    """The same body as an event; its clients go by the name of the event."""
    return b"event: error\ndata: " + encode(error(refused)) + b"\n\n"
