"""Two tools for one SQLite file: what is in it, and a query over it. They only read; `guards.sql` sees to that.

Unlike the server of `mcp.lesson_server` they run in this process, on a file that the person names.
"""

from __future__ import annotations

import os
from typing import Any, Final

from nb_agent.errors import ToolError
from nb_agent.guards.sql import MOST_ROWS, MOST_SECONDS, ReadOnlyDatabase, quoted
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["Database", "database_tools"]

#: Characters of one value, and of all values of one result, that a model gets. More would be cut where a row is not whole.
MOST_LETTERS: Final = 2_000
MOST_TOGETHER: Final = 8_000
#: Tables that are listed, and columns of each.
MOST_TABLES: Final = 100
MOST_COLUMNS: Final = 100

#: Tables and views; what full-text and other virtual tables keep for themselves is left out.
_TABLES: Final = r"""
    SELECT name, type FROM pragma_table_list
    WHERE schema = 'main' AND type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name
"""
_COLUMNS: Final = "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid"  # 1: hidden, of a virtual table


def database_tools(path: str | os.PathLike[str], *, seconds: float = MOST_SECONDS, rows: int = MOST_ROWS) -> list[Tool]:
    """The tools ``list_tables`` and ``query_database`` for a SQLite file, in this order.

    Args:
        path: the file; it has to exist.
        seconds: that one statement may take.
        rows: that one result holds at most.

    Raises:
        SettingError: there is no such file, or it is no SQLite database.
    """
    database = Database(path, seconds=seconds, rows=rows)
    return [database.list_tables, database.query_database]


class Database:
    """A SQLite file whose tools may be called from any thread. Its arguments are those of `database_tools`."""

    def __init__(self, path: str | os.PathLike[str], *, seconds: float = MOST_SECONDS, rows: int = MOST_ROWS) -> None:
        self._file = ReadOnlyDatabase(path, seconds=seconds, rows=rows)

    def __repr__(self) -> str:
        return f"Database({self._file.path.name!r})"

    @tool(tier="read")
    def list_tables(self) -> JSON:
        """List the tables of the database, each with its columns and how many rows it has. Call it before you write a query."""
        found = self._file.query(_TABLES, most=MOST_TABLES)
        tables: list[JSON] = [self._told(name, kind) for name, kind in found.rows]
        self._count(tables)
        return {"tables": tables, **({"note": f"only the first {MOST_TABLES} tables are listed"} if found.more else {})}

    @tool(tier="read")
    def query_database(self, sql: str) -> JSON:
        """Run one read-only SQL query over the SQLite database and return its rows, to look up, count, sum, group or join.

        Args:
            sql: one SELECT statement in SQLite's dialect, e.g. SELECT city, count(*) FROM customers GROUP BY city
        """
        found = self._file.query(sql)
        rows = _fitting([[_short(value) for value in row] for row in found.rows])
        answer: JSON = {"columns": list(found.columns), "rows": rows, "count": len(rows)}
        if found.more or len(rows) < len(found.rows):
            answer["note"] = (
                f"cut: these are only the first {len(rows)} rows; for the next ones sort with ORDER BY and end the statement with "
                f"LIMIT {len(rows)} OFFSET {len(rows)}, or ask for fewer columns"
            )
        return answer

    def _told(self, name: str, kind: str) -> JSON:
        try:
            columns = self._file.query(_COLUMNS, (name,), most=MOST_COLUMNS)
        except ToolError as error:  # a view on a table that is gone
            return {"table": name, "kind": kind, "error": str(error)}
        more = {"note": f"only the first {MOST_COLUMNS} columns are listed"} if columns.more else {}
        return {"table": name, "kind": kind, "columns": dict(columns.rows), **more}

    def _count(self, tables: list[JSON]) -> None:
        """Add how many rows each has; from the first on that takes too long they are left out."""
        for entry in tables:
            try:
                counted = self._file.query(f"SELECT count(*) FROM {quoted(entry['table'])}")  # noqa: S608  a quoted name
            except ToolError as error:
                if error.code == "sql_timeout":
                    return
            else:
                entry["rows"] = counted.rows[0][0]


def _fitting(rows: list[list[Any]]) -> list[list[Any]]:
    """As many whole rows as fit into one result, at least one."""
    left = MOST_TOGETHER
    for number, row in enumerate(rows):
        left -= sum(len(str(value)) + 4 for value in row)  # 4: quotes, a comma, a blank
        if left < 0:
            return rows[: max(1, number)]
    return rows


def _short(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, str) and len(value) > MOST_LETTERS:
        return f"{value[:MOST_LETTERS]}… (cut: {len(value):,} characters in all; substr gives another part)"
    return value
