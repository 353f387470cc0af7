"""An error answer of a model server -> one `ProviderError`, whatever form the server gives it.

Unlike the formats' own modules this one is shared: the servers that imitate a format mostly do not imitate its errors. It finds
what a body says, and `error_kinds` which kind that is. It knows no header and no key: `transport` masks the body before it comes
here, and `retrying` reads the headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nb_agent.adapters.error_kinds import kind_of
from nb_agent.errors import WHAT_TO_DO, ProviderError

__all__ = ["failure", "joined", "readable", "refusal"]

_COME_BACK: Final = re.compile(
    r"(?:try again|retry)(?: your request)? (?:in|after) ((?:[\d.]+ ?(?:ms|h|m|s)[a-z]* ?)+)", re.IGNORECASE
)

_MOST_CHARACTERS: Final = 500  # of the server's own words: some send a whole page
#: Kinds whose next step is added to the server's words, which seldom name it.
_ADVISED: Final = frozenset({"authentication", "billing", "not_found", "context_length"})


@dataclass(slots=True)
class _Fault:
    """What an error body says."""

    words: str = ""
    names: tuple[str, ...] = ()
    status: int | None = None
    wait: float | None = None  # seconds
    request_id: str | None = None
    by_day: bool = False  # a quota that the next minute does not bring back


def refusal(status: int, content: bytes, *, model: str = "") -> ProviderError:
    """The error that an answer with a status of 400 and more stands for, with the server's own words in one line.

    Args:
        status: the HTTP status.
        content: the body, in which the key is masked already.
        model: the model that was asked for; it is named where it was not found.
    """
    fault = _fault(_parsed(content))
    fault.words = fault.words or readable(content.decode("utf-8", "replace"))
    fault.status = status
    return _error(fault, f"the model server answered HTTP {status}", model)


def failure(body: Any) -> ProviderError | None:
    """The error inside an answer with status 200 or in the middle of a stream; ``None`` where there is none.

    >>> failure({"error": {"message": "no slots", "code": 503}}).kind
    'overload'
    """
    if not isinstance(body, dict):
        return None
    inside = body.get("response")
    if body.get("type") == "response.failed" and isinstance(inside, dict) and inside.get("error"):
        body = inside
    if not (body.get("error") or ("error" in (body.get("type"), body.get("object")) and body.get("message"))):
        return None
    return _error(_fault(body), "the model server broke off with an error", "")


def _error(fault: _Fault, said: str, model: str) -> ProviderError:
    kind = kind_of(fault.status, fault.words, fault.names)
    line = " ".join(fault.words.split())
    if len(line) > _MOST_CHARACTERS:
        line = line[:_MOST_CHARACTERS] + " …"
    if kind == "not_found" and model and model not in line:
        line += f" (the model asked for is {model!r})"
    message = f"{said}: {line or '(no words)'}"
    return ProviderError(
        joined(message, WHAT_TO_DO[kind]) if kind in _ADVISED else message,
        kind=kind,
        status=fault.status,
        retryable=False if fault.by_day or fault.status == 501 else None,
        retry_after=fault.wait if fault.wait is not None else _wait_in(fault.words, kind),
        request_id=fault.request_id,
    )


def joined(words: str, more: str) -> str:
    """A server's words, kept as they are, and ours after them.

    >>> joined("Bad key.", "check the key"), joined("bad key", "check the key")
    ('Bad key. Check the key', 'bad key; check the key')
    """
    return f"{words} {more[0].upper()}{more[1:]}" if words.endswith((".", "!", "?", "。")) else f"{words}; {more}"


# ------------------------------------------------------------------------------------------------------- what a body says


def _parsed(content: bytes | str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def readable(text: str) -> str:
    """A body that is no JSON; of a web page its title, or what is left without the tags.

    >>> readable("<html><head><title>502 Bad Gateway</title></head></html>")
    '502 Bad Gateway'
    """
    if not re.match(r"\s*(<!doctype html|<html|<\?xml|<head|<body|<center)", text, re.IGNORECASE):
        return text
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return title[1] if title and title[1].strip() else re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)


def _fault(body: Any) -> _Fault:
    """What an error body says; servers nest it, give a bare string or a list, or say ``detail``."""
    if isinstance(body, list) and body:  # Gemini streams send a list of one
        body = body[0]
    if not isinstance(body, dict):
        return _Fault(body if isinstance(body, str) else "")
    inner = body.get("error") or _first(body.get("errors")) or body
    inner = _first(inner) if isinstance(inner, list) else inner
    inner = inner if isinstance(inner, dict) else {"message": inner}
    forms = [inner] if inner is body else [inner, body]
    names = tuple(_names(forms))
    words = next((spelled for form in forms if (spelled := _words(form))), "") or json.dumps(inner, ensure_ascii=False)
    exception = re.match(r"(\w+Exception)\b", words)
    fault = _Fault(_with_details(words, inner, names), (*names, exception[1]) if exception else names)
    fault.status = next((int(str(form[key])) for form in forms for key in _STATUS if _is_status(form.get(key))), None)
    fault.request_id = next((value for form in forms if isinstance(value := form.get("request_id"), str)), None)
    for detail in _details(inner):
        fault.wait = _seconds(detail["retryDelay"]) if "retryDelay" in detail else fault.wait
        fault.by_day = fault.by_day or "PerDay" in json.dumps(detail.get("violations") or "")
    return fault


#: Names that add nothing to a status.
_SAY_NOTHING: Final = frozenset({"invalid_request_error", "api_error", "server_error", "error", "INVALID_ARGUMENT"})
_STATUS: Final = ("code", "status_code", "status", "http_code")
_WORDS: Final = ("message", "msg", "Message", "detail", "error_message", "error_description", "error", "reason", "title")
_NAMES: Final = ("code", "type", "status", "error_type", "__type", "reason", "error_code")


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _is_status(value: Any) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool) and re.fullmatch(r"[45]\d\d", str(value)) is not None


def _details(inner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Gemini's list of details, or Anthropic's one."""
    details = inner.get("details")
    return [detail for detail in (details if isinstance(details, list) else [details]) if isinstance(detail, dict)]


def _names(forms: list[dict[str, Any]]) -> Iterator[str]:
    """All that could be a name of the error, the most exact first."""
    inside = forms[0].get("innererror")  # Azure
    for form in (*_details(forms[0]), inside if isinstance(inside, dict) else {}, *forms):
        yield from (value for key in _NAMES if isinstance(value := form.get(key), str) and re.search(r"[A-Za-z]", value))


def _words(form: Mapping[str, Any]) -> str:
    return next((spelled for key in _WORDS if form.get(key) and (spelled := _spelled(form[key]))), "")


def _spelled(value: Any) -> str:
    """Words, or a list of what is wrong (pydantic's, which vLLM, Mistral and FastAPI send), as one text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(filter(None, map(_spelled, value)))
    if isinstance(value, dict):
        place = ".".join(str(step) for step in value["loc"]) + ": " if isinstance(value.get("loc"), list) else ""
        return place + (_words(value) or json.dumps(value, ensure_ascii=False))
    return ""


def _with_details(words: str, inner: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The words with what they may leave out: the field, the quota, the words of a server behind, the name of the error."""
    said = [words]
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None  # OpenRouter
    if raw:
        said.append(_fault(_parsed(raw) or raw).words if isinstance(raw, str) else _fault(raw).words)
    entries = [entry for detail in _details(inner) for entry in _entries(detail)]
    fields = [entry.get("field") or entry.get("quotaId") for entry in entries] + [inner.get("param")]
    missing = [name for name in fields if isinstance(name, str) and name and name not in words]
    missing += [f"n_ctx {size}" for size in [inner.get("n_ctx")] if isinstance(size, int) and str(size) not in words]  # llama.cpp
    missing += [name for name in names[:1] if re.fullmatch(r"\w+", name) and name not in words and name not in _SAY_NOTHING]
    return ": ".join(filter(None, said)) + (f" ({', '.join(dict.fromkeys(missing))})" if missing else "")


def _entries(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    lists = [detail.get(key) for key in ("fieldViolations", "violations")]
    return [entry for found in lists if isinstance(found, list) for entry in found if isinstance(entry, dict)]


# ------------------------------------------------------------------------------------------------------- when to come back

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(delay: Any) -> float | None:
    """A duration of protobuf's JSON form, such as ``"48s"``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)s", delay) if isinstance(delay, str) else None
    return float(found[1]) if found else None


def _wait_in(words: str, kind: str) -> float | None:
    """The wait that the words ask for: servers without the header write "Please try again in 1m12.5s"."""
    found = _COME_BACK.search(words) if kind in {"rate_limit", "overload"} else None
    if found is None:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|h|m|s)", found[1], re.IGNORECASE)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts) or None
