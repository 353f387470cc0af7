"""The tool that tells the time."""

import datetime as dt

import pytest

from nb_agent import Agent
from nb_agent.errors import ToolError
from nb_agent.kit.clock import clock_tools, make_now, now

NEW_YEAR = dt.datetime(2026, 1, 1, 0, 30, 15, 999_999, tzinfo=dt.UTC)
told = make_now(lambda: NEW_YEAR)


@pytest.mark.parametrize(
    ("timezone", "answer"),
    [
        ("UTC", ("UTC", "2026-01-01T00:30:15+00:00", "Thursday", "+00:00")),
        ("America/New_York", ("America/New_York", "2025-12-31T19:30:15-05:00", "Wednesday", "-05:00")),
        (" asia/tokyo ", ("Asia/Tokyo", "2026-01-01T09:30:15+09:00", "Thursday", "+09:00")),
        ("Asia/Kolkata", ("Asia/Kolkata", "2026-01-01T06:00:15+05:30", "Thursday", "+05:30")),
    ],
)
def test_the_time_is_told_in_the_zone_that_is_asked_for(timezone, answer):
    assert told(timezone) == dict(zip(("timezone", "time", "weekday", "utc_offset"), answer, strict=True))


@pytest.mark.parametrize(
    ("timezone", "text"),
    [
        ("Tokio", "there is no time zone 'Tokio'; did you mean Asia/Tokyo?"),
        ("berlin", "there is no time zone 'berlin'; did you mean Europe/Berlin?"),
        ("New York", "there is no time zone 'New York'; did you mean America/New_York?"),
        ("Mars/Base", "there is no time zone 'Mars/Base'; give it as Region/City, such as Europe/Berlin"),
        ("../../etc/passwd", "there is no time zone '../../etc/passwd'; give it as Region/City, such as Europe/Berlin"),
        ("", "there is no time zone ''; give it as Region/City, such as Europe/Berlin"),
        ("x\0", "there is no time zone 'x\\x00'; give it as Region/City, such as Europe/Berlin"),
    ],
)
def test_an_unknown_zone_is_refused_with_near_ones(timezone, text):
    with pytest.raises(ToolError) as refused:
        told(timezone)
    assert (str(refused.value), refused.value.code) == (text, "not_found")


def test_a_very_long_name_is_no_matter():
    with pytest.raises(ToolError) as refused:
        told("x" * 1_000_000)
    assert len(str(refused.value)) < 300


def test_without_a_clock_of_its_own_it_tells_the_time_of_the_machine():
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    assert before <= dt.datetime.fromisoformat(now()["time"]) <= dt.datetime.now(dt.UTC)


def test_the_definition_says_how_to_name_a_zone():
    (made,) = clock_tools(lambda: NEW_YEAR)
    assert (made.name, made.tier) == ("now", "read")
    assert "e.g. Europe/Berlin" in made.schema["parameters"]["properties"]["timezone"]["description"]


def test_the_mock_model_asks_the_clock():
    run = Agent(tools=[told]).run("What time is it now in Tokyo?", view=False)
    (result,) = run.tool_results
    assert "2026-01-01T09:30:15+09:00" in result.text
