"""Resources and prompts of a connection: listed to their last page, read, counted, and made into messages for a conversation.

Unlike tools nothing here is chosen by a model: a person reads a resource or takes a prompt. What comes is a stranger's text all the
same, so it stands in a fence unless the server is trusted, and what it seems to order is told in `Preview.notices`. Pictures become
images; other bytes are named and never put into the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from nb_agent import tokens
from nb_agent.errors import SettingError, ToolError
from nb_agent.guards.untrusted import fenced, orders
from nb_agent.mcp.mapping import result_parts
from nb_agent.messages import Image, Message, Text
from nb_agent.values import JSON

if TYPE_CHECKING:
    from nb_agent.mcp.connection import Connection

__all__ = ["Offered", "Preview", "complete", "fill", "listed", "prompt", "read", "subscribe"]

Offered: TypeAlias = Literal["resources", "templates", "prompts"]

#: What is offered -> the method of the SDK's client, its key in the answer, and the capability that it belongs to.
_LISTS: Final[dict[str, tuple[str, str, str]]] = {
    "resources": ("list_resources", "resources", "resources"),
    "templates": ("list_resource_templates", "resourceTemplates", "resources"),
    "prompts": ("list_prompts", "prompts", "prompts"),
}
#: Pages that are read: a server that never ends its list must not hold a cell.
_MOST_PAGES: Final = 200
#: The first version of the protocol in which a server tells of changes only while it is listened to.
_MODERN: Final = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Preview:
    """What would go into the conversation, before it does.

    Attributes:
        source: the connection and what was read, for a heading.
        messages: to be added to a history.
        tokens: how many they cost, pictures included; counted, and without what a protocol puts around messages.
        notices: what a person should know, such as words that look like orders to a model.
    """

    source: str
    messages: tuple[Message, ...]
    tokens: int
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        pictures = sum(isinstance(part, Image) for message in self.messages for part in message.parts)
        size = f"{self.tokens:,} tokens" + (f", {pictures} of its parts pictures" if pictures else "")
        return "\n".join([f"{self.source}: {size}", *(f"note: {notice}" for notice in self.notices)])


def listed(connection: Connection, what: Offered) -> tuple[JSON, ...]:
    """All that a server lists, in the JSON of the protocol; nothing where it does not offer such things.

    Raises:
        ToolError: see `Connection.call`.
    """
    method, key, capability = _LISTS[what]
    found: list[JSON] = []
    seen: list[str | None] = []
    cursor: str | None = None
    connection.open()
    if not _may_offer(connection, capability):
        return ()
    while cursor not in seen and len(seen) < _MOST_PAGES:
        seen.append(cursor)
        page = connection.ask(partial(_page, method, cursor))
        found += page.get(key) or []
        if (cursor := page.get("nextCursor")) is None:
            return tuple(found)
    connection.notes.append(f"its list of {what} has no end: after page {len(seen)} comes {cursor!r}")
    return tuple(found)


async def _page(method: str, cursor: str | None, client: Any, _: Any) -> Any:
    from mcp import MCPError  # noqa: PLC0415  the SDK is slow to import
    from mcp.types import METHOD_NOT_FOUND, EmptyResult  # noqa: PLC0415

    try:
        return await getattr(client, method)(cursor=cursor)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND and cursor is None:
            return EmptyResult()
        raise


def _may_offer(connection: Connection, capability: str) -> bool:
    """Whether to ask for it: one that was not asked what it can do (2026-07-28, pinned) has told nothing."""
    able = connection.facts.get("capabilities")
    return not able or capability in able


def fill(template: str, arguments: Mapping[str, str]) -> str:
    """The address that a template gives with these arguments (RFC 6570).

    Raises:
        SettingError: it is no template, or arguments are missing or unknown to it.
    """
    from mcp.shared.uri_template import UriTemplate  # noqa: PLC0415  the SDK is slow to import

    try:
        parsed = UriTemplate.parse(template)
    except ValueError as error:
        raise SettingError(f"{template!r} is no template of addresses: {error}") from None
    names = parsed.variable_names
    _fits(template, arguments, required=names, known=names)
    return parsed.expand(dict(arguments))


def read(connection: Connection, uri: str, *, model: str | None = None) -> Preview:
    """What stands at an address, as one message of the user.

    Args:
        connection: whose resource it is.
        uri: as it is listed, or as `fill` gives it.
        model: whose tokens are counted.

    Raises:
        ToolError: there is nothing, or see `Connection.call`.
    """
    answer = connection.ask(lambda client, _: client.read_resource(uri))
    blocks = [block for content in answer.get("contents") or [] for block in _blocks(content)]
    parts = result_parts({"content": blocks})
    return _preview(connection, f"{connection.name}: {uri}", [("user", parts)], model)


def _blocks(content: JSON) -> list[JSON]:
    """One part of a resource in the words of tool results, which `mapping` knows."""
    if "blob" in content and str(content.get("mimeType", "")).startswith("image/"):
        return [{"type": "image", "data": content["blob"], "mimeType": content["mimeType"]}]
    return [{"type": "resource", "resource": content}]


def prompt(connection: Connection, name: str, arguments: Mapping[str, str] | None = None, *, model: str | None = None) -> Preview:
    """A prompt of a server, with its arguments, as messages.

    Those of a server that is not trusted all become the user's: an answer that a stranger wrote must not pass for the model's own.

    Raises:
        SettingError: the server lists no such prompt, or arguments are missing or unknown to it.
        ToolError: see `Connection.call`.
    """
    given = dict(arguments or {})
    known = {entry["name"]: entry for entry in listed(connection, "prompts")}
    if name not in known:
        raise SettingError(f"{connection.name} has no prompt {name!r}; it has: {', '.join(known) or 'none'}")
    takes = known[name].get("arguments") or []
    required = [entry["name"] for entry in takes if entry.get("required")]
    _fits(name, given, required=required, known=[entry["name"] for entry in takes])
    answer = connection.ask(lambda client, _: client.get_prompt(name, given))
    said = [(entry["role"], result_parts({"content": [entry["content"]]})) for entry in answer.get("messages") or []]
    return _preview(connection, f"{connection.name}: prompt {name}", said, model)


def _fits(whose: str, given: Mapping[str, str], *, required: Any, known: Any) -> None:
    faults = [f"{name} is missing" for name in required if name not in given]
    faults += [f"{name} is not known" for name in given if name not in known]
    if faults:
        raise SettingError(f"{whose}: {', '.join(faults)}; it takes: {', '.join(known) or 'no arguments'}")


def _preview(connection: Connection, source: str, said: list[tuple[str, tuple[Text | Image, ...]]], model: str | None) -> Preview:
    messages: list[Message] = []
    notices: list[str] = []
    cost = 0
    for role, parts in said:
        notices += [line for part in parts if isinstance(part, Text) for line in orders(part.text)]
        if not connection.trusted:
            whose = source if role == "user" else f"{source}, which it calls the assistant's words"
            shown = tuple(Text(fenced(part.text, whose)) if isinstance(part, Text) else part for part in parts)
        else:
            shown = parts
        cost += sum(tokens.count(part.text, model=model) if isinstance(part, Text) else tokens.IMAGE for part in shown)
        messages.append(Message("assistant" if role == "assistant" and connection.trusted else "user", shown))
    return Preview(source, tuple(messages), cost, tuple(dict.fromkeys(notices)))


def complete(
    connection: Connection, of: str, argument: str, begun: str = "", *, known: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What a server proposes for an argument, at most a hundred values (specification, Completion); none where it proposes none.

    Args:
        connection: whose prompt or template it is.
        of: name of a prompt, or a template of addresses.
        argument: which one.
        begun: what was typed so far.
        known: other arguments that have their values.
    """
    from mcp.types import PromptReference, ResourceTemplateReference  # noqa: PLC0415  the SDK is slow to import

    connection.open()
    if not _may_offer(connection, "completions"):
        return ()
    ref = ResourceTemplateReference(uri=of) if "://" in of else PromptReference(name=of)
    wanted = {"name": argument, "value": begun}
    answer = connection.ask(lambda client, _: client.complete(ref, wanted, context_arguments=dict(known) if known else None))
    return tuple(answer["completion"]["values"])


def subscribe(connection: Connection, uri: str, heard: Callable[[str], None]) -> Callable[[], None]:
    """Hear of changes of a resource until what comes back is called.

    It holds for one life of the server; when that has been started again, subscribe again.

    Args:
        connection: whose resource it is.
        uri: its address.
        heard: is given the address of what changed, which may lie below ``uri``; it is called on the background loop.

    Raises:
        ToolError: the server takes no subscriptions, or see `Connection.call`.
    """
    connection.open()
    able = connection.facts.get("capabilities")
    if able and not (able.get("resources") or {}).get("subscribe"):
        raise ToolError(f"{connection.name} takes no subscriptions; read {uri} again instead", code="protocol_error")
    modern = (connection.version or "") >= _MODERN
    return _listening(connection, uri, heard) if modern else _subscribed(connection, uri, heard)


def _subscribed(connection: Connection, uri: str, heard: Callable[[str], None]) -> Callable[[], None]:
    def told(message: Any) -> None:
        if type(message).__name__ == "ResourceUpdatedNotification" and str(message.params.uri).startswith(uri):
            heard(str(message.params.uri))

    connection.wishes.heard.append(told)
    try:
        connection.ask(lambda client, _: client.subscribe_resource(uri))
    except BaseException:
        connection.wishes.heard.remove(told)
        raise

    def end() -> None:
        if told in connection.wishes.heard:
            connection.wishes.heard.remove(told)
            with suppress(ToolError):  # it has gone, and the subscription with it
                if connection.alive:
                    connection.ask(lambda client, _: client.unsubscribe_resource(uri))

    return end


def _listening(connection: Connection, uri: str, heard: Callable[[str], None]) -> Callable[[], None]:
    """The newer era tells only those who listen, in a stream of their own; a task reads it."""
    from mcp.types import EmptyResult  # noqa: PLC0415  the SDK is slow to import

    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def begin(client: Any, _: Any) -> EmptyResult:
        open_: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_hear(client, uri, heard, open_))
        tasks.append((asyncio.get_running_loop(), task))
        await open_
        return EmptyResult()

    connection.ask(begin)

    def end() -> None:
        for loop, task in tasks:
            with suppress(RuntimeError):  # the loop has gone, and the task with it
                loop.call_soon_threadsafe(task.cancel)

    return end


async def _hear(client: Any, uri: str, heard: Callable[[str], None], open_: asyncio.Future[None]) -> None:
    try:
        async with client.listen(resource_subscriptions=[uri]) as changes:
            open_.set_result(None)
            async for change in changes:
                heard(str(getattr(change, "uri", uri)))
    except Exception as error:  # noqa: BLE001  the SDK raises groups of anything; before it is open somebody waits for it
        if not open_.done():
            open_.set_exception(error)
