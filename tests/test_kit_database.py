"""The two tools of a SQLite file."""

import sqlite3
import threading
from contextlib import closing

import pytest

from nb_agent import Agent
from nb_agent.errors import SettingError, ToolError
from nb_agent.kit.database import MOST_LETTERS, database_tools
from nb_agent.kit.shop import Shop
from nb_agent.tools.results import to_parts


@pytest.fixture
def shop_file(tmp_path):
    return Shop().save(tmp_path / "shop.db")


def made(place, script):
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(script)
    return place


def test_tables_are_listed_with_their_columns_and_rows(shop_file):
    list_tables, _ = database_tools(shop_file)
    tables = {entry["table"]: entry for entry in list_tables()["tables"]}
    assert tables["products"] == {
        "table": "products",
        "kind": "table",
        "columns": {"sku": "TEXT", "name": "TEXT", "price_cents": "INTEGER"},
        "rows": 4,
    }
    assert {name: entry["rows"] for name, entry in tables.items()} == {"customers": 5, "orders": 6, "products": 4, "stock": 12}


def test_views_odd_names_and_full_text_tables_are_listed_and_a_broken_view_is_said(tmp_path):
    script = """
        create table "a ""b"" ;"(x);
        create table gone(x); create view broken as select * from gone; drop table gone;
        create view good as select 1 as one;
        create virtual table notes using fts5(text);
        create table wide(c0);
    """ + "".join(f"alter table wide add column c{number};" for number in range(1, 150))
    list_tables, _ = database_tools(made(tmp_path / "x.db", script))
    told = {entry["table"]: entry for entry in list_tables()["tables"]}
    assert {name: entry.get("rows") for name, entry in told.items()} == {
        'a "b" ;': 0,
        "broken": None,
        "good": 1,
        "notes": 0,
        "wide": 0,
    }
    assert told["broken"] == {"table": "broken", "kind": "view", "error": "no such table: main.gone"}
    assert told["notes"]["columns"] == {"text": ""}
    assert told["wide"]["note"] == "only the first 100 columns are listed"


def test_of_many_tables_the_first_are_listed(tmp_path):
    list_tables, _ = database_tools(made(tmp_path / "x.db", "".join(f"create table t{number}(a);" for number in range(101))))
    found = list_tables()
    assert (len(found["tables"]), found["note"]) == (100, "only the first 100 tables are listed")


def test_a_table_that_takes_long_to_count_has_no_number(tmp_path):
    endless = "create view v as with recursive k(i) as (select 1 union all select i + 1 from k) select i from k; create table w(a);"
    list_tables, _ = database_tools(made(tmp_path / "x.db", endless), seconds=0.1)
    assert [sorted(entry) for entry in list_tables()["tables"]] == [["columns", "kind", "table"]] * 2


def test_a_query_gives_columns_and_rows(shop_file):
    _, query_database = database_tools(shop_file)
    sql = "SELECT city, count(*) AS n FROM customers WHERE city <> '京都' GROUP BY city ORDER BY n DESC, city"
    assert query_database(sql) == {"columns": ["city", "n"], "rows": [["Berlin", 2], ["Lima", 1], ["Oslo", 1]], "count": 3}


def test_amounts_are_exact(shop_file):
    _, query_database = database_tools(shop_file)
    assert query_database("SELECT sum(total_cents) FROM orders")["rows"] == [[130_620]]


def test_a_cut_result_says_how_to_page_on(shop_file):
    _, query_database = database_tools(shop_file, rows=2)
    found = query_database("SELECT id FROM orders ORDER BY id")
    assert found["rows"] == [["O-2001"], ["O-2002"]]
    assert found["note"] == (
        "cut: these are only the first 2 rows; for the next ones sort with ORDER BY and end the statement with LIMIT 2 OFFSET 2, "
        "or ask for fewer columns"
    )
    assert query_database("SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 4")["rows"] == [["O-2005"], ["O-2006"]]
    assert "note" not in query_database("SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 4")


@pytest.mark.parametrize("expression", ["hex(zeroblob(400))", "i", "zeroblob(9)", "hex(zeroblob(90000))"])
def test_a_result_fits_whatever_is_in_it(shop_file, expression):
    _, query_database = database_tools(shop_file)
    endless = f"WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k) SELECT {', '.join([expression] * 30)} FROM k"
    found = query_database(endless)
    assert 1 <= found["count"] == len(found["rows"])
    assert found["note"].startswith("cut: ")
    assert found["count"] == 1 or to_parts(found).whole is None, "the general limit for results is not reached"


def test_long_texts_and_bytes_are_told_and_not_shown(shop_file):
    _, query_database = database_tools(shop_file)
    ((text, content),) = query_database("SELECT hex(zeroblob(5000)), zeroblob(1234)")["rows"]
    assert text == "0" * MOST_LETTERS + "… (cut: 10,000 characters in all; substr gives another part)"
    assert content == "(1,234 bytes)"


def test_writing_and_running_on_are_refused(shop_file):
    _, query_database = database_tools(shop_file, seconds=0.1)
    before = shop_file.read_bytes()
    for sql, code in [
        ("DELETE FROM orders", "sql_not_allowed"),
        ("WITH a AS (SELECT 1) UPDATE orders SET status = 'open'", "sql_not_allowed"),
        ("WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k) SELECT max(i) FROM k", "sql_timeout"),
        ("SELECT nothing FROM orders", "sql_failed"),
    ]:
        with pytest.raises(ToolError) as refused:
            query_database(sql)
        assert refused.value.code == code
    assert shop_file.read_bytes() == before


def test_the_tools_work_in_any_thread(shop_file):
    found = []
    for made_tool, arguments in zip(database_tools(shop_file), ([], ["SELECT 1"]), strict=True):
        thread = threading.Thread(target=lambda made_tool=made_tool, arguments=arguments: found.append(made_tool(*arguments)))
        thread.start()
        thread.join(10)
    assert [sorted(entry) for entry in found] == [["tables"], ["columns", "count", "rows"]]


def test_the_file_has_to_be_there(tmp_path):
    with pytest.raises(SettingError, match=r"there is no file '.*none\.db'; make the database first"):
        database_tools(tmp_path / "none.db")


def test_the_definitions_say_how_to_use_them(shop_file):
    list_tables, query_database = database_tools(shop_file)
    assert (list_tables.tier, query_database.tier) == ("read", "read")
    assert "e.g. SELECT" in query_database.schema["parameters"]["properties"]["sql"]["description"]


def test_the_mock_model_asks_the_database(shop_file):
    run = Agent(tools=database_tools(shop_file)).run("Run the query SELECT count(*) FROM customers", view=False)
    (result,) = run.tool_results
    assert not result.failed
    assert '"rows": [[5]]' in result.text
