"""A run that waits between two calls of Python: it stops at each question, and whoever holds it answers, now or in a later cell.

`Agent.run` with ``step=True`` asks a person while the cell runs; this asks nobody. What may be said is in `stepping`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from nb_agent.assembly import Assembled
from nb_agent.errors import SettingError
from nb_agent.events import Answer, Event
from nb_agent.run import Branch, Run
from nb_agent.values import JSON
from nb_agent.views import notebook

__all__ = ["Steps"]


class Steps:
    """A run that goes on when it is told.

    Args:
        assemble: puts the run together; for a branch, with where the run is left.
        remember: is called with every event.
        view: whether a notebook or a terminal shows it.

    Attributes:
        run: the run so far, and after `back` the branch of it.
        question: what is asked now (see `stepping`); ``None`` when the run has ended.
    """

    def __init__(self, assemble: Callable[..., Assembled], remember: Callable[[Event], None], *, view: bool = True) -> None:
        self._assemble = assemble
        self._remember = remember
        self._shown = notebook.opened(shown=view)
        self._begin(assemble())

    def _begin(self, line: Assembled) -> None:
        self._line = line
        self._event: Event | None = None
        self.run: Run = line.run
        self.question: JSON | None = None
        self._shown.begin(line.run, line.fold())
        line.asking = self._shown.ask
        self._pull(functools.partial(next, line.running))

    def _pull(self, step: Callable[[], Event]) -> None:
        """Pull the run to its next question, or to its end."""
        try:
            while True:
                event = step()
                try:
                    answer = self._answer(event)
                except KeyboardInterrupt as interrupt:
                    step = functools.partial(self._line.running.throw, interrupt)
                    continue
                if self.question is not None:
                    return
                step = functools.partial(self._line.running.send, answer)
        except StopIteration:
            self._end()
        except BaseException:
            self._end()
            raise

    def _answer(self, event: Event) -> Answer:
        """Show an event, and give the answer to it; where a person is asked, the question stands open instead."""
        line = self._line
        for observe in (self.run.events.append, self._remember, self._shown.observe):
            observe(event)
        answer = line.answers(event)
        if answer is not None:
            return answer
        self.question = line.stepper.question(event)
        if self.question is None:
            return line.stepper.default(event)
        self._event = event
        line.answers.hold()
        self._shown.wait(self.question, self.take)
        return None

    def _end(self) -> None:
        self._event = self.question = None
        self._line.running.close()
        if self._line.stepper.back is None:
            self._shown.close()

    # ------------------------------------------------------------------------------------------------- what can be said

    def take(self, said: JSON) -> None:
        """Go on as was said: ``{choice, text, reason, fault, round}`` (see `stepping`).

        Raises:
            SettingError: the run has ended, or this means nothing here; the run still waits.
            ProviderError: the model server failed.
        """
        if self.question is None or self._event is None:
            raise SettingError("the run has ended; begin another one with step()")
        line = self._line
        answer = line.stepper.answer(self._event, self.question, said)
        self.question = None
        self._shown.wait(None, self.take)
        line.answers.resume()
        self._pull(functools.partial(line.running.send, answer))
        if line.stepper.back is not None:
            self._begin(self._assemble(Branch(line.stepper.back, line.run)))

    def next(self) -> Steps:
        """Go on to the next stop. Where leave is asked for, use `approve` or `reject`."""
        return self._said("next")

    def to_call(self) -> Steps:
        """Run on to the next call."""
        return self._said("to_call")

    def run_on(self) -> Run:
        """Run on to the end; it still stops where leave is needed."""
        self._said("run_on")
        return self.run

    def stop(self) -> Run:
        """End the run here."""
        self._said("stop")
        return self.run

    def approve(self, *, always: bool = False) -> Steps:
        """Give leave to the call, or to this tool for the rest of the run."""
        return self._said("always" if always else "approve")

    def reject(self, reason: str = "") -> Steps:
        """Refuse the call; the model is told why."""
        return self._said("reject", reason=reason)

    def edit(self, changed: Any) -> Steps:
        """Go on with something else: a request body, a call's arguments, a result; as an object or as JSON text."""
        leave = bool(self.question and self.question["asks"])
        text = changed if isinstance(changed, str) else json.dumps(changed, ensure_ascii=False)
        return self._said("approve" if leave else "next", text=text)

    def inject(self, fault: str) -> Steps:
        """Let something go wrong here: one of the names in ``question["faults"]``."""
        return self._said("inject", fault=fault)

    def back(self, number: int) -> Steps:
        """Go back to round ``number``, from 1, and go on from there as a branch; ``run.branches`` holds the line that is left."""
        return self._said("back", round=number - 1)

    def _said(self, choice: str, **more: Any) -> Steps:
        self.take({"choice": choice, **more})
        return self

    def __repr__(self) -> str:
        if self.question is None:
            return f"<Steps: ended, {self.run!r}>"
        return f"<Steps: at {self.question['title']}; say {', '.join(self.question['choices'])}>"
