"""The values between reading a request and writing the answer: what is asked, what came of earlier calls, what to answer.

Unlike `nb_agent.messages` these exist only in the mock model, and only while it works on one request.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from nb_agent.guards.untrusted import unfenced
from nb_agent.messages import Definition, Message, ToolCall, ToolResult
from nb_agent.values import JSON

__all__ = ["Ask", "Call", "Outcome", "Plan", "outcomes", "turn_of"]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for, whatever its wire format.

    Attributes:
        choice: ``auto``, ``none`` or ``required``; a named tool is ``required`` with that tool alone in ``tools``.
        named: whether one tool was named.
        limit: most tokens of the answer, or ``None``.
        form: a JSON Schema that the text has to fit, ``{}`` for any object, ``None`` for plain text.
        mark: what the ids of the calls end with, by which the server knows them again.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Definition, ...] = ()
    choice: str = "auto"
    named: bool = False
    parallel: bool = True
    limit: int | None = None
    stop: tuple[str, ...] = ()
    copies: int = 1
    form: JSON | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is planned or was made; ``arguments`` is an empty object where the text was no JSON object."""

    name: str
    arguments: JSON = field(default_factory=dict)

    def same(self, other: Call) -> bool:
        """Whether it is the same call, key order aside."""
        return self.name == other.name and self.arguments == other.arguments


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model answers: text, or calls, or a text before calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call with its result. ``value`` is the result's JSON where it is JSON, else its text; ``error`` says why it failed."""

    call: Call
    value: Any
    error: str | None = None
    code: str | None = None


#: What a failure's code says about the call itself: it was never carried out, so another one may be tried in its place.
NOT_RUN: Final = frozenset({"invalid_arguments", "truncated_arguments", "unknown_tool"})


def turn_of(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages from the last one of the user on."""
    start = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    return messages[start:]


def outcomes(messages: tuple[Message, ...]) -> tuple[Outcome, ...]:
    """The calls in these messages that have a result, in the order of the calls."""
    results = {message.tool_call_id: message.tool_result for message in messages if message.tool_result}
    calls = [call for message in messages for call in message.tool_calls]
    return tuple(_outcome(call, result) for call in calls if (result := results.get(call.id)))


def _outcome(call: ToolCall, result: ToolResult) -> Outcome:
    value = _parsed(unfenced(result.text))
    made = _parsed(call.arguments)
    error, code = _failure(value)
    return Outcome(Call(call.name, made if isinstance(made, dict) else {}), value, error, code)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _failure(value: Any) -> tuple[str | None, str | None]:
    """On this wire a failure is a convention of text: an object with ``success: false`` or ``error``, or a line ``Error: …``."""
    if isinstance(value, dict) and (value.get("success") is False or value.get("error")):
        error = value.get("error") or value.get("message") or "it failed without saying why"
        code = value.get("code")
        return (error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)), code if isinstance(code, str) else None
    if isinstance(value, str) and value.lower().startswith(("error:", "error executing")):
        return value, None
    return None, None
