"""Our tools served to others: the SDK's own client calls them over pipes and over HTTP, in both eras, and the guards hold."""

import asyncio
import json
import os
import subprocess
import sys

import fetched
import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from nb_agent import tool
from nb_agent.errors import SettingError
from nb_agent.mcp.serving import Served, serve_http, serving_http

LIMIT = 20

MODULE = '''
from nb_agent import tool

@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    print("adding on stdout")
    return a + b

tools = [add]
'''


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(tier="danger")
def wipe() -> str:
    """Delete all."""
    raise AssertionError("must not run")


@tool(tier="read")
def leak() -> str:
    """Say a secret."""
    return "key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD and " + "word " * 50_000


async def asked(target, mode, *calls):
    async with asyncio.timeout(LIMIT), Client(target, mode=mode) as client:
        listed = (await client.list_tools()).tools
        return client.protocol_version, listed, [await client.call_tool(name, arguments) for name, arguments in calls]


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_the_official_client_lists_and_calls_over_http_in_both_eras(mode, version):
    with serving_http(Served([add])) as url:
        spoken, listed, (good, bad) = asyncio.run(asked(url, mode, ("add", {"a": 2, "b": 3}), ("add", {"a": "x"})))
    assert spoken == version
    assert [made.name for made in listed] == ["add"]
    assert listed[0].annotations.read_only_hint is True
    assert (good.is_error, good.content[0].text) == (False, "5")
    assert bad.is_error
    assert "invalid_arguments" in bad.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_command_serves_over_pipes_and_prints_of_tools_stay_off_the_wire(mode, tmp_path):
    (tmp_path / "sums.py").write_text(MODULE, encoding="utf-8")
    server = StdioServerParameters(command=sys.executable, args=["-m", "nb_agent.cli", "serve", "sums:tools"], cwd=tmp_path)
    with (tmp_path / "stderr").open("w+", encoding="utf-8") as errlog:
        _, listed, (done,) = asyncio.run(asked(stdio_client(server, errlog=errlog), mode, ("add", {"a": 2, "b": 3})))
        errlog.seek(0)
        assert "adding on stdout" in errlog.read()
    assert [made.name for made in listed] == ["add"]
    assert done.content[0].text == "5"


@pytest.fixture(scope="module")
def inspector():
    try:
        modules = fetched.node_modules("inspector_cli", "@modelcontextprotocol/inspector-cli")
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the inspector cannot be fetched ({error}); try npm ci --prefix tests/js/inspector_cli")
    return modules / "@modelcontextprotocol" / "inspector-cli" / "build" / "index.js"


def inspected(inspector, *words, cwd):
    done = subprocess.run(["node", inspector, *words], cwd=cwd, capture_output=True, text=True, timeout=LIMIT, check=True)
    return json.loads(done.stdout)


def test_the_official_inspector_lists_and_calls_over_pipes_and_http(inspector, tmp_path):
    (tmp_path / "sums.py").write_text(MODULE, encoding="utf-8")
    command = [sys.executable, "-m", "nb_agent.cli", "serve", "sums:tools"]
    listed = inspected(inspector, *command, "--method", "tools/list", cwd=tmp_path)
    assert [made["name"] for made in listed["tools"]] == ["add"]
    with serving_http(Served([add])) as url:
        call = ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3"]
        done = inspected(inspector, url, "--transport", "http", *call, cwd=tmp_path)
    assert done["content"] == [{"type": "text", "text": "5"}]


def test_a_call_that_needs_leave_is_refused_with_the_reason_since_nobody_can_be_asked():
    result = Served([wipe]).call("wipe", {})
    assert result.code == "refused"
    assert "needs a person's leave (danger), and nobody can be asked here" in result.text


def test_results_are_masked_and_cut():
    text = Served([leak], most_tokens=200).call("leak", {}).text
    assert "sk-proj-abc" not in text
    assert len(text) < 5000


def test_a_side_effect_asked_for_twice_happens_once_in_a_run_and_again_in_the_next():
    made, now = [], [0.0]

    @tool(tier="write")
    def order(item: str) -> str:
        """Order something."""
        made.append(item)
        return "ordered"

    served = Served([order], clock=lambda: now[0])
    served.call("order", {"item": "tea"})
    again = served.call("order", {"item": "tea"})
    assert made == ["tea"]
    assert "is not made again" in again.text
    now[0] = 61.0
    served.call("order", {"item": "tea"})
    assert made == ["tea", "tea"]


BODY = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
    ],
)
def test_strange_hosts_origins_and_tokens_are_turned_away(headers, status):
    with serving_http(Served([add]), token="right") as url:
        sent = {"authorization": "Bearer right", "accept": "application/json, text/event-stream", **headers}
        assert httpx.post(url, json=BODY, headers=sent, trust_env=False).status_code == status


def test_the_right_token_opens():
    async def call(url):
        async with httpx2.AsyncClient(headers={"authorization": "Bearer right"}) as http:
            return await asked(streamable_http_client(url, http_client=http), "auto", ("add", {"a": 1, "b": 1}))

    with serving_http(Served([add]), token="right") as url:
        assert asyncio.run(call(url))[2][0].content[0].text == "2"


def test_other_machines_are_served_only_with_a_token():
    with pytest.raises(SettingError, match=r"other machines can reach 0\.0\.0\.0, so a token is needed"):
        serve_http(Served([add]), host="0.0.0.0")
    with pytest.raises(SettingError, match="there is no tool to serve"):
        Served([])
