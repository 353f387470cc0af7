"""One item of a Responses answer while it comes, and as the parts of a message that it becomes; and those parts as items again.

An item goes back as it came, its id, status, phase, citations and seals with it: the server refuses a call whose reasoning is
missing, and reasoning that has been changed. So each part carries its item's frame (the item without its words), and the words stay
in the part, where they can be read, and where a change of them would be sent. Unlike `stream` this knows no events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from nb_agent.messages import Opaque, Part, Piece, Text, Thinking, ToolCall
from nb_agent.values import JSON, dumps

__all__ = ["ARGUMENTS", "CALL", "NAME", "PARTS", "Item", "call_item", "entries", "message_items", "word"]

NAME: Final = "responses"
CALL: Final = "function_call"
ARGUMENTS: Final = "arguments"
_LISTS: Final = ("summary", "content")
_PROVISIONAL: Final = ("status", "encrypted_content")  # what is not yet true of an item that is announced


class _Words(NamedTuple):
    key: str
    kind: Literal["text", "thinking", "refusal"]


#: Type of a part -> the key that its words are under, and the kind of piece that they are.
PARTS: Final = {
    "output_text": _Words("text", "text"),
    "text": _Words("text", "text"),
    "refusal": _Words("refusal", "refusal"),
    "summary_text": _Words("text", "thinking"),
    "reasoning_text": _Words("text", "thinking"),
}


def word(value: Any) -> str:
    """A text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def entries(value: Any) -> list[JSON]:
    """The objects of a list, none for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _filled(form: JSON, before: JSON) -> JSON:
    """A later naming of something, with what only the earlier one said."""
    return {**form, **{key: value for key, value in before.items() if value and not form.get(key)}}


class _Held:
    """A text as it comes."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def settle(self, text: str) -> str:
        """The whole text takes the place of what had come; what of it was not seen yet. Nothing takes the place of something."""
        held = self.text
        if not text or text == held:
            return ""
        self.pieces = [text]
        return text.removeprefix(held) if text.startswith(held) else ""


class _Slot:
    """One part of a message or of a reasoning."""

    __slots__ = ("form", "held")

    def __init__(self, form: JSON) -> None:
        self.form, self.held = form, _Held()

    def whole(self) -> JSON:
        words = PARTS.get(word(self.form.get("type")))
        return {**self.form, words.key: self.held.text} if words else self.form


class Item:
    """One item of the output.

    Attributes:
        form: the item as it was named last; its texts are held apart.
        place: where it stands in the output.
        vouched: whether the server has named it whole, so that nothing can be missing from it.
        closed: whether its own last event has come.
    """

    def __init__(self, type_: str, place: int, calls: int) -> None:
        self.form: JSON = {"type": type_}
        self.place = place
        self.vouched = self.closed = False
        self._number = calls  # which call of the reply it is, if it is one
        self._slots: dict[str, dict[int, _Slot]] = {key: {} for key in _LISTS}
        self._arguments = _Held()
        self._shown = ""  # the name that was passed on

    @property
    def type(self) -> str:
        """What kind of item it is."""
        return word(self.form.get("type"))

    @property
    def id(self) -> str:
        """The item's id, which is not what a result names."""
        return word(self.form.get("id"))

    @property
    def call_id(self) -> str:
        """The call's id, which its result has to name."""
        return word(self.form.get("call_id"))

    @property
    def name(self) -> str:
        """The tool that is called."""
        return word(self.form.get("name"))

    @property
    def arguments(self) -> str:
        """The text of a call's arguments."""
        return self._arguments.text

    @property
    def is_object(self) -> bool:
        """Whether the arguments are a finished JSON object."""
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False

    @property
    def has_refusal(self) -> bool:
        """Whether the model declines in it."""
        return any(slot.form.get("type") == "refusal" for slot in self._slots["content"].values())

    # ------------------------------------------------------------------------------------------------- as it comes

    def add(self, field: str, place: int, part: str, text: Any) -> Iterator[Piece]:
        """A fragment of one of its texts."""
        held = self._held(field, place, part)
        if fresh := _text(text):
            held.pieces.append(fresh)
            yield self._piece(field, part, fresh)

    def settle(self, field: str, place: int, part: str, text: Any) -> Iterator[Piece]:
        """One of its texts, whole."""
        if unseen := self._held(field, place, part).settle(_text(text)):
            yield self._piece(field, part, unseen)

    def take(self, form: JSON, *, begun: bool = False) -> Iterator[Piece]:
        """The item as it is named now; ``begun`` where it has only been announced."""
        fields = {key: value for key, value in form.items() if not (begun and key in _PROVISIONAL)}
        self.form = _filled(fields, self.form)
        if self.type == CALL:
            if self.name and not self._shown:
                self._shown = self.name
                yield Piece("call", self.name, index=self._number)
            yield from self.settle(ARGUMENTS, 0, "", form.get(ARGUMENTS))
        elif self.type in ("message", "reasoning"):
            for field in _LISTS:
                content = form.get(field)
                parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else entries(content)
                for place, part in enumerate(parts):
                    yield from self.take_part(field, place, part)

    def take_part(self, field: str, place: int, part: JSON) -> Iterator[Piece]:
        """One part of it as it is named now."""
        slot = self._slots[field].setdefault(place, _Slot({}))
        slot.form = _filled(part, slot.form)
        words = PARTS.get(word(part.get("type")))
        if words and (unseen := slot.held.settle(word(part.get(words.key)))):
            yield Piece(words.kind, unseen)

    def annotate(self, place: int, annotation: Any) -> None:
        """A citation of one of its texts."""
        slot = self._slots["content"].setdefault(place, _Slot({"type": "output_text"}))
        if isinstance(annotation, dict):
            slot.form = {**slot.form, "annotations": [*entries(slot.form.get("annotations")), annotation]}

    def _held(self, field: str, place: int, part: str) -> _Held:
        if field == ARGUMENTS:
            return self._arguments
        slot = self._slots[field].get(place)
        if slot is None:
            slot = self._slots[field][place] = _Slot({"type": part})
        return slot.held

    def _piece(self, field: str, part: str, text: str) -> Piece:
        return Piece("arguments", text, index=self._number) if field == ARGUMENTS else Piece(PARTS[part].kind, text)

    # --------------------------------------------------------------------------------------------------- the whole

    def whole(self) -> JSON:
        """The item as its unstreamed JSON."""
        form = dict(self.form)
        if self.type == CALL:
            form[ARGUMENTS] = self.arguments
        for field, slots in self._slots.items():
            if slots:
                form[field] = [slot.whole() for _, slot in sorted(slots.items())]
        return form

    def parts(self, *, first: bool) -> Iterator[Part]:
        """What it is in a message; ``first`` says that nothing stands before it there."""
        form = self.whole()
        texts = _texts_of(form, "content")
        if self.type == CALL:
            # A server that gives a call only an item id knows it by that one.
            extra = {"wire": NAME, "item": {**form, ARGUMENTS: ""}}
            yield ToolCall(self.call_id or self.id, self.name, self.arguments, extra)
        elif self.type == "message" and any(texts):
            yield from _texts(form, texts)
        elif self.type == "reasoning" and (shown := "\n\n".join(filter(None, [*_texts_of(form, "summary"), *texts]))):
            yield Thinking(shown, {"wire": NAME, "item": form})
        elif (
            self.type != "message" or not first or any(word(part.get("type")) not in PARTS for part in entries(form.get("content")))
        ):
            # An empty message is nothing, unless reasoning stands before it that may not go back without it.
            yield Opaque(NAME, form)


def _text(value: Any) -> str:
    """Some servers send arguments as an object."""
    return value if isinstance(value, str) else "" if value is None else dumps(value)


def _texts_of(form: JSON, field: str) -> list[str]:
    parts = [(part, PARTS.get(word(part.get("type")))) for part in entries(form.get(field))]
    return [word(part.get(words.key)) if words else "" for part, words in parts]


def _texts(form: JSON, texts: Sequence[str]) -> Iterator[Text]:
    frame = {**form, "content": []}
    for place, (part, text) in enumerate(zip(entries(form["content"]), texts, strict=True)):
        words = PARTS.get(word(part.get("type")))
        extra: JSON = {"wire": NAME, "item": frame, "place": place, "part": {**part, words.key: ""} if words else part}
        yield Text(text, extra | ({"refusal": True} if words and words.kind == "refusal" else {}))


# ------------------------------------------------------------------------------------------------------------ back again


def message_items(texts: Sequence[Text]) -> list[JSON]:
    """The message items that these texts came in; texts of another origin are one message of plain text each time."""
    items: list[JSON] = []
    frame: Any = None
    for text in texts:
        extra = text.extra if text.extra and text.extra.get("wire") == NAME and "item" in text.extra else None
        if extra is None:
            if items and frame is None:
                items[-1]["content"] += text.text
            elif text.text:
                items.append({"role": "assistant", "content": text.text})
                frame = None
            continue
        part = dict(extra["part"])
        words = PARTS.get(word(part.get("type")))
        if words:
            part[words.key] = text.text
        if frame is None or extra["item"] != frame or not extra["place"]:
            frame = extra["item"]
            items.append({**frame, "content": [part]})
        else:
            items[-1]["content"].append(part)
    return items


def call_item(call: ToolCall, call_id: str) -> JSON:
    """A call as its item. ``arguments`` is never empty: servers parse it."""
    frame = (call.extra or {}).get("item") if (call.extra or {}).get("wire") == NAME else None
    own = {"call_id": call_id, "name": call.name, ARGUMENTS: call.arguments or "{}"}
    return {**frame, **own} if isinstance(frame, dict) else {"type": CALL, **own}
