"""What OpenAI's Chat Completions refuses with status 400, as far as a notebook can run into it, with the field named.

Unlike `nb_agent.history`, which mends, this judges: it is written against the wire format and not against our own values, so that
a mistake of the adapter shows. Sources: the API reference and the error texts in public issue threads.
"""
# ruff: noqa: SIM905  a list of words reads best as text

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from nb_agent.mock.wire import Refused
from nb_agent.values import JSON

__all__ = ["FIELDS", "check"]

#: The fields of a request. An unknown one is refused by name.
FIELDS: Final = frozenset(
    "messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata "
    "modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options "
    "temperature tool_choice tools top_logprobs top_p user verbosity web_search_options".split()
)
_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_RANGES: Final = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "n": (1, 128),
    "max_tokens": (1, None),
    "max_completion_tokens": (1, None),
}
_WHOLE: Final = frozenset({"n", "max_tokens", "max_completion_tokens", "seed"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MOST_TOOLS: Final = 128
_LONGEST_ID: Final = 40  # characters of a call's id


def _refuse(message: str, param: str | None = None, code: str | None = None) -> NoReturn:
    raise Refused(message, param=param, code=code)


def check(body: JSON) -> None:
    """Refuse what the real server refuses.

    Raises:
        Refused: with the server's own words where they are known.
    """
    if not isinstance(body.get("model"), str) or not body["model"]:
        _refuse("you must provide a model parameter", "model")
    if "messages" not in body:
        _refuse("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    for key in body:
        if key not in FIELDS:
            _refuse(f"Unrecognized request argument supplied: {key}", key, "unknown_parameter")
    if body.get("functions") or body.get("function_call"):
        _refuse("The mock model does not know 'functions'; use 'tools'.", "functions", "unsupported_parameter")
    _check_numbers(body)
    _check_tools(body)
    _check_messages(body["messages"])


def _check_numbers(body: JSON) -> None:
    for key, (low, high) in _RANGES.items():
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int if key in _WHOLE else (int, float)):
            kind = "an integer" if key in _WHOLE else "a number"
            _refuse(f"Invalid type for '{key}': expected {kind}, but got {value!r} instead.", key, "invalid_type")
        if value < low or (high is not None and value > high):
            limit = f">= {low}" if value < low else f"<= {high}"
            _refuse(f"Invalid '{key}': expected a value {limit}, but got {value} instead.", key, "invalid_value")
    if body.get("stream_options") and not body.get("stream"):
        _refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _check_tools(body: JSON) -> None:
    tools = body.get("tools")
    if not tools:
        for key in ("tool_choice", "parallel_tool_calls"):
            if body.get(key) not in (None, "none", "auto"):
                _refuse(f"Invalid value for '{key}': '{key}' is only allowed when 'tools' are specified.", key)
        if tools is not None:
            _refuse("Invalid 'tools': empty array. Expected an array with minimum length 1.", "tools", "empty_array")
        return
    if not isinstance(tools, list):
        _refuse("Invalid type for 'tools': expected an array of objects.", "tools", "invalid_type")
    if len(tools) > _MOST_TOOLS:
        _refuse(f"Invalid 'tools': array too long. Expected at most 128, but got {len(tools)}.", "tools", "array_above_max_length")
    names = [_check_tool(place, tool) for place, tool in enumerate(tools)]
    _check_choice(body.get("tool_choice"), names)


def _check_tool(place: int, tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    where = f"tools[{place}].function"
    if not isinstance(function, dict) or tool.get("type") != "function":
        _refuse(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        _refuse(f"Invalid '{where}.name': {name!r} does not match '^[a-zA-Z0-9_-]{{1,64}}$'.", f"{where}.name", "invalid_value")
    schema = function.get("parameters")
    if schema is not None and (not isinstance(schema, dict) or (schema and schema.get("type") != "object")):
        found = schema.get("type") if isinstance(schema, dict) else schema
        text = f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: {found!r}'."
        _refuse(text, f"{where}.parameters", "invalid_function_parameters")
    return name


def _check_choice(choice: Any, names: list[str]) -> None:
    if isinstance(choice, dict):
        if choice.get("type") == "allowed_tools" and isinstance(choice.get("allowed_tools"), dict):
            return
        wanted = (choice.get("function") or {}).get("name")
        if wanted not in names:
            _refuse(f"Invalid value for 'tool_choice': no function named {wanted!r} was specified in the 'tools'.", "tool_choice")
    elif choice not in (None, "none", "auto", "required"):
        text = f"Invalid value: {choice!r}. Supported values are: 'none', 'auto', and 'required'."
        _refuse(text, "tool_choice", "invalid_value")


# ------------------------------------------------------------------------------------------------------------- messages


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        _refuse("Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages", "empty_array")
    open_ids: list[str] = []  # calls of the last assistant message that have no result yet
    answered: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES:
            text = f"Invalid value: {role!r}. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'."
            _refuse(text, f"messages[{place}].role", "invalid_value")
        if role == "tool":
            _check_result(place, message, open_ids, answered)
            continue
        _check_open(place, open_ids)
        answered.clear()
        _check_content(place, message)
        open_ids += _call_ids(place, message)
    _check_open(len(messages), open_ids)


def _check_result(place: int, message: JSON, open_ids: list[str], answered: list[str]) -> None:
    where = f"messages[{place}]"
    called = message.get("tool_call_id")
    if not isinstance(called, str):
        _refuse(f"Missing required parameter: '{where}.tool_call_id'.", f"{where}.tool_call_id", "missing_required_parameter")
    if called in open_ids:
        open_ids.remove(called)
        answered.append(called)
    elif called not in answered:
        text = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        _refuse(f"{text} ({called!r} answers none).", f"{where}.role")
    else:
        _refuse(f"Duplicate value for 'tool_call_id' of {called!r} in message[{place}].", f"{where}.tool_call_id")
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        _refuse(f"Invalid '{where}.content': a tool message holds text only.", f"{where}.content", "invalid_value")


def _check_open(place: int, open_ids: list[str]) -> None:
    if open_ids:
        text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        ids = ", ".join(open_ids)
        _refuse(f"{text}The following tool_call_ids did not have response messages: {ids}", f"messages[{place}].role")


def _check_content(place: int, message: JSON) -> None:
    where = f"messages[{place}].content"
    content = message.get("content")
    if content is None:
        if message["role"] != "assistant" or not (message.get("tool_calls") or message.get("refusal")):
            _refuse(f"Invalid value for 'content': expected a string, got null ({where}).", where)
    elif isinstance(content, list):
        if not content or not all(isinstance(part, dict) and "type" in part for part in content):
            _refuse(f"Invalid '{where}': expected an array of content parts.", where, "invalid_value")
        _check_parts(where, content)
    elif not isinstance(content, str):
        _refuse(f"Invalid type for '{where}': expected a string or an array, got {content!r}.", where, "invalid_type")


def _check_parts(where: str, content: list[JSON]) -> None:
    for number, part in enumerate(content):
        if part["type"] in ("text", "refusal") and not isinstance(part.get(part["type"]), str):
            spot = f"{where}[{number}].{part['type']}"
            _refuse(f"Missing required parameter: '{spot}'.", spot, "missing_required_parameter")


def _call_ids(place: int, message: JSON) -> list[str]:
    calls = message.get("tool_calls")
    where = f"messages[{place}].tool_calls"
    if calls is None:
        return []
    if message["role"] != "assistant" or not isinstance(calls, list) or not calls:
        _refuse(f"Invalid '{where}': expected an array with minimum length 1, in an assistant message.", where, "empty_array")
    ids: list[str] = []
    for number, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        spot = f"{where}[{number}]"
        if not isinstance(function, dict) or not isinstance(call.get("id"), str) or not isinstance(function.get("name"), str):
            _refuse(f"Missing required parameter: '{spot}' needs an id and a function with a name.", spot)
        if not isinstance(function.get("arguments", ""), str):
            _refuse(
                f"Invalid type for '{spot}.function.arguments': expected a string.", f"{spot}.function.arguments", "invalid_type"
            )
        if len(call["id"]) > _LONGEST_ID:
            text = f"Invalid '{spot}.id': string too long. Expected at most {_LONGEST_ID} characters, but got {len(call['id'])}."
            _refuse(text, f"{spot}.id", "string_above_max_length")
        ids.append(call["id"])
    return ids
