"""What OpenAI's Responses API refuses in the items of an input: their fields, calls without outputs, reasoning torn from its calls.

The real server knows by its memory which reasoning led to which call. The mock model has none: it writes the reasoning's mark into
the ids of what follows it (`tied`), and seals what it has thought (`seal`), so that a changed or missing item shows.
"""
# ruff: noqa: SIM905  a list of words reads best as text

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from nb_agent.mock.wire import Refused, token
from nb_agent.values import JSON

__all__ = ["check_items", "seal", "tied"]

#: Type of an item -> its fields, with the beginning of its id.
_ITEMS: Final = {
    "message": (frozenset("type id role content status phase".split()), "msg"),
    "function_call": (frozenset("type id call_id name arguments status namespace caller async".split()), "fc"),
    "function_call_output": (frozenset("type id call_id output status caller name namespace".split()), "fc"),
    "reasoning": (frozenset("type id summary content encrypted_content status".split()), "rs"),
}
#: Whose words -> the types of part that its content may hold.
_USER: Final = ("input_text", "input_image", "input_file")
_PARTS: Final = {"user": _USER, "system": _USER, "developer": _USER, "assistant": ("output_text", "refusal"), "output": _USER}
#: Type of part -> the key without which it is nothing.
_WORDS: Final = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_LONGEST_ID: Final = 64  # characters of a call's id
_TIED: Final = re.compile(r"(?:fc|msg)_[A-Za-z0-9]{24}r([A-Za-z0-9]{24})")


def _refuse(message: str, param: str | None = "input", code: str | None = None, status: int = 400) -> NoReturn:
    raise Refused(message, param=param, code=code, status=status)


def tied(prefix: str, name: str, mark: str) -> str:
    """The id of an item; ``mark`` is that of the reasoning before it, if there is one."""
    return f"{prefix}_{name}r{mark}" if mark else f"{prefix}_{name}"


def seal(identity: str, summary: list[JSON]) -> str:
    """What stands for the encrypted reasoning: it fits this id and this summary, and no other."""
    return f"mock.{token('sealed', identity, *(part.get('text') for part in summary if isinstance(part, dict)))}"


def check_items(body: JSON) -> None:
    """Refuse an input that the real server refuses.

    Raises:
        Refused: with the server's own words where they are known.
    """
    items = body.get("input")
    if items is None:
        _refuse("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    if isinstance(items, str):
        return
    if not isinstance(items, list):
        text = f"Invalid type for 'input': expected one of an array of input items or a string, but got {items!r} instead."
        _refuse(text, "input", "invalid_type")
    if not items:
        _refuse("Invalid 'input': empty array. Expected an array with minimum length 1.", "input", "empty_array")
    for place, item in enumerate(items):
        _check_item(f"input[{place}]", item)
    _check_pairs(items)
    _check_reasoning(items, stored=body.get("store") is not False)


def _check_item(where: str, item: Any) -> None:
    kind = (item.get("type") or ("message" if "role" in item else None)) if isinstance(item, dict) else None
    if kind == "item_reference":
        _refuse(f"Item with id '{item.get('id')}' not found.", "input", status=404)
    if kind not in _ITEMS:
        _refuse(f"Invalid value: {kind!r}. Supported values are: {', '.join(map(repr, _ITEMS))}.", where, "invalid_value")
    fields, prefix = _ITEMS[kind]
    for key in item:
        if key not in fields:
            _refuse(f"Unknown parameter: '{where}.{key}'.", f"{where}.{key}", "unknown_parameter")
    given = item.get("id")
    if given is not None and not (isinstance(given, str) and given.startswith(prefix)):
        text = f"Invalid '{where}.id': {given!r}. Expected an ID that begins with '{prefix}'."
        _refuse(text, f"{where}.id", "invalid_value")
    _CHECKS[kind](where, item)


def _check_message(where: str, item: JSON) -> None:
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        text = f"Invalid value: {role!r}. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        _refuse(text, f"{where}.role", "invalid_value")
    _check_content(f"{where}.content", item.get("content"), _PARTS[role])


def _check_content(where: str, content: Any, allowed: tuple[str, ...]) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        found = "null" if content is None else repr(content)
        text = f"Invalid type for '{where}': expected one of an array of objects or string, but got {found} instead."
        _refuse(text, where, "invalid_type")
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in allowed:
            text = f"Invalid value: {kind!r}. Supported values are: {', '.join(map(repr, allowed))}."
            _refuse(text, f"{where}[{number}]", "invalid_value")
        key = _WORDS.get(kind)
        if key and not isinstance(part.get(key), str):
            spot = f"{where}[{number}].{key}"
            _refuse(f"Missing required parameter: '{spot}'.", spot, "missing_required_parameter")
        if kind == "input_image" and not (part.get("image_url") or part.get("file_id")):
            spot = f"{where}[{number}].image_url"
            _refuse(f"Missing required parameter: '{spot}'.", spot, "missing_required_parameter")


def _check_call(where: str, item: JSON) -> None:
    for key in ("call_id", "name", "arguments"):
        if key not in item:
            _refuse(f"Missing required parameter: '{where}.{key}'.", f"{where}.{key}", "missing_required_parameter")
        if not isinstance(item[key], str):
            text = f"Invalid type for '{where}.{key}': expected a string, but got {item[key]!r} instead."
            _refuse(text, f"{where}.{key}", "invalid_type")
    _check_call_id(where, item["call_id"])


def _check_call_id(where: str, given: str) -> None:
    if len(given) > _LONGEST_ID:
        text = f"Expected a string with maximum length {_LONGEST_ID}, but got a string with length {len(given)} instead."
        _refuse(f"Invalid '{where}.call_id': string too long. {text}", f"{where}.call_id", "string_above_max_length")
    if not given:
        _refuse(f"Invalid '{where}.call_id': empty string.", f"{where}.call_id", "empty_string")


def _check_output(where: str, item: JSON) -> None:
    if not isinstance(item.get("call_id"), str):
        _refuse(f"Missing required parameter: '{where}.call_id'.", f"{where}.call_id", "missing_required_parameter")
    if "output" not in item:
        _refuse(f"Missing required parameter: '{where}.output'.", f"{where}.output", "missing_required_parameter")
    _check_call_id(where, item["call_id"])
    _check_content(f"{where}.output", item["output"], _PARTS["output"])


def _check_thought(where: str, item: JSON) -> None:
    if not isinstance(item.get("summary"), list):
        _refuse(f"Missing required parameter: '{where}.summary'.", f"{where}.summary", "missing_required_parameter")
    sealed = item.get("encrypted_content")
    if sealed is not None and sealed != seal(str(item.get("id")), item["summary"]):
        text = f"The encrypted content for item {item.get('id')} could not be verified."
        _refuse(text, f"{where}.encrypted_content", "invalid_encrypted_content")


_CHECKS: Final = {
    "message": _check_message,
    "function_call": _check_call,
    "function_call_output": _check_output,
    "reasoning": _check_thought,
}


def _check_pairs(items: list[JSON]) -> None:
    open_ids: list[str] = []
    for item in items:
        if item.get("type") == "function_call":
            open_ids.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in open_ids:
                _refuse(f"No tool call found for function call output with call_id {item['call_id']}.")
            open_ids.remove(item["call_id"])
    if open_ids:
        _refuse(f"No tool output found for function call {open_ids[0]}.")


def _check_reasoning(items: list[JSON], *, stored: bool) -> None:
    known: set[str] = set()
    for item, after in zip(items, [*items[1:], {}], strict=True):
        given = item.get("id")
        if given in known:
            _refuse(f"Duplicate item found with id {given}. Remove duplicate items from your input and try again.")
        known |= {given} if given else set()
        mark = _TIED.fullmatch(given or "")
        if mark and f"rs_{mark[1]}" not in known:
            kind = item.get("type") or "message"
            _refuse(f"Item '{given}' of type '{kind}' was provided without its required 'reasoning' item: 'rs_{mark[1]}'.")
        if item.get("type") != "reasoning":
            continue
        if not stored and not item.get("encrypted_content"):
            text = f"Item with id '{given}' not found. Items are not persisted when `store` is set to false."
            _refuse(f"{text} Try again with `store` set to true, or remove this item from your input.", status=404)
        if after.get("type") not in ("reasoning", "function_call") and after.get("role") != "assistant":
            _refuse(f"Item '{given}' of type 'reasoning' was provided without its required following item.")
