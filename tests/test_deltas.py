"""Request bodies stored once."""

import json

import pytest

from nb_agent.deltas import delta, rebuild

BODIES = [
    {},
    {"model": "m", "messages": [1, 2]},
    {"model": "m", "messages": [1, 2, 3], "tools": [{"name": "f"}]},
    {"model": "m", "messages": [1, 9], "tools": []},
    {"messages": [1, 2], "model": "m"},
    {"model": "m", "messages": "text"},
    {"model": "m", "messages": [], "same": {"new": 1}, "order": None},
    {"model": "n", "messages": [1]},
]


@pytest.mark.parametrize("before", BODIES)
@pytest.mark.parametrize("after", BODIES)
def test_any_body_is_rebuilt_from_any_other_with_its_order_of_keys(before, after):
    change = json.loads(json.dumps(delta(before, after)))
    assert list(rebuild(before, change).items()) == list(after.items())


def test_a_history_that_grew_is_stored_as_what_is_new():
    assert delta({"messages": [1, 2], "model": "m"}, {"messages": [1, 2, 3], "model": "m"}) == {
        "same": {"messages": 2},
        "new": {"messages": [3]},
    }


def test_the_same_body_is_stored_as_nothing():
    assert delta({"messages": [1], "model": "m"}, {"messages": [1], "model": "m"}) == {}
