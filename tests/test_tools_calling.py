"""The seven steps of a call."""

import asyncio
import contextvars
import json
import queue
import threading

import pytest

from nb_agent.errors import ServerError, ToolError
from nb_agent.events import STEPS, Step
from nb_agent.messages import Definition, Text, ToolCall, ToolResult
from nb_agent.tools.arguments import parsed
from nb_agent.tools.calling import Caller, Prepared
from nb_agent.tools.failures import line_of, traceback_of
from nb_agent.tools.schema import ArgumentsError, tool
from nb_agent.tools.toolbox import Toolbox

BOUND = 20  # seconds that a wait may take before the test fails


def beep() -> str:
    """Beep."""
    return "beep"


def given(schema, log):
    """A tool with a schema of somebody else's, as of a server."""

    class Given:
        name = schema[0]
        definition = Definition(schema[0], "", schema[1])
        main_thread, tier, untrusted, vouched, time_limit = False, None, False, True, None

        def check(self, arguments):
            missing = [key for key in schema[1].get("required", []) if key not in arguments]
            if missing:
                raise ArgumentsError(f"the arguments do not fit {self.name}: {missing[0]}: missing")
            return arguments

        def call(self, arguments):
            log.append((self.name, arguments))
            return "ok"

    return Given()


def call(name, arguments="{}", *, id="c1"):  # noqa: A002  what providers call it
    return ToolCall(id, name, arguments)


def one(caller, *calls, **options):
    ready = [caller.prepare(entry) for entry in calls]
    return list(caller.carry_out(1, ready, **options))


def error_of(result):
    told = json.loads(result.text)
    assert told["success"] is False
    assert told["code"] == result.code
    return told["error"]


def states(steps):
    assert [step.name for step in steps] == list(STEPS[: len(steps)])
    return [step.state for step in steps]


# ------------------------------------------------------------------------------------------------- before it runs


def test_a_good_call_takes_all_seven_steps():
    @tool
    def add(a: int, b: int = 2) -> int:
        return a + b

    caller = Caller(Toolbox([add]), clock=iter([5.0, 5.25]).__next__)
    ready = caller.prepare(call("add", '{"a": "1"}'))
    assert ready == Prepared(
        call("add", '{"a": "1"}'),
        (Step("known"), Step("parsed"), Step("fits schema"), Step("policy", note="nobody said what it may do")),
        tool=add,
        arguments={"a": 1},
        key=ready.key,
    )
    (done,) = caller.carry_out(3, [ready])
    assert done.number == 3
    assert done.result == ToolResult("c1", "add", (Text("3"),))
    assert states(done.steps) == ["done"] * 7
    assert (done.seconds, done.traceback) == (0.25, None)


@pytest.mark.parametrize("form", ["", "  \n", None, "null", "{}", " null ", "None", '""', '"{}"'])
def test_no_arguments_at_all_are_an_empty_object(cases, form):
    log = []
    caller = Caller(Toolbox([given(entry, log) for entry in cases["C13"]["given"]["tool_schema"].items()]))
    (done,) = one(caller, call("beep", form))
    assert done.result == ToolResult("c1", "beep", (Text("ok"),))
    assert log == [("beep", {})]
    (done,) = one(caller, call("open", form))
    assert done.result.code == "invalid_arguments"
    assert "door" in error_of(done.result)
    assert "JSON" not in error_of(done.result)
    assert len(log) == 1


def test_json_inside_json_is_unwrapped_twice_and_only_to_an_object(cases):
    text = cases["C14"]["given"]["arguments_on_the_wire"]
    expect = cases["C14"]["expect"]["executed_with"]
    assert parsed(text) == parsed(json.dumps(text)) == expect
    for odd in (json.dumps(json.dumps(text)), '"hello"', '"[1]"', "[1]", "3", "true", '"3"'):
        with pytest.raises(ValueError, match=r"^the arguments (must be|are not) one JSON object"):
            parsed(odd)


def test_two_objects_or_text_after_one_are_never_half_run(cases):
    log = []
    caller = Caller(Toolbox([given(entry, log) for entry in cases["C16"]["given"]["tool_schema"].items()]))
    for text, allowed in zip(cases["C16"]["given"]["arguments_on_the_wire"], cases["C16"]["expect"]["allowed"], strict=True):
        (done,) = one(caller, call("get", text))
        assert done.result.code in allowed
        assert "text after the end of the object at character" in error_of(done.result)
    assert log == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', "Expecting ',' delimiter at character 7"),
        ("{'a': 1}", "Expecting property name enclosed in double quotes at character 1"),
        ('{"a": NaN}', "NaN, which is not JSON"),
        ('{"a": 1, "a": 2}', "name 'a' twice with different values"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' + "9" * 5_000 + "}", "integer string conversion"),
        ("```json\n{}\n```", "Expecting value at character 0"),
    ],
    ids=["cut off", "quotes", "nan", "twice", "deep", "digits", "fence"],
)
def test_broken_arguments_are_said_in_words_and_not_run(text, told):
    ready = Caller(Toolbox([beep])).prepare(call("beep", text))
    assert ready.result.code == "invalid_arguments"
    assert told in error_of(ready.result)
    assert len(error_of(ready.result)) < 400
    assert states(ready.steps) == ["done", "failed", "skipped", "skipped"]


def test_line_breaks_inside_a_text_are_taken_as_they_are():
    assert parsed('{"text": "one\ntwo", "same": 1, "same": 1}') == {"text": "one\ntwo", "same": 1}


def test_arguments_that_do_not_fit_are_not_run():
    log = []

    @tool
    def note(n: int):
        log.append(n)

    caller = Caller(Toolbox([note]))
    ready = caller.prepare(call("note", '{"n": "x", "m": 1}'))
    assert ready.result.code == "invalid_arguments"
    assert error_of(ready.result).startswith("the arguments do not fit note: n: expected a valid integer")
    assert states(ready.steps) == ["done", "done", "failed", "skipped"]
    (done,) = caller.carry_out(1, [ready])
    assert done.result is ready.result
    assert states(done.steps) == ["done", "done", "failed", "skipped", "skipped", "skipped", "done"]
    assert log == []


def test_a_check_that_breaks_is_a_result_too():
    odd = given(("odd", {}), [])
    odd.check = lambda arguments: {}[1]
    ready = Caller(Toolbox([odd])).prepare(call("odd"))
    assert error_of(ready.result) == "the arguments cannot be checked: KeyError: 1"


def test_an_unknown_tool_is_answered_with_the_names_that_there_are(cases):
    def get_rain(town: str):
        return 3

    def get_wind(town: str):
        return 3

    name, arguments = cases["H12"]["given"]["call"]
    ready = Caller(Toolbox([get_rain, get_wind])).prepare(call(name, json.dumps(arguments)))
    assert ready.result.code == "unknown_tool"
    assert error_of(ready.result) == (
        "there is no tool named 'get_rainfall'; did you mean get_rain or get_wind? The tools are: get_rain, get_wind"
    )
    assert states(ready.steps) == ["failed", "skipped", "skipped", "skipped"]
    assert error_of(Caller(Toolbox()).prepare(call("x")).result) == "there is no tool named 'x'; this run has no tools at all"


# ------------------------------------------------------------------------------------------------- failing tools


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


RAISED = {
    "ValueError('bad unit')": (ValueError("bad unit"), "ValueError: bad unit"),
    "KeyError('')": (KeyError(""), "KeyError: ''"),
    "AssertionError()": (AssertionError(), "AssertionError, without a message"),
    "an exception whose __str__ raises": (MuteError(), "MuteError: (its message cannot be shown: RuntimeError)"),
    "SystemExit(2)": (SystemExit(2), "SystemExit: 2"),
    "ExceptionGroup('g', [OSError('disk')])": (
        ExceptionGroup("g", [OSError("disk")]),
        "ExceptionGroup: g (1 sub-exception): OSError: disk",
    ),
}


@pytest.mark.parametrize("way", ["alone", "side by side", "async"])
def test_every_exception_becomes_a_failed_result(cases, way):
    assert [*RAISED, "KeyboardInterrupt()"] == cases["H15"]["given"]["raises"]
    for error, line in RAISED.values():

        def fail(error=error):
            raise error

        async def fail_later(error=error):
            await asyncio.sleep(0)
            raise error

        caller = Caller(Toolbox([tool(fail_later if way == "async" else fail, name="fail"), beep]))
        caller.toolbox.find("fail").check({})
        done = {entry.result.name: entry for entry in one(caller, call("fail"), *([call("beep")] if way == "side by side" else []))}
        failed = done["fail"]
        assert failed.result.code == "tool_failed"
        assert error_of(failed.result) == line
        assert states(failed.steps) == ["done"] * 4 + ["failed", "skipped", "done"]
        assert failed.steps[4].note == line
        assert "Traceback" not in failed.result.text
        assert failed.traceback


def test_a_tool_error_has_its_own_words_and_code():
    def look():
        raise ToolError("no such town", code="not_found")

    def gone():
        raise ServerError("the server has gone", kind="server_gone")

    (done,) = one(Caller(Toolbox([look])), call("look"))
    assert (error_of(done.result), done.result.code) == ("no such town", "not_found")
    (done,) = one(Caller(Toolbox([gone])), call("gone"))
    assert (error_of(done.result), done.result.code) == ("ServerError: the server has gone", "server_gone")


def test_the_traceback_begins_in_the_tools_own_code():
    @tool
    async def outer():
        return inner()

    def inner():
        try:
            {}["town"]
        except KeyError as error:
            raise ValueError("no town") from error

    (done,) = one(Caller(Toolbox([outer])), call("outer"))
    assert "nb_agent/" not in done.traceback.replace("\\", "/")
    assert "concurrent" not in done.traceback
    assert "in outer" in done.traceback
    assert '{}["town"]' in done.traceback
    assert done.traceback.endswith("ValueError: no town\n")


def test_a_long_error_is_cut_for_the_model_and_shorter_beside_the_step():
    def fail():
        raise ValueError("first line\n" + "x" * 50_000)

    (done,) = one(Caller(Toolbox([fail])), call("fail"))
    assert len(done.result.text) < 2_500
    assert done.steps[4].note == "ValueError: first line"
    assert len(done.traceback) > 50_000


def test_odd_exceptions_are_told_and_shown():
    deep = ExceptionGroup("a", [ExceptionGroup("b", [OSError(str(n)) for n in range(12)])])
    assert line_of(deep).endswith("OSError: 9 and 2 more")

    class EmptyError(ToolError):
        def __init__(self):
            Exception.__init__(self)

    assert line_of(EmptyError()) == "EmptyError, without a message"
    broken = ValueError("x")
    broken.__notes__ = 5
    assert "ValueError: x" in traceback_of(broken)


# ------------------------------------------------------------------------------------------------- side by side


def test_a_single_call_and_a_main_thread_tool_run_in_the_calling_thread():
    seen = {}

    def alone():
        seen["alone"] = threading.current_thread()

    @tool(main_thread=True)
    def first():
        seen["first"] = threading.current_thread()

    def other():
        seen["other"] = threading.current_thread()

    one(Caller(Toolbox([alone])), call("alone"))
    one(Caller(Toolbox([first, other])), call("other"), call("first"))
    assert seen["alone"] is seen["first"] is threading.current_thread()
    assert seen["other"] is not threading.current_thread()
    assert seen["other"].daemon


def test_calls_that_came_together_run_all_at_once():
    together = threading.Barrier(32)

    @tool
    def wait(n: int):
        together.wait(BOUND)
        return n

    done = one(Caller(Toolbox([wait])), *[call("wait", f'{{"n": {n}}}', id=f"c{n}") for n in range(32)])
    assert {entry.result.call_id: entry.result.text for entry in done} == {f"c{n}": str(n) for n in range(32)}


def test_async_calls_that_came_together_run_all_at_once():
    here, all_here = [], asyncio.Event()

    @tool
    async def wait(n: int):
        here.append(n)
        if len(here) == 8:
            all_here.set()
        await asyncio.wait_for(all_here.wait(), BOUND)
        return n

    done = one(Caller(Toolbox([wait])), *[call("wait", f'{{"n": {n}}}') for n in range(8)])
    assert sorted(entry.result.text for entry in done) == [str(n) for n in range(8)]


def test_there_are_never_more_threads_than_allowed():
    running, most, lock = [], [], threading.Lock()

    @tool
    def count(n: int):
        with lock:
            running.append(n)
            most.append(len(running))
        with lock:
            running.remove(n)

    done = one(Caller(Toolbox([count]), most_at_once=2), *[call("count", f'{{"n": {n}}}') for n in range(20)])
    assert len(done) == 20
    assert max(most) <= 2


def test_each_call_is_reported_as_it_ends_and_refused_ones_come_first():
    gate = threading.Event()

    def slow():
        assert gate.wait(BOUND)
        return "slow"

    def fast():
        return "fast"

    caller = Caller(Toolbox([slow, fast]))
    ready = [caller.prepare(call(name)) for name in ("slow", "fast", "unknown")]
    order = []
    for done in caller.carry_out(1, ready):
        order.append(done.result.name)
        if done.result.name == "fast":
            gate.set()
    assert order == ["unknown", "fast", "slow"]


def test_idle_is_called_while_threads_are_waited_for():
    gate, looks = threading.Event(), []

    def slow():
        assert gate.wait(BOUND)

    def idle():
        looks.append(1)
        if len(looks) == 3:
            gate.set()

    done = one(Caller(Toolbox([slow, beep])), call("slow"), call("beep"), idle=idle)
    assert len(done) == 2
    assert len(looks) >= 3


def test_threads_run_in_a_copy_of_the_context():
    where = contextvars.ContextVar("where", default="nowhere")

    @tool
    def look(n: int):
        found = where.get()
        where.set(f"call {n}")
        return found

    where.set("cell 3")
    done = one(Caller(Toolbox([look])), call("look", '{"n": 1}'), call("look", '{"n": 2}'))
    assert [entry.result.text for entry in done] == ["cell 3", "cell 3"]
    assert where.get() == "cell 3"


def test_where_threads_cannot_be_had_the_calls_run_one_after_the_other(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done = one(Caller(Toolbox([beep])), call("beep", id="a"), call("beep", id="b"))
    assert [entry.result.call_id for entry in done] == ["a", "b"]


# ------------------------------------------------------------------------------------------------- interrupts and limits


def test_an_interrupt_in_a_tool_leaves_in_every_thread():
    @tool
    def stop():
        raise KeyboardInterrupt

    @tool
    async def stop_later():
        raise KeyboardInterrupt

    for calls in ([call("stop")], [call("stop"), call("beep")], [call("stop_later")], [call("stop_later"), call("beep")]):
        with pytest.raises(KeyboardInterrupt):
            one(Caller(Toolbox([stop, stop_later, beep])), *calls)


def test_an_interrupt_while_waiting_leaves_at_once_and_begins_nothing_more():
    gate, begun = threading.Event(), queue.SimpleQueue()

    @tool
    def slow(n: int):
        begun.put(n)
        gate.wait(BOUND)

    def idle():
        raise KeyboardInterrupt

    caller = Caller(Toolbox([slow]), most_at_once=2)
    with pytest.raises(KeyboardInterrupt):
        one(caller, *[call("slow", f'{{"n": {n}}}') for n in range(5)], idle=idle)
    gate.set()
    assert {begun.get(timeout=BOUND), begun.get(timeout=BOUND)} == {0, 1}
    for thread in threading.enumerate():
        if thread.name == "nb_agent tool":
            thread.join(BOUND)
    assert begun.empty()


@pytest.mark.parametrize("kind", ["sync", "async", "one of two"])
def test_a_call_that_takes_too_long_is_left_behind(kind):
    gate = threading.Event()

    @tool
    def slow():
        gate.wait(BOUND)

    @tool(name="slow")
    async def slow_async():
        await asyncio.to_thread(gate.wait, BOUND)

    caller = Caller(Toolbox([slow_async if kind == "async" else slow, beep]), most_seconds=0.1)
    try:
        done = {entry.result.name: entry for entry in one(caller, call("slow"), *([call("beep")] if kind == "one of two" else []))}
    finally:
        gate.set()
    assert done["slow"].result.code == "tool_timeout"
    assert error_of(done["slow"].result) == "slow gave no result within 0.1 s and was left behind; it may still be running"
    assert states(done["slow"].steps) == ["done"] * 4 + ["failed", "skipped", "done"]
    assert kind != "one of two" or done["beep"].result.text == "beep"


def test_calls_that_wait_for_a_thread_are_not_late_and_get_one():
    gate = threading.Event()

    @tool
    def slow():
        gate.wait(BOUND)

    @tool
    def get_time() -> str:
        return "noon"

    caller = Caller(Toolbox([slow, beep, get_time]), most_at_once=1, most_seconds=0.1)
    try:
        done = one(caller, call("slow"), call("beep"), call("get_time"))
    finally:
        gate.set()
    assert [entry.result.code for entry in done] == ["tool_timeout", None, None]


def test_results_are_cut_at_the_limit():
    def long():
        return "x" * 5_000

    (done,) = one(Caller(Toolbox([long]), most_tokens=200), call("long"))
    assert len(done.result.text) <= 1_600
    assert "5,000 characters" in done.result.text
    assert done.whole == long()


def test_a_call_of_an_async_tool_works_where_a_loop_is_running():
    @tool
    async def wait():
        await asyncio.sleep(0)
        return "done"

    async def inside():
        return one(Caller(Toolbox([wait])), call("wait"))[0].result.text

    assert asyncio.run(inside()) == "done"
