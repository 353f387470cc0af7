"""Files that list MCP servers, as other hosts write them, read into the arguments of `Hub.connect`.

Claude Desktop and Cursor call the list ``mcpServers``, VS Code ``servers`` (with comments and ``inputs``). Nothing
is started here. A wrong file is one error of one line; one wrong entry is told in words and takes no other down. What is not
written in the file is not passed on: a variable of the kernel reaches a server only where ``${NAME}`` asks for it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nb_agent.errors import SettingError
from nb_agent.mcp.target import NAME
from nb_agent.values import JSON

__all__ = ["Configuration", "configured"]

#: Where the list of servers stands, in the order in which it is looked for; in ``settings.json`` of VS Code it is a level down.
_LISTS: Final = ("mcpServers", "servers")

#: What ``type`` (or ``transport``) may be, and whether it is an address.
_TYPES: Final = {
    "stdio": False,
    "local": False,
    "http": True,
    "streamable-http": True,
    "streamableHttp": True,
    "streamable_http": True,
}

#: ``${NAME}``, ``${env:NAME}``, ``${NAME:-default}``, and ``${workspaceFolder}``, ``${userHome}``, ``${input:ID}`` of editors.
_VARIABLE: Final = re.compile(r"\$\{(?:(env|input):)?([A-Za-z_][A-Za-z0-9_.-]*)(?::-([^}]*))?\}")

#: Keys that are read, and those that other hosts know and that change nothing here.
_READ: Final = frozenset(
    {"command", "args", "env", "cwd", "url", "serverUrl", "headers", "type", "transport", "disabled", "enabled"}
)
_READ_TOO: Final = frozenset({"era", "timeout", "envFile"})
_KNOWN: Final = frozenset(
    {"autoApprove", "alwaysAllow", "description", "name", "gallery", "version", "dev", "disabledTools", "icon"}
)

#: A string and a comment of JSON with comments; a comma before a closing bracket.
_JSONC: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[\]}])')


@dataclass(frozen=True)
class Configuration:
    """What a file says.

    Attributes:
        servers: name -> arguments of `Hub.connect`, in the order of the file.
        disabled: names that the file switches off.
        notes: a sentence for each entry or key that could not be used.
    """

    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def configured(path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None) -> Configuration:
    """The servers of a file.

    Args:
        path: the file; ``~`` is the home directory.
        environ: where variables are looked up; the process's own environment where it is not given.

    Raises:
        SettingError: the file is not there, is no JSON, or has no list of servers.
    """
    place = Path(path).expanduser()
    entries = _entries(place)
    known = {
        **(os.environ if environ is None else environ),
        "workspaceFolder": str(place.resolve().parent),
        "userHome": str(Path.home()),
    }
    if place.parent.name in {".vscode", ".cursor"}:
        known["workspaceFolder"] = str(place.resolve().parent.parent)
    servers: dict[str, dict[str, Any]] = {}
    disabled, notes = [], []
    for given, entry in entries.items():
        name = _name(given, servers)
        try:
            if not isinstance(entry, dict):
                raise SettingError(f"is no object but {json.dumps(entry)[:80]}")  # noqa: TRY301  one road for all that is wrong
            if entry.get("disabled") is True or entry.get("enabled") is False:
                disabled.append(name)
                continue
            servers[name] = _arguments(entry, known, place)
        except SettingError as fault:
            notes.append(f"server {given!r} of {place.name} is left out: it {fault}")
            continue
        if name != given:
            notes.append(
                f"server {given!r} of {place.name} is called {name!r}: names have 1 to 32 of the characters A-Z a-z 0-9 _ -"
            )
        if odd := [key for key in entry if key not in _READ | _READ_TOO | _KNOWN]:
            notes.append(f"server {given!r} of {place.name}: not read: {', '.join(odd)}")
    return Configuration(servers, tuple(disabled), tuple(notes))


def _entries(place: Path) -> JSON:
    try:
        text = place.read_text(encoding="utf-8-sig")
        found = json.loads(_COMMA.sub(_kept, _JSONC.sub(_kept, text)))
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise SettingError(f"the MCP configuration {str(place)!r} cannot be read: {why}") from None
    except json.JSONDecodeError as fault:
        raise SettingError(
            f"the MCP configuration {str(place)!r} is no JSON: {fault.msg} at line {fault.lineno}, column {fault.colno}"
        ) from None
    outer = found.get("mcp") if isinstance(found, dict) and isinstance(found.get("mcp"), dict) else found
    for at in (found, outer):
        for key in _LISTS:
            if isinstance(at, dict) and isinstance(at.get(key), dict):
                return dict(at[key])
    raise SettingError(
        f"the MCP configuration {str(place)!r} lists no servers; write "
        '{"mcpServers": {"NAME": {"command": "…", "args": […]}}}'
    )


def _kept(match: re.Match[str]) -> str:
    """A string stays; of a comment its line ends do, so that an error names the right line."""
    return match[1] or "\n" * match[0].count("\n")


def _name(given: str, taken: Mapping[str, Any]) -> str:
    name = given if NAME.fullmatch(given) else re.sub(r"[^A-Za-z0-9_-]", "_", given)[:32] or "server"
    number = 1
    while name in taken:
        number += 1
        name = f"{name[:29]}_{number}"
    return name


def _arguments(entry: JSON, known: Mapping[str, str], place: Path) -> dict[str, Any]:
    kind = entry.get("type", entry.get("transport"))
    url = entry.get("url", entry.get("serverUrl"))
    if kind == "sse":
        raise SettingError("is of type 'sse', which MCP has given up; use its Streamable HTTP address with type 'http'")
    if kind is not None and kind not in _TYPES:
        raise SettingError(f"has the type {kind!r}; known are: {', '.join(_TYPES)}")
    is_url = _TYPES[kind] if kind is not None else url is not None
    if is_url and url is None:
        raise SettingError(f"is of type {kind!r} and has no url")
    if not is_url and not entry.get("command"):
        raise SettingError("has neither command nor url")
    made = _address(entry, url, known) if is_url else _program(entry, known, place)
    if entry.get("era") is not None:
        made["era"] = entry["era"]
    if isinstance(entry.get("timeout"), (int, float)) and entry["timeout"] > 0:
        made["call_limit"] = float(entry["timeout"]) / (1000 if entry["timeout"] >= _MILLISECONDS else 1)
    return made


def _address(entry: JSON, url: Any, known: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"url": _text("url", url, known)}
    if headers := entry.get("headers"):
        made["headers"] = _texts("headers", headers, known)
    return made


def _program(entry: JSON, known: Mapping[str, str], place: Path) -> dict[str, Any]:
    args = entry.get("args", [])
    if not isinstance(args, list):
        raise SettingError("has args that are no list; write one text for each word")
    made: dict[str, Any] = {"command": [_text("command", entry["command"], known), *(_text("args", word, known) for word in args)]}
    if env := {**_env_file(entry, known), **_texts("env", entry.get("env") or {}, known)}:
        made["env"] = env
    if entry.get("cwd") is not None:
        made["cwd"] = str(place.resolve().parent / Path(_text("cwd", entry["cwd"], known)).expanduser())
    return made


#: A timeout from here on is meant in milliseconds: hosts differ.
_MILLISECONDS: Final = 1000


def _env_file(entry: JSON, known: Mapping[str, str]) -> dict[str, str]:
    if entry.get("envFile") is None:
        return {}
    path = Path(_text("envFile", entry["envFile"], known)).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingError(f"names the envFile {str(path)!r}, which cannot be read") from None
    pairs = [
        line.strip().removeprefix("export ").partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#")
    ]
    return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}


def _texts(where: str, given: Any, known: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(given, dict):
        raise SettingError(f"has {where} that is no object")
    return {str(key): _text(f"{where}.{key}", value, known) for key, value in given.items() if value is not None}


def _text(where: str, given: Any, known: Mapping[str, str]) -> str:
    if not isinstance(given, (str, int, float)):
        raise SettingError(f"has {where} that is no text but {json.dumps(given)[:80]}")
    if isinstance(given, bool):
        return "true" if given else "false"

    def looked_up(match: re.Match[str]) -> str:
        space, name, default = match.groups()
        if space == "input":
            raise SettingError(
                f"asks in {where} for the input {name!r}, which only its editor can ask for; write ${{env:NAME}} instead"
            )
        value = known.get(name)
        if value or (value is not None and default is None):
            return value
        if default is None:
            raise SettingError(f"asks in {where} for the variable {name}, which is not set")
        return default

    return _VARIABLE.sub(looked_up, str(given))
