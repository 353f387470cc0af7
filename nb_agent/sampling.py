"""What an agent's model answers where an MCP server asks it to (sampling): one request without tools, outside of the conversation.

Unlike `exchange`, this shows nothing while it goes on: the person has seen the question, and sees the answer before it goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from nb_agent.adapters import WIRES, receive
from nb_agent.events import Waiting
from nb_agent.loop import Target
from nb_agent.messages import Message, Reply, Request

__all__ = ["sampled"]

#: Seconds that a model has for an answer that a server asked for.
_LIMIT: Final = 60.0

Send: TypeAlias = Callable[[Request, float | None], Iterator[bytes | Waiting]]


def sampled(target: Target, send: Send, messages: tuple[Message, ...], *, system: str | None, max_tokens: int) -> Reply:
    """The model's reply to the messages of a server.

    Raises:
        ProviderError: the model server failed, or took too long.
    """
    first = (Message.of("system", system),) if system else ()
    request = WIRES[target.wire].request(
        (*first, *messages), (), model=target.model, stream=False, settings={"max_tokens": max_tokens}
    )
    came = (part for part in send(request, time.monotonic() + _LIMIT) if not isinstance(part, Waiting))
    reading = receive(target.wire, came)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
