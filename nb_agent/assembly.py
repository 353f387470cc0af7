"""Puts the parts of one run together: the loop, who carries calls out, what is sent of a long history, limits, and who answers.

Each part comes ready made from the module that knows it; what an agent is set to comes as arguments. Nothing is sent before the run
is pulled, which `agent` does.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from nb_agent import by_hand, loop
from nb_agent import compaction as compacting
from nb_agent.answering import Answers, Spending
from nb_agent.compaction import Strategy
from nb_agent.events import Answer, Event, Waiting
from nb_agent.guards.masking import NO_MASKS, Masks
from nb_agent.guards.policy import Policy
from nb_agent.guards.repeats import Repeats
from nb_agent.loop import Limits, Target
from nb_agent.messages import Message, Request
from nb_agent.pricing import Prices
from nb_agent.providers import Sender
from nb_agent.resuming import before
from nb_agent.run import Branch, Run, counting
from nb_agent.stepping import Mode, Stepper
from nb_agent.tools.calling import Caller
from nb_agent.tools.capture import captured
from nb_agent.tools.results import longest
from nb_agent.tools.sets import crowded
from nb_agent.tools.toolbox import Toolbox
from nb_agent.values import JSON
from nb_agent.views import outputs
from nb_agent.views.asking import Asking, by_typing
from nb_agent.views.fold import Fold

__all__ = ["Assembled", "Wishes", "assembled"]


def _nothing(_: Event) -> Answer:
    return None


@dataclass(frozen=True, slots=True)
class Wishes:
    """How one run is to be carried out: what an agent is set to, with what is wished for this run.

    Attributes:
        answer: answers events before anybody is asked (see `events`).
        idle: is called while calls are waited for, in the thread that pulls the run.
        mode: where a person is asked first (see `stepping.Stepper`).
    """

    toolbox: Toolbox = field(default_factory=Toolbox)
    settings: JSON | None = None
    stream: bool = True
    limits: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)
    masks: Masks = NO_MASKS
    compaction: str | Strategy | Sequence[str | Strategy] | None = compacting.DEFAULT
    memory: compacting.Memory | None = None
    tool_time_limit: float | None = None
    max_parallel: int = 32
    token_limit: int | None = None
    cost_limit: float | None = None
    prices: Prices | None = None
    answer: Callable[[Event], Answer] = _nothing
    idle: Callable[[], None] | None = None
    mode: Mode = "run_on"


@dataclass(slots=True)
class Assembled:
    """A run that has not begun.

    Attributes:
        run: takes its events.
        answers: what it is answered with where no person is asked.
        stepper: what a person is asked.
        count: gives the tokens of a request of this run.
        asking: asks the person who watches; set by whoever shows the run.
        running: the loop.
    """

    run: Run
    answers: Answers
    stepper: Stepper
    count: Callable[[Request], JSON]
    asking: Asking = by_typing
    running: Generator[Event, Answer, None] = field(init=False)

    def write(self, request: Request, until: float | None) -> Iterator[bytes | Waiting]:
        """Have the person write the answer to a request."""
        del until
        yield from by_hand.written(request, len(self.run.requests), self.ask)

    def ask(self, question: JSON) -> JSON | None:
        """Ask the person who watches, in a time that is not the run's."""
        self.answers.hold()
        try:
            return self.asking(question)
        finally:
            self.answers.resume()

    def fold(self) -> Fold:
        """What a view of this run folds its events with."""
        return self.run.folding(lambda request, _: self.count(request))


def assembled(
    said: Message, history: Sequence[Message], target: Target, send: Sender, wishes: Wishes, left: Branch | None = None
) -> Assembled:
    """One run of a prompt. With ``left`` it goes on from where another one was left.

    Raises:
        SettingError: a limit, the compaction, or the place in the other run cannot work.
    """
    begun = () if left is None else before(left.run.events, left.number, calls=left.calls)
    count, toolbox = counting(target.model), wishes.toolbox
    spending = Spending(target.model, count, most_tokens=wishes.token_limit, most_cost=wishes.cost_limit, prices=wishes.prices)
    fitting = compacting.Fitting(
        compacting.chosen(wishes.compaction), model=target.model, window=target.window, count=count, memory=wishes.memory
    )
    repeats = Repeats(secrets.token_hex(8))
    answers = Answers(wishes.answer, repeats, spending)
    stepper = Stepper(toolbox.definitions, mode=wishes.mode)
    caller = Caller(
        toolbox,
        policy=wishes.policy,
        masks=wishes.masks,
        repeats=repeats,
        capture=functools.partial(captured, outputs.shown_by_tool),
        most_at_once=wishes.max_parallel,
        most_seconds=wishes.tool_time_limit,
        most_tokens=longest(target.window),
        model=target.model,
    )
    line = Assembled(
        Run(branches=() if left is None else (*left.run.branches, left), prices=wishes.prices), answers, stepper, count
    )
    send = line.write if target.model == by_hand.NAME else send
    seconds, began, sending = wishes.limits.seconds, answers.clock(), stepper.sending(send)
    line.running = loop.run(
        said,
        history,
        target=target,
        send=lambda request: sending(request, None if seconds is None else began + seconds + answers.held),
        calls=caller,
        definitions=toolbox.definitions,
        settings=wishes.settings,
        stream=wishes.stream,
        limits=wishes.limits,
        fitting=fitting,
        notices=tuple(filter(None, [crowded(len(toolbox))])),
        begun=begun,
        idle=wishes.idle,
        clock=answers.clock,
    )
    return line
