"""A small MCP server to learn with: a read-only database of invented users, a lister of one directory, and one of each else.

``python -m nb_agent.mcp.lesson_server [--dir DIR] [--ask]`` speaks MCP over standard input and output. Unlike the kit's own tools
it knows nothing of nb_agent's loop: any MCP host can start it. It writes nothing and reads nothing outside DIR, and that SQL only
reads is seen to by SQLite itself (an authorizer and ``query_only``), not by a pattern.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import Completion, CompletionArgument, ToolAnnotations
from pydantic import BaseModel, Field

__all__ = ["USERS", "Users", "make_server"]

#: All of them are invented; example.org belongs to nobody (RFC 2606).
USERS: Final = (
    ("U-1001", "Ada Lindqvist", "Oslo", "ada@example.org", "2021-03-14"),
    ("U-1002", "Ben Okafor", "Berlin", "ben@example.org", "2021-06-02"),
    ("U-1003", "Clara Weiss", "Berlin", "clara@example.org", "2021-11-20"),
    ("U-1004", "佐藤 健", "京都", "ken@example.org", "2022-01-08"),
    ("U-1005", "Diego Quispe", "Lima", "diego@example.org", "2022-04-17"),
    ("U-1006", "Emil Hansen", "Oslo", "emil@example.org", "2022-09-30"),
    ("U-1007", "Fatma Yilmaz", "Berlin", "fatma@example.org", "2023-02-11"),
    ("U-1008", "山本 葵", "京都", "aoi@example.org", "2023-05-25"),
    ("U-1009", "Gabriela Rojas", "Lima", "gabriela@example.org", "2023-10-03"),
    ("U-1010", "Henrik Dahl", "Oslo", "henrik@example.org", "2024-07-19"),
)

_MOST_ROWS: Final = 50
_MOST_ENTRIES: Final = 200
_LONGEST: Final = 20_000  # bytes of one value, and of one query
#: Seconds that one query may take, and how many steps of SQLite's machine pass between two looks at the clock.
_QUERY_LIMIT: Final = 2.0
_STEPS: Final = 10_000

#: The only things that a query may do (https://sqlite.org/c3ref/c_alter_table.html).
_ALLOWED: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


class Users:
    """The database: made in memory, then closed to anything but reading."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the server runs tools in threads of its own
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT, city TEXT, email TEXT, joined TEXT)")
        self._database.executemany("INSERT INTO users VALUES (?, ?, ?, ?, ?)", USERS)
        self._database.commit()
        self._database.execute("PRAGMA query_only = ON")
        self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        self._database.set_authorizer(_allowed)

    def rows(self, sql: str, values: tuple[Any, ...] = (), *, most: int = _MOST_ROWS) -> tuple[list[dict[str, Any]], bool]:
        """Up to ``most`` rows, and whether there are more.

        Raises:
            ToolError: SQLite refused the query, or it took too long.
        """
        with self._lock:
            ends = time.monotonic() + _QUERY_LIMIT
            self._database.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
            try:
                cursor = self._database.execute(sql, values)
                names = [column[0] for column in cursor.description or ()]
                found = cursor.fetchmany(most + 1)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # a null character is a ValueError
                raise ToolError(_explained(error)) from None
        return [dict(zip(names, row, strict=True)) for row in found[:most]], len(found) > most

    def close(self) -> None:
        """Let the memory go."""
        self._database.close()


def _allowed(action: int, _: str | None, second: str | None, *__: str | None) -> int:
    loads = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_OK if action in _ALLOWED and not loads else sqlite3.SQLITE_DENY


def _explained(error: Exception) -> str:
    text = str(error)
    if "not authorized" in text or "prohibited" in text:
        return f"only reading is allowed: {text}; write one SELECT over the table users(id, name, city, email, joined)"
    if "interrupted" in text:
        return f"the query took more than {_QUERY_LIMIT:g} s; ask for less"
    return f"{text}; the only table is users(id, name, city, email, joined)"


def list_entries(root: Path, path: str) -> dict[str, Any]:
    """What is in a directory inside ``root``.

    Raises:
        ToolError: the path leads out of ``root``, or is no directory.
    """
    try:
        place = (root / path).resolve()
        if not place.is_relative_to(root):
            raise ToolError(f"{path!r} is outside the directory that this server shows; give a path inside it, such as '.'")
        found = sorted(place.iterdir(), key=lambda entry: entry.name)
    except (OSError, ValueError):  # not there, a file, not readable, too long; a null character
        raise ToolError(f"{path[:200]!r} is no directory that can be read; list '.' to see what there is") from None
    shown = [_entry(entry) for entry in found[:_MOST_ENTRIES]]
    return {"path": str(place.relative_to(root)), "entries": shown, "more": len(found) > _MOST_ENTRIES}


def _entry(entry: Path) -> dict[str, Any]:
    if entry.is_symlink():
        return {"name": entry.name, "kind": "link"}  # where it leads to may be outside
    if entry.is_dir():
        return {"name": entry.name, "kind": "directory"}
    return {"name": entry.name, "kind": "file", "bytes": entry.stat().st_size}


City = Literal["Berlin", "Lima", "Oslo", "京都"]


def make_server(root: Path, users: Users, *, asks: bool = False) -> MCPServer:
    """The server with its four tools, resources and prompt, not running yet; with ``asks`` also a tool that asks a person back."""
    server: MCPServer = MCPServer("nb_agent lessons", instructions="A database of invented users, and one directory. Read-only.")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    # Plain JSON texts: a structured form beside them would say the same twice.
    tool = server.tool(annotations=reads, structured_output=False)

    @tool
    def find_users(
        city: Annotated[City | None, Field(description="The city they live in: Berlin, Lima, Oslo or 京都.")] = None,
        name: Annotated[str | None, Field(description="A part of the name, in any case, e.g. 'ada'.")] = None,
        limit: Annotated[int, Field(description="The most users to return.", ge=1, le=_MOST_ROWS)] = 20,
    ) -> str:
        """Find users by the city they live in or by a part of their name; all users if neither is given."""
        sql = "SELECT * FROM users WHERE (?1 IS NULL OR city = ?1) AND (?2 IS NULL OR instr(lower(name), lower(?2))) ORDER BY id"
        rows, more = users.rows(sql, (city, name), most=limit)
        return _json({"users": rows, "count": len(rows), "more": more})

    @tool
    def get_user(
        user_id: Annotated[str, Field(description="The id of the user, e.g. 'U-1001'.", pattern=r"^U-\d{4}$", examples=["U-1001"])],
    ) -> str:
        """Get one user by id: name, city, email address and the day they joined."""
        rows, _ = users.rows("SELECT * FROM users WHERE id = ?", (user_id,))
        if not rows:
            raise ToolError(f"no user has the id {user_id!r}; ids run from {USERS[0][0]} to {USERS[-1][0]}")
        return _json(rows[0])

    @tool
    def query(
        sql: Annotated[
            str,
            Field(
                description="One SELECT statement of SQLite, e.g. 'SELECT city, count(*) FROM users GROUP BY city'. "
                "The only table is users(id, name, city, email, joined)."
            ),
        ],
    ) -> str:
        """Run a read-only SQL query over the users database, to count, group or compare what the other tools cannot."""
        rows, more = users.rows(sql)
        return _json({"rows": rows, "count": len(rows), "more": more})

    @tool
    def list_directory(
        path: Annotated[str, Field(description="A directory inside the one this server shows; '.' is that one itself.")] = ".",
    ) -> str:
        """List the files and directories in a directory, with their kinds and sizes in bytes."""
        return _json(list_entries(root, path))

    if asks:
        tool(ask_nickname)
    _add_contents(server, users)
    return server


class Nickname(BaseModel):
    """What the person at the keyboard is asked for."""

    nickname: str = Field(description="What the user likes to be called.", min_length=1, max_length=40)


def _asked_for() -> Elicit[Nickname]:
    return Elicit("Which nickname shall the user have?", Nickname)


def ask_nickname(
    nickname: Annotated[Nickname, Resolve(_asked_for)],
    user_id: Annotated[str, Field(description="The id of the user it is for, e.g. 'U-1001'.", pattern=r"^U-\d{4}$")],
) -> str:
    """Ask the person at the keyboard, not the model, for a nickname of one user; nothing is kept."""
    return _json({"id": user_id, "nickname": nickname.nickname})


def _add_contents(server: MCPServer, users: Users) -> None:
    """What a server can offer beside tools: a resource, a template of resources, a prompt, and completion of its argument."""

    @server.resource("users://schema", mime_type="text/plain", description="The table that the tools read, as SQL.")
    def schema() -> str:
        return "CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT, city TEXT, email TEXT, joined TEXT)"

    @server.resource("users://of/{city}", mime_type="application/json", description="All users of one city.")
    def of_city(city: str) -> str:
        return _json(users.rows("SELECT * FROM users WHERE city = ?", (city,))[0])

    @server.prompt(description="Ask for a welcome letter to the users of one city.")
    def welcome(city: str) -> str:
        return f"Write a short letter that welcomes the users who live in {city}. Look them up first."

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK has no annotations here
    async def completed(ref: Any, argument: CompletionArgument, context: Any) -> Completion:
        del ref, context  # there is one argument, and it is the same wherever it stands
        return Completion(values=[city for city in get_args(City) if city.lower().startswith(argument.value.lower())])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)  # bytes have no JSON form


def main(words: list[str] | None = None) -> None:
    """Serve until the other end closes standard input."""
    parser = argparse.ArgumentParser(prog="python -m nb_agent.mcp.lesson_server", description=__doc__.splitlines()[0])
    parser.add_argument("--dir", default=".", metavar="DIR", help="the directory that is listed (default: where it is started)")
    parser.add_argument("--ask", action="store_true", help="also offer a tool that asks the person back (elicitation)")
    given = parser.parse_args(words)
    root = Path(given.dir).resolve()
    if not root.is_dir():
        parser.error(f"--dir {str(root)!r} is no directory")
    make_server(root, Users(), asks=given.ask).run("stdio")


if __name__ == "__main__":
    main()
