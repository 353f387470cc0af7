"""What Anthropic's Messages API refuses with status 400, as far as a notebook can run into it, with the field named.

Unlike `nb_agent.history`, which mends, this judges: it is written against the wire format and not against our own values, so that
a mistake of the adapter shows. Sources: the types of the official client and the error texts in public issue threads.
"""
# ruff: noqa: SIM905  a list of words reads best as text

from __future__ import annotations

from typing import Any, Final, NoReturn

from nb_agent.mock.anthropic_messages.blocks import CHECKS, NAME, check_text
from nb_agent.mock.wire import Refused
from nb_agent.values import JSON

__all__ = ["COUNTED", "FIELDS", "check"]

#: The fields of a request. An unknown one is refused by name.
FIELDS: Final = frozenset(
    "max_tokens messages model cache_control container diagnostics inference_geo metadata output_config service_tier speed "
    "stop_sequences stream system temperature thinking tool_choice tools top_k top_p user_profile_id workspace_id".split()
)
#: Those of a request that only asks for the count.
COUNTED: Final = frozenset(
    "messages model cache_control output_config speed system thinking tool_choice tools user_profile_id workspace_id".split()
)
_WANTED: Final = ("model", "max_tokens", "messages")
_RANGES: Final = {"max_tokens": (0, None), "temperature": (0, 1), "top_p": (0, 1), "top_k": (0, None)}
_WHOLE: Final = frozenset({"max_tokens", "top_k"})
_MOST_MARKS: Final = 4  # blocks with cache_control
_LEAST_BUDGET: Final = 1024  # tokens


def _refuse(message: str) -> NoReturn:
    raise Refused(message)


def check(body: JSON, *, counting: bool = False) -> None:
    """Refuse what the real server refuses, in its own words where they are known; ``counting`` is for a request of the count.

    Raises:
        Refused: the text begins with the field that is at fault.
    """
    for key in _WANTED:
        if key not in body and not (counting and key == "max_tokens"):
            _refuse(f"{key}: Field required")
    for key in body:
        if key not in (COUNTED if counting else FIELDS):
            _refuse(f"{key}: Extra inputs are not permitted")
    if not isinstance(body["model"], str) or not body["model"]:
        _refuse("model: String should have at least 1 character")
    _check_numbers(body)
    _check_tools(body)
    _check_thinking(body)
    _check_objects(body)
    _check_system(body.get("system"))
    _check_messages(body["messages"], thinking=(body.get("thinking") or {}).get("type") == "enabled")
    _check_marks(body)


def _check_numbers(body: JSON) -> None:
    for key, (low, high) in _RANGES.items():
        value = body.get(key, low)
        if isinstance(value, bool) or not isinstance(value, int if key in _WHOLE else (int, float)):
            _refuse(f"{key}: Input should be a valid {'integer' if key in _WHOLE else 'number'}")
        if value < low or (high is not None and value > high):
            _refuse(
                f"{key}: Input should be {'greater' if value < low else 'less'} than or equal to {low if value < low else high}"
            )
    stops = body.get("stop_sequences") or []
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop.strip() for stop in stops):
        _refuse("stop_sequences: each stop sequence must contain non-whitespace")


def _check_objects(body: JSON) -> None:
    for key in ("metadata", "output_config"):
        if not isinstance(body.get(key, {}), dict):
            _refuse(f"{key}: Input should be an object")
    for key in body.get("metadata", {}):
        if key != "user_id":
            _refuse(f"metadata.{key}: Extra inputs are not permitted")


def _check_thinking(body: JSON) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "disabled", "adaptive", "between_tools"):
        _refuse("thinking: Input tag does not match any of the expected tags: 'enabled', 'disabled', 'adaptive', 'between_tools'")
    if thinking["type"] != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < _LEAST_BUDGET:
        _refuse(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_LEAST_BUDGET}")
    if budget >= body.get("max_tokens", budget + 1):
        _refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        _refuse("Thinking may not be enabled when tool_choice forces tool use.")
    if body.get("temperature", 1) != 1:
        _refuse("`temperature` may only be set to 1 when thinking is enabled.")


# ---------------------------------------------------------------------------------------------------------------- tools


def _check_tools(body: JSON) -> None:
    tools = body.get("tools")
    if tools is not None and (not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools)):
        _refuse("tools: Input should be a valid list")
    names = [_check_tool(place, tool) for place, tool in enumerate(tools or ())]
    if len(set(names)) < len(names):
        _refuse("tools: Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, dict) or choice.get("type") not in ("auto", "any", "tool", "none"):
        _refuse(f"tool_choice: Input tag {choice!r} does not match any of the expected tags: 'auto', 'any', 'tool', 'none'")
    if not tools:
        _refuse("tool_choice: may only be specified while providing tools")
    if choice["type"] == "tool" and choice.get("name") not in names:
        _refuse(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")


def _check_tool(place: int, tool: JSON) -> str:
    where = f"tools.{place}.custom"
    if tool.get("type", "custom") not in ("custom", None):
        return str(tool.get("name"))  # one that the server carries out
    if not isinstance(tool.get("name"), str) or not NAME.fullmatch(tool["name"]):
        _refuse(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        _refuse(f"{where}.input_schema: Field required")
    if schema.get("type") != "object":
        _refuse(f"{where}.input_schema.type: Input should be 'object'")
    if schema.keys() & {"oneOf", "anyOf", "allOf"}:
        _refuse(f"{where}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
    return str(tool["name"])


# ------------------------------------------------------------------------------------------------------------- messages


def _check_system(system: Any) -> None:
    if not isinstance(system, (str, list, type(None))):
        _refuse("system: Input should be a valid list")
    for place, block in enumerate(system if isinstance(system, list) else ()):
        check_text(block, f"system.{place}")


def _check_messages(messages: Any, *, thinking: bool) -> None:
    if not isinstance(messages, list) or not messages:
        _refuse("messages: at least one message is required")
    open_ids: list[str] = []  # calls of the last assistant message
    seen: set[str] = set()
    for place, message in enumerate(messages):
        blocks = _blocks(place, message, last=place == len(messages) - 1)
        _check_results(place, message["role"], blocks, open_ids)
        open_ids = _check_blocks(place, message["role"], blocks, seen)
    _unanswered(len(messages), open_ids)
    if messages[-1]["role"] == "assistant":
        _check_end(len(messages) - 1, messages[-1]["content"])
    elif thinking:
        _check_first(messages)


def _blocks(place: int, message: Any, *, last: bool) -> list[JSON]:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("user", "assistant", "system") or (role == "system" and place == 0):
        _refuse(f'messages.{place}.role: Unexpected role "{role}". Allowed roles are "user" or "assistant"; `system` is a field.')
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list) or not all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in content
    ):
        _refuse(f"messages.{place}.content: Input should be a valid list")
    if not content and not (last and role == "assistant"):
        _refuse(f"messages.{place}: all messages must have non-empty content except for the optional final assistant message")
    return content


def _check_results(place: int, role: str, blocks: list[JSON], open_ids: list[str]) -> None:
    """Every call has its one result in the next message, before anything else that stands there."""
    results = [block for block in blocks if block["type"] == "tool_result"]
    left = list(open_ids)
    for number, block in enumerate(results):
        given = block.get("tool_use_id")
        if role != "user" or given not in open_ids:
            text = f"messages.{place}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {given}. "
            _refuse(f"{text}Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
        if given not in left:
            text = f"messages.{place}.content.{number}: each tool_use must have a single result. "
            _refuse(f"{text}Found multiple `tool_result` blocks with id: {given}")
        left.remove(given)
    _unanswered(place, left)
    if results and blocks[: len(results)] != results:
        _refuse(f"messages.{place}: `tool_result` blocks must come first in the content, before any text.")


def _unanswered(place: int, ids: list[str]) -> None:
    if ids:
        text = f"messages.{place - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        _refuse(f"{text}Each `tool_use` block must have a corresponding `tool_result` block in the next message.")


def _check_blocks(place: int, role: str, blocks: list[JSON], seen: set[str]) -> list[str]:
    """Check each block by itself; the ids of the calls among them."""
    ids = []
    for number, block in enumerate(blocks):
        where = f"messages.{place}.content.{number}"
        if block["type"] in CHECKS:
            CHECKS[block["type"]](block, where)
        if block["type"] in ("tool_use", "thinking", "redacted_thinking") and role != "assistant":
            _refuse(f"{where}: `{block['type']}` blocks can only be in `assistant` messages")
        if block["type"] == "image" and role != "user":
            _refuse(f"{where}: `image` blocks can only be in `user` messages")
        if block["type"] == "tool_use":
            if block["id"] in seen:
                _refuse(f"{where}: `tool_use` ids must be unique")
            seen.add(block["id"])
            ids.append(block["id"])
    return ids


def _check_end(place: int, content: Any) -> None:
    """What the model is to go on with may not end in white space, nor in thinking."""
    last = content[-1] if isinstance(content, list) and content else {"type": "text", "text": content or ""}
    if last["type"] == "text" and last["text"] != last["text"].rstrip():
        _refuse("messages: final assistant content cannot end with trailing whitespace")
    if last["type"] in ("thinking", "redacted_thinking"):
        _refuse(f"messages.{place}: The final block in an assistant message cannot be `{last['type']}`.")


def _check_first(messages: list[JSON]) -> None:
    """With thinking on, calls that have just been answered have to come back with the thinking that led to the first of them."""
    kinds: list[str] = []  # of the first block of each message of the model, from the last one back to what the user said
    for message in reversed(messages):
        first = message["content"][0]["type"] if isinstance(message["content"], list) else "text"
        if message["role"] == "assistant":
            kinds.append(first)
        elif first != "tool_result":
            break
    if kinds and not {"thinking", "redacted_thinking"} & {*kinds}:
        text = f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`. "
        _refuse(f"{text}When `thinking` is enabled, a final `assistant` message must start with a thinking block.")


def _check_marks(body: JSON) -> None:
    contents = [body.get("system"), body.get("tools"), *(message.get("content") for message in body["messages"])]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    marks = sum(1 for block in [body, *blocks] if isinstance(block, dict) and block.get("cache_control"))
    if marks > _MOST_MARKS:
        _refuse(f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {marks}.")
