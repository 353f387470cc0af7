"""Functions, MCP or both: the advice follows from what was said, and every number has a source."""

import json

import pytest

from nb_agent import advising, tokens
from nb_agent.advising import advise
from nb_agent.errors import SettingError
from nb_agent.mcp import Connection, McpTool
from nb_agent.mcp.target import Target
from nb_agent.messages import Definition
from nb_agent.values import dumps


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return city


SERVED = McpTool(
    Connection("s", Target.of(["srv"]), start_limit=1),
    "go",
    Definition("s__go", "Go.", {"type": "object", "properties": {}}),
    {},
    {},
)


@pytest.mark.parametrize(
    ("given", "choice", "reason"),
    [
        ({"tools": [weather]}, "functions", "a server would only add a process"),
        ({"tools": [weather], "shared_by": 4}, "mcp", "4 programs use them"),
        ({"tools": [weather], "runs_where": "remote"}, "mcp", "another machine"),
        ({"tools": [weather], "runs_where": "process"}, "mcp", "a crash of theirs leaves the kernel alive"),
        ({"tools": [weather], "languages": ["Python", "TypeScript"]}, "mcp", "typescript"),
        ({"tools": [weather], "isolated": True}, "mcp", "keys"),
        ({"tools": [SERVED]}, "mcp", "1 of them are served already"),
        ({"tools": [weather, SERVED]}, "both", "1 of them are Python functions"),
    ],
)
def test_the_choice_follows_from_what_was_said(given, choice, reason):
    advice = advise(**given)
    assert advice.choice == choice
    assert reason in " ".join(advice.reasons)
    assert json.loads(json.dumps(advice.to_json()))["choice"] == choice


def test_definitions_are_counted_and_nothing_is_said_of_a_time_that_was_not_measured():
    advice = advise([weather], model="gpt-4o")
    told = advising.Toolbox([weather]).definitions[0]
    counted = tokens.count(dumps([told.name, told.description, told.parameters]), model="gpt-4o")
    assert [(number.value, number.source) for number in advice.numbers] == [(1, "given"), (1, "counted"), (counted, "counted")]
    assert "how long a call takes" in advice.unknown[0]
    assert f"{counted} tokens (counted)" in str(advice)


def test_a_call_that_is_given_is_timed():
    made = []
    advice = advise([weather], measure=lambda: made.append(1))
    assert len(made) == 5
    assert (advice.numbers[-1].source, advice.numbers[-1].unit, advice.unknown) == ("measured", "ms", ())


def test_settings_that_mean_nothing_are_said():
    with pytest.raises(SettingError, match="shared_by=0"):
        advise(shared_by=0)
    with pytest.raises(SettingError, match="runs_where='moon' is not known"):
        advise(runs_where="moon")
