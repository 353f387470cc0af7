"""How a run ends: which reply is its last, and what the calls that an ending leaves open are told.

`events.ENDINGS` says what each ending means for a person.
"""

from __future__ import annotations

from typing import Final

from nb_agent.events import Ending
from nb_agent.messages import Reply

__all__ = ["CLOSE", "ending_of"]

#: What a call that an ending leaves open is told: code and words.
CLOSE: Final[dict[Ending, tuple[str, str]]] = {
    "stop": ("cancelled", "the run ended before the call was made"),
    "max_rounds": ("cancelled", "the run reached its limit on rounds before the call was made"),
    "length": ("truncated_arguments", "the call was cut off at the output token limit and was not made"),
    "content_filter": ("cancelled", "the answer was filtered and the call was not made"),
    "time_limit": ("cancelled", "the run reached its time limit before the call had a result"),
    "token_limit": ("cancelled", "the run reached its limit on tokens before the call was made"),
    "cost_limit": ("cancelled", "the run reached its limit on cost before the call was made"),
    "repeated_calls": ("cancelled", "the run was stopped before the call was made: the same calls came again and again"),
    "stopped": ("cancelled", "the person stopped the run before the call was made"),
    "error": ("cancelled", "the model server failed before the call had a result"),
    "cancelled": ("cancelled", "the person interrupted the run before the call had a result"),
}


def ending_of(reply: Reply) -> Ending | None:
    """How the run ends with this reply, ``None`` where it goes on."""
    if reply.finish in {"tool_calls", "paused"} or (reply.finish == "length" and reply.message.tool_calls):
        return None
    return reply.finish  # type: ignore[return-value]  # the others are endings too
