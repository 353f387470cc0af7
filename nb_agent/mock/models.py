"""The models that the mock server has, and the form of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["MODELS", "Answer", "Model", "window"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that the mock server has: its context window in tokens, and whether it answers at a reader's pace."""

    window: int = 8192
    slow: bool = False


#: The models by name. Any other name is taken too and behaves like the first.
MODELS: Final = {"mock": Model(), "mock-slow": Model(slow=True), "mock-1k": Model(window=1024)}


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; ``chunks`` can be read once."""

    status: int
    media_type: str
    chunks: Iterator[bytes]


def window(model: str) -> int:
    """The context window of a model, in tokens."""
    return MODELS.get(model, MODELS["mock"]).window
