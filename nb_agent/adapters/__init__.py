"""Neutral values to wire JSON and wire bytes to neutral values, one module for each wire format.

Each format has the same four names: ``request``, ``Accumulator`` (``feed``, ``done``), ``decode`` and ``segments``. All pure.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import ModuleType
from typing import Any, Final

from nb_agent.adapters import anthropic_messages, chat_completions, gemini_generate, responses, sse
from nb_agent.messages import Piece, Reply

__all__ = ["WIRES", "receive"]

#: Name of a wire format -> the module that speaks it.
WIRES: Final[dict[str, ModuleType]] = {
    chat_completions.NAME: chat_completions,
    responses.NAME: responses,
    anthropic_messages.NAME: anthropic_messages,
    gemini_generate.NAME: gemini_generate,
}


def receive(wire: str, chunks: Iterable[bytes], *, turn: int = 0) -> Generator[tuple[str, tuple[Piece, ...]], None, Reply]:
    """Read a reply as it comes: yields each payload of the stream with its pieces, and returns the whole.

    Raises:
        ProviderError: the answer is an error, is cut off, or breaks the format.
    """
    adapter: Any = WIRES[wire]
    accumulator = adapter.Accumulator(turn=turn)
    for payload, whole in sse.payloads(chunks):
        if whole:  # the server did not stream, asked or unasked
            reply: Reply = adapter.decode(sse.parsed(payload), turn=turn)
            return reply
        yield payload, accumulator.feed(payload)
    reply = accumulator.done()
    return reply
