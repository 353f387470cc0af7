"""Where a run stands after the events that it has begun with, so that another one can go on from there: a branch.

It reads what was said and asks nobody; `loop` goes on from what it gives. Unlike `history`, it looks at one run and mends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nb_agent.endings import CLOSE, ending_of
from nb_agent.errors import SettingError
from nb_agent.events import Changed, Compacted, Event, ReplyDone, RequestReady, ToolDone
from nb_agent.messages import Reply
from nb_agent.turns import Turns

__all__ = ["Standing", "before", "resumed"]


class Standing(NamedTuple):
    """The round that a run is in, the reply whose turn is still to be taken, and how often it has asked the model to go on."""

    number: int
    reply: Reply | None
    continuations: int


def resumed(begun: Sequence[Event], turns: Turns) -> Standing:
    """Bring the turns of a run to where its first events lead."""
    number, reply, continuations = 0, None, 0
    for event in begun:
        if isinstance(event, RequestReady):
            continuations += _close(reply, turns)
            number, reply = event.number, None
        elif isinstance(event, ReplyDone) and not event.purpose:
            reply = event.reply
            turns.reply(reply.message)
        elif isinstance(event, (ToolDone, Changed)) and event.result is not None:
            turns.results[event.result.call_id] = event.result
    if reply is None or not turns.results:
        return Standing(number, reply, continuations)
    _close(reply, turns)
    return Standing(number, None, continuations)


def _close(reply: Reply | None, turns: Turns) -> int:
    """End the turn of a reply; 1 where the model was asked to go on."""
    if reply is not None and ending_of(reply) == "length":
        turns.ask_to_go_on()
        return 1
    if reply is not None:
        turns.close(*CLOSE["stopped"])
    return 0


def before(events: Sequence[Event], number: int, *, calls: bool = False) -> list[Event]:
    """The events of a run until its request of round ``number`` goes out, or until the ``calls`` of that round are made.

    Raises:
        SettingError: the run has no such round, or no such calls.
    """
    for place, event in enumerate(events):
        if isinstance(event, ReplyDone) and event.number == number and not event.purpose and calls:
            if not event.reply.message.tool_calls:
                break
            return list(events[: place + 1])
        if isinstance(event, (Compacted, RequestReady)) and event.number == number and not calls:
            return list(events[:place])
    rounds = max((event.number for event in events if isinstance(event, RequestReady)), default=0)
    if calls and 1 <= number <= rounds:
        raise SettingError(f"round {number} of this run asks for no calls")
    raise SettingError(f"this run has no round {number}; it has {rounds}" if rounds else "this run has no rounds yet")
