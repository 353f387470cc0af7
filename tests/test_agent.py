"""The whole agent in a script: settings, the conversation, and the mock model at the other end."""

import json
import sys
import threading

import pytest
from scripted import answers, said

from nb_agent import Agent, Run, mock, options, tokens, tool
from nb_agent.errors import ProviderError, SettingError, ToolDefinitionError
from nb_agent.events import Delta, RequestReady, RunEnded, ToolAsked, ToolDone
from nb_agent.messages import Message, Text, ToolResult
from nb_agent.mock.models import Model
from nb_agent.run import counted

KEY = "sk-test-0123456789abcdef"


@tool
def get_weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    return {"city": city, "temperature": 21}


def test_a_run_calls_the_tool_and_answers_from_its_result():
    run = Agent(tools=[get_weather]).run("What is the weather in Berlin?")
    assert [message.role for message in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert run.messages[2].tool_call_id == run.messages[1].tool_calls[0].id
    assert "21" in run.text
    assert run.reason == "stop"


def test_a_plain_function_is_made_into_a_tool():
    def get_time(city: str) -> str:
        """Current time in a city."""
        return f"12:00 in {city}"

    run = Agent(tools=[get_time]).run("What is the time in Oslo?")
    assert run.tool_results[0].text == "12:00 in Oslo"


def test_the_mocks_usage_is_our_own_count():
    run = Agent(tools=[get_weather], system="Be brief.").run("What is the weather in Berlin?")
    counted = run.tokens.groupby("round")["counted"].sum().tolist()
    assert counted == [reply.usage.input_tokens for reply in run.replies]
    assert run.usage.input_tokens == sum(counted)


def test_streamed_and_whole_give_the_same_run():
    whole, streamed = (Agent(tools=[get_weather], stream=stream).run("What is the weather in Berlin?") for stream in (False, True))
    assert whole.messages == streamed.messages
    assert not any(isinstance(event, Delta) for event in whole.events)
    assert any(isinstance(event, Delta) for event in streamed.events)


def test_a_second_run_goes_on_with_the_conversation_and_reset_forgets_it():
    agent = Agent(system="Be brief.")
    agent.run("hello")
    assert [m.role for m in agent.run("hello again").messages] == ["system", "user", "assistant", "user", "assistant"]
    agent.reset()
    assert [m.role for m in agent.run("hello").messages] == ["system", "user", "assistant"]


def test_the_system_prompt_can_be_changed_in_the_middle_and_stands_first_once():
    agent = Agent(system="one")
    agent.run("hello")
    agent.system = "two"
    assert [m.text for m in agent.run("hello").messages if m.role == "system"] == ["two"]


def test_the_same_agent_runs_inside_a_thread_that_has_no_main_loop():
    runs = []
    thread = threading.Thread(target=lambda: runs.append(Agent(tools=[get_weather]).run("What is the weather in Berlin?")))
    thread.start()
    thread.join(20)
    assert runs[0].reason == "stop"


def test_settings_are_sent_as_they_are_and_only_when_set(monkeypatch):
    sent = answers(monkeypatch, said("a"), said("b"))
    Agent(temperature=0.2, seed=7, extra_body={"top_k": 5}, stream=False).run("hi")
    Agent(stream=False).run("hi")
    assert {key: sent[0].body[key] for key in ("temperature", "seed", "top_k")} == {"temperature": 0.2, "seed": 7, "top_k": 5}
    assert set(sent[1].body) == {"model", "messages"}


def test_a_setting_that_does_not_exist_is_named_with_the_one_that_was_meant():
    with pytest.raises(SettingError, match=r"no setting named 'temprature'; did you mean 'temperature'\? what only"):
        Agent(temprature=0.2)
    with pytest.raises(SettingError, match=r"no setting named 'keep_alive'; what only one server knows goes into extra_body="):
        Agent(keep_alive=5)


def test_two_different_tools_of_one_name_are_an_error_that_names_it():
    def other(city: str) -> str:
        """Another."""

    other.__name__ = "get_weather"
    with pytest.raises(ToolDefinitionError, match="get_weather"):
        Agent(tools=[get_weather, other])


def test_an_empty_prompt_is_an_error_and_nothing_is_sent(monkeypatch):
    sent = answers(monkeypatch)
    with pytest.raises(SettingError, match="the prompt is empty"):
        Agent().run("  \n")
    assert sent == []


def test_an_unknown_tool_is_a_result_that_the_model_can_act_on(monkeypatch, cases):
    def get_rain(town: str) -> str:
        """Rain."""
        return "4 mm"

    def get_wind(town: str) -> str:
        """Wind."""

    sent = answers(
        monkeypatch,
        said("", ("get_rainfall", '{"town": "Oslo"}')),
        said("", ("get_rain", '{"town": "Oslo"}')),
        said("4 mm of rain"),
    )
    run = Agent(tools=[get_rain, get_wind]).run("rain?")
    assert run.tool_results[0].code == "unknown_tool"
    assert all(word in run.tool_results[0].text for word in cases["H12"]["expect"]["tool_result"]["message_mentions"])
    assert (run.text, len(sent)) == ("4 mm of rain", 3)


@pytest.mark.parametrize("arguments", ["{", "[]", '{"city": 3}', '{"town": "Oslo"}', "3"])
def test_arguments_that_do_not_fit_are_a_result_and_the_function_is_not_called(arguments, monkeypatch):
    called = []

    def look(city: str) -> str:
        """Look."""
        called.append(city)

    answers(monkeypatch, said("", ("look", arguments)), said("sorry"))
    run = Agent(tools=[look]).run("look")
    assert called == []
    assert run.tool_results[0].code == "invalid_arguments"
    assert run.reason == "stop"


def test_a_failing_tool_is_a_result_for_the_model_and_a_traceback_for_the_person(monkeypatch):
    def divide(a: float, b: float) -> float:
        """Divide."""
        return a / b

    answers(monkeypatch, said("", ("divide", '{"a": 1, "b": 0}')), said("cannot"))
    run = Agent(tools=[divide]).run("1/0")
    told = json.loads(run.tool_results[0].text)
    assert told["success"] is False
    assert "ZeroDivisionError" in told["error"]
    done = next(event for event in run.events if isinstance(event, ToolDone))
    assert "return a / b" in done.traceback
    assert "Traceback" not in run.tool_results[0].text


def test_a_tool_is_not_run_again_when_the_model_server_fails_after_it(monkeypatch):
    posted = []

    def post_letter(to: str) -> str:
        """Post a letter."""
        posted.append(to)
        return f"posted no. {len(posted)}"

    agent = Agent(tools=[post_letter])
    sent = answers(monkeypatch, said("", ("post_letter", '{"to": "Ada"}')), ProviderError("500", kind="server"), said("done"))
    with pytest.raises(ProviderError):
        agent.run("post it")
    assert agent.last_run.reason == "error"
    assert [m.role for m in agent.history] == ["user", "assistant", "tool"]
    run = agent.run("go on")
    assert (posted, run.text) == (["Ada"], "done")
    assert sent[2].body["messages"][2]["tool_call_id"] == "c0"


def test_a_round_costs_the_same_however_long_the_conversation_is(monkeypatch):
    def fetch(n: int) -> str:
        """Fetch."""
        return "x" * 2000

    def calls_of(rounds):
        """Function calls for each request of a run, counted and not timed."""
        bodies = [said("", ("fetch", json.dumps({"n": n}))) for n in range(rounds)]
        answers(monkeypatch, *bodies, said("done"), *bodies, said("done"))
        agent, counted = Agent(tools=[fetch], stream=False, max_rounds=1000, time_limit=None), []
        agent.run("hi", view=False)
        agent.reset()
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, argument: counted.append(1) if event in {"call", "c_call"} else None)
        try:
            agent.run("hi", view=False)
        finally:
            sys.setprofile(before)
        return len(counted) / (rounds + 1)

    monkeypatch.setitem(mock.MODELS, "mock", Model(window=1_000_000))  # compaction has a test of its own
    assert calls_of(60) < 1.05 * calls_of(10)


def reported(body, read, written):
    return body | {"usage": {"prompt_tokens": read, "completion_tokens": written}}


def test_a_run_stops_before_the_request_that_would_pass_its_limit_on_tokens(monkeypatch):
    call = reported(said("", ("get_weather", '{"city": "Berlin"}')), 90, 10)
    sent = answers(monkeypatch, call, call, call, said("done"))
    run = Agent(tools=[get_weather], token_limit=300).run("What is the weather in Berlin?")
    last = [event for event in run.events if isinstance(event, RequestReady)][-1]
    asked = counted(last.request, "mock")["total"]
    assert (run.reason, len(sent)) == ("token_limit", 2)
    assert run.error == f"200 tokens used, {asked} in the next request; the limit is 300"
    assert [message.role for message in run.messages][-2:] == ["assistant", "tool"]
    assert "Allow more tokens" in str(run)


def test_a_limit_on_tokens_goes_by_what_is_counted_where_nothing_is_reported(monkeypatch):
    sent = answers(monkeypatch, *[said("", ("get_weather", '{"city": "Berlin"}'))] * 9)
    run = Agent(tools=[get_weather]).run("What is the weather in Berlin?", token_limit=300)
    assert (run.reason, run.usage) == ("token_limit", None)
    assert 1 < len(sent) < 4


def test_a_run_stops_before_the_request_that_would_pass_its_limit_on_cost(monkeypatch):
    call = reported(said("", ("get_weather", '{"city": "Berlin"}')), 90, 10)
    answers(monkeypatch, call, call, call)
    agent = Agent(tools=[get_weather], cost_limit=2.5, prices={"mock": {"input": 10_000, "output": 10_000}})
    run = agent.run("What is the weather in Berlin?")
    assert run.reason == "cost_limit"
    assert run.error.startswith("2 spent, 1.")
    assert isinstance(run.events[-1], RunEnded)


def test_a_limit_that_cannot_be_kept_is_said_before_anything_is_sent(monkeypatch):
    sent = answers(monkeypatch)
    with pytest.raises(SettingError, match=r"cost_limit=2 cannot be kept: no price is known for 'mock'; give prices=, install"):
        Agent(cost_limit=2).run("hi")
    with pytest.raises(SettingError, match=r"token_limit=0 must be above 0; leave it out for no limit"):
        Agent().run("hi", token_limit=0)
    assert sent == []


def test_the_line_of_a_cell_sets_the_limit_on_tokens_and_the_compaction():
    chosen = options.read("--token-limit 5000 --compaction stub_results,summarise")
    assert (chosen.token_limit, chosen.compaction) == (5000, "stub_results,summarise")
    with pytest.raises(SettingError, match=r"--token-limit 0 must be above 0"):
        options.read("--token-limit 0")


def test_no_view_of_an_agent_or_its_runs_shows_the_key(tmp_path):
    agent = Agent("m", api_key=KEY, base_url="http://127.0.0.1:1/v1", system="s")
    with pytest.raises(ProviderError) as caught:
        agent.run("hi")
    agent.last_run.save(tmp_path / "run.jsonl")
    views = [repr(agent), str(agent), str(vars(agent)), repr([agent]), repr({"c": agent}), str(caught.value), str(agent.last_run)]
    views += [repr(agent.last_run.events), (tmp_path / "run.jsonl").read_text(encoding="utf-8"), json.dumps(agent.last_run.state)]
    for view in views:
        assert KEY not in view
        assert KEY[:8] not in view
        assert KEY[-4:] not in view


def test_a_run_that_was_saved_and_loaded_shows_the_same(tmp_path):
    run = Agent(tools=[get_weather]).run("What is the weather in Berlin?")
    run.save(tmp_path / "run.jsonl")
    back = Run.load(tmp_path / "run.jsonl")
    assert back.events == run.events
    assert (back.text, back.usage, str(back)) == (run.text, run.usage, str(run))


def test_whoever_answers_the_events_decides_what_is_sent_and_what_runs(monkeypatch):
    answers(monkeypatch, said("", ("get_weather", '{"city": "Berlin"}')), said("ok"))
    asked = []
    Agent(tools=[get_weather]).run("weather", answer=lambda event: asked.append(type(event)))
    assert asked.count(RequestReady) == 2
    assert asked.count(ToolAsked) == 1


def test_a_huge_result_is_cut_so_that_it_does_not_fill_the_window(monkeypatch, cases):
    def list_rows() -> str:
        """List rows."""
        return "\n".join(f"row {n}" for n in range(1, 100_001))

    sent = answers(monkeypatch, said("", ("list_rows", "{}")), said("done"))
    run = Agent(tools=[list_rows]).run("rows?")
    text = sent[1].body["messages"][-1]["content"]
    assert tokens.count(text) <= cases["H19"]["expect"]["sent_result"]["tokens_at_most"]
    assert "row 1\n" in text
    assert "row 100000" in text
    assert run.reason == "stop"


def test_a_script_prints_nothing(capsys):
    Agent(tools=[get_weather]).run("What is the weather in Berlin?")
    assert capsys.readouterr() == ("", "")


def find_customer(name: str) -> str:
    """Find a customer of the shop by name."""
    return f"customer {name}"


def test_groups_of_tools_are_offered_all_or_by_name_or_by_a_route():
    agent = Agent(tools={"weather": [get_weather], "shop": [find_customer]})

    def offered(**options):
        return [tool["function"]["name"] for tool in agent.run("Hello", **options).requests[0].body.get("tools", [])]

    assert offered() == ["get_weather", "find_customer"]
    assert offered(tools="shop") == ["find_customer"]
    assert offered(tools="get_weather") == ["get_weather"]
    agent.route = lambda prompt, sets: [sets.names[1]]
    assert offered() == ["find_customer"]
    assert offered(tools="weather shop") == ["get_weather", "find_customer"]
    with pytest.raises(SettingError, match="the groups are: weather, shop"):
        offered(tools="weathr")


def test_more_tools_than_a_model_can_tell_apart_are_said_at_the_request():
    def named(number):
        def look(city: str) -> str:
            """Look."""
            return city

        return tool(look, name=f"look_{number}")

    run = Agent(tools=[named(number) for number in range(31)]).run("Hello")
    assert "31 tools are offered" in run.state["rounds"][0]["request"]["notices"][0]


def test_a_conversation_can_be_checked_before_it_is_sent():
    agent = Agent(wire="anthropic_messages")
    assert agent.check("Hello") == ()
    agent._history = (Message("tool", (ToolResult("c9", "f", (Text("x"),)),)),)
    findings = agent.check("Hello")
    assert [finding.place for finding in findings] == [0]
    assert "c9" in findings[0].what
