"""Remembers the JSON-RPC messages of servers: when each went, how large it was, and which call of a tool it belongs to.

Unlike `wiretap`, which stands in the way of the messages and shows them, this only keeps what it is shown; `views.taps` draws it.
Secrets that were given to a server are hidden. What is kept has a limit: the oldest messages go first, the bodies of huge ones at
once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from nb_agent.guards.repeats import idempotency_key
from nb_agent.values import JSON, dumps

if TYPE_CHECKING:
    from nb_agent.mcp.connection import Connection

__all__ = ["WireLog"]

#: Messages that are kept, and bytes of one beyond which its body is only told of.
_MOST: Final = 2_000
_MOST_BYTES: Final = 200_000
#: Requests with which a line begins, and the era that they belong to.
_OPENING: Final = {"initialize": "legacy", "server/discover": "modern"}
#: What a line sends for itself. A task that began during some call carries its key for good, so the key says nothing here.
_OWN: Final = frozenset({*_OPENING, "notifications/initialized", "tools/list", "subscriptions/listen", "ping"})
#: In the ``_meta`` of what comes only because somebody listens.
_LISTENED: Final = "io.modelcontextprotocol/subscriptionId"


class WireLog:
    """What went over the wires of any number of connections, in the order in which it went.

    Args:
        clock: gives seconds since the epoch.

    Attributes:
        dropped: messages that were there and are no longer kept.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time, most: int = _MOST) -> None:
        self.dropped = 0
        self._clock = clock
        self._entries: deque[JSON] = deque(maxlen=most)
        self._lock = threading.Lock()  # messages come on the background loop, and are read in a cell

    def watch(self, connection: Connection) -> Callable[[], None]:
        """Keep what goes over the wire of a connection from now on; what is given back ends that.

        A server in this process (``server=``) has no wire.
        """
        wire = _Wire(connection, self)
        connection.wishes.wire.append(wire)

        def leave() -> None:
            if wire in connection.wishes.wire:
                connection.wishes.wire.remove(wire)

        return leave

    def clear(self) -> None:
        """Forget all messages."""
        with self._lock:
            self._entries.clear()
            self.dropped = 0

    def entries(self, calls: Mapping[str, str] | None = None) -> list[JSON]:
        """The messages: ``{direction, server, era, method, id, at, seconds, bytes, call_id, body}``.

        Args:
            calls: key of a call (`ToolDone.key`) -> id of the model's call; without it the key itself is the ``call_id``.

        ``direction`` is ``sent`` or ``received``. ``method`` of an answer is that of what it answers, and ``seconds`` is how long
        that took; ``None`` else. ``at`` is seconds since the epoch, ``bytes`` the length of the JSON in UTF-8. ``call_id`` is empty
        where a message belongs to no call, such as the handshake, or where it cannot be told to which of several. ``body`` is the
        message, or ``None`` where it is larger than 200,000 bytes.
        """
        names = calls or {}
        with self._lock:
            kept = list(self._entries)
        return [{**entry, "call_id": names.get(entry["call_id"], entry["call_id"])} for entry in kept]

    def keep(self, entry: JSON) -> None:
        """Take a message in."""
        with self._lock:
            self.dropped += len(self._entries) == self._entries.maxlen
            self._entries.append({**entry, "at": self._clock()})

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock()


class _Wire:
    """Is shown the messages of one connection, and finds out what each belongs to. Called on the background loop only."""

    def __init__(self, connection: Connection, log: WireLog) -> None:
        self._connection, self._log = connection, log
        self._starts = connection.starts
        self._asked: dict[tuple[str, Any], tuple[str, str, float]] = {}  # (who asked, id) -> method, call, time

    def __call__(self, way: str, message: JSON) -> None:
        if self._starts != self._connection.starts:
            self._starts = self._connection.starts
            self._asked.clear()  # a new line, whose numbers begin anew; what was asked on the one before stays without an answer
        other = "received" if way == "sent" else "sent"
        size = len(dumps(message).encode("utf-8", "replace"))
        entry: JSON = {"direction": way, "server": self._connection.name, "era": _era(message) or self._connection.era}
        entry |= {"method": message.get("method", ""), "id": message.get("id"), "seconds": None, "bytes": size}
        if "method" in message:
            entry["call_id"] = self._cause(way, message)
            if "id" in message:
                self._asked[way, message["id"]] = (message["method"], entry["call_id"], self._log.now())
        else:
            method, call, begun = self._asked.pop((other, message.get("id")), ("", "", None))
            entry |= {"method": method, "call_id": call, "seconds": None if begun is None else self._log.now() - begun}
        self._log.keep({**entry, "body": _hidden(self._connection, message) if size <= _MOST_BYTES else None})

    def _cause(self, way: str, message: JSON) -> str:
        """The key of the call that a request or a notice belongs to."""
        params = message.get("params")
        named = params if isinstance(params, dict) else {}
        if message["method"] in _OWN or _LISTENED in (named.get("_meta") or {}):
            return ""
        if way == "sent" and (key := idempotency_key()):
            return key
        ours = "sent" if message["method"] != "notifications/cancelled" else way
        if (ours, named.get("requestId")) in self._asked:
            return self._asked.pop((ours, named["requestId"]))[1]  # cancelled
        if isinstance(token := named.get("progressToken"), (str, int)) and (ours, token) in self._asked:
            return self._asked[ours, token][1]
        open_calls = {call for (who, _), (_, call, _) in self._asked.items() if who == "sent" and call}
        return open_calls.pop() if way == "received" and len(open_calls) == 1 else ""


def _era(message: JSON) -> str | None:
    """Known from a message where none was spoken yet: it is the request that opens the line."""
    return _OPENING.get(message.get("method", ""))


def _hidden(connection: Connection, value: Any) -> Any:
    """The same JSON, without the secrets that the connection's server was given."""
    if isinstance(value, str):
        return connection.target.hide(value)
    if isinstance(value, list):
        return [_hidden(connection, part) for part in value]
    return {key: _hidden(connection, part) for key, part in value.items()} if isinstance(value, dict) else value
