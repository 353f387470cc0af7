"""Puts one Chat Completions reply together from its pieces, however the server cuts them.

Fragments of a call are joined by choice and by the call's index or id. Servers that imitate the format repeat names, give every
call index 0, leave ids empty, send arguments as objects or finish twice; what can be told apart is told apart here, and what
cannot is an error and never guessed. One `Accumulator` for each reply. `chat_completions` uses it for whole answers too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from nb_agent.adapters import sse
from nb_agent.adapters.refusals import failure
from nb_agent.errors import ProviderError
from nb_agent.messages import Finish, Message, Part, Piece, Reply, Text, Thinking, ToolCall
from nb_agent.usage import Usage
from nb_agent.values import JSON, dumps

__all__ = ["NAME", "Accumulator"]

NAME: Final = "chat_completions"

#: The server's own word -> ours. A word that is not here is never taken for "stop".
FINISH: Final[dict[str, Finish]] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "error": "error",
    "insufficient_system_resource": "error",
}

#: Where servers put the reasoning that they show.
_THINKING: Final = ("reasoning_content", "reasoning")


#: The fields of a piece of an answer that hold words, and those of a call that are no extra of its server.
_WORDS: Final = frozenset({"content", "refusal", *_THINKING})
_USUAL: Final = frozenset({"index", "id", "type", "function"})

#: The fields of a payload that a whole answer has too.
_HEAD: Final = ("id", "model", "created")


@dataclass(slots=True)
class _Call:
    place: int  # in the reply
    index: int  # the server's
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: JSON = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    @property
    def whole(self) -> bool:
        """Whether the arguments are a finished JSON object, so that nothing can be missing from them."""
        try:
            return isinstance(json.loads(self.text), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(slots=True)
class _Choice:
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    thinking_field: str = ""
    refusal: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    latest: dict[int, _Call] = field(default_factory=dict)  # the server's index -> the call last begun under it
    finish: list[str] = field(default_factory=list)

    def begin(self, index: Any) -> _Call:
        """A new call."""
        place = len(self.calls)
        call = _Call(place, index if isinstance(index, int) else place)
        self.calls.append(call)
        self.latest[call.index] = call
        return call


class Accumulator:
    """The state of one reply. ``turn`` is its place in the history: ids made up here are never given out twice."""

    def __init__(self, *, turn: int = 0) -> None:
        self._turn = turn
        self._choices: dict[int, _Choice] = {}
        self._usage: JSON | None = None
        self._head: JSON = {}
        self._ended = False
        self._notices: list[str] = []

    def feed(self, payload: Any) -> tuple[Piece, ...]:
        """Take one payload in; the pieces that it brought.

        Raises:
            ProviderError: it is an error, or no JSON.
        """
        if isinstance(payload, str):
            if payload.strip() == "[DONE]":
                self._ended = True
                return ()
            payload = sse.parsed(payload)
        if not isinstance(payload, dict):
            raise ProviderError(f"the model server sent something that is not a JSON object: {str(payload)[:200]}", kind="protocol")
        choices = payload.get("choices")
        if ("error" in payload or not choices) and (error := failure(payload)):
            raise error
        if len(self._head) < len(_HEAD):
            for key in _HEAD:
                if payload.get(key):
                    self._head.setdefault(key, payload[key])
        if "usage" in payload or "x_groq" in payload:
            self._usage = _usage_of(payload) or self._usage
        pieces: list[Piece] = []
        for choice in _entries(choices):
            pieces += self._choice(choice)
        return tuple(pieces)

    def done(self, *, whole: bool = False) -> Reply:
        """The reply, when the stream has ended; ``whole`` says that it was one document.

        Raises:
            ProviderError: the stream was cut off, or held no answer.
        """
        if not self._choices and not self._ended:
            raise ProviderError(
                f"the model server sent no answer: {dumps(self._head)}", kind="protocol" if whole else "stream_interrupted"
            )
        chosen = self._choices.get(0) or (self._choices[min(self._choices)] if self._choices else _Choice())
        if not (chosen.finish or self._ended or whole):
            raise ProviderError("the stream broke off before the model had finished", kind="stream_interrupted")
        finish = self._finish(chosen)
        others = tuple(self._message(other, number) for number, other in sorted(self._choices.items()) if other is not chosen)
        return Reply(
            self._message(chosen),
            finish,
            raw_finish=chosen.finish[0] if chosen.finish else None,
            usage=_usage(self._usage),
            id=_text(self._head.get("id")),
            model=_text(self._head.get("model")),
            body=self._body(),
            others=others,
            notices=tuple(self._notices),
        )

    # ------------------------------------------------------------------------------------------------- one choice

    def _choice(self, form: JSON) -> list[Piece]:
        number = form.get("index")
        if not isinstance(number, int):
            number = 0
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice()
        delta = form.get("message") or form.get("delta")
        if not isinstance(delta, dict):
            delta = {}
        pieces = [] if _WORDS.isdisjoint(delta) else self._words(choice, delta, number)
        calls = delta.get("tool_calls") or ([{"function": delta["function_call"]}] if delta.get("function_call") else [])
        for entry in _entries(calls):
            pieces += self._call(choice, entry, number)
        if form.get("finish_reason"):
            choice.finish.append(str(form["finish_reason"]))
        return pieces

    def _words(self, choice: _Choice, delta: JSON, number: int) -> list[Piece]:
        return [
            *self._thinking(choice, delta, number),
            *[self._text(choice.text, "text", part, number) for part in _texts(delta.get("content"))],
            *[self._text(choice.refusal, "refusal", part, number) for part in _texts(delta.get("refusal"))],
        ]

    @staticmethod
    def _text(held: list[str], kind: Any, text: str, number: int) -> Piece:
        held.append(text)
        return Piece(kind, text, choice=number)

    def _thinking(self, choice: _Choice, delta: JSON, number: int) -> list[Piece]:
        name = next((name for name in _THINKING if isinstance(delta.get(name), str) and delta[name]), None)
        shown = [str(part.get("thinking") or "") for part in _entries(delta.get("content")) if part.get("type") == "thinking"]
        if name is not None:
            choice.thinking_field = name
            shown.append(delta[name])
        return [self._text(choice.thinking, "thinking", text, number) for text in shown if text]

    # --------------------------------------------------------------------------------------------------- one call

    def _call(self, choice: _Choice, entry: JSON, number: int) -> list[Piece]:
        function = _object(entry.get("function"))
        name, arguments = _text(function.get("name")) or "", _argument_text(function.get("arguments"))
        call = _continued(choice, entry, name, arguments) or choice.begin(entry.get("index"))
        pieces: list[Piece] = []
        call.id = call.id or str(entry.get("id") or "")
        if not _USUAL.issuperset(entry):
            call.extra |= {key: value for key, value in entry.items() if key not in _USUAL and value}
        if name and (new := _new_name(call, name)):
            pieces.append(Piece("call", new, call.place, number))
            call.name += new
        if arguments:
            call.arguments.append(arguments)
            pieces.append(Piece("arguments", arguments, call.place, number))
        return pieces

    # --------------------------------------------------------------------------------------------------- the whole

    def _finish(self, choice: _Choice) -> Finish:
        raw = choice.finish[0] if choice.finish else ""
        if len(set(choice.finish)) > 1:
            self._notices.append(f"the server finished several times: {', '.join(choice.finish)}")
        if not raw:
            self._notices.append("the server gave no finish reason")
            if any(not call.whole for call in choice.calls if call.text.strip()):
                raise ProviderError("the stream broke off in the middle of a call's arguments", kind="stream_interrupted")
        finish = FINISH.get(raw, "error") if raw else "stop"
        if finish == "error" and raw not in FINISH:
            self._notices.append(f"the server ended with a finish reason that is not known: {raw!r}")
        if choice.refusal and finish == "stop":
            return "content_filter"
        if finish in ("stop", "tool_calls"):  # servers mix these two up: what the message holds decides
            return "tool_calls" if choice.calls else "stop"
        return finish

    def _message(self, choice: _Choice, number: int = 0) -> Message:
        parts: list[Part] = []
        if choice.thinking:
            back = {"wire": NAME, "field": choice.thinking_field} if choice.thinking_field else None
            parts.append(Thinking("".join(choice.thinking), extra=back))
        if text := "".join(choice.text):
            parts.append(Text(text))
        if refusal := "".join(choice.refusal):
            parts.append(Text(refusal, extra={"refusal": True}))
        taken: set[str] = set()
        for place, call in enumerate(choice.calls):
            made_up = f"call_{self._turn}_{number}_{place}" if number else f"call_{self._turn}_{place}"
            given = call.id if call.id and call.id not in taken else made_up
            taken.add(given)
            parts.append(ToolCall(given, call.name, call.text, extra={"wire": NAME, "fields": call.extra} if call.extra else None))
        return Message("assistant", tuple(parts))

    def _body(self) -> JSON:
        """The answer as if it had come unstreamed."""
        choices = [
            {"index": number, "message": _message_body(choice), "finish_reason": choice.finish[0] if choice.finish else None}
            for number, choice in sorted(self._choices.items())
        ]
        return {"object": "chat.completion", **self._head, "choices": choices} | ({"usage": self._usage} if self._usage else {})


def _object(value: Any) -> JSON:
    """The object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _entries(content: Any) -> list[JSON]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    return [part["text"] for part in _entries(content) if isinstance(part.get("text"), str) and part["text"]]


def _argument_text(arguments: Any) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else dumps(arguments)


def _continued(choice: _Choice, entry: JSON, name: str, arguments: str) -> _Call | None:
    """The call that a fragment belongs to, ``None`` where it begins a new one."""
    calls = choice.calls
    given, index = str(entry.get("id") or ""), entry.get("index")
    if given and (same := next((call for call in reversed(calls) if call.id == given), None)):
        return None if name and same.whole and arguments and index != same.index else same
    found = choice.latest.get(index) if isinstance(index, int) else calls[-1] if calls and not given else None
    if found is None or (given and found.id):  # a new id under an old index: some servers give every call index 0
        return None
    return None if name and arguments and found.whole else found


def _new_name(call: _Call, name: str) -> str:
    """What a fragment adds to the call's name: servers send it once, or again in each piece, or cut in two."""
    if not name or name == call.name or call.arguments:
        return ""
    return name.removeprefix(call.name)


def _message_body(choice: _Choice) -> JSON:
    form: JSON = {"role": "assistant", "content": "".join(choice.text) or None}
    if choice.refusal:
        form["refusal"] = "".join(choice.refusal)
    if choice.thinking:
        form[choice.thinking_field or "reasoning_content"] = "".join(choice.thinking)
    if choice.calls:
        form["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}} | call.extra
            for call in choice.calls
        ]
    return form


def _usage_of(payload: JSON) -> JSON | None:
    usage = payload.get("usage") or _object(payload.get("x_groq")).get("usage")
    return usage if isinstance(usage, dict) else None


def _usage(form: JSON | None) -> Usage | None:
    """OpenAI counts cached tokens into ``prompt_tokens`` and reasoning into ``completion_tokens``; our buckets are disjoint."""
    if form is None:
        return None
    read, written = _object(form.get("prompt_tokens_details")), _object(form.get("completion_tokens_details"))
    cached = _number(read.get("cached_tokens", form.get("prompt_cache_hit_tokens")))
    stored, reasoning = _number(read.get("cache_write_tokens")), _number(written.get("reasoning_tokens"))
    return Usage(
        input=_less(_number(form.get("prompt_tokens")), cached, stored),
        cache_read=cached,
        cache_write=stored,
        output=_less(_number(form.get("completion_tokens")), reasoning),
        reasoning=reasoning,
    )


def _less(whole: int | None, *parts: int | None) -> int | None:
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))
