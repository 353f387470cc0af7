"""Thinking that is switched on, off or over in the middle of a conversation with Anthropic: nothing is sent that is refused."""

import json

import pytest

from nb_agent import Agent, mock, tool
from nb_agent.adapters import anthropic_messages as adapter
from nb_agent.events import RequestReady
from nb_agent.messages import Message, Text, Thinking, ToolCall, ToolResult

ON = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
LEFT_OFF = "thinking was left off: the model has not thought in this turn so far, and cannot begin with results of its calls"
ASKED = Message.of("user", "What is the weather in Berlin?")
THOUGHT = Thinking("hm", {"wire": "anthropic_messages", "signature": "s"})
FOREIGN = Thinking("hm", {"wire": "responses", "item": {"type": "reasoning"}})


@tool
def get_weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    return {"city": city, "temperature": 21}


def calling(number, *before):
    return Message("assistant", (*before, ToolCall(f"toolu_{number}", "get_weather", '{"city":"Berlin"}')))


def result(number):
    return Message("tool", (ToolResult(f"toolu_{number}", "get_weather", (Text("21"),)),))


def written(history, **settings):
    return adapter.request(history, (), model="mock", settings=settings or ON)


BARE = [ASKED, calling(1), result(1)]
THINKING = [ASKED, calling(1, THOUGHT), result(1)]


@pytest.mark.parametrize(
    "history",
    [
        BARE,
        [*BARE, calling(2), result(2)],
        [ASKED, calling(1, Text("Let me see.")), result(1)],
        [ASKED, calling(1, FOREIGN), result(1)],
        [*BARE, Message.of("user", "and hurry")],
        [*THINKING, Message.of("assistant", "21"), Message.of("user", "and now?"), calling(2), result(2)],
    ],
    ids=["one round", "two rounds", "words before the call", "thought elsewhere", "the user adds a word", "thought a turn ago"],
)
def test_thinking_is_left_off_and_said_where_the_turn_began_without(history):
    sent = written(history)
    assert "thinking" not in sent.body
    assert sent.body["max_tokens"] == 8192
    assert LEFT_OFF in sent.notices


@pytest.mark.parametrize(
    "history",
    [
        [ASKED],
        THINKING,
        [*THINKING, calling(2), result(2)],
        [*BARE, Message.of("assistant", "21"), Message.of("user", "and now?")],
    ],
    ids=["a first turn", "it thought", "it thought before its first call only", "a new turn"],
)
def test_thinking_stays_on_where_the_server_takes_it(history):
    sent = written(history)
    assert (sent.body["thinking"], sent.notices) == (ON["thinking"], ())


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "disabled"}])
def test_other_kinds_of_thinking_go_as_they_are(thinking):
    sent = written(BARE, thinking=thinking)
    assert (sent.body["thinking"], sent.notices) == (thinking, ())


def test_the_mock_refuses_what_the_client_does_not_send_and_takes_what_it_sends():
    sent = written(BARE)
    body = json.loads(sent.content)
    forced = body | ON | {"max_tokens": 2000}
    refused = mock.answer("/v1/messages", json.dumps(forced).encode())
    assert (refused.status, b"Expected `thinking` or `redacted_thinking`, but found `tool_use`" in b"".join(refused.chunks)) == (
        400,
        True,
    )
    assert mock.answer("/v1/messages", json.dumps(body).encode()).status == 200


@pytest.mark.parametrize("stream", [True, False])
def test_a_run_that_was_stopped_after_its_calls_goes_on_with_thinking_switched_on(stream):
    agent = Agent(tools=[get_weather], wire="anthropic_messages", stream=stream)
    stopped = agent.run("What is the weather in Berlin?", max_rounds=1)
    assert (stopped.reason, len(stopped.tool_results)) == ("max_rounds", 1)
    agent.settings = ON
    done = agent.run("Go on.")
    sent = [event.request for event in done.events if isinstance(event, RequestReady)]
    assert (done.reason, LEFT_OFF in sent[0].notices, LEFT_OFF in str(done)) == ("stop", True, True)
    following = agent.run("What is the weather in Rome?")
    assert [part for message in following.messages for part in message.parts if isinstance(part, Thinking)]
