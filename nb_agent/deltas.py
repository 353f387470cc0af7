"""Request bodies stored once: a body is (what it shares with the one before) + (what is new).

A history only grows at its end, so a run's requests together take the room of the last one and not of the square. The view, the
recording and "what is new" all read this one form.
"""

from __future__ import annotations

from typing import Any

from nb_agent.values import JSON

__all__ = ["delta", "rebuild"]


def delta(before: JSON, after: JSON) -> JSON:
    """What has to be known beside ``before`` to get ``after`` back, key order included.

    ``same`` gives for a list that grew how many entries are shared; ``new`` the rest of it, or a whole value; ``gone`` the keys
    that are no longer there; ``order`` the keys, where their order changed.

    >>> delta({"m": [1, 2], "t": 0}, {"m": [1, 2, 3], "t": 0})
    {'same': {'m': 2}, 'new': {'m': [3]}}
    """
    same: dict[str, int] = {}
    new: JSON = {}
    for key, value in after.items():
        old = before.get(key, _MISSING)
        if isinstance(value, list) and isinstance(old, list) and (shared := _shared(old, value)):
            if shared < max(len(old), len(value)):
                same[key] = shared
                new[key] = value[shared:]
        elif old is _MISSING or old != value:
            new[key] = value
    gone = [key for key in before if key not in after]
    kept = [*(key for key in before if key in after), *(key for key in after if key not in before)]
    parts = {"same": same, "new": new, "gone": gone, "order": list(after) if kept != list(after) else []}
    return {name: part for name, part in parts.items() if part}


def rebuild(before: JSON, change: JSON) -> JSON:
    """The body that `delta` was given as ``after``.

    >>> rebuild({"m": [1, 2], "t": 0}, {"same": {"m": 2}, "new": {"m": [3]}})
    {'m': [1, 2, 3], 't': 0}
    """
    same = change.get("same", {})
    body = {key: value for key, value in before.items() if key not in change.get("gone", ())}
    for key, value in change.get("new", {}).items():
        body[key] = before[key][: same[key]] + value if key in same else value
    return {key: body[key] for key in change["order"]} if "order" in change else body


_MISSING: Any = object()


def _shared(before: list[Any], after: list[Any]) -> int:
    """How many entries at the start are the same."""
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new and old != new:
            return number
    return min(len(before), len(after))
