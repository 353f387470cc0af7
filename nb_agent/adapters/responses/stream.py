"""Puts one Responses reply together from its events, and from its whole answers too.

Unlike Chat Completions the stream names everything two or three times: in deltas, in the ``done`` event of each part, in the
finished item, and in the whole response at the end. Each later naming takes the place of the earlier one; nothing is added up. A
stream is whole only when the response itself has ended: a connection that closes before is an error. One `Accumulator` for each
reply. Source: the API reference of POST /v1/responses, "Streaming events"; what other servers do differently (ids that change from
event to event, indices that do not move, an empty list at the end) was read off public reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nb_agent.adapters import sse
from nb_agent.adapters.responses.ends import FINISH, failed, usage
from nb_agent.adapters.responses.items import ARGUMENTS, CALL, PARTS, Item, entries, word
from nb_agent.errors import ProviderError
from nb_agent.messages import Finish, Message, Part, Piece, Reply, ToolCall
from nb_agent.values import JSON, dumps

__all__ = ["Accumulator"]

#: Event that ends a response -> the status to take where the response in it names none.
_ENDS: Final = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
#: Event of a part -> the item's type, and the list that the part is in.
_PART_EVENTS: Final = {
    "response.content_part.added": ("message", "content"),
    "response.content_part.done": ("message", "content"),
    "response.reasoning_summary_part.added": ("reasoning", "summary"),
    "response.reasoning_summary_part.done": ("reasoning", "summary"),
}
#: Beginning of an event that brings text -> the item's type, the list that it is in, the type of the part.
_TEXT_EVENTS: Final = {
    "response.output_text": ("message", "content", "output_text"),
    "response.refusal": ("message", "content", "refusal"),
    "response.reasoning_summary_text": ("reasoning", "summary", "summary_text"),
    "response.reasoning_text": ("reasoning", "content", "reasoning_text"),
    "response.function_call_arguments": (CALL, ARGUMENTS, ""),
}
#: Items that a client has to carry out, and that this one never offered.
_NOT_OURS: Final = frozenset({"custom_tool_call", "computer_call", "local_shell_call", "apply_patch_call", "mcp_approval_request"})


class Accumulator:
    """The state of one reply. ``turn`` is its place in the history: ids made up here are never given out twice."""

    def __init__(self, *, turn: int = 0) -> None:
        self._turn = turn
        self._items: list[Item] = []
        self._last: tuple[Any, Item] | None = None  # where the event before this one went: long arguments come in thousands
        self._head: JSON = {}
        self._end: JSON | None = None
        self._status = ""
        self._notices: list[str] = []

    def feed(self, payload: Any) -> tuple[Piece, ...]:
        """Take one event in, or a whole response; the pieces that it brought.

        Raises:
            ProviderError: it is an error, or no JSON.
        """
        if isinstance(payload, str):
            if payload.strip() == "[DONE]":  # OpenRouter sends it after the end; it vouches for nothing
                return ()
            payload = sse.parsed(payload)
        if not isinstance(payload, dict):
            raise ProviderError(f"the model server sent something that is not a JSON object: {str(payload)[:200]}", kind="protocol")
        kind = payload.get("type")
        if kind == "error" or payload.get("error"):
            raise failed(payload)
        if kind is None and ("output" in payload or payload.get("object") == "response"):
            return tuple(self._ended(payload, ""))
        return tuple(self._event(word(kind), payload))

    def done(self, *, whole: bool = False) -> Reply:
        """The reply, when the stream has ended; ``whole`` says that it was one document.

        Raises:
            ProviderError: the stream was cut off, or held no answer.
        """
        if self._end is None:
            if whole:
                raise ProviderError(f"the model server sent no answer: {dumps(self._head)[:200]}", kind="protocol")
            raise ProviderError("the stream broke off before the response had ended", kind="stream_interrupted")
        items = self._chosen()
        body = {**self._head, **self._end, "output": [item.whole() for item in items]}
        return Reply(
            self._message(items),
            self._finish(items),
            raw_finish=self._raw(),
            usage=usage(self._end.get("usage")),
            id=word(body.get("id")) or None,
            model=word(body.get("model")) or None,
            body=body,
            notices=tuple(self._notices),
        )

    # ---------------------------------------------------------------------------------------------------- one event

    def _event(self, kind: str, payload: JSON) -> Iterator[Piece]:
        """Events that are not named here bring nothing that the finished items do not bring again."""
        name, _, step = kind.rpartition(".")
        response = payload.get("response")
        if name in _TEXT_EVENTS and step in ("delta", "done"):
            yield from self._text(payload, *_TEXT_EVENTS[name], delta=step == "delta")
        elif kind in _ENDS:
            yield from self._ended(response if isinstance(response, dict) else {}, _ENDS[kind])
        elif name == "response.output_item" and isinstance(payload.get("item"), dict):
            yield from self._item(payload["item"], payload.get("output_index"), done=step == "done")
        elif kind in _PART_EVENTS and isinstance(payload.get("part"), dict):
            type_, field = _PART_EVENTS[kind]
            if payload["part"].get("type") == "reasoning_text":
                type_ = "reasoning"
            yield from self._found(type_, payload).take_part(field, _place(payload, field), payload["part"])
        elif kind == "response.output_text.annotation.added":
            self._found("message", payload).annotate(_place(payload, "content"), payload.get("annotation"))
        elif isinstance(response, dict):
            self._head |= {key: value for key, value in response.items() if value is not None}

    def _text(self, payload: JSON, type_: str, field: str, part: str, *, delta: bool) -> Iterator[Piece]:
        item = self._found(type_, payload)
        if delta:
            yield from item.add(field, _place(payload, field), part, payload.get("delta"))
        else:
            text = payload.get(ARGUMENTS if field == ARGUMENTS else PARTS[part].key)
            yield from item.settle(field, _place(payload, field), part, text)
            if field == ARGUMENTS:
                item.vouched = True

    def _item(self, form: JSON, place: Any, *, done: bool) -> Iterator[Piece]:
        type_, id_ = word(form.get("type")), word(form.get("id"))
        item = self._find(type_, id_, place, word(form.get("call_id"))) or self._latest(type_, id_, place)
        if item is None or _is_another(item, id_, place, done=done):
            item = self._new(type_, place)
        yield from item.take(form, begun=not done)
        item.vouched, item.closed = item.vouched or done, item.closed or done

    def _ended(self, response: JSON, status: str) -> Iterator[Piece]:
        self._status = _status(word(response.get("status")), status)
        if self._status == "failed" or response.get("error"):
            raise failed({"error": response.get("error") or "the response failed, and the server does not say why"})
        self._end = response
        left = list(self._items)
        for place, form in enumerate(entries(response.get("output"))):
            item = _same(left, form, place)
            if item is None:
                item = self._new(word(form.get("type")), place)
            else:
                left.remove(item)
            yield from item.take(form)
            item.vouched = True

    # ------------------------------------------------------------------------------------------------ which item

    def _found(self, type_: str, payload: JSON) -> Item:
        """The item that an event belongs to; one that nobody announced is begun."""
        key = (type_, payload.get("item_id"), payload.get("output_index"), payload.get("call_id"))
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        id_, place, call_id = word(key[1]), key[2], word(key[3])
        item = self._find(type_, id_, place, call_id)
        if item is None and not call_id:
            item = self._latest(type_, id_, place)
        if item is None:
            item = self._new(type_, place)
            item.form |= {"id": id_} if id_ else {}
        self._last = (key, item)
        return item

    def _find(self, type_: str, id_: str, place: Any, call_id: str) -> Item | None:
        """By id and index together, then by an id that only one item has, then by index, then by the call's own id."""
        alike = [item for item in self._items if item.type == type_ and not (call_id and item.call_id and item.call_id != call_id)]
        by_id = [item for item in alike if id_ and item.id == id_]
        by_place = [item for item in alike if isinstance(place, int) and item.place == place]
        both = [item for item in by_id if item in by_place]
        by_call = [item for item in alike if call_id and item.call_id == call_id]
        for found in (both, by_id if len(by_id) == 1 else [], by_place, by_call):
            if found:
                return found[-1]
        return None

    def _latest(self, type_: str, id_: str, place: Any) -> Item | None:
        """For an event that says nothing about where it belongs."""
        if id_ or isinstance(place, int):
            return None
        return next((item for item in reversed(self._items) if item.type == type_), None)

    def _new(self, type_: str, place: Any) -> Item:
        calls = sum(item.type == CALL for item in self._items)
        self._last = None
        self._items.append(Item(type_, place if isinstance(place, int) else len(self._items), calls))
        return self._items[-1]

    # ------------------------------------------------------------------------------------------------- the whole

    def _chosen(self) -> list[Item]:
        """The items in their order, without a call that is there twice.

        Raises:
            ProviderError: it is not sure that a call's arguments are whole.
        """
        chosen: list[Item] = []
        seen: set[tuple[str, str, str]] = set()
        for item in sorted(self._items, key=lambda item: item.place):
            if item.type == CALL:
                if not (item.vouched or item.is_object):
                    raise ProviderError("the stream broke off in the middle of a call's arguments", kind="stream_interrupted")
                same = (item.call_id, item.name, item.arguments)
                if item.call_id and same in seen:
                    self._notices.append(f"the server sent the call {item.call_id!r} twice")
                    continue
                seen.add(same)
            elif item.type in _NOT_OURS:
                self._notices.append(f"the model asks for a {item.type}, which is not carried out here")
            chosen.append(item)
        return chosen

    def _raw(self) -> str:
        reason = self._reason()
        return f"{self._status}: {reason}" if reason else self._status

    def _reason(self) -> str:
        details = (self._end or {}).get("incomplete_details")
        return word(details.get("reason")) if isinstance(details, dict) and self._status == "incomplete" else ""

    def _finish(self, items: list[Item]) -> Finish:
        said = self._reason() if self._status == "incomplete" else self._status
        if self._status == "incomplete" and not said:
            self._notices.append("the server did not say why the response is incomplete; it is taken for the output limit")
            return "length"
        finish = FINISH.get(said, "error")
        if finish == "error":
            self._notices.append(f"the server ended with a status that is not known or not whole: {self._raw()!r}")
        if finish != "stop":
            return finish
        if any(item.has_refusal for item in items):
            return "content_filter"
        calls = [item for item in items if item.type == CALL]
        if any(item.form.get("status") == "incomplete" for item in calls):
            self._notices.append("a call was cut off although the server says that the response is complete")
            return "length"
        return "tool_calls" if calls else "stop"

    def _message(self, items: list[Item]) -> Message:
        parts: list[Part] = []
        taken: set[str] = set()
        for item in items:
            for part in item.parts(first=not parts):
                if isinstance(part, ToolCall):
                    given = part.id if part.id and part.id not in taken else f"call_{self._turn}_{len(taken)}"
                    taken.add(given)
                    parts.append(ToolCall(given, part.name, part.arguments, part.extra))
                else:
                    parts.append(part)
        return Message("assistant", tuple(parts))


def _status(given: str, event: str) -> str:
    """The word of the response itself, unless its last event knows better; a whole answer has no event."""
    if event in ("", "completed"):
        return event or "completed" if given in ("", event and "in_progress") else given
    return event


def _is_another(item: Item, id_: str, place: Any, *, done: bool) -> bool:
    """Whether an item that is announced or finished only looks like this one: some servers give all one id, or one index."""
    placed = isinstance(place, int)
    if item.closed:
        return not done or item.id != id_ or (item.place != place if placed else not id_)
    return not done and (item.id not in ("", id_) or (placed and item.place != place))


def _same(left: list[Item], form: JSON, place: int) -> Item | None:
    """Which of these items stands in the final list as ``form``. A call is known by its call id, and never taken for another."""
    type_, id_, call_id = word(form.get("type")), word(form.get("id")), word(form.get("call_id"))
    alike = [item for item in left if item.type == type_ and not (call_id and item.call_id and item.call_id != call_id)]
    by_call = [item for item in alike if call_id and item.call_id == call_id]
    by_id = [item for item in alike if id_ and item.id == id_]
    return next(iter([*by_call, *by_id, *(item for item in alike if item.place == place), *alike]), None)


def _place(payload: JSON, field: str) -> int:
    place = payload.get("summary_index" if field == "summary" else "content_index")
    return place if isinstance(place, int) else 0
