"""Settings under their neutral names -> the fields of an Anthropic request, and tools -> the form in which that API takes them.

What the API has no field for is left out and said. Everything under another name goes through as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from nb_agent.adapters.property_names import with_fitted_names
from nb_agent.adapters.schema_reading import rooted
from nb_agent.adapters.strictness import openness
from nb_agent.messages import Definition
from nb_agent.values import JSON, Encoded, dumps

__all__ = ["MOST_TOKENS", "SETTINGS", "fields", "tools"]

_NAME: Final = "anthropic_messages"

#: ``max_tokens`` where it is not set, since the API requires one; a budget for thinking that is set comes on top of it.
MOST_TOKENS: Final = 8192


def _nothing(_: Any) -> JSON | None:
    return None


def _choice(value: Any) -> JSON | None:
    if isinstance(value, str):
        return {"tool_choice": {"type": "any" if value == "required" else value}}
    kind = value.get("type")
    if kind == "function":
        return {"tool_choice": {"type": "tool", "name": (value.get("function") or value).get("name")}}
    if kind == "allowed_tools":
        return _choice((value.get("allowed_tools") or value).get("mode", "auto"))
    return {"tool_choice": value}


def _format(value: JSON) -> JSON | None:
    if value.get("type") == "json_schema":
        schema = (value.get("json_schema") or value).get("schema") or {}
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    return {} if value.get("type") == "text" else None


def _effort(value: str) -> JSON | None:
    if value == "none":
        return {"thinking": {"type": "disabled"}}
    return {"output_config": {"effort": {"minimal": "low"}.get(value, value)}}


def _tier(value: str) -> JSON | None:
    known = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
    return {"service_tier": known[value]} if value in known else None


#: Neutral name -> what gives the fields of this API; ``None`` from it means that there is no such field.
SETTINGS: Final[dict[str, Callable[[Any], JSON | None]]] = {
    "max_tokens": lambda value: {"max_tokens": value},
    "max_completion_tokens": lambda value: {"max_tokens": value},
    "temperature": lambda value: {"temperature": value},
    "top_p": lambda value: {"top_p": value},
    "stop": lambda value: {"stop_sequences": [value] if isinstance(value, str) else list(value)},
    "tool_choice": _choice,
    "parallel_tool_calls": lambda value: {} if value else {"tool_choice": {"disable_parallel_tool_use": True}},
    "reasoning_effort": _effort,
    "response_format": _format,
    "service_tier": _tier,
    "user": lambda value: {"metadata": {"user_id": value}},
    "metadata": lambda value: {"metadata": value} if set(value) <= {"user_id"} else None,
    "n": lambda value: {} if value == 1 else None,
    "logprobs": lambda value: None if value else {},
    "top_logprobs": _nothing,
    "logit_bias": _nothing,
    "frequency_penalty": _nothing,
    "presence_penalty": _nothing,
    "seed": _nothing,
}


def fields(settings: JSON, *, tools: bool) -> tuple[JSON, tuple[str, ...]]:
    """The fields that the settings stand for, and a sentence for each that was left out.

    Args:
        settings: by neutral name, or by this API's own.
        tools: whether there are tools; without them the API takes no choice of one.
    """
    made: JSON = {}
    notices: list[str] = []
    for key, value in settings.items():
        if value is None and key in SETTINGS:
            continue
        found = SETTINGS[key](value) if key in SETTINGS else {key: value}
        if found is None:
            notices.append(f"{key} was left out: Anthropic Messages has nothing like {dumps(value)}")
        for name, content in (found or {}).items():
            both = isinstance(content, dict) and isinstance(made.get(name), dict)
            made[name] = made[name] | content if both else content
    choice = made.get("tool_choice")
    if choice is not None:
        choice = {"type": "auto", **choice}
        if choice["type"] == "none":
            choice = {"type": "none"}
        made["tool_choice"] = choice
        if not tools and choice["type"] in ("auto", "none"):
            del made["tool_choice"]
    thinking = made.get("thinking") or {}
    return {"max_tokens": MOST_TOKENS + thinking.get("budget_tokens", 0), **made}, tuple(notices)


# --------------------------------------------------------------------------------------------------------------- tools


def tools(definitions: Sequence[Definition], settings: JSON) -> tuple[list[Encoded], tuple[str, ...]]:
    """The definitions as the API takes them, where ``tool_choice`` allows only some, those; and what was given up."""
    choice = settings.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = (choice.get("allowed_tools") or choice).get("tools") or ()
        names = {(tool.get("function") or tool).get("name") for tool in allowed}
        definitions = [definition for definition in definitions if definition.name in names]
    for definition in definitions:
        if _NAME not in definition.memo:
            definition.memo[_NAME] = _tool(definition)
    written = [definition.memo[_NAME] for definition in definitions]
    return [form for form, _ in written], tuple(said for _, said in written if said)


def _tool(definition: Definition) -> tuple[Encoded, str]:
    schema = with_fitted_names(rooted(definition.parameters))
    form: JSON = {"name": definition.name}
    if definition.description.strip():
        form["description"] = definition.description
    if not definition.strict:
        return Encoded(form, input_schema=schema), ""
    if reason := openness(definition.parameters, circles=False):
        return Encoded(form, input_schema=schema), f"{definition.name} was sent without strict, because {reason}"
    return Encoded(form, input_schema=_strict(schema), strict=True), ""


#: Keywords that a strict schema may have; the values of these are no schemas.
_PLAIN: Final = frozenset({"type", "required", "enum", "const", "description", "title", "$ref"})
_NAMED: Final = frozenset({"properties", "$defs", "definitions"})
#: Keyword of a choice -> the one that a strict schema has.
_CHOICES: Final = {"allOf": "allOf", "anyOf": "anyOf", "oneOf": "anyOf"}
_FORMATS: Final = frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split())  # noqa: SIM905  reads best as text


def _strict(schema: Any) -> Any:
    """A schema as ``strict`` tools may have it; what the API cannot enforce goes into the description.

    The official client does the same (``anthropic.transform_schema``).
    """
    if not isinstance(schema, dict):
        return schema
    made: JSON = {}
    said: list[str] = []
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            made[key] = {name: _strict(part) for name, part in value.items()}
        elif key in _CHOICES and isinstance(value, list):
            made[_CHOICES[key]] = [_strict(part) for part in value]
        elif key == "items":
            made[key] = _strict(value)
        elif key in _PLAIN or (key == "format" and value in _FORMATS) or (key == "minItems" and value in (0, 1)):
            made[key] = value
        elif key not in ("additionalProperties", "discriminator"):
            said.append(f"{key}: {value}")
    places = schema.get("prefixItems")
    if isinstance(places, list) and "items" not in made:
        made["items"] = {"anyOf": [_strict(part) for part in places]} if places else {"type": "null"}
    return _finished(made, said)


def _finished(made: JSON, said: list[str]) -> JSON:
    """A strict schema with what it has to have, and with what could only be said."""
    if made.get("type") == "object":
        made = {"properties": {}, **made, "additionalProperties": False}
    if said:
        words = "{" + ", ".join(said) + "}"
        made["description"] = f"{made['description']}\n\n{words}" if made.get("description") else words
    if "$ref" in made and len(made) > 1 and "$defs" not in made:  # a reference stands alone
        return {"anyOf": [{"$ref": made.pop("$ref")}], **made}
    return made
