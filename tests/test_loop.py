"""The loop alone: stand-ins send and carry out, so that nothing but the loop decides."""

import json
from dataclasses import dataclass

import pytest

from nb_agent.adapters.chat_completions import stream as chat_stream
from nb_agent.errors import HistoryError, ProviderError
from nb_agent.events import Delta, Refuse, ReplyDone, RequestReady, Retrying, RunEnded, RunStarted, Step, ToolAsked, ToolDone
from nb_agent.loop import Limits, Target, pull, run
from nb_agent.messages import Message, Text, ToolCall, ToolResult
from nb_agent.values import from_json, to_json


@dataclass(frozen=True)
class Looked:
    call: ToolCall
    steps: tuple = (Step("known"), Step("parsed"), Step("fits schema"), Step("policy"))
    result: ToolResult | None = None
    asks: str | None = None


class Calls:
    """Answers every call with its arguments, last one first, as tools that run side by side may."""

    def __init__(self):
        self.made = []

    def prepare(self, call):
        return Looked(call)

    def carry_out(self, number, ready, *, idle=None):
        for looked in reversed(ready):
            if looked.result is None:
                self.made.append((looked.call.name, looked.call.arguments))
                result = ToolResult(looked.call.id, looked.call.name, (Text(looked.call.arguments),))
            else:
                result = looked.result
            yield ToolDone(number, result, looked.steps)


def said(text="", *calls, finish="stop"):
    message = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    }


def streamed(*texts, finish="stop"):
    events = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [f"data: {json.dumps(event)}\n\n".encode() for event in events]


class Server:
    """Gives the answers in turn; one that is an exception is raised in the middle."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        for chunk in self._chunks(self.answers[min(len(self.requests), len(self.answers)) - 1]):
            if isinstance(chunk, BaseException):
                raise chunk
            yield chunk

    @staticmethod
    def _chunks(answer):
        return answer if isinstance(answer, list) else [json.dumps(answer).encode()]


def go(server, prompt="hi", history=(), *, answer=lambda _: None, calls=None, **options):
    events = []
    running = run(prompt, history, target=Target("m"), send=server, calls=calls or Calls(), pause=lambda _: None, **options)
    pull(running, events.append, answer=answer)
    return events


def kinds(events):
    return [type(event) for event in events]


def roles(events):
    return [message.role for message in events[-1].history]


TWO_CALLS = said("", ("f", '{"a":1}'), ("g", '{"b":2}'), finish="tool_calls")


def test_a_text_ends_the_run():
    events = go(Server(said("hello")))
    assert kinds(events) == [RunStarted, RequestReady, ReplyDone, RunEnded]
    assert (events[-1].reason, events[-1].history[-1].text) == ("stop", "hello")
    assert events[-1].usage.input_tokens == 7


def test_calls_that_came_together_are_all_asked_then_run_and_their_results_go_back_in_the_order_of_the_calls():
    server = Server(TWO_CALLS, said("done"))
    events = go(server)
    assert kinds(events)[3:7] == [ToolAsked, ToolAsked, ToolDone, ToolDone]
    assert [event.result.call_id for event in events if isinstance(event, ToolDone)] == ["c1", "c0"]
    assert roles(events) == ["user", "assistant", "tool", "tool", "assistant"]
    assert [m.get("tool_call_id") for m in server.requests[1].body["messages"]] == [None, None, "c0", "c1"]


def test_every_event_comes_back_equal_from_its_json_form():
    for event in go(Server(TWO_CALLS, streamed("do", "ne"))):
        assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_the_pieces_of_a_stream_are_events_before_the_reply():
    events = go(Server(streamed("he", "llo")))
    assert ["".join(p.text for p in e.pieces) for e in events if isinstance(e, Delta)] == ["he", "llo"]
    assert events[-1].history[-1].text == "hello"


def test_a_refused_call_is_not_made_and_the_model_is_told_why():
    calls = Calls()
    events = go(
        Server(TWO_CALLS, said("ok")),
        calls=calls,
        answer=lambda e: Refuse("too risky") if isinstance(e, ToolAsked) and e.call.name == "g" else None,
    )
    assert calls.made == [("f", '{"a":1}')]
    result = events[-1].history[3].tool_result
    assert (result.code, json.loads(result.text)["error"]) == ("refused", "too risky")


def test_an_edited_call_runs_as_edited_under_the_id_that_the_model_gave():
    calls = Calls()
    edited = ToolCall("other", "f", '{"a":9}')
    events = go(Server(TWO_CALLS, said("ok")), calls=calls, answer=lambda e: edited if isinstance(e, ToolAsked) else None)
    assert calls.made == [("f", '{"a":9}'), ("f", '{"a":9}')]
    assert [message.tool_call_id for message in events[-1].history[2:4]] == ["c0", "c1"]


def test_a_result_that_is_given_as_the_answer_is_taken_and_nothing_runs():
    calls = Calls()
    given = ToolResult("", "", (Text("made up"),))
    events = go(Server(TWO_CALLS, said("ok")), calls=calls, answer=lambda e: given if isinstance(e, ToolAsked) else None)
    assert calls.made == []
    assert [message.text for message in events[-1].history[2:4]] == ["made up", "made up"]


def test_an_edited_request_is_the_one_that_is_sent():
    server = Server(said("ok"))
    go(
        server,
        answer=lambda e: type(e.request)("chat_completions", "/x", {"model": "other"}) if isinstance(e, RequestReady) else None,
    )
    assert server.requests[0].body == {"model": "other"}


@pytest.mark.parametrize("case", ["C04", "C06"])
def test_a_call_that_was_cut_off_is_never_made_and_the_model_is_told_to_use_smaller_pieces(case, cases):
    calls = Calls()
    events = go(Server(cases[case]["given"]["response"], said("ok")), calls=calls)
    assert calls.made == []
    result = next(event.result for event in events if isinstance(event, ToolDone))
    assert (result.call_id, result.code) == ("c1", "truncated_arguments")
    assert "cut off" in result.text
    assert "token limit" in result.text
    assert events[-1].reason == "stop"


def test_calls_in_a_message_that_finished_with_stop_are_made(cases):
    calls = Calls()
    events = go(Server(cases["C01"]["given"]["response"], said("ok")), calls=calls)
    assert sorted(calls.made) == [("get_mail", '{"n":2}'), ("get_mail", '{"n":3}')]
    assert roles(events) == ["user", "assistant", "tool", "tool", "assistant"]


def test_tool_calls_with_no_call_is_the_end(cases):
    server = Server(cases["C03"]["given"]["response"])
    events = go(server, limits=Limits(rounds=6))
    assert (events[-1].reason, len(server.requests)) == ("stop", 1)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_text_that_was_cut_or_filtered_is_kept_and_the_ending_is_named(finish):
    events = go(Server(said("Once", finish=finish)), limits=Limits(continuations=0))
    assert (events[-1].reason, events[-1].history[-1].text, events[-1].text) == (finish, "Once", "Once")


def test_a_text_that_was_cut_off_is_asked_to_go_on_and_put_together_without_the_overlap():
    server = Server(
        said("The quick brown fox ju", finish="length"), said("brown fox jumps over", finish="length"), said(" the dog.")
    )
    events = go(server)
    assert (events[-1].reason, events[-1].text) == ("stop", "The quick brown fox jumps over the dog.")
    assert [message.text for message in events[-1].history] == ["hi", events[-1].text]
    assert [m["role"] for m in server.requests[2].body["messages"]] == ["user", "assistant", "user"]
    assert server.requests[2].body["messages"][1]["content"] == "The quick brown fox jumps over"


def test_going_on_is_bounded():
    server = Server(said("and so on and so forth ", finish="length"))
    events = go(server, limits=Limits(rounds=50, continuations=2))
    assert (events[-1].reason, len(server.requests)) == ("length", 3)
    assert roles(events) == ["user", "assistant"]


def test_a_call_in_the_rest_of_an_answer_is_made():
    calls = Calls()
    server = Server(said("I will look", finish="length"), said(" it up.", ("f", "{}"), finish="tool_calls"), said("done"))
    events = go(server, calls=calls)
    assert calls.made == [("f", "{}")]
    assert [message.text for message in events[-1].history if message.role == "assistant"] == ["I will look it up.", "done"]


@pytest.mark.parametrize(("rest", "text"), [([], "Once upon"), (streamed(" a ti")[:1], "Once upon a ti")])
def test_an_interrupt_while_it_goes_on_keeps_what_had_come_and_not_the_question(rest, text):
    events = []
    server = Server(said("Once upon", finish="length"), [*rest, KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        pull(run("hi", target=Target("m"), send=server, calls=Calls()), events.append)
    assert [message.text for message in events[-1].history] == ["hi", text]


def test_a_paused_reply_is_sent_back_as_it_is_and_the_model_goes_on(monkeypatch):
    monkeypatch.setitem(chat_stream.FINISH, "pause_turn", "paused")
    server = Server(said("Searching", finish="pause_turn"), said("Moss is green."))
    events = go(server)
    assert (events[-1].reason, events[-1].text) == ("stop", "Moss is green.")
    assert [m["role"] for m in server.requests[1].body["messages"]] == ["user", "assistant"]
    forever = Server(said("Searching", finish="pause_turn"))
    assert go(forever, limits=Limits(rounds=4))[-1].reason == "max_rounds"


def test_calls_in_a_filtered_answer_are_never_made():
    calls = Calls()
    events = go(Server(said("", ("f", "{}"), finish="content_filter")), calls=calls)
    assert (calls.made, events[-1].reason, roles(events)) == ([], "content_filter", ["user", "assistant", "tool"])


def test_a_model_that_never_stops_asking_ends_at_the_limit_with_a_valid_history():
    events = go(Server(TWO_CALLS), limits=Limits(rounds=3))
    assert (events[-1].reason, roles(events)[-3:]) == ("max_rounds", ["assistant", "tool", "tool"])
    assert len([event for event in events if isinstance(event, RequestReady)]) == 3


def test_the_time_limit_ends_the_run_between_pieces_and_keeps_what_came():
    ticks = iter(range(1000))
    events = go(Server(streamed(*["x"] * 50)), clock=lambda: next(ticks), limits=Limits(seconds=20))
    assert events[-1].reason == "time_limit"
    assert set(events[-1].history[-1].text) == {"x"}


def test_a_failing_server_ends_the_run_with_an_event_and_then_the_error():
    events = []
    running = run("hi", target=Target("m"), send=Server([ProviderError("no slots", kind="overload")]), calls=Calls())
    with pytest.raises(ProviderError, match="no slots"):
        pull(running, events.append)
    assert (events[-1].reason, events[-1].error, events[-1].history) == ("error", "no slots", ())


def test_an_answer_that_breaks_off_is_asked_for_again_and_nothing_of_it_stays():
    server = Server(streamed("Let me ")[:1], streamed("hello"))
    events = go(server)
    assert kinds(events) == [RunStarted, RequestReady, Delta, Retrying, Delta, ReplyDone, RunEnded]
    assert (len(server.requests), events[-1].text) == (2, "hello")
    assert server.requests[0] is server.requests[1]


def test_a_call_of_an_answer_that_breaks_off_never_runs_and_that_of_the_next_runs_once():
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    half = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'tool_calls': [call]}}]})}\n\n".encode()]
    calls = Calls()
    go(Server(half, said("", ("f", '{"a":1}'), finish="tool_calls"), said("done")), calls=calls)
    assert calls.made == [("f", '{"a":1}')]


def test_asking_again_is_bounded_and_the_last_text_is_kept():
    events, server = [], Server(streamed("Let me ")[:1])
    pauses = []
    with pytest.raises(ProviderError) as caught:
        pull(run("hi", target=Target("m"), send=server, calls=Calls(), pause=pauses.append), events.append)
    assert (caught.value.kind, len(server.requests), pauses) == ("stream_interrupted", 3, [0.25, 0.5])
    assert [message.text for message in events[-1].history] == ["hi", "Let me "]


def test_whatever_else_goes_wrong_the_run_has_an_end_and_a_valid_history():
    class Broken(Calls):
        def carry_out(self, number, ready, *, idle=None):
            yield from list(super().carry_out(number, ready))[:1]
            raise RuntimeError("a fault of ours")

    events = []
    with pytest.raises(RuntimeError, match="a fault of ours"):
        pull(run("hi", target=Target("m"), send=Server(TWO_CALLS), calls=Broken()), events.append)
    assert (events[-1].reason, events[-1].error) == ("error", "a fault of ours")
    assert [message.tool_call_id for message in events[-1].history[2:]] == ["c0", "c1"]


def test_an_error_in_the_middle_of_a_stream_keeps_the_text_that_had_come():
    events = []
    answer = [*streamed("Let me ")[:1], ProviderError("cable cut", kind="network")]
    with pytest.raises(ProviderError):
        pull(run("hi", target=Target("m"), send=Server(answer), calls=Calls()), events.append)
    assert [message.text for message in events[-1].history] == ["hi", "Let me "]


def interrupted(server, when, *, calls=None):
    """The events of a run whose observer is interrupted at the first event that ``when`` picks."""
    events, done = [], []

    def observe(event):
        events.append(event)
        if when(event) and not done:
            done.append(True)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(run("hi", target=Target("m"), send=server, calls=calls or Calls()), observe)
    return events


def test_an_interrupt_before_anything_came_takes_the_prompt_back():
    events = interrupted(Server(said("x")), lambda e: isinstance(e, RequestReady))
    assert (events[-1].reason, events[-1].history) == ("cancelled", ())


def test_an_interrupt_in_the_middle_of_a_stream_keeps_the_text_that_had_come():
    events = interrupted(Server(streamed("he", "llo")), lambda e: isinstance(e, Delta))
    assert [message.text for message in events[-1].history] == ["hi", "he"]


@pytest.mark.parametrize("kind", [ToolAsked, ToolDone])
def test_an_interrupt_among_calls_gives_every_call_exactly_one_result(kind):
    events = interrupted(Server(TWO_CALLS), lambda e: isinstance(e, kind))
    assert [message.tool_call_id for message in events[-1].history[2:]] == ["c0", "c1"]
    assert events[-1].history[2].tool_result.code == "cancelled"
    again = go(Server(said("fine")), "and now?", events[-1].history)
    assert again[-1].reason == "stop"


def test_an_interrupt_inside_the_wait_for_the_server_ends_the_run_in_the_same_way():
    events = []
    with pytest.raises(KeyboardInterrupt):
        pull(run("hi", target=Target("m"), send=Server([*streamed("he")[:1], KeyboardInterrupt()]), calls=Calls()), events.append)
    assert (events[-1].reason, events[-1].history[-1].text) == ("cancelled", "he")


def test_a_history_that_cannot_be_sent_is_an_error_before_anything_is():
    server = Server(said("x"))
    with pytest.raises(HistoryError):
        go(server, history=[Message("tool", (ToolResult("x", "f"),))])
    assert server.requests == []


def test_what_was_mended_in_the_history_is_said_with_the_first_request():
    events = go(Server(said("x")), history=[Message.of("user", "before")])
    assert "joined" in events[1].notices[0]
    assert events[-1].history[0].text == "before\n\nhi"


def test_a_message_of_the_history_is_the_same_object_in_every_request():
    server = Server(TWO_CALLS, said("done"))
    go(server)
    first, second = (request.body["messages"] for request in server.requests)
    assert first[0] is second[0]


def test_an_answer_that_fills_the_window_ends_as_cut_off_and_keeps_its_text():
    from nb_agent import Agent

    agent = Agent("mock:window=30")
    run = agent.run("hello", view=False)
    assert (run.reason, run.text) == ("length", run.replies[0].message.text)
    assert [message.role for message in agent.history] == ["user", "assistant"]
