"""Gemini's wire format: POST …/models/{model}:generateContent, and :streamGenerateContent for a stream.

Unlike the other formats: the model is named in the path, the roles are ``user`` and ``model``, system text stands apart, arguments
are objects, calls mostly have no ids (results go by name and order), a tool's parameters are a part of OpenAPI (see
`schema`), and most settings sit together in ``generationConfig``. Source: the API reference of
models.generateContent.

Pure: no network, no clock, no environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from nb_agent.adapters.fitting import fitting_name, is_signing, taken, unfit_type
from nb_agent.adapters.gemini_generate.parts import NAME, argument_object, is_foreign, write, write_result
from nb_agent.adapters.gemini_generate.schema import parameters
from nb_agent.adapters.gemini_generate.settings import configured
from nb_agent.adapters.gemini_generate.stream import Accumulator
from nb_agent.adapters.history_rules import said
from nb_agent.growing import begun, keep
from nb_agent.messages import Definition, Image, Message, Opaque, Reply, Request, Segment, ToolCall
from nb_agent.tokens.images import described
from nb_agent.tokens.segments import Segments, defined, spoken
from nb_agent.values import JSON, Encoded, dumps

__all__ = ["NAME", "Accumulator", "decode", "field", "items", "request", "result_text", "segments"]

#: Models that take images beside a result only; since Gemini 3 they stand inside it.
_BESIDE: Final = re.compile(r"gemini-(?:pro|[12](?!\d))|gemma|learnlm")

_LEFT_OUT: Final = {
    "thinking": said("foreign_reasoning"),
    "opaque": said("foreign_part", wire="another wire format"),
    "system": said("system_inside", end="beginning"),
    "raw": said("arguments"),
    "empty": said("nothing_left"),
    "name": said("speaker_name", name="", why=", because Gemini has no field for it"),
    "strict": "strict was left out, because Gemini's function declarations have no such mode",
}


# ------------------------------------------------------------------------------------------------------------- writing


def request(
    history: Sequence[Message], definitions: Sequence[Definition], *, model: str, stream: bool = False, settings: JSON | None = None
) -> Request:
    """The request that asks for the next turn of ``history``.

    Args:
        history: the conversation, valid as `nb_agent.history.mend` leaves it.
        definitions: the tools that may be called.
        model: its name as the server knows it, with or without ``models/`` before it.
        stream: whether the answer is asked for piece by piece.
        settings: the neutral names of `nb_agent.agent.SETTINGS`, translated; further body fields, sent as they are.
    """
    name = model.removeprefix("models/")
    contents, system, notices = _contents(history, nested=not _BESIDE.search(name), signing=is_signing(name))
    body: JSON = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if definitions:
        written = [_definition(definition) for definition in definitions]
        body["tools"] = [{"functionDeclarations": [form for form, _ in written]}]
        notices += tuple(said for _, lost in written for said in lost)
    if (token := _mark(history[-1])) if history else None:
        body |= {"contents": contents[:-1], "continuationToken": token}  # the server has what it said last, and goes on from there
    fields, left_out = configured(settings or {}, name)
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = f"/models/{quote(name, safe='')}:{verb}"
    return Request(NAME, path, body | fields, stream, tuple(dict.fromkeys(notices + left_out)))


def _mark(last: Message) -> Any:
    """What the server wants to see again where it paused in the middle of an answer."""
    extra = last.extra or {}
    return extra.get("continuationToken") if last.role == "assistant" and extra.get("wire") == NAME else None


class _Turn(NamedTuple):
    """Messages that go together, in wire form: what the model said with the results of its calls, or one other message."""

    size: int
    followers: tuple[Message, ...]  # the messages behind the first one
    more: frozenset[str]  # roles that would belong to it, too
    contents: tuple[Encoded, ...]
    system: tuple[Encoded, ...]
    notices: tuple[str, ...]


_UNSEEN: Final = {"text": "(something that cannot be shown here)"}
_NONE: Final[frozenset[str]] = frozenset()
#: Role of the last message of a turn -> the roles that can follow it in the same turn.
_GOES_ON: Final = {"assistant": frozenset({"assistant", "tool"}), "tool": frozenset({"tool"})}


def _contents(history: Sequence[Message], *, nested: bool, signing: bool) -> tuple[list[Encoded], list[Encoded], tuple[str, ...]]:
    """The contents, the system text, and what was left out. What was sent before, but for its last turn, is not looked at again."""
    messages, key, all_but_last = tuple(history), (NAME, nested, signing), (NAME, nested, signing, "all but the last turn")
    end = len(messages)
    place, made = begun(all_but_last, messages)
    if made is None or (place < end and messages[place].role in made[-1]):
        place, made = 0, ((), (), (), False, _NONE)
    contents: list[Encoded] = [*made[0]]
    system: list[Encoded] = [*made[1]]
    notices: tuple[str, ...] = made[2]
    more: frozenset[str] = made[4]
    torn: bool = made[3]
    while place < end:
        memo = messages[place].memo
        turn = memo.get(key)
        after = place + turn.size if turn else end
        if turn is None or messages[place + 1 : after] != turn.followers or (after < end and messages[after].role in turn.more):
            turn = memo[key] = _turn(messages, place, nested=nested, signing=signing)
            after = place + turn.size
        if after == end:
            keep(all_but_last, messages[:place], (tuple(contents), tuple(system), notices, torn, more))
        if contents and not turn.contents:
            torn = True
        if turn.system and contents:
            notices += (_LEFT_OUT["system"],)
        contents += turn.contents
        system += turn.system
        notices += turn.notices
        place, more = after, turn.more
    return _rejoined(contents) if torn else contents, system, notices


def _rejoined(contents: Sequence[Encoded]) -> list[Encoded]:
    """The same, with one turn in place of two of the model between which something stood that is not among the contents."""
    made: list[Encoded] = []
    for content in contents:
        if made and made[-1]["role"] == content["role"] == "model":
            made[-1] = Encoded(role="model", parts=[*made[-1]["parts"], *content["parts"]])
        else:
            made.append(content)
    return made


def _turn(messages: tuple[Message, ...], place: int, *, nested: bool, signing: bool) -> _Turn:
    first = messages[place]
    more, end = _GOES_ON.get(first.role, _NONE), place + 1
    while end < len(messages) and messages[end].role in more:
        more = _GOES_ON[messages[end].role]
        end += 1
    group = messages[place:end]
    notices = tuple(dict.fromkeys(_lost(group)))
    if first.role in ("system", "developer"):
        system = (Encoded(text=first.text),) if first.text else ()
        return _Turn(1, (), more, (), system, notices)
    if first.role == "user":
        asked = [form for part in first.parts if (form := write(part)) is not None]
        if not asked and any(map(is_foreign, first.parts)):
            asked = [_UNSEEN]  # without a word of the user, two turns of the model would follow one another
        contents = [("user", asked)]
    else:
        spoken = _said(group)
        if signing and (unsigned := _unsigned(spoken)):
            unsigned["thoughtSignature"] = _UNCHECKED
            notices += (said("unsigned_call", model="Gemini"),)
        contents = [("model", spoken), ("user", _results(group, nested=nested))]
    encoded = tuple(Encoded(role=role, parts=parts) for role, parts in contents if parts)
    return _Turn(len(group), group[1:], more, encoded, (), notices if encoded else (*notices, _LEFT_OUT["empty"]))


def _said(group: Sequence[Message]) -> list[JSON]:
    """The parts of what the model said, also where it was asked to go on: a call may not follow a turn of its own."""
    parts = [part for message in group if message.role == "assistant" for part in message.parts]
    return [form for part in parts if (form := write(part)) is not None]


#: What a call may carry in the place of a signature that it never had. Source: Gemini's guide to thought signatures.
_UNCHECKED: Final = "skip_thought_signature_validator"


def _unsigned(parts: Sequence[JSON]) -> JSON | None:
    """The first call of a turn, which has to be signed, where it is not. The others of the turn go by its signature."""
    first = next((part for part in parts if "functionCall" in part), None)
    return None if first is None or field(first, "thoughtSignature") else first


def _results(group: Sequence[Message], *, nested: bool) -> list[JSON]:
    """All results in one content and in the order of the calls, by which they are told apart."""
    made = [call for message in group for call in message.tool_calls]
    calls = {call.id: (place, call) for place, call in enumerate(made)}
    results = [result for message in group if (result := message.tool_result) is not None]
    results.sort(key=lambda result: calls[result.call_id][0] if result.call_id in calls else len(calls))
    return [
        form
        for result in results
        for form in write_result(result, calls[result.call_id][1] if result.call_id in calls else None, nested=nested)
    ]


def _lost(group: Sequence[Message]) -> Iterator[str]:
    """What of these messages is left out or spelled another way."""
    if any(message.name for message in group):
        yield _LEFT_OUT["name"]
    for message in group:
        for part in (*message.parts, *(message.tool_result.parts if message.tool_result else ())):
            if is_foreign(part):
                yield _LEFT_OUT["opaque" if isinstance(part, Opaque) else "thinking"]
            elif isinstance(part, ToolCall):
                yield from [_LEFT_OUT["raw"]] * (argument_object(part.arguments) is None)
                yield from [said("tool_name")] * (fitting_name(part.name, NAME) != part.name)
            elif isinstance(part, Image):
                yield from _about_image(part, message.role)


def _about_image(image: Image, role: str) -> Iterator[str]:
    media = unfit_type(image, NAME)
    if role in ("system", "developer"):
        yield said("image_role", role=role)
    elif media is not None:
        yield said("image_type", media=media, taken=taken(NAME))


def _definition(definition: Definition) -> tuple[Encoded, tuple[str, ...]]:
    written: tuple[Encoded, tuple[str, ...]] | None = definition.memo.get(NAME)
    if written is None:
        schema, notices = parameters(definition.parameters, definition.name)
        form: JSON = {"name": definition.name}
        form |= {"description": definition.description} if definition.description else {}
        form |= {"parameters": schema} if schema else {}
        lost = (*notices, *([_LEFT_OUT["strict"]] if definition.strict else []))
        written = definition.memo[NAME] = Encoded(form), lost
    return written


# ------------------------------------------------------------------------------------------------------------- reading


def decode(body: JSON | list[JSON], *, turn: int = 0) -> Reply:
    """The reply in a whole, unstreamed answer; a list is a stream that was asked for without ``alt=sse``.

    Raises:
        ProviderError: the body holds an error, or no answer at all.
    """
    accumulator = Accumulator(turn=turn)
    accumulator.feed(body)
    return accumulator.done(whole=not isinstance(body, list))


# ------------------------------------------------------------------------------------------------------------ counting


def field(form: Any, name: str) -> Any:
    """A field of an object under its name or its name in snake case, which Google's servers take too.

    >>> field({"function_call": 1}, "functionCall"), field(None, "text")
    (1, None)
    """
    if not isinstance(form, dict):
        return None
    return form[name] if name in form else form.get(_snake(name))


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def items(form: Any, name: str) -> list[Any]:
    """The entries of a repeated field; one alone may stand without a list."""
    value = field(form, name)
    return value if isinstance(value, list) else [] if value is None else [value]


def segments(body: JSON) -> Segments:
    """Which text of a request belongs to which part, in the order of the body; what stands around it is not in here."""
    apart = [Segment("system", str(field(part, "text") or "")) for part in items(field(body, "systemInstruction"), "parts")]
    found, memo = spoken(items(body, "contents"), _segments, asks=_is_prompt)
    tools = [defined(form, field(form, "name")) for tool in items(body, "tools") for form in items(tool, _DECLARED) or [tool]]
    return Segments([*apart, *found, *tools], wire=NAME, memo=memo)


_DECLARED: Final = "functionDeclarations"


def _segments(content: Any, place: int, prompt: str, _names: dict[str, str]) -> Iterator[Segment]:
    words = "assistant" if field(content, "role") == "model" else prompt
    for part in items(content, "parts"):
        yield from _part(part, words, place)


def _is_prompt(content: Any) -> bool:
    """Whether somebody asks here. Results have the role of the user, too."""
    return field(content, "role") != "model" and not any(field(part, "functionResponse") for part in items(content, "parts"))


def _part(part: Any, words: str, place: int) -> Iterator[Segment]:
    if isinstance(call := field(part, "functionCall"), dict):
        yield Segment("tool_calls", str(call.get("name") or ""), message=place)
        yield Segment("tool_calls", dumps(call.get("args") or {}), message=place)
    elif isinstance(result := field(part, "functionResponse"), dict):
        yield Segment("tool_results", result_text(result.get("response")), message=place)
        yield from (Segment("images", _described(inner), message=place) for inner in items(result, "parts"))
    elif field(part, "inlineData") or field(part, "fileData"):
        yield Segment("images", _described(part), message=place)
    else:
        text = field(part, "text")
        yield Segment(words, text if isinstance(text, str) else dumps(part), message=place)


def result_text(response: Any) -> str:
    """What a model reads of a result: the value of ``output`` or ``error`` where nothing stands beside it, else the object."""
    if isinstance(response, dict) and len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("output", "error", "result"):
            return value if isinstance(value, str) else dumps(value)
    return dumps(response)


def _described(part: Any) -> str:
    return described(field(field(part, "inlineData"), "data"))
