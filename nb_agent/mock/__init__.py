"""The mock model: a whole model server as a function of the request, with no key, no network and no clock in its answers.

`send` calls it in the process, `nb_agent.mock.server` serves the very same function over HTTP. It knows nothing of the world: it
works with the tools that it is given (`planner`), and plays the few scripts of the lessons (`scenarios`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from nb_agent.adapters.refusals import refusal
from nb_agent.messages import Request
from nb_agent.mock import chat_completions, wire
from nb_agent.mock.planner import plan
from nb_agent.mock.wire import Format, Frame, Refused, Usage
from nb_agent.values import JSON, dumps, encode

__all__ = ["MODELS", "Answer", "Model", "answer", "send", "window"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that the mock server has: its context window in tokens, and whether it answers at a reader's pace."""

    window: int = 8192
    slow: bool = False


#: The models by name. Any other name is taken too and behaves like the first.
MODELS: Final = {"mock": Model(), "mock-slow": Model(slow=True), "mock-1k": Model(window=1024)}

#: Path below ``/v1`` -> the wire format that is spoken there.
FORMATS: Final[dict[str, Format]] = {chat_completions.PATH: cast("Format", chat_completions)}
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; ``chunks`` can be read once."""

    status: int
    media_type: str
    chunks: Iterator[bytes]


def window(model: str) -> int:
    """The context window of a model, in tokens."""
    return MODELS.get(model, MODELS["mock"]).window


def send(request: Request) -> Iterator[bytes]:
    """Answer a request in the process: the bytes of the answer as they would come over the network.

    Raises:
        ProviderError: the mock model refuses the request, as a real server would.
    """
    answered = answer(request.path, request.content)
    if answered.status >= 400:
        raise refusal(answered.status, b"".join(answered.chunks))
    return answered.chunks


def answer(path: str, content: bytes = b"") -> Answer:
    """Answer the body that was sent to a path such as ``/v1/chat/completions``. The same body gets the same answer."""
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
    known = [{"id": model, "object": "model", "created": 0, "owned_by": "nb_agent"} for model in MODELS]
    if not name:
        return Answer(200, _JSON, iter([dumps({"object": "list", "data": known}).encode()]))
    if name in MODELS:
        return Answer(200, _JSON, iter([dumps(known[list(MODELS).index(name)]).encode()]))
    refused = Refused(f"The model '{name}' does not exist.", status=404, code="model_not_found", param="model")
    return Answer(404, _JSON, iter([encode(chat_completions.error(refused))]))
