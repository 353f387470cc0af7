"""Events to JSON lines and back. A file holds one run: a line that says what it is, then an event a line.

Request bodies are written as what is new since the one before (see `deltas`), so that a file grows with its run and not with the
square of it. No key is in it, since no event holds one.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, cast

from nb_agent.deltas import delta, rebuild
from nb_agent.errors import SettingError
from nb_agent.events import Changed, Event, RequestReady
from nb_agent.values import JSON, dumps, from_json, to_json

__all__ = ["load", "save"]

_WITH_REQUEST: Final = {RequestReady.__name__, Changed.__name__}
_HEAD: Final = {"format": "nb_agent run", "version": 1}


def save(events: Iterable[Event], path: str | os.PathLike[str]) -> None:
    """Write the events to a file, whole or not at all.

    Raises:
        SettingError: the file cannot be written.
    """
    target = Path(path)
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=target.name, delete=False) as file:
            try:
                file.writelines(dumps(form) + "\n" for form in (_HEAD, *_lines(events)))
            except BaseException:
                Path(file.name).unlink()
                raise
        Path(file.name).replace(target)
    except OSError as error:
        raise SettingError(f"cannot write the run to {str(target)!r}: {error.strerror}") from None


def _lines(events: Iterable[Event]) -> Iterable[JSON]:
    body: JSON = {}
    for event in events:
        form = to_json(event)
        if isinstance(event, (Changed, RequestReady)) and event.request is not None:
            form["request"]["body"] = delta(body, event.request.body)
            body = event.request.body
        yield form


def load(path: str | os.PathLike[str]) -> list[Event]:
    """The events that `save` was given.

    Raises:
        SettingError: the file cannot be read, or holds something else.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            head, *forms = [json.loads(line) for line in file if line.strip()]
        return _events(head, forms)
    except OSError as error:
        raise SettingError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{str(path)!r} holds no run that this version of nb_agent can read ({error!r})") from None


def _events(head: JSON, forms: list[JSON]) -> list[Event]:
    if head != _HEAD:
        raise ValueError(head)
    events: list[Event] = []
    body: JSON = {}
    for form in forms:
        if form["type"] in _WITH_REQUEST and form.get("request") is not None:
            body = form["request"]["body"] = rebuild(body, form["request"]["body"])
        events.append(cast("Event", from_json(form)))
    return events
