"""What a run is answered with: by its limits first, then by the caller, then by a person.

A run that goes round in circles, or that would use more than it may, is stopped here and not in the loop, which knows no limits but
those on rounds and time. Limits hold before a request goes out: what its answer will use, nobody knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nb_agent import tokens
from nb_agent.errors import SettingError
from nb_agent.events import Answer, Delta, Event, ReplyDone, RequestReady, Stop
from nb_agent.guards.repeats import Repeats
from nb_agent.messages import Request
from nb_agent.pricing import Prices, cost
from nb_agent.usage import Usage
from nb_agent.values import JSON

__all__ = ["Answers", "Spending"]


class Spending:
    """What a run has used, and whether its next request may still go out.

    Args:
        model: whose tokens and prices they are.
        count: gives a request's tokens in the form that the views show (see `views.fold`).
        most_tokens: of all requests and answers together, as reported; as counted, where nothing is reported.
        most_cost: in the currency of ``prices``, US dollars without them.
        prices: your own (see `pricing.cost`).

    Raises:
        SettingError: a limit is not above 0, or one on cost cannot be kept since no price is known.
    """

    def __init__(
        self,
        model: str,
        count: Callable[[Request], JSON],
        *,
        most_tokens: int | None = None,
        most_cost: float | None = None,
        prices: Prices | None = None,
    ) -> None:
        for name, limit in (("token_limit", most_tokens), ("cost_limit", most_cost)):
            if limit is not None and limit <= 0:
                raise SettingError(f"{name}={limit!r} must be above 0; leave it out for no limit")
        if most_cost is not None and cost(Usage(input=1, output=1), model, prices=prices) is None:
            raise SettingError(
                f"cost_limit={most_cost!r} cannot be kept: no price is known for {model!r}; give prices=, install genai-prices, "
                "or use token_limit instead"
            )
        self._model, self._count = model, count
        self._most_tokens, self._most_cost = most_tokens, most_cost
        self._prices = prices
        self._asked = 0  # tokens of the request that is out
        self._tokens = 0
        self._cost = 0.0

    def answer(self, event: Event) -> Stop | None:
        """`Stop` to a request that would pass a limit; of replies it takes note."""
        if self._most_tokens is None and self._most_cost is None:
            return None
        if isinstance(event, RequestReady):
            self._asked = self._count(event.request)["total"]
            return self._stop()
        if isinstance(event, ReplyDone):
            self._note(event)
        return None

    def _stop(self) -> Stop | None:
        most = self._most_tokens
        if most is not None and self._tokens + self._asked > most:
            words = f"{self._tokens:,} tokens used, {self._asked:,} in the next request; the limit is {most:,}"
            return Stop("token_limit", words)
        next_cost = self._price(Usage(input=self._asked))
        if self._most_cost is not None and self._cost + next_cost > self._most_cost:
            words = f"{self._cost:.4g} spent, {next_cost:.4g} for the next request alone; the limit is {self._most_cost:g}"
            return Stop("cost_limit", words)
        return None

    def _note(self, event: ReplyDone) -> None:
        usage = event.reply.usage
        if usage is None or usage.total_tokens is None:
            usage = Usage(input=self._asked, output=tokens.breakdown_reply(event.reply.message, model=self._model).total)
        self._tokens += usage.total_tokens or 0
        self._cost += self._price(usage)

    def _price(self, usage: Usage) -> float:
        """What usage costs, where anybody wants to know."""
        made = None if self._most_cost is None else cost(usage, self._model, prices=self._prices)
        return 0.0 if made is None else made.total


class Answers:
    """The answers to one run, each from the first who has one.

    Attributes:
        held: seconds in which the run waited for an answer. They are not its own.
    """

    def __init__(self, first: Callable[[Event], Answer], repeats: Repeats, spending: Spending) -> None:
        self.held = 0.0
        self._since = 0.0
        self._first = first
        self._repeats = repeats
        self._spending = spending

    def clock(self) -> float:
        """Seconds, without those in which somebody thought about an answer."""
        return time.monotonic() - self.held

    def __call__(self, event: Event, person: Callable[[Event], Answer] = lambda _: None) -> Answer:
        """The answer to one event; the ``person`` is asked where nothing else has one. Pieces of a reply never are."""
        if isinstance(event, Delta):
            return None
        self.hold()
        try:
            if isinstance(event, RequestReady) and (words := self._repeats.stopped):
                return Stop("repeated_calls", words)
            if stop := self._spending.answer(event):
                return stop
            given = self._first(event)
            return person(event) if given is None else given
        finally:
            self.resume()

    def hold(self) -> None:
        """The seconds from here to `resume` are not the run's own."""
        self._since = time.monotonic()

    def resume(self) -> None:
        """The run goes on."""
        self.held += time.monotonic() - self._since
