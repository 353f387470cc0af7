"""The models that the mock server has, and the form of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["MODELS", "Answer", "Model", "is_known", "model", "window"]


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


def is_known(name: str) -> bool:
    """Whether a name is one of the mock server's own; behind a colon may stand a fault (see `faults`)."""
    return name.partition(":")[0] in MODELS


def model(name: str) -> Model:
    """The model of a name; those that are not known are like the first."""
    return MODELS.get(name.partition(":")[0], MODELS["mock"])


def window(name: str) -> int:
    """The context window of a model, in tokens."""
    return model(name).window
