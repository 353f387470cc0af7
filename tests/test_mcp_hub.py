"""Connections to servers that behave, and to servers that do not. The servers are real child processes of thirty lines."""

import asyncio
import gc
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import uvicorn
from mcp import types
from mcp.server.mcpserver import MCPServer

from nb_agent import background
from nb_agent.errors import ServerError, SettingError, ToolError
from nb_agent.mcp import Hub
from nb_agent.messages import Image, Text
from nb_agent.tools.schema import ArgumentsError

#: Speaks just enough MCP; what it does is told as JSON in its first argument.
SERVER = """
import json, os, sys, time
plan = json.loads(sys.argv[1])
print(plan.get("stderr", ""), file=sys.stderr, flush=True)
if "exit" in plan:
    sys.exit(plan["exit"])
for line in plan.get("banner", []):
    print(line, flush=True)
if plan.get("silent"):
    time.sleep(60)
def answer(method, params):
    if method == "initialize":
        time.sleep(plan.get("delay", 0))
        if "modern" in plan:
            return {"code": -32601, "message": "Method not found"}
        return {"protocolVersion": plan.get("version", "2025-06-18"), "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        if "pages" in plan:
            print("asked for", params.get("cursor"), file=sys.stderr, flush=True)
            return plan["pages"][params.get("cursor") or ""]
        return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in plan.get("tools", ["add"])]}
    name, given = params["name"], params["arguments"]
    if name == "add":
        return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}
    if name == "tell":
        told = {"cwd": os.getcwd(), "pid": os.getpid(), "env": dict(os.environ), "name": name, "given": given}
        return {"content": [{"type": "text", "text": json.dumps(told)}]}
    if name == "die":
        print("out of ink", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "sleep":
        time.sleep(given["s"])
        return {"content": []}
    if name == "chat":
        print("[info] chatting")
        print(json.dumps({"not": "rpc"}))
        return {"content": []}
    return plan["results"][name]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in ("initialize", "tools/list", "tools/call"):
        result = answer(message["method"], message.get("params") or {})
        reply["error" if "code" in result else "result"] = result
    elif message["method"] == "server/discover" and "modern" in plan:
        reply["result"] = plan["modern"]
    elif plan.get("ignores"):
        continue
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close_all()


@pytest.fixture
def server(tmp_path):
    """Gives the command of a server that follows a plan."""
    script = tmp_path / "srv.py"
    script.write_text(SERVER, encoding="utf-8")
    return lambda **plan: [sys.executable, "-I", str(script), json.dumps(plan)]


def tool(hub, name):
    return next(tool for tool in hub.tools() if tool.name == name)


def said(hub, name, **arguments):
    (part,) = tool(hub, name).call(arguments)
    return part.text


def runs(pid):
    """Whether a process is there and has not only its entry left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it went before the file was opened, or while it was read
        return False


def wait_until(true, seconds=5.0):
    ends = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < ends:
        threading.Event().wait(0.01)
    return found


# ------------------------------------------------------------------------------------------------- connecting and listing


def test_all_pages_of_tools_are_read_and_the_last_can_be_called(cases, hub, server):
    given = cases["E01"]["given"]["server_pages"]
    pages = {}
    for page in given:
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in page["tools"]]
        more = {"nextCursor": page["nextCursor"]} if "nextCursor" in page else {}
        pages[page["request_cursor"] or ""] = {"tools": tools, **more}
    connection = hub.connect(
        "hive", command=server(pages=pages, results={"hive_move": {"content": [{"type": "text", "text": "ok"}]}})
    )
    assert [tool["name"] for tool in connection.listed] == cases["E01"]["expect"]["tools"]
    assert [tool.name for tool in hub.tools()] == [f"hive__{name}" for name in cases["E01"]["expect"]["tools"]]
    assert said(hub, "hive__hive_move") == "ok"
    assert connection._line.child.last_words() == "asked for None | asked for p2 | asked for p3"


@pytest.mark.parametrize("cursor", ["p2", ""])
def test_a_list_that_never_ends_is_read_once(hub, server, cursor):
    page = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": cursor}
    connection = hub.connect("s", command=server(pages={"": page, "p2": page}))
    assert [tool.name for tool in hub.tools()] == ["s__a"]
    assert connection.notes == [f"its list of tools has no end: after page 2 comes {cursor!r}"]


def test_one_bad_tool_is_named_and_the_others_are_there(cases, hub, server):
    tools = [*cases["E07"]["given"]["tools"], {"name": "bad", "inputSchema": {"type": "array"}}]
    connection = hub.connect("s", command=server(pages={"": {"tools": tools}}))
    assert [tool.name for tool in hub.tools()] == ["s__good", "s__odd"]
    assert connection.notes == ["tool 'bad' was left out because its inputSchema is no schema of an object"]


def test_the_server_is_called_by_its_own_name_for_the_tool(hub, server):
    hub.connect("web", command=server(tools=["tell"]))
    hub.connect("lib", command=server(tools=["tell"]))
    assert [tool.name for tool in hub.tools()] == ["web__tell", "lib__tell"]
    told = json.loads(said(hub, "web__tell", q="fern"))
    assert (told["name"], told["given"], told["pid"]) == ("tell", {"q": "fern"}, hub.connections["web"].pid)


def test_connecting_again_gives_the_same_connection_and_another_command_replaces_it(hub, server):
    first = hub.connect("s", command=server())
    pid = first.pid
    assert hub.connect("s", command=server()) is first
    assert first.pid == pid
    second = hub.connect("s", command=server(tools=["tell"]))
    assert second is not first
    assert not runs(pid)
    assert [tool.name for tool in hub.tools()] == ["s__tell"]


def test_the_list_of_tools_is_kept_until_something_changes(hub, server):
    hub.connect("s", command=server())
    assert hub.tools() is hub.tools()
    hub.refresh()
    assert [tool.name for tool in hub.tools()] == ["s__add"]


def test_a_server_that_cannot_be_listed_again_keeps_its_tools_and_hinders_no_other(hub):
    server = MCPServer("s")
    server.add_tool(lambda: "1", name="one")
    hub.connect("good", server=server)
    hub.connect("bad", server=(other := MCPServer("t")))
    server.add_tool(lambda: "2", name="two")
    other.list_tools = None
    other._lowlevel_server.add_request_handler("tools/list", types.PaginatedRequestParams, lambda ctx, params: 1 / 0)
    hub.refresh()
    assert [tool.name for tool in hub.tools()] == ["good__one", "good__two"]
    assert "could not be listed again" in hub.connections["bad"].notes[-1]


@pytest.mark.parametrize("name", ["", "a b", "x" * 33, "läs", "a.b"])
def test_a_name_that_cannot_stand_before_a_tool_is_refused(hub, name):
    with pytest.raises(SettingError) as caught:
        hub.connect(name, command=["x"])
    assert str(caught.value) == f"MCP server name {name!r} does not fit: 1 to 32 of the characters A-Z a-z 0-9 _ -"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "an MCP server needs exactly one of command=[…], url=… and server=…"),
        ({"command": ["a"], "url": "http://x"}, "an MCP server needs exactly one of command=[…], url=… and server=…"),
        ({"command": []}, "command is empty; name the program first, such as ['python', 'server.py']"),
        ({"command": "python s.py"}, "command is a list of words: write command=['python', 's.py'] instead of 'python s.py'"),
    ],
)
def test_settings_that_cannot_work_say_what_to_write(hub, settings, text):
    with pytest.raises(SettingError) as caught:
        hub.connect("s", **settings)
    assert str(caught.value) == text


def test_closing_what_is_not_there_names_what_is(hub, server):
    hub.connect("s", command=server())
    with pytest.raises(SettingError) as caught:
        hub.close("t")
    assert str(caught.value) == "no MCP server named 't'; connected are: s"


# ------------------------------------------------------------------------------------------------- calls and results


def test_a_failed_tool_looks_failed_by_both_roads(cases, hub, server):
    case = cases["E09"]
    results = {"pump": case["given"]["tools_call_result"], "bad": {"code": -32602, "message": "bad pump"}}
    hub.connect("s", command=server(tools=["pump", "bad"], results=results))
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__pump").call({})
    assert (str(caught.value), caught.value.code) == ("pump is locked", "tool_failed")
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__bad").call({})
    assert (str(caught.value), caught.value.code) == ("bad pump", "protocol_error")


def test_content_of_every_kind_comes_through_the_sdk_even_what_it_does_not_know(cases, hub, server):
    hub.connect("s", command=server(tools=["files"], results={"files": cases["E12"]["given"]["tools_call_result"]}))
    parts = tool(hub, "s__files").call({})
    assert [type(part) for part in parts] == [Text, Image, Text, Text, Text, Text, Text]
    assert parts[-1].text == "[hologram: a kind of content that nb_agent does not know]"


def test_structured_results_come_through_the_sdk(cases, hub, server):
    results = dict(zip("abc", cases["E10"]["given"]["tools_call_results"], strict=True))
    hub.connect("s", command=server(tools=list("abc"), results=results))
    assert [said(hub, f"s__{name}") for name in "abc"] == ['{"rows":[{"id":1,"ö":"ä"}]}', "2 rows", "(no output)"]


def test_arguments_are_checked_before_they_are_sent(hub):
    server = MCPServer("s")

    @server.tool()
    def greet(name: str) -> str:
        """Greet."""
        return f"hello {name}"

    hub.connect("s", server=server)
    greeting = tool(hub, "s__greet")
    assert greeting.definition.description == "Greet."
    assert greeting.check({"name": "Ada"}) == {"name": "Ada"}
    with pytest.raises(ArgumentsError) as caught:
        greeting.check({})
    assert str(caught.value) == "the arguments do not fit s__greet: argument 'name' is missing"
    assert greeting.call({"name": "Ada"}) == (Text("hello Ada"),)


def test_structured_content_that_breaks_its_own_schema_is_an_error_of_one_line(hub, server):
    listed = {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["n"]}}
    hub.connect("s", command=server(pages={"": {"tools": [listed]}}, results={"odd": {"structuredContent": {}, "content": []}}))
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__odd").call({})
    assert caught.value.code == "protocol_error"
    assert "'n' is a required property" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_call_that_takes_too_long_ends_and_the_connection_stays(hub):
    server, gone = MCPServer("s"), threading.Event()

    @server.tool()
    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            gone.set()

    @server.tool()
    def quick() -> str:
        return "done"

    hub.connect("s", server=server).call_limit = 0.2
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__slow").call({})
    assert (str(caught.value), caught.value.code) == ("no answer from the MCP server 's' within 0.2 s", "tool_timeout")
    assert gone.wait(5), "the server is told that nobody waits any more"
    assert said(hub, "s__quick") == "done"


def test_an_interrupt_ends_the_call_at_once_and_cancels_it_on_the_server(hub):
    server, begun, gone = MCPServer("s"), threading.Event(), threading.Event()

    @server.tool()
    async def slow() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            gone.set()

    hub.connect("s", server=server)
    main = threading.main_thread().ident

    def interrupt():
        if begun.wait(5) and wait_until(lambda: sys._current_frames()[main].f_code.co_name == "wait"):
            signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tool(hub, "s__slow").call({})
    assert time.monotonic() - start < 1.5
    assert gone.wait(5)


def test_calls_that_came_together_run_at_the_same_time(hub):
    server, both = MCPServer("s"), threading.Barrier(2)
    server.add_tool(lambda: str(both.wait(5)), name="meet")
    hub.connect("s", server=server)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(said(hub, "s__meet"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(answers) == ["0", "1"]


# ------------------------------------------------------------------------------------------------- cells and lifetimes


def test_opened_in_one_task_called_and_closed_in_others(hub, server, caplog):
    async def cells():
        await asyncio.create_task(asyncio.to_thread(lambda: hub.connect("s", command=server())))
        pid = hub.connections["s"].pid
        answer = await asyncio.create_task(asyncio.to_thread(lambda: said(hub, "s__add", a=1, b=2)))
        await asyncio.create_task(asyncio.to_thread(lambda: hub.close("s")))
        return pid, answer

    pid, answer = asyncio.run(cells())
    assert answer == "3"
    assert not runs(pid)
    hub.connect("s", command=server())
    assert said(hub, "s__add", a=2, b=2) == "4"
    assert caplog.text == ""


def test_it_works_where_an_event_loop_runs_already(hub, server):
    async def cell():
        hub.connect("s", command=server())
        return said(hub, "s__add", a=1, b=2)

    assert asyncio.run(cell()) == "3"


def test_a_hub_that_nobody_refers_to_ends_its_servers(server):
    pid = Hub().connect("s", command=server()).pid
    gc.collect()
    assert wait_until(lambda: not runs(pid))


def test_when_the_background_loop_stops_the_servers_end_and_a_later_call_starts_anew(hub, server, caplog):
    connection = hub.connect("s", command=server())
    pid = connection.pid
    background.stop()
    assert not runs(pid)
    assert said(hub, "s__add", a=1, b=2) == "3"
    assert connection.pid != pid
    assert caplog.text == ""


def test_several_are_closed_at_the_same_time_even_if_they_do_not_want_to_leave(hub, tmp_path, server):
    script = tmp_path / "stubborn.py"
    script.write_text(SERVER + "import threading\nthreading.Event().wait(60)\n", encoding="utf-8")
    pids = [hub.connect(f"s{n}", command=[sys.executable, "-I", str(script), "{}"]).pid for n in range(3)]
    start = time.monotonic()
    hub.close_all()
    assert time.monotonic() - start < 4, "each alone takes two seconds"
    assert not any(map(runs, pids))
    assert hub.tools() == ()


def test_an_interrupt_of_the_kernel_does_not_reach_the_server(tmp_path, server):
    program = f"""
import os, signal
from nb_agent.mcp import Hub
hub = Hub()
pid = hub.connect("s", command={server()!r}).pid
try:
    os.killpg(0, signal.SIGINT)
    signal.pause()
except KeyboardInterrupt:
    print(hub.tools()[0].call({{"a": 1, "b": 2}})[0].text, pid == hub.connections["s"].pid, hub.connections["s"].notes)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20, start_new_session=True
    )
    assert (done.stdout, done.stderr) == ("3 True []\n", "")


def test_at_exit_the_servers_are_ended_without_a_word(tmp_path, server):
    program = f"""
from nb_agent.mcp import Hub
hub = Hub()
print(*(hub.connect(name, command={server()!r}).pid for name in "ab"))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True, timeout=20)
    assert done.stderr == ""
    assert not any(runs(int(pid)) for pid in done.stdout.split())


def test_the_sdk_is_not_imported_before_a_server_is_connected():
    program = "import sys, nb_agent.mcp; print([m for m in ('mcp', 'jsonschema', 'httpx', 'httpx2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------------------------------------- servers that do not start


def test_a_server_that_ends_at_its_start_is_told_with_its_exit_code_and_last_words(cases, hub, server, monkeypatch):
    assert cases["E16"]["expect"]["second"]["message_contains"] == ["licence missing", "3"]
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # its fileno() raises, as in some kernels
    hub.connect("works", command=server())
    command = server(exit=3, stderr="loading\nlicence missing")
    with pytest.raises(ServerError) as caught:
        hub.connect("s", command=command)
    assert caught.value.kind == "server_start_failed"
    text = str(caught.value)
    assert text.startswith("MCP server 's' did not start: ")
    assert text.endswith(" ended before it answered, with exit code 3; the end of its stderr: loading | licence missing")
    assert "\n" not in text
    assert list(hub.connections) == ["works"]


def test_an_unknown_command_is_named(hub):
    start = time.monotonic()
    with pytest.raises(ServerError) as caught:
        hub.connect("s", command=["no-such-command-xyz", "--fast"])
    said = "MCP server 's' did not start: the command 'no-such-command-xyz' was not found; PATH is "
    assert str(caught.value) == said + os.environ["PATH"]
    assert caught.value.kind == "server_start_failed"
    assert time.monotonic() - start < 2


def test_a_file_that_cannot_be_run_is_named(hub, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("hello", encoding="utf-8")
    with pytest.raises(ServerError) as caught:
        hub.connect("s", command=[file])
    assert str(caught.value) == f"MCP server 's' did not start: the command {str(file)!r} cannot be run: Permission denied"


def test_the_directory_is_used_and_named_when_it_is_missing(hub, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    (tmp_path / "D").mkdir()
    hub.connect("a", command=server(tools=["tell"]), cwd=tmp_path / "D")
    hub.connect("b", command=server(tools=["tell"]))
    with pytest.raises(ServerError) as caught:
        hub.connect("c", command=server(tools=["tell"]), cwd="D/missing")
    assert str(caught.value) == "MCP server 'c' did not start: there is no directory cwd='D/missing'"
    assert json.loads(said(hub, "a__tell"))["cwd"] == str(tmp_path / "D")
    assert json.loads(said(hub, "b__tell"))["cwd"] == str(tmp_path.parent)


def test_a_server_that_never_answers_is_ended(hub, server):
    command = server(silent=True, stderr="thinking", banner=["Starting up ...", "[info] ready"])
    start = time.monotonic()
    with pytest.raises(ServerError) as caught:
        hub.connect("s", command=command, start_limit=0.5)
    assert caught.value.kind == "timeout"
    text = str(caught.value)
    assert text.startswith("MCP server 's' did not answer within 0.5 s: ")
    assert text.endswith(
        "; not a message of the protocol: Starting up ...; not a message of the protocol: [info] ready"
        "; the end of its stderr: thinking; give a slow one longer with start_limit=SECONDS"
    )
    assert time.monotonic() - start < 3
    assert left(command) == []


def left(command):
    """The processes that run the same command line."""
    wanted = "\0".join(command).encode() + b"\0"
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and command_of(entry) == wanted]


def command_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_slow_server_and_one_that_ignores_what_it_does_not_know_connect(hub, server):
    hub.connect("s", command=server(delay=0.6, ignores=True))
    assert said(hub, "s__add", a=1, b=2) == "3"


def test_a_server_that_knows_no_handshake_is_found_by_discovery(hub, server):
    modern = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "public"}
    tools = {
        "tools": [{"name": "hi", "inputSchema": {"type": "object"}}],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "public",
    }
    result = {"content": [{"type": "hologram"}], "resultType": "complete"}
    command = server(modern=modern | {"resultType": "complete"}, pages={"": tools}, results={"hi": result})
    hub.connect("new", command=command)
    assert said(hub, "new__hi").startswith("[hologram: ")
    assert len(left(command)) == 1, "the first attempt leaves nothing behind"


def test_an_interrupt_while_a_server_starts_leaves_no_process_behind(hub, server):
    command = server(silent=True)
    main = threading.main_thread().ident
    threading.Thread(target=lambda: wait_until(lambda: left(command)) and signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        hub.connect("s", command=command)
    assert wait_until(lambda: not left(command))
    assert hub.connections == {}


def test_a_server_of_a_version_that_nobody_knows_is_refused_with_the_version(cases, hub, server):
    hub.connect("old", command=server(version="2024-11-05"))
    command = server(version="2099-01-01")
    with pytest.raises(ServerError) as caught:
        hub.connect("future", command=command)
    assert caught.value.kind == "server_start_failed"
    assert all(word in str(caught.value) for word in cases["E24"]["expect"]["future"]["message_contains"])
    assert left(command) == []
    assert said(hub, "old__add", a=1, b=2) == "3"


def test_what_is_in_the_environment_is_never_told(hub, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-kernel")
    hub.connect("s", command=server(tools=["tell"]), env={"TOKEN": "t0psecret"})
    given = json.loads(said(hub, "s__tell"))["env"]
    assert given["TOKEN"] == "t0psecret"
    assert "OPENAI_API_KEY" not in given
    with pytest.raises(ServerError) as caught:
        hub.connect("t", command=server(exit=1, stderr="bad token t0psecret"), env={"TOKEN": "t0psecret"})
    assert "t0psecret" not in str(caught.value)
    assert "bad token ***" in str(caught.value)


# ------------------------------------------------------------------------------------------------- servers over HTTP


def test_a_server_over_http_is_called_and_when_it_has_gone_the_error_says_so(hub):
    server = MCPServer("s")
    server.add_tool(lambda a, b: str(a + b), name="add")
    server.add_tool(lambda size: "y" * int(size), name="big")
    app, keys = server.streamable_http_app(), set()

    async def watched(scope, receive, send):
        keys.update(value for name, value in scope.get("headers", ()) if name == b"authorization")
        await app(scope, receive, send)

    web = uvicorn.Server(uvicorn.Config(watched, port=0, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=web.run)
    thread.start()
    assert wait_until(lambda: web.started)
    port = web.servers[0].sockets[0].getsockname()[1]
    connection = hub.connect("s", url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer k"})
    assert said(hub, "s__add", a=1, b=2) == "3"
    assert keys == {b"Bearer k"}
    assert len(connection.call("big", {"size": 3_000_000})["content"][0]["text"]) == 3_000_000, "a large picture fits"
    with pytest.raises(ToolError) as caught:
        connection.call("big", {"size": 17_000_000})
    assert caught.value.code == "result_too_large"
    assert said(hub, "s__add", a=1, b=2) == "3"
    assert connection.starts == 1
    connection.close()
    web.should_exit = True
    thread.join(5)
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__add").call({"a": 1, "b": 2})
    assert caught.value.code == "server_start_failed"
    assert str(caught.value) == f"MCP server 's' did not start: http://127.0.0.1:{port}/mcp: All connection attempts failed"


def test_what_an_http_server_says_when_it_refuses_is_told(cases, hub):
    class Strict(BaseHTTPRequestHandler):
        asked = 0

        def do_POST(self):
            Strict.asked += 1
            self.rfile.read(int(self.headers["content-length"]))
            body = b"Unsupported protocol version (supported: 2025-06-18)"
            self.send_response(400)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Strict) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with pytest.raises(ServerError) as caught:
            hub.connect("s", url=f"http://me:pw@127.0.0.1:{web.server_port}/mcp?key=s3cret")
        web.shutdown()
        thread.join(5)
    assert str(caught.value) == (
        f"MCP server 's' did not start: http://127.0.0.1:{web.server_port}/mcp: "
        "HTTP 400: Unsupported protocol version (supported: 2025-06-18)"
    )
    assert Strict.asked <= cases["E24"]["expect"]["strict_http"]["attempts_at_most"]


# ------------------------------------------------------------------------------------------------- servers that misbehave later


def test_lines_on_standard_output_that_are_no_messages_are_noted(hub, server, caplog, capfd):
    banner = ["Starting up ...", "", "[info] ready"]
    connection = hub.connect("s", command=server(banner=banner, tools=["chat"]))
    assert said(hub, "s__chat") == "(no output)"
    assert connection.notes == [
        "not a message of the protocol: Starting up ...",
        "not a message of the protocol: [info] ready",
        "not a message of the protocol: [info] chatting",
        "not a message of the protocol: {'not': 'rpc'}",
    ]
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_a_server_killed_between_two_calls_is_started_again(hub, server):
    connection = hub.connect("s", command=server())
    assert said(hub, "s__add", a=1, b=2) == "3"
    pid = connection.pid
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not connection.alive)
    assert said(hub, "s__add", a=3, b=4) == "7"
    assert connection.pid != pid
    assert connection.notes == ["the server ended; exit code -9"]


def test_a_call_that_the_server_died_in_is_an_error_and_is_not_repeated(hub, server):
    connection = hub.connect("s", command=server(tools=["add", "die"]))
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__die").call({})
    assert caught.value.code == "server_gone"
    assert str(caught.value) == (
        "the MCP server 's' ended during this call, which may have had its effect; exit code 7; the end of its stderr: "
        "out of ink; it is opened again at the next call"
    )
    assert not connection.alive
    assert said(hub, "s__add", a=5, b=6) == "11"


def test_a_server_that_cannot_be_started_again_is_an_error_result(hub, server, tmp_path):
    connection = hub.connect("s", command=server())
    os.kill(connection.pid, signal.SIGKILL)
    (tmp_path / "srv.py").write_text("import sys; sys.exit('broken')", encoding="utf-8")
    assert wait_until(lambda: not connection.alive)
    with pytest.raises(ToolError) as caught:
        tool(hub, "s__add").call({"a": 1, "b": 2})
    assert caught.value.code == "server_start_failed"
    assert "broken" in str(caught.value)
    hub.refresh()
    assert [tool.name for tool in hub.tools()] == ["s__add"], "it stays listed; its calls tell why it does not work"
