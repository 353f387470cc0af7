"""The background loop alone."""

import asyncio
import contextvars
import threading
import time

import pytest

from nb_agent import background


async def after(seconds, value=None):
    await asyncio.sleep(seconds)
    return value


def test_a_result_comes_back_and_an_error_is_raised():
    async def fail():
        raise ValueError("no")

    assert background.run(after(0, 7)) == 7
    with pytest.raises(ValueError, match="no"):
        background.run(fail())


def test_it_works_where_a_loop_is_running():
    async def cell():
        return background.run(after(0, 7))

    assert asyncio.run(cell()) == 7


def cancelled():
    """A coroutine that never ends by itself, and events for its start and its cancellation."""
    begun, gone = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    return wait(), begun, gone


def test_the_time_limit_cancels():
    coroutine, _, gone = cancelled()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no result after 0\.2 s"):
        background.run(coroutine, timeout=0.2)
    assert time.monotonic() - began < 2
    assert gone.wait(5)


def test_a_timeout_of_the_coroutine_itself_is_its_own():
    async def late():
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        background.run(late())


def test_a_thread_that_is_left_behind_cancels_what_it_waits_for():
    coroutine, begun, gone = cancelled()
    left, raised = threading.Event(), []

    def work():
        background.left_behind.set(left)
        try:
            background.run(coroutine)
        except background.LeftBehindError as error:
            raised.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    assert begun.wait(5)
    left.set()
    assert gone.wait(5)
    thread.join(5)
    assert len(raised) == 1


def test_stopping_cancels_what_runs_and_a_later_run_begins_anew():
    coroutine, begun, gone = cancelled()
    future = background.start(coroutine)
    assert begun.wait(5)
    background.stop()
    assert gone.wait(5)
    assert future.cancelled()
    assert background.run(after(0, 7)) == 7
