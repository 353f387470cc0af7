"""Usual causes of an MCP server that does not work, as tables: what is seen, and what to do. Starts nothing; `doctor` does."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nb_agent.mcp.child import started_as
from nb_agent.mcp.target import Target

__all__ = ["advice_for", "advice_for_answer", "unfit_command"]

#: Where installers put programs that a shell finds through its start files, and a kernel that was started otherwise does not.
_PLACES: Final = (
    "~/.local/bin",
    "~/.cargo/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.volta/bin",
    "~/.nvm/versions/node/*/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
)
#: What brings a program that is not there.
_BRINGS: Final = {
    **dict.fromkeys(("npx", "node", "npm"), "install Node.js, which brings node and npx (https://nodejs.org)"),
    **dict.fromkeys(("uvx", "uv"), "install uv, which brings uvx: pip install uv"),
    "docker": "install Docker and start it",
    "bunx": "install Bun, which brings bunx",
}
#: Programs that are nothing without another one.
_NEEDS: Final = {"npx": "node", "npm": "node"}
_RUNS_SCRIPTS: Final = re.compile(r"python[\d.]*|node|bun|tsx|ts-node")
_SCRIPTS: Final = (".py", ".js", ".mjs", ".cjs", ".ts")

#: What a server that failed says -> what to do; the first that matches is told, and groups are put in.
_SAID: Final = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        (r"No module named '?([\w.]+)", "install what brings the Python module {0} into the Python that starts the server"),
        (r"Cannot find (?:module|package) '([^']+)'", "install the node package, or correct the path: {0}"),
        (r"(?i)npm (?:error|ERR!) (?:code )?E?404", "the npm registry knows no such package: look at its spelling"),
        (r"can't open file '([^']+)'", "the script {0} is not there: give its whole path, or cwd='…'"),
        (r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|Temporary failure in name", "it wants the network: install the package first"),
        (r"(?i)\bEADDRINUSE|address already in use", "its port is taken: end the other program, or give another port"),
        (r"(?i)EACCES|Permission denied", "it may not read or run a file: look at the rights of the program and its paths"),
        (r"SyntaxError|Unsupported engine", "its interpreter may be too old for it: compare the versions of Python or node"),
        (r"(?i)Unsupported protocol version|-32022|protocol version", "the eras do not fit: try era='legacy', or a newer server"),
        (r"(?i)CERTIFICATE_VERIFY_FAILED|certificate", "its certificate is not trusted: add its authority with SSL_CERT_FILE"),
        (r"WRONG_VERSION_NUMBER|record layer failure", "it speaks no TLS: write http:// instead of https://"),
        (r"(?i)Name or service not known|nodename nor servname|getaddrinfo", "no such host: look at the spelling of the address"),
        (r"(?i)refused|ECONNREFUSED", "nothing listens at that port: start the server, or correct the port"),
        (r"did not answer within", "it hangs or is slow: start it in a terminal and wait, or give start_limit=SECONDS"),
    )
)
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_LACKS: Final = re.compile(r"not set|missing|required|environment|undefined|provide|KeyError", re.IGNORECASE)

#: Status of an answer -> what to do.
_STATUS: Final = {
    401: "a token is missing or wrong: headers={'Authorization': 'Bearer …'}",
    403: "the token may not do this, or the server refuses this Host or Origin",
    404: "there is nothing at this path: most servers are at /mcp",
    405: "this address takes no POST: it is another path, or an old server that speaks HTTP+SSE only",
    406: "the server wants other media types than MCP's: it is probably no MCP server",
    429: "too many requests: wait, and try again",
}


def unfit_command(target: Target) -> tuple[str, tuple[str, ...]] | None:
    """What keeps a command from being started, and what to do; ``None`` where nothing is seen beforehand."""
    base = Path(target.cwd) if target.cwd else Path.cwd()
    if not base.is_dir():
        return f"there is no directory cwd={str(base)!r}", ("give the whole path of a directory that is there",)
    program, *words = started_as(target.command)
    path = target.env.get("PATH")
    if shutil.which(program, path=path) is None and not (os.sep in program and (base / program).is_file()):
        return f"the command {program!r} was not found on PATH={path or os.environ.get('PATH', '')}", _elsewhere(program)
    needed = _NEEDS.get(Path(program).name)
    if needed and shutil.which(needed, path=path) is None:
        return f"{program} is there, but {needed} is not on PATH", _elsewhere(needed)
    if _RUNS_SCRIPTS.match(Path(program).name):  # for others, such as npx, the word may be the name of a package
        word = words[0] if words else ""
        if word.endswith(_SCRIPTS) and not (base / Path(word).expanduser()).is_file():
            return f"the script {word!r} is not in {base}", ("give its whole path, or cwd='…': a kernel starts in its own folder",)
    return None


def _elsewhere(program: str) -> tuple[str, ...]:
    name = Path(program).name
    dirs = [Path(sys.prefix) / "bin", *(found for place in _PLACES for found in _matching(place))]
    told = [f"it is at {place / name}: name it so" for place in dirs if (place / name).is_file()][:1]
    install = _BRINGS.get(name, f"install {name}, or correct its spelling")
    path = "Jupyter's PATH can differ from your shell's: run `which " + name + "` there and give the whole path"
    return (*told, path, install)


def _matching(place: str) -> list[Path]:
    whole = Path(place).expanduser()
    return sorted(Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))))


def advice_for(text: str, target: Target, *, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What to do about a failure that says this.

    >>> advice_for("ModuleNotFoundError: No module named 'fern'", Target.of(["python", "-m", "fern"]), environ={})
    ('install what brings the Python module fern into the Python that starts the server',)
    """
    known = os.environ if environ is None else environ
    told = []
    if target.command and _LACKS.search(text):
        for name in dict.fromkeys(_VARIABLE.findall(text)):
            if name not in target.env and name != "PATH":
                here = " (the kernel has it, but servers inherit only HOME, LOGNAME, PATH, SHELL, TERM and USER)"
                told.append(f"pass it: env={{'{name}': …}}{here if name in known else ''}")
    for pattern, advice in _SAID:
        if found := pattern.search(text):
            told.append(advice.format(*found.groups()))
            break
    return tuple(told[:4]) or ("start it in a terminal and read what it says there",)


def advice_for_answer(status: int, media: str, body: str, *, streams: bool) -> str | None:
    """What to do about an HTTP answer to a message of the protocol; ``None`` where the answer may be a sound one.

    Args:
        status: of the answer.
        media: its content type.
        body: the beginning of it.
        streams: whether the address answers a GET with the first event of the old HTTP+SSE transport.
    """
    if streams:
        return "this server speaks HTTP+SSE only (retired 2025-03-26): use its Streamable HTTP address, often /mcp instead of /sse"
    if "html" in media or body.lstrip()[:9].lower() in {"<!doctype", "<html"}:
        return "this is a web page and no MCP server: correct the path (often /mcp), or the login in front of it"
    if 300 <= status < 400:
        return "the address leads elsewhere: give the final one, with or without the slash at its end"
    if status >= 500:
        return "the server fails by itself: look at its own log"
    return _STATUS.get(status)
