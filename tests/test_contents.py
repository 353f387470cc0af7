"""The same content in other forms."""

import json

import pytest

from nb_agent import compare_contents, tokens
from nb_agent.contents import SAMPLES, forms
from nb_agent.errors import SettingError


def test_each_content_is_counted_as_text_as_json_and_as_json_inside_json():
    text = 'three "lamps"\n三盏灯'
    made = forms(text)
    assert json.loads(json.loads(made["JSON in JSON"])["arguments"]) == json.loads(made["JSON"]) == {"content": text}
    rows = compare_contents({"order": text}).rows
    assert [row.tokens for row in rows] == [tokens.count(form, model="gpt-4o") for form in made.values()]
    assert rows[0].tokens < rows[1].tokens < rows[2].tokens
    assert (rows[0].characters, rows[0].bytes) == (len(text), len(text.encode()))


def test_chinese_costs_more_for_a_character_and_less_for_a_byte_than_english():
    table = compare_contents().frame().query("form == 'text'").set_index("name")
    assert set(table.index) == set(SAMPLES)
    assert table.loc["中文", "per_character"] > 2 * table.loc["English", "per_character"]


def test_the_vocabulary_is_named_and_so_is_an_estimate():
    assert (compare_contents(model="gpt-4").encoding, compare_contents(model="gpt-4").exact) == ("cl100k_base", True)
    assert not compare_contents(model="claude-opus").exact
    assert "an estimate" in compare_contents(model="claude-opus").plot().axes[0].get_title(loc="left")


def test_the_costs_are_shown_as_a_table_and_as_a_chart_that_says_all_in_words():
    costs = compare_contents({"中文 🎉": "三盏灯", "English": "three lamps"})
    assert costs._repr_html_().count("<tr") == 7
    assert "中文 🎉" in repr(costs)
    figure = costs.plot(dark=True)
    assert "English: text 2, JSON" in figure.get_label()
    assert len(figure.axes[0].patches) == 6


@pytest.mark.parametrize("texts", [{}, {"empty": ""}])
def test_nothing_to_count_is_said(texts):
    with pytest.raises(SettingError, match="there is no text to count"):
        compare_contents(texts)
