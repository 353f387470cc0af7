"""Puts one Gemini reply together from its payloads: each is a whole answer with the next stretch of its parts.

Text comes in fragments and a call comes whole. Fragments are joined from payload to payload as long as nothing but text is in them:
a part with a thought signature is never joined with another, since it has to go back as it came. There is no marker for the end; a
reply without a finish reason was cut off. One `Accumulator` for each reply. `gemini_generate` uses it for whole answers too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from nb_agent.adapters import sse
from nb_agent.adapters.gemini_generate.parts import NAME, argument_text, read, read_call
from nb_agent.adapters.refusals import failure
from nb_agent.errors import ProviderError
from nb_agent.messages import Finish, Message, Part, Piece, Reply
from nb_agent.usage import Usage
from nb_agent.values import JSON, dumps

__all__ = ["FINISH", "STATUS", "Accumulator"]

#: The server's own word -> ours. A word that is not here is never taken for "stop".
FINISH: Final[dict[str, Finish]] = {
    "STOP": "stop",
    "FUNCTION_CALL": "stop",  # said by servers that imitate the format; the call itself decides
    "MAX_TOKENS": "length",
    "CONTINUATION": "paused",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "ESCALATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "PUP_LIMITED_DISABLED": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "MALFORMED_RESPONSE": "error",
    "NO_IMAGE": "error",
    "IMAGE_OTHER": "error",
    "OTHER": "error",
}

#: Word of an error (google.rpc.Code) -> HTTP status, for errors that bring no number.
STATUS: Final = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


@dataclass(slots=True)
class _Part:
    """A part as it came; of text that goes on in later payloads, ``form`` holds what is not text."""

    form: JSON
    texts: list[str] | None = None

    @property
    def whole(self) -> JSON:
        return self.form if self.texts is None else {"text": "".join(self.texts), **self.form}


@dataclass(slots=True)
class _Candidate:
    parts: list[_Part] = field(default_factory=list)
    calls: int = 0
    finish: list[str] = field(default_factory=list)
    rest: JSON = field(default_factory=dict)

    @property
    def word(self) -> str | None:
        """Why it ended. Some models say STOP in every payload; another word among them is the reason."""
        return next((word for word in self.finish if word != "STOP"), "STOP" if self.finish else None)


class Accumulator:
    """The state of one reply. ``turn`` is its place in the history: ids made up here are never given out twice."""

    def __init__(self, *, turn: int = 0) -> None:
        self._turn = turn
        self._candidates: dict[int, _Candidate] = {}
        self._usage: JSON = {}
        self._rest: JSON = {}
        self._ended = False
        self._notices: list[str] = []

    def feed(self, payload: Any) -> tuple[Piece, ...]:
        """Take one payload in; the pieces that it brought. A list of payloads is what comes without ``alt=sse``.

        Raises:
            ProviderError: it is an error, or no JSON object.
        """
        if isinstance(payload, str):
            if payload.strip() == "[DONE]":  # Gemini sends none, but gateways do
                self._ended = True
                return ()
            payload = sse.parsed(payload)
        return tuple(piece for body in (payload if isinstance(payload, list) else [payload]) for piece in self._taken(body))

    def done(self, *, whole: bool = False) -> Reply:
        """The reply, when the stream has ended; ``whole`` says that it was one document.

        Raises:
            ProviderError: the stream was cut off, or held no answer.
        """
        reason = _dict(self._rest.get("promptFeedback")).get("blockReason")
        if not self._candidates and not reason:
            text = dumps(self._body())[:200]
            raise ProviderError(f"the model server sent no answer: {text}", kind="protocol" if whole else "stream_interrupted")
        chosen = self._candidates[min(self._candidates)] if self._candidates else _Candidate()
        if not (chosen.finish or reason or self._ended or whole):
            raise ProviderError("the stream broke off before the model had finished", kind="stream_interrupted")
        raw = chosen.word
        finish = self._blocked(str(reason)) if reason and raw is None else self._finish(chosen, raw)
        others = [self._message(other, number) for number, other in sorted(self._candidates.items()) if other is not chosen]
        return Reply(
            self._message(chosen),
            finish,
            raw_finish=raw or (str(reason) if reason else None),
            usage=_usage(self._usage),
            id=_text(self._rest.get("responseId")),
            model=_text(self._rest.get("modelVersion")),
            body=self._body(),
            others=tuple(others),
            notices=tuple(self._notices),
        )

    # ------------------------------------------------------------------------------------------------- one payload

    def _taken(self, body: Any) -> list[Piece]:
        if not isinstance(body, dict):
            raise ProviderError(f"the model server sent something that is not a JSON object: {str(body)[:200]}", kind="protocol")
        if error := failure(_numbered(body)):
            raise error
        self._usage |= _dict(body.get("usageMetadata"))  # cumulative: the last number counts
        self._rest |= {key: value for key, value in body.items() if key not in ("candidates", "usageMetadata", "error")}
        entries = [entry for entry in _list(body.get("candidates")) if isinstance(entry, dict)]
        counted = any(_whole_number(entry.get("index")) for entry in entries)  # index 0 is left out, as all zeros are
        pieces: list[Piece] = []
        for place, entry in enumerate(entries):
            number = entry["index"] if _whole_number(entry.get("index")) else 0 if counted else place
            pieces += self._candidate(entry, number)
        return pieces

    def _candidate(self, entry: JSON, number: int) -> list[Piece]:
        held = self._candidates.setdefault(number, _Candidate())
        held.rest |= {key: value for key, value in entry.items() if key not in ("content", "finishReason", "index")}
        if entry.get("finishReason"):
            held.finish.append(str(entry["finishReason"]))
        parts = [part for part in _list(_dict(entry.get("content")).get("parts")) if isinstance(part, dict) and part]
        pieces = [self._part(held, part, number, first=place == 0) for place, part in enumerate(parts)]
        return [piece for group in pieces for piece in group]

    @staticmethod
    def _part(held: _Candidate, part: JSON, number: int, *, first: bool) -> list[Piece]:
        if isinstance(call := part.get("functionCall"), dict):
            if call.get("partialArgs") or call.get("willContinue"):
                words = "the model server sent a call in fragments; leave streamFunctionCallArguments out of the request"
                raise ProviderError(words, kind="protocol")
            held.parts.append(_Part(part))
            held.calls += 1
            index = held.calls - 1
            arguments = argument_text(call.get("args"))
            return [Piece("call", str(call.get("name") or ""), index, number), Piece("arguments", arguments, index, number)]
        if not isinstance(text := part.get("text"), str):
            held.parts.append(_Part(part))
            return []
        rest = {key: value for key, value in part.items() if key != "text"}
        last = held.parts[-1] if held.parts else None
        if first and last and last.texts is not None and last.form == rest and not rest.keys() - {"thought"}:
            last.texts.append(text)
        elif text or rest.keys() - {"thought"}:
            held.parts.append(_Part(rest, [text]))
        return [Piece("thinking" if part.get("thought") else "text", text, choice=number)] if text else []

    # --------------------------------------------------------------------------------------------------- the whole

    def _finish(self, chosen: _Candidate, raw: str | None) -> Finish:
        if raw is None:
            self._notices.append("the server gave no finish reason")
        finish = "stop" if raw is None else FINISH.get(raw, "error")
        if finish == "stop":  # calls end with STOP too: what the message holds decides
            return "tool_calls" if chosen.calls else "stop"
        said = _text(chosen.rest.get("finishMessage"))
        if raw not in FINISH:
            self._notices.append(f"the server ended with a finish reason that is not known: {raw!r}")
        elif finish in ("error", "content_filter"):
            self._notices.append(f"the model ended with {raw}" + (f": {said}" if said else ""))
        return finish

    def _blocked(self, reason: str) -> Finish:
        said = _text(_dict(self._rest.get("promptFeedback")).get("blockReasonMessage"))
        self._notices.append(f"the provider blocked the prompt ({reason})" + (f": {said}" if said else ""))
        return "content_filter"

    def _message(self, candidate: _Candidate, number: int = 0) -> Message:
        parts: list[Part] = []
        taken: set[str] = set()
        place = 0
        for held in candidate.parts:
            form = held.whole
            if not isinstance(form.get("functionCall"), dict):
                parts.append(read(form))
                continue
            given = form["functionCall"].get("id")
            made_up = f"call_{self._turn}_{number}_{place}" if number else f"call_{self._turn}_{place}"
            name = given if isinstance(given, str) and given and given not in taken else made_up
            taken.add(name)
            parts.append(read_call(name, form))
            place += 1
        token = candidate.rest.get("continuationToken")
        return Message("assistant", tuple(parts), extra={"wire": NAME, "continuationToken": token} if token else None)

    def _body(self) -> JSON:
        """The answer as if it had come unstreamed."""
        candidates = []
        for number, held in sorted(self._candidates.items()):
            entry: JSON = {"content": {"role": "model", "parts": [part.whole for part in held.parts]}}
            candidates.append(entry | ({"finishReason": held.word} if held.word else {}) | {"index": number} | held.rest)
        body: JSON = {"candidates": candidates} if candidates else {}
        return body | ({"usageMetadata": self._usage} if self._usage else {}) | self._rest


def _numbered(body: JSON) -> JSON:
    """An error that names its kind in a word alone gets the number that goes with it."""
    error = body.get("error")
    if (
        isinstance(error, dict)
        and (word := _text(error.get("status"))) in STATUS
        and not 100 <= (_number(error.get("code")) or 0) < 600
    ):
        return {"error": error | {"code": STATUS[word]}}
    return body


def _usage(form: JSON) -> Usage | None:
    """Cached tokens are counted into the prompt, thoughts are not counted into the answer; a number that is zero is left out."""
    if not form:
        return None
    cached, thoughts = _number(form.get("cachedContentTokenCount")), _number(form.get("thoughtsTokenCount"))
    read = (_number(form.get("promptTokenCount")) or 0) + (_number(form.get("toolUsePromptTokenCount")) or 0)
    return Usage(
        input=read - (cached or 0), cache_read=cached, output=_number(form.get("candidatesTokenCount")) or 0, reasoning=thoughts
    )


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _dict(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
