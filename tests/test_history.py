"""The mending of a history alone: what a provider would refuse is mended and said, or is an error."""

import json

import pytest

from nb_agent.adapters import chat_completions
from nb_agent.errors import HistoryError
from nb_agent.history import mend
from nb_agent.messages import Message, Text, ToolCall, ToolResult


def neutral(form):
    """A case's OpenAI-like message as one of ours."""
    if form["role"] == "tool":
        return Message("tool", (ToolResult(form["tool_call_id"], "f", (Text(form["content"]),)),))
    parts = [Text(form["content"])] if form.get("content") else []
    for call in form.get("tool_calls", ()):
        function = call.get("function", call)
        arguments = function["arguments"]
        parts.append(ToolCall(call["id"], function["name"], arguments if isinstance(arguments, str) else json.dumps(arguments)))
    return Message(form["role"], tuple(parts))


def history(case):
    return [neutral(form) for form in case["given"]["history"]]


def test_a_history_that_is_in_order_stays_as_it_is(cases):
    messages = history(cases["D03"])
    assert mend(messages) == (tuple(messages), ())


def test_a_call_that_an_interrupt_left_open_gets_a_result_that_says_so(cases):
    mended, notices = mend([*history(cases["D01"]), Message.of("user", "and now?")])
    assert [message.role for message in mended] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [message.tool_call_id for message in mended[3:5]] == ["c1", "c2"]
    assert mended[3].text == "AAA"
    assert mended[4].tool_result.code == "cancelled"
    assert "interrupted" in mended[4].text
    assert len(notices) == 1


def test_what_the_user_said_while_a_tool_ran_comes_after_its_result(cases):
    mended, notices = mend(history(cases["D10"]))
    assert [message.role for message in mended] == ["user", "assistant", "tool", "user"]
    assert mended[-1].text == "(meanwhile) also say hi"
    assert "moved up" in notices[0]


def test_user_messages_in_a_row_become_one(cases):
    mended, notices = mend(history(cases["D12"]))
    assert [message.role for message in mended] == cases["D12"]["expect"]["roles"]
    assert (mended[1].text, mended[-1].text) == ("part one\n\npart two", "hint\n\nnext")
    assert len(notices) == 2


def test_results_come_in_the_order_of_their_calls():
    calls = Message("assistant", (ToolCall("a", "f"), ToolCall("b", "f")))
    results = [Message("tool", (ToolResult(name, "f", (Text(name),)),)) for name in ("b", "a")]
    mended, _ = mend([Message.of("user", "q"), calls, *results])
    assert [message.tool_call_id for message in mended[2:]] == ["a", "b"]


def test_an_empty_assistant_message_is_left_out():
    mended, notices = mend([Message.of("user", "q"), Message("assistant"), Message.of("user", "r")])
    assert [message.text for message in mended] == ["q\n\nr"]
    assert "empty" in notices[0]


def test_a_result_without_its_call_is_named():
    with pytest.raises(HistoryError, match=r"message 1 is a result for call 'x', which no message before it makes"):
        mend([Message.of("user", "q"), Message("tool", (ToolResult("x", "f", (Text("r"),)),))])


def test_a_second_result_for_one_call_is_named():
    result = Message("tool", (ToolResult("a", "f", (Text("r"),)),))
    with pytest.raises(HistoryError, match=r"message 3 is a second result for call 'a'"):
        mend([Message.of("user", "q"), Message("assistant", (ToolCall("a", "f"),)), result, result])


def test_mending_twice_changes_nothing_more(cases):
    for name in ("D01", "D10", "D12", "D13"):
        once, _ = mend(history(cases[name]))
        assert mend(once) == (once, ())


def test_arguments_that_were_kept_as_objects_go_out_as_strings(cases):
    mended, _ = mend(history(cases["D13"]))
    calls = chat_completions.request(mended, (), model="m").body["messages"][1]["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"k": "ü", "n": 1}, {}]
