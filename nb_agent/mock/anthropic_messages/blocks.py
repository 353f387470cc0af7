"""What Anthropic's Messages API refuses in a single block. `checks` judges how blocks stand together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from nb_agent.mock.wire import Refused, token
from nb_agent.values import JSON

__all__ = ["CHECKS", "NAME", "check_text", "signature"]

#: What the name of a tool is.
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")


def _refuse(message: str) -> NoReturn:
    raise Refused(message)


def signature(thinking: str) -> str:
    """What the mock model signs its thinking with; a block that was changed on its way shows."""
    return token("thinking", thinking)


def check_text(block: Any, where: str) -> None:
    """Refuse a block of text that is empty or only white space."""
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, str):
        _refuse(f"{where}.text.text: Field required")
    if not text:
        _refuse(f"{where}: text content blocks must be non-empty")
    if not text.strip():
        _refuse(f"{where}: text content blocks must contain non-whitespace text")


def _check_image(block: JSON, where: str) -> None:
    given = block.get("source")
    source = given if isinstance(given, dict) else {}
    if source.get("type") == "base64" and source.get("media_type") not in _IMAGES:
        allowed = ", ".join(f"'{media}'" for media in _IMAGES)
        _refuse(f"{where}.image.source.base64.media_type: Input should be {allowed}")
    if source.get("type") not in ("base64", "url", "file"):
        _refuse(f"{where}.image.source: Field required")


def _check_call(block: JSON, where: str) -> None:
    if not isinstance(block.get("id"), str) or not _ID.fullmatch(block["id"]):
        _refuse(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block.get("name"), str) or not NAME.fullmatch(block["name"]):
        _refuse(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block.get("input"), dict):
        _refuse(f"{where}.tool_use.input: Input should be a valid dictionary")


def _check_result(block: JSON, where: str) -> None:
    content = block.get("content")
    for number, inner in enumerate(content if isinstance(content, list) else ()):
        kind = inner.get("type") if isinstance(inner, dict) else None
        if kind not in ("text", "image", "document", "search_result", "tool_reference"):
            _refuse(f"{where}.tool_result.content.{number}: Input tag {kind!r} does not match any of the expected tags")
        if kind in CHECKS:
            CHECKS[kind](inner, f"{where}.tool_result.content.{number}")
    if not isinstance(content, (str, list, type(None))):
        _refuse(f"{where}.tool_result.content: Input should be a valid string")


def _check_thought(block: JSON, where: str) -> None:
    if block.get("signature") != signature(str(block.get("thinking"))):
        _refuse(f"{where}: Invalid `signature` in `thinking` block")


#: Type of block -> what refuses a bad one, given the block and the place where it stands.
CHECKS: Final[dict[str, Callable[[JSON, str], None]]] = {
    "text": check_text,
    "image": _check_image,
    "tool_use": _check_call,
    "tool_result": _check_result,
    "thinking": _check_thought,
}
