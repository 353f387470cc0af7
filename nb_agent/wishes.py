"""What is wished for one run, in the words of `Agent.run`, and what a prompt is. It puts nothing together: `assembly` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from nb_agent import compaction as compacting
from nb_agent.errors import SettingError
from nb_agent.events import Answer, Event
from nb_agent.guards.policy import PolicyLike
from nb_agent.messages import Image, Message, Text
from nb_agent.tools.pictures import image
from nb_agent.tools.toolbox import AnyTool

__all__ = ["AS_SET", "Compaction", "Tools", "Wished", "first", "said_of"]

#: What is sent of a conversation that does not fit: names of strategies or functions (see `compaction`), ``None`` for all of it.
Compaction: TypeAlias = str | compacting.Strategy | Sequence[str | compacting.Strategy] | None
#: Tools, or functions that are made into tools.
Tools: TypeAlias = Iterable[AnyTool | Callable[..., Any]]

AS_SET: Final = ("as the agent is set",)  # None means off


@dataclass(frozen=True, slots=True)
class Wished:
    """What is wished for one run; ``None`` is as the agent is set."""

    tools: Tools | str | None = None
    stream: bool | None = None
    max_rounds: int | None = None
    time_limit: float | None = None
    policy: PolicyLike = None
    compaction: Compaction = AS_SET
    token_limit: int | None = None
    cost_limit: float | None = None
    answer: Callable[[Event], Answer] = lambda _: None


def said_of(prompt: str | Sequence[Any]) -> Message:
    """What the user says: a text, or texts and pictures.

    Raises:
        SettingError: it says nothing.
    """
    if isinstance(prompt, str):
        parts: list[Text | Image] = [Text(prompt)]
    else:
        parts = [Text(part) if isinstance(part, str) else part if isinstance(part, Text) else image(part) for part in prompt]
    if not any(isinstance(part, Image) or part.text.strip() for part in parts):
        raise SettingError("the prompt is empty; write what the model should do")
    return Message("user", tuple(parts))


def first(wished: Any, usual: Any) -> Any:
    """What is wished, else what is usual."""
    return usual if wished is None else wished
