"""Configuration files of other hosts, read without starting anything."""

import json

import pytest

from nb_agent.errors import SettingError
from nb_agent.mcp.configuration import configured


@pytest.fixture
def read(tmp_path):
    def make(content, environ=()):
        file = tmp_path / "mcp.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return configured(file, environ=dict(environ))

    return make


def test_the_forms_of_several_hosts_are_read(read):
    entry = {"command": "npx", "args": ["-y", "srv", 3], "env": {"KEY": "${TOKEN}", "N": 5, "ON": True}}
    wanted = {"command": ["npx", "-y", "srv", "3"], "env": {"KEY": "s3cret", "N": "5", "ON": "true"}}
    for outer in ({"mcpServers": {"s": entry}}, {"servers": {"s": entry}}, {"mcp": {"servers": {"s": entry}}}):
        assert read(outer, {"TOKEN": "s3cret"}).servers == {"s": wanted}


def test_addresses_have_headers(read):
    entry = {"type": "http", "url": "https://${HOST:-x.test}/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}
    found = read({"mcpServers": {"far": entry}}, {"TOKEN": "abc"})
    assert found.servers == {"far": {"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer abc"}}}


def test_comments_and_commas_of_editors_are_read(read):
    text = '{ // all\n "servers": {"s": {"command": "a//b", "args": ["/* no */", "x,]"],},}, /* end */ }'
    assert read(text).servers == {"s": {"command": ["a//b", "/* no */", "x,]"]}}


def test_what_is_switched_off_is_named_and_not_given(read):
    found = read({"mcpServers": {"a": {"command": "x", "disabled": True}, "b": {"command": "y", "disabled": False}}})
    assert (found.disabled, list(found.servers), found.notes) == (("a",), ["b"], ())


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "it has neither command nor url"),
        (3, "it is no object but 3"),
        (
            {"type": "sse", "url": "http://x"},
            "it is of type 'sse', which MCP has given up; use its Streamable HTTP address with type 'http'",
        ),
        ({"type": "http"}, "it is of type 'http' and has no url"),
        ({"command": "x", "args": "y"}, "it has args that are no list; write one text for each word"),
        ({"command": "x", "env": {"K": "${NOPE}"}}, "it asks in env.K for the variable NOPE, which is not set"),
    ],
)
def test_one_wrong_entry_is_told_and_takes_no_other_down(read, entry, why):
    found = read({"mcpServers": {"bad": entry, "good": {"command": "x"}}})
    assert found.servers == {"good": {"command": ["x"]}}
    assert found.notes == (f"server 'bad' of mcp.json is left out: {why}",)


def test_unknown_keys_and_odd_names_are_told(read):
    found = read({"mcpServers": {"my server": {"command": "x", "colour": "red"}}})
    assert found.servers == {"my_server": {"command": ["x"]}}
    assert found.notes == (
        "server 'my server' of mcp.json is called 'my_server': names have 1 to 32 of the characters A-Z a-z 0-9 _ -",
        "server 'my server' of mcp.json: not read: colour",
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{oops", "is no JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ("[]", 'lists no servers; write {"mcpServers": {"NAME": {"command": "…", "args": […]}}}'),
    ],
)
def test_a_wrong_file_is_one_line(read, tmp_path, content, why):
    with pytest.raises(SettingError) as caught:
        read(content)
    assert str(caught.value) == f"the MCP configuration {str(tmp_path / 'mcp.json')!r} {why}"


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(SettingError) as caught:
        configured(tmp_path / "none.json")
    assert str(caught.value) == f"the MCP configuration {str(tmp_path / 'none.json')!r} cannot be read: No such file or directory"


def test_a_directory_is_that_of_the_file_where_it_is_relative(read, tmp_path):
    found = read({"mcpServers": {"s": {"command": "x", "cwd": "sub"}, "t": {"command": "y", "cwd": "${workspaceFolder}/z"}}})
    assert [entry["cwd"] for entry in found.servers.values()] == [str(tmp_path / "sub"), str(tmp_path / "z")]
