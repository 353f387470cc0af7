"""The words of ``%agent mcp``, with what stands behind each, as what an agent is to do. The package `mcp` does the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nb_agent.errors import SettingError
from nb_agent.options import Parser

if TYPE_CHECKING:
    from nb_agent.agent import Agent

__all__ = ["WORDS"]


def _adding() -> Parser:
    parser = Parser(prog="%agent mcp add", add_help=False, allow_abbrev=False)
    parser.add_argument("name")
    parser.add_argument("--url")
    parser.add_argument("--trust", action="store_true")
    parser.add_argument("--era", choices=["legacy", "modern"])
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE")
    return parser


def _add(agent: Agent, words: Sequence[str]) -> str:
    """Add NAME [--trust] [--era legacy|modern] (--url ADDRESS [--header NAME=VALUE] | -- COMMAND…)."""
    place = words.index("--") if "--" in words else len(words)
    given, command = _adding().parse_args(words[:place]), list(words[place + 1 :])
    how: dict[str, Any] = {"command": command or None, "url": given.url, "era": given.era, "trusted": given.trust}
    if given.header:
        how["headers"] = dict(_pair(text) for text in given.header)
    return f"{given.name}: {', '.join(agent.mcp(given.name, **how)) or 'no tools'}"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise SettingError(f"%agent mcp: write NAME=VALUE, not {text!r}")
    return name, value


def _config(agent: Agent, words: Sequence[str]) -> str:
    """Config PATH [--trust]: all servers of a file as other hosts write it."""
    match words:
        case [path]:
            told = agent.hub.configure(path)
        case [path, "--trust"] | ["--trust", path]:
            told = agent.hub.configure(path, trusted=True)
        case _:
            raise SettingError(f"%agent mcp config takes the path of one file, not {' '.join(words)!r}")
    return "\n".join([*told, _list(agent, ())])


def _list(agent: Agent, words: Sequence[str]) -> str:
    """list: which there are, and how they are."""
    del words
    lines = [f"{name}: {connection}" for name, connection in agent.hub.connections.items()]
    return "\n".join(lines) or "no MCP servers; add one with %agent mcp add NAME -- COMMAND"


def _doctor(agent: Agent, words: Sequence[str]) -> str:
    """Doctor NAME: why it does not work, stage by stage."""
    from nb_agent.mcp.doctor import diagnose  # noqa: PLC0415  rarely asked for

    connection = _named(agent, words, "doctor")
    return str(diagnose(connection.target, name=connection.name, start_limit=connection.start_limit))


def _resources(agent: Agent, words: Sequence[str]) -> str:
    """Resources NAME: what it lets others read, and the prompts that it has."""
    from nb_agent.mcp import contents  # noqa: PLC0415  the SDK comes with it

    connection = _named(agent, words, "resources")
    kinds: tuple[contents.Offered, ...] = ("resources", "templates", "prompts")
    found = [(kind, entry) for kind in kinds for entry in agent.asking(partial(contents.listed, connection, kind))]
    lines = [f"{kind[:-1]:9} {entry.get('uri') or entry.get('uriTemplate') or entry['name']}" for kind, entry in found]
    return "\n".join(lines) or f"{connection.name} has no resources and no prompts"


def _read(agent: Agent, words: Sequence[str]) -> str:
    """Read NAME URI: put a resource into the conversation."""
    from nb_agent.mcp import contents  # noqa: PLC0415  likewise

    if len(words) != 2:
        raise SettingError("%agent mcp read takes the name of a server and the address of a resource")
    connection = _named(agent, words[:1], "read")
    return _added(agent, agent.asking(lambda: contents.read(connection, words[1], model=agent.model)))


def _prompt(agent: Agent, words: Sequence[str]) -> str:
    """Prompt NAME PROMPT [ARGUMENT=VALUE …]: put a prompt of a server into the conversation."""
    from nb_agent.mcp import contents  # noqa: PLC0415  likewise

    if len(words) < 2:
        raise SettingError("%agent mcp prompt takes the name of a server and of a prompt, then ARGUMENT=VALUE")
    connection, given = _named(agent, words[:1], "prompt"), dict(_pair(text) for text in words[2:])
    return _added(agent, agent.asking(lambda: contents.prompt(connection, words[1], given, model=agent.model)))


def _added(agent: Agent, preview: Any) -> str:
    agent.add(preview.messages)
    return f"{preview}\nIt is in the conversation now."


def _remove(agent: Agent, words: Sequence[str]) -> str:
    """Remove NAME: end the connection."""
    name = _named(agent, words, "remove").name
    agent.hub.close(name)
    return f"{name}: closed"


def _named(agent: Agent, words: Sequence[str], word: str) -> Any:
    if len(words) != 1 or words[0] not in agent.hub.connections:
        known = ", ".join(agent.hub.connections) or "none"
        raise SettingError(f"%agent mcp {word} takes the name of a server; there are: {known}")
    return agent.hub.connections[words[0]]


#: Word -> what it does.
WORDS: Final[dict[str, Callable[[Agent, Sequence[str]], str]]] = {
    "add": _add,
    "config": _config,
    "list": _list,
    "doctor": _doctor,
    "resources": _resources,
    "read": _read,
    "prompt": _prompt,
    "remove": _remove,
}
