"""An error answer of a model server -> one `ProviderError`, whatever form the server gives it.

Unlike the formats' own modules this one is shared: the servers that imitate a format mostly do not imitate its errors.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from nb_agent.errors import ProviderError

__all__ = ["failure", "refusal"]

#: HTTP status -> kind of error; what is not listed goes by its hundreds.
KIND_OF_STATUS: Final = {
    401: "authentication",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    413: "context_length",
    429: "rate_limit",
    503: "overload",
    504: "timeout",
    529: "overload",  # Anthropic's own
}

#: What servers say when the input does not fit into the context window. Limits per minute are worded differently.
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|context window|exceed_context_size|prompt is too long|prompt too long"
    r"|input is too long|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
_MOST_CHARACTERS: Final = 500  # of the server's own words: some send a whole page


def refusal(status: int, content: bytes) -> ProviderError:
    """The error that an answer with a status of 400 and more stands for, with the server's own words in one line."""
    words, _ = _words(_parsed(content))
    return _error(status, words or content.decode("utf-8", "replace"), f"the model server answered HTTP {status}")


def failure(body: Any) -> ProviderError | None:
    """The error inside an answer with status 200 or in the middle of a stream; ``None`` where there is none.

    >>> failure({"error": {"message": "no slots", "code": 503}}).kind
    'overload'
    """
    if not isinstance(body, dict) or not body.get("error"):
        return None
    words, code = _words(body)
    return _error(code, words, "the model server broke off with an error")


def _error(status: int | None, words: str, said: str) -> ProviderError:
    kind = _kind(status, words)
    line = " ".join(words.split())
    if len(line) > _MOST_CHARACTERS:
        line = line[:_MOST_CHARACTERS] + " …"
    return ProviderError(f"{said}: {line or '(no words)'}", kind=kind, status=status)


def _kind(status: int | None, words: str) -> str:
    if status not in (401, 403, 429) and _TOO_LONG.search(words):
        return "context_length"
    if status is None:
        return "server"
    return KIND_OF_STATUS.get(status, "bad_request" if status < 500 else "server")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _words(body: Any) -> tuple[str, int | None]:
    """The message and the numeric code of an error body; servers nest them, give a bare string, or say ``detail``."""
    if isinstance(body, list) and body:  # Gemini streams send a list of one
        body = body[0]
    if not isinstance(body, dict):
        return "", None
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return str(inner), None
    words = inner.get("message") or inner.get("detail") or body.get("message") or json.dumps(inner, ensure_ascii=False)
    kind = inner.get("code") or inner.get("type")
    code = next((value for value in (inner.get("code"), inner.get("status_code"), inner.get("status")) if _status(value)), None)
    named = f" ({kind})" if isinstance(kind, str) and kind not in str(words) else ""
    return f"{words}{named}", int(code) if code is not None else None


def _status(value: Any) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool) and re.fullmatch(r"[1-5]\d\d", str(value)) is not None
