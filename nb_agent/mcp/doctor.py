"""Finds out why an MCP server does not work, in the order that finds faults fastest, and stops at the first stage that fails.

Makes a connection of its own and ends it; a hub's connections stay as they are. It calls no tool but one that says it only
reads and wants no argument. Unlike `Connection.open`, which tells a failure in one line, this says what to do (`causes`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from nb_agent import tokens
from nb_agent.errors import ServerError, ToolError
from nb_agent.mcp.causes import advice_for, advice_for_answer, unfit_command
from nb_agent.mcp.diagnosis import STAGES, Diagnosis, Stage, Verdict
from nb_agent.mcp.hub import Connection
from nb_agent.mcp.mapping import parameters, result_parts, wire_names
from nb_agent.mcp.target import Target, one_line
from nb_agent.messages import Text
from nb_agent.values import JSON, dumps

__all__ = ["diagnose", "doctor"]

#: Seconds that a stage's own requests may take, and bytes of an answer that are read.
_WAIT: Final = 5.0
_READ: Final = 2000
#: Tools that one request may have (OpenAI API reference, Chat Completions, ``tools``).
_MOST_TOOLS: Final = 128
#: Faults of tools that are told.
_TOLD: Final = 5


def doctor(
    command: Sequence[str | os.PathLike[str]] | None = None,
    *,
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    server: object | None = None,
    headers: Mapping[str, str] | None = None,
    era: str | None = None,
    name: str = "server",
    start_limit: float = 20.0,
    model: str | None = None,
    **_of_connections: Any,
) -> Diagnosis:
    """Look at one server; the arguments are those of `Hub.connect`, and those that are of no use here are passed over.

    Args:
        command: the program and its arguments.
        url: or the address of a server.
        env: given to the program.
        cwd: the directory that it starts in.
        server: or a server in this process.
        headers: sent to the address.
        era: ``"legacy"`` or ``"modern"`` to speak only that one.
        name: what stands before the names of its tools.
        start_limit: seconds to wait for its first answer.
        model: whose vocabulary the definitions are counted with.

    Raises:
        SettingError: the combination of arguments cannot work.
    """
    target = Target.of(command, url=url, env=env, cwd=cwd, server=server, headers=headers, era=era)
    return diagnose(target, name=name, start_limit=start_limit, model=model)


def diagnose(target: Target, *, name: str = "server", start_limit: float = 20.0, model: str | None = None) -> Diagnosis:
    """Look at the server of a target, such as ``hub.connections[NAME].target``; see `doctor`."""
    connection = Connection(name, target, start_limit=start_limit, call_limit=_WAIT)
    stages: list[Stage] = []
    try:
        for stage in _stages(connection, model):
            stages.append(_hidden(stage, target))
            if stage.verdict == "failed":
                break
    finally:
        connection.close()
    stages += [Stage(left, "skipped") for left in STAGES[len(stages) :]]
    return Diagnosis(name, str(target), tuple(stages))


def _hidden(stage: Stage, target: Target) -> Stage:
    advice = tuple(target.hide(text) for text in stage.advice)
    return replace(stage, tried=target.hide(stage.tried), came=target.hide(stage.came), advice=advice)


def _stages(connection: Connection, model: str | None) -> Iterator[Stage]:
    target = connection.target
    tried = f"started {target}" if target.command else f"reached for {target}"
    if target.command and (unfit := unfit_command(target)):
        yield Stage(STAGES[0], "failed", tried, *unfit)
        return
    if target.url is not None and (odd := _over_http(target)):
        if odd.reached:
            yield Stage(STAGES[0], "ok", tried, "it is there")
        yield Stage(STAGES[int(odd.reached)], "failed", "sent a ping" if odd.reached else tried, odd.came, odd.advice)
        return
    try:
        connection.open()
    except ServerError as error:
        yield from _not_opened(str(error), connection, tried)
        return
    yield Stage(STAGES[0], "ok", tried, f"process {connection.pid} runs" if connection.pid else "it is there")
    yield _connected(connection)
    yield _fits(connection)
    yield _answers(connection)
    yield _weighs(connection.listed, model)


def _not_opened(told: str, connection: Connection, tried: str) -> Iterator[Stage]:
    """The first stage where a program ended or never ran, the second where it is there and does not speak as it should."""
    target = connection.target
    advice = advice_for(f"{told}\n{connection.stderr}", target)
    if target.command and any(
        words in told for words in ("ended before it answered", "was not found", "cannot be run", "no directory")
    ):
        if "exit code 0" in told:
            advice = ("it ended without a fault: it may be a tool for the shell, or want an argument such as stdio", *advice)
        yield Stage(STAGES[0], "failed", tried, told, advice)
        return
    yield Stage(STAGES[0], "ok", tried, "it is there")
    if stray := [note for note in connection.notes if "not a message" in note]:
        advice = (f"it prints on standard output, which is for messages alone: send that to stderr ({stray[0]})", *advice)
    yield Stage(STAGES[1], "failed", "asked which version of the protocol it speaks", told, advice)


# ------------------------------------------------------------------------------------------------- addresses


class _Odd(NamedTuple):
    """An address that will not do; ``reached`` where something answered."""

    reached: bool
    came: str
    advice: tuple[str, ...]


def _over_http(target: Target) -> _Odd | None:
    """What is wrong with an address, and what to do; ``None`` where a server of the protocol may be there."""
    import httpx2  # noqa: PLC0415  only for addresses

    sent = {"accept": "application/json, text/event-stream", **target.headers}
    url = target.url or ""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    try:
        with httpx2.Client(timeout=_WAIT, headers=sent) as http:
            status, media, body = _answer(http, "POST", url, json=ping)
            streams = status in {404, 405} and _streams(http, url)
    except httpx2.TimeoutException:
        hangs = "it is there and hangs, or something between drops the connection: look at its log"
        return _Odd(reached=False, came=f"no answer within {_WAIT:g} s", advice=(hangs,))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        text = f"it cannot be reached: {one_line(str(error)) or type(error).__name__}"
        return _Odd(reached=False, came=text, advice=advice_for(text, target))
    advice = advice_for_answer(status, media, body, streams=streams)
    came = f"HTTP {status}, {media or 'no content type'}: {one_line(body, 200)}"
    return None if advice is None else _Odd(reached=True, came=came, advice=(advice,))


def _answer(http: Any, method: str, url: str, **sent: Any) -> tuple[int, str, str]:
    """Status, content type and beginning of an answer; a stream need not end."""
    with http.stream(method, url, **sent) as response:
        media = response.headers.get("content-type", "")
        body = next(response.iter_bytes(_READ), b"") if "event-stream" not in media else b""
        return response.status_code, media, body.decode("utf-8", "replace")


def _streams(http: Any, url: str) -> bool:
    """Whether a GET gives the first event of the old HTTP+SSE transport (specification 2024-11-05)."""
    with http.stream("GET", url) as response:
        first = next(response.iter_lines(), "") if "event-stream" in response.headers.get("content-type", "") else ""
        return response.status_code == 200 and "endpoint" in first


# ------------------------------------------------------------------------------------------------- what a server offers


def _connected(connection: Connection) -> Stage:
    stray = [note for note in connection.notes if "not a message" in note]
    advice = [f"it prints on standard output, which is for messages alone: send that to stderr ({note})" for note in stray[:1]]
    came = f"it speaks {connection.version} ({connection.era})"
    return _stage(1, "asked which version of the protocol it speaks", came, warnings=advice)


def _fits(connection: Connection) -> Stage:
    """Names and schemas; a tool that cannot be offered fails the stage, one that has to be renamed is told of."""
    tools = connection.listed
    names = wire_names((connection.name, tool["name"]) for tool in tools)
    faults = [fault for tool in tools if (fault := _schema_fault(tool))]
    faults += [f"mend the server: {note}" for note in connection.notes if "was left out" in note]
    renamed = [
        f"nothing: {tool['name'][:80]!r} does not fit every provider (A-Z a-z 0-9 _ -, 64 characters) and is called {names[origin]}"
        for tool in tools
        if names[origin := (connection.name, tool["name"])] != "__".join(origin)
    ]
    empty = [] if tools else ["it lists no tools: look at its arguments and rights, or whether it has only resources and prompts"]
    return _stage(2, "listed its tools and read their schemas", f"{len(tools)} tools", faults=faults, warnings=renamed + empty)


def _schema_fault(tool: JSON) -> str | None:
    import jsonschema  # noqa: PLC0415  60 ms

    for key in ("inputSchema", "outputSchema"):
        schema = tool.get(key, {})
        try:
            jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
        except jsonschema.SchemaError as error:
            return f"mend the server: the {key} of {tool['name']!r} is no JSON Schema: {one_line(error.message, 200)}"
    return None


def _answers(connection: Connection) -> Stage:
    """One call of a tool that says it only reads and wants no arguments; else a ping."""
    safe = [tool["name"] for tool in connection.listed if _is_harmless(tool)]
    tried = (
        f"called {safe[0]}, which only reads and wants no argument"
        if safe
        else "sent a ping, since no tool is known to be harmless"
    )
    try:
        came = _called(connection, safe[0]) if safe else f"an answer after {connection.ping() * 1000:.0f} ms"
    except ToolError as error:
        advice = advice_for(f"{error}\n{connection.stderr}", connection.target)
        return Stage(STAGES[3], "failed", tried, str(error), advice)
    said = [f"the tool itself says that it failed: {came}"] if came.startswith("isError") else []
    return _stage(3, tried, came, warnings=said)


def _is_harmless(tool: JSON) -> bool:
    return tool.get("annotations", {}).get("readOnlyHint") is True and not tool["inputSchema"].get("required")


def _called(connection: Connection, tool: str) -> str:
    result = connection.call(tool, {})
    parts = result_parts(result)
    text = " ".join(part.text for part in parts if isinstance(part, Text))
    kind = "isError" if result.get("isError") else "a result"
    return f"{kind}, {len(parts)} parts, {tokens.count(text)} tokens: {one_line(text, 160)}"


def _weighs(tools: Iterable[JSON], model: str | None) -> Stage:
    """What every request pays for the definitions."""
    told = {tool["name"]: dumps([tool["name"], tool.get("description", ""), parameters(tool["inputSchema"])]) for tool in tools}
    sizes = {name: tokens.count(text, model=model) for name, text in told.items()}
    many = [f"offer fewer: OpenAI takes {_MOST_TOOLS} tools in one request"] if len(sizes) > _MOST_TOOLS else []
    largest = max(sizes, key=lambda name: sizes[name], default=None)
    most = "" if largest is None else f"; the largest is {largest[:80]} with {sizes[largest]}"
    came = f"{sum(sizes.values())} tokens in every request for {len(sizes)} tools{most}"
    return _stage(4, "counted the definitions as a model reads them", came, faults=many)


def _stage(place: int, tried: str, came: str, *, faults: Sequence[str] = (), warnings: Sequence[str] = ()) -> Stage:
    verdict: Verdict = "failed" if faults else "warning" if warnings else "ok"
    return Stage(STAGES[place], verdict, tried, came, tuple([*faults, *warnings][:_TOLD]))
