"""One task over several wire formats, side by side."""

import pytest

from nb_agent import Agent, tool
from nb_agent.comparison import FIELDS, compare, found_at
from nb_agent.errors import SettingError

WIRES = ("chat_completions", "responses", "anthropic_messages", "gemini_generate")


@tool
def get_weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    return {"city": city, "temperature": 21}


@pytest.fixture(scope="module")
def compared():
    return compare("What is the weather in Berlin and in Oslo?", tools=[get_weather], system="Be brief.")


def test_the_same_task_has_the_same_answer_over_every_format(compared):
    assert set(compared.texts) == set(WIRES)
    assert len(set(compared.texts.values())) == 1
    assert {tuple(message.role for message in run.messages) for run in compared.runs.values()} == {
        ("system", "user", "assistant", "tool", "tool", "assistant")
    }


def test_rounds_are_aligned_and_every_field_is_there_or_said_to_be_lost(compared):
    rows = compared.rows
    assert [row["round"] for row in rows] == sorted(row["round"] for row in rows)
    for row in rows:
        for wire in WIRES:
            assert (row[wire] is None) == (wire in row["lost"]), row
    calls = next(row for row in rows if row["field"] == "its arguments")
    assert (calls["chat_completions"], calls["anthropic_messages"]) == ('{"city":"Berlin"}', {"city": "Berlin"})
    ids = next(row for row in rows if row["field"] == "its id")
    assert "makes one up" in ids["lost"]["gemini_generate"]
    results = next(row for row in rows if row["field"] == "its result")
    assert all("21" in str(results[wire]) for wire in WIRES)


def test_every_field_is_found_in_at_least_one_format(compared):
    streamed = compare("hello", wires=WIRES, stream=True, system="Be brief.")
    seen = {row["field"] for row in [*compared.rows, *streamed.rows]}
    assert seen == {field.name for field in FIELDS}


def test_the_frame_has_a_column_for_each_format(compared):
    frame = compared.frame
    assert list(frame.columns) == ["round", "side", "field", *WIRES, "lost"]
    assert len(frame) == len(compared.rows)


def test_the_page_marks_what_is_lost_and_escapes_what_is_foreign():
    page = compare("What is <b>this</b>?", wires=["chat_completions", "gemini_generate"])._repr_html_()
    assert "not in the body: the path of the request names it" in page
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_an_agent_of_ones_own_can_be_compared():
    compared = compare("hello", wires=["responses"], agent=lambda wire: Agent(model="mock-1k", wire=wire))
    assert compared.runs["responses"].requests[0].body["model"] == "mock-1k"


def test_a_format_that_does_not_exist_is_named():
    with pytest.raises(SettingError, match="no wire format named 'smoke'; there are chat_completions, "):
        compare("hello", wires=["smoke"])


def test_paths_lead_to_values_or_to_nothing():
    body = {"a": [{"k": "x"}, {"k": "y", "v": [1, 2]}], "s": "t"}
    assert found_at(body, "a ?k=y v -1") == 2
    assert found_at(body, "a ?v k") == "y"
    for path in ("", "b", "a 9", "a ?k=z", "s 0", "s ?k"):
        assert found_at(body, path) is None
