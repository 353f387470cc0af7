"""What OpenAI's Responses API refuses with status 400, as far as a notebook can run into it, with the field named.

Unlike `nb_agent.history`, which mends, this judges: it is written against the wire format and not against our own values, so that
a mistake of the adapter shows. The items of the input, their pairs and their reasoning are judged in `items`. Sources:
the API reference and the error texts in public issue threads.
"""
# ruff: noqa: SIM905  a list of words reads best as text

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from nb_agent.mock.responses.items import check_items
from nb_agent.mock.wire import Refused
from nb_agent.values import JSON

__all__ = ["FIELDS", "check"]

#: The fields of a request. An unknown one is refused by name.
FIELDS: Final = frozenset(
    "access_programs background background_options context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature "
    "text tool_choice tools top_logprobs top_p truncation user".split()
)
#: A field of Chat Completions -> what has taken its place.
MOVED: Final = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
#: Fields that need a server with a memory, which the mock model is not.
_STATE: Final = ("conversation", "background", "prompt")
_RANGES: Final = {"temperature": (0, 2), "top_p": (0, 1), "max_output_tokens": (16, None), "top_logprobs": (0, 20)}
_WHOLE: Final = frozenset({"max_output_tokens", "top_logprobs"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MOST_TOOLS: Final = 128
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _refuse(message: str, param: str | None = None, code: str | None = None) -> NoReturn:
    raise Refused(message, param=param, code=code)


def check(body: JSON) -> None:
    """Refuse what the real server refuses.

    Raises:
        Refused: with the server's own words where they are known.
    """
    if not isinstance(body.get("model"), str) or not body["model"]:
        _refuse("Missing required parameter: 'model'.", "model", "missing_required_parameter")
    for key in body:
        if key in MOVED:
            text = f"Unsupported parameter: '{key}'. In the Responses API, this parameter has moved to '{MOVED[key]}'."
            _refuse(text, key, "unsupported_parameter")
        if key not in FIELDS:
            _refuse(f"Unknown parameter: '{key}'.", key, "unknown_parameter")
    _check_state(body)
    _check_numbers(body)
    _check_forms(body)
    _check_tools(body)
    check_items(body)


def _check_state(body: JSON) -> None:
    if body.get("previous_response_id"):
        text = f"Previous response with id '{body['previous_response_id']}' not found."
        _refuse(text, "previous_response_id", "previous_response_not_found")
    for key in _STATE:
        if body.get(key):
            _refuse(f"The mock model stores nothing and does not know '{key}'; send the whole history as 'input'.", key)


def _check_numbers(body: JSON) -> None:
    for key, (low, high) in _RANGES.items():
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int if key in _WHOLE else (int, float)):
            kind = "an integer" if key in _WHOLE else "a decimal"
            _refuse(f"Invalid type for '{key}': expected {kind}, but got {value!r} instead.", key, "invalid_type")
        if value < low:
            text = f"Invalid '{key}': below minimum value. Expected a value >= {low}, but got {value} instead."
            _refuse(text, key, "integer_below_min_value" if key in _WHOLE else "decimal_below_min_value")
        if high is not None and value > high:
            text = f"Invalid '{key}': above maximum value. Expected a value <= {high}, but got {value} instead."
            _refuse(text, key, "integer_above_max_value" if key in _WHOLE else "decimal_above_max_value")
    if body.get("stream_options") and not body.get("stream"):
        _refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _check_forms(body: JSON) -> None:
    for key in ("reasoning", "text"):
        if not isinstance(body.get(key) or {}, dict):
            _refuse(f"Invalid type for '{key}': expected an object, but got {body[key]!r} instead.", key, "invalid_type")
    effort = (body.get("reasoning") or {}).get("effort")
    if effort is not None and effort not in _EFFORTS:
        text = f"Invalid value: {effort!r}. Supported values are: {', '.join(map(repr, _EFFORTS))}."
        _refuse(text, "reasoning.effort", "invalid_value")
    form = (body.get("text") or {}).get("format") or {"type": "text"}
    if form.get("type") not in ("text", "json_object", "json_schema"):
        text = f"Invalid value: {form.get('type')!r}. Supported values are: 'json_object', 'json_schema', and 'text'."
        _refuse(text, "text.format.type", "invalid_value")
    if form["type"] == "json_schema":
        for key in ("name", "schema"):
            if not form.get(key):
                _refuse(f"Missing required parameter: 'text.format.{key}'.", f"text.format.{key}", "missing_required_parameter")


# ---------------------------------------------------------------------------------------------------------------- tools


def _check_tools(body: JSON) -> None:
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        _refuse("Invalid type for 'tools': expected an array of objects.", "tools", "invalid_type")
    if len(tools) > _MOST_TOOLS:
        _refuse(f"Invalid 'tools': array too long. Expected at most 128, but got {len(tools)}.", "tools", "array_above_max_length")
    _check_choice(body.get("tool_choice"), [_check_tool(place, tool) for place, tool in enumerate(tools)])


def _check_tool(place: int, tool: Any) -> str:
    where = f"tools[{place}]"
    if not isinstance(tool, dict) or "type" not in tool:
        _refuse(f"Missing required parameter: '{where}.type'.", f"{where}.type", "missing_required_parameter")
    if tool["type"] != "function":
        _refuse(f"The mock model only knows tools of the type 'function', not {tool['type']!r}.", f"{where}.type", "invalid_value")
    name = tool.get("name")
    if name is None:
        _refuse(f"Missing required parameter: '{where}.name'.", f"{where}.name", "missing_required_parameter")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        text = f"Invalid '{where}.name': string does not match pattern. Expected a string that matches the pattern "
        _refuse(f"{text}'^[a-zA-Z0-9_-]+$', and got {name!r}.", f"{where}.name", "invalid_value")
    schema = tool.get("parameters")
    if schema is not None and (not isinstance(schema, dict) or schema.get("type") != "object"):
        found = schema.get("type") if isinstance(schema, dict) else schema
        text = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {found!r}'."
        _refuse(f"Invalid schema for function '{name}': {text}", f"{where}.parameters", "invalid_function_parameters")
    if fault := _schema_fault(schema, strict=tool.get("strict") is True):
        _refuse(f"Invalid schema for function '{name}': {fault}", f"{where}.parameters", "invalid_function_parameters")
    return name


def _schema_fault(schema: Any, *, strict: bool, where: tuple[str, ...] = ()) -> str:
    """What is wrong with a schema, in the server's words. Strictness is judged only where it was asked for in so many words."""
    if not isinstance(schema, dict):
        return ""
    context = f"In context=({''.join(f'{part!r}, ' for part in where).rstrip()})"
    properties = schema.get("properties")
    if schema.get("type") == "object":
        if properties is None and (strict or not where):
            return f"{context}, object schema missing properties."
        if strict and schema.get("additionalProperties") is not False:
            return f"{context}, 'additionalProperties' is required to be supplied and to be false."
        if strict and (missing := [key for key in properties or {} if key not in (schema.get("required") or ())]):
            return (
                f"{context}, 'required' is required to be supplied and to be an array including every key. Missing '{missing[0]}'."
            )
    if schema.get("type") == "array" and "items" not in schema:
        return f"{context}, array schema missing items."
    inside = [(("properties", key), part) for key, part in (properties or {}).items()] + [(("items",), schema.get("items"))]
    faults = (_schema_fault(part, strict=strict, where=(*where, *step)) for step, part in inside)
    return next((fault for fault in faults if fault), "")


def _check_choice(choice: Any, names: list[str]) -> None:
    if isinstance(choice, dict):
        if choice.get("type") == "allowed_tools" and isinstance(choice.get("tools"), list):
            return
        if choice.get("type") != "function" or "name" not in choice:
            _refuse("Missing required parameter: 'tool_choice.name'.", "tool_choice.name", "missing_required_parameter")
        if choice["name"] not in names:
            _refuse("Tool choice 'function' not found in 'tools' parameter.", "tool_choice")
    elif choice not in (None, "none", "auto", "required"):
        text = f"Invalid value: {choice!r}. Supported values are: 'none', 'auto', and 'required'."
        _refuse(text, "tool_choice", "invalid_value")
    elif choice == "required" and not names:
        _refuse("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")
