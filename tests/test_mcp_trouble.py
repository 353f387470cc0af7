"""Servers that break in each phase, hang, flood and change: one clear line each, the next call works, and no process is left."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time

import pytest
from jupyter_client.manager import KernelManager
from lab_server import free_port
from mcp.server.mcpserver import Context, MCPServer
from test_kernel import Kernel
from test_mcp_hub import runs, wait_until

from nb_agent.errors import SettingError, ToolError
from nb_agent.mcp import Hub
from nb_agent.mcp.child import started_as
from nb_agent.mcp.narrow import Lines

#: Its tools are the ways in which it breaks.
SERVER = """
import json, os, sys, time
NAMES = ["fine", "big", "big_last", "hang", "flood", "half", "chat", "more"]
def tools():
    return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in NAMES]}
def say(message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        print("heard", m["method"], file=sys.stderr, flush=True)
        continue
    reply = {"jsonrpc": "2.0", "id": m["id"]}
    name = m.get("params", {}).get("name")
    if m["method"] == "initialize":
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                           "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list":
        reply["result"] = tools()
    elif m["method"] == "ping":
        reply["result"] = {}
    else:
        if name == "hang":
            time.sleep(60)
        if name == "half":
            sys.stdout.write('{"jsonrpc":"2.0","id":')
            sys.stdout.flush()
            os._exit(9)
        if name == "flood":
            for _ in range(300):
                sys.stderr.write("x" * 100_000 + "\\n")
        if name == "chat":
            print("a progress bar")
        if name == "more":
            NAMES.append("extra")
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        reply["result"] = {"content": [{"type": "text", "text": "y" * 50_000_000 if "big" in name else "fine"}]}
        if name == "big_last":
            reply = {"result": reply["result"], "jsonrpc": "2.0", "id": m["id"]}
    say(reply)
"""


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close_all()


@pytest.fixture
def connection(hub, tmp_path):
    script = tmp_path / "srv.py"
    script.write_text(SERVER, encoding="utf-8")
    return hub.connect("s", command=[sys.executable, "-I", str(script)])


def said(connection, tool, **settings):
    return connection.call(tool, {}, **settings)["content"][0]["text"]


# ------------------------------------------------------------------------------------------------- servers that break


@pytest.mark.parametrize(
    ("tool", "limit", "code", "text"),
    [
        ("half", 5, "server_gone", "ended during this call, which may have had its effect; exit code 9"),
        ("hang", 0.3, "tool_timeout", "no answer from the MCP server 's' within 0.3 s; nor to a ping"),
        ("big", 8, "result_too_large", "a message of 50.0 MB came, which is more than the 16.8 MB that are taken"),
        ("big_last", 8, "result_too_large", "a message of 50.0 MB came, which is more than the 16.8 MB that are taken"),
    ],
)
def test_what_breaks_is_one_line_and_the_next_call_works(connection, tool, limit, code, text):
    pid, begun = connection.pid, time.monotonic()
    with pytest.raises(ToolError) as caught:
        connection.call(tool, {}, limit=limit)
    assert time.monotonic() - begun < limit + 3
    assert caught.value.code == code
    assert text in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert said(connection, "fine") == "fine"
    assert wait_until(lambda: connection.pid == pid or not runs(pid))


def test_a_flood_on_stderr_holds_nothing_up_and_only_its_end_is_kept(connection):
    assert said(connection, "flood") == "fine"
    assert connection.stderr.endswith("xxx\n")
    assert len(connection.stderr) <= 64_000
    file = connection._line.child._stderr
    assert wait_until(lambda: file.stat().st_size < 9_000_000), "the disk does not fill"
    assert connection.stderr.endswith("xxx\n")


def test_what_is_printed_on_stdout_in_the_middle_of_a_call_is_named(connection):
    assert said(connection, "chat") == "fine"
    assert connection.notes == ["not a message of the protocol: a progress bar"]


def test_a_call_that_runs_out_is_cancelled_on_the_server(hub, tmp_path):
    script = tmp_path / "srv.py"
    script.write_text(SERVER.replace("time.sleep(60)", "continue"), encoding="utf-8")
    connection = hub.connect("s", command=[sys.executable, "-I", str(script)])
    with pytest.raises(ToolError, match=r"within 0\.2 s$"):
        connection.call("hang", {}, limit=0.2)
    assert wait_until(lambda: "heard notifications/cancelled" in connection.stderr)
    assert connection.starts == 1


def test_a_server_that_fails_again_and_again_is_waited_for_longer_each_time(connection):
    pauses = []
    for failures in range(8):
        connection._failures, connection._failed_at = failures, time.monotonic()
        pauses.append(round(connection._pause(), 1))
    assert pauses == [0, 0, 0.5, 1, 2, 4, 8, 8]
    connection._failures = 0
    assert said(connection, "fine") == "fine"


# ------------------------------------------------------------------------------------------------- changing, waiting, resting


def test_a_new_tool_is_there_as_soon_as_the_server_says_so(hub, connection):
    assert said(connection, "more") == "fine"
    assert wait_until(lambda: "s__extra" in [tool.name for tool in hub.tools()])
    assert connection.notes == ["its list of tools changed: new: extra"]


def test_the_newer_era_is_listened_to_for_new_tools(hub):
    server = MCPServer("s")

    @server.tool()
    async def more(ctx: Context) -> str:
        server.add_tool(lambda: "1", name="extra")
        await ctx.notify_tools_changed()
        return "fine"

    connection = hub.connect("s", server=server, era="modern")
    assert wait_until(lambda: connection._line.listens)
    assert said(connection, "more") == "fine"
    assert wait_until(lambda: "s__extra" in [tool.name for tool in hub.tools()])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_era_that_is_pinned_is_spoken_and_shown(hub, era):
    server = MCPServer("s")
    server.add_tool(lambda: "1", name="one")
    connection = hub.connect("s", server=server, era=era)
    assert connection.era == era
    assert connection.version == {"legacy": "2025-11-25", "modern": "2026-07-28"}[era]
    assert f"({era})" in str(connection)
    assert said(connection, "one") == "1"
    assert connection.ping() < 5


def test_an_era_that_nobody_knows_is_refused(hub):
    with pytest.raises(SettingError, match="era='stone' is not known; write 'legacy'"):
        hub.connect("s", command=["x"], era="stone")


#: Serves one tool over HTTP that reports progress until it is killed, or answers at once.
STREAMING = """
import asyncio, sys
from mcp.server.mcpserver import Context, MCPServer
server = MCPServer("s")
@server.tool()
async def work(ctx: Context, slowly: bool = False) -> str:
    for step in range(1000 if slowly else 1):
        await ctx.report_progress(step)
        await asyncio.sleep(0.02)
    return "done"
print("ready", flush=True)
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


def test_a_server_that_is_killed_in_the_middle_of_an_http_stream_is_one_line_and_the_next_call_works(hub, tmp_path):
    script, port = tmp_path / "streaming.py", free_port()
    script.write_text(STREAMING, encoding="utf-8")
    servers = []

    def serve():
        servers.append(subprocess.Popen([sys.executable, script, str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        servers[-1].stdout.readline()
        assert wait_until(lambda: listens(port))

    try:
        serve()
        connection = hub.connect("s", url=f"http://127.0.0.1:{port}/mcp", call_limit=5)
        connection.wishes.progress.append(lambda done, total, text: servers[0].kill() if done == 3 else None)
        begun = time.monotonic()
        with pytest.raises(ToolError) as caught:
            connection.call("work", {"slowly": True})
        assert time.monotonic() - begun < 10
        assert caught.value.code in {"server_gone", "tool_timeout"}
        assert "\n" not in str(caught.value)
        servers[0].wait(5)
        serve()
        assert "done" in str(connection.call("work", {}))
    finally:
        for server in servers:
            server.kill()
            server.wait(5)
            server.stdout.close()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_progress_gives_a_call_more_time_and_is_told(hub):
    server = MCPServer("s")

    @server.tool()
    async def slow(ctx: Context) -> str:
        for step in range(5):
            await asyncio.sleep(0.15)
            await ctx.report_progress(step, 5, f"step {step}")
        return "done"

    connection, heard = hub.connect("s", server=server, era="legacy"), []
    connection.wishes.progress.append(lambda *report: heard.append(report))
    assert said(connection, "slow", limit=0.4) == "done"
    assert heard[0] == (0, 5, "step 0")


def test_a_server_that_reports_without_end_is_not_waited_for_without_end(hub):
    server = MCPServer("s")

    @server.tool()
    async def endless(ctx: Context) -> str:
        for step in range(10_000):
            await ctx.report_progress(step)
            await asyncio.sleep(0.01)
        return "done"

    with pytest.raises(ToolError) as caught:
        hub.connect("s", server=server, era="legacy").call("endless", {}, limit=0.05)
    assert caught.value.code == "tool_timeout"


def test_a_server_that_nobody_calls_is_ended_and_started_again_without_a_word(hub, connection):
    connection = hub.connect("t", command=connection.target.command, idle_limit=0.2)
    pid = connection.pid
    assert wait_until(lambda: not runs(pid))
    assert said(connection, "fine") == "fine"
    assert (connection.starts, connection.notes) == (2, [])


def test_the_servers_of_a_file_start_together_and_one_that_fails_hinders_no_other(hub, tmp_path):
    script = tmp_path / "srv.py"
    script.write_text(SERVER, encoding="utf-8")
    good = {"command": "python", "args": ["srv.py"], "cwd": ".", "note": "unknown key"}
    entries = {"a": good, "b": {"command": "no-such-command-xyz"}, "c": {**good, "cwd": "missing"}, "d": {**good, "disabled": True}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    told = hub.configure(tmp_path / "mcp.json")
    assert list(hub.connections) == ["a"]
    assert said(hub.connections["a"], "fine") == "fine"
    assert [text.partition(": ")[2][:60].split(";")[0] for text in told[:2]] == ["not read: note", "not read: note"]
    assert "'no-such-command-xyz' was not found" in told[2]
    assert f"there is no directory cwd={str(tmp_path / 'missing')!r}" in told[3]
    first = hub.connections["a"]
    hub.configure(tmp_path / "mcp.json")
    assert hub.connections["a"] is first, "the same settings keep the connection"
    assert first.starts == 1


def test_each_message_on_the_wire_is_shown_as_it_is(connection):
    seen = []
    connection.wishes.wire.append(lambda way, message: seen.append((way, message)))
    said(connection, "fine")
    (out, sent), (back, came) = seen
    assert (out, sent["method"], sent["params"]["name"]) == ("sent", "tools/call", "fine")
    assert (back, came) == (
        "received",
        {"jsonrpc": "2.0", "id": sent["id"], "result": {"content": [{"type": "text", "text": "fine"}]}},
    )


def test_other_requests_go_the_same_way(connection):
    answer = connection.ask(lambda client, progress: client.list_tools())
    assert [tool["name"] for tool in answer["tools"]][:2] == ["fine", "big"]


# ------------------------------------------------------------------------------------------------- the seams


def chunks(*pieces):
    left = list(pieces)

    class Inner:
        async def receive(self, _):
            if not left:
                raise EOFError
            return left.pop(0)

    async def read():
        lines, found = Lines(Inner(), most=20), []
        try:
            while True:
                found.append(await lines.receive())
        except EOFError:
            return b"".join(found)

    return asyncio.run(read())


def test_lines_come_whole_however_they_are_cut():
    raw = b'{"a":1}\n\n{"b":2}\nrest'
    for size in range(1, len(raw)):
        assert chunks(*[raw[at : at + size] for at in range(0, len(raw), size)]) == raw


@pytest.mark.parametrize("line", [b'{"jsonrpc":"2.0","id":7,"result":"%s"}', b'{"result":"%s","jsonrpc":"2.0","id":7}'])
@pytest.mark.parametrize("size", [3, 50, 10_000])
def test_a_line_that_is_too_long_becomes_an_error_for_its_request(line, size):
    raw = b"{}\n" + line % (b"y" * 2000) + b'\n{"id":8}\n'
    first, middle, last = chunks(*[raw[at : at + size] for at in range(0, len(raw), size)]).splitlines()
    assert (first, last) == (b"{}", b'{"id":8}')
    if size >= 50:
        assert json.loads(middle)["id"] == 7


def test_a_command_file_of_windows_is_started_by_its_whole_name():
    which = {"npx": r"C:\node\npx.cmd", "srv": r"C:\bin\srv.exe"}.get
    assert started_as(["npx", "-y", "a&b"], platform="win32", which=which) == [r"C:\node\npx.cmd", "-y", "a&b"]
    assert started_as(["srv"], platform="win32", which=which) == ["srv"]
    assert started_as(["npx"], platform="linux", which=which) == ["npx"]


# ------------------------------------------------------------------------------------------------- whole processes


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own end is only seen there")
def test_a_server_that_hangs_ends_when_the_kernel_is_killed(tmp_path):
    script = tmp_path / "srv.py"
    script.write_text(SERVER, encoding="utf-8")
    code = (
        "import threading; from nb_agent.mcp import Hub; hub = Hub()\n"
        f"c = hub.connect('s', command=[{sys.executable!r}, '-I', {str(script)!r}]); print(c.pid, flush=True)\n"
        "c.call('hang', {}, limit=50)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as kernel:
        pid = int(kernel.stdout.readline())
        kernel.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not runs(pid))


def test_connecting_using_and_closing_in_different_cells_fifty_times_leaves_nothing(tmp_path):
    script = tmp_path / "srv.py"
    script.write_text(SERVER, encoding="utf-8")
    manager = KernelManager()
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        kernel = Kernel(client, manager)
        count = (
            "import os, threading, subprocess\n"
            "kids = open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read().split()\n"
            "print(threading.active_count(), len(os.listdir('/proc/self/fd')), sum(\n"
            "    len(open(f'/proc/self/task/{t}/children').read().split()) for t in os.listdir('/proc/self/task')))"
        )
        kernel.run("from nb_agent.mcp import Hub; hub = Hub()")
        counts = []
        for turn in range(50):
            cells = [
                kernel.run(f"c = hub.connect('s', command=['python', '-I', {str(script)!r}])"),
                kernel.run("print(c.call('fine', {})['content'][0]['text'])"),
                kernel.run("hub.close('s')"),
            ]
            assert [(cell.errors, cell.text) for cell in cells] == [([], ""), ([], "fine\n"), ([], "")]
            if turn in {4, 49}:
                counts.append([int(word) for word in kernel.run(count).text.split()])
        assert counts[1][2] == counts[0][2] == 0
        assert counts[1][0] <= counts[0][0]
        assert counts[1][1] <= counts[0][1] + 2
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def test_the_file_of_its_stderr_goes_with_the_connection(hub, connection):
    file = connection._line.child._stderr
    assert file.exists()
    hub.close("s")
    assert not file.exists()
