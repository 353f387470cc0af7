"""From the path and the body of a request to the answer: which wire format, what it asks, what the model says, how it is written.

The function behind `nb_agent.mock.answer`, in a module of its own so that who never asks the mock model does not load it.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn, cast

from nb_agent.mock import chat_completions, wire
from nb_agent.mock.models import MODELS, Answer, window
from nb_agent.mock.planner import plan
from nb_agent.mock.wire import Format, Frame, Refused, Usage
from nb_agent.values import JSON, dumps, encode

__all__ = ["FORMATS", "respond"]

#: Path below ``/v1`` -> the wire format that is spoken there.
FORMATS: Final[dict[str, Format]] = {chat_completions.PATH: cast("Format", chat_completions)}
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream; charset=utf-8"


def respond(path: str, content: bytes) -> Answer:
    """The answer of the mock server; a refusal is an answer too."""
    route = "/" + path.partition("?")[0].strip("/").removeprefix("v1").strip("/")
    if route == "/models" or route.startswith("/models/"):
        return _models(route.removeprefix("/models").strip("/"))
    spoken = FORMATS.get(route, FORMATS[chat_completions.PATH])
    try:
        return _answered(spoken, wire.parse(content)) if route in FORMATS else _nowhere(path)
    except Refused as refused:
        return Answer(refused.status, _JSON, iter([encode(spoken.error(refused))]))


def _nowhere(path: str) -> NoReturn:
    raise Refused(f"Invalid URL ({path}). The mock model speaks at: {', '.join(f'/v1{known}' for known in FORMATS)}.", status=404)


def _answered(spoken: Format, body: JSON) -> Answer:
    ask = spoken.read(body)
    prompt = wire.count(body, spoken)
    room = window(ask.model) - prompt
    if room <= 0:
        raise Refused(
            f"This model's maximum context length is {window(ask.model)} tokens. "
            f"However, your messages resulted in {prompt} tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
            param="messages",
        )
    seed = _seed(body)
    drafts = wire.drafts(plan(ask), ask, room=room, seed=seed)
    usage = Usage(prompt, wire.completion(drafts, ask.model))
    slow = MODELS.get(ask.model, MODELS["mock"]).slow
    if body.get("stream"):
        return Answer(200, _EVENTS, wire.paced(spoken.stream(body, drafts, usage, seed), slow=slow))
    whole = Frame(encode(spoken.whole(body, drafts, usage, seed)), usage.completion)
    return Answer(200, _JSON, wire.paced([whole], slow=slow))


def _seed(body: JSON) -> str:
    """What ids are made from: the request without how the answer is to be delivered, so that both ways give the same ids."""
    return json.dumps({key: value for key, value in body.items() if key not in ("stream", "stream_options")}, sort_keys=True)


def _models(name: str) -> Answer:
    """The list of models, or one of them; other names work too, but are not listed."""
    known = {model: {"id": model, "object": "model", "created": 0, "owned_by": "nb_agent"} for model in MODELS}
    if name and name not in known:
        refused = Refused(f"The model '{name}' does not exist.", status=404, code="model_not_found", param="model")
        return Answer(404, _JSON, iter([encode(chat_completions.error(refused))]))
    found = known[name] if name else {"object": "list", "data": list(known.values())}
    return Answer(200, _JSON, iter([dumps(found).encode()]))
