"""The server of the lessons: what it answers, what it refuses, and that any host can start it."""

import json
import sys

import pytest
from mcp.server.mcpserver.exceptions import ToolError as Refused
from mcp.types import ElicitResult, PromptReference

from nb_agent.errors import ToolError
from nb_agent.mcp import Hub
from nb_agent.mcp.lesson_server import USERS, Users, list_entries, main


@pytest.fixture
def users():
    users = Users()
    yield users
    users.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("lesson")
    (place / "notes.md").write_text("# Notes\n", encoding="utf-8")
    (place / "数据").mkdir()
    (place / "out").symlink_to(place.parent)
    return place


@pytest.fixture(scope="module", params=["legacy", "modern"])
def asking(place, request):
    """The server with the tool that asks back, in each era; who answers is a name in a list."""
    hub, names = Hub(), ["Adi"]
    command = [sys.executable, "-m", "nb_agent.mcp.lesson_server", "--dir", str(place), "--ask"]
    connection = hub.connect("people", command=command, era=request.param)
    connection.close()

    async def elicited(_, params):
        assert params.message == "Which nickname shall the user have?"
        return ElicitResult(action="accept", content={"nickname": names[0]}) if names else ElicitResult(action="decline")

    connection.wishes.client["elicitation_callback"] = elicited
    connection.open()
    yield connection, names
    hub.close_all()


@pytest.fixture(scope="module")
def tools(place):
    hub = Hub()
    hub.connect("people", command=[sys.executable, "-m", "nb_agent.mcp.lesson_server", "--dir", str(place)])
    yield {tool.name: tool for tool in hub.tools()}
    hub.close_all()


def answer(tool, **arguments):
    (part,) = tool.call(tool.check(arguments))
    return json.loads(part.text)


def test_it_offers_four_tools_each_with_words_to_choose_and_fill_it_by(tools):
    assert list(tools) == ["people__find_users", "people__get_user", "people__query", "people__list_directory"]
    for tool in tools.values():
        assert len(tool.definition.description) > 40
        assert all(entry["description"] for entry in tool.definition.parameters["properties"].values())
        assert tool.hints["readOnlyHint"] is True


def test_users_are_found_by_city_and_by_name(tools):
    find = tools["people__find_users"]
    assert [user["id"] for user in answer(find, city="京都")["users"]] == ["U-1004", "U-1008"]
    assert [user["name"] for user in answer(find, name="ADA")["users"]] == ["Ada Lindqvist"]
    assert answer(find, city="Oslo", name="ada")["count"] == 1
    assert answer(find)["count"] == len(USERS)
    assert answer(find, limit=2)["more"] is True


def test_a_user_is_got_by_id_and_an_unknown_one_is_a_failure_that_says_which_there_are(tools):
    assert answer(tools["people__get_user"], user_id="U-1005")["city"] == "Lima"
    with pytest.raises(ToolError) as caught:
        tools["people__get_user"].call({"user_id": "U-9999"})
    assert "no user has the id 'U-9999'; ids run from U-1001 to U-1010" in str(caught.value)


def test_a_query_counts_and_groups(tools):
    rows = answer(tools["people__query"], sql="SELECT city, count(*) AS n FROM users GROUP BY city ORDER BY city")["rows"]
    assert rows == [{"city": "Berlin", "n": 3}, {"city": "Lima", "n": 2}, {"city": "Oslo", "n": 3}, {"city": "京都", "n": 2}]


def test_the_directory_is_listed_with_kinds_and_sizes(tools):
    assert answer(tools["people__list_directory"]) == {
        "path": ".",
        "entries": [
            {"name": "notes.md", "kind": "file", "bytes": 8},
            {"name": "out", "kind": "link"},
            {"name": "数据", "kind": "directory"},
        ],
        "more": False,
    }
    assert answer(tools["people__list_directory"], path="数据")["entries"] == []


@pytest.mark.parametrize("path", ["..", "/etc", "out", "数据/../..", "notes.md", "missing", "a\0b", "x" * 5000])
def test_a_path_that_leads_out_or_is_no_directory_is_refused(place, path):
    with pytest.raises(Refused):
        list_entries(place.resolve(), path)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM users",
        "UPDATE users SET city = 'Rome'",
        "INSERT INTO users VALUES ('U-1', 'a', 'b', 'c', 'd')",
        "WITH gone AS (SELECT id FROM users) DELETE FROM users WHERE id IN (SELECT id FROM gone)",
        "/* SELECT */ DROP TABLE users",
        "CREATE TEMP TABLE t AS SELECT * FROM users",
        "PRAGMA query_only = OFF",
        "ATTACH DATABASE '/tmp/nb_agent_attached.db' AS other",
        "VACUUM INTO '/tmp/nb_agent_copy.db'",
        "BEGIN",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM users",
        "SELECT '\0'",
        "SELECT hex(zeroblob(100000000))",
        "SELEKT",
    ],
)
def test_a_query_that_does_more_than_read_is_refused(users, sql):
    before = users.rows("SELECT * FROM users")
    with pytest.raises(Refused, match=r"users\(id, name, city, email, joined\)"):
        users.rows(sql)
    assert users.rows("SELECT * FROM users") == before


def test_values_that_have_no_json_form_are_shown(tools):
    assert answer(tools["people__query"], sql="SELECT x'00ff' AS b, NULL AS n")["rows"] == [{"b": "b'\\x00\\xff'", "n": None}]


def test_a_query_without_end_is_stopped(users, monkeypatch):
    monkeypatch.setattr("nb_agent.mcp.lesson_server._QUERY_LIMIT", 0.1)
    with pytest.raises(Refused) as caught:
        users.rows("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")
    assert str(caught.value) == "the query took more than 0.1 s; ask for less"


def test_a_large_answer_is_cut_and_says_so(users):
    rows, more = users.rows("SELECT a.id FROM users a, users b")
    assert (len(rows), more) == (50, True)


def test_a_missing_directory_is_told_at_the_start(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["--dir", str(tmp_path / "none")])
    assert "is no directory" in capsys.readouterr().err


def test_it_offers_a_resource_a_template_and_a_prompt_whose_argument_it_completes(asking):
    connection, _ = asking
    assert [entry["uri"] for entry in connection.ask(lambda client, _: client.list_resources())["resources"]] == ["users://schema"]
    templates = connection.ask(lambda client, _: client.list_resource_templates())["resourceTemplates"]
    assert [entry["uriTemplate"] for entry in templates] == ["users://of/{city}"]
    (content,) = connection.ask(lambda client, _: client.read_resource("users://of/Lima"))["contents"]
    assert [user["id"] for user in json.loads(content["text"])] == ["U-1005", "U-1009"]
    (content,) = connection.ask(lambda client, _: client.read_resource("users://schema"))["contents"]
    assert content["text"].startswith("CREATE TABLE users")
    (message,) = connection.ask(lambda client, _: client.get_prompt("welcome", {"city": "Oslo"}))["messages"]
    assert "live in Oslo" in message["content"]["text"]
    ref, argument = PromptReference(name="welcome"), {"name": "city", "value": "b"}
    assert connection.ask(lambda client, _: client.complete(ref, argument))["completion"]["values"] == ["Berlin"]


def test_a_nickname_is_asked_of_the_person_and_a_no_is_a_failure(asking):
    connection, names = asking
    result = connection.call("ask_nickname", {"user_id": "U-1001"})
    assert json.loads(result["content"][0]["text"]) == {"id": "U-1001", "nickname": "Adi"}
    names.clear()
    assert connection.call("ask_nickname", {"user_id": "U-1001"})["isError"] is True
