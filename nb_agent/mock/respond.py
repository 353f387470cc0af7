"""From the path and the body of a request to the answer: which wire format, what it asks, what the model says, how it is written.

The function behind `nb_agent.mock.answer`, in a module of its own so that who never asks the mock model does not load it.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn, cast

from nb_agent.mock import anthropic_messages, chat_completions, faults, gemini_generate, responses, wire
from nb_agent.mock.models import MODELS, Answer, Model, model
from nb_agent.mock.planner import plan
from nb_agent.mock.wire import Draft, Format, Frame, Refused, Usage
from nb_agent.values import JSON, dumps, encode

__all__ = ["FORMATS", "respond"]

#: The wire formats that are spoken here; the first one also words what is nobody's.
FORMATS: Final[tuple[Format, ...]] = (
    cast("Format", chat_completions),
    cast("Format", responses),
    cast("Format", anthropic_messages),
    cast("Format", gemini_generate),
)
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream; charset=utf-8"
_VERSION: Final = re.compile(r"/v\d\w*(?=/)")  # /v1, /v1beta: servers differ, and clients too


#: Where a vendor has a status of its own: the path, and the usual status -> the vendor's.
_STATUS: Final = {(anthropic_messages.PATH, 503): 529}

#: The end of a path that asks for a count -> that of the request which it counts, the key of the answer, and what is beside it.
_COUNTS: Final[dict[str, tuple[str, str, JSON]]] = {
    "/responses/input_tokens": ("/responses", "input_tokens", {"object": "response.input_tokens"}),
    "/messages/count_tokens": ("/messages", "input_tokens", {}),
    ":countTokens": (":generateContent", "totalTokens", {}),
}


def respond(path: str, content: bytes, served: Model) -> Answer:
    """The answer of the mock server; a refusal is an answer too."""
    route = _VERSION.sub("", "/" + path.partition("?")[0].strip("/"), count=1)
    counting = next((end for end in _COUNTS if route.endswith(end)), "")
    whole = route.removesuffix(counting) + _COUNTS[counting][0] if counting else route
    spoken, carried = next(((form, said) for form in FORMATS if (said := form.carried(whole)) is not None), (FORMATS[0], None))
    try:
        if carried is not None:
            body = wire.parse(content) | carried
            return _counted(spoken, body, counting) if counting else _answered(spoken, body, served)
        return _models(route) if route == "/models" or route.startswith("/models/") else _nowhere(path)
    except Refused as refused:
        status = _STATUS.get((spoken.PATH, refused.status), refused.status)
        return Answer(status, _JSON, iter([encode(spoken.error(refused))]))


def _nowhere(path: str) -> NoReturn:
    raise Refused(f"Invalid URL ({path}). The mock model speaks at: {', '.join(form.PATH for form in FORMATS)}.", status=404)


def _counted(spoken: Format, body: JSON, counting: str) -> Answer:
    """What a request would cost, without an answer to it. Google's clients may wrap it up."""
    body |= body.pop("generateContentRequest", {})
    spoken.read(body, counting=True)
    _, key, more = _COUNTS[counting]
    return Answer(200, _JSON, iter([encode({**more, key: wire.count(body, spoken)})]))


def _answered(spoken: Format, body: JSON, served: Model) -> Answer:
    ask = spoken.read(body)
    made = model(ask.model, served)
    fault = faults.chosen(ask, made.fault)
    seed = _seed(body)
    faults.refuse(fault, seed, spoken.too_long(made.window, made.window + 1))
    prompt = wire.count(body, spoken)
    room = made.window - prompt
    if room <= 0:
        raise spoken.too_long(made.window, prompt)
    drafts = faults.spoil(fault, wire.drafts(plan(ask), ask, room=room, seed=seed), ask, seed)
    usage = Usage(prompt, wire.completion(drafts, ask.model))
    streams = bool(body.get("stream"))
    frames = spoken.stream(body, drafts, usage, seed) if streams else [_whole(spoken, body, drafts, usage, seed)]
    answer = Answer(200, _EVENTS if streams else _JSON, wire.paced(frames, made.speed, usage.completion))
    return faults.disturb(fault, answer, spoken, streams=streams)


def _whole(spoken: Format, body: JSON, drafts: list[Draft], usage: Usage, seed: str) -> Frame:
    return Frame(encode(spoken.whole(body, drafts, usage, seed)), usage.completion)


def _seed(body: JSON) -> str:
    """What ids are made from: the request without how the answer is to be delivered, so that both ways give the same ids."""
    return json.dumps({key: value for key, value in body.items() if key not in ("stream", "stream_options")}, sort_keys=True)


def _models(route: str) -> Answer:
    """The list of models, or one of them; other names work too, but are not listed."""
    name = route.removeprefix("/models").strip("/")
    known = {each: {"id": each, "object": "model", "created": 0, "owned_by": "nb_agent"} for each in MODELS}
    if name and name not in known:
        raise Refused(f"The model '{name}' does not exist.", status=404, code="model_not_found", param="model")
    found = known[name] if name else {"object": "list", "data": list(known.values())}
    return Answer(200, _JSON, iter([dumps(found).encode()]))
