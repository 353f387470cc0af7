"""Clicks while a cell runs, in the kernels that people have: a front end without a browser says hello and answers over the comm.

It sends on the main shell, as VS Code does, or on a subshell, as JupyterLab does.
"""

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

KERNELS = Path(sys.prefix) / "kernels"
VERSIONS = ["6.31.0", "7.0.1", "7.3.0", "7.4.0"]

TOOLS = """
from nb_agent import tool

ran = []


@tool(tier="danger")
def remove(path: str) -> str:
    '''Remove a file.

    Args:
        path: which one, e.g. a.txt
    '''
    ran.append(path)
    return f"{path} is gone"
"""


def ipykernel(version):
    """The folder of this version of ipykernel alone; two test processes at a time do no harm."""
    home = KERNELS / version
    if not home.exists():
        KERNELS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KERNELS) as made:
            wanted = [f"ipykernel=={version}", "nest-asyncio"]  # version 6 asks for the second, which nothing else here does
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", made, *wanted]
            subprocess.run(pip, check=True, capture_output=True, timeout=120)
            with suppress(OSError):  # another process was quicker
                shutil.move(made, home)
            Path(made).mkdir(exist_ok=True)
    return home


class Page:
    """Plays a front end that shows the inspector: it says hello when the widget comes, and answers questions."""

    def __init__(self, version):
        self.manager = KernelManager()
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": str(ipykernel(version))})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.subshell = None

    def use_subshell(self):
        self.client.control_channel.send(self.client.session.msg("create_subshell_request"))
        self.subshell = self.client.get_control_msg(timeout=10)["content"]["subshell_id"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def send(self, comm, content):
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": {"method": "custom", "content": content}})
        if self.subshell:
            message["header"]["subshell_id"] = self.subshell
        self.client.shell_channel.send(message)

    def run(self, code, *, answer=None, stdin=True, then=(), interrupt=False, seconds=40):
        """Execute a cell and those behind it; each question is given to ``answer``. What was printed, and the errors."""
        ids = {self.client.execute(cell, allow_stdin=stdin, store_history=True) for cell in (code, *then)}
        printed, errors, until = [], [], time.monotonic() + seconds
        self.asked, self.comm, self.hello_at, interrupt_at = [], None, float("inf"), float("inf")
        while ids:
            message = self.next_message(min(until, interrupt_at, self.hello_at))
            if time.monotonic() >= self.hello_at:
                self.say_hello()
            if message is None and time.monotonic() >= until:
                raise TimeoutError("".join(printed))
            if message is None and time.monotonic() >= interrupt_at:
                self.manager.interrupt_kernel()
                interrupt_at = float("inf")
            if message is None:
                continue
            kind, content = message["msg_type"], message["content"]
            printed += [content["text"]] if kind == "stream" else []
            errors += [content["ename"]] if kind == "error" else []
            if self.hear(kind, content, answer) and interrupt:
                interrupt_at = time.monotonic() + 0.3  # no person is quicker
            if kind == "status" and content["execution_state"] == "idle":
                ids.discard(message["parent_header"].get("msg_id"))
        return "".join(printed), errors

    def next_message(self, until):
        with suppress(queue.Empty):
            return self.client.get_iopub_msg(timeout=max(0.01, until - time.monotonic()))
        return None

    def say_hello(self):
        """Again and again until it is answered, as the page does: the first may come before the widget listens."""
        self.send(self.comm, {"type": "hello", "view": "v1"})
        self.hello_at = time.monotonic() + 0.15

    def hear(self, kind, content, answer):
        """Say hello to a new inspector, and answer what it asks; whether it asked."""
        if kind == "comm_open" and "truth" in content["data"].get("state", {}):
            self.comm = content["comm_id"]
            self.say_hello()
        told = content["data"].get("content", {}) if kind == "comm_msg" else {}
        if told.get("type") == "state":
            self.hello_at = float("inf")
        changes = told.get("changes", ()) if told.get("type") == "changes" else ()
        questions = [value for change, path, value in changes if (change, path) == ("set", ["question"]) and value]
        for question in questions:
            self.asked.append(question)
            said = answer(question) if answer else None
            late = [
                {"choice": "stop", "id": "of another question"},
                {"id": question["id"], **(said or {})},
                {"choice": "stop", "id": question["id"]},
            ]
            for one in late if said else ():
                self.send(self.comm, {"kind": "answer", **one})
        return bool(questions)


@pytest.fixture(scope="module", params=VERSIONS)
def page(request):
    page = Page(request.param)
    try:
        assert page.run(f"%load_ext nb_agent\n{TOOLS}\nimport ipykernel; print(ipykernel.__version__)")[0].strip() == request.param
        yield page
    finally:
        page.close()


@pytest.fixture(params=["main shell", "subshell"])
def way(request, page):
    """The page, sending in both ways where the kernel has subshells."""
    page.subshell = None
    if request.param == "subshell":
        if page.run("print(hasattr(get_ipython().kernel, 'shell_channel_thread'))")[0].strip() == "False":
            pytest.skip("ipykernel 6 has no subshells")
        page.use_subshell()
    return page


def test_a_click_in_a_running_cell_gives_leave_once_and_cells_behind_it_wait(way):
    printed, errors = way.run(
        "%%agent --new -o run\nRemove a.txt.",
        answer=lambda question: {"choice": "approve", "text": '{"path": "b.txt"}'},
        then=["print(ran, run.reason); ran.append('two')", "print(ran); ran.clear()"],
    )
    assert errors == []
    assert printed.splitlines()[-2:] == ["['b.txt'] stop", "['b.txt', 'two']"]
    assert [question["at"] for question in way.asked] == ["call"]


def test_a_stepped_cell_is_driven_by_clicks(way):
    choices = iter([{"choice": "next"}, {"choice": "reject", "reason": "not this one"}, {"choice": "run_on"}])
    printed, errors = way.run(
        "%%agent --new --step -o run\nRemove a.txt.",
        answer=lambda question: next(choices),
        then=["print(ran, run.reason, [result.code for result in run.tool_results])"],
    )
    assert errors == []
    assert printed.splitlines()[-1] == "[] stop ['refused']"
    assert [question["at"] for question in way.asked] == ["request", "call", "result"]


def test_an_interrupt_ends_the_wait_and_the_next_cell_goes_on(page):
    page.subshell = None
    _, errors = page.run("%%agent --new -o run\nRemove a.txt.", interrupt=True)
    assert errors == ["Interrupted"]
    assert page.run("print(run.reason, ran)")[0].strip() == "cancelled []"


def test_where_no_line_can_be_typed_nobody_is_asked_and_the_answer_is_no(page):
    printed, errors = page.run("%%agent --new -o run\nRemove a.txt.", stdin=False, then=["print(run.tool_results[0].text, ran)"])
    assert errors == []
    assert "nobody can be asked here" in printed
    assert page.asked == []


def test_a_question_that_nobody_answers_in_time_is_a_no_where_a_time_is_set(page):
    printed, errors = page.run(
        "from nb_agent import Agent\nrun = Agent(tools=[remove], ask_limit=0.5).run('Remove a.txt.')\n"
        "print(run.tool_results[0].code, ran)",
    )
    assert errors == []
    assert printed.strip().endswith("refused []")


SLOWLY = """
import json, threading
from nb_agent import Agent, mock

two, usual = threading.Event(), mock.send


def send(request, served=None):
    for number in range(20):
        if number == 10:
            two.wait(10)  # the other cell has printed
        choice = {"index": 0, "delta": {"content": f"d{number} "}, "finish_reason": "stop" if number == 19 else None}
        yield f"data: {json.dumps({'choices': [choice]})}\\n\\n".encode()
    yield b"data: [DONE]\\n\\n"


mock.send = send
"""


def test_a_run_in_the_background_is_shown_in_its_own_cell_and_what_later_cells_print_in_theirs(page):
    page.run(SLOWLY)
    cells = ["started = Agent().start('go')", "print('two'); two.set()\nwhile started.reason is None: pass\nmock.send = usual"]
    ids = [page.client.execute(cell) for cell in cells]
    seen, ended, until, shown = {place: [] for place in (0, 1)}, 0, time.monotonic() + 30, None
    while (ended < 2 or shown is None) and (message := page.next_message(until)) is not None:
        parent, kind, content = message["parent_header"].get("msg_id"), message["msg_type"], message["content"]
        if parent in ids and kind in {"stream", "display_data"}:
            seen[ids.index(parent)].append(content.get("text") or content["transient"]["display_id"])
        if kind == "update_display_data":
            shown = content["transient"]["display_id"], content["data"]["text/plain"]
        ended += kind == "status" and content["execution_state"] == "idle" and parent in ids
    assert seen[1] == ["two\n"]
    assert seen[0] == [shown[0]]
    assert " ".join(f"d{number}" for number in range(20)) in shown[1]
