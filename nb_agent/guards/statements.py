"""A statement for somebody else's SQL server: is it one query that only reads? Decided from its parse tree, by `sqlglot`.

What is not known is refused: a statement that the parser cannot read, a function that is not known to be harmless, a way to write a
comment or a string that servers read in two ways. Unlike `sql`, which has SQLite's engine to rely on, this is a second line: give
the connection itself a role that cannot write. The dialect's default settings are taken for granted, and so is that views and
functions with the names of built-in ones do what those do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from nb_agent.errors import SettingError, ToolError
from nb_agent.guards.sql_words import (
    FILE_FORMATS,
    HARMLESS,
    HARMLESS_CAMEL,
    NEVER,
    REACHING,
    TABLE_FUNCTIONS,
    TABLE_HINTS,
    TSQL_STATEMENTS,
)

if TYPE_CHECKING:
    from sqlglot import Token, exp

__all__ = ["check_statement"]

#: Characters of a statement; longer ones are no query that a model writes.
_MOST_LETTERS: Final = 50_000
_TSQL: Final = frozenset({"tsql", "fabric"})
_FILE_READERS: Final = frozenset({"spark", "spark2", "databricks", "hive", "drill"})
_FIRST_WORDS: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "("})

#: What may stand between two words: blanks, and comments that every server ends at the same place and none carries out (``/*!``).
_GAP: Final = re.compile(r"(?:[ \t\r\n]|--[^\r\n]*(?:\r?\n|$)|/\*(?![!+]|M!|T!)(?:(?!/\*|\*/).)*\*/)*", re.DOTALL)
_EXPLAIN: Final = re.compile(r"\A\s*EXPLAIN(?:\s+QUERY\s+PLAN)?\s+", re.IGNORECASE)  # with ANALYZE it would be carried out
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|\r(?!\n)")


def check_statement(text: str, dialect: str, *, functions: Collection[str] = ()) -> None:
    """Refuse a statement unless it is exactly one query that only reads.

    Args:
        text: a SELECT, VALUES, a set operation, WITH around them, or EXPLAIN before them (not EXPLAIN ANALYZE, which runs them).
        dialect: as sqlglot names them: ``postgres``, ``mysql``, ``tsql``, ``snowflake``, ``bigquery``, ``duckdb``, ``sqlite`` …
        functions: names of further functions that are known to only read, with their schema where the statement names it.

    Raises:
        ToolError: ``sql_not_allowed``; the text says what is in the way, in words for a model.
        SettingError: sqlglot is not installed, or knows no such dialect.
    """
    sqlglot = _sqlglot(dialect)
    if len(text) > _MOST_LETTERS or _CONTROL.search(text):
        raise _refused(f"it has more than {_MOST_LETTERS:,} characters, or control characters among them")
    known = frozenset(name.lower() for name in functions)
    known |= {name.rpartition(".")[2] for name in known}
    for node in _tree(text, sqlglot, dialect).walk():
        _check_node(node, dialect, known)


def _tree(text: str, sqlglot: Any, dialect: str) -> exp.Expr:
    query = _EXPLAIN.sub("", text, count=1)
    try:
        tokens = sqlglot.tokenize(query, read=dialect)
        _check_words(query, tokens, dialect)
        trees = [tree for tree in sqlglot.parse(query, read=dialect) if tree is not None]
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001  RecursionError, and the parser's own faults: what it cannot read is refused
        raise _refused(f"it cannot be read as {dialect} ({_line(error)})") from None
    queries = [tree for tree in trees if type(tree).__name__ != "Semicolon"]  # that is a comment at the end
    if len(queries) != 1 or not isinstance(queries[0], (sqlglot.exp.Query, sqlglot.exp.Values)):
        raise _refused("it is not one query")
    tree: exp.Expr = queries[0]
    return tree


def _sqlglot(dialect: str) -> Any:
    try:
        import sqlglot  # noqa: PLC0415  an extra of its own
    except ImportError:
        raise SettingError(
            "statements for other servers are checked with sqlglot, which is not installed; run: pip install 'nb-agent-kit[sql]'"
        ) from None
    known = sorted(name for name in sqlglot.Dialect.classes if name)
    if dialect not in known:
        raise SettingError(f"dialect={dialect!r} is not known; there are {', '.join(known)}")
    return sqlglot


def _refused(why: str) -> ToolError:
    return ToolError(f"the statement was not sent: {why}; write one query that only reads", code="sql_not_allowed")


def _line(error: Exception) -> str:
    return re.sub(r"\x1b\[\d*m", "", str(error)).partition("\n")[0][:200] or type(error).__name__


# ------------------------------------------------------------------------------------------------- words


def _check_words(text: str, tokens: list[Token], dialect: str) -> None:
    if not tokens:
        raise _refused("there is none")
    if tokens[0].text.upper() not in _FIRST_WORDS:
        raise _refused(f"it begins with {tokens[0].text[:40].upper()}")
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    if not all(_GAP.fullmatch(text, end, start) for end, start in zip(ends, starts, strict=True)):
        raise _refused("a comment or a blank in it is read in different ways by servers; use spaces, and leave comments out")
    for number, token in enumerate(tokens):
        _check_token(text[token.start : token.end + 1], token, tokens[number + 1 : number + 2], dialect)


def _check_token(raw: str, token: Token, following: list[Token], dialect: str) -> None:
    if token.token_type.name == "SEMICOLON" and following:
        raise _refused("there is more than one statement")
    if re.search(r"\\['\"`]", raw) and raw != r"'\'":  # ESCAPE '\' is common
        raise _refused(r"a backslash before a quote is read in different ways by servers; double the quote instead ('it''s')")
    if raw.startswith("/*"):
        raise _refused("hints are not allowed")
    if dialect in _TSQL and raw.upper() in TSQL_STATEMENTS:
        raise _refused(f"{raw.upper()} is a statement of its own")
    if following and following[0].text == "(" and REACHING.fullmatch(token.text) and not raw.startswith("'"):
        raise _refused(f"the function {token.text} reaches files, other servers or the session")


# ------------------------------------------------------------------------------------------------- tree


def _check_node(node: exp.Expr, dialect: str, functions: frozenset[str]) -> None:
    kind = type(node).__name__
    if kind in NEVER:
        raise _refused(f"{kind} is not allowed in it")
    if kind in _CHECKS:
        _CHECKS[kind](node, dialect, functions)


def _is_function(node: object) -> bool:
    return any(base.__name__ == "Func" for base in type(node).__mro__)  # sqlglot is not imported here


def _check_select(node: exp.Expr, *_: object) -> None:
    for part in ("settings", "format"):  # of ClickHouse
        if node.args.get(part):
            raise _refused(f"{part.upper()} is not allowed in it")


def _check_cte(node: exp.Expr, *_: object) -> None:
    if type(node.this).__name__ not in {"Select", "Union", "Except", "Intersect", "Values", "Subquery"}:
        raise _refused(f"WITH {node.alias} holds no query")


def _check_assignment(node: exp.Expr, *_: object) -> None:
    if type(node.this).__name__ in {"Parameter", "SessionParameter"}:
        raise _refused("it sets a variable")


def _check_column(node: exp.Expr, *_: object) -> None:
    if node.args.get("table") and node.name.lower() == "nextval":
        raise _refused("NEXTVAL changes a sequence")


def _check_hint(node: exp.Expr, *_: object) -> None:
    for part in node.expressions:
        if part.name.upper() not in TABLE_HINTS:
            raise _refused(f"the table hint {part.name} is not allowed")


def _check_function(node: exp.Expr, _: str, functions: frozenset[str]) -> None:
    if node.name.lower() not in functions | HARMLESS and not HARMLESS_CAMEL.fullmatch(node.name):
        raise _refused(f"the function {node.name} is not known to only read")


def _check_dot(node: exp.Expr, _: str, functions: frozenset[str]) -> None:
    inner = node.args["expression"]
    if _is_function(inner) and type(node.this).__name__ in {"Identifier", "Dot", "Column"}:
        _check_owner(node.this.sql(), inner, functions)


def _check_owner(owner: str, function: exp.Expr, functions: frozenset[str]) -> None:
    """A function of a schema or a package is somebody's own, but for those of the server's catalogue."""
    name = f"{owner}.{function.name}".lower()
    if owner.lower() != "pg_catalog" and name not in functions:
        raise _refused(f"the function {name[:100]} is not known to only read")


def _check_table(node: exp.Expr, dialect: str, functions: frozenset[str]) -> None:
    owner = node.text("db")
    if _is_function(node.this):
        if type(node.this).__name__ not in TABLE_FUNCTIONS:
            raise _refused(f"{type(node.this).__name__} stands where a table is expected")
        if owner:
            _check_owner(owner, node.this, functions)
    elif node.this is not None and not (
        type(node.this).__name__ == "Identifier" or (type(node.this).__name__ == "Dot" and dialect not in _TSQL)
    ):
        raise _refused(f"{type(node.this).__name__} in place of a table may be a file or another server")
    names = [part.name for part in (node.this, node.args.get("db"), node.args.get("catalog")) if part and not _is_function(part)]
    marks = r"[/\\:@]" if dialect == "bigquery" else r"[/\\:@.]"
    if any(re.search(marks, name) for name in names) or (dialect in _FILE_READERS and owner.lower() in FILE_FORMATS):
        raise _refused(f"{'.'.join(reversed(names))[:100]} may be a file or another server, not a table")


#: Kind of node -> what is looked at there.
_CHECKS: Final[dict[str, Callable[..., None]]] = {
    "Select": _check_select,
    "Union": _check_select,
    "Except": _check_select,
    "Intersect": _check_select,
    "CTE": _check_cte,
    "PropertyEQ": _check_assignment,
    "Column": _check_column,
    "WithTableHint": _check_hint,
    "Anonymous": _check_function,
    "Dot": _check_dot,
    "Table": _check_table,
}
