"""The models that the mock server has, what a model's name may ask for, and the forms of the answers.

A name is one of `MODELS`, and behind a colon what is to be different: ``mock:window=1500,speed=40,fault=drop``. A word without
``=`` is a fault (``mock:drop``). Any other name is taken too, and behaves like ``mock``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["MODELS", "Answer", "Model", "Refused", "is_known", "model", "options", "window"]


class Refused(Exception):  # noqa: N818  it is an answer to a client and no fault of this program
    """The request is one that a model server refuses.

    Attributes:
        status: HTTP status code.
        code: the provider's short word for the fault, or ``None``.
        param: the field that is at fault, or ``None``.
    """

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


@dataclass(frozen=True, slots=True)
class Model:
    """How a model behaves; what is zero or empty is left to the server that has it.

    Attributes:
        window: its context window, in tokens.
        speed: tokens per second; without it an answer comes at once.
        fault: the name of the mistake that it makes, one of `faults.FAULTS`.
    """

    window: int = 0
    speed: float = 0
    fault: str = ""

    def over(self, lower: Model) -> Model:
        """This model, with what it leaves open as the lower one has it."""
        return Model(self.window or lower.window, self.speed or lower.speed, self.fault or lower.fault)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; ``chunks`` can be read once. Where it ``breaks``, the connection is gone after the last of them."""

    status: int
    media_type: str
    chunks: Iterator[bytes]
    breaks: bool = False


_USUAL: Final = Model(window=8192)
#: The models by name.
MODELS: Final = {"mock": Model(), "mock-slow": Model(speed=30), "mock-1k": Model(window=1024)}


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError
    return int(text)


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < math.inf:
        raise ValueError
    return rate


#: What a name may ask for -> what it takes, in words and as a reader that raises `ValueError`.
OPTIONS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "window": ("a whole number of tokens, such as 1500", _whole),
    "speed": ("a number of tokens a second, such as 40", _rate),
    "fault": ("the name of a fault, such as drop", str),
}


def is_known(name: str) -> bool:
    """Whether a name is one of the mock server's own, whatever it asks for behind the colon."""
    return name.partition(":")[0] in MODELS


def options(given: Mapping[str, str]) -> Model:
    """A model of these options.

    Raises:
        Refused: there is no such option, or it does not take this; the text says what there is.
    """
    read: dict[str, Any] = {}
    for key, text in given.items():
        if key not in OPTIONS:
            listed = "; ".join(f"{name}={words}" for name, (words, _) in OPTIONS.items())
            raise Refused(f"The mock model has no option named '{key}'. It has: {listed}.", param="model")
        words, reader = OPTIONS[key]
        try:
            read[key] = reader(text)
        except ValueError:
            raise Refused(f"The mock model's option '{key}' takes {words}, and not '{text}'.", param="model") from None
    return Model(**read)


def model(name: str, served: Model = _USUAL) -> Model:
    """How the model of a name behaves: as the name asks, else as is its nature, else as the server has been told.

    Raises:
        Refused: the name asks for what there is not.
    """
    base, _, asked = name.partition(":") if is_known(name) else ("mock", "", "")
    parts = (part.strip() for part in asked.split(","))
    given = dict(_option(part) for part in parts if part)
    return options(given).over(MODELS[base]).over(served).over(_USUAL)


def _option(part: str) -> tuple[str, str]:
    key, sign, text = (piece.strip() for piece in part.partition("="))
    return (key, text) if sign or key in OPTIONS else ("fault", key)


def window(name: str) -> int:
    """The context window of a model, in tokens; the usual one where the name asks for what there is not."""
    try:
        return model(name).window
    except Refused:
        return _USUAL.window
