"""Costs: by genai-prices or by own prices, and never a number that nobody published."""

import sys

import pytest
from scripted import answers, said

from nb_agent import Agent
from nb_agent.errors import SettingError
from nb_agent.pricing import cost
from nb_agent.usage import Usage

USAGE = Usage(input=600_000, cache_read=400_000, output=60_000, reasoning=40_000)


def test_known_models_cost_what_the_library_says_cached_tokens_apart():
    found = cost(USAGE, "gpt-4o")
    assert (found.input, found.output, found.total) == (0.6 * 2.5 + 0.4 * 1.25, 0.1 * 10, 3.0)
    assert (found.currency, found.source.startswith("genai-prices")) == ("USD", True)
    assert "gpt-4o at OpenAI" in str(found)


@pytest.mark.parametrize("model", ["openai/gpt-4o", "azure/gpt-4o-2024-11-20", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_decorated_names_have_prices(model):
    assert cost(USAGE, model).total > 0


@pytest.mark.parametrize("model", ["mock", "mock:window=700", "you", "no-such-model", "qwen3:8b-q4_K_M"])
def test_where_no_price_is_known_there_is_none(model):
    assert cost(USAGE, model) is None


def test_own_prices_go_first_and_buckets_without_one_cost_like_their_kind():
    found = cost(USAGE, "gpt-4o", prices={"gpt-4o": {"input": 1, "cache_read": 0, "output": 10}}, currency="EUR")
    assert (found.input, found.output, found.currency, found.source) == (0.6, 1.0, "EUR", "your own prices")
    assert cost(Usage(input=1_000_000, cache_write=1_000_000), "mine", prices={"mine": {"input": 3, "output": 4}}).total == 6


@pytest.mark.parametrize(
    "own", [{}, {"input": 1}, {"input": "1", "output": 2}, {"input": -1, "output": 2}, {"input": True, "output": 1}]
)
def test_a_price_that_is_no_amount_is_refused(own):
    with pytest.raises(SettingError, match=r"the price of 'mine' for \w+"):
        cost(USAGE, "mine", prices={"mine": own})


def test_without_the_library_there_is_no_price(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost(USAGE, "gpt-4o") is None


def test_a_run_says_what_it_cost(monkeypatch):
    body = {**said("hi"), "usage": {"prompt_tokens": 1_000, "completion_tokens": 100}}
    answers(monkeypatch, body, body)
    assert Agent().run("hello", view=False).cost is None
    assert Agent(prices={"mock": {"input": 2, "output": 10}}).run("hello", view=False).cost.total == 0.003


def test_nothing_is_asked_of_the_network(monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection was tried"))
    assert cost(USAGE, "gpt-4o-mini").total > 0
