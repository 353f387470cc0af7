"""Our own tools as an MCP server for any other host, over standard input and output or Streamable HTTP, in both eras.

Calls go through the same `Caller` as in a notebook, so policy, masks, limits of size and repeats hold. Nobody can be asked here: a
call that needs leave is refused with the reason. Over HTTP it listens on loopback unless told otherwise, checks ``Host`` and
``Origin``, and serves other machines only with a token. Unlike `hub` this is the other end of the protocol.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import ipaddress
import itertools
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nb_agent.errors import SettingError
from nb_agent.guards.masking import Masks
from nb_agent.guards.policy import Policy, PolicyLike, Tier
from nb_agent.guards.repeats import changes_something
from nb_agent.listening import address, in_thread, listen
from nb_agent.messages import Image, Text, ToolCall, ToolResult
from nb_agent.tools.calling import Caller, Prepared
from nb_agent.tools.results import MOST_TOKENS
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.values import JSON, dumps

if TYPE_CHECKING:
    import uvicorn
    from mcp import types
    from mcp.server import Server

__all__ = ["Served", "serve", "serve_http", "serving_http"]

#: Seconds without a call after which a new run begins: only inside one run is a repeated side effect held back.
_RUN_ENDS: Final = 60.0
#: Seconds that a call may take, unless its tool says otherwise, and that a server in a thread is given to end.
_CALL_LIMIT: Final = 120.0
#: What a tier means in the protocol's own hints (ToolAnnotations).
_HINTS: Final[dict[Tier, JSON]] = {
    "read": {"read_only_hint": True},
    "write": {"read_only_hint": False, "destructive_hint": False},
    "danger": {"read_only_hint": False, "destructive_hint": True},
}


class Served:
    """Tools behind the protocol; knows no transport.

    Args:
        tools: tools, or functions that are made into tools.
        policy: as for an agent; ``{"danger": "go"}`` lets calls run that a person would be asked about.
        masks: what no host may see of a result; keys and passwords unless given.
        most_tokens: longer results are cut.
        clock: gives seconds.

    Raises:
        ToolDefinitionError: see `Toolbox`.
        SettingError: there is no tool, or the policy is none.
    """

    def __init__(
        self,
        tools: Iterable[AnyTool | Callable[..., Any]],
        *,
        policy: PolicyLike = None,
        masks: Masks | None = None,
        most_tokens: int = MOST_TOKENS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.toolbox = Toolbox(tools)
        if not len(self.toolbox):
            raise SettingError("there is no tool to serve; give functions, such as serve([weather])")
        self._settings: dict[str, Any] = {
            "policy": Policy.of(policy),
            "masks": Masks() if masks is None else masks,
            "most_tokens": most_tokens,
            "most_seconds": _CALL_LIMIT,
        }
        self._clock = clock
        self._numbers = itertools.count(1)
        self._caller, self._last = self._new(), clock()
        self._looking, self._changing = threading.Lock(), threading.Lock()

    def _new(self) -> Caller:
        return Caller(self.toolbox, clock=self._clock, **self._settings)

    def _current(self) -> Caller:
        with self._looking:
            if self._clock() - self._last > _RUN_ENDS:
                self._caller = self._new()
            self._last = self._clock()
            return self._caller

    def call(self, name: str, arguments: JSON) -> ToolResult:
        """Carry out one call; may be called from several threads. Side effects happen one after another, so none happens twice."""
        tool = self.toolbox.find(name)
        number, caller = next(self._numbers), self._current()
        changes = tool is not None and changes_something(name, tool.tier)
        with self._changing if changes else contextlib.nullcontext():
            ready = caller.prepare(ToolCall(f"call_{number}", name, dumps(arguments)))
            done = next(caller.carry_out(number, [_without_a_person(ready)]))
        if done.printed:  # standard output may be the wire
            sys.stderr.write(done.printed)
        return done.result

    def server(self, name: str = "nb_agent") -> Server[Any]:
        """The SDK's server; one may have any number of sessions."""
        from mcp import types  # noqa: PLC0415  slow to import
        from mcp.server import Server  # noqa: PLC0415

        from nb_agent import __version__  # noqa: PLC0415  `nb_agent` itself is not ready while this module may be imported

        listed = types.ListToolsResult(tools=[_listed(tool) for tool in self.toolbox])

        async def list_tools(*_: Any) -> types.ListToolsResult:
            return listed

        async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
            import anyio.to_thread  # noqa: PLC0415

            carry_out = functools.partial(self.call, asked.name, asked.arguments or {})
            return _answered(await anyio.to_thread.run_sync(carry_out, abandon_on_cancel=True))

        return Server(name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _without_a_person(ready: Prepared) -> Prepared:
    if ready.asks is None or ready.result is not None:
        return ready
    told = f"not carried out: {ready.call.name} needs a person's leave ({ready.asks}), and nobody can be asked here"
    return replace(ready, result=ToolResult.failure(ready.call, told, code="refused"))


def _listed(tool: AnyTool) -> types.Tool:
    from mcp import types  # noqa: PLC0415  slow to import

    told = tool.definition
    hints = types.ToolAnnotations(**_HINTS[tool.tier]) if tool.tier else None
    return types.Tool(name=told.name, description=told.description, input_schema=told.parameters, annotations=hints)


def _answered(result: ToolResult) -> types.CallToolResult:
    from mcp import types  # noqa: PLC0415  slow to import

    def block(part: Text | Image) -> types.TextContent | types.ImageContent:
        if isinstance(part, Text):
            return types.TextContent(text=part.text)
        if part.data is None:
            return types.TextContent(text=f"[image: {part.url}]")
        return types.ImageContent(data=part.data, mime_type=part.media_type)

    return types.CallToolResult(content=[block(part) for part in result.parts], is_error=result.failed)


# ------------------------------------------------------------------------------------------------- transports


def serve(served: Served, *, name: str = "nb_agent") -> None:
    """Serve over standard input and output until the host closes them. While it serves, what is printed goes to standard error."""
    import anyio  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415  slow to import

    async def run() -> None:
        server = served.server(name)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(run)


def serve_http(
    served: Served,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    hosts: Sequence[str] = (),
    name: str = "nb_agent",
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve over Streamable HTTP until interrupted.

    Args:
        served: the tools.
        host: the address to listen on.
        port: the port, 0 for a free one.
        token: has to come with every request as ``Authorization: Bearer TOKEN``.
        hosts: other names under which this server is reached, such as ``"lab.example.org:8000"``.
        name: what the server calls itself.
        ready: called with the address as soon as connections are accepted.

    Raises:
        SettingError: the address cannot be listened on, or other machines could reach it without a token.
    """
    with contextlib.closing(_listen(host, port, token)) as listener, contextlib.suppress(KeyboardInterrupt):
        server = _uvicorn(served.server(name), listener, token, hosts)
        if ready is not None:
            ready(_url(listener))
        server.run(sockets=[listener])


@contextlib.contextmanager
def serving_http(
    served: Served,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    hosts: Sequence[str] = (),
    name: str = "nb_agent",
) -> Iterator[str]:
    """The same in a thread, for a notebook: yields the address, and ends the server afterwards (see `serve_http`)."""
    with contextlib.closing(_listen(host, port, token)) as listener:
        server = _uvicorn(served.server(name), listener, token, hosts)
        with in_thread(server, listener, "nb_agent MCP server"):
            yield _url(listener)


def _listen(host: str, port: int, token: str | None) -> socket.socket:
    if not _is_loopback(host) and not token:
        raise SettingError(f"other machines can reach {host}, so a token is needed: give one with token='…' (--token)")
    return listen(host, port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(listener: socket.socket) -> str:
    return f"{address(listener)}/mcp"


def _uvicorn(server: Server[Any], listener: socket.socket, token: str | None, hosts: Sequence[str]) -> uvicorn.Server:
    import uvicorn  # noqa: PLC0415  only whoever serves needs it
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    host, port = listener.getsockname()[:2]
    own = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}", f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]
    names = [*own, *hosts]
    fence = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{known}" for known in names])
    app: Any = server.streamable_http_app(transport_security=fence, host=host)
    if token:
        app = _Locked(app, token)
    settings: dict[str, Any] = {"ws": "none", "http": "h11", "loop": "asyncio", "log_level": "warning", "lifespan": "on"}
    return uvicorn.Server(uvicorn.Config(app, access_log=False, timeout_graceful_shutdown=1, **settings))


class _Locked:
    """An application that answers only requests with the token, compared in constant time: no part of it can be guessed."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"this server wants Authorization: Bearer TOKEN"})
                return
        await self._app(scope, receive, send)
