"""The doors for a shell: ``nb-agent mock`` serves the mock model, ``nb-agent demo`` runs the file task and prints the run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nb_agent import __version__
from nb_agent.errors import AgentError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line; the exit status is 0, or 1 where an expected error was printed as one line."""
    options = _parser().parse_args(arguments)
    try:
        options.action(options)
    except AgentError as error:
        print(f"nb-agent: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


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
    return parser


def _mock(options: argparse.Namespace) -> None:
    from nb_agent.mock import faults, server  # noqa: PLC0415  starlette and uvicorn are for this command only

    served = faults.served(window=options.window, speed=options.speed, fault=options.fault)
    server.serve(
        options.host,
        options.port,
        ready=lambda url: print(f"mock model at {url} (any key, any model name); Ctrl+C ends it"),
        served=served,
    )


def _demo(options: argparse.Namespace) -> None:
    from nb_agent.lessons import demo  # noqa: PLC0415  it brings the whole agent

    demo.run(options.dir)


if __name__ == "__main__":
    sys.exit(main())
