"""The neutral names of settings -> Gemini's fields, by tables. What Gemini has no field for is left out, and said."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from nb_agent.values import JSON

__all__ = ["FIELDS", "LEFT_OUT", "configured"]

#: Neutral name -> field of ``generationConfig``.
FIELDS: Final = {
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
    "n": "candidateCount",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
#: Neutral names that Gemini has nothing for.
LEFT_OUT: Final = ("logit_bias", "metadata", "parallel_tool_calls", "user")

_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY", "any": "ANY"}
_LEVELS: Final = {
    "none": "MINIMAL",  # there is no lower one; the models that can do without have budgets
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "XHIGH",
    "max": "XHIGH",
}
#: Tokens of reasoning for models before Gemini 3, as Google's own OpenAI-compatible endpoint sets them.
_BUDGETS: Final = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
_BY_BUDGET: Final = re.compile(r"gemini-2(?!\d)")
#: OpenAI's word -> Gemini's, ``None`` where leaving it out says the same.
_TIERS: Final = {"auto": None, "default": "standard"}


def configured(settings: JSON, model: str) -> tuple[JSON, tuple[str, ...]]:
    """The body fields that the settings stand for, and a sentence for each one that was left out.

    >>> configured({"max_tokens": 5, "top_p": 0.5, "safetySettings": []}, "gemini-x")
    ({'generationConfig': {'maxOutputTokens': 5, 'topP': 0.5}, 'safetySettings': []}, ())
    """
    body: JSON = {}
    notices: list[str] = []
    for name, value in settings.items():
        if name in LEFT_OUT:
            notices.append(f"{name} was left out, because Gemini has no such setting")
            continue
        fields = _fields(name, value, model)
        if fields is None:
            notices.append(f"{name} was left out, because Gemini has nothing like {value!r}")
            continue
        body = _joined(body, fields)
    return body, tuple(notices)


def _joined(first: JSON, second: JSON) -> JSON:
    """Both, also inside the objects that both have: one sets ``temperature`` there and another ``thinkingConfig``."""
    both = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            both[key] = _joined(first[key], second[key])
    return both


def _fields(name: str, value: Any, model: str) -> JSON | None:
    if name in FIELDS:
        values = [value] if name == "stop" and isinstance(value, str) else value
        return {"generationConfig": {FIELDS[name]: values}}
    return _WRITE[name](value, model) if name in _WRITE else {name: value}


def _choice(value: Any, _: str) -> JSON | None:
    """``tool_choice``: a word, one tool in any format's spelling, or some tools."""
    config: JSON | None = None
    if isinstance(value, str) and value in _MODES:
        config = {"mode": _MODES[value]}
    elif isinstance(value, dict) and value.get("type") == "allowed_tools":
        allowed = value.get("allowed_tools") or value
        names = [_name(tool) for tool in allowed.get("tools") or ()]
        # Names may stand beside ANY and VALIDATED only, of which the latter lets the model answer without a call.
        config = {"mode": "ANY" if allowed.get("mode") == "required" else "VALIDATED", "allowedFunctionNames": names}
    elif isinstance(value, dict) and _name(value):
        config = {"mode": "ANY", "allowedFunctionNames": [_name(value)]}
    elif isinstance(value, dict) and value.get("type") in _MODES:
        config = {"mode": _MODES[value["type"]]}
    return None if config is None else {"toolConfig": {"functionCallingConfig": config}}


def _name(tool: Any) -> str | None:
    if not isinstance(tool, dict):
        return None
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name if isinstance(name, str) else None


def _effort(value: Any, model: str) -> JSON | None:
    table: JSON = _BUDGETS if _BY_BUDGET.search(model) else _LEVELS
    if value not in table:
        return None
    key = "thinkingBudget" if table is _BUDGETS else "thinkingLevel"
    return {"generationConfig": {"thinkingConfig": {key: table[value]}}}


def _format(value: Any, _: str) -> JSON | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"generationConfig": {"responseMimeType": "application/json"}}
    if kind == "json_schema":
        schema = (value.get("json_schema") or value).get("schema") or {}
        return {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}}
    return None


def _tier(value: Any, _: str) -> JSON:
    word = _TIERS.get(value, value) if isinstance(value, str) else value
    return {} if word is None else {"serviceTier": word}


_WRITE: Final[dict[str, Callable[[Any, str], JSON | None]]] = {
    "tool_choice": _choice,
    "reasoning_effort": _effort,
    "response_format": _format,
    "service_tier": _tier,
}
