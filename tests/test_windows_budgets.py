"""Budgets at their edges: nothing left for an answer, more asked for than there is room, numbers that are none."""

import pytest

from nb_agent import budget
from nb_agent.adapters import WIRES
from nb_agent.errors import SettingError
from nb_agent.messages import Message, Request
from nb_agent.windows import known


def request(wire="chat_completions", model="gpt-4o", text="hello", **settings):
    return WIRES[wire].request([Message.of("user", text)], [], model=model, settings=settings)


@pytest.mark.parametrize("room", [0, 5])
def test_a_request_that_fills_the_window_says_what_is_large(room):
    asked = request(text="word " * 180)
    found = budget(asked, window=budget(asked).input + room)
    assert found.output == room
    assert str(found).startswith("no room for an answer") is (room == 0)
    assert bool(found.largest) is (room == 0)
    assert ("the largest parts: user 18" in str(found)) is (room == 0)


def test_the_margin_of_an_estimate_may_take_all_that_is_left():
    asked = request("anthropic_messages", "claude-sonnet-4-5", "word " * 170, max_tokens=500)
    found = budget(asked, window=budget(asked).input + 5)
    assert (found.output, found.over, found.exact) == (0, 0, False)
    assert "no room for an answer: about" in str(found)


@pytest.mark.parametrize(("wanted", "said"), [(1_000, "; 1,000 were asked for)"), (5, "(asked for)")])
def test_more_than_there_is_room_for_is_said(wanted, said):
    asked = request(text="word " * 170, max_tokens=wanted)
    assert str(budget(asked, window=budget(asked).input + 10)).endswith(said)


def test_thinking_is_never_said_to_be_more_than_the_answer():
    claude = request("anthropic_messages", "claude-sonnet-4-5", max_tokens=1_000)
    thinking = Request(claude.wire, claude.path, {**claude.body, "thinking": {"type": "enabled", "budget_tokens": 2_000}})
    assert "1,000, 1,000 of them for thinking" in str(budget(thinking))


@pytest.mark.parametrize("name", ["window", "max_output", "longest"])
@pytest.mark.parametrize("value", [0, -1, True, "8k", 100.5])
def test_a_number_of_tokens_that_is_none_is_named(name, value):
    with pytest.raises(SettingError, match=rf"{name}=.* must be a whole number of tokens above 0"):
        budget(request(), **{name: value})


@pytest.mark.parametrize("model", ["gemini-pro-latest", "claude-2", "claude-2.0"])
def test_names_that_stand_for_several_models_are_not_guessed(model):
    assert known(model) is None
