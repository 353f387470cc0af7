"""The tokens of any node of a request's JSON, and what two requests have in common."""

import pytest

from nb_agent import Agent, tokens, xray
from nb_agent.errors import SettingError
from nb_agent.nodes import shared, total


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
        city: its name, e.g. Oslo
    """
    return f"sunny in {city}"


BODY = {
    "model": "gpt-4o",
    "messages": [
        {"role": "user", "content": "Wie wird das Wetter in Köln?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
    ],
    "stream": True,
    "odd/key~": [1.5, False, {}, []],
}


def test_a_text_costs_its_tokens_and_a_branch_what_is_in_it_and_its_keys():
    ray = xray(BODY)
    text = BODY["messages"][0]["content"]
    assert ray.at("messages", 0, "content").tokens == tokens.count(text, model="gpt-4o")
    message = ray.at("messages", 0)
    words = ["role", "user", "content", text]
    assert message.tokens == sum(tokens.count(word, model="gpt-4o") for word in words)
    assert message.share == message.tokens / ray.tokens


def test_every_node_is_there_once_and_children_never_cost_more_than_their_parent():
    nodes = {node.path: node for node in xray(BODY)}
    assert len(nodes) == 21
    for path, node in nodes.items():
        inside = [other.tokens for other in nodes.values() if len(other.path) == len(path) + 1 and other.path[: len(path)] == path]
        assert sum(inside) <= node.tokens
        assert isinstance(node.path[-1] if path else "", int) or not inside or node.kind == "array" or sum(inside) < node.tokens


def test_paths_are_written_as_json_pointers():
    assert {node.pointer for node in xray(BODY)} >= {"", "/odd~1key~0/2", "/messages/1/tool_calls/0/function/arguments"}


def test_the_frame_goes_down_as_far_as_it_is_asked_to():
    table = xray(BODY).frame(1)
    assert list(table["pointer"]) == ["", "/model", "/messages", "/stream", "/odd~1key~0"]
    assert list(table["kind"]) == ["object", "string", "array", "boolean", "array"]
    assert table["share"].iloc[0] == 1


def test_a_path_that_leads_nowhere_is_named_with_what_there_is():
    with pytest.raises(SettingError, match=r"no 'text' at \['messages', 0, 'text'\]; there are: 'role', 'content'"):
        xray(BODY).at("messages", 0, "text")


@pytest.mark.parametrize("data", ["data:image/png;base64," + "A" * 5_000, "iVBORw0KGgo" + "A" * 400_000])
def test_a_picture_is_not_counted_as_its_base64(data):
    assert xray({"messages": [{"content": [{"data": data}]}]}).tokens < 100


def test_the_runs_requests_share_what_stood_there_before():
    run = Agent(tools=[get_weather]).run("What is the weather in Berlin?", view=False)
    first, second = (run.xray(number) for number in (0, 1))
    found = shared(first, second)
    assert found.entries == 1
    assert found.tokens == second.at("tools").tokens + second.at("messages", 0).tokens
    assert 0 < found.share < 1
    with pytest.raises(SettingError, match="no request 7; this run has 2"):
        run.xray(7)


def test_nothing_is_shared_where_something_ahead_of_the_messages_has_changed():
    assert shared(xray(BODY), xray({**BODY, "tools": []})).tokens == 0
    assert shared(xray(BODY), xray(BODY)).entries == 2
    assert shared(xray({"a": 1}), xray({"a": 1})) == (0, 0.0, 0)


def test_the_weight_has_the_shape_of_the_json():
    ray = xray({"a": ["x", {"b": "y"}]}, "gpt-4o")
    assert total(ray.weight) == ray.tokens == 4
    assert ray.weight == [4, [3, 1, [2, 1]]]
    assert ray.exact
