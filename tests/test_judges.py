"""Servers that others wrote judge our client: aimock (npm) answers in all four formats, llmock (PyPI) fails in every way it knows.

The other tests put our client in front of our own mock model; a misreading shared by both ends would go unseen there. aimock is
started as a child process, llmock in a thread of this one, both on a free port of this machine.
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from nb_agent import Agent, providers, retrying
from nb_agent.errors import PROVIDER_KINDS, ProviderError
from nb_agent.events import Retrying
from nb_agent.messages import ToolResult
from nb_agent.retrying import Waits
from nb_agent.transport import Transport

JUDGES = Path(__file__).parent / "js" / "judges"
KEY = "sk-judged-0123456789"
WIRES = ["chat_completions", "responses", "anthropic_messages", "gemini_generate"]
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
in_each_format = pytest.mark.parametrize("wire", WIRES)


class Tools:
    """Tools that write down what they were called with."""

    def __init__(self):
        self.ran = []
        self.meanwhile = lambda: None

    def all(self):
        def get_weather(city: str) -> dict:
            """Get the weather of a city.

            Args:
                city: its name.
            """
            self.ran.append(city)
            self.meanwhile()
            return {"city": city, "temperature": 18}

        def get_time() -> str:
            """Get the time."""
            self.ran.append("time")
            return "12:00"

        def search_order(order_id: str) -> dict:
            """Look up an order.

            Args:
                order_id: its id.
            """
            self.ran.append(order_id)
            return {"order_id": order_id, "customer_id": "C-204"}

        def get_customer(customer_id: str) -> dict:
            """Look up a customer.

            Args:
                customer_id: its id.
            """
            self.ran.append(customer_id)
            return {"name": "Ann"}

        return [get_weather, get_time, search_order, get_customer]


@pytest.fixture
def tools():
    return Tools()


def asked(agent, prompt):
    """The run that a prompt leads to, and the error that it ended with, if any; its history is whole in both cases."""
    error = None
    try:
        agent.run(prompt, view=False)
    except ProviderError as caught:
        error = caught
        assert error.kind in PROVIDER_KINDS
        assert "\n" not in str(error)
        assert KEY not in str(error)
    run = agent.last_run
    calls = [call.id for message in run.messages for call in message.tool_calls]
    results = [part.call_id for message in run.messages for part in message.parts if isinstance(part, ToolResult)]
    assert calls == results
    assert (run.reason == "error") == (error is not None)
    return run, error


# -------------------------------------------------------------------------------------------------- aimock, a child process

MODELS = {  # names of models that reason: aimock gives no others their thoughts
    "chat_completions": "o4-mini",
    "responses": "o4-mini",
    "anthropic_messages": "claude-sonnet-4-5",
    "gemini_generate": "gemini-2.5-pro",
}


def installed():
    """Fetch aimock as the lock file has it, once; two test processes at a time do no harm."""
    there = JUDGES / "node_modules"
    if (there / "@copilotkit" / "aimock").exists():
        return
    with tempfile.TemporaryDirectory(dir=JUDGES, prefix="node_modules-") as made:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(JUDGES / name, made)
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise RuntimeError(f"npm ci failed: {done.stderr.strip()[-300:]}")
        with suppress(OSError):  # another process was quicker
            (Path(made) / "node_modules").rename(there)


@contextmanager
def running(command):
    """The first line that a child process prints; it ends when its standard input does."""
    child = subprocess.Popen(command, cwd=JUDGES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert select.select([child.stdout], [], [], 20)[0], "the server says nothing"
        yield child.stdout.readline().strip()
    finally:
        child.stdin.close()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(5)
        child.stdout.close()


@pytest.fixture(scope="module")
def aimock():
    try:
        installed()
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"aimock cannot be fetched ({error}); try npm ci --prefix tests/js/judges")
    with running(["node", "aimock.mjs", "fixtures.json"]) as url:
        assert url.startswith("http://127.0.0.1:")
        yield url


def heard(url):
    """The messages of the last request as aimock read them, whatever their format."""
    return httpx.get(f"{url}/__aimock/journal", timeout=5).json()[-1]["body"]["messages"]


@pytest.fixture
def ask(aimock, tools):
    def ask(prompt, wire, *, stream=True):
        agent = Agent(
            MODELS[wire],
            tools.all(),
            "Be brief.",
            base_url=aimock,
            wire=wire,
            stream=stream,
            api_key=KEY,
            time_limit=5,
            max_rounds=4,
        )
        return asked(agent, prompt)

    return ask


@both_ways
@in_each_format
def test_a_text_of_aimock_is_read_to_the_letter(ask, aimock, wire, stream):
    run, error = ask("Say hello", wire, stream=stream)
    assert error is None
    assert (run.reason, run.text) == ("stop", 'Hello — 你好, wörld 👋, "quoted" and\na second line.')
    assert heard(aimock) == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello"}]


FLOWS = {
    "single": ("What is the weather in Paris?", [["Paris"]], "It is 18 degrees in Paris."),
    "parallel": ("What is the weather in Rome and 上海?", [["Rome", "上海", "time"]], "Both are at 18 degrees."),
    "dependent": ("Who is the customer of order ORD-1001?", [["ORD-1001"], ["C-204"]], "The customer is Ann."),
    "calls before words": ("Call first, then talk", [["Rome", "Oslo"]], "Done."),
}


@both_ways
@in_each_format
@pytest.mark.parametrize("flow", FLOWS)
def test_calls_of_aimock_run_and_it_reads_their_results(ask, aimock, tools, flow, wire, stream):
    prompt, rounds, text = FLOWS[flow]
    run, error = ask(prompt, wire, stream=stream)
    assert error is None
    assert (run.reason, run.text) == ("stop", text)
    assert [len(reply.message.tool_calls) for reply in run.replies] == [*map(len, rounds), 0]
    assert sorted(tools.ran) == sorted(name for names in rounds for name in names)
    results = [message for message in heard(aimock) if message["role"] == "tool"]
    given = [message["content"] for message in results]
    if wire == "gemini_generate":  # a result is an object there, and aimock keeps it as it is
        given = [json.loads(text)["output"] for text in given]
    assert given == [part.text for message in run.messages for part in message.parts if isinstance(part, ToolResult)]
    assert len({message["tool_call_id"] for message in results}) == len(results)


@both_ways
@in_each_format
def test_a_call_of_aimock_runs_where_the_finish_reason_says_stop(ask, tools, wire, stream):
    run, error = ask("Stop with a call", wire, stream=stream)
    assert error is None
    assert (run.reason, run.text, tools.ran) == ("stop", "Called all the same.", ["Paris"])


@both_ways
@in_each_format
def test_thoughts_of_aimock_go_back_as_they_came(ask, wire, stream):
    run, error = ask("Think first", wire, stream=stream)
    assert error is None
    assert (run.reason, run.text) == ("stop", "Thought and done.")
    body = run.requests[-1].body
    thought = "The city is Paris, so I ask for Paris."
    kept = {
        "chat_completions": lambda: body["messages"][2]["reasoning_content"] == thought,
        "anthropic_messages": lambda: (
            body["messages"][1]["content"][0]
            == {"type": "thinking", "thinking": thought, "signature": "aimock-placeholder-signature"}
        ),
        "responses": lambda: (
            [body["input"][1][key] for key in ("type", "summary")] == ["reasoning", [{"type": "summary_text", "text": thought}]]
        ),
        "gemini_generate": lambda: (
            "functionCall" in json.dumps(body["contents"][1])
        ),  # a thought without a signature need not go back
    }
    assert kept[wire]()


@both_ways
@in_each_format
def test_a_text_that_aimock_cuts_off_goes_on_without_the_overlap(ask, wire, stream):
    run, error = ask("Write without end", wire, stream=stream)
    assert error is None
    assert (run.reason, run.text) == ("stop", "One two three four five six seven eight.")


@both_ways
@in_each_format
def test_what_aimock_filters_is_no_answer(ask, wire, stream):
    run, error = ask("Something not allowed", wire, stream=stream)
    failed = wire == "responses"  # there aimock writes a failed response with no reason
    assert (run.reason, run.text) == ("error" if failed else "content_filter", "")
    assert (error.kind if error else None) == ("server" if failed else None)


@in_each_format
def test_a_stream_that_aimock_breaks_off_is_no_answer(ask, wire):
    run, error = ask("Break off in the text", wire)
    assert error.kind == "stream_interrupted"
    assert "One two three four five six seven eight nine".startswith(run.text)
    assert run.text


@pytest.mark.parametrize("wire", WIRES[:3])  # Gemini sends a call in one piece
def test_a_call_in_which_aimock_breaks_off_is_not_run(ask, tools, wire):
    _, error = ask("Break off in a call", wire)
    assert (error.kind, tools.ran) == ("stream_interrupted", [])


@both_ways
@in_each_format
def test_a_missing_credit_is_told_from_too_many_requests(ask, wire, stream):
    run, error = ask("Out of credit", wire, stream=stream)
    assert (error.kind, error.status) == ("billing", 429)
    assert "You exceeded your current quota" in str(error)
    assert not any(isinstance(event, Retrying) for event in run.events)


# -------------------------------------------------------------------------------------------------- llmock, and its verdict

PLACES = {
    "chat_completions": "/v1",
    "responses": "/v1",
    "anthropic_messages": "/anthropic/v1",
    "gemini_generate": "/gemini/v1beta",
}
TEXT = "One two three four five six"
STALL = Waits(5, 5, 0.2)
SHORT = Waits(5, 0.3, 5)


@pytest.fixture
def tell(llmock, tools, monkeypatch):
    """Puts a question to llmock; what it does with it has been queued before."""
    monkeypatch.setattr(retrying, "FIRST", 0.08)

    def tell(wire, *, stream=True, time_limit=5.0, waits=None):
        monkeypatch.setattr(providers, "Transport", partial(Transport, waits=waits))
        where = llmock.url + PLACES[wire]
        agent = Agent("any-model", tools.all(), base_url=where, wire=wire, stream=stream, api_key=KEY, time_limit=time_limit)
        began = time.monotonic()
        run, error = asked(agent, "What is the weather in Paris?")
        assert time.monotonic() - began < time_limit + 1
        return run, error

    return tell


def findings(llmock):
    return [finding.code for finding in llmock.verdict().findings]


@both_ways
@in_each_format
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_server_that_fails_for_a_moment_is_asked_again(llmock, tell, tools, status, wire, stream):
    def fail():
        llmock.fail(status, times=2, retry_after=0.01)

    fail()
    tools.meanwhile = fail  # and again in the round after the call
    llmock.call_tool("get_weather", {"city": "Paris"})
    run, error = tell(wire, stream=stream)
    assert error is None
    assert (run.reason, tools.ran) == ("stop", ["Paris"])
    assert [record.status for record in llmock.requests] == [status, status, 200] * 2
    assert findings(llmock) == []


@in_each_format
def test_the_wait_that_a_server_asks_for_is_kept(llmock, tell, wire):
    llmock.rate_limit(times=1, retry_after=0.4)
    run, _ = tell(wire)
    waits = [event.seconds for event in run.events if isinstance(event, Retrying)]
    assert waits == [pytest.approx(0.4)]
    assert findings(llmock) == []


KINDS = {
    400: "bad_request",
    401: "authentication",
    402: "billing",
    403: "authentication",
    404: "not_found",
    413: "context_length",
    422: "bad_request",
    501: "bad_request",
}


@both_ways
@in_each_format
@pytest.mark.parametrize("status", KINDS)
def test_a_refusal_is_final(llmock, tell, tools, status, wire, stream):
    llmock.fail(status, times=None)
    _, error = tell(wire, stream=stream)
    assert (error.kind, error.status, error.retryable) == (KINDS[status], status, False)
    assert (len(llmock.requests), tools.ran, findings(llmock)) == (1, [], [])


@both_ways
@in_each_format
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (500, "server"), (503, "overload"), (504, "timeout")])
def test_a_server_that_stays_down_is_given_up_after_three_requests(llmock, tell, status, kind, wire, stream):
    llmock.fail(status, times=None, retry_after=0.02)
    _, error = tell(wire, stream=stream)
    assert (error.kind, error.status, error.retryable) == (kind, status, True)
    assert "tried 3 times" in str(error).lower()
    assert len(llmock.requests) == 3
    assert findings(llmock) == []


@both_ways
@in_each_format
def test_a_quota_that_is_spent_is_said_with_the_time_to_come_back(llmock, tell, tools, wire, stream):
    llmock.limits(rpm=1)
    _, error = tell(wire, stream=stream)
    assert error.kind == "rate_limit"
    assert error.retry_after == pytest.approx(60, abs=2)
    assert "come back in" in str(error)
    assert (len(tools.ran), len(llmock.requests)) == (1, 2)
    llmock.assert_resilient()  # a wait of a minute is longer than the run may last: "gave_up", which is no failure


@both_ways
@in_each_format
def test_a_prompt_that_is_too_long_is_told_from_other_refusals(llmock, tell, wire, stream):
    llmock.limits(context_window=3)
    _, error = tell(wire, stream=stream)
    assert (error.kind, error.status) == ("context_length", 400)
    assert findings(llmock) == []


@both_ways
@in_each_format
def test_an_answer_that_does_not_come_is_asked_for_again(llmock, tell, wire, stream):
    llmock.delay(0.5)
    run, error = tell(wire, stream=stream, waits=SHORT)
    assert error is None
    assert run.reason == "stop"
    assert [event.attempt for event in run.events if isinstance(event, Retrying)] == [1]
    assert findings(llmock) == []


@in_each_format
def test_an_answer_that_never_comes_is_a_timeout(llmock, tell, wire):
    llmock.delay(0.3, times=None)
    _, error = tell(wire, waits=Waits(5, 0.1, 5))
    assert error.kind == "timeout"
    assert len(llmock.requests) == 3
    assert findings(llmock) == []


@in_each_format
def test_the_time_limit_of_a_run_ends_the_wait_for_an_answer(llmock, tell, wire):
    llmock.delay(5, times=None)
    run, error = tell(wire, time_limit=0.1)
    assert (run.reason, error) == ("time_limit", None)


@in_each_format
def test_a_slow_first_token_is_asked_for_again(llmock, tell, tools, wire):
    llmock.slow_first_token(0.5)
    run, error = tell(wire, waits=SHORT)
    assert error is None
    assert (run.reason, len(tools.ran)) == ("stop", 1)
    assert findings(llmock) == []


@in_each_format
def test_a_stream_that_stalls_is_a_timeout_or_is_asked_for_again(llmock, tell, wire):
    llmock.reply(TEXT, times=None).stall(after_chunks=2, seconds=1.5)
    run, error = tell(wire, waits=STALL)
    assert error.kind == "timeout" if error else run.text == TEXT
    assert findings(llmock) == []


@in_each_format
def test_a_connection_that_is_dropped_before_the_first_byte_is_made_again(llmock, tell, tools, wire):
    llmock.call_tool("get_weather", {"city": "Paris"}).disconnect(after_chunks=0, times=2)
    llmock.call_tool("get_weather", {"city": "Paris"}, times=2)  # a request that was dropped has taken its reply along
    tools.meanwhile = lambda: llmock.disconnect(after_chunks=0, times=1)
    run, error = tell(wire)
    assert error is None
    assert (run.reason, tools.ran) == ("stop", ["Paris"])
    assert findings(llmock) == []


BROKEN = {
    "disconnect": {"stream_interrupted"},
    "truncate": {"stream_interrupted"},
    "corrupt": {"protocol", "stream_interrupted"},
}


@in_each_format
@pytest.mark.parametrize("fault", BROKEN)
def test_a_text_that_breaks_after_any_chunk_is_whole_or_an_error(llmock, tell, fault, wire):
    noticed = 0
    for chunk in range(1, 16):
        llmock.reset().reply(TEXT, times=None)
        getattr(llmock, fault)(after_chunks=chunk)
        run, error = tell(wire)
        if error is None:
            assert (run.reason, run.text) == ("stop", TEXT), chunk
            noticed += len(llmock.requests) > 1
        else:
            noticed += 1
            assert error.kind in BROKEN[fault], (chunk, error)
            assert TEXT.startswith(run.text), chunk
        if llmock.requests[0].fault is None:
            break  # there are no more chunks than that
    assert chunk > 5
    assert noticed


@in_each_format
@pytest.mark.parametrize("fault", BROKEN)
def test_a_call_that_breaks_after_any_chunk_is_whole_or_not_run(llmock, tell, tools, fault, wire):
    given = {"city": "Llanfairpwllgwyngyll"}
    for chunk in range(16):
        llmock.reset().call_tool("get_weather", given)
        getattr(llmock, fault)(after_chunks=chunk)
        tools.ran.clear()
        run, error = tell(wire)
        assert tools.ran in ([], [given["city"]], ["mock-city"]), chunk  # llmock's own call where the scripted one is spent
        if error is None:
            assert (run.reason, len(tools.ran)) == ("stop", 1), chunk
        else:
            assert error.kind in BROKEN[fault], (chunk, error)
            assert tools.ran == []
        if llmock.requests[0].fault is None:
            break


@in_each_format
@pytest.mark.parametrize("fault", BROKEN)
def test_a_stream_that_breaks_after_a_call_runs_it_no_second_time(llmock, tell, tools, fault, wire):
    def break_the_answer():
        llmock.reply(TEXT, times=None)
        getattr(llmock, fault)(after_chunks=3)

    llmock.call_tool("get_weather", {"city": "Paris"})
    tools.meanwhile = break_the_answer
    run, error = tell(wire)
    assert tools.ran == ["Paris"]
    assert error.kind in BROKEN[fault] if error else run.text == TEXT


@in_each_format
@pytest.mark.parametrize("fault", BROKEN)
def test_the_verdict_on_a_stream_that_breaks_off_has_no_finding(llmock, tell, fault, wire):
    llmock.reply(TEXT, times=None).pace(20)  # as a real server: it still writes when the client has seen the fault and leaves
    getattr(llmock, fault)(after_chunks=2)
    run, error = tell(wire)
    assert findings(llmock) == []
    assert (error, run.text) == (None, TEXT)


@in_each_format
def test_an_empty_stream_is_asked_for_again(llmock, tell, wire):
    llmock.truncate(after_chunks=0)
    run, error = tell(wire)
    assert error is None
    assert run.reason == "stop"
    assert findings(llmock) == []


@both_ways
@in_each_format
@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_a_call_that_cannot_run_is_a_result_for_the_model(llmock, tell, tools, kind, wire, stream):
    llmock.break_tool_call(kind)
    run, error = tell(wire, stream=stream)
    assert error is None
    assert (run.reason, tools.ran) == ("stop", [])
    assert [result.failed for result in run.tool_results] == [True]
    assert findings(llmock) == []


@pytest.mark.parametrize(("provider", "wire"), [("anthropic", "anthropic_messages"), ("gemini", "gemini_generate")])
def test_the_address_that_the_vendors_own_client_takes_is_taken(llmock, tools, provider, wire):
    agent = Agent("any-model", tools.all(), base_url=llmock.base_url(provider), wire=wire, api_key=KEY, time_limit=5)
    run, error = asked(agent, "What is the weather in Paris?")
    assert (error, run.reason) == (None, "stop")


@in_each_format
def test_a_key_that_is_a_word_changes_nothing_of_the_answer(llmock, wire):
    llmock.reply("A text about ollama.")
    agent = Agent("any-model", base_url=llmock.url + PLACES[wire], wire=wire, api_key="ollama", time_limit=5)
    run, error = asked(agent, "Say something")
    assert (error, run.text) == (None, "A text about ollama.")
