"""The shop of the lessons: what its tools read, write and refuse."""

import datetime as dt
import sqlite3
import threading
from contextlib import closing
from decimal import Decimal

import jsonschema
import pytest

from nb_agent import Agent
from nb_agent.errors import SettingError, ToolError
from nb_agent.kit.shop import Shop, shop_tools
from nb_agent.tools.schema import tool
from nb_agent.tools.toolbox import Toolbox


@pytest.fixture
def shop():
    return Shop()


def refusal(attempt, *arguments):
    with pytest.raises(ToolError) as refused:
        attempt(*arguments)
    return refused.value.code, str(refused.value)


def test_the_tools_have_the_tiers_of_what_they_do(shop):
    assert {made.name: made.tier for made in shop.tools} == {
        "find_customer": "read",
        "find_product": "read",
        "list_orders": "read",
        "get_order": "read",
        "check_stock": "read",
        "reserve_stock": "write",
        "create_order": "write",
        "cancel_order": "danger",
        "refund_order": "danger",
    }
    assert Toolbox(shop_tools()).names == Toolbox(shop.tools).names


def test_every_parameter_has_a_description_with_an_example(shop):
    for made in shop.tools:
        jsonschema.Draft202012Validator.check_schema(made.schema["parameters"])
        assert len(made.description) > 40
        for name, form in made.schema["parameters"]["properties"].items():
            assert "e.g. " in form["description"], (made.name, name)


def test_each_shop_starts_anew_and_the_same_calls_give_the_same_answers():
    def lesson():
        shop = Shop()
        return (
            shop.create_order("C-1001", "SKU-A100", 3, "east-01"),
            shop.check_stock("SKU-A100", "east-01"),
            shop.list_orders("C-1001"),
        )

    assert lesson() == lesson()


def test_customers_products_and_orders_are_found(shop):
    assert [entry.id for entry in shop.find_customer("berlin")] == ["C-1002", "C-1003"]
    assert [entry.id for entry in shop.find_customer("佐藤")] == ["C-1004"]
    assert shop.find_customer("nobody") == []
    assert [(entry.sku, entry.price) for entry in shop.find_product(" Desk ")] == [
        ("SKU-A100", Decimal("39.90")),
        ("SKU-C300", Decimal("449.50")),
    ]
    assert [entry.id for entry in shop.list_orders("c-1001")] == ["O-2001", "O-2004"]
    assert [entry.id for entry in shop.list_orders("C-1001", "shipped")] == ["O-2004"]
    assert shop.get_order("O-2001").ordered_on == dt.date(2025, 4, 28)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "text"),
    [
        (
            "get_order",
            ("O-9999",),
            "not_found",
            "there is no order 'O-9999'; there are O-2001, O-2002, O-2003, O-2004, O-2005, O-2006",
        ),
        ("list_orders", ("Ada",), "not_found", "there is no customer 'Ada'; there are C-1001, C-1002, C-1003, C-1004, C-1005"),
        (
            "check_stock",
            ("SKU-Z1", "east-01"),
            "not_found",
            "there is no product 'SKU-Z1'; there are SKU-A100, SKU-B200, SKU-C300, SKU-D400",
        ),
        (
            "check_stock",
            ("SKU-A100", "east-99"),
            "unknown_warehouse",
            "there is no warehouse 'east-99'; there are east-01, west-02, north-03",
        ),
        (
            "reserve_stock",
            ("SKU-B200", "east-01", 7),
            "not_enough_stock",
            "only 6 of SKU-B200 are available in east-01, not 7; there are 30 in west-02 and 4 in north-03",
        ),
        ("create_order", ("C-1001", "SKU-B200", 0, "east-01"), "bad_quantity", "quantity=0 is not between 1 and 1,000"),
        ("cancel_order", ("O-2001",), "not_open", "order O-2001 is delivered; only open orders can be cancelled"),
        ("refund_order", ("O-2005", Decimal(1)), "not_paid", "order O-2005 is open; cancel it instead, or leave it"),
        (
            "refund_order",
            ("O-2001", Decimal(80)),
            "bad_amount",
            "amount=80 cannot be paid back for order O-2001; give euros and cents up to 79.80",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(shop, name, arguments, code, text):
    before = dict(shop.orders)
    assert refusal(getattr(shop, name), *arguments) == (code, text)
    assert shop.orders == before


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "Infinity", "1e9"])
def test_odd_amounts_are_not_paid_back(shop, amount):
    assert refusal(shop.refund_order, "O-2001", Decimal(amount))[0] == "bad_amount"


def test_reserved_pieces_are_no_longer_available(shop):
    assert shop.reserve_stock("SKU-B200", "west-02", 10) == {
        "sku": "SKU-B200",
        "warehouse": "west-02",
        "reserved_now": 10,
        "available": 20,
    }
    assert shop.check_stock("SKU-B200", "west-02") == {
        "sku": "SKU-B200",
        "warehouse": "west-02",
        "on_hand": 30,
        "reserved": 10,
        "available": 20,
    }


def test_an_order_takes_stock_and_gives_it_back_when_it_is_cancelled(shop):
    order = (
        shop.create_order("C-1002", "SKU-D400", 100, "north-03")
        if False
        else shop.create_order("C-1002", "SKU-D400", 70, "north-03")
    )
    assert (order.id, order.total, order.status, order.ordered_on) == ("O-2007", Decimal("297.50"), "open", dt.date(2025, 6, 2))
    assert shop.check_stock("SKU-D400", "north-03")["available"] == 5
    assert shop.cancel_order("O-2007").status == "cancelled"
    assert shop.check_stock("SKU-D400", "north-03")["available"] == 75
    assert refusal(shop.cancel_order, "O-2007")[0] == "not_open"


def test_refunds_add_up_to_what_was_paid_and_no_further(shop):
    assert shop.refund_order("O-2001", Decimal("39.9")).refunded == Decimal("39.90")
    assert shop.refund_order("O-2001", Decimal("39.90")).refunded == Decimal("79.80")
    assert refusal(shop.refund_order, "O-2001", Decimal("0.01"))[0] == "bad_amount"


def test_calls_side_by_side_never_sell_a_piece_twice(shop):
    sold, refused = [], []

    def buy():
        try:
            sold.append(shop.create_order("C-1001", "SKU-C300", 1, "west-02").id)
        except ToolError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=buy) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(sold) == [f"O-{number}" for number in range(2007, 2013)]
    assert refused == ["not_enough_stock"] * 14


def test_the_model_is_told_the_allowed_warehouses(shop):
    assert shop.check_stock.schema["parameters"]["properties"]["warehouse"]["enum"] == ["east-01", "west-02", "north-03"]
    run = Agent(tools=shop.tools).run("How many SKU-A100 are in west-02?", view=False)
    (result,) = run.tool_results
    assert '"available": 15' in result.text


def test_a_vague_tool_around_the_shop_refuses_an_invented_warehouse_with_the_allowed_ones(shop):
    @tool
    def check_stock(sku: str, warehouse: str) -> dict:
        """Check stock."""
        return shop.check_stock(sku, warehouse)

    code, text = refusal(check_stock, "SKU-A100", "east-99")
    assert code == "unknown_warehouse"
    assert text.endswith("there are east-01, west-02, north-03")


def test_a_saved_shop_is_a_database_and_is_written_again_when_the_lesson_runs_again(shop, tmp_path):
    shop.refund_order("O-2001", Decimal("9.90"))
    shop.reserve_stock("SKU-A100", "east-01", 5)
    place = shop.save(tmp_path / "a?b#.db")
    assert shop.save(place) == place
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("select total_cents, refunded_cents, ordered_on from orders where id = 'O-2001'").fetchall() == [
            (7980, 990, "2025-04-28")
        ]
        assert connection.execute("select reserved from stock where sku = 'SKU-A100' and warehouse = 'east-01'").fetchone() == (5,)
    assert [path.name for path in tmp_path.iterdir()] == ["a?b#.db"]


@pytest.mark.parametrize("content", ["a text", "another database", "a folder"])
def test_saving_replaces_nothing_but_a_shop(shop, tmp_path, content):
    place = tmp_path / "x.db"
    if content == "a folder":
        place.mkdir()
    elif content == "a text":
        place.write_text(content * 20, encoding="utf-8")
    else:
        with closing(sqlite3.connect(place)) as connection:
            connection.execute("create table x(a)")
    before = None if place.is_dir() else place.read_bytes()
    with pytest.raises(SettingError, match=r"exists and is no file of a shop; it was left alone, name another file$"):
        shop.save(place)
    assert (None if place.is_dir() else place.read_bytes()) == before


def test_a_place_that_cannot_be_written_is_said(shop, tmp_path):
    with pytest.raises(SettingError, match=r"cannot be written: .*; name a file in a folder that is there$"):
        shop.save(tmp_path / "none" / "x.db")
