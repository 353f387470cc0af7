"""Tables and charts over the rounds and by tool."""

import pytest
from samples import state_of, three_round_events

from nb_agent import Agent
from nb_agent.errors import SettingError
from nb_agent.views import plots


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
        city: its name, e.g. Oslo
    """
    return f"sunny in {city}"


@pytest.fixture(scope="module")
def run():
    return Agent(tools=[get_weather]).run("What is the weather in Berlin?", view=False)


def test_a_row_for_each_round_says_what_was_counted_reported_and_spent_so_far(run):
    table = run.tokens_by_round
    assert table["round"].tolist() == [1, 2]
    assert table["counted"].tolist() == table["reported_input"].tolist()
    spent = [reply.usage.input_tokens + reply.usage.output_tokens for reply in run.replies]
    assert table["total_so_far"].tolist() == [spent[0], sum(spent)]
    assert table["share_of_window"].iloc[1] == table["counted"].iloc[1] / 8192


def test_a_row_for_each_tool_says_what_its_definition_cost_and_how_often_it_was_called(run):
    table = run.tokens_by_tool.set_index("tool")
    row = table.loc["get_weather"]
    assert (row["requests"], row["calls"], row["failed"]) == (2, 1, 0)
    assert row["definitions_in_all"] == 2 * row["definition"] == run.tokens.query("part == 'tools'")["counted"].sum()


def test_a_run_that_has_not_begun_has_empty_tables_of_the_same_types(run):
    empty = state_of([])
    assert plots.rounds_frame(empty).dtypes.astype(str).to_dict() == run.tokens_by_round.dtypes.astype(str).to_dict()
    assert len(plots.tools_frame(empty)) == 0
    assert "no round yet" in plots.plot_rounds(empty).get_label()


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("by", ["round", "tool"])
def test_the_charts_are_drawn_and_say_in_words_what_they_show(by, dark):
    state = state_of(three_round_events())
    figure = {"round": plots.plot_rounds, "tool": plots.plot_tools}[by](state, dark=dark)
    figure.savefig("/dev/null", format="png")
    assert {"round": "3 rounds", "tool": "tokens of its definition"}[by] in figure.get_label()


def test_the_window_is_drawn_where_it_is_near():
    near = {**state_of(three_round_events()), "window": 1_000}
    names = [text.get_text() for text in plots.plot_rounds(near).legends[0].get_texts()]
    assert "context window" in names


def test_a_chart_that_there_is_not_is_named(run):
    assert len(run.plot_tokens("round").axes) == 1
    with pytest.raises(SettingError, match="no chart of tokens by 'colour'; there are: part, round, tool"):
        run.plot_tokens("colour")
