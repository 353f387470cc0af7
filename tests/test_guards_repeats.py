"""Side effects that are asked for twice, and models that go round in circles."""

import pytest

from nb_agent.guards.repeats import Repeats, called_with, changes_something, idempotency_key
from nb_agent.messages import Text, ToolCall, ToolResult


def call(name="send", arguments="{}"):
    return ToolCall("c1", name, arguments)


def result(text="done", code=None):
    return ToolResult("c1", "send", (Text(text),), code)


def played(*rounds):
    """The repeats after rounds of calls by name, each with one result, and what was said in the last round."""
    repeats, told = Repeats(), None
    for number, names in enumerate(rounds, 1):
        for name in names:
            told = repeats.told(number, call(name), result(name))
    return repeats, told


def test_a_key_does_not_change_with_the_order_of_the_arguments_but_with_the_run():
    one, other = Repeats("a"), Repeats("b")
    assert one.key(call(), {"x": 1, "y": 2}) == one.key(call(), {"y": 2, "x": 1})
    assert (
        len({one.key(call(), {"x": 1}), one.key(call(), {"x": 2}), other.key(call(), {"x": 1}), one.key(call("s"), {"x": 1})}) == 4
    )


@pytest.mark.parametrize(("code", "kept"), [(None, True), ("tool_timeout", True), ("cancelled", True), ("tool_failed", False)])
def test_what_was_done_or_may_have_been_is_kept_and_what_failed_may_be_tried_again(code, kept):
    repeats = Repeats()
    repeats.keep("k", result(code=code))
    assert (repeats.first("k") is not None) is kept


@pytest.mark.parametrize(
    ("name", "tier", "expected"),
    [
        ("send_mail", None, True),
        ("get_weather", None, False),
        ("getWeather", None, False),
        ("get_weather", "write", True),
        ("send_mail", "read", False),
        ("issue_refund", None, True),
        ("delete", None, True),
        ("wait", None, False),
    ],
)
def test_a_side_effect_is_what_was_called_one_else_what_sounds_like_one(name, tier, expected):
    assert changes_something(name, tier) is expected


def test_the_third_time_of_the_same_call_and_result_is_told_and_the_sixth_stops():
    assert [played(*["a"] * times)[1] is not None for times in (1, 2, 3, 5)] == [False, False, True, True]
    assert [played(*["a"] * times)[0].stopped is not None for times in (5, 6)] == [False, True]


def test_going_to_and_fro_is_noticed_as_well():
    assert played("a", "b", "a", "b")[1] is not None
    assert played(*"ababab")[0].stopped is not None
    assert played(*"abcabcabc")[0].stopped is not None


def test_several_calls_of_one_round_are_one_step_of_the_pattern_in_any_order():
    assert played("ab", "ba", "ab")[1] is not None
    assert played("aaa", "b")[1] is None


def test_new_results_are_no_circle():
    repeats = Repeats()
    assert [repeats.told(number, call("status"), result(f"{number} %")) for number in range(1, 9)] == [None] * 8
    assert repeats.stopped is None


def test_a_tool_sees_the_key_of_its_call():
    assert idempotency_key() == ""
    with called_with("k1"):
        assert idempotency_key() == "k1"
    assert idempotency_key() == ""
