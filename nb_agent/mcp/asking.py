"""What a server asks of us: words of a person (elicitation), an answer of a model (sampling), directories (roots).

A server is told that it may ask only where `attach` is given somebody to answer; whoever is not there says no. Nothing is filled
in, opened or sent unseen: a form is checked against its schema, an address is shown and never opened, and both what a model would
be asked and what it answered pass by the person. Both eras come here: the SDK answers the rounds of 2026-07-28 with the functions
that serve the requests of the older one. Unlike `views.asking`, which puts a question to a person, this says what the question is.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from nb_agent.mcp.arguments import argument_faults
from nb_agent.mcp.mapping import result_parts
from nb_agent.messages import Message, Reply
from nb_agent.values import JSON

if TYPE_CHECKING:
    from nb_agent.mcp.connection import Connection

__all__ = ["RETIRED", "Answering", "attach"]

#: What the specification retired, and since which version (SEP-2577); it is served to whoever still asks for it, and marked.
RETIRED: Final = {"sampling": "2026-07-28", "roots": "2026-07-28", "logging": "2026-07-28"}

#: Why a model's answer ended, in the words of the protocol.
_STOPPED: Final = {"stop": "endTurn", "length": "maxTokens"}
#: Codes of answers that are errors: refused by a person (specification, Sampling), not served, failed.
_REFUSED, _UNFIT, _FAILED = -1, -32602, -32603


class Answering(Protocol):
    """Asks a model, without tools and without any history but this one."""

    def __call__(self, messages: tuple[Message, ...], /, *, system: str | None, max_tokens: int) -> Reply:
        """Its reply; it is called in a thread of its own."""


def attach(
    connection: Connection,
    ask: Callable[[JSON], Awaitable[JSON | None]] | None,
    *,
    answer: Answering | None = None,
    model: str = "the agent's model",
    roots: Sequence[Path] = (),
    log: Callable[[str], None] | None = None,
) -> None:
    """Say who answers a server's questions. It holds from the next start of the server, which is when it is told what it may ask.

    Args:
        connection: whose server asks.
        ask: puts a question to a person, such as `inbox.Inbox.ask`; ``None`` where nobody is there: then it may not ask.
        answer: asks the model where a server wants an answer from it.
        model: the name of that model, for the question.
        roots: directories that the server is told to work in; no leave to read them, which it has or has not by itself.
        log: is given each line that the server logs.
    """
    desk = _Desk(connection, ask, answer, model) if ask else None
    wanted: dict[str, Any] = {}
    if desk is not None:
        wanted["elicitation_callback"] = desk.elicited
    if desk is not None and answer is not None:
        wanted["sampling_callback"] = desk.sampled
    if roots:
        wanted["list_roots_callback"] = _roots([Path(root).resolve() for root in roots])
    if log is not None:
        wanted["logging_callback"] = _logged(log)
    for key in ("elicitation_callback", "sampling_callback", "list_roots_callback", "logging_callback"):
        connection.wishes.client.pop(key, None)
    connection.wishes.client.update(wanted)


def _roots(places: list[Path]) -> Callable[..., Awaitable[Any]]:
    async def roots(_: Any) -> Any:
        from mcp.types import ListRootsResult, Root  # noqa: PLC0415  the SDK is slow to import

        return ListRootsResult(roots=[Root.model_validate({"uri": place.as_uri(), "name": place.name}) for place in places])

    return roots


def _logged(log: Callable[[str], None]) -> Callable[..., Awaitable[None]]:
    async def logged(params: Any) -> None:
        said = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False, default=repr)
        log(f"{params.level}: {_plain(said)}")

    return logged


# ------------------------------------------------------------------------------------------------- questions


class _Desk:
    """Makes questions of a server's requests, and the protocol's answers of what a person says."""

    def __init__(
        self, connection: Connection, ask: Callable[[JSON], Awaitable[JSON | None]], answer: Answering | None, model: str
    ) -> None:
        self._connection, self._ask, self._answer, self._model = connection, ask, answer, model
        self._paused: dict[asyncio.Timeout, float] = {}  # deadline -> seconds that were left of it
        self._open = 0

    async def elicited(self, _: Any, params: Any) -> Any:
        """An answer to ``elicitation/create``."""
        from mcp.types import ElicitResult  # noqa: PLC0415  the SDK is slow to import

        action, content = await (self._address(params) if params.mode == "url" else self._form(params))
        return ElicitResult(action=action, content=content)

    async def _form(self, params: Any) -> tuple[Any, JSON | None]:
        schema = {"additionalProperties": False, **params.requested_schema}  # nothing goes out that was not asked for
        if not _is_form(schema):
            self._connection.notes.append(f"it asked with a form that is none, and was refused: {_plain(params.message)}")
            return "decline", None
        asks = f"it wants to know: {_plain(params.message)}{_fields(schema)}"
        said, filled = await self._asked(asks, edits=_started(schema), schema=schema)
        return ("accept", filled) if said else ("decline", None)

    async def _address(self, params: Any) -> tuple[Any, JSON | None]:
        if (host := _host(params.url)) is None:
            self._connection.notes.append(
                f"it wanted an address opened that is none of the web, and was refused: {_plain(params.url)}"
            )
            return "decline", None
        asks = f"it wants you to go to {_plain(params.url)} (at {host}): {_plain(params.message)} Nothing is opened for you; "
        said, _ = await self._asked(f"{asks}say yes if you go there yourself", edits=None, schema=None, url=params.url)
        return ("accept" if said else "decline"), None

    async def sampled(self, _: Any, params: Any) -> Any:
        """An answer to ``sampling/createMessage``: leave is asked for what goes to the model, and again for what came of it."""
        from mcp.types import CreateMessageResult, ErrorData, TextContent  # noqa: PLC0415  the SDK is slow to import

        if params.tools:
            return ErrorData(code=_UNFIT, message="this host answers without tools only")
        wanted = {"system": params.system_prompt, "messages": [_spoken(entry) for entry in params.messages]}
        asks = f"it wants an answer of at most {params.max_tokens:,} tokens from {self._model}"
        mark = f" (sampling is retired since {RETIRED['sampling']})"
        said, given = await self._asked(asks + mark, edits=wanted, schema=_WANTED)
        if not said or given is None or self._answer is None:
            return ErrorData(code=_REFUSED, message="the person refused")
        messages = given["messages"] if given["messages"] != wanted["messages"] else [_message(entry) for entry in params.messages]
        spoken = tuple(entry if isinstance(entry, Message) else _written(entry) for entry in messages)
        try:
            reply = await asyncio.to_thread(self._answer, spoken, system=given.get("system"), max_tokens=params.max_tokens)
        except Exception as error:  # noqa: BLE001  whatever a model's server does is told to the one who asked
            return ErrorData(code=_FAILED, message=f"no answer came from the model: {type(error).__name__}")
        said, given = await self._asked("it is to get this answer", edits={"answer": reply.message.text}, schema=_ANSWER)
        if not said or given is None:
            return ErrorData(code=_REFUSED, message="the person refused")
        content = TextContent(type="text", text=given["answer"])
        reason = _STOPPED.get(reply.finish)
        return CreateMessageResult(role="assistant", content=content, model=reply.model or self._model, stop_reason=reason)

    async def _asked(self, asks: str, *, edits: JSON | None, schema: JSON | None, **more: Any) -> tuple[bool, JSON | None]:
        """Whether the person said yes, and the object that they approved; asked again until that fits the schema."""
        text = None if edits is None else json.dumps(edits, ensure_ascii=False, indent=2)
        question: JSON = {"at": "mcp", "round": 0, "call": None, "title": f"the MCP server {self._connection.name!r}"}
        question |= {"asks": asks, "edits": text, "schema": schema, "choices": ["approve", "reject"], "faults": [], "problem": ""}
        with self._unhurried():
            while True:
                said = await self._ask(question | more)
                if said is None or said.get("choice") != "approve":
                    return False, None
                if text is None or schema is None:
                    return True, None
                filled, problem = _read(said.get("text") or question["edits"], schema)
                if not problem:
                    return True, filled
                question |= {"problem": problem, "edits": said.get("text") or question["edits"]}

    @contextmanager
    def _unhurried(self) -> Iterator[None]:
        """Inside, the time limits of calls stand still: a person may think for as long as they like."""
        loop = asyncio.get_running_loop()
        self._open += 1
        for ends in self._connection.wishes.deadlines:
            if (when := ends.when()) is not None and when > loop.time() and not ends.expired():
                self._paused[ends] = when - loop.time()
                ends.reschedule(None)
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                for ends, left in self._paused.items():
                    with suppress(RuntimeError):  # the call has ended meanwhile
                        ends.reschedule(loop.time() + left)
                self._paused.clear()


# ------------------------------------------------------------------------------------------------- forms and messages

_TEXT: Final = {"type": "string"}
_ENTRY: Final = {
    "type": "object",
    "properties": {"role": {"enum": ["user", "assistant"]}, "text": _TEXT},
    "required": ["role", "text"],
}
#: What a model is asked, and what it answered, as a person may change them.
_WANTED: Final = {
    "type": "object",
    "properties": {"system": {"type": ["string", "null"]}, "messages": {"type": "array", "items": _ENTRY, "minItems": 1}},
    "required": ["messages"],
    "additionalProperties": False,
}
_ANSWER: Final = {"type": "object", "properties": {"answer": _TEXT}, "required": ["answer"], "additionalProperties": False}


def _read(text: str, schema: JSON) -> tuple[JSON, str]:
    """The object that a text writes, and what is wrong with it. A field that is null was left out."""
    try:
        given = json.loads(text)
    except ValueError as error:
        return {}, f"that is no JSON: {error}"
    if not isinstance(given, dict):
        return {}, f'a JSON object is wanted, such as {{"name": …}}, and not {text[:80]!r}'
    kept = {key: value for key, value in given.items() if value is not None}
    return kept, "; ".join(argument_faults(schema, kept))


def _is_form(schema: JSON) -> bool:
    """Whether it is a schema, and flat: a form has texts, numbers, yes and no, and choices (specification, Elicitation)."""
    import jsonschema  # noqa: PLC0415  60 ms: only when a server asks

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    fields = schema.get("properties", {}).values()
    return all(isinstance(field, dict) and field.get("type") != "object" and "$ref" not in field for field in fields)


def _started(schema: JSON) -> JSON:
    """A form with the defaults in it, and null where there is none."""
    return {name: field.get("default") for name, field in schema.get("properties", {}).items() if isinstance(field, dict)}


def _fields(schema: JSON) -> str:
    """What each field of a form takes, a line each."""
    lines = [""]
    for name, field in schema.get("properties", {}).items():
        if isinstance(field, dict):
            choices = field.get("enum") or [entry.get("const") for entry in field.get("oneOf", ()) if isinstance(entry, dict)]
            kind = f"one of {json.dumps(choices, ensure_ascii=False)}" if choices else str(field.get("format") or field.get("type"))
            needed = ", needed" if name in schema.get("required", ()) else ""
            told = field.get("description") or field.get("title") or ""
            lines.append(f"    {_plain(name)} ({_plain(kind)}{needed}){': ' if told else ''}{_plain(str(told))}")
    return "\n".join(lines)


def _host(url: str) -> str | None:
    """The host of an address of the web as the network knows it, so that no letter passes for another; else ``None``."""
    try:
        where = urlsplit(url)
        return (where.hostname or "").encode("idna").decode() or None if where.scheme in {"https", "http"} else None
    except ValueError:
        return None


def _message(entry: Any) -> Message:
    blocks = entry.content if isinstance(entry.content, list) else [entry.content]
    shown = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in blocks]
    return Message(entry.role, result_parts({"content": shown}))


def _spoken(entry: Any) -> JSON:
    message = _message(entry)
    pictures = sum(type(part).__name__ == "Image" for part in message.parts)
    return {"role": entry.role, "text": message.text} | ({"pictures": pictures} if pictures else {})


def _written(entry: JSON) -> Message:
    return Message.of(entry["role"], entry["text"])


def _plain(text: str) -> str:
    """A stranger's words on one line, without anything that could move a cursor or turn the direction of what follows."""
    return " ".join("".join(letter if unicodedata.category(letter)[0] != "C" else " " for letter in text).split())
