"""Joining an answer that was cut off with its rest."""

import time

import pytest

from nb_agent.joining import joined


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("One two", " three", "One two three"),
        ("Hello wor", "ld and more", "Hello world and more"),
        ("The quick brown fox ju", "brown fox jumps.", "The quick brown fox jumps."),
        ("一二三四五六七八九十", "七八九十，然后是十一", "一二三四五六七八九十，然后是十一"),
        (
            "今天北京天气晴朗，适合去公园散步，我们可以",
            "今天北京的天气晴朗，适合去公园散步，我们可以带上水。",
            "今天北京天气晴朗，适合去公园散步，我们可以带上水。",
        ),
        ("北京的天气今天很好，温度是二十", "今天很好, 温度是二十一度。", "北京的天气今天很好，温度是二十一度。"),
        ("8, 9, 10, 11,", "9, 10, 11, 12, 13", "8, 9, 10, 11, 12, 13"),
        (
            "Once upon a time there was a small model that wrote until the limit ca",
            "Once upon a time, there was a small model which wrote until the limit came. Then it stopped.",
            "Once upon a time there was a small model that wrote until the limit came. Then it stopped.",
        ),
        (
            "def f(x):\n    return x + 1\n\ndef g(x):\n    ret",
            "def g(x):\n    return x + 2\n",
            "def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 2\n",
        ),
        ("", "x", "x"),
        ("x", "", "x"),
        ("🌲🌊", "🌊🌲", "🌲🌊🌊🌲"),
    ],
)
def test_what_is_repeated_is_there_once(first, second, whole):
    assert joined(first, second) == whole


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("the end of the story is that the", " cat sat"),
        ("A is 1. B is", " 2. A is done."),
        ("Rome fell. ", "Rome rose again, and the people of the city were glad."),
    ],
)
def test_what_only_looks_a_little_like_a_repeat_is_kept(first, second):
    assert joined(first, second) == first + second


def test_long_texts_take_no_longer():
    began = time.perf_counter()
    joined("ab" * 500_000, "ab" * 500_000)
    assert time.perf_counter() - began < 1


def test_every_cut_of_a_text_is_mended_however_much_is_repeated():
    text = "The loop sends the whole history, and the model answers; 然后它会继续回答, until nothing is left to call."
    for cut in range(30, len(text) - 5):
        for back in (0, 15, 25):
            assert joined(text[:cut], text[cut - back :]) == text, (cut, back)
