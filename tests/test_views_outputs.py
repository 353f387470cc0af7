"""What a tool displays in a kernel is shown at its call: with a stand-in for the kernel's publisher, and in a real kernel."""

import base64
import contextvars
import functools
import json
import queue
import sys
import threading
import time

import IPython.display
import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import KernelManager

from nb_agent.tools import capture
from nb_agent.views import outputs

captured = functools.partial(capture.captured, outputs.shown_by_tool)


class Publisher:
    """As much of a display publisher as is used."""

    def __init__(self):
        self.published, self.cleared = [], 0

    def publish(self, data, metadata=None, *, transient=None, update=False):
        self.published.append(data)

    def clear_output(self, *, wait=False):
        self.cleared += 1


@pytest.fixture
def publisher(monkeypatch):
    publisher = Publisher()
    monkeypatch.setattr(outputs, "_publisher", lambda: publisher)
    return publisher


@pytest.fixture
def inline(monkeypatch):
    """Figures that are open at the end of a cell would be shown there."""
    plt.close("all")
    monkeypatch.setattr(mpl, "get_backend", lambda **_: "inline")
    yield
    plt.close("all")


def test_what_is_displayed_in_the_block_is_taken_and_everything_else_goes_on(publisher):
    publisher.publish({"text/plain": "before"})
    with captured() as caught:
        publisher.publish({"text/plain": "inside"}, {}, transient={"display_id": "x"})
        publisher.clear_output(wait=True)
        contextvars.Context().run(publisher.publish, {"text/plain": "of others"})
        contextvars.Context().run(publisher.clear_output)
    publisher.publish({"text/plain": "after"})
    assert caught.text == "inside\n"
    assert [data["text/plain"] for data in publisher.published] == ["before", "of others", "after"]
    assert publisher.cleared == 1
    assert set(vars(publisher)) == {"published", "cleared"}


def test_two_threads_each_take_what_they_display(publisher):
    turn = threading.Barrier(2, timeout=10)
    found = {}

    def work(name):
        with captured() as caught:
            turn.wait()
            publisher.publish({"text/plain": name})
            turn.wait()
        found[name] = caught.text

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == {"a": "a\n", "b": "b\n"}
    assert publisher.published == []


def test_everything_is_put_back_where_the_tool_fails(publisher):
    hooks = list(mpl.rcParams["figure.hooks"])
    with pytest.raises(ZeroDivisionError), captured() as outer, captured():
        raise ZeroDivisionError
    assert set(vars(publisher)) == {"published", "cleared"}
    assert mpl.rcParams["figure.hooks"] == hooks
    assert outer.text == ""


def test_figures_that_a_tool_leaves_open_are_shown_at_its_call_and_closed(publisher, inline):
    mine = plt.figure()
    with captured() as caught:
        plt.figure(figsize=(2, 1), dpi=50)
        plt.plot([1, 2])
        plt.close(plt.figure())
        plt.figure()
    assert len(caught.pictures) == 2
    assert caught.text == ""
    assert plt.get_fignums() == [mine.number]


def test_a_figure_that_cannot_be_drawn_does_not_make_the_tool_fail(publisher, inline):
    with captured() as caught:
        plt.figure().text(0, 0, "$\\nonsense$")
    assert caught.pictures == ()
    assert caught.text == "Figure(640x480)\n"
    assert plt.get_fignums() == []


def test_without_a_kernel_nothing_happens_and_a_terminal_prints_what_it_displays(monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    with captured() as caught:
        sys.stdout.write("printed\n")
    assert caught.text == "printed\n"
    shell = InteractiveShell.instance()
    try:
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
        with captured() as caught:
            IPython.display.display(IPython.display.Markdown("*hi*"))
        assert "Markdown" in caught.text
    finally:
        InteractiveShell.clear_instance()


# ------------------------------------------------------------------------------------------------- a real kernel

TOOLS = """
import base64, contextvars, functools, json, sys, threading
import IPython.display
from nb_agent import background
from nb_agent.tools import capture
from nb_agent.views import outputs
captured = functools.partial(capture.captured, outputs.shown_by_tool)
turn, found = threading.Barrier(2, timeout=10), {}

def work(name):
    import matplotlib.pyplot as plt
    with captured() as caught:
        for n in range(3):
            turn.wait()
            print(name, n)
            print(name, "err", n, file=sys.stderr)
            display(IPython.display.Markdown(f"*{name} {n}*"))
    found[name] = caught.text

def plot():
    import matplotlib.pyplot as plt
    with captured() as caught:
        plt.figure(figsize=(1, 1)); plt.plot([1, 2]); plt.show()
        plt.figure(figsize=(1, 1)); plt.plot([2, 1])
        display(IPython.display.HTML("<b>bold</b>"))
    return caught

async def speak():
    print("coroutine")
    display(IPython.display.Markdown("*shown*"))
"""


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        run = lambda code: _run(client, code)
        assert run(TOOLS) == ""
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client, code):
    """Execute a cell; all that it has written to its streams, with a word for each thing displayed and each error."""
    sent, seen, until = client.execute(code), "", time.monotonic() + 30
    while True:
        try:
            message = client.get_iopub_msg(timeout=max(0.01, until - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(code) from None
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") != sent:
            continue
        if kind == "stream":
            seen += content["text"]
        elif kind in {"display_data", "execute_result"}:
            seen += f"[{kind}]"
        elif kind == "error":
            seen += "\n".join(content["traceback"])
        elif kind == "status" and content["execution_state"] == "idle":
            return seen


def test_in_a_kernel_parallel_tools_keep_what_they_print_and_display_and_the_cell_keeps_its_own(kernel):
    seen = kernel(
        "threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, name)) for name in 'ab']\n"
        "print('start')\n"
        "[thread.start() for thread in threads]; [thread.join(10) for thread in threads]\n"
        "print('end')"
    )
    assert seen == "start\nend\n"
    found = json.loads(kernel("print(json.dumps(found))"))
    assert found == {name: "".join(f"{name} {n}\n{name} err {n}\n*{name} {n}*\n" for n in range(3)) for name in "ab"}


def test_in_a_kernel_plots_of_a_tool_are_shown_at_its_call_and_not_at_the_end_of_the_cell(kernel):
    assert kernel("caught = plot()") == ""
    text, pictures = json.loads(kernel("print(json.dumps([caught.text, [picture.data for picture in caught.pictures]]))"))
    assert text == "bold\n"
    assert len(pictures) == 2
    assert all(base64.b64decode(data).startswith(b"\x89PNG") for data in pictures)
    assert kernel("import matplotlib.pyplot as plt; plt.plot([1, 2]); None") == "[display_data]"  # the cell's own plot


def test_in_a_kernel_a_coroutine_prints_and_displays_into_the_capture_of_its_call(kernel):
    assert kernel("with captured() as caught:\n    background.run(speak(), timeout=10)") == ""
    assert kernel("print(caught.text, end='')") == "coroutine\n*shown*\n"


def test_in_a_kernel_a_warning_lands_in_the_capture(kernel):
    assert kernel("import warnings\nwith captured() as caught:\n    warnings.warn('careful')") == ""
    assert "UserWarning: careful" in kernel("print(caught.text, end='')")


def test_in_a_kernel_the_streams_and_the_publisher_are_as_they_were_afterwards(kernel):
    seen = kernel("print(type(sys.stdout).__name__, type(sys.stderr).__name__, 'publish' in vars(get_ipython().display_pub))")
    assert seen == "OutStream OutStream False\n"
