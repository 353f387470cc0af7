"""A small shop to learn with: customers, products, orders, and stock in three warehouses. All of it is invented and in memory.

Each `Shop` starts from the same state, and the same calls always give the same answers, so that a lesson can be run again. Unlike
`database`, its tools write: that is what they are for.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Mapping
from dataclasses import astuple, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar, get_args

from pydantic import Field

from nb_agent.errors import ToolError
from nb_agent.kit.shop_state import (
    CUSTOMERS,
    ORDERS,
    PRODUCTS,
    STOCK,
    TODAY,
    Customer,
    Order,
    Product,
    Status,
    Warehouse,
    write,
)
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["Shop", "shop_tools"]

#: Pieces that one call may reserve or order.
MOST_PIECES: Final = 1_000

_T = TypeVar("_T")
_Pieces = Annotated[int, Field(ge=1, le=MOST_PIECES)]


def shop_tools() -> list[Tool]:
    """All tools of a shop that was just opened. For tools and their shop together make a `Shop` and take its ``tools``."""
    return Shop().tools


class Shop:
    """A shop in its first state. Its methods are tools, and ``tools`` is all of them.

    Args:
        today: the date of new orders.
    """

    def __init__(self, *, today: dt.date = TODAY) -> None:
        self.today = today
        self.customers: dict[str, Customer] = {entry.id: entry for entry in CUSTOMERS}
        self.products: dict[str, Product] = {entry.sku: entry for entry in PRODUCTS}
        self.orders: dict[str, Order] = {entry.id: entry for entry in ORDERS}
        self._on_hand = dict(STOCK)
        self._reserved = dict.fromkeys(STOCK, 0)
        for order in ORDERS:
            if order.status == "open":
                self._reserved[order.sku, order.warehouse] += order.quantity
        self._lock = threading.Lock()  # calls of one reply run side by side

    @property
    def tools(self) -> list[Tool]:
        """The tools of this shop: those that read, those that write, and those that do harm."""
        return [
            self.find_customer, self.find_product, self.list_orders, self.get_order, self.check_stock,
            self.reserve_stock, self.create_order, self.cancel_order, self.refund_order,
        ]  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the shop as it is now into a SQLite file, with the tables customers, products, stock and orders.

        An earlier file of a shop is replaced.

        Raises:
            SettingError: another file has this name, or it cannot be written.
        """
        with self._lock:
            return write(
                path,
                {
                    "customers": map(astuple, self.customers.values()),
                    "products": map(astuple, self.products.values()),
                    "stock": ((*key, pieces, self._reserved[key]) for key, pieces in self._on_hand.items()),
                    "orders": map(astuple, self.orders.values()),
                },
            )

    # ------------------------------------------------------------------------------------------------- reading

    @tool(tier="read")
    def find_customer(self, text: str) -> list[Customer]:
        """Find customers of the shop by a part of their name, city or email address, in any case.

        Args:
            text: what to look for, e.g. Ada, Berlin or ken@example.org
        """
        wanted = text.strip().lower()
        return [entry for entry in self.customers.values() if wanted in f"{entry.name}\n{entry.city}\n{entry.email}".lower()]

    @tool(tier="read")
    def find_product(self, text: str) -> list[Product]:
        """Find products of the shop by a part of their name, to learn their SKU and their price in euros.

        Args:
            text: a part of the name, e.g. lamp or desk
        """
        return [entry for entry in self.products.values() if text.strip().lower() in entry.name]

    @tool(tier="read")
    def list_orders(self, customer_id: str, status: Status | None = None) -> list[Order]:
        """List the orders of one customer, oldest first.

        Args:
            customer_id: id of the customer, e.g. C-1001
            status: only orders that are open, shipped, delivered or cancelled, e.g. open; without it all of them
        """
        customer = _found(self.customers, customer_id, "customer")
        orders = sorted(self.orders.values(), key=lambda order: (order.ordered_on, order.id))
        return [order for order in orders if order.customer_id == customer.id and status in (None, order.status)]

    @tool(tier="read")
    def get_order(self, order_id: str) -> Order:
        """Get one order: customer, product, quantity, warehouse, status, date, total and what was refunded, in euros.

        Args:
            order_id: id of the order, e.g. O-2001
        """
        return _found(self.orders, order_id, "order")

    @tool(tier="read")
    def check_stock(self, sku: str, warehouse: Warehouse) -> JSON:
        """Check how many pieces of a product one warehouse has, and how many of them are still free to be sold.

        Args:
            sku: the product's SKU, e.g. SKU-A100
            warehouse: id of the warehouse, e.g. east-01
        """
        key = self._place(sku, warehouse)
        return {
            "sku": key[0],
            "warehouse": warehouse,
            "on_hand": self._on_hand[key],
            "reserved": self._reserved[key],
            "available": self._available(key),
        }

    # ------------------------------------------------------------------------------------------------- writing

    @tool(tier="write")
    def reserve_stock(self, sku: str, warehouse: Warehouse, quantity: _Pieces) -> JSON:
        """Set pieces of a product aside in one warehouse, so that nobody else can buy them.

        Args:
            sku: the product's SKU, e.g. SKU-A100
            warehouse: id of the warehouse, e.g. west-02
            quantity: how many pieces, e.g. 5
        """
        with self._lock:
            key = self._place(sku, warehouse)
            self._take(key, quantity)
            return {"sku": key[0], "warehouse": warehouse, "reserved_now": quantity, "available": self._available(key)}

    @tool(tier="write")
    def create_order(self, customer_id: str, sku: str, quantity: _Pieces, warehouse: Warehouse) -> Order:
        """Create a new order of one product for a customer. It is open, and its pieces are reserved, until it is shipped.

        Args:
            customer_id: id of the customer, e.g. C-1001
            sku: the product's SKU, e.g. SKU-B200
            quantity: how many pieces, e.g. 2
            warehouse: id of the warehouse that sends it, e.g. east-01
        """
        with self._lock:
            customer = _found(self.customers, customer_id, "customer")
            key = self._place(sku, warehouse)
            self._take(key, quantity)
            number = f"O-{2001 + len(self.orders)}"
            total = self.products[key[0]].price * quantity
            self.orders[number] = Order(number, customer.id, key[0], quantity, warehouse, total, "open", self.today)
            return self.orders[number]

    @tool(tier="danger")
    def cancel_order(self, order_id: str) -> Order:
        """Cancel an order that is still open, for good. Its pieces become free again.

        Args:
            order_id: id of the order, e.g. O-2005
        """
        with self._lock:
            order = _found(self.orders, order_id, "order")
            if order.status != "open":
                raise ToolError(f"order {order.id} is {order.status}; only open orders can be cancelled", code="not_open")
            self._reserved[order.sku, order.warehouse] -= order.quantity
            self.orders[order.id] = replace(order, status="cancelled")
            return self.orders[order.id]

    @tool(tier="danger")
    def refund_order(self, order_id: str, amount: Decimal) -> Order:
        """Pay money back for an order that was shipped or delivered. It cannot be undone.

        Args:
            order_id: id of the order, e.g. O-2001
            amount: euros to pay back, at most what the order cost, e.g. 39.90
        """
        with self._lock:
            order = _found(self.orders, order_id, "order")
            if order.status not in ("shipped", "delivered"):
                raise ToolError(f"order {order.id} is {order.status}; cancel it instead, or leave it", code="not_paid")
            self.orders[order.id] = replace(order, refunded=order.refunded + _payable(order, amount))
            return self.orders[order.id]

    # ------------------------------------------------------------------------------------------------- what they share

    def _place(self, sku: str, warehouse: str) -> tuple[str, str]:
        """Where a product lies. The warehouse is checked here too: a tool of one's own around this one may take any text.

        Raises:
            ToolError: there is no such warehouse or product; the text names those there are.
        """
        if warehouse not in get_args(Warehouse):
            _missing("warehouse", warehouse, get_args(Warehouse), code="unknown_warehouse")
        return _found(self.products, sku, "product").sku, warehouse

    def _available(self, key: tuple[str, str]) -> int:
        return self._on_hand[key] - self._reserved[key]

    def _take(self, key: tuple[str, str], quantity: int) -> None:
        if not 1 <= quantity <= MOST_PIECES:
            raise ToolError(f"quantity={quantity} is not between 1 and {MOST_PIECES:,}", code="bad_quantity")
        if quantity > self._available(key):
            free = self._available(key)
            others = [f"{self._available((key[0], place))} in {place}" for place in get_args(Warehouse) if place != key[1]]
            raise ToolError(
                f"only {free} of {key[0]} are available in {key[1]}, not {quantity}; there are {' and '.join(others)}",
                code="not_enough_stock",
            )
        self._reserved[key] += quantity


def _found(entries: Mapping[str, _T], wanted: str, kind: str) -> _T:
    entry = entries.get(wanted.strip().upper())
    if entry is None:
        _missing(kind, wanted, tuple(entries))
    return entry


def _missing(kind: str, wanted: str, known: tuple[str, ...], *, code: str = "not_found") -> NoReturn:
    listed = ", ".join(known) if len(known) <= 10 else f"{known[0]} to {known[-1]}"
    raise ToolError(f"there is no {kind} {wanted[:100]!r}; there are {listed}", code=code)


def _payable(order: Order, amount: Decimal) -> Decimal:
    left = order.total - order.refunded
    if not (amount.is_finite() and 0 < amount <= left and amount == round(amount, 2)):
        text = f"amount={amount} cannot be paid back for order {order.id}; give euros and cents up to {left}"
        raise ToolError(text, code="bad_amount")
    return round(amount, 2)
