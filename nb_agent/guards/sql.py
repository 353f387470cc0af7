"""Reading a SQLite file and nothing else, seen to by SQLite itself: no pattern is looked for in the statement.

Four things each keep a statement from writing: the file is opened read-only, ``query_only`` is set, an authorizer lets only reading
through, and functions that reach files are refused. Limits of time, rows and lengths end what would run away. `statements` checks
what goes to somebody else's server, where no such engine is at hand.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nb_agent.errors import SettingError, ToolError
from nb_agent.guards.statements import check_statement

__all__ = ["ReadOnlyDatabase", "Rows", "check_statement"]

#: Seconds that one statement may take, and rows that it gives at most, where nobody says otherwise.
MOST_SECONDS: Final = 5.0
MOST_ROWS: Final = 200
#: Steps of SQLite's machine between two looks at the clock; one step may build a value of _MOST_BYTES.
_STEPS: Final = 500
_MOST_BYTES: Final = 1_000_000
#: https://sqlite.org/limits.html; what a person writes stays far below.
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: _MOST_BYTES,  # bytes of one value or row, and of the statement
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
#: All that a statement may do (https://sqlite.org/c3ref/c_alter_table.html).
_ACTIONS: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
#: Functions that reach files, code or logs. The first three are part of many builds, the others of extensions and of the shell.
_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer", "sqlite_log", "readfile", "writefile", "edit", "fsdir", "eval"})
#: Pragmas that only tell, with whether they take the name of a table or an index. ``database_list`` would tell where the file is.
_PRAGMAS: Final = {
    **dict.fromkeys(("table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list"), True),
    **dict.fromkeys(("table_list", "data_version", "page_size"), False),  # full-text tables ask for the last two
}
#: Virtual tables that are always there, and views and virtual tables of a file that are looked at.
_BUILT_IN: Final = ("json_each", "json_tree", *(f"pragma_{name}" for name in _PRAGMAS))
_MOST_WOKEN: Final = 200
#: What SQLite calls a failure -> our code, and what the model is told.
_FAILURES: Final = {
    "SQLITE_AUTH": ("sql_not_allowed", "only reading is allowed here ({text}); write one SELECT"),
    "SQLITE_READONLY": ("sql_not_allowed", "only reading is allowed here ({text}); write one SELECT"),
    "SQLITE_TOOBIG": ("sql_failed", f"a value would be longer than {_MOST_BYTES:,} bytes; leave it out, or make it shorter"),
    "SQLITE_INTERRUPT": ("sql_timeout", "the statement took more than {seconds:g} s and was stopped; ask for less"),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement gives.

    Attributes:
        columns: their names, in order.
        rows: the values, as SQLite gives them: ``None``, int, float, str or bytes.
        more: whether there are further rows, which were not read.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False


class ReadOnlyDatabase:
    """A SQLite file that can be read and not changed. Each statement opens it anew, so any thread may ask.

    Args:
        path: the file; it has to exist.
        seconds: that one statement may take. A step that builds a long value may pass it by a little.
        rows: that one statement gives at most; further ones are not read.

    Raises:
        SettingError: there is no such file, or it is no SQLite database.
    """

    def __init__(self, path: str | os.PathLike[str], *, seconds: float = MOST_SECONDS, rows: int = MOST_ROWS) -> None:
        self.path = _file(path)
        self.seconds = seconds
        self.most = rows
        try:
            self.query("SELECT count(*) FROM sqlite_master")
        except ToolError as error:
            raise SettingError(f"{os.fspath(path)!r} cannot be read as a SQLite database: {error}") from None

    def query(self, sql: str, values: tuple[Any, ...] = (), *, most: int | None = None) -> Rows:
        """The rows of one statement.

        Args:
            sql: one statement that only reads: SELECT, VALUES, WITH around them, EXPLAIN, or a pragma that tells of a table.
            values: for the question marks in it.
            most: rows at most, where not those of the database.

        Raises:
            ToolError: ``sql_not_allowed`` where it does anything but read, ``sql_timeout`` where it takes too long, else
                ``sql_failed`` with SQLite's own words.
            KeyboardInterrupt: the person interrupts.
        """
        most = self.most if most is None else most
        ends = time.monotonic() + self.seconds
        try:
            with _opened(self.path, sql, self.seconds) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
                cursor = connection.execute(sql, values)
                columns = tuple(column[0] for column in cursor.description or ())
                found = cursor.fetchmany(most + 1)
        except (sqlite3.Error, sqlite3.Warning, OSError, ValueError, OverflowError) as error:  # a null
            if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT" and time.monotonic() <= ends:
                raise KeyboardInterrupt from None  # only a signal ends it before its time; sqlite3 swallows what a handler raises
            raise _failure(error, self.seconds) from None
        if not columns:
            raise ToolError("there is no statement that gives rows; write one SELECT", code="sql_not_allowed")
        return Rows(columns, tuple(found[:most]), len(found) > most)


def _file(path: str | os.PathLike[str]) -> Path:
    try:
        place = Path(path).resolve()
        if place.is_file():
            return place
    except (OSError, ValueError, RuntimeError):  # too long, a null byte, links in a circle
        pass
    raise SettingError(f"there is no file {os.fspath(path)!r}; make the database first, or name another file")


@contextmanager
def _opened(path: Path, sql: str, seconds: float) -> Iterator[sqlite3.Connection]:
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if _is_still(path) else ''}"  # as_uri writes ?, # and % as %3F, %23, %25
    with closing(sqlite3.connect(uri, uri=True, timeout=seconds, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")  # a view in the file calls no function that reaches out
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        connection.text_factory = lambda content: content.decode("utf-8", "replace")  # a file may hold anything
        _wake(connection, sql)
        connection.set_authorizer(_authorize)
        yield connection


def _is_still(path: Path) -> bool:
    """Whether it is a file in WAL mode that nobody has open: reading would leave files beside it, unless it is called immutable."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\x02\x02" and not path.with_name(f"{path.name}-wal").exists()  # fileformat2.html, 1.3


def _wake(connection: sqlite3.Connection, sql: str) -> None:
    """Let virtual tables set themselves up before the authorizer is there: it cannot tell their own statements from the model's."""
    found = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type = 'view' OR sql LIKE 'create virtual table%'")
    text, names = sql.lower(), []
    for kind, name, written in found.fetchmany(_MOST_WOKEN):
        text += written.lower() if kind == "view" else ""
        names += [] if kind == "view" else [name]
    for name in [*names, *(name for name in _BUILT_IN if name in text)]:
        with suppress(sqlite3.Error):  # its module is not part of this build
            connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 0")  # noqa: S608  a quoted name


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"{}"'.format(name.replace('"', '""'))


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        allowed = (second or "").lower() not in _FUNCTIONS
    elif action == sqlite3.SQLITE_PRAGMA:
        takes = _PRAGMAS.get((first or "").lower())
        allowed = takes is not None and (takes or second is None)
    else:
        allowed = action in _ACTIONS
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _failure(error: Exception, seconds: float) -> ToolError:
    text, name = str(error), getattr(error, "sqlite_errorname", None) or ""
    if "not authorized" in text or "prohibited" in text:  # where a function is refused, the name is just SQLITE_ERROR
        name = "SQLITE_AUTH"
    if "one statement at a time" in text:
        return ToolError("more than one statement; send one SELECT at a time", code="sql_not_allowed")
    code, words = _FAILURES.get(name.partition("_CANT")[0], ("sql_failed", "{text}"))
    return ToolError(words.format(text=text, seconds=seconds), code=code)
