"""How long a model server is waited for, which of its failures are tried again, and when. No network, no clock of its own.

Only a request of which nothing has been given on yet comes here, so that no text is shown twice and no tool runs twice for one
call: what is repeated is the request, never the turn. `transport` and the mock model send.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

from nb_agent.adapters.refusals import joined
from nb_agent.errors import ProviderError
from nb_agent.events import Waiting

__all__ = ["LONGEST", "Patience", "Waits", "asked_wait", "noted"]

T = TypeVar("T")

#: Seconds before the first repeat; twice as long each time, and never longer than the second. The vendors' own clients do the same.
FIRST, MOST = 0.5, 8.0
#: The part of a wait that chance takes away, so that many clients do not come back together.
JITTER = 0.25
#: Seconds that a server may ask for: who has to wait longer is told so instead.
LONGEST = 60.0
#: Seconds of sleep at a time: a longer one could not be interrupted everywhere.
_SLICE: Final = 0.1

#: Headers in which the servers name a request, for their support.
_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")


@dataclass(frozen=True)
class Waits:
    """Time limits of one attempt, in seconds: for a connection, for the first byte of the answer, between two bytes."""

    connect: float = 10.0
    first_byte: float = 300.0  # a model that thinks and does not stream is silent for minutes
    stall: float = 60.0


@dataclass(frozen=True)
class Patience:
    """How often a request is tried again, and how waiting is done.

    Attributes:
        retries: repeats of one request at most.
        sleep: sleeps some seconds, in slices that an interrupt ends at once.
        chance: gives a number from 0 up to 1.
    """

    retries: int = 2
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def until_begun(self, begin: Callable[[], T], left: Callable[[], float]) -> Generator[Waiting, None, T]:
        """What ``begin`` gives, tried again where that may help; says before each wait why and how long.

        Args:
            begin: sends the request and comes back with the beginning of the answer.
            left: gives the seconds that the run has left.

        Raises:
            ProviderError: a repeat cannot help, or would come too late; the text says when to come back.
        """
        attempt = 1
        while True:
            try:
                return begin()
            except ProviderError as error:
                seconds = self._wait(error, attempt, left())
                if seconds is None:
                    raise _told(error, attempt) from None
                reason = f"{error.kind.replace('_', ' ')} ({error})"
            yield Waiting(reason, seconds, attempt)
            self._pause(seconds)
            attempt += 1

    def _wait(self, error: ProviderError, attempt: int, left: float) -> float | None:
        """Seconds until the next attempt, ``None`` where there is none."""
        if not error.retryable or attempt > self.retries:
            return None
        backoff = min(FIRST * 2 ** (attempt - 1), MOST) * (1 - JITTER * self.chance())
        seconds = error.retry_after or backoff
        return seconds if seconds <= LONGEST and seconds < left else None

    def _pause(self, seconds: float) -> None:
        while seconds > 0:
            self.sleep(min(_SLICE, seconds))
            seconds -= _SLICE


def _told(error: ProviderError, attempt: int) -> ProviderError:
    """The same error, with how often it was tried and when the server wants to see the request again."""
    said = [f"tried {attempt} times"] if attempt > 1 else []
    said += [f"the server asks to come back in {math.ceil(error.retry_after)} s"] if error.retry_after and error.retryable else []
    if said:
        error.args = (joined(str(error), "; ".join(said)),)
    return error


def noted(error: ProviderError, headers: Mapping[str, str], now: float) -> ProviderError:
    """The error with what the answer's headers say: when to come back, whether to, and the request's id.

    Args:
        error: as `adapters.refusals` made it of the body.
        headers: with lower-case names.
        now: seconds since 1970, for servers that give a date.
    """
    wait = asked_wait(headers, now)
    error.retry_after = error.retry_after if wait is None else wait
    error.request_id = error.request_id or next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
    told = headers.get("x-should-retry", "").strip().lower()
    if told in {"true", "false"} and error.kind != "billing":
        error.retryable = told == "true"
    return error


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds after which a server asks to come back; ``None`` where it does not, or where it is unreadable.

    >>> asked_wait({"retry-after": "2.5"}, 0), asked_wait({"retry-after-ms": "300", "retry-after": "1"}, 0)
    (2.5, 0.3)
    >>> asked_wait({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10)
    20.0
    """
    milliseconds, seconds = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if milliseconds is not None:
        return milliseconds / 1000
    return _number(seconds) if _number(seconds) is not None else _until(seconds, now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str | None, now: float) -> float | None:
    try:
        there = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    return max(0.0, there.timestamp() - now) if there.tzinfo else None
