"""Chat Completions from the server's side: reads requests and writes answers as OpenAI does, streamed and whole.

The other end of `nb_agent.adapters.chat_completions`. What that server refuses is refused here, in the checks of `checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from nb_agent.adapters import chat_completions as adapter
from nb_agent.messages import Definition, Image, Message, Part, Text, ToolCall, ToolResult
from nb_agent.mock.chat_completions.checks import check
from nb_agent.mock.plans import Ask
from nb_agent.mock.wire import Draft, Frame, Refused, Usage, fragments, token
from nb_agent.values import JSON, encode

__all__ = ["PATH", "broken_off", "carried", "error", "read", "segments", "stream", "too_long", "whole"]

PATH: str = f"/v1{adapter.PATH}"
segments = adapter.segments  # the adapter reads the text of a request by part, for both ends

_CREATED: Final = 1_767_225_600  # 2026-01-01; an answer is a function of its request, so there is no clock in it
_FINGERPRINT: Final = "fp_nb_agent_mock"


def carried(route: str) -> JSON | None:
    """Nothing: the body says it all."""
    return {} if route == adapter.PATH else None


def too_long(window: int, prompt: int) -> Refused:
    """OpenAI's refusal of a prompt that does not fit."""
    return Refused(
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. "
        f"Please reduce the length of the messages.",
        code="context_length_exceeded",
        param="messages",
    )


# ------------------------------------------------------------------------------------------------------------- reading


def read(body: JSON, *, counting: bool = False) -> Ask:
    """What a request asks for; it is the same where it is only to be counted.

    Raises:
        Refused: OpenAI's server would refuse it; the text names the field.
    """
    del counting
    check(body)
    tools = tuple(_definition(tool["function"]) for tool in body.get("tools") or () if "function" in tool)
    choice, tools = _choice(body.get("tool_choice"), tools)
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    stop = body.get("stop") or ()
    return Ask(
        model=body["model"],
        messages=_messages(body["messages"]),
        tools=tools,
        choice=choice,
        named=_is_named(body),
        parallel=body.get("parallel_tool_calls") is not False,
        limit=limit,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        copies=body.get("n") or 1,
        form=_form(body.get("response_format") or {}),
    )


def _choice(choice: Any, tools: tuple[Definition, ...]) -> tuple[str, tuple[Definition, ...]]:
    """The choice in one word, with the tools that it leaves."""
    if not isinstance(choice, dict):
        return choice or "auto", tools
    if choice.get("type") == "allowed_tools":
        allowed = choice["allowed_tools"]
        names = {(tool.get("function") or {}).get("name") for tool in allowed.get("tools") or ()}
        return allowed.get("mode", "auto"), tuple(tool for tool in tools if tool.name in names)
    return "required", tuple(tool for tool in tools if tool.name == choice["function"]["name"])


def _form(wanted: JSON) -> JSON | None:
    if wanted.get("type") == "json_schema":
        schema: JSON = (wanted.get("json_schema") or {}).get("schema") or {}
        return schema
    return {} if wanted.get("type") == "json_object" else None


def _definition(function: JSON) -> Definition:
    return Definition(function["name"], str(function.get("description") or ""), function.get("parameters") or {})


def _messages(items: list[JSON]) -> tuple[Message, ...]:
    names = {call["id"]: call["function"]["name"] for item in items for call in item.get("tool_calls") or () if "function" in call}
    return tuple(_message(item, names) for item in items)


def _message(item: JSON, names: dict[str, str]) -> Message:
    parts = _content(item.get("content"))
    if item["role"] == "tool":
        called = item["tool_call_id"]
        texts = tuple(part for part in parts if isinstance(part, Text))
        return Message("tool", (ToolResult(called, names.get(called, ""), texts),))
    calls = [call for call in item.get("tool_calls") or () if "function" in call]
    made = (ToolCall(call["id"], call["function"]["name"], call["function"].get("arguments") or "{}") for call in calls)
    return Message(item["role"], (*parts, *made))


def _content(content: Any) -> tuple[Part, ...]:
    if not isinstance(content, list):
        return (Text(content),) if content else ()
    return tuple(Text(str(part["text"])) if "text" in part else Image(url="") for part in content)


# ------------------------------------------------------------------------------------------------------------- writing


def whole(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> JSON:
    """A ``chat.completion`` object."""
    choices = [
        {"index": place, "message": _written(draft), "logprobs": None, "finish_reason": _finish(draft, body)}
        for place, draft in enumerate(answer)
    ]
    return {**_head(body, seed, "chat.completion"), "choices": choices, "usage": _usage(usage), "system_fingerprint": _FINGERPRINT}


def _head(body: JSON, seed: str, kind: str) -> JSON:
    return {"id": f"chatcmpl-{token(seed)}", "object": kind, "created": _CREATED, "model": body["model"]}


def _written(draft: Draft) -> JSON:
    content = draft.text or (None if draft.calls else "")
    message: JSON = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
    if draft.calls:
        message["tool_calls"] = [_call(call) for call in draft.calls]
    return message


def _call(call: ToolCall) -> JSON:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _is_named(body: JSON) -> bool:
    return isinstance(body.get("tool_choice"), dict) and "function" in body["tool_choice"]


def _finish(draft: Draft, body: JSON) -> str:
    """Its own word. With a named tool OpenAI says ``stop`` where it says ``tool_calls`` otherwise."""
    return "stop" if draft.finish == "tool_calls" and _is_named(body) else draft.finish


def _usage(usage: Usage) -> JSON:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def stream(body: JSON, answer: Sequence[Draft], usage: Usage, seed: str) -> Iterator[Frame]:
    """``chat.completion.chunk`` objects as server-sent events, the choices by turns, and ``[DONE]``."""
    counted = bool((body.get("stream_options") or {}).get("include_usage"))
    head = {**_head(body, seed, "chat.completion.chunk"), "system_fingerprint": _FINGERPRINT}
    lanes = [_deltas(draft, place, _finish(draft, body)) for place, draft in enumerate(answer)]
    for turn in zip_longest(*lanes):
        for step in turn:
            if step is not None:
                choice, cost = step
                yield _frame({**head, "choices": [choice], **({"usage": None} if counted else {})}, cost)
    if counted:
        yield _frame({**head, "choices": [], "usage": _usage(usage)})
    yield Frame(b"data: [DONE]\n\n")


def _frame(chunk: JSON, cost: int = 0) -> Frame:
    return Frame(b"data: " + encode(chunk) + b"\n\n", cost)


def _deltas(draft: Draft, place: int, finish: str) -> Iterator[tuple[JSON, int]]:
    """The deltas of one choice with their tokens: the role, the text, one call after the other, the finish reason.

    As recorded from OpenAI: a single call begins in the chunk of the role, several have a chunk for the role before them.
    """
    role: JSON = {"role": "assistant", "content": None if draft.calls and not draft.text else "", "refusal": None}
    alone = len(draft.calls) == 1 and not draft.text
    if alone:
        role["tool_calls"] = [_opened(draft.calls[0], 0)]
    yield _choice_of(place, role), 1
    for piece in fragments(draft.text):
        yield _choice_of(place, {"content": piece}), 1 + len(piece) // 8
    for index, call in enumerate(draft.calls):
        if not alone:
            yield _choice_of(place, {"tool_calls": [_opened(call, index)]}), 2
        for piece in fragments(call.arguments):
            yield _choice_of(place, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), 1 + len(piece) // 8
    yield _choice_of(place, {}, finish), 0


def _opened(call: ToolCall, index: int) -> JSON:
    return {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}


def _choice_of(place: int, delta: JSON, finish: str | None = None) -> JSON:
    return {"index": place, "delta": delta, "logprobs": None, "finish_reason": finish}


def error(refused: Refused) -> JSON:
    """OpenAI's error body."""
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    return {"error": {"message": str(refused), "type": kind, "param": refused.param, "code": refused.code}}


def broken_off(refused: Refused) -> bytes:
    """The same body as an event."""
    return _frame(error(refused)).payload
