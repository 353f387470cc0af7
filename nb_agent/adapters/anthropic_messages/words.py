"""What Anthropic's server says, in our words: endings, refusals, counts of tokens; and which text is a JSON object.

The tables and small readers of `stream`, which puts the replies together.
"""

from __future__ import annotations

import json
from typing import Any, Final

from nb_agent.adapters.refusals import failure
from nb_agent.errors import ProviderError
from nb_agent.messages import Finish
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = ["FINISH", "failed", "refused", "sound", "spent"]

#: The server's own word -> ours; the second half are words of servers that imitate the format. One that is not here is an error.
FINISH: Final[dict[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "refusal": "content_filter",
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "error": "error",
}


def sound(text: str) -> JSON | None:
    """The JSON object that a text is, ``None`` where it is none or where writing it down again would change what it says.

    >>> sound('{"w": 2}'), sound('{"w": 2, "w": 3}'), sound("[1]")
    ({'w': 2}, None, None)
    """
    try:
        made = json.loads(text, strict=False, object_pairs_hook=_object)
        json.dumps(made, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None


def _object(pairs: list[tuple[str, Any]]) -> JSON:
    made = dict(pairs)
    if len(made) < len(pairs) and any(made[key] != value for key, value in pairs):
        raise ValueError("a key is there twice")
    return made


def failed(payload: JSON) -> ProviderError:
    """The error that the server broke off with; it says what it is by its type, since the status of the stream was 200."""
    return failure(payload) or ProviderError("the model server broke off with an error and no words", kind="server")


def refused(details: Any) -> str:
    """The sentence that an answer ends with where the model refused; ``details`` are the message's ``stop_details``."""
    why = (details.get("explanation") or details.get("category")) if isinstance(details, dict) else None
    return f"the model refused to answer: {why}" if why else "the model refused to answer"


def spent(form: JSON) -> Usage | None:
    """What was reported. Here ``input_tokens`` leaves the cached ones out, and ``output_tokens`` has the thinking in it."""
    details = form.get("output_tokens_details")
    thought = _number(details, "thinking_tokens") if isinstance(details, dict) else None
    written = _number(form, "output_tokens")
    usage = Usage(
        input=_number(form, "input_tokens"),
        cache_read=_number(form, "cache_read_input_tokens"),
        cache_write=_number(form, "cache_creation_input_tokens"),
        output=written if written is None or thought is None else written - thought,
        reasoning=thought,
    )
    return None if usage == Usage() else usage


def _number(form: JSON, key: str) -> int | None:
    value = form.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
