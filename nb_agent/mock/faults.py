"""Mistakes on demand: what models and their servers do wrong, one at a time, so that a lesson can show it and a host can be tried.

A fault is asked for by a word in the prompt, ``fault:NAME``, by the name of the model, ``mock:NAME``, or of a whole server. Faults
of the model change what it says before that is written down, those of the server change the answer on its way. All are in one table
with what they show.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from nb_agent.adapters.anthropic_messages.words import sound
from nb_agent.errors import SettingError
from nb_agent.messages import Definition, ToolCall
from nb_agent.mock.models import Answer, Model, Refused, options
from nb_agent.mock.plans import Ask, outcomes, turn_of
from nb_agent.mock.wire import Draft, Format, token
from nb_agent.values import dumps, encode

__all__ = ["FAULTS", "Fault", "chosen", "disturb", "refuse", "served", "spoil", "without_word"]

#: The word may stand right behind Chinese, and have the colon of a Chinese keyboard.
_WORD: Final = re.compile(r"(?<![a-z0-9_])fault[:：]([a-z_]+)", re.IGNORECASE | re.ASCII)

#: What is made up for a type; a text for everything else.
_VALUES: Final = {"integer": 12345, "number": 1.5, "boolean": True, "array": [], "object": {}}

#: Requests that were refused once; the only thing that the mock model remembers.
_sent_away: deque[str] = deque(maxlen=64)

#: Seconds that a server says to wait, and seconds that one that stalls says nothing.
WAIT: Final = 1
_SILENT: Final = 600
_SLICE: Final = 0.05  # seconds: an interrupt acts at once


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake: what it shows, and where it is made. Exactly one of the three is set.

    ``once`` goes with a refusal; ``breaks`` says that the connection is gone after the last of the chunks.
    """

    shows: str
    drafts: Callable[[list[Draft], Ask, str], list[Draft]] | None = None
    once: bool = False
    refused: Callable[[], Refused | None] | None = None
    chunks: Callable[[Iterator[bytes], Format, bool], Iterator[bytes]] | None = None
    breaks: bool = False


def chosen(ask: Ask, made: str = "") -> Fault | None:
    """The fault that a request asks for: by a word of its prompt, else the one that its model makes.

    Raises:
        Refused: there is none of that name; the text lists them.
    """
    prompt = next((message.text for message in reversed(ask.messages) if message.role == "user"), "")
    found = _WORD.search(prompt)
    name = found[1].lower() if found else made
    return _named(name) if name else None


def _named(name: str) -> Fault:
    if name not in FAULTS:
        raise Refused(f"The mock model has no fault named '{name}'. It has: {', '.join(FAULTS)}.", param="model")
    return FAULTS[name]


def served(**given: str) -> Model:
    """How a server's models behave where nothing else is asked for; options left empty say nothing.

    Raises:
        SettingError: an option does not take what was given, or there is no such fault.
    """
    try:
        made = options({name: text for name, text in given.items() if text})
        if made.fault:
            _named(made.fault)
    except Refused as refused:
        raise SettingError(str(refused)) from None
    return made


def without_word(prompt: str) -> str:
    """The prompt without the word that asks for a fault, so that the rest is answered as usual."""
    return _WORD.sub("", prompt)


def refuse(fault: Fault | None, seed: str, too_long: Refused) -> None:
    """Raise what the fault refuses the request with, if it does. A server that is busy once has to remember whom it sent away.

    Args:
        fault: the one that was chosen.
        seed: tells requests apart.
        too_long: how the format's vendor words that a prompt does not fit.
    """
    if fault is None or fault.refused is None:
        return
    if fault.once and seed in _sent_away:
        _sent_away.remove(seed)
        return
    if fault.once:
        _sent_away.append(seed)
    raise fault.refused() or too_long


def spoil(fault: Fault | None, drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    """The choices of an answer as a model with this fault gives them: in the first round of a turn, so that it can do better."""
    if fault is None or fault.drafts is None or (fault.drafts is not _repeated and outcomes(turn_of(ask.messages))):
        return drafts
    return fault.drafts(drafts, ask, seed)


def disturb(fault: Fault | None, answer: Answer, spoken: Format, *, streams: bool) -> Answer:
    """The answer as it comes from a server with this fault."""
    if fault is None or fault.chunks is None:
        return answer
    return replace(answer, chunks=fault.chunks(answer.chunks, spoken, streams), breaks=fault.breaks)


# ----------------------------------------------------------------------------------------------- faults of the model


def _first_call(drafts: list[Draft], change: Callable[[ToolCall], ToolCall], **further: Any) -> list[Draft]:
    """The drafts with the first call of each changed; what calls nothing stays as it is."""
    return [
        replace(draft, calls=(change(draft.calls[0]), *draft.calls[1:]), **further) if draft.calls else draft for draft in drafts
    ]


def _unknown_tool(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    del ask, seed
    return _first_call(drafts, lambda call: replace(call, name=f"{call.name}_v2"))


def _broken_arguments(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    del ask, seed
    return _first_call(drafts, lambda call: replace(call, arguments=call.arguments.rstrip("}") + ","))


def _wrong_type(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    del ask, seed
    return _first_call(drafts, lambda call: replace(call, arguments=_misfit(call.arguments)))


def _misfit(arguments: str) -> str:
    """Arguments with the first value in a list, or a list as text; one that nobody knows where there are none."""
    given = sound(arguments) or {}
    name, value = next(iter(given.items()), ("unheard_of", True))
    return dumps({**given, name: dumps(value) if isinstance(value, list) else [value]})


def _cut_arguments(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    del ask, seed
    alone = [replace(draft, calls=draft.calls[:1]) for draft in drafts]  # what comes behind the cut does not come
    return _first_call(alone, lambda call: replace(call, arguments=call.arguments[: len(call.arguments) // 2]), finish="length")


def _filtered(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    del ask, seed
    return [Draft(draft.text[: len(draft.text) // 2], (), "content_filter") for draft in drafts]


def _two_choices(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    del ask
    other = replace(drafts[0], calls=tuple(replace(c, id=f"call_{token(seed, 'b', n)}") for n, c in enumerate(drafts[0].calls)))
    return [drafts[0], replace(other, text=f"{other.text} (in other words)".strip()) if other.text else other]


def _invented(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    """Where a model should ask for what is missing, it makes something up."""
    if not ask.tools or any(draft.calls for draft in drafts):
        return drafts
    tool = ask.tools[0]
    call = ToolCall(f"call_{token(seed, 'invented')}", tool.name, _made_up(tool))
    return [Draft("", (call,), "tool_calls")]


def _made_up(tool: Definition) -> str:
    parameters = tool.parameters.get("properties") or {}
    needed = tool.parameters.get("required") or list(parameters)
    return dumps({name: _VALUES.get((parameters.get(name) or {}).get("type", ""), "ABC-123") for name in needed})


def _repeated(drafts: list[Draft], ask: Ask, seed: str) -> list[Draft]:
    """The call that it has had a result for, again and again."""
    made = next((call for message in reversed(ask.messages) for call in message.tool_calls), None)
    return drafts if made is None else [Draft("", (replace(made, id=f"call_{token(seed, 'again')}"),), "tool_calls")]


# ---------------------------------------------------------------------------------------------- faults of the server

_BROKEN: Final = Refused("The worker ran out of slots.", status=503, code="overloaded")


def _half(chunks: Iterator[bytes]) -> list[bytes]:
    whole = list(chunks)
    return whole[: max(1, len(whole) // 2)] if len(whole) > 1 else [whole[0][: len(whole[0]) // 2]]


def _dropped(chunks: Iterator[bytes], spoken: Format, streams: bool) -> Iterator[bytes]:  # noqa: FBT001  all of the table are alike
    del spoken, streams
    yield from _half(chunks)


def _garbled(chunks: Iterator[bytes], spoken: Format, streams: bool) -> Iterator[bytes]:  # noqa: FBT001  likewise
    """The event behind half of a stream ends in the middle of its JSON."""
    del spoken
    whole = list(chunks)
    begun = _half(iter(whole))
    yield from begun
    if streams:
        name, mark, content = whole[min(len(begun), len(whole) - 1)].partition(b"data: ")
        yield name + mark + content[: len(content) // 2].rstrip() + b"\n\n"


def _failing(chunks: Iterator[bytes], spoken: Format, streams: bool) -> Iterator[bytes]:  # noqa: FBT001  likewise
    """An error of the vendor's own form behind half of a stream, or in the place of an answer, as some servers send it with 200."""
    if not streams:
        yield encode(spoken.error(_BROKEN))
        return
    yield from _half(chunks)
    yield spoken.broken_off(_BROKEN)


def _stalled(chunks: Iterator[bytes], spoken: Format, streams: bool) -> Iterator[bytes]:  # noqa: FBT001  likewise
    del spoken, streams
    yield from _half(chunks)
    for _ in range(int(_SILENT / _SLICE)):
        time.sleep(_SLICE)
        yield b""  # nothing, but whoever reads can look at the clock


#: Name of a fault -> what it shows and how it is made.
FAULTS: Final[dict[str, Fault]] = {
    "invented_argument": Fault("an argument is made up where the prompt does not say it", drafts=_invented),
    "unknown_tool": Fault("a tool is called that does not exist", drafts=_unknown_tool),
    "broken_arguments": Fault("the arguments are no JSON", drafts=_broken_arguments),
    "wrong_type": Fault("an argument does not fit the schema", drafts=_wrong_type),
    "repeat": Fault("the same call is asked for again and again", drafts=_repeated),
    "cut_arguments": Fault("the output limit cuts a call in two", drafts=_cut_arguments),
    "filter": Fault("a filter stops the answer", drafts=_filtered),
    "two_choices": Fault("two choices come where one was asked for", drafts=_two_choices),
    "rate_limit": Fault(
        "the server asks to slow down (429)",
        refused=lambda: Refused(f"Rate limit reached. Please try again in {WAIT}s.", status=429, code="rate_limit_exceeded"),
    ),
    "busy_once": Fault(
        "the server is busy, and answers when it is asked again",
        refused=lambda: Refused("The engine is busy. Please try again.", status=503, code="overloaded"),
        once=True,
    ),
    "server_error": Fault(
        "the server fails (500)", refused=lambda: Refused("The server had an error.", status=500, code="server_error")
    ),
    "overload": Fault(
        "the server is overloaded (503)", refused=lambda: Refused("The engine is overloaded.", status=503, code="overloaded")
    ),
    "bad_key": Fault(
        "the key is refused (401)", refused=lambda: Refused("Incorrect API key provided.", status=401, code="invalid_api_key")
    ),
    "context": Fault(
        "the prompt does not fit into the window",
        refused=lambda: None,  # each vendor has words of its own for it
    ),
    "drop": Fault("the connection breaks off in the middle of the answer", chunks=_dropped, breaks=True),
    "broken_json": Fault("the stream holds something that is no JSON", chunks=_garbled),
    "error_in_stream": Fault("an error comes in the middle of the answer", chunks=_failing),
    "stall": Fault("the answer stops coming, and the connection stays open", chunks=_stalled),
}
