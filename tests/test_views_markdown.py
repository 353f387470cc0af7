"""markdown.py: a run as Markdown. What hostile text can do in it is in test_hostile.py."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbconvert.filters import markdown2html
from samples import ANSWER, PROMPT, RESULTS, failing_events, state_of, three_round_events

from nb_agent.events import ENDINGS, RunEnded, RunStarted
from nb_agent.views.fold import Fold
from nb_agent.views.markdown import fence, markdown, span
from nb_agent.views.words import NEXT, visible


def test_the_run_is_told_in_its_order():
    shown = markdown(state_of(three_round_events()))
    told = [line for line in shown.split("\n") if line.startswith(("#### ", "**Request", "**Reply", "**Call"))]
    assert [re.split(r" POST| `", line)[0] for line in told] == [
        *("#### Prompt", "#### Answer", "#### Tokens"),
        *("#### Round 1", "**Request 1**", "**Reply 1**", "**Call**", "**Call**"),
        *("#### Round 2", "**Request 2**", "**Reply 2**", "**Call**"),
        *("#### Round 3", "**Request 3**", "**Reply 3**"),
    ]
    assert all(words in shown for words in (PROMPT, ANSWER, *RESULTS))
    assert "difference +6 (template)" in shown


def test_the_token_table_is_a_table():
    shown = markdown2html(markdown(state_of(three_round_events())))
    rows = re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    assert [len(re.findall("<t[hd]", row)) for row in rows] == [11] * 4
    assert "<strong>594</strong>" in rows[3]


@pytest.mark.parametrize("reason", ENDINGS)
def test_each_ending_is_named_with_what_to_do(reason):
    shown = markdown(state_of([RunStarted("hello", "m", "w"), RunEnded(reason, (), error="it broke")]))
    assert f"**Ended: {reason.replace('_', ' ')}**, {ENDINGS[reason]}.\n\n```text\nit broke\n```" in shown
    assert NEXT.get(reason, "") in shown


def test_a_failed_call_says_at_which_step_and_a_broken_reply_what_had_come():
    shown = markdown(state_of(failing_events()))
    assert "**✗** `failed at “fits schema”: town: 5 is not a string`" in shown
    assert "- `✗ fits schema: town: 5 is not a string`" in shown
    assert "**Reply 2** cut off\n\nThinking:\n\n```text\nIt seems that\n```\n\n```text\nThe weather in\n```" in shown
    assert "Traceback (for you; the model does not get it):" in shown


def test_what_a_person_changed_stands_beside_what_there_was():
    state = state_of(three_round_events())
    call = state["rounds"][0]["calls"][0]
    call |= {"asked": '{"path":"other.yaml"}', "given": {"text": "the tool's own words", "images": [], "code": None}}
    shown = markdown(state)
    assert "Arguments, as a person changed them:" in shown
    assert 'What the model had asked for:\n\n```text\n{"path":"other.yaml"}\n```' in shown
    assert "before a person changed it:\n\n```text\nthe tool's own words\n```" in shown


def test_a_run_that_has_not_begun_is_a_page_too():
    assert markdown(Fold().state).startswith("### %%agent\n")


@given(st.text(st.sampled_from("`~\n\r a<*|[]()\\")))
def test_no_text_closes_the_span_or_the_fence_it_stands_in(foreign):
    longest = max(map(len, re.findall("`+", foreign)), default=0)
    opening, *inside, closing = fence(foreign).split("\n")
    assert "\n".join(inside) == visible(foreign)
    assert (opening, len(closing) > longest) == (f"{closing}text", True)
    ticks = re.match("`*", span(foreign))[0]
    if ticks:
        middle = span(foreign)[len(ticks) : -len(ticks)]
        assert ticks not in re.findall("`+", middle)
        assert "\n" not in middle
