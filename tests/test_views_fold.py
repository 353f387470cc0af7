"""fold.py: the state and the changes that lead to it."""

import copy
import json

import pytest
from samples import ANSWER, PROMPT, bodies, failing_events, fold, hostile_events, request, state_of, three_round_events

from nb_agent.events import Delta, ReplyDone, RequestReady, RunEnded, RunStarted, Step, ToolAsked, ToolDone
from nb_agent.messages import Image, Message, Piece, Reply, Text, ToolCall, ToolResult
from nb_agent.usage import Usage
from nb_agent.views.fold import Fold, change_state
from nb_agent.views.shown import MOST_CHARACTERS

RUNS = [three_round_events, failing_events, hostile_events]


def one_round(*events):
    folding = Fold()
    for event in (RequestReady(1, request([])), *events):
        folding.apply(event)
    return folding.state["rounds"][0]


@pytest.mark.parametrize("events", RUNS)
def test_the_changes_lead_from_the_empty_state_to_the_whole(events):
    state, changes = fold(events())
    copied = Fold().state
    for some in changes:
        change_state(copied, some)
    assert copied == state


@pytest.mark.parametrize("events", RUNS)
def test_changes_that_were_held_back_still_lead_there(events):
    folding, held, copied = Fold(), [], Fold().state
    for event in events():
        held += folding.apply(event)
    change_state(copied, json.loads(json.dumps(held)))
    assert copied == folding.state


def test_changes_are_not_changed_by_later_events():
    folding = Fold()
    kept = [folding.apply(event) for event in three_round_events()]
    assert kept == fold(three_round_events(), counted=False)[1]


def test_two_states_that_take_the_same_changes_share_nothing():
    one, two, changes = {}, {}, [["set", ["live"], {"text": ""}], ["add", ["live", "text"], "a"]]
    change_state(one, changes)
    change_state(two, changes)
    assert (one, two) == ({"live": {"text": "a"}}, {"live": {"text": "a"}})


def test_request_bodies_stand_once_and_come_back_whole():
    sent = [event.request.body for event in three_round_events() if isinstance(event, RequestReady)]
    state = state_of(three_round_events())
    assert bodies(state) == sent
    assert state["rounds"][1]["request"]["change"] == {"same": {"messages": 2}, "new": {"messages": sent[1]["messages"][2:]}}


def test_the_state_grows_with_the_run_and_not_with_its_square():
    def size(rounds):
        messages, folding = [], Fold()
        for number in range(1, rounds + 1):
            messages = [*messages, {"role": "user", "content": "x" * 500}]
            folding.apply(RequestReady(number, request(messages)))
        return len(json.dumps(folding.state))

    assert size(80) - size(40) == pytest.approx(size(40) - size(0), rel=0.15)


def test_a_streamed_reply_is_live_until_it_is_whole():
    pieces = Delta(1, (Piece("thinking", "hm"), Piece("call", "f"), Piece("arguments", "{"), Piece("text", "a")))
    more = Delta(1, (Piece("text", "b"), Piece("call", "g", 1), Piece("refusal", "!")))
    entry = one_round(pieces, more)
    assert entry["live"] == {
        "text": "ab!",
        "thinking": "hm",
        "calls": [{"name": "f", "arguments": "{"}, {"name": "g", "arguments": ""}],
    }
    whole = one_round(pieces, more, ReplyDone(1, Reply(Message.of("assistant", "ab!"), "stop", "end", Usage(1)), 0.5))
    assert whole["live"] is None
    assert (whole["reply"]["text"], whole["reply"]["raw_finish"], whole["reply"]["usage"]["output"]) == ("ab!", "end", None)


def test_other_choices_are_not_mixed_into_the_live_text():
    assert one_round(Delta(1, (Piece("text", "a"), Piece("text", "B", choice=1))))["live"]["text"] == "a"


def test_arguments_that_come_before_a_name_do_not_break_the_view():
    live = one_round(Delta(1, (Piece("arguments", "{}", 1),)))["live"]
    assert live["calls"][1]["arguments"] == "{}"


def test_calls_that_end_in_another_order_keep_their_results():
    calls = state_of(three_round_events())["rounds"][0]["calls"]
    assert [(call["id"], call["seconds"]) for call in calls] == [("call_1", 0.003), ("call_2", 0.005)]
    assert "Qwen3.6-Plus" in calls[0]["result"]["text"]


def test_calls_with_the_same_id_each_get_a_result():
    call = ToolCall("", "f")
    done = [ToolDone(1, ToolResult("", "f", (Text(text),))) for text in ("one", "two")]
    calls = one_round(ToolAsked(1, call, ()), ToolAsked(1, call, ()), *done)["calls"]
    assert [entry["result"]["text"] for entry in calls] == ["one", "two"]


def test_a_result_without_a_question_is_shown_too():
    calls = one_round(ToolDone(1, ToolResult("c", "f", (Text("cut off"),), "cancelled"), (Step("run", "failed", "why"),)))["calls"]
    assert (calls[0]["name"], calls[0]["result"]["code"]) == ("f", "cancelled")
    assert calls[0]["steps"] == [{"name": "run", "state": "failed", "note": "why"}]


def test_pictures_of_a_result_are_kept_whole():
    data = "A" * (MOST_CHARACTERS + 4)
    calls = one_round(ToolDone(1, ToolResult("c", "plot", (Image(data), Text("a plot")))))["calls"]
    assert calls[0]["result"] == {
        "text": "a plot",
        "images": [{"data": data, "media_type": "image/png", "url": None}],
        "code": None,
    }


def test_a_very_long_text_is_cut_and_its_length_said():
    long = "x" * (MOST_CHARACTERS + 1_000)
    folding = Fold()
    folding.apply(RunStarted(long, "m", "w"))
    folding.apply(RequestReady(1, request([{"role": "user", "content": long}])))
    shown = folding.state["rounds"][0]["request"]["change"]["new"]["messages"][0]["content"]
    assert len(shown) < MOST_CHARACTERS + 200
    assert "21,000 characters in all, 1,000 not shown here" in shown
    assert folding.state["prompt"] == shown


def test_the_state_is_json_that_can_be_sent_whatever_a_model_wrote():
    half = "half a pair: \ud83d"
    folding = Fold()
    folding.apply(RunStarted(half, "m", "w"))
    folding.apply(RequestReady(1, request([{"role": "user", "content": half}])))
    changes = folding.apply(Delta(1, (Piece("text", half),)))
    json.dumps([folding.state, changes], ensure_ascii=False, allow_nan=False).encode()


def test_the_ending_says_what_it_means():
    ending = state_of(failing_events())["ending"]
    assert (ending["reason"], ending["meaning"]) == ("error", "the model server failed or refused")
    assert state_of(three_round_events())["ending"]["usage"]["output"] == 243
    assert state_of([RunEnded("stop", ())])["ending"]["usage"] is None


def test_the_answer_and_the_prompt_are_there():
    state = state_of(three_round_events())
    assert (state["prompt"], state["rounds"][-1]["reply"]["text"], state["mock"]) == (PROMPT, ANSWER, True)


def test_events_are_left_as_they_are():
    events = list(three_round_events())
    before = copy.deepcopy([event.request.body for event in events if isinstance(event, RequestReady)])
    state_of(events)
    assert [event.request.body for event in events if isinstance(event, RequestReady)] == before
