"""What waits behind a cell that asks a person, in the kernels that people have: it runs once, in its order, or is aborted."""

import queue
import time
from contextlib import suppress

import pytest
from test_asking_in_kernels import TOOLS, VERSIONS, Page

ASKS = "%%agent --new -o run\nRemove a.txt."


@pytest.fixture(params=VERSIONS)
def page(request):
    """A kernel that has asked nobody yet: the first time was the one that went wrong."""
    page = Page(request.param)
    try:
        page.run(f"%load_ext nb_agent\n{TOOLS}\nimport time")
        answered(page, 1)
        page.known = [["error", "ok", "ok"]] if request.param == "7.0.1" else []  # its own sign to stop aborting may come first
        yield page
    finally:
        page.close()


def answered(page, most):
    """How so many of the cells were answered, in their order."""
    answers, until = [], time.monotonic() + 10
    while len(answers) < most and time.monotonic() < until:
        with suppress(queue.Empty):
            reply = page.client.get_shell_msg(timeout=1)
            answers += [reply["content"]["status"]] if reply["msg_type"] == "execute_reply" else []
    return answers


def test_cells_behind_an_interrupted_wait_are_aborted_and_those_behind_an_answered_one_run_in_order(page):
    page.run(ASKS, interrupt=True, then=["ran.append('two')", "ran.append('three')"])
    ended = answered(page, 3)
    assert ended in [["error", "aborted", "aborted"], *page.known]
    page.run("ran.clear()")
    answered(page, 1)
    goes_on = "from nb_agent import Agent\nAgent(tools=[remove]).run('Remove a.txt.')\ntime.sleep(0.3)\nran.append('one')"
    printed, errors = page.run(
        goes_on, answer=lambda question: {"choice": "approve"}, then=["ran.append('two')", "ran.append('three'); print(ran)"]
    )
    assert (errors, answered(page, 3)) == ([], ["ok", "ok", "ok"])
    assert printed.splitlines()[-1] == "['a.txt', 'one', 'two', 'three']"


def test_an_interrupt_ends_the_wait_within_half_a_second(page):
    asked = []
    page.run(ASKS, interrupt=True, answer=lambda question: asked.append(time.monotonic()))
    assert time.monotonic() - asked[0] < 0.3 + 0.5  # the page interrupts 0.3 s after it was asked
