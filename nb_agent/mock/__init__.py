"""The mock model: a whole model server as a function of the request, with no key, no network and no clock in its answers.

`send` calls it in the process, `nb_agent.mock.server` serves the very same function over HTTP. What a model's name may ask for is
in `models`, which mistakes it makes in `faults`. It knows nothing of the world: it works with the tools that it is given
(`planner`), and plays the few scripts of the lessons (`scenarios`).
"""

from __future__ import annotations

from collections.abc import Iterator

from nb_agent.adapters.refusals import refusal
from nb_agent.messages import Request
from nb_agent.mock.models import MODELS, Answer, Model, is_known, window

__all__ = ["MODELS", "Answer", "Model", "answer", "is_known", "send", "window"]


def send(request: Request, served: Model | None = None) -> Iterator[bytes]:
    """Answer a request in the process: the bytes of the answer as they would come over the network. ``served`` is as in `answer`.

    Raises:
        ProviderError: the mock model refuses the request, as a real server would.
    """
    answered = answer(request.path, request.content, served)
    if answered.status >= 400:
        raise refusal(answered.status, b"".join(answered.chunks))
    return answered.chunks


def answer(path: str, content: bytes = b"", served: Model | None = None) -> Answer:
    """Answer the body that was sent to a path such as ``/v1/chat/completions``. The same body gets the same answer.

    Args:
        path: where it was sent; what stands behind a question mark is not looked at.
        content: the body, as JSON.
        served: the window, speed and fault of models whose names say nothing of them.
    """
    from nb_agent.mock.respond import respond  # noqa: PLC0415  50 ms of patterns that a run on a real model does not need

    return respond(path, content, served or Model())
