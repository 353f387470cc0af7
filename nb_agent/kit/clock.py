"""One tool that tells the time, in the time zone that it is asked for.

The clock can be set, so that a lesson or a test sees the same time in every run.
"""

from __future__ import annotations

import datetime as dt
import difflib
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from nb_agent.errors import ToolError
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["clock_tools", "make_now", "now"]

#: Characters of a name that is looked at and shown; the longest zone has 32.
MOST_LETTERS: Final = 100


def clock_tools(clock: Callable[[], dt.datetime] | None = None) -> list[Tool]:
    """The tool ``now``. The arguments are those of `make_now`."""
    return [make_now(clock)]


def make_now(clock: Callable[[], dt.datetime] | None = None) -> Tool:
    """The tool ``now``, by a clock of one's own.

    Args:
        clock: gives the time, with its time zone; without one, the clock of the machine.
    """
    tells = clock or _machine

    @tool(tier="read")
    def now(timezone: str = "UTC") -> JSON:
        """Tell the date and the time that it is now in one time zone, with the day of the week.

        Args:
            timezone: name of the time zone, as Region/City, e.g. Europe/Berlin or Asia/Tokyo
        """
        here = tells().astimezone(_zone(timezone))
        return {
            "timezone": str(here.tzinfo),
            "time": here.isoformat(timespec="seconds"),
            "weekday": _DAYS[here.weekday()],
            "utc_offset": here.isoformat()[-6:],
        }

    return now


def _machine() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


#: Not ``strftime``, which speaks the language of the machine.
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _zone(name: str) -> zoneinfo.ZoneInfo:
    """The time zone of a name in any case.

    Raises:
        ToolError: there is none; the text names those that are spelled nearly so.
    """
    names = _names()
    given = name.strip().replace(" ", "_").lower()
    if given not in names:
        raise ToolError(f"there is no time zone {name[:MOST_LETTERS]!r}; {_advice(given[:MOST_LETTERS], names)}", code="not_found")
    return zoneinfo.ZoneInfo(names[given])


def _advice(given: str, names: dict[str, str]) -> str:
    ends = {place.rpartition("/")[2]: place for place in names}  # "Tokio" is near to a city, not to Asia/Tokyo
    near = [ends[city] for city in difflib.get_close_matches(given.rpartition("/")[2], ends, n=3, cutoff=0.7)]
    near += [place for place in difflib.get_close_matches(given, names, n=3, cutoff=0.7) if place not in near]
    if not near:
        return "give it as Region/City, such as Europe/Berlin"
    return f"did you mean {' or '.join(names[place] for place in near[:3])}?"


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Names in small letters -> as they are written. A name is only looked up here, never as a path."""
    return {name.lower(): name for name in sorted(zoneinfo.available_timezones() - {"localtime"})}


#: Tells the time by the clock of the machine.
now: Final = make_now()
