"""A real kernel, driven without a browser: what a cell shows, what is saved, and what an interrupt leaves behind."""

import contextlib
import json
import queue
import time
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager
from samples import WEATHER

from nb_agent.views.saved import opened


class Cell:
    """What came out of one execution."""

    def __init__(self):
        self.data, self.updates, self.text, self.errors, self.ids, self.messages = [], [], "", [], set(), 0
        self.asked = []

    def take(self, message):
        kind, content = message["msg_type"], message["content"]
        self.messages += 1
        if kind in {"display_data", "execute_result"}:
            self.data.append(content["data"])
        elif kind == "update_display_data":
            self.updates.append(content["data"])
        elif kind == "stream":
            self.text += content["text"]
        elif kind == "error":
            self.errors.append("\n".join(content["traceback"]))
        if "display_id" in content.get("transient", {}):
            self.ids.add(content["transient"]["display_id"])


class Kernel:
    def __init__(self, client, manager):
        self.client, self.manager = client, manager

    def run(self, code, *, during=lambda message: None, seconds=30, typed=None):
        """Execute a cell to its end; ``during`` sees every message of it as it comes.

        ``typed`` are the lines that a person types, one for each question; without it the front end takes no questions.
        """
        sent = self.client.execute(code, store_history=True, allow_stdin=typed is not None)
        cell, until = Cell(), time.monotonic() + seconds
        for line in typed or ():
            cell.asked.append(self.client.get_stdin_msg(timeout=seconds)["content"]["prompt"])
            self.client.input(line)
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(code) from None
            if message["parent_header"].get("msg_id") != sent:
                continue
            cell.take(message)
            during(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return cell


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        kernel = Kernel(client, manager)
        assert kernel.run("%load_ext nb_agent").errors == []
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def value(kernel, expression):
    """The JSON value of an expression in the kernel."""
    return json.loads(kernel.run(f"import json; print(json.dumps({expression}))").text)


def test_loading_prints_nothing_and_loading_again_changes_nothing(kernel):
    cell = kernel.run(
        "import nb_agent; nb_agent.load_ipython_extension(get_ipython()); nb_agent.load_ipython_extension(get_ipython())"
    )
    assert (cell.text, cell.errors, cell.data) == ("", [], [])


def test_a_cell_shows_one_output_that_ends_as_html_and_text_with_no_widget(kernel):
    kernel.run(WEATHER)
    cell = kernel.run("%%agent --new -o run\nWhat is the weather in Berlin?")
    assert cell.errors == []
    assert len(cell.data) == 1
    assert len(cell.ids) == 1
    saved = cell.updates[-1]
    run = saved.pop("application/vnd.nb-agent.run+json")
    assert set(saved) == {"text/html", "text/markdown", "text/plain"}
    assert opened(run)["prompt"] == "What is the weather in Berlin?"
    for form in saved.values():
        for words in ("What is the weather in Berlin?", "get_weather", "Berlin", "21", "mock"):
            assert words in form


def test_the_run_object_is_in_the_last_result_and_in_the_named_variable(kernel):
    kernel.run("%%agent --new -o run\nWhat is the weather in Berlin?")
    assert value(kernel, "[_ is run, run.reason, [m.role for m in run.messages]]") == [
        True,
        "stop",
        ["user", "assistant", "tool", "assistant"],
    ]


def test_a_run_named_in_a_later_cell_shows_the_whole_run(kernel):
    kernel.run("%%agent --new -o run\nWhat is the weather in Berlin?")
    cell = kernel.run("run")
    assert "get_weather" in cell.data[0]["text/html"]


def test_the_text_of_the_cell_is_sent_exactly_as_it_was_typed(kernel, cases):
    given = cases["F03"]["given"]
    kernel.run("words = ['ab']; x = 5")
    cell = kernel.run(given["cell"].replace("%%agent\n", "%%agent --new -o run\n"))
    assert cell.errors == []
    assert value(kernel, "run.requests[0].body['messages'][-1]['content']") == cases["F03"]["expect"]["prompt_sent"]


def test_quotes_in_the_text_of_the_cell_reach_the_model(kernel, cases):
    kernel.run(f"%%agent --new -o run\n{cases['F05']['given']['cell_body']}")
    assert value(kernel, "run.requests[0].body['messages'][-1]['content']") == cases["F05"]["given"]["cell_body"]


def test_a_wrong_option_is_one_line_and_the_kernel_lives(kernel, cases):
    for line in [*cases["F05"]["given"]["lines"][1:], "--max-rounds many", "--model nowhere:x", "--out 3x", "--tools nothing"]:
        cell = kernel.run(f"%%agent {line}\nhi")
        assert len(cell.errors) == 1, line
        assert "\n" not in cell.errors[0].strip()
        assert "Traceback" not in cell.errors[0]
    assert value(kernel, "1") == 1


def test_a_second_cell_goes_on_with_the_conversation_and_reset_empties_it(kernel):
    kernel.run("%%agent --new -o run\nhello")
    kernel.run("%%agent -o run\nhello again")
    assert value(kernel, "[m.role for m in run.messages]") == ["user", "assistant", "user", "assistant"]
    assert "empty" in kernel.run("%agent reset").text
    kernel.run("%%agent -o run\nhello")
    assert value(kernel, "len(run.messages)") == 2


def test_a_tool_that_is_defined_again_replaces_the_old_one_and_a_deleted_one_is_gone(kernel, cases):
    for code in cases["A17"]["given"]["cells"]:
        assert kernel.run(code).errors == []
    kernel.run(cases["A17"]["given"]["cells"][1])
    listed = kernel.run("%agent tools").text
    assert "Second version." in listed
    assert "First version." not in listed
    kernel.run("del convert")
    assert "convert" not in kernel.run("%agent tools").text


def test_streaming_does_not_flood_the_channel_and_the_text_is_shown_once(kernel):
    kernel.run(
        """
import json, nb_agent.mock
def flood(request):
    for n in range(3000):
        yield b'data: ' + json.dumps({"choices": [{"index": 0, "delta": {"content": f"{n:07d} "}}]}).encode() + b'\\n\\n'
    yield b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\\n\\n'
real, nb_agent.mock.send = nb_agent.mock.send, flood
"""
    )
    try:
        cell = kernel.run("%%agent --new -o run\ncount")
    finally:
        kernel.run("nb_agent.mock.send = real")
    assert cell.errors == []
    assert cell.messages <= 150
    assert len(cell.ids) == 1
    assert value(kernel, "len(run.text)") == 24_000
    assert sum(len(form) for form in cell.updates[-1].values()) < 100_000


def test_an_interrupt_in_the_middle_of_a_slow_answer_ends_the_cell_at_once_and_the_next_cell_goes_on(kernel):
    pressed = []

    def press(message):
        if not pressed and message["msg_type"] == "comm_msg" and '"add"' in json.dumps(message["content"]):
            pressed.append(time.monotonic())
            kernel.manager.interrupt_kernel()

    cell = kernel.run("%%agent --new --model mock-slow -o run\nTell me a long story, slowly.", during=press)
    took = time.monotonic() - pressed[0]
    assert took < 0.5
    assert len(cell.errors) == 1
    assert "Interrupted" in cell.errors[0]
    assert "Traceback" not in cell.errors[0]
    assert "interrupted" in cell.updates[-1]["text/plain"]
    assert value(kernel, "run.reason") == "cancelled"
    after = kernel.run("%%agent -o run\nhello")
    assert after.errors == []
    assert value(kernel, "run.reason") == "stop"
    roles = value(kernel, "[m.role for m in run.messages]")
    assert roles == ["user", "assistant", "user", "assistant"]


def test_an_interrupt_in_a_tool_gives_its_call_a_result_and_the_next_cell_goes_on(kernel):
    kernel.run(
        """
import time
from nb_agent import tool
@tool
def sleep_long(seconds: int) -> str:
    \"\"\"Sleep for some seconds.\"\"\"
    time.sleep(seconds)
"""
    )
    pressed = []

    def press(message):
        if not pressed and message["msg_type"] == "comm_msg" and '"steps"' in json.dumps(message["content"]):
            pressed.append(time.monotonic())
            kernel.manager.interrupt_kernel()

    with contextlib.suppress(AssertionError):
        kernel.run("%%agent --new -t sleep_long -o run\nPlease sleep for 30 seconds.", during=press)
    assert time.monotonic() - pressed[0] < 0.5
    assert value(kernel, "[run.reason, run.messages[-1].role]")[0] == "cancelled"
    kernel.run("%%agent -t sleep_long -o run\nhello")
    assert value(kernel, "run.reason") == "stop"
    kernel.run("del sleep_long")


def test_the_traceback_of_a_tool_names_the_cell_and_no_file_of_the_machine(kernel):
    kernel.run("from nb_agent import tool\n@tool\ndef divide(a: int, b: int) -> float:\n    'Divide a by b.'\n    return a / b")
    cell = kernel.run("%%agent --new -t divide\nDivide 1 by 0.")
    assert "return a / b" in cell.updates[-1]["text/html"]
    assert "Cell In[" in cell.updates[-1]["text/html"]
    assert "ipykernel" not in cell.updates[-1]["text/html"]
    kernel.run("del divide")


def test_a_run_works_in_a_cell_that_awaits(kernel):
    cell = kernel.run(
        """
import asyncio
from nb_agent import Agent
before = asyncio.run
async def cell():
    return Agent().run("hello", view=False)
print((await cell()).reason, asyncio.run is before)
"""
    )
    assert (cell.errors, cell.text) == ([], "stop True\n")


def test_a_run_in_a_notebook_is_shown_once_even_where_it_is_the_last_line(kernel):
    cell = kernel.run("from nb_agent import Agent\nAgent().run('hello')")
    assert cell.errors == []
    assert len(cell.data) == 1


def test_an_mcp_server_is_added_in_one_cell_used_in_another_and_removed_in_a_third(kernel, tmp_path):
    (tmp_path / "here.txt").write_text("x", encoding="utf-8")
    added = kernel.run(f"%agent mcp add people --trust -- python -m nb_agent.mcp.lesson_server --dir '{tmp_path}'")
    assert added.errors == []
    assert "people__find_users" in added.text
    pid = value(kernel, "get_ipython().magics_manager.registry['AgentMagics'].agent.hub.connections['people'].pid")
    kernel.run("%%agent --new -o run\nFind the users in Berlin.")
    assert value(kernel, "[run.tool_results[0].name, run.tool_results[0].code, run.reason]") == ["people__find_users", None, "stop"]
    assert "Berlin" in value(kernel, "run.tool_results[0].text")
    kernel.run(WEATHER)
    for names, offered in {
        "people__get_user,get_weather": ["people__get_user", "get_weather"],
        "get_weather": ["get_weather"],
        "people": ["people__find_users", "people__get_user", "people__query", "people__list_directory"],
    }.items():
        kernel.run(f"%%agent --new --tools {names} -o run\nhello")
        assert sorted(value(kernel, "[t['function']['name'] for t in run.requests[0].body['tools']]")) == sorted(offered)
    assert kernel.run("%agent mcp remove people").text.strip() == "people: closed"
    assert not Path(f"/proc/{pid}").exists()
    assert "no MCP servers" in kernel.run("%agent mcp").text


def test_an_mcp_server_that_does_not_start_is_one_line_with_its_last_words(kernel, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import sys; sys.exit('licence missing')", encoding="utf-8")
    cell = kernel.run(f"%agent mcp add broken -- python '{script}'")
    assert len(cell.errors) == 1
    assert "licence missing" in cell.errors[0]
    assert "Traceback" not in cell.errors[0]
    assert "ExceptionGroup" not in cell.errors[0]


def test_unloading_takes_the_magics_away_and_loading_brings_them_back(kernel):
    assert kernel.run("%unload_ext nb_agent").errors == []
    gone = kernel.run("%%agent\nhi")
    assert "not found" in gone.text + "".join(gone.errors)
    assert kernel.run("%load_ext nb_agent").text == ""
    assert kernel.run("%%agent\nhello").errors == []


DANGER = """
from nb_agent import tool

rows = [1, 2, 3]

@tool(tier="danger")
def delete_row(number: int) -> str:
    \"\"\"Delete a row.

    Args:
        number: which row, e.g. 2
    \"\"\"
    rows.remove(number)
    return f"row {number} is gone"
"""


def test_a_dangerous_call_asks_the_person_who_runs_the_cell(kernel):
    kernel.run(DANGER)
    cell = kernel.run("%%agent --new -t delete_row\nDelete row 2", typed=["y"])
    assert 'delete_row({"number": 2}) needs your leave: danger' in cell.asked[0].replace('"number":2', '"number": 2')
    assert cell.errors == []
    assert value(kernel, "rows") == [1, 3]


def test_where_the_front_end_takes_no_questions_the_answer_is_no_and_the_cell_ends_normally(kernel):
    kernel.run(DANGER)
    cell = kernel.run("%%agent --new -t delete_row\nDelete row 2")
    assert cell.errors == []
    assert value(kernel, "rows") == [1, 2, 3]
    assert "nobody can be asked here" in cell.updates[-1]["text/plain"]


def test_what_two_tools_print_side_by_side_stands_at_their_calls_and_not_in_the_cell(kernel):
    kernel.run("""
from nb_agent import tool

@tool
def get_weather(city: str) -> str:
    \"\"\"Weather of a city.

    Args:
        city: name, e.g. Oslo
    \"\"\"
    print("looking at", city)
    return "sunny"
""")
    cell = kernel.run("%%agent --new -t get_weather\nWhat is the weather in Berlin and in Oslo?")
    assert cell.text == ""
    printed = value(
        kernel,
        "[event.printed for event in get_ipython().magics_manager.registry['AgentMagics'].agent.last_run.events"
        " if type(event).__name__ == 'ToolDone']",
    )
    assert sorted(printed) == ["looking at Berlin\n", "looking at Oslo\n"]


FLOOD = """
import json
from nb_agent import Agent, mock, tool

said, usual = [], mock.send


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}\\n\\n".encode()


def send(request, served=None):
    said.append(1)
    for place in range(324):
        yield chunk({"content": f"w{place:02d} "})
    if len(said) < 200:
        call = {"name": "look", "arguments": json.dumps({"n": len(said)})}
        yield chunk({"tool_calls": [{"index": 0, "id": f"c{len(said)}", "function": call}]})
    yield chunk({}, "tool_calls" if len(said) < 200 else "stop")
    yield b"data: [DONE]\\n\\n"


@tool(tier="read")
def look(n: int) -> str:
    "Look."
    return f"result {n} " * 200


mock.send = send
try:
    flood = Agent(tools=[look], max_rounds=300, time_limit=None, compaction=None).run("go")
finally:
    mock.send = usual
"""


def test_200_rounds_with_65000_fragments_send_a_page_no_more_than_it_takes(kernel):
    seconds, ended = {}, []

    def during(message):
        size = len(json.dumps(message["content"]))
        if message["msg_type"] == "update_display_data":
            ended.append(size)  # what is saved, once
            return
        second = seconds.setdefault(int(time.monotonic()), [0, 0])
        second[0] += 1
        second[1] += size

    cell = kernel.run(FLOOD, during=during, seconds=60)
    assert cell.errors == []
    assert value(kernel, "[len(flood.requests), sum(type(e).__name__ == 'Delta' for e in flood.events)]") == [200, 64_999]
    assert max(count for count, _ in seconds.values()) < 200
    assert max(size for _, size in seconds.values()) < 1_000_000
    assert len(ended) == 1
