"""One request and its answer: sent, read piece by piece, and asked for again where it broke off before it was whole.

It knows neither a conversation nor calls: what `loop` does with the reply is not its business. The clock and how to send and to
wait are arguments, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, cast

from nb_agent.adapters import receive
from nb_agent.errors import ProviderError
from nb_agent.events import Answer, Delta, Event, Retrying, Waiting
from nb_agent.messages import Reply, Request

__all__ = ["Exchange", "Received", "TimeIsUpError"]

#: Kinds of pieces that are kept of an answer that is never whole.
_SAID: Final = frozenset({"text", "refusal"})
#: Seconds before an answer that broke off is asked for again; twice as long the next time.
_PAUSE: Final = 0.25
#: Kinds of error that say that an answer did not come whole.
_BROKEN: Final = frozenset({"stream_interrupted", "protocol"})


class TimeIsUpError(Exception):
    """The time of the run is up."""


class _BrokenError(Exception):
    """An answer broke off, or could not be read, after it had begun."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(str(error))
        self.error = error


class Received(NamedTuple):
    """A whole reply, its seconds, and those until its first piece."""

    reply: Reply
    seconds: float
    first: float | None


@dataclass(slots=True)
class Exchange:
    """How the requests of one run are sent.

    Attributes:
        ends: when the time of the run is up, by ``clock``.
        repeats: how often an answer that broke off is asked for again.
    """

    send: Callable[[Request], Iterator[bytes | Waiting]]
    clock: Callable[[], float]
    pause: Callable[[float], None]
    ends: float
    repeats: int

    def reply(self, number: int, request: Request, said: list[str], *, turn: int) -> Generator[Event, Answer, Received]:
        """Send a request and pass the pieces of its answer on.

        An answer that breaks off is asked for again: nothing of it was shown as done, and none of its calls has run.

        Args:
            number: of the round.
            request: what is sent.
            said: takes the text that has come of an answer, for the case that it is never whole.
            turn: makes ids of calls differ from those of other turns, where a server gives none.

        Raises:
            ProviderError: no whole answer came.
            TimeIsUpError: the time of the run is up.
        """
        attempt = 1
        while True:
            try:
                return (yield from self._attempt(number, request, said, turn))
            except _BrokenError as broken:
                if attempt > self.repeats or self.time_is_up():
                    raise broken.error from None
                said.clear()
                seconds = _PAUSE * 2 ** (attempt - 1)
                yield Retrying(number, f"{broken.error.kind.replace('_', ' ')} ({broken.error})", seconds, attempt)
                self.pause(seconds)
                attempt += 1

    def _attempt(self, number: int, request: Request, said: list[str], turn: int) -> Generator[Event, Answer, Received]:
        began, first = self.clock(), None
        sent = iter(self.send(request))
        try:
            start = yield from _started(number, sent)
            rest = cast("Iterator[bytes]", sent)  # nobody waits in the middle of an answer
            reading = receive(request.wire, self._watched(chain(start, rest)), turn=turn)
            while True:
                try:
                    payload, pieces = next(reading)
                except StopIteration as end:
                    return Received(end.value, self.clock() - began, first)
                except ProviderError as error:
                    raise (_BrokenError(error) if error.kind in _BROKEN else error) from None
                now = self.clock()
                seconds = now - began
                first = seconds if first is None else first
                if pieces:
                    said += [piece.text for piece in pieces if piece.kind in _SAID and not piece.choice]
                    yield Delta(number, pieces, payload, seconds)
                if now > self.ends:
                    raise TimeIsUpError
        finally:
            if isinstance(sent, Generator):
                sent.close()  # at once: an interrupt's traceback would keep the connection open

    def _watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks; the clock is looked at for each, also where a server sends what is no piece of an answer."""
        ends, clock = self.ends, self.clock
        for chunk in chunks:
            if clock() > ends:
                raise TimeIsUpError
            yield chunk

    def watch_time(self) -> None:
        """Raise where the time is up."""
        if self.time_is_up():
            raise TimeIsUpError

    def time_is_up(self) -> bool:
        """Whether it is."""
        return self.clock() > self.ends


def _started(number: int, sent: Iterator[bytes | Waiting]) -> Generator[Event, Answer, tuple[bytes, ...]]:
    """The first bytes of an answer; where the sender waits and tries again before they come, that is an event each time."""
    for given in sent:
        if not isinstance(given, Waiting):
            return (given,)
        yield Retrying(number, given.reason, given.seconds, given.attempt)
    return ()
