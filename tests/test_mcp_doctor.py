"""The doctor finds the usual faults of MCP servers at the right stage, and says what to do."""

import contextlib
import http.server
import json
import shutil
import socket
import sys
import threading

import pytest

from nb_agent import cli, tool
from nb_agent.mcp.causes import advice_for, advice_for_answer
from nb_agent.mcp.doctor import doctor
from nb_agent.mcp.serving import Served, serving_http
from nb_agent.mcp.target import Target

SERVER = """
import json, sys
print("Starting up ...", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": TOOLS},
        "ping": {},
    }
    known = asked["method"] in results
    said = {"result": results[asked["method"]]} if known else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


def python(code):
    return [sys.executable, "-c", code]


def place(found):
    return next((number for number, stage in enumerate(found.stages, 1) if stage.verdict == "failed"), None)


@tool(tier="read")
def today() -> str:
    """Say the day."""
    return "Monday <b>"


def test_a_sound_server_passes_all_five_stages_and_one_harmless_call_is_made():
    with serving_http(Served([today])) as url:
        found = doctor(url=url)
    assert [stage.verdict for stage in found.stages] == ["ok"] * 5
    assert "called today" in found.stages[3].tried
    assert "Monday" in found.stages[3].came
    assert "Monday &lt;b&gt;" in found.to_html()
    assert "<script" not in found.to_html()
    assert json.loads(json.dumps(found.to_json()))["sound"] is True


@pytest.mark.parametrize(
    ("command", "told", "advice"),
    [
        (["no-such-command-xyz"], "'no-such-command-xyz' was not found", "Jupyter's PATH can differ"),
        ([sys.executable, "nowhere/srv.py"], "'nowhere/srv.py' is not in", "give its whole path"),
        ([sys.executable, "-m", "no_such_module_xyz"], "exit code 1", "the Python module no_such_module_xyz"),
        (python("import sys; sys.exit('FERN_API_KEY is not set')"), "FERN_API_KEY is not set", "pass it: env={'FERN_API_KEY': …}"),
        (python("pass"), "exit code 0", "it may be a tool for the shell"),
    ],
)
def test_a_program_that_does_not_start_fails_the_first_stage(command, told, advice):
    found = doctor(command)
    assert place(found) == 1
    assert told in found.failed.came
    assert advice in " ".join(found.failed.advice)
    assert [stage.verdict for stage in found.stages[1:]] == ["skipped"] * 4


def test_npx_without_node_is_told(tmp_path):
    (tmp_path / "npx").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "npx").chmod(0o755)
    found = doctor(["npx", "-y", "srv"], env={"PATH": str(tmp_path)})
    assert (place(found), found.failed.came) == (1, "npx is there, but node is not on PATH")


def test_a_server_that_hangs_fails_the_second_stage():
    found = doctor(python("import sys; sys.stdin.read()"), start_limit=1)
    assert place(found) == 2
    assert "it hangs or is slow" in " ".join(found.failed.advice)


def test_prints_on_standard_output_and_names_that_do_not_fit_are_warnings():
    tools = [{"name": "repo/list.items", "inputSchema": {"type": "object"}}, {"name": "n" * 90, "inputSchema": {"type": "object"}}]
    found = doctor(python(SERVER.replace("TOOLS", repr(tools))), era="legacy")
    assert [stage.verdict for stage in found.stages] == ["ok", "warning", "warning", "ok", "ok"]
    assert "Starting up ..." in found.stages[1].advice[0]
    assert len(found.stages[2].advice) == 2


def test_a_schema_that_is_none_fails_the_third_stage_and_names_the_tool():
    tools = [{"name": "odd", "inputSchema": {"type": "object", "properties": {"n": {"type": "intger"}}}}]
    found = doctor(python(SERVER.replace("TOOLS", repr(tools))), era="legacy")
    assert place(found) == 3
    assert "the inputSchema of 'odd' is no JSON Schema" in found.failed.advice[0]


@contextlib.contextmanager
def web(status, media, body, *, get=None):
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.answer(status, media, body)

        def do_GET(self):
            self.answer(*(get or (405, "text/plain", "")))

        def answer(self, status, media, body):
            self.send_response(status)
            self.send_header("content-type", media)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "get", "advice"),
    [
        ((401, "text/plain", "who?"), None, "a token is missing or wrong"),
        ((404, "text/plain", ""), None, "there is nothing at this path"),
        ((405, "text/plain", ""), None, "takes no POST"),
        ((405, "text/plain", ""), (200, "text/event-stream", "event: endpoint\ndata: /m\n\n"), "speaks HTTP+SSE only"),
        ((200, "text/html", "<!doctype html>"), None, "this is a web page"),
        ((307, "text/plain", ""), None, "leads elsewhere"),
        ((503, "text/plain", "down"), None, "fails by itself"),
    ],
)
def test_an_address_that_is_no_mcp_server_fails_the_second_stage(answer, get, advice):
    with web(*answer, get=get) as url:
        found = doctor(url=url)
    assert place(found) == 2
    assert str(answer[0]) in found.failed.came
    assert advice in found.failed.advice[0]


def test_an_address_that_takes_connections_and_never_answers_is_told_as_such(monkeypatch):
    monkeypatch.setattr("nb_agent.mcp.doctor._WAIT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = doctor(url=f"http://127.0.0.1:{silent.getsockname()[1]}/mcp")
    assert (place(found), found.failed.came) == (1, "no answer within 0.3 s")
    assert "it is there and hangs" in found.failed.advice[0]


def test_an_address_where_nothing_listens_fails_the_first_stage_and_keeps_its_secrets():
    found = doctor(url="http://127.0.0.1:9/mcp?key=hidden-word", headers={"Authorization": "Bearer s3cret-word"})
    assert place(found) == 1
    assert "nothing listens" in found.failed.advice[0]
    assert "hidden-word" not in str(found)
    assert "s3cret-word" not in str(found)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Error: Cannot find module '/x/index.js'", "/x/index.js"),
        ("npm error code E404", "registry"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "SSL_CERT_FILE"),
        ("[SSL: WRONG_VERSION_NUMBER]", "http://"),
        ("Unsupported protocol version: 2099-01-01", "era='legacy'"),
    ],
)
def test_what_servers_say_is_known(said, advice):
    assert advice in advice_for(said, Target.of(["srv"]), environ={})[0]


def test_a_sound_looking_answer_is_left_to_the_protocol():
    assert advice_for_answer(400, "application/json", "{}", streams=False) is None


def test_the_command_looks_at_a_configuration_and_says_by_its_status_what_it_found(tmp_path, capsys):
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "no-such-xyz"}}}), encoding="utf-8")
    assert cli.main(["doctor", "--config", str(file), "--form", "json"]) == 2
    assert json.loads(capsys.readouterr().out)[0]["stages"][0]["verdict"] == "failed"
    assert cli.main(["doctor", "--config", str(file), "b"]) == 1
    assert "no server named 'b'" in capsys.readouterr().err
    assert shutil.which("no-such-xyz") is None
