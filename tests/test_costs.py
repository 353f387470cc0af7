"""Costs at their edges: nothing reported, a tag on the name, prices that are none."""

import math

import pytest

from nb_agent.errors import SettingError
from nb_agent.pricing import cost
from nb_agent.usage import Usage

USAGE = Usage(input=600_000, cache_read=400_000, output=60_000, reasoning=40_000)


@pytest.mark.parametrize("prices", [None, {"gpt-4o": {"input": 1, "output": 2}}])
def test_where_nothing_was_reported_nothing_is_said_to_be_free(prices):
    assert cost(Usage(), "gpt-4o", prices=prices) is None


@pytest.mark.parametrize("model", ["deepseek-r1:8b", "ollama/deepseek-r1:70b", "deepseek/deepseek-r1:free", "gpt-oss:20b"])
def test_a_tagged_name_costs_not_what_its_maker_asks(model):
    assert cost(USAGE, model) is None
    assert cost(USAGE, model, prices={model: {"input": 0, "output": 0}}).total == 0


@pytest.mark.parametrize(
    "own", [{"input": math.nan, "output": 1}, {"input": 1, "output": math.inf}, {"input": 1, "output": 2, "cached": 5}, 5]
)
def test_prices_that_are_none_are_refused(own):
    with pytest.raises(SettingError, match="'mine'"):
        cost(USAGE, "mine", prices={"mine": own})


def test_every_bucket_is_paid_once():
    own = {"input": 1, "cache_read": 10, "cache_write": 100, "output": 1_000, "reasoning": 10_000}
    for bucket, price in own.items():
        assert cost(Usage(**{bucket: 1_000_000}), "mine", prices={"mine": own}).total == price
    assert cost(Usage(cache_write=100_000), "claude-sonnet-4-5").total == 0.375
