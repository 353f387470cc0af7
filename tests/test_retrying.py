"""What is tried again and after how long, with a clock that only sleep moves; and how a run and its views show it."""

import json

import pytest
from samples import request

from nb_agent.errors import PROVIDER_KINDS, ProviderError, TimeLimitError
from nb_agent.events import ReplyDone, RequestReady, Retrying, ToolDone, Waiting
from nb_agent.loop import Limits, Target, pull, run
from nb_agent.messages import ToolCall
from nb_agent.retrying import FIRST, JITTER, LONGEST, MOST, Patience, asked_wait, noted
from nb_agent.run import Run
from nb_agent.tools.calling import Caller
from nb_agent.tools.toolbox import Toolbox
from nb_agent.values import from_json, to_json
from nb_agent.views import html, text
from nb_agent.views.fold import Fold


def waits_of(error, *, retries=2, left=1e9, chance=0.0, works_after=99):
    """The waits before each repeat, and how it ended."""
    slept, begun = [], []

    def begin():
        begun.append(1)
        if len(begun) <= works_after:
            raise ProviderError(str(error), kind=error.kind, retryable=error.retryable, retry_after=error.retry_after)
        return "answer"

    patience = Patience(retries, slept.append, lambda: chance)
    waiting, said = patience.until_begun(begin, lambda: left - sum(slept)), []
    try:
        while True:
            said.append(next(waiting))
    except StopIteration as end:
        return said, slept, end.value
    except ProviderError as last:
        return said, slept, last


def fault(kind="overload", **more):
    return ProviderError("busy", kind=kind, **more)


def test_each_wait_is_twice_the_one_before_up_to_the_longest():
    said, slept, _ = waits_of(fault(), retries=7)
    assert [wait.seconds for wait in said] == [0.5, 1, 2, 4, 8, 8, 8]
    assert sum(slept) == pytest.approx(31.5)
    assert (said[0].seconds, said[-1].seconds) == (FIRST, MOST)


def test_chance_only_makes_a_wait_shorter():
    said, _, _ = waits_of(fault(), chance=1.0, retries=1)
    assert said[0].seconds == FIRST * (1 - JITTER)


def test_what_a_server_asks_for_is_kept_to_the_letter():
    assert waits_of(fault(retry_after=7.0), chance=1.0, retries=1)[0] == [Waiting("overload (busy)", 7.0, 1)]


def test_it_goes_on_with_the_answer_when_one_comes():
    said, _, answer = waits_of(fault(), works_after=1)
    assert (len(said), answer) == (1, "answer")


@pytest.mark.parametrize(("kind", "again"), PROVIDER_KINDS.items())
def test_only_kinds_that_can_get_better_are_tried_again(kind, again):
    said, _, last = waits_of(fault(kind))
    assert (len(said), last.kind) == (2 if again else 0, kind)


def test_no_retries_means_one_attempt():
    assert waits_of(fault(), retries=0)[0] == []


def test_nothing_is_waited_for_that_the_run_has_no_time_for():
    said, _, last = waits_of(fault(retry_after=2.0), left=3.0)
    assert [wait.attempt for wait in said] == [1]
    assert str(last) == "busy; tried 2 times; the server asks to come back in 2 s"


def test_the_longest_wait_that_is_begun():
    assert len(waits_of(fault(retry_after=LONGEST), retries=1)[0]) == 1
    assert waits_of(fault(retry_after=LONGEST + 0.1), retries=1)[0] == []


def test_a_sleep_is_cut_into_slices_that_an_interrupt_can_end():
    assert max(waits_of(fault(retry_after=3.0), retries=1)[1]) <= 0.1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 99 Foo 1970"}, None),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 1970 01:01:40 +0100"}, 0.0),
    ],
)
def test_headers_that_cannot_be_read_ask_for_nothing(headers, seconds):
    assert asked_wait(headers, 100.0) == seconds


def test_an_account_without_credit_is_never_tried_again_whatever_the_header_says():
    assert not noted(fault("billing"), {"x-should-retry": "true"}, 0.0).retryable


# ----------------------------------------------------------------------------------------------------------------- in a run


def server(script):
    """A sender that gives these in turn: a body, or an error and then, after a wait, the next."""
    sent, left = [], list(script)

    def send(asked):
        def begin():
            sent.append(asked)
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        body = yield from Patience(2, lambda _: None, lambda: 0.0).until_begun(begin, lambda: 1e9)
        yield json.dumps(body).encode()

    return send, sent


def said(words="", *calls):
    message = {"content": words or None}
    if calls:
        message["tool_calls"] = [{"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}]}


def test_a_request_that_failed_after_a_tool_ran_is_sent_again_and_the_tool_is_not_run_again(cases):
    expected, posted = cases["H08"]["expect"], []

    def post_letter(to: str) -> str:
        """Post a letter."""
        posted.append(to)
        return f"posted no. {len(posted)}"

    call = ToolCall("c1", "post_letter", '{"to": "Ada"}')
    send, sent = server([said("", call), ProviderError("HTTP 500", kind="server", status=500), said("done")])
    box, events = Toolbox([post_letter]), []
    pull(run("Write to Ada", target=Target("m"), send=send, calls=Caller(box), definitions=box.definitions), events.append)
    assert (posted, len(sent), events[-1].history[-1].text) == (expected["posted"], expected["model_calls"], expected["final"])
    assert sent[1].body == sent[2].body
    assert sent[1].body["messages"][-1]["content"] == "posted no. 1"
    assert [type(event) for event in events].count(ToolDone) == 1


def test_each_wait_is_an_event_between_the_request_and_its_reply():
    send, _ = server([fault("rate_limit", retry_after=2.0), said("ok")])
    events = []
    pull(run("hi", target=Target("m"), send=send, calls=Caller(Toolbox([]))), events.append)
    assert [type(event) for event in events[1:4]] == [RequestReady, Retrying, ReplyDone]
    assert events[2].seconds == 2.0
    assert from_json(json.loads(json.dumps(to_json(events[2])))) == Retrying(1, "rate limit (busy)", 2.0, 1)


def test_a_sender_that_is_interrupted_or_fails_is_closed_at_once():
    closed, kept = [], []

    def send(_):
        try:
            yield Waiting("busy", 1.0, 1)
            yield b"data: {}\n\n"
        finally:
            closed.append(True)

    def observe(event):
        if isinstance(event, Retrying):
            raise KeyboardInterrupt

    try:
        pull(run("hi", target=Target("m"), send=send, calls=Caller(Toolbox([]))), observe)
    except KeyboardInterrupt as interrupt:
        kept.append(interrupt)
    assert (len(kept), closed) == (1, [True])


@pytest.mark.parametrize("error", [TimeLimitError("over"), ProviderError("slow", kind="timeout")])
def test_a_time_out_that_comes_of_the_run_s_own_limit_ends_the_run_as_such_and_is_no_error(error):
    now, events = [0.0], []

    def send(_):
        now[0] = 31.0
        raise error
        yield b""

    pull(run("hi", target=Target("m"), send=send, calls=Caller(Toolbox([])), clock=lambda: now[0]), events.append)
    assert (events[-1].reason, events[-1].error, events[-1].history) == ("time_limit", None, ())


def test_a_time_out_before_the_run_s_limit_is_an_error():
    events = []

    def send(_):
        raise ProviderError("slow", kind="timeout")
        yield b""

    running = run("hi", target=Target("m"), send=send, calls=Caller(Toolbox([])), limits=Limits(seconds=None))
    with pytest.raises(ProviderError, match="slow"):
        pull(running, events.append)
    assert events[-1].reason == "error"


# ----------------------------------------------------------------------------------------------------------------- in the views


def test_the_views_show_one_line_for_each_wait():
    fold = Fold()
    for event in (RequestReady(1, request([])), Retrying(1, "rate limit (<b>slow</b>)", 2.0, 1), Retrying(1, "overload", 0.5, 2)):
        fold.apply(event)
    first = {"reason": "rate limit (<b>slow</b>)", "seconds": 2.0, "attempt": 1}
    assert fold.state["rounds"][0]["retries"] == [first, {"reason": "overload", "seconds": 0.5, "attempt": 2}]
    assert "        waited 2.00 s: rate limit (<b>slow</b>)\n        waited 0.50 s: overload\n" in text.text(fold.state)
    assert "waited 2.00 s: rate limit (&lt;b&gt;slow&lt;/b&gt;)" in html.page(fold.state)


def test_a_run_with_waits_is_saved_and_loaded(tmp_path):
    send, _ = server([fault(), said("ok")])
    kept = Run()
    pull(run("hi", target=Target("m"), send=send, calls=Caller(Toolbox([]))), kept.events.append)
    kept.save(tmp_path / "run.jsonl")
    assert Run.load(tmp_path / "run.jsonl").events == kept.events
