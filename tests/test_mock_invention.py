"""A definition that gives nothing to go by is paid for with a round: the mock invents, is refused, and mends it."""

from typing import Literal

import pytest

from nb_agent import Agent, ToolError, tool

PLACES = ("east-01", "west-02", "north-03")
PROMPT = "How many pieces of SKU-A100 are in the east warehouse?"


def stock(sku, warehouse):
    if warehouse not in PLACES:
        raise ToolError(f"there is no warehouse {warehouse!r}; there are {', '.join(PLACES)}", code="unknown_warehouse")
    return {"sku": sku, "warehouse": warehouse, "pieces": 7}


@tool(name="check_stock")
def vague(sku: str, warehouse: str) -> dict:
    """Check the stock."""
    return stock(sku, warehouse)


@tool(name="check_stock")
def listed(sku: str, warehouse: Literal["east-01", "west-02", "north-03"]) -> dict:
    """Check the stock of an article in one warehouse.

    Args:
        sku: number of the article, e.g. SKU-A100
        warehouse: where it lies
    """
    return stock(sku, warehouse)


@tool(name="check_stock")
def described(sku: str, warehouse: str) -> dict:
    """Check the stock of an article in one warehouse.

    Args:
        sku: number of the article, e.g. SKU-A100
        warehouse: id of the warehouse, one of east-01, west-02, north-03
    """
    return stock(sku, warehouse)


def asked(run):
    return [call.arguments for message in run.messages for call in message.tool_calls]


def test_without_a_word_about_the_values_one_is_invented_refused_and_mended():
    run = Agent(tools=[vague]).run(PROMPT)
    first, second = asked(run)
    assert '"east-99"' in first
    assert '"east-01"' in second
    assert [result.code for result in run.tool_results] == ["unknown_warehouse", None]
    assert "7" in run.text


@pytest.mark.parametrize("good", [listed, described])
def test_with_the_values_in_the_definition_it_is_right_the_first_time(good):
    run = Agent(tools=[good]).run(PROMPT)
    (only,) = asked(run)
    assert '"east-01"' in only
    assert "7" in run.text


def test_a_refusal_that_offers_nothing_nearer_is_told_and_not_tried_for_ever():
    @tool
    def check_stock(sku: str, warehouse: str) -> str:
        """Check the stock."""
        raise ToolError(f"there is no warehouse {warehouse!r}", code="unknown_warehouse")

    run = Agent(tools=[check_stock]).run(PROMPT)
    assert (len(asked(run)), run.reason) == (1, "stop")
