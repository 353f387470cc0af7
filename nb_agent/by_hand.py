"""You are the model: a person writes each answer, and it is read like any other server's.

In the wire format Chat Completions the assistant message is enough; in the others, and for whoever wants to write the finish reason
too, it is the whole body of the answer. What is wrong in it fails as it would from a server. It decides nothing: who is asked, and
how, is an argument.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from nb_agent.errors import ProviderError
from nb_agent.messages import Request
from nb_agent.values import JSON, encode

__all__ = ["NAME", "written"]

#: The name of this model.
NAME: Final = "you"

_MESSAGE: Final = {"role": "assistant", "content": "Write the answer here."}
_CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "", "arguments": "{}"}}
#: Wire format -> the answer to begin with; the others write theirs in full.
_BODIES: Final[dict[str, JSON]] = {
    "chat_completions": _MESSAGE,
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": _MESSAGE["content"]}]}],
    },
    "anthropic_messages": {
        "role": "assistant",
        "content": [{"type": "text", "text": _MESSAGE["content"]}],
        "stop_reason": "end_turn",
    },
    "gemini_generate": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": _MESSAGE["content"]}]}, "finishReason": "STOP"}]
    },
}


def written(request: Request, number: int, asking: Callable[[JSON], JSON | None]) -> Iterator[bytes]:
    """The answer that a person writes to a request.

    Args:
        request: what the model is asked.
        number: of the round, from 1.
        asking: asks the person (see `stepping`).

    Raises:
        ProviderError: there is nobody who could write one.
    """
    text = json.dumps(_BODIES[request.wire], ensure_ascii=False, indent=2)
    question = {
        "at": "model",
        "title": f"you are the model: write the answer of round {number}{_offered(request)}",
        "round": number - 1,
    }
    question |= {"call": None, "asks": "", "edits": text, "schema": None, "choices": ["next"], "faults": [], "problem": ""}
    said = asking(question)
    if said is None:
        raise ProviderError("nobody is here to write the answer of the model 'you'; choose another model", kind="bad_request")
    yield _whole(request, said.get("text") or text)


def _whole(request: Request, text: str) -> bytes:
    """The body of the answer: a message of Chat Completions is put into one, everything else is sent as it was typed."""
    try:
        body = json.loads(text)
    except ValueError:
        return text.encode()
    if request.wire == "chat_completions" and isinstance(body, dict) and ("role" in body or "tool_calls" in body):
        finish = "tool_calls" if body.get("tool_calls") else "stop"
        return encode({"object": "chat.completion", "choices": [{"index": 0, "message": body, "finish_reason": finish}]})
    return text.encode()


def _offered(request: Request) -> str:
    """How a call is written, where there are tools and a message is enough."""
    tools: Any = request.body.get("tools")
    if request.wire != "chat_completions" or not tools:
        return ""
    call = {**_CALL, "function": {**_CALL["function"], "name": tools[0]["function"]["name"]}}  # type: ignore[dict-item]  # a dict
    return f'; a call is {{"role": "assistant", "tool_calls": [{json.dumps(call)}]}}'
