"""The mock model over HTTP, on loopback unless told otherwise: for other programs, for the vendors' own clients, for a class.

Adds nothing to `nb_agent.mock.answer` but the socket. No key is asked for, and none is read.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from nb_agent import mock
from nb_agent.listening import address, in_thread, listen
from nb_agent.mock import chat_completions
from nb_agent.mock.faults import WAIT
from nb_agent.mock.wire import Refused
from nb_agent.values import encode

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope, Send

__all__ = ["running", "serve"]

#: Status -> the headers that come with it.
_HEADERS: Final = {429: {"retry-after": str(WAIT)}}


def serve(
    host: str = "127.0.0.1", port: int = 0, *, ready: Callable[[str], None] | None = None, served: mock.Model | None = None
) -> None:
    """Serve until interrupted.

    Args:
        host: the address to listen on.
        port: the port, 0 for a free one.
        ready: called with the base URL as soon as connections are accepted.
        served: the window, speed and fault of models whose names say nothing of them.

    Raises:
        SettingError: the address cannot be listened on.
    """
    with contextlib.closing(listen(host, port)) as listener, contextlib.suppress(KeyboardInterrupt):
        if ready is not None:
            ready(address(listener))
        _server(served).run(sockets=[listener])


@contextlib.contextmanager
def running(served: mock.Model | None = None) -> Iterator[str]:
    """A server in a thread, on a free port of the loopback address; yields its base URL and ends it afterwards."""
    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        server = _server(served)
        with in_thread(server, listener, "nb_agent mock server"):
            yield address(listener)


def _server(served: mock.Model | None) -> uvicorn.Server:
    import uvicorn  # noqa: PLC0415  only whoever serves needs it
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    app = Starlette(routes=[Route("/{path:path}", partial(_respond, served), methods=["GET", "POST"])])
    settings: dict[str, Any] = {"lifespan": "off", "ws": "none", "http": "h11", "loop": "asyncio", "log_level": "warning"}
    configured = uvicorn.Config(app, access_log=False, timeout_graceful_shutdown=1, **settings)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    return uvicorn.Server(configured)


async def _respond(served: mock.Model | None, request: Request) -> Response:
    """One request. The work is done in a thread: counting takes a moment and a slow model sleeps."""
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415  see _server
    from starlette.responses import StreamingResponse  # noqa: PLC0415

    path = request.url.path
    if request.method == "GET" and path == "/":
        path = "/v1/models"  # somebody looks whether it is there
    content = await request.body()
    try:
        answered = await run_in_threadpool(mock.answer, path, content, served)
    except Exception as error:  # noqa: BLE001  a fault of ours has to reach the client as what it is
        refused = Refused(f"the mock model failed: {type(error).__name__}: {error}", status=500, code="server_error")
        answered = mock.Answer(500, "application/json", iter([encode(chat_completions.error(refused))]))
    headers = {"x-request-id": "req_mock", "cache-control": "no-store", **_HEADERS.get(answered.status, {})}
    response = StreamingResponse(answered.chunks, answered.status, headers, answered.media_type)
    return cast("Response", partial(_unfinished, response)) if answered.breaks else response


async def _unfinished(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """A response without its end, at which uvicorn closes the connection: to the client it has broken off."""

    async def passed(message: Message) -> None:
        if message.get("more_body", True):
            await send(message)

    await response(scope, receive, passed)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether uvicorn's line is about something else than a response that was left unfinished on purpose."""
    return "without completing" not in record.getMessage()
