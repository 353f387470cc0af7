"""Stands between the SDK and the wire: sees each JSON-RPC message, mends answers, and tells stray lines from messages.

Unlike the SDK's own hooks it sees a result before it is refused, and knows at once when the other end is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Self, TypeAlias

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError

from nb_agent.mcp.mending import MENDERS
from nb_agent.values import JSON

__all__ = ["Tap"]


#: What is told of each message; the collection may grow meanwhile.
Watched: TypeAlias = Collection[Callable[[str, JSON], None]]


class Tap:
    """The two ends of one transport, for the SDK to read from and write to.

    Args:
        note: is told in a sentence what a person should know of what came.
        ended: is called when nothing more will come.
        watched: each is given ``"sent"`` or ``"received"`` and the message in JSON, as it is on the wire, before it is mended.
    """

    def __init__(
        self, read: Any, write: Any, *, note: Callable[[str], None], ended: Callable[[], None], watched: Watched = ()
    ) -> None:
        self.reading = _Reading(read, self._seen, ended)
        self._watched = watched
        self.writing = _Writing(write, self._sent)
        self._note = note
        self._methods: dict[Any, str] = {}  # id of a request under way -> its method

    def _show(self, way: str, item: SessionMessage) -> None:
        if self._watched:
            shown = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            for watcher in self._watched:
                watcher(way, shown)

    def _sent(self, message: SessionMessage) -> None:
        self._show("sent", message)
        if isinstance(message.message, JSONRPCRequest):
            self._methods[message.message.id] = message.message.method

    def _seen(self, item: SessionMessage | Exception) -> SessionMessage | None:
        if isinstance(item, Exception):
            if told := _stray(item):
                self._note(told)
            return None
        self._show("received", item)
        message = item.message
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            mender = MENDERS.get(self._methods.pop(message.id, ""))
            if mender and isinstance(message, JSONRPCResponse):
                mended, notes = mender(message.result)
                for note in notes:
                    self._note(note)
                item.message = message.model_copy(update={"result": mended})
        return item


def _stray(fault: Exception) -> str:
    """What to tell of something that came and was no message; blank lines are nobody's concern."""
    if not isinstance(fault, ValidationError):
        return f"{type(fault).__name__}: {fault}"
    line = str(fault.errors()[0]["input"]).strip()
    return f"not a message of the protocol: {line}" if line else ""


class _Stream:
    """A stream that is opened and closed as the one inside it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> bool | None:
        result: bool | None = await self._inner.__aexit__(*exc)
        return result


class _Reading(_Stream):
    """A receiving stream; what `seen` turns into nothing is not handed on."""

    def __init__(self, inner: Any, seen: Callable[[Any], Any], ended: Callable[[], None]) -> None:
        super().__init__(inner)
        self._seen, self._ended = seen, ended

    async def receive(self) -> Any:
        try:
            while (item := self._seen(await self._inner.receive())) is None:
                pass
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended()
            raise
        return item

    @property
    def last_context(self) -> Any:
        """The sender's context variables, where the transport has them."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Writing(_Stream):
    """A sending stream that shows what goes out."""

    def __init__(self, inner: Any, sent: Callable[[Any], None]) -> None:
        super().__init__(inner)
        self._sent = sent

    async def send(self, item: Any, /) -> None:
        self._sent(item)
        await self._inner.send(item)
