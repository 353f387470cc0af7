"""Mistakes on demand: each is made, each is seen for what it is, and a run goes on or ends as it should."""

import json

import pytest

from nb_agent import Agent, mock, tool
from nb_agent.adapters import WIRES
from nb_agent.errors import ProviderError
from nb_agent.events import RequestReady, Retrying
from nb_agent.mock.faults import FAULTS

PROMPT = "What is the weather in Berlin?"
MADE = []


@tool
def get_weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    MADE.append(city)
    return {"city": city, "temperature": 21}


@pytest.fixture(autouse=True)
def fresh():
    MADE.clear()


def run(fault, prompt=PROMPT, **options):
    return Agent(tools=[get_weather], **options).run(f"{prompt} fault:{fault}")


def test_a_fault_is_asked_for_by_a_word_of_the_prompt_or_by_the_name_of_the_model():
    by_word = run("unknown_tool")
    by_model = Agent(model="mock:unknown_tool", tools=[get_weather]).run(PROMPT)
    assert by_word.tool_results[0].code == by_model.tool_results[0].code == "unknown_tool"


def test_a_fault_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(ProviderError, match=r"no fault named 'nonsense'. It has: invented_argument, "):
        run("nonsense")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("unknown_tool", "unknown_tool"),
        ("broken_arguments", "invalid_arguments"),
        ("wrong_type", "invalid_arguments"),
        ("cut_arguments", "truncated_arguments"),
    ],
)
def test_a_wrong_call_is_never_made_and_the_model_does_better_when_told(fault, code, stream):
    done = run(fault, stream=stream)
    assert [result.code for result in done.tool_results] == [code, None]
    assert MADE == ["Berlin"]
    assert (done.reason, "21" in done.text) == ("stop", True)


def test_an_argument_is_made_up_where_the_prompt_does_not_say_it():
    assert run("invented_argument", "What is the weather?").tool_results[0].failed is False
    assert MADE == ["ABC-123"]


def test_a_model_that_goes_round_in_circles_ends_at_the_limit():
    done = run("repeat", max_rounds=4)
    assert (done.reason, len(done.requests)) == ("max_rounds", 4)
    assert set(MADE) == {"Berlin"}


def test_a_filtered_answer_ends_the_run_by_name():
    assert run("filter").reason == "content_filter"


def test_of_two_choices_one_is_chosen_and_only_its_call_is_made():
    done = run("two_choices")
    assert MADE == ["Berlin"]
    assert len(done.replies[0].others) == 1
    assert 'choice 2 was not chosen: get_weather({"city":"Berlin"})' in str(done)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("rate_limit", "rate_limit"),
        ("server_error", "server"),
        ("overload", "overload"),
        ("bad_key", "authentication"),
        ("context", "context_length"),
        ("drop", "stream_interrupted"),
        ("error_in_stream", "overload"),
    ],
)
def test_a_failing_server_is_an_error_of_the_right_kind(fault, kind):
    with pytest.raises(ProviderError) as caught:
        run(fault)
    assert caught.value.kind == kind
    assert MADE == []


def test_what_is_no_json_in_a_stream_is_an_error():
    with pytest.raises(ProviderError, match="broken JSON"):
        run("broken_json")


def test_an_answer_that_stops_coming_ends_at_the_time_limit_of_the_run():
    done = run("stall", time_limit=0.3)
    assert (done.reason, MADE) == ("time_limit", [])


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_is_busy_once_is_asked_again_and_the_wait_is_shown(wire):
    done = Agent(tools=[get_weather], wire=wire).run(f"{PROMPT} fault:busy_once")
    waits = [event for event in done.events if isinstance(event, Retrying)]
    assert [wait.number for wait in waits] == [1, 2]
    assert (done.reason, MADE) == ("stop", ["Berlin"])
    assert "waited" in str(done)


def test_every_fault_is_in_the_table_with_what_it_shows():
    for name, fault in FAULTS.items():
        assert fault.shows, name
        assert sum(part is not None for part in (fault.drafts, fault.refused, fault.chunks)) == 1, name


def test_the_word_itself_changes_nothing_else_of_the_answer():
    plain = Agent(tools=[get_weather]).run(PROMPT).text
    assert run("two_choices").text == plain


def test_an_answer_that_was_cut_off_goes_on_where_it_stopped():
    whole = Agent().run("Tell me a long story.").text
    done = Agent(max_tokens=60, max_rounds=30, time_limit=None).run("Tell me a long story.")
    assert len([event for event in done.events if isinstance(event, RequestReady)]) == 4
    assert done.reason == "length"
    assert whole.startswith(done.text)
    assert len(done.text) > 3 * len(done.replies[0].message.text)


def test_over_http_a_refusal_is_the_same_answer():
    body = {"model": "any", "messages": [{"role": "user", "content": "hi fault:rate_limit"}]}
    answered = mock.answer("/v1/chat/completions", json.dumps(body).encode())
    assert answered.status == 429
