"""Puts one Anthropic Messages reply together from the events of its stream, or from the whole message.

Unlike Chat Completions the reply is a list of blocks: text, thinking, calls and what only this API knows stand in an order that has
to be kept, since all of it goes back. Counts of tokens are running totals: a later one replaces an earlier one. One `Accumulator`
for each reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from nb_agent.adapters import sse
from nb_agent.adapters.anthropic_messages.words import FINISH, failed, refused, sound, spent
from nb_agent.errors import ProviderError
from nb_agent.messages import Finish, Message, Opaque, Part, Piece, Reply, Text, Thinking, ToolCall
from nb_agent.values import JSON, dumps

__all__ = ["Accumulator"]

_NAME: Final = "anthropic_messages"

#: Type of a delta -> its key, and the type of block that it makes longer; ``None`` for a block that holds JSON.
_DELTAS: Final[dict[str, tuple[str, str | None]]] = {
    "text_delta": ("text", "text"),
    "citations_delta": ("citation", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "thinking"),
    "input_json_delta": ("partial_json", None),
}
_PROSE: Final = ("text", "thinking")  # the types of block whose text is under a key of the same name
_KNOWN: Final = frozenset({"type", "id", "name", "input", *_PROSE})  # keys with a place of their own among our values


@dataclass(slots=True)
class _Block:
    form: JSON  # as it began
    call: int | None = None  # its place among the calls, where it is one
    held: list[str] = field(default_factory=list)  # fragments of its text, or of its JSON

    @property
    def kind(self) -> Any:
        return self.form.get("type")

    def whole(self) -> tuple[JSON, str]:
        """The block as it stands in an unstreamed answer, and the text of its arguments, where it has any.

        Arguments that are no JSON object, such as those that were cut off, stay the text that they are.
        """
        text = "".join(self.held)
        if self.kind in _PROSE:
            return {**self.form, self.kind: text}, ""
        if self.call is None and not text:
            return self.form, ""
        text = text if text.strip() else _argument_text(self.form.get("input"))
        made = sound(text)
        return {**self.form, "input": text if made is None else made}, text if made is None else dumps(made)


def _argument_text(given: Any) -> str:
    text = given if isinstance(given, str) else dumps({} if given is None else given)
    return text if text.strip() else "{}"


class Accumulator:
    """The state of one reply. ``turn`` is its place in the history: ids made up here are never given out twice."""

    def __init__(self, *, turn: int = 0) -> None:
        self._turn = turn
        self._blocks: list[_Block] = []
        self._at: dict[int | None, _Block] = {}  # the block that an index stands for now: some servers give every block index 0
        self._calls = 0
        self._head: JSON = {}
        self._usage: JSON = {}
        self._ended = False
        self._notices: list[str] = []

    def feed(self, payload: Any) -> tuple[Piece, ...]:
        """Take one payload in; the pieces that it brought. Events and deltas of unknown types are passed over.

        Raises:
            ProviderError: it is an error, no JSON, or belongs to a call that never began.
        """
        if isinstance(payload, str):
            if payload.strip() == "[DONE]":  # no event of this API, but some imitating servers send it
                self._ended = True
                return ()
            payload = sse.parsed(payload)
        if not isinstance(payload, dict):
            raise ProviderError(f"the model server sent something that is not a JSON object: {str(payload)[:200]}", kind="protocol")
        kind = payload.get("type")
        if kind == "error" or payload.get("error"):
            raise failed(payload)
        if kind in (None, "message") and ("content" in payload or payload.get("stop_reason")):
            return tuple(self._message(payload))
        read = self._EVENTS.get(str(kind))
        return () if read is None or self._ended else tuple(read(self, payload))

    def done(self, *, whole: bool = False) -> Reply:
        """The reply, when the stream has ended; ``whole`` says that it was one document.

        Raises:
            ProviderError: the stream was cut off, or held no answer.
        """
        if not (self._head or self._blocks):
            raise ProviderError("the model server sent no answer", kind="protocol" if whole else "stream_interrupted")
        raw = self._head.get("stop_reason")
        if not (raw or self._ended or whole):
            raise ProviderError("the stream broke off before the model had finished", kind="stream_interrupted")
        blocks = [(block, *block.whole()) for block in self._blocks]
        message = Message("assistant", tuple(self._parts(blocks)))
        return Reply(
            message,
            self._finish(str(raw or ""), message),
            raw_finish=str(raw) if raw else None,
            usage=spent(self._usage),
            id=_text(self._head.get("id")),
            model=_text(self._head.get("model")),
            body=self._body([form for _, form, _ in blocks]),
            notices=tuple(self._notices),
        )

    # ------------------------------------------------------------------------------------------------------- events

    def _message(self, payload: JSON) -> list[Piece]:
        """The whole message, or the beginning of one."""
        self._add({key: value for key, value in payload.items() if key not in ("content", "usage")})
        self._count(payload)
        content = payload.get("content")
        forms = [{"type": "text", "text": content}] if isinstance(content, str) else content
        pieces: list[Piece] = []
        for form in forms if isinstance(forms, list) else ():
            pieces += self._begin(form, None)
        return pieces

    def _started(self, payload: JSON) -> list[Piece]:
        message = payload.get("message")
        pieces = self._message(message) if isinstance(message, dict) else []
        self._head.setdefault("type", "message")
        return pieces

    def _begin(self, form: Any, index: int | None) -> list[Piece]:
        form = form if isinstance(form, dict) else {}
        held = self._at.get(index)
        if held and form.get("id") and form["id"] == held.form.get("id"):  # the same block, announced twice
            return []
        block = _Block(form)
        self._blocks.append(block)
        if index is not None:
            self._at[index] = block
        if block.kind in _PROSE:
            text = form.get(block.kind)
            block.held += [text] if isinstance(text, str) and text else []
            return [Piece(block.kind, text) for text in block.held]
        if block.kind != "tool_use":
            return []
        block.call, self._calls = self._calls, self._calls + 1
        given = [_argument_text(form["input"])] if form.get("input") else []
        return [
            Piece("call", str(form.get("name") or ""), index=block.call),
            *(Piece("arguments", text, index=block.call) for text in given),
        ]

    def _begun(self, payload: JSON) -> list[Piece]:
        return self._begin(payload.get("content_block"), _index(payload))

    def _longer(self, payload: JSON) -> list[Piece]:
        delta = payload.get("delta")
        if not isinstance(delta, dict):
            return []
        key, kind = _DELTAS.get(str(delta.get("type")), ("", None))
        if not delta.get(key):  # unknown, or empty
            return []
        block = self._block(_index(payload), kind)
        if key == "citation":
            block.form = {**block.form, "citations": [*(block.form.get("citations") or ()), delta[key]]}
        elif key == "signature":
            block.form = {**block.form, "signature": delta[key]}
        else:
            text = delta[key] if isinstance(delta[key], str) else dumps(delta[key])
            block.held.append(text)
            if kind is not None:
                return [Piece(block.kind, text)]
            if block.call is not None:
                return [Piece("arguments", text, index=block.call)]
        return []

    def _block(self, index: int | None, kind: str | None) -> _Block:
        """The block that a delta makes longer. Text may begin one that was not announced; JSON may not: whose would it be?"""
        block = self._at.get(index) if index is not None else (self._blocks[-1] if self._blocks else None)
        if block is not None and (block.kind == kind or (kind is None and block.kind not in _PROSE)):
            return block
        if kind is None:
            raise ProviderError(f"the model server sent arguments for block {index}, which is no call", kind="protocol")
        self._begin({"type": kind, kind: ""}, index)
        return self._blocks[-1]

    def _changed(self, payload: JSON) -> list[Piece]:
        self._count(payload)
        delta = payload.get("delta")
        self._add(delta if isinstance(delta, dict) else {})
        return []

    def _stopped(self, _: JSON) -> list[Piece]:
        self._ended = True
        return []

    _EVENTS: ClassVar[dict[str, Callable[[Accumulator, JSON], list[Piece]]]] = {
        "message_start": _started,
        "content_block_start": _begun,
        "content_block_delta": _longer,
        "message_delta": _changed,
        "message_stop": _stopped,
    }

    def _add(self, given: JSON) -> None:
        before, after = self._head.get("stop_reason"), given.get("stop_reason")
        if before and after and before != after:
            self._notices.append(f"the server finished several times: {before}, {after}")
            given = {**given, "stop_reason": before}
        self._head |= {key: value for key, value in given.items() if value is not None or key not in self._head}

    def _count(self, payload: JSON) -> None:
        usage = payload.get("usage")
        self._usage |= {key: value for key, value in (usage if isinstance(usage, dict) else {}).items() if value is not None}

    # --------------------------------------------------------------------------------------------------- the whole

    def _parts(self, blocks: list[tuple[_Block, JSON, str]]) -> Iterator[Part]:
        taken: set[str] = set()
        for block, form, arguments in blocks:
            rest = {key: value for key, value in form.items() if key not in _KNOWN}
            kept = {key: value for key, value in rest.items() if value}  # `"citations": null` says nothing
            extra = {**kept, "wire": _NAME} if kept else None
            if block.kind == "thinking":
                yield Thinking(form["thinking"], extra={**rest, "wire": _NAME})
            elif block.kind == "text":
                if form["text"]:
                    yield Text(form["text"], extra=extra)
            elif block.call is not None:
                given = str(form.get("id") or "")
                made = given if given and given not in taken else f"call_{self._turn}_{block.call}"
                taken.add(made)
                yield ToolCall(made, str(form.get("name") or ""), arguments, extra=extra)
            elif isinstance(block.kind, str):
                yield Opaque(_NAME, form)
            else:
                self._notices.append("a block without a type was left out")

    def _finish(self, raw: str, message: Message) -> Finish:
        if not raw:
            self._notices.append("the server gave no finish reason")
            if any(sound(call.arguments) is None for call in message.tool_calls):
                raise ProviderError("the stream broke off in the middle of a call's arguments", kind="stream_interrupted")
        finish = FINISH.get(raw, "error") if raw else "stop"
        if finish == "error" and raw not in FINISH:
            self._notices.append(f"the server ended with a finish reason that is not known: {raw!r}")
        if raw == "refusal":
            self._notices.append(refused(self._head.get("stop_details")))
        if finish in ("stop", "tool_calls"):  # imitating servers mix these two up: what the message holds decides
            return "tool_calls" if message.tool_calls else "stop"
        return finish

    def _body(self, content: list[JSON]) -> JSON:
        """The answer as if it had come unstreamed."""
        return {**self._head, "content": content} | ({"usage": self._usage} if self._usage else {})


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _index(payload: JSON) -> int | None:
    index = payload.get("index")
    return index if isinstance(index, int) else None
