"""Servers that others wrote: each is started, its tools listed, and each tool called by an agent whose model a test plays."""

import json
import subprocess
from contextlib import contextmanager

import pytest
from fetched import node_modules, python_with
from scripted import answers, said

from nb_agent import Agent
from nb_agent.messages import Image, ToolResult


@pytest.fixture(scope="module")
def npm():
    return node_modules("mcp", "@modelcontextprotocol/server-memory") / "@modelcontextprotocol"


@pytest.fixture(scope="module")
def newer():
    """Python with servers that speak the newer era."""
    return python_with("venv-modern", "mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")


@contextmanager
def connected(command, **settings):
    agent = Agent(policy={"*": "go"}, time_limit=None)
    try:
        agent.mcp("s", command=[str(word) for word in command], **settings)
        yield agent
    finally:
        agent.close()


def called(monkeypatch, agent, *calls):
    """The results of these calls, asked for by the model one after the other."""
    answers(monkeypatch, *[said("", (f"s__{tool}", json.dumps(arguments))) for tool, arguments in calls], said("done"))
    agent.reset()
    run = agent.run("go", view=False, max_rounds=len(calls) + 1)
    results = [part for message in run.messages for part in message.parts if isinstance(part, ToolResult)]
    assert len(results) == len(calls)
    return {tool: result for (tool, _), result in zip(calls, results, strict=True)}


def text(result):
    return "".join(getattr(part, "text", "") for part in result.parts)


def listed(agent):
    return {tool.origin for tool in agent.hub.tools()}


EVERYTHING = {
    "echo": {"message": "hi"},
    "get-sum": {"a": 2, "b": 3},
    "get-tiny-image": {},
    "get-annotated-message": {"messageType": "error", "includeImage": True},
    "get-env": {},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
    "get-structured-content": {"location": "Chicago"},
    "trigger-long-running-operation": {"duration": 1, "steps": 4},
    "toggle-simulated-logging": {},
    "toggle-subscriber-updates": {},
}


def test_every_tool_of_the_reference_server_answers(monkeypatch, npm):
    monkeypatch.setenv("NB_AGENT_PROBE", "s3cret")
    with connected(["node", npm / "server-everything/dist/index.js", "stdio"]) as agent:
        connection = agent.hub.connections["s"]
        progress = []
        connection.wishes.progress.append(lambda done, total, _: progress.append((done, total)))
        assert connection.era == "legacy"
        assert listed(agent) == {*EVERYTHING, "simulate-research-query", "gzip-file-as-resource"}
        results = called(monkeypatch, agent, *EVERYTHING.items(), ("simulate-research-query", {"topic": "ink"}))
        assert {tool for tool, result in results.items() if result.failed} == {"simulate-research-query"}
        assert "Echo: hi" in text(results["echo"])
        assert "5" in text(results["get-sum"])
        assert [type(part) for part in results["get-tiny-image"].parts].count(Image) == 1
        assert "[link to a resource: demo://" in text(results["get-resource-links"])
        assert "temperature" in text(results["get-structured-content"])
        assert progress[-1] == (4, 4)
        assert "HOME" in text(results["get-env"])
        assert "NB_AGENT_PROBE" not in text(results["get-env"])


def test_every_tool_of_the_file_server_answers(monkeypatch, npm, tmp_path):
    place = str(tmp_path)
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    calls = [
        ("list_allowed_directories", {}),
        ("read_file", {"path": f"{place}/a.txt"}),
        ("read_text_file", {"path": f"{place}/a.txt", "head": 1}),
        ("read_media_file", {"path": f"{place}/p.png"}),
        ("read_multiple_files", {"paths": [f"{place}/a.txt"]}),
        ("write_file", {"path": f"{place}/b.txt", "content": "three"}),
        ("edit_file", {"path": f"{place}/b.txt", "edits": [{"oldText": "three", "newText": "four"}]}),
        ("create_directory", {"path": f"{place}/sub"}),
        ("list_directory", {"path": place}),
        ("list_directory_with_sizes", {"path": place}),
        ("directory_tree", {"path": place}),
        ("move_file", {"source": f"{place}/b.txt", "destination": f"{place}/sub/b.txt"}),
        ("search_files", {"path": place, "pattern": "*.txt"}),
        ("get_file_info", {"path": f"{place}/a.txt"}),
    ]
    with connected(["node", npm / "server-filesystem/dist/index.js", place]) as agent:
        assert listed(agent) == {tool for tool, _ in calls}
        results = called(monkeypatch, agent, *calls)
        assert [tool for tool, result in results.items() if result.failed] == []
        assert (tmp_path / "sub" / "b.txt").read_text(encoding="utf-8") == "four"
        assert called(monkeypatch, agent, ("read_file", {"path": "/etc/hostname"}))["read_file"].failed


def test_every_tool_of_the_memory_server_answers(monkeypatch, npm, tmp_path):
    ada, ben = ({"name": name, "entityType": "person", "observations": ["likes ink"]} for name in ("Ada", "Ben"))
    knows = {"relations": [{"from": "Ada", "to": "Ben", "relationType": "knows"}]}
    calls = [
        ("create_entities", {"entities": [ada, ben]}),
        ("create_relations", knows),
        ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["reads"]}]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "reads"}),
        ("open_nodes", {"names": ["Ben"]}),
        ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["reads"]}]}),
        ("delete_relations", knows),
        ("delete_entities", {"entityNames": ["Ben"]}),
    ]
    command = ["node", npm / "server-memory/dist/index.js"]
    with connected(command, env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}) as agent:
        assert listed(agent) == {tool for tool, _ in calls}
        results = called(monkeypatch, agent, *calls)
        assert [tool for tool, result in results.items() if result.failed] == []
        assert "Ada" in text(results["search_nodes"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_time_server_answers_in_both_eras(monkeypatch, newer, era):
    with connected([newer, "-m", "mcp_server_time", "--local-timezone", "UTC"]) as agent:
        agent.hub.connect("s", command=[str(newer), "-m", "mcp_server_time", "--local-timezone", "UTC"], era=era)
        assert agent.hub.connections["s"].era == era
        convert = {"source_timezone": "Europe/Oslo", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        results = called(monkeypatch, agent, ("get_current_time", {"timezone": "UTC"}), ("convert_time", convert))
        assert listed(agent) == set(results)
        assert [result.failed for result in results.values()] == [False, False]
        assert called(monkeypatch, agent, ("get_current_time", {"timezone": "Nowhere"}))["get_current_time"].failed


def test_every_tool_of_the_git_server_answers(monkeypatch, newer, tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True, timeout=20)
    for key, value in (("user.name", "a"), ("user.email", "a@example.org")):
        subprocess.run(["git", "-C", str(tmp_path), "config", key, value], check=True, timeout=20)
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    at = {"repo_path": str(tmp_path)}
    calls = [
        ("git_status", at),
        ("git_add", {**at, "files": ["a.txt"]}),
        ("git_diff_staged", at),
        ("git_reset", at),
        ("git_diff_unstaged", at),
        ("git_branch", {**at, "branch_type": "local"}),
        ("git_create_branch", {**at, "branch_name": "side"}),
        ("git_checkout", {**at, "branch_name": "side"}),
        ("git_diff", {**at, "target": "main"}),
        ("git_log", at),
        ("git_show", {**at, "revision": "HEAD"}),
    ]
    with connected([newer, "-m", "mcp_server_git", "--repository", tmp_path]) as agent:
        assert listed(agent) == {"git_commit", *(tool for tool, _ in calls)}
        results = called(monkeypatch, agent, *calls)
        assert [(tool, text(result)) for tool, result in results.items() if result.failed] == []
        saved = called(monkeypatch, agent, ("git_add", {**at, "files": ["a.txt"]}), ("git_commit", {**at, "message": "second"}))
        assert not saved["git_commit"].failed


def test_every_tool_of_a_server_on_the_older_sdk_answers(monkeypatch, tmp_path):
    python = python_with("venv-older", "mcp-server-sqlite==2025.4.25", "mcp<2")
    calls = [
        ("create_table", {"query": "CREATE TABLE t (n INTEGER)"}),
        ("write_query", {"query": "INSERT INTO t VALUES (42)"}),
        ("read_query", {"query": "SELECT n FROM t"}),
        ("list_tables", {}),
        ("describe_table", {"table_name": "t"}),
        ("append_insight", {"insight": "ink"}),
    ]
    start = "import sys; from mcp_server_sqlite import main; main()"
    with connected([python, "-c", start, "--db-path", tmp_path / "d.db"]) as agent:
        assert listed(agent) == {tool for tool, _ in calls}
        results = called(monkeypatch, agent, *calls)
        assert "42" in text(results["read_query"])
