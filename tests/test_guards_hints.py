"""Hints in texts: the same answer as looking for each, and quicker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nb_agent.guards.hints import Hints, words_of

HINTS = ("key", "api key", "from now on", "密钥", "a.i.", "on")
TABLE = Hints(HINTS)


@given(st.text(st.sampled_from("keyapinowfrm.密钥 \n\t1"), max_size=60))
def test_no_hint_is_missed_that_stands_in_a_text(text):
    assert TABLE.of(text) == {hint for hint in HINTS if hint in text}


@pytest.mark.parametrize("text", ["x" * 100 + "key", "12345", "", "   ", "1" * 50])
def test_words_of_any_length_are_looked_at(text):
    assert TABLE.of(text) == {hint for hint in HINTS if hint in text}


def test_what_is_learnt_of_words_stays_bounded():
    table = Hints(("key",))
    for number in range(25_000):
        table.of(f"word{number}")
    assert len(table._known) <= 20_000
    assert words_of("a b a") == {"a", "b"}
