"""The doors for a shell: ``mock`` serves the mock model, ``demo`` runs the file task; ``doctor`` and ``serve`` are for MCP servers.

Each command imports what it needs only when it is called.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from nb_agent import __version__
from nb_agent.errors import AgentError, SettingError

__all__ = ["main"]

#: Exit status where a doctor found a fault; 1 is for a command that could not be carried out.
_SICK: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line; the exit status is 0, 1 for an expected error (one line), 2 where a doctor found a fault."""
    options = _parser().parse_args(arguments)
    try:
        status: int | None = options.action(options)
    except AgentError as error:
        print(f"nb-agent: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nb-agent", description="See a model's tool loop from the inside.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    mock = commands.add_parser("mock", help="serve the mock model over HTTP, for other programs and for a class")
    mock.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)")
    mock.add_argument("--port", type=int, default=8765, help="port, 0 for a free one (default: %(default)s)")
    told = "; models whose names ask for another keep theirs"
    mock.add_argument("--window", default="", help=f"context window of every model, in tokens{told}")
    mock.add_argument("--speed", default="", help=f"tokens per second{told}")
    mock.add_argument(
        "--fault", default="", help="mistake that every model makes, such as rate_limit or drop; a prompt may ask for its own"
    )
    mock.set_defaults(action=_mock)
    demo = commands.add_parser("demo", help="run the three-round file task against the mock model and print the run")
    demo.add_argument("--dir", type=Path, default=Path("demo"), help="folder to work in (default: ./%(default)s)")
    demo.set_defaults(action=_demo)
    _add_doctor(commands.add_parser("doctor", help="find out, stage by stage, why an MCP server does not work"))
    _add_serve(commands.add_parser("serve", help="serve Python functions as an MCP server, over standard input and output or HTTP"))
    return parser


def _add_doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.add_argument("target", nargs="*", help="an address, or after -- a command; with --config the names of servers")
    doctor.add_argument("--config", type=Path, help="a file with mcpServers, as other hosts write them; all of them without a name")
    doctor.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="given to the command; may be repeated")
    doctor.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="sent to the address; may be repeated")
    doctor.add_argument("--limit", type=float, default=20.0, help="seconds to wait for the first answer (default: %(default)g)")
    doctor.add_argument(
        "--form", choices=["text", "json", "html"], default="text", help="form of the result (default: %(default)s)"
    )
    doctor.set_defaults(action=_doctor)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("tools", metavar="MODULE:NAME", help="a function or a list of them, such as mytools:tools")
    serve.add_argument("--http", action="store_true", help="serve over Streamable HTTP instead of standard input and output")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)")
    serve.add_argument("--port", type=int, default=8766, help="port, 0 for a free one (default: %(default)s)")
    serve.add_argument("--token", help="has to come with every request; needed where other machines can reach the server")
    serve.add_argument("--policy", help="such as danger=go; calls that need leave are refused, since nobody can be asked")
    serve.set_defaults(action=_serve)


def _mock(options: argparse.Namespace) -> None:
    from nb_agent.mock import faults, server  # noqa: PLC0415  starlette and uvicorn are for this command only

    served = faults.served(window=options.window, speed=options.speed, fault=options.fault)
    server.serve(
        options.host,
        options.port,
        ready=lambda url: print(f"mock model at {url} (any key, any model name); Ctrl+C ends it", flush=True),
        served=served,
    )


def _demo(options: argparse.Namespace) -> None:
    from nb_agent.lessons import demo  # noqa: PLC0415  it brings the whole agent

    demo.run(options.dir)


def _doctor(options: argparse.Namespace) -> int:
    from nb_agent.mcp import doctor  # noqa: PLC0415  it brings the SDK, and so do its neighbours

    wanted: dict[str, dict[str, Any]] = {}
    if options.config is not None:
        wanted = _configured(options)
    elif not options.target:
        raise SettingError("nothing to look at; give an address, a command after --, or --config FILE")
    elif options.target[0].startswith(("http://", "https://")):
        wanted["server"] = {"url": options.target[0], "headers": _pairs(options.header)}
    else:
        wanted["server"] = {"command": options.target, "env": _pairs(options.env)}
    found = [doctor.doctor(name=name, **{"start_limit": options.limit, **given}) for name, given in wanted.items()]
    if options.form == "json":
        print(json.dumps([each.to_json() for each in found], ensure_ascii=False, indent=2))
    else:
        print("\n\n".join(each.to_html() if options.form == "html" else str(each) for each in found))
    return 0 if all(each.sound for each in found) else _SICK


def _configured(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    from nb_agent.mcp.configuration import configured  # noqa: PLC0415  see _doctor

    told = configured(options.config)
    for note in told.notes:
        print(f"nb-agent: {note}", file=sys.stderr)
    if missing := [name for name in options.target if name not in told.servers]:
        names = ", ".join(told.servers) or "none"
        raise SettingError(f"no server named {missing[0]!r} in {options.config}; it can use: {names}")
    return {name: told.servers[name] for name in options.target or told.servers}


def _pairs(given: Sequence[str]) -> dict[str, str]:
    if odd := [pair for pair in given if "=" not in pair]:
        raise SettingError(f"{odd[0]!r} is no NAME=VALUE")
    return dict(pair.split("=", 1) for pair in given)


def _serve(options: argparse.Namespace) -> None:
    from nb_agent.mcp import serving  # noqa: PLC0415  see _doctor

    with contextlib.redirect_stdout(sys.stderr):  # standard output may be the wire
        tools = _loaded(options.tools)
    served = serving.Served(tools, policy=options.policy)
    if not options.http:
        serving.serve(served)
        return
    serving.serve_http(
        served,
        host=options.host,
        port=options.port,
        token=options.token,
        ready=lambda url: print(f"{len(served.toolbox)} tools at {url}; Ctrl+C ends it", flush=True),
    )


def _loaded(place: str) -> list[Any]:
    """The tools that ``module:name`` names."""
    module, _, name = place.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # an installed script has its own folder there instead
    try:
        found = getattr(importlib.import_module(module), name or "tools")
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingError(f"cannot serve {place!r}: {error}; write MODULE:NAME, such as mytools:tools") from None
    return list(found) if isinstance(found, (list, tuple)) else [found]


if __name__ == "__main__":
    sys.exit(main())
