"""How a Responses answer ends: its status, the error that it broke off with, and what it cost, in our words.

Three tables and what reads them. Unlike `refusals`, which judges by HTTP status, an error here comes inside an answer with status
200 and is known by its code alone.
"""

from __future__ import annotations

from typing import Any, Final

from nb_agent.adapters.refusals import failure
from nb_agent.adapters.responses.items import word
from nb_agent.errors import ProviderError
from nb_agent.messages import Finish
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = ["ERRORS", "FINISH", "failed", "usage"]

#: The status of a response, or the reason of one that is ``incomplete`` -> ours. A word that is not here is never "stop".
FINISH: Final[dict[str, Finish]] = {
    "completed": "stop",
    "cancelled": "cancelled",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
}

#: Code of an error inside an answer -> kind of error, and whether trying again may help where that kind alone does not say it.
ERRORS: Final[dict[str, tuple[str, bool | None]]] = {
    "rate_limit_exceeded": ("rate_limit", None),
    "rate_limit_error": ("rate_limit", None),
    "too_many_requests": ("rate_limit", None),
    "insufficient_quota": ("rate_limit", False),
    "usage_limit_reached": ("rate_limit", False),
    "server_is_overloaded": ("overload", None),
    "overloaded": ("overload", None),
    "overloaded_error": ("overload", None),
    "slow_down": ("overload", None),
    "server_error": ("server", None),
    "vector_store_timeout": ("timeout", None),
    "context_length_exceeded": ("context_length", None),
    "invalid_api_key": ("authentication", None),
    "model_not_found": ("not_found", None),
    "content_filter": ("content_filter", None),
    "content_policy_violation": ("content_filter", None),
    "bio_policy": ("content_filter", None),
    "misalignment_policy_violation": ("content_filter", None),
    "image_content_policy_violation": ("content_filter", None),
}
#: What other codes that begin so stand for: the request has to change.
_BAD_REQUEST: Final = (
    "invalid_",
    "unsupported_",
    "image_",
    "empty_image",
    "failed_to_download",
    "previous_response",
    "data_residency",
)


def failed(payload: JSON) -> ProviderError:
    """The error in an ``error`` event (flat, or nested as Azure has it), in a failed response, or in the body itself."""
    inner = payload.get("error") or {key: value for key, value in payload.items() if key != "type"}
    error = failure({"error": inner}) or ProviderError("the model server broke off with an error", kind="server")
    code = word(inner.get("code") or inner.get("type")) if isinstance(inner, dict) else ""
    bad = error.status is None and code.startswith(_BAD_REQUEST)
    kind, retryable = ERRORS.get(code) or ("bad_request" if bad else error.kind, None)
    if error.kind == "context_length":
        kind, retryable = error.kind, None
    return ProviderError(str(error), kind=kind, status=error.status, retryable=retryable)


def usage(form: Any) -> Usage | None:
    """OpenAI counts cached tokens into ``input_tokens`` and reasoning into ``output_tokens``; our buckets are disjoint."""
    if not isinstance(form, dict):
        return None
    cached, stored = _number(form.get("input_tokens_details"), "cached_tokens", "cache_write_tokens")
    (reasoning,) = _number(form.get("output_tokens_details"), "reasoning_tokens")
    read, written, prompt, completion = _number(form, "input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")
    return Usage(
        input=_less(prompt if read is None else read, cached, stored),
        cache_read=cached,
        cache_write=stored,
        output=_less(completion if written is None else written, reasoning),
        reasoning=reasoning,
    )


def _number(form: Any, *keys: str) -> list[int | None]:
    values = [form.get(key) if isinstance(form, dict) else None for key in keys]
    return [value if isinstance(value, int) and not isinstance(value, bool) else None for value in values]


def _less(whole: int | None, *parts: int | None) -> int | None:
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))
