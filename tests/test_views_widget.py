"""widget.py: what goes to the front end, and what is shown where there is none."""

import json
from copy import deepcopy

import pytest
from samples import fold, three_round_events

from nb_agent.views import html, text
from nb_agent.views import widget as module
from nb_agent.views.fold import Fold, change_state
from nb_agent.views.widget import Inspector, merge


@pytest.fixture
def sent(monkeypatch):
    """Messages in the order in which they were sent, as JSON would carry them."""
    messages = []
    monkeypatch.setattr(Inspector, "send", lambda self, content, buffers=None: messages.append(json.loads(json.dumps(content))))
    monkeypatch.setattr(Inspector, "send_state", lambda self, key=None: messages.append({"type": "trait", "key": key}))
    return messages


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

    monkeypatch.setattr(module.time, "monotonic", lambda: Clock.now)
    return Clock


def hello(inspector, view="v"):
    inspector._hear(inspector, {"type": "hello", "view": view}, [])


def test_changes_are_sent_once_each_and_numbered(sent):
    state, changes = fold(three_round_events())
    inspector, copied = Inspector(Fold().state), Fold().state
    sent.clear()
    for some in changes:
        inspector.apply(some)
    assert [message["seq"] for message in sent] == list(range(1, len(changes) + 1))
    for message in sent:
        change_state(copied, message["changes"])
    assert copied == state == inspector.state


def test_changes_that_were_held_back_lead_to_the_same_state(sent):
    folding = Fold()
    inspector, waiting = Inspector(folding.state), []
    for event in three_round_events():
        waiting += folding.apply(event)
    inspector.apply(waiting)
    assert inspector.state == folding.state


def test_what_is_sent_grows_with_the_run_and_not_with_its_square(sent):
    inspector = Inspector({"text": ""})
    sent.clear()
    for _ in range(200):
        inspector.apply([["add", ["text"], "x" * 10]])
    assert max(len(json.dumps(message)) for message in sent) < 100


def test_no_message_for_no_change(sent):
    inspector = Inspector({})
    sent.clear()
    inspector.apply([])
    assert sent == []
    assert inspector.seq == 0


def test_hello_gets_the_whole_state_and_its_number(sent, clock):
    inspector = Inspector({"text": "a"})
    inspector.apply([["add", ["text"], "b"]])
    assert not inspector.greeted
    sent.clear()
    hello(inspector)
    assert inspector.greeted
    assert sent == [{"type": "state", "seq": 1, "state": {"text": "ab"}}]


def test_hellos_that_queued_up_get_one_answer_for_each_view(sent, clock):
    inspector = Inspector({"text": "a"})
    sent.clear()
    for _ in range(50):
        hello(inspector, "one")
        hello(inspector, "two")
    assert len(sent) == 2


def test_a_view_that_asks_again_is_answered_again(sent, clock):
    inspector = Inspector({"text": "a"})
    sent.clear()
    hello(inspector)
    inspector.apply([["add", ["text"], "b"]])
    hello(inspector)  # there is something new
    clock.now += 1.5
    hello(inspector)  # the answer must have been lost
    assert [(message["type"], message["seq"]) for message in sent] == [("state", 0), ("changes", 1), ("state", 1), ("state", 1)]


@pytest.mark.parametrize("content", [None, "hello", {}, {"type": "approve"}, {"type": ["hello"]}, 3])
def test_other_messages_are_left_alone(sent, content):
    inspector = Inspector({})
    sent.clear()
    inspector._hear(inspector, content, [])
    assert sent == []
    assert not inspector.greeted


def test_the_trait_holds_the_newest_state_for_a_page_that_is_loaded_again(sent):
    inspector = Inspector({"text": "a"})
    inspector.apply([["add", ["text"], "b"]])
    assert inspector.get_state("truth") == {"truth": {"seq": 1, "state": {"text": "ab"}}}
    sent.clear()
    inspector.settle()
    assert sent == [{"type": "trait", "key": "truth"}]


def test_the_truth_is_sent_unasked_after_twice_the_time_until_a_view_was_heard(sent, clock):
    inspector = Inspector({"text": ""})
    sent.clear()
    at = []
    for tick in range(200):
        clock.now = 100 + tick / 10
        if tick == 150:
            hello(inspector)
        inspector.apply([["add", ["text"], "x"]])
        at += [tick / 10] if sent[-1]["type"] == "trait" else []
    assert at == [0.3, 0.5, 1.0, 2.0, 4.0, 8.0]


def test_a_long_run_is_not_sent_whole_unasked(sent, clock):
    inspector = Inspector({"text": "", "rounds": [{}] * 11})
    for tick in range(50):
        clock.now = 100 + tick / 10
        inspector.apply([["add", ["text"], "x"]])
    assert "trait" not in {message["type"] for message in sent[-50:]}


def test_the_widget_keeps_its_own_copy(sent):
    given = {"live": {"text": ""}}
    inspector = Inspector(given)
    inspector.apply([["add", ["live", "text"], "a"]])
    assert given == {"live": {"text": ""}}
    given["live"]["text"] = "changed"
    assert inspector.state == {"live": {"text": "a"}}


def test_a_front_end_without_widgets_gets_the_run_as_it_stands():
    state, _ = fold(list(three_round_events())[:60])
    bundle, _ = Inspector(state)._repr_mimebundle_()
    assert bundle["text/html"] == html.page(state)
    assert bundle["text/plain"] == text.text(state)
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_script_and_style_travel_with_the_widget():
    state = Inspector({}).get_state()
    assert "export default { render }" in state["_esm"]
    assert ".nba" in state["_css"]


def test_merged_changes_lead_to_the_same_state():
    state, changes = fold(three_round_events())
    flat = [change for some in changes for change in some]
    before = deepcopy(flat)
    copied = Fold().state
    few = merge(flat)
    change_state(copied, few)
    assert copied == state
    assert len(few) < len(flat) / 2
    assert flat == before


def test_pieces_are_merged_only_up_to_the_next_change_of_another_kind():
    changes = [["add", ["a"], "x"], ["add", ["b"], "1"], ["add", ["a"], "y"], ["set", ["a"], ""], ["add", ["a"], "z"]]
    assert merge(changes) == [["add", ["a"], "xy"], ["add", ["b"], "1"], ["set", ["a"], ""], ["add", ["a"], "z"]]
    assert merge([]) == []
