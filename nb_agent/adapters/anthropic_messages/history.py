"""Our messages -> the messages of an Anthropic request, and what could not go along, a sentence each.

Unlike Chat Completions: system text stands outside the list, all results of a turn and what the user says after them are one user
message, results first, and a call's arguments are an object. What that server would refuse for ever after is left out or spelled
another way: texts of white space, ids and names with other characters, an id that is there twice, thinking at the end of a message.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nb_agent.adapters.anthropic_messages.words import sound
from nb_agent.adapters.fitting import IDS, fitting_id, fitting_name, stand_in, taken, unfit_type
from nb_agent.adapters.history_rules import said
from nb_agent.growing import begun, keep
from nb_agent.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from nb_agent.values import JSON, Encoded

__all__ = ["began_without_thinking", "write"]

_NAME: Final = "anthropic_messages"
_GROUP: Final = (_NAME, "group")  # key of the memo of the first message of a user turn: all messages of the turn, and its form
_CLOSED: Final = (_NAME, "closed")  # key of the memo of the first message: what has become of all messages (see `growing`)
_RENAMED: Final = (_NAME, "renamed")  # key of a message's memo: the message with other ids
_DATA_URL: Final = re.compile(r"data:([\w.+/-]+);base64,(.+)", re.DOTALL)
_THOUGHTS: Final = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class _Turn:
    """One message as blocks. ``side`` is whose: system, user, tool, assistant, or nobody's where nothing is left of it."""

    side: str
    blocks: tuple[JSON, ...] = ()
    ids: tuple[str, ...] = ()  # of the calls in it
    form: Encoded | None = None  # of an assistant message, which is never grouped
    notices: tuple[str, ...] = ()


_END: Final = Message("assistant")  # stands behind the last message, so that a turn that ends there is closed like any other
_END.memo[_NAME] = _Turn("end")


def write(history: Sequence[Message], *, distinct: bool = False) -> tuple[list[JSON], list[Encoded], tuple[str, ...]]:
    """The system blocks, the messages, and the notices; ``distinct`` says that ids have been looked at."""
    system, items, notices, twice = _grouped(history)
    if twice and not distinct:
        return write(_renamed(history), distinct=True)
    ended, more = _ended(items)
    notices += (*more, said("id_again")) if distinct else more
    return list(system), ended, tuple(dict.fromkeys(notices))


def _grouped(history: Sequence[Message]) -> tuple[tuple[JSON, ...], list[Encoded], tuple[str, ...], bool]:
    """The same, and whether an id is there twice.

    Up to the last assistant message, nothing that was sent before is looked at again: until there, every group is closed.
    """
    size, made = begun(_CLOSED, history)
    system, notices, sent, known, twice = made or ((), (), (), (), False)
    items: list[Encoded] = [*sent]
    ids: set[str] = {*known}
    group: tuple[Message, ...] = ()
    closed: tuple[Any, ...] = ()
    started = size > 0
    for place, message in enumerate((*history[size:], _END), size + 1):
        if _NAME not in message.memo:
            message.memo[_NAME] = _turn(message)
        turn = message.memo[_NAME]
        notices += turn.notices
        if turn.side in ("user", "tool"):
            group += (message,)
        elif turn.side == "system":
            system += turn.blocks
            if started:
                notices += (said("system_inside", end="front"),)
        elif turn.side:
            if group:
                items.append(_joined(group))
                group = ()
            twice = twice or len({*turn.ids} - ids) < len(turn.ids)
            ids.update(turn.ids)
            if turn.form is not None:
                items.append(turn.form)
                closed = place, system, notices, len(items)
        started = started or turn.side in ("user", "assistant")
    if closed:
        end, *before, count = closed
        keep(_CLOSED, history[:end], (*before, tuple(items[:count]), ids, twice))
    return system, items, notices, twice


def _joined(group: tuple[Message, ...]) -> Encoded:
    memo = group[0].memo
    if _GROUP not in memo or memo[_GROUP][0] != group:
        turns: list[_Turn] = [message.memo[_NAME] for message in group]
        content = [block for side in ("tool", "user") for turn in turns if turn.side == side for block in turn.blocks]
        memo[_GROUP] = group, Encoded(role="user", content=content)
    form: Encoded = memo[_GROUP][1]
    return form


def _ended(items: list[Encoded]) -> tuple[list[Encoded], tuple[str, ...]]:
    """A last assistant message, which the model is to go on with, may not end in white space."""
    last = items[-1]["content"][-1] if items and items[-1]["role"] == "assistant" else {}
    if last.get("type") != "text" or last["text"] == last["text"].rstrip():
        return items, ()
    content = [*items[-1]["content"][:-1], {**last, "text": last["text"].rstrip()}]
    return [*items[:-1], Encoded(role="assistant", content=content)], (said("trailing_space"),)


def began_without_thinking(items: Sequence[JSON]) -> bool:
    """Whether results of calls come last, and no message of the model since the user spoke begins with thinking.

    The server refuses to think from there on: "a final `assistant` message must start with a thinking block". Later messages of
    a turn may do without, since some models think only before their first call.
    """
    turn = itertools.takewhile(_goes_on, reversed(items))
    answered: bool = next(turn, {"role": ""})["role"] == "user"
    return answered and not any(_first(message) in _THOUGHTS for message in turn if message["role"] == "assistant")


def _goes_on(message: JSON) -> bool:
    """Whether a message belongs to the model's turn: its own, or results of its calls."""
    return message["role"] == "assistant" or _first(message) == "tool_result"


def _first(message: JSON) -> str:
    return str(message["content"][0].get("type"))


# ------------------------------------------------------------------------------------------------------- one message


def _turn(message: Message) -> _Turn:
    notices: list[str] = [said("speaker_name", name="", why="")] if message.name else []
    blocks = tuple(block for part in _sendable(message, notices) for block in _WRITE[type(part)](part, notices))
    if message.role in ("system", "developer"):
        return _Turn("system" if blocks else "", blocks, notices=tuple(notices))
    if message.role != "assistant":
        return _Turn(message.role if blocks else "", blocks, notices=tuple(notices))
    while blocks and blocks[-1].get("type") in _THOUGHTS:  # "The final block in an assistant message cannot be `thinking`"
        blocks = blocks[:-1]
        notices.append(said("lonely_reasoning"))
    if unsigned := [block for block in blocks if block.get("type") == "thinking" and not block.get("signature")]:
        blocks = tuple(block for block in blocks if block not in unsigned)
        notices.append(said("unsigned_thinking"))
    ids = tuple(block["id"] for block in blocks if block.get("type") == "tool_use")
    form = Encoded(role="assistant", content=list(blocks)) if blocks else None
    return _Turn("assistant" if blocks else "", (), ids, form, tuple(notices))


def _sendable(message: Message, notices: list[str]) -> Iterator[Part]:
    for part in message.parts:
        if isinstance(part, Image) and message.role != "user":
            notices.append(said("image_role", role=message.role))
        else:
            yield part


def _text(part: Text, notices: list[str]) -> Iterator[JSON]:
    if part.text.strip():  # "text content blocks must contain non-whitespace text"
        yield {"type": "text", "text": part.text, **_own(part.extra)}
    else:
        notices.append(said("blank_text"))


def _image(part: Image, notices: list[str]) -> Iterator[JSON]:
    inline = _DATA_URL.fullmatch(part.url or "")
    if (unfit := unfit_type(part, _NAME)) is not None:
        notices.append(said("image_type", media=unfit, taken=taken(_NAME)))
        yield {"type": "text", "text": stand_in(unfit)}
    elif part.url and not inline:
        yield {"type": "image", "source": {"type": "url", "url": part.url}}
    else:
        media, content = (inline[1].lower(), inline[2]) if inline else (part.media_type, part.data)
        yield {"type": "image", "source": {"type": "base64", "media_type": media, "data": content}}


def _thinking(part: Thinking, notices: list[str]) -> Iterator[JSON]:
    if part.extra and part.extra.get("wire") == _NAME:
        yield {"type": "thinking", "thinking": part.text, **_own(part.extra)}
    else:
        notices.append(said("foreign_reasoning"))


def _opaque(part: Opaque, notices: list[str]) -> Iterator[JSON]:
    if part.wire == _NAME:
        yield part.body
    else:
        notices.append(said("foreign_part", wire=part.wire))


def _call(part: ToolCall, notices: list[str]) -> Iterator[JSON]:
    made = _input(part.arguments)
    if made is None:
        notices.append(said("arguments"))
        made = {"_raw": part.arguments}
    if part.extra and part.extra.get("wire", _NAME) != _NAME:
        notices.append(said("foreign_reasoning"))
    name, known = fitting_name(part.name, _NAME), _id(part.id)
    notices += [said("tool_name")] * (name != part.name) + [said("call_id")] * (known != part.id)
    yield {"type": "tool_use", "id": known, "name": name, "input": made, **_own(part.extra)}


def _input(text: str) -> JSON | None:
    """The object that arguments are, an empty one for none; also where the text holds JSON that was encoded twice."""
    if text.strip() in ("", "null"):
        return {}
    made = sound(text)
    if made is None and text.lstrip().startswith('"'):
        try:
            inner = json.loads(text)
        except ValueError:
            return None
        return sound(inner) if isinstance(inner, str) else None
    return made


def _result(part: ToolResult, notices: list[str]) -> Iterator[JSON]:
    block: JSON = {"type": "tool_result", "tool_use_id": _id(part.call_id)}
    if any(isinstance(piece, Image) for piece in part.parts):
        block["content"] = [form for piece in part.parts for form in _WRITE[type(piece)](piece, notices)]
    elif part.text.strip():
        block["content"] = part.text
    yield block | ({"is_error": True} if part.failed else {})


_WRITE: Final[dict[type, Callable[[Any, list[str]], Iterator[JSON]]]] = {
    Text: _text,
    Image: _image,
    Thinking: _thinking,
    Opaque: _opaque,
    ToolCall: _call,
    ToolResult: _result,
}


def _own(extra: JSON | None) -> JSON:
    """What this API gave along with a part, and wants to see again."""
    return {key: value for key, value in extra.items() if key != "wire"} if extra and extra.get("wire") == _NAME else {}


# --------------------------------------------------------------------------------------------------------------- ids


def _id(given: str) -> str:
    return fitting_id(given, IDS[_NAME])


def _renamed(history: Sequence[Message]) -> list[Message]:
    """The messages with another id for each call whose id an earlier one has: some servers count from 0 in every reply."""
    taken: set[str] = set()
    current: dict[str, str] = {}
    made: list[Message] = []
    for message in history:
        for call in message.tool_calls:
            fresh = (f"{_id(call.id)}-{number}" for number in itertools.count(2))
            current[call.id] = call.id if _id(call.id) not in taken else next(id_ for id_ in fresh if id_ not in taken)
            taken.add(_id(current[call.id]))
        parts = tuple(_with_id(part, current) for part in message.parts)
        if parts == message.parts:
            made.append(message)
            continue
        if _RENAMED not in message.memo or message.memo[_RENAMED].parts != parts:
            message.memo[_RENAMED] = replace(message, parts=parts)
        made.append(message.memo[_RENAMED])
    return made


def _with_id(part: Part, ids: dict[str, str]) -> Part:
    if isinstance(part, ToolCall):
        return replace(part, id=ids[part.id])
    return replace(part, call_id=ids.get(part.call_id, part.call_id)) if isinstance(part, ToolResult) else part
