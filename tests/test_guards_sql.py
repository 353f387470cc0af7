"""SQL that claims to read only reads: SQLite's own fence, and the check of statements for somebody else's server."""

import hashlib
import random
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing

import pytest

from nb_agent.errors import SettingError, ToolError
from nb_agent.guards.sql import ReadOnlyDatabase, check_statement, quoted

SETUP = """
    create table birds(id integer primary key, name text);
    insert into birds values (1,'wren'),(2,'tit'),(3,'owl');
    create table eggs(bird integer references birds, laid text, n integer);
    insert into eggs values (1,'2025-04-01',4),(1,'2025-05-02',5),(3,'2025-04-20',2);
    create index eggs_by_bird on eggs(bird);
    create view many as select name, sum(n) as n from birds join eggs on bird = id group by name;
    create trigger gone after delete on birds begin delete from eggs where bird = old.id; end;
    create virtual table notes using fts5(text);
    insert into notes values ('an owl at night');
    create virtual table places using rtree(id, x0, x1);
    insert into places values (1, 2, 3);
"""


def made(place, script=SETUP):
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(script)
    return place


@pytest.fixture
def birds(tmp_path):
    return made(tmp_path / "birds.db")


def code_of(attempt, *arguments):
    """What an attempt ends in: "accept", or the code of its refusal."""
    try:
        attempt(*arguments)
    except ToolError as error:
        return error.code
    return "accept"


def fingerprint(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*"))}


# ------------------------------------------------------------------------------------------------- SQLite's own fence


def test_the_case_is_decided_by_the_engine_and_nothing_changes(cases, tmp_path):
    given, expect = cases["H03"]["given"], cases["H03"]["expect"]
    database = ReadOnlyDatabase(made(tmp_path / "case.db", given["setup"]))
    for statement, decision in zip(given["statements"], expect["decisions"], strict=True):
        assert (code_of(database.query, statement) == "accept") is (decision == "accept"), statement
        assert database.query("select name from birds").rows == (("wren",), ("tit",), ("owl",))


def test_the_case_is_decided_by_the_parser_just_so(cases):
    given, expect = cases["H03"]["given"], cases["H03"]["expect"]
    decided = [code_of(check_statement, statement, given["dialect"]) for statement in given["statements"]]
    assert decided == ["accept" if decision == "accept" else "sql_not_allowed" for decision in expect["decisions"]]


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("select name from birds order by 1", (("owl",), ("tit",), ("wren",))),
        ("select * from many", (("owl", 2), ("wren", 9))),
        ("pragma table_info(birds)", ((0, "id", "INTEGER", 0, None, 1), (1, "name", "TEXT", 0, None, 0))),
        ("select highlight(notes, 0, '<', '>') from notes where notes match 'owl'", (("an <owl> at night",),)),
        ("select id from places where x0 < 3", ((1,),)),
        ("select value from json_each('[7]')", ((7,),)),
        ("select upper(name), 'drop table birds; --' from birds where id = 1;", (("WREN", "drop table birds; --"),)),
        ("select cast(x'ff41' as text)", (("\ufffdA",),)),
    ],
)
def test_what_only_reads_is_answered(birds, statement, rows):
    assert ReadOnlyDatabase(birds).query(statement).rows == rows


NOT_ALLOWED = [
    "delete from birds",
    "delete from birds returning *",
    "replace into birds values (1, 'x')",
    "create table x(a)",
    "create temp table x(a)",
    "alter table birds rename to b",
    "drop view many",
    "begin",
    "commit",
    "savepoint s",
    "vacuum",
    "vacuum into 'copy.db'",
    "reindex",
    "analyze",
    "attach 'other.db' as other",
    "attach ':memory:' as other",
    "detach main",
    "pragma user_version = 3",
    "pragma page_size = 1024",
    "pragma query_only = off",
    "pragma writable_schema = on",
    "pragma journal_mode = wal",
    "pragma database_list",
    "select * from pragma_database_list",
    "select load_extension('x')",
    "select LOAD_EXTENSION('x')",
    "select \"load_extension\"('x')",
    "select fts3_tokenizer('simple')",
    "insert into notes(notes) values ('optimize')",
    "explain delete from birds",
    "select 1; select 2",
    "select 1; delete from birds",
    "",
    "-- nothing",
    ";",
]


@pytest.mark.parametrize("statement", NOT_ALLOWED)
def test_everything_else_is_refused_by_the_engine(birds, statement):
    before = fingerprint(birds.parent)
    assert code_of(ReadOnlyDatabase(birds).query, statement) == "sql_not_allowed"
    assert fingerprint(birds.parent) == before


@pytest.mark.parametrize("statement", ["select", "select a from nowhere", "select '\0'", "select '\ud800'", "select ?", "selec 1"])
def test_a_mistake_in_a_statement_is_told_in_the_engines_words(birds, statement):
    assert code_of(ReadOnlyDatabase(birds).query, statement) == "sql_failed"


def test_the_words_of_a_refusal_name_the_next_step(birds):
    database = ReadOnlyDatabase(birds)
    for statement, text in [
        ("delete from birds", "only reading is allowed here (not authorized); write one SELECT"),
        ("select 1; select 2", "more than one statement; send one SELECT at a time"),
        ("select x from birds", "no such column: x"),
        ("select randomblob(1e9)", "a value would be longer than 1,000,000 bytes; leave it out, or make it shorter"),
    ]:
        with pytest.raises(ToolError) as refused:
            database.query(statement)
        assert str(refused.value) == text


ENDLESS = "with recursive k(i) as (select 1 union all select i + 1 from k) "


def test_a_query_without_end_is_stopped_in_time(birds):
    database = ReadOnlyDatabase(birds, seconds=0.2)
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"^the statement took more than 0\.2 s and was stopped; ask for less$") as stopped:
        database.query(f"{ENDLESS} select count(*) from k")
    assert stopped.value.code == "sql_timeout"
    assert time.monotonic() - began < 2


def test_rows_without_end_are_cut(birds):
    found = ReadOnlyDatabase(birds, rows=3).query(f"{ENDLESS} select i, i * i as square from k")
    assert (found.columns, found.rows, found.more) == (("i", "square"), ((1, 1), (2, 4), (3, 9)), True)
    assert ReadOnlyDatabase(birds, rows=3).query("select id from birds").more is False


@pytest.mark.parametrize(
    "statement",
    [
        "select " + "(" * 500 + "1" + ")" * 500,
        "select 1 " + "union all select 1 " * 100,
        "select '" + "x" * 200_000 + "'",
        "select hex(zeroblob(900000))",
        "select name from birds where name like '" + "%a" * 2000 + "'",
    ],
    ids=["deep", "wide", "long", "grown", "pattern"],
)
def test_what_would_fill_the_memory_is_refused(birds, statement):
    assert code_of(ReadOnlyDatabase(birds).query, statement) == "sql_failed"


@pytest.mark.parametrize("name", ["a?b.db", "a#b.db", "a%20b.db", "a b&mode=rwc.db", "日本 🙂.db", "a%.db", "it's.db", "-wal"])
def test_odd_characters_in_a_path_are_part_of_its_name(tmp_path, name):
    place = made(tmp_path / "odd ?dir#1" / name if name != "-wal" and not (tmp_path / "odd ?dir#1").mkdir() else tmp_path / name)
    before = fingerprint(tmp_path) if name == "-wal" else fingerprint(place.parent)
    database = ReadOnlyDatabase(place)
    assert database.query("select count(*) from birds").rows == ((3,),)
    assert code_of(database.query, "delete from birds") == "sql_not_allowed"
    assert fingerprint(place.parent) == before


def test_a_file_in_wal_mode_is_read_without_leaving_anything(birds):
    with closing(sqlite3.connect(birds)) as connection:
        connection.execute("pragma journal_mode = wal")
    before = fingerprint(birds.parent)
    assert ReadOnlyDatabase(birds).query("select count(*) from birds").rows == ((3,),)
    assert fingerprint(birds.parent) == before == {"birds.db": before["birds.db"]}


def test_what_another_connection_writes_is_seen(birds):
    with closing(sqlite3.connect(birds)) as writer:
        writer.execute("pragma journal_mode = wal")
        database = ReadOnlyDatabase(birds)
        writer.execute("insert into birds values (4, 'kite')")
        writer.commit()
        assert database.query("select count(*) from birds").rows == ((4,),)


def test_any_thread_may_ask(birds):
    database, found = ReadOnlyDatabase(birds), []
    threads = [threading.Thread(target=lambda: found.append(database.query("select count(*) from eggs").rows)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [((3,),)] * 4


@pytest.mark.parametrize("content", [None, b"no database, but text enough for a header", "folder"])
def test_what_is_no_database_is_said_at_once(tmp_path, content):
    place = tmp_path / "x.db"
    if content == "folder":
        place.mkdir()
    elif content:
        place.write_bytes(content * 10)
    with pytest.raises(SettingError, match=r"x\.db"):
        ReadOnlyDatabase(place)
    with pytest.raises(SettingError, match="there is no file"):
        ReadOnlyDatabase(f"{place}\0")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the timer that stands for the person is POSIX")
def test_an_interrupt_is_no_time_limit(birds):
    database = ReadOnlyDatabase(birds, seconds=20)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            database.query(f"{ENDLESS} select count(*) from k")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_name_is_quoted_whatever_is_in_it(tmp_path):
    name = 'a"; drop table "birds'
    database = ReadOnlyDatabase(
        made(tmp_path / "x.db", f"{SETUP} create table {quoted(name)}(a); insert into {quoted(name)} values (5)")
    )
    assert database.query(f"select * from {quoted(name)}").rows == ((5,),)


# ------------------------------------------------------------------------------------------------- statements for other servers

READS = {
    "postgres": [
        "explain select 1",
        "table t",
        "select jsonb_build_object('a', 1), to_tsvector('x'), pg_catalog.lower('A')",
        "select * from generate_series(1, 3) as g, unnest(array[1, 2]) as u",
        r"select a from t where a like '10\%' escape '\'",
        "/* all of them */ select 1 -- really\n;",
        "(select 1) union all (select 2) order by 1",
        "select a from s.t where a ~ '^x' and b @> '{}'::jsonb",
        "select count(*) filter (where x) over (partition by y) from t",
        "select distinct on (a) a, 'drop table x' as \"update\" from t order by a limit 3 offset 2",
        "select 'it''s -- no comment /* */ ; delete from t'",
        "select 名 from 表 where 名 = '删除'",
        'select $$it\'s$$, "load_file" from t',
    ],
    "mysql": ["select date_format(now(), '%Y'), group_concat(a separator ',') from `t` limit 5, 10", "select `load_file` from t"],
    "tsql": [
        "select top 3 [a], datepart(year, d) from dbo.t with (nolock)",
        "select a from t order by 1 offset 0 rows fetch next 3 rows only",
        "select string_agg(a, ',') as [shutdown] from t for json auto",
        "select * from openjson('[1]')",
    ],
    "snowflake": [
        "select iff(a, 1, 2) from db.s.t qualify row_number() over (order by a) = 1",
        "select f.value from t, lateral flatten(input => t.j) f",
        "select * from table(flatten(input => parse_json('[1]')))",
    ],
    "bigquery": [
        "select array_agg(struct(a, b)), format_date('%Y', d) from `p-1.d.events_*`, unnest(x) as y where safe_divide(1, 2) > 0",
        "select * from p.`region-us`.INFORMATION_SCHEMA.TABLES",
    ],
    "duckdb": ["from t select a", "select list_transform([1], x -> x + 1), {'a': 1}", "select * from range(3)"],
    "clickhouse": ["select toStartOfMonth(d), uniqExact(x), countIf(y) from t final group by 1"],
    "spark": ["select x from t lateral view explode(b) e as x"],
    "oracle": ["select sysdate from dual where rownum < 3"],
    "sqlite": ["select strftime('%Y', d), printf('%d', 1) from t", "select value from json_each('[1]')", "values (1), (2)"],
    "trino": ["select approx_distinct(a), date_trunc('day', d) from c.s.t"],
}
REFUSED = {
    "postgres": [
        "select 1 into x",
        "select pg_read_file('/etc/passwd')",
        "select pg_catalog.pg_read_file('/etc/passwd')",
        "select \"pg_read_file\"('/etc/passwd')",
        "select U&\"pg\\005fread_file\"('/etc/passwd')",
        "select pg_read_file /* here */ ('/etc/passwd')",
        "select * from rows from (pg_ls_dir('/'))",
        "select (pg_ls_dir('/')).x",
        "select case when true then pg_read_file('/x') end",
        "select a from t order by pg_sleep(1)",
        "select a from t where a in (select pg_ls_dir('/'))",
        "values (pg_read_file('/x'))",
        "with d as (delete from t returning *) select * from d",
        "select * from (with d as (update t set a = 1 returning *) select * from d) x",
        "select * from t for update",
        "select * from t for no key update skip locked",
        "select lo_import('/x')",
        "select lo_export(1, '/x')",
        "select * from dblink('x', 'y') as t(a int)",
        "select query_to_xml('delete from t', true, true, '')",
        "select nextval('s')",
        "select set_config('a', 'b', false)",
        "select pg_terminate_backend(1)",
        "select pg_advisory_lock(1)",
        "select my_function()",
        "select s.lower('x')",
        "select 1 operator(s.+) 2",
        "copy t to program 'sh'",
        "explain analyze select 1",
        "explain (analyze) select 1",
        "explain delete from t",
        "set role x",
        "do $$ begin end $$",
        "prepare x as select 1",
        "select 1; select 2",
        "select -- x\r; drop table t",
        "select 1\u00a0from t",
        "select 1\u2028from t",
        "select 1\0",
        r"select E'a\'; drop table t; --'",
        "",
        "-- select 1",
        ";",
        "select from where",
        "select " + "(" * 5_000 + "1" + ")" * 5_000,
        "select '" + "x" * 60_000 + "'",
    ],
    "mysql": [
        "select 1 /*!50000 into outfile '/tmp/x' */",
        "select /*M!100000 sleep(3) */ 1",
        "/*!50000 drop table t */",
        "select /*+ set_var(a = 1) */ 1",
        "select * from t into outfile '/tmp/x'",
        "select * from t into dumpfile '/tmp/x'",
        "select 1 into @x",
        "select @a := 1",
        "select load_file('/etc/passwd')",
        "select LOAD_FILE ('/etc/passwd')",
        "select `load_file`('/etc/passwd')",
        "select sys.load_file('/etc/passwd')",
        "select sleep(3)",
        "select get_lock('a', 1)",
        "select sys_exec('x')",
        "select * from t lock in share mode",
        "call p()",
        "handler t open",
        "show tables",
        r"select 'a\'; drop table t; -- '",
    ],
    "tsql": [
        "exec xp_cmdshell 'dir'",
        "select * from t exec ('drop table t')",
        "select * from t shutdown",
        "select 1 a checkpoint",
        "select 1\ngo\ndrop table t",
        "select * into y from t",
        "select * from server.db.dbo.t",
        "select * from openrowset('a', 'b', 'c')",
        "select * from openquery(x, 'delete')",
        "select * from sys.fn_xe_file_target_read_file('x', null, null, null)",
        "select * from t with (updlock, tablockx)",
        "select next value for s",
        "select dbo.f()",
        "with a as (select 1 x) delete from a",
    ],
    "snowflake": [
        "select * from @stage/file",
        "select system$cancel_query('x')",
        "select s.nextval",
        "select * from identifier('x')",
    ],
    "bigquery": [
        "select * from external_query('c', 'select 1')",
        "select * from ml.predict(model m, (select 1))",
        "create temp function f() as (1); select f()",
        "export data options(uri='x') as select 1",
    ],
    "duckdb": [
        "from '/etc/passwd'",
        "select * from 'a.csv'",
        'select * from "a.csv"',
        "from read_csv('/etc/passwd')",
        "from read_text('/etc/passwd')",
        "from parquet_scan('x')",
        "select * from glob('/*')",
        "select getenv('HOME')",
        "from query('delete from t')",
    ],
    "clickhouse": ["select * from url('http://x')", "select 1 settings max_threads = 1", "select * from remote('h', d.t)"],
    "spark": ["select transform(a) using 'sh' from t", "select * from csv.`x`", "select reflect('java.lang.System', 'exit', 0)"],
    "hive": ["from t insert overwrite table x select *"],
    "oracle": ["select * from t@link", "select utl_http.request('x') from dual", "explain plan for select 1 from dual"],
    "sqlite": [
        "/* /* */ delete from t; -- */ */ select 1",
        "select writefile('a', 'b')",
        "pragma user_version = 3",
        "vacuum into 'x'",
        "select 1 /* not closed",
    ],
    "trino": ["select * from table(system.query(query => 'delete'))"],
}


@pytest.mark.parametrize(("dialect", "statement"), [(key, text) for key, texts in READS.items() for text in texts])
def test_a_query_for_another_server_is_accepted(dialect, statement):
    assert check_statement(statement, dialect) is None


@pytest.mark.parametrize(("dialect", "statement"), [(key, text) for key, texts in REFUSED.items() for text in texts])
def test_what_may_do_more_than_read_is_not_sent(dialect, statement, caplog):
    assert code_of(check_statement, statement, dialect) == "sql_not_allowed"
    assert caplog.text == ""


def test_a_function_that_the_person_knows_may_be_called():
    for statement, name in [("select tax(a) from t", "Tax"), ("select shop.tax(a) from t", "shop.tax")]:
        assert code_of(check_statement, statement, "postgres") == "sql_not_allowed"
        assert check_statement(statement, "postgres", functions=[name]) is None


def test_a_refusal_says_why():
    for statement, text in [
        ("delete from t", "it begins with DELETE"),
        ("select pg_read_file('/x')", "the function pg_read_file reaches files, other servers or the session"),
        ("select archive()", "the function archive is not known to only read"),
        ("select 1; drop table t", "there is more than one statement"),
    ]:
        with pytest.raises(ToolError) as refused:
            check_statement(statement, "postgres")
        assert str(refused.value) == f"the statement was not sent: {text}; write one query that only reads"


def test_an_unknown_dialect_and_a_missing_parser_are_said(monkeypatch):
    with pytest.raises(SettingError, match=r"^dialect='sqll' is not known; there are .*\bpostgres\b"):
        check_statement("select 1", "sqll")
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(SettingError, match=r"run: pip install 'nb-agent-kit\[sql\]'$"):
        check_statement("select 1", "postgres")


# ------------------------------------------------------------------------------------------------- fuzz

SEEDS = [
    *NOT_ALLOWED,
    *READS["sqlite"],
    *REFUSED["sqlite"],
    *READS["sqlite"],  # twice, so that enough of them survive
    "select name from birds where id in (select bird from eggs) -- all",
    "with old(n) as (values (2), (3)) delete from birds where id in (select n from old)",
    "with recursive k(i) as (select 1 union all select i + 1 from k where i < 3) update birds set name = 1 where id = 2",
    "with fresh(a, b) as (select 9, 'crane') insert into birds select a, b from fresh",
    "insert into birds values (9, 'x') on conflict do update set name = 'x' returning id",
    "select * from many join notes on notes match name",
    "update places set x1 = 9",
    "delete from notes where notes match 'owl'",
    "create view w as select 1",
    "attach 'file:new.db?mode=rwc' as n",
    "select json_group_array(name), max(n) from birds left join eggs on bird = id group by 1 having count(*) > 1",
    "select name, row_number() over (order by id) from birds union select laid, n from eggs limit 2 offset 1",
    "select a.name, b.n from birds a, eggs b where b.bird = a.id and a.name like '%t'",
]
PIECES = [
    "select", "delete from birds", "drop table birds", ";", "--", "/*", "*/", "'", '"', "`", "[", "]", "(", ")", ",", "\n", " ",
    "with", "x as (", "insert into birds", "values (7, 'x')", "update birds set name = 1", "returning *", "pragma", "temp", "from",
    "user_version = 7", "explain", "query plan", "attach", "'new.db'", "as n", "vacuum into 'new.db'", "union", "birds", "begin",
    "commit", "\r", "\u00a0", "\u2028", "main.", "load_extension('x')", "create table y as select 1", "*", "1",
]  # fmt: skip


def mutated(chance, seeds):
    """A statement of the list with some of its words left out, doubled, exchanged, or joined by others."""
    words = chance.choice(seeds).split(" ")
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(words) + 1)
        match chance.randrange(5):
            case 0:
                words[place : place + 1] = []
            case 1:
                words[place:place] = [chance.choice(PIECES)]
            case 2:
                words[place:place] = chance.choice(seeds).split(" ")[: chance.randrange(1, 6)]
            case 3:
                words[place : place + 1] = [chance.choice(PIECES)]
            case _:
                words = [word.upper() if chance.random() < 0.5 else word for word in words]
        words = words or ["select"]
    return chance.choice([" ", " ", "\n", "/**/"]).join(words)


def test_ten_thousand_mutated_statements_change_nothing(birds, monkeypatch):
    monkeypatch.chdir(birds.parent)  # a file that a statement makes would be seen
    chance, before = random.Random(4), fingerprint(birds.parent)
    database = ReadOnlyDatabase(birds, seconds=0.5, rows=20)
    codes = [code_of(database.query, mutated(chance, SEEDS)) for _ in range(10_000)]
    assert fingerprint(birds.parent) == before
    assert min(codes.count(code) for code in ("accept", "sql_not_allowed", "sql_failed")) > 300, "the mutations reach all ends"


def test_mutated_statements_that_the_parser_accepts_change_nothing_on_a_connection_that_could_write(birds, monkeypatch):
    monkeypatch.chdir(birds.parent)
    seeds = [text for text in SEEDS if len(text) < 500]
    chance, before, accepted = random.Random(5), fingerprint(birds.parent), 0
    with closing(sqlite3.connect(birds, isolation_level=None)) as connection:
        connection.set_progress_handler(lambda: True, 1_000_000)
        for _ in range(10_000):
            statement = mutated(chance, seeds)
            if code_of(check_statement, statement, "sqlite") == "accept":
                accepted += 1
                try:
                    connection.execute(statement).fetchmany(20)
                except sqlite3.Error:
                    continue  # refused by SQLite as no SQL, or for names that are not there
                assert not connection.in_transaction, statement
    assert fingerprint(birds.parent) == before
    assert accepted > 400
