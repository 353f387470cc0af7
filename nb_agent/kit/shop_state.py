"""What the shop of `shop` holds: its values, where they start, and how they are written into a SQLite file.

Everything is invented; example.org belongs to nobody (RFC 2606). Nothing here is a tool.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from nb_agent.errors import SettingError

__all__ = ["CUSTOMERS", "ORDERS", "PRODUCTS", "STOCK", "TODAY", "Customer", "Order", "Product", "Status", "Warehouse", "write"]

Warehouse: TypeAlias = Literal["east-01", "west-02", "north-03"]
Status: TypeAlias = Literal["open", "shipped", "delivered", "cancelled"]


@dataclass(frozen=True, slots=True)
class Customer:
    """Who buys."""

    id: str
    name: str
    city: str
    email: str
    since: dt.date


@dataclass(frozen=True, slots=True)
class Product:
    """What is sold. ``price`` is in euros."""

    sku: str
    name: str
    price: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    """One product, some of it, from one warehouse. Amounts are in euros."""

    id: str
    customer_id: str
    sku: str
    quantity: int
    warehouse: Warehouse
    total: Decimal
    status: Status
    ordered_on: dt.date
    refunded: Decimal = Decimal("0.00")


#: The day that it is in the shop, so that new orders are the same in every run.
TODAY: Final = dt.date(2025, 6, 2)
CUSTOMERS: Final = (
    Customer("C-1001", "Ada Lindqvist", "Oslo", "ada@example.org", dt.date(2021, 3, 14)),
    Customer("C-1002", "Ben Okafor", "Berlin", "ben@example.org", dt.date(2021, 6, 2)),
    Customer("C-1003", "Clara Weiss", "Berlin", "clara@example.org", dt.date(2022, 11, 20)),
    Customer("C-1004", "佐藤 健", "京都", "ken@example.org", dt.date(2023, 1, 8)),
    Customer("C-1005", "Diego Quispe", "Lima", "diego@example.org", dt.date(2024, 4, 17)),
)
PRODUCTS: Final = (
    Product("SKU-A100", "desk lamp", Decimal("39.90")),
    Product("SKU-B200", "office chair", Decimal("189.00")),
    Product("SKU-C300", "standing desk", Decimal("449.50")),
    Product("SKU-D400", "notebook, A5", Decimal("4.25")),
)
#: Pieces that lie in a warehouse; those that are promised already are counted apart, by the shop.
STOCK: Final[dict[tuple[str, str], int]] = {
    ("SKU-A100", "east-01"): 120,
    ("SKU-A100", "west-02"): 15,
    ("SKU-A100", "north-03"): 0,
    ("SKU-B200", "east-01"): 8,
    ("SKU-B200", "west-02"): 30,
    ("SKU-B200", "north-03"): 4,
    ("SKU-C300", "east-01"): 0,
    ("SKU-C300", "west-02"): 6,
    ("SKU-C300", "north-03"): 11,
    ("SKU-D400", "east-01"): 900,
    ("SKU-D400", "west-02"): 450,
    ("SKU-D400", "north-03"): 75,
}
ORDERS: Final = (
    Order("O-2001", "C-1001", "SKU-A100", 2, "east-01", Decimal("79.80"), "delivered", dt.date(2025, 4, 28)),
    Order("O-2002", "C-1002", "SKU-B200", 1, "west-02", Decimal("189.00"), "delivered", dt.date(2025, 5, 6)),
    Order("O-2003", "C-1003", "SKU-D400", 40, "east-01", Decimal("170.00"), "shipped", dt.date(2025, 5, 19)),
    Order("O-2004", "C-1001", "SKU-C300", 1, "north-03", Decimal("449.50"), "shipped", dt.date(2025, 5, 27)),
    Order("O-2005", "C-1004", "SKU-B200", 2, "east-01", Decimal("378.00"), "open", dt.date(2025, 5, 30)),
    Order("O-2006", "C-1005", "SKU-A100", 1, "west-02", Decimal("39.90"), "cancelled", dt.date(2025, 5, 12)),
)

#: Amounts are whole cents in the file: SQLite has no decimal numbers, and sums of floats are not exact.
_TABLES: Final = """
    CREATE TABLE customers (id TEXT PRIMARY KEY, name TEXT, city TEXT, email TEXT, since TEXT);
    CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT, price_cents INTEGER);
    CREATE TABLE stock (
        sku TEXT REFERENCES products, warehouse TEXT, on_hand INTEGER, reserved INTEGER, PRIMARY KEY (sku, warehouse)
    );
    CREATE TABLE orders (
        id TEXT PRIMARY KEY, customer_id TEXT REFERENCES customers, sku TEXT REFERENCES products, quantity INTEGER, warehouse TEXT,
        total_cents INTEGER, status TEXT, ordered_on TEXT, refunded_cents INTEGER
    );
"""
#: Marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id), so that no other one is ever replaced.
_MARK: Final = int.from_bytes(b"nbas", "big")


def write(path: str | os.PathLike[str], tables: dict[str, Iterable[tuple[Any, ...]]]) -> Path:
    """Write rows into a new SQLite file, whole or not at all. An earlier file of a shop is replaced.

    Args:
        path: the file.
        tables: rows by the name of their table, with the columns in its order.

    Raises:
        SettingError: there is another file of this name, or the place cannot be written.
    """
    place = Path(path)
    if place.exists() and _mark(place) != _MARK:
        raise SettingError(f"{os.fspath(path)!r} exists and is no file of a shop; it was left alone, name another file")
    beside = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with closing(sqlite3.connect(beside)) as connection, connection:
            connection.executescript(f"PRAGMA application_id = {_MARK}; {_TABLES}")
            for name, rows in tables.items():
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO {name} VALUES ({marks})", [*map(_plain, row)])  # noqa: S608  names of _TABLES
        beside.replace(place)
    except (OSError, sqlite3.Error) as error:
        raise SettingError(f"{os.fspath(path)!r} cannot be written: {error}; name a file in a folder that is there") from None
    finally:
        beside.unlink(missing_ok=True)
    return place


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value * 100)
    return value.isoformat() if isinstance(value, dt.date) else value


def _mark(place: Path) -> int | None:
    """The application's number in the header of a SQLite file: four bytes from the 68th on (fileformat2.html, 1.3)."""
    if not place.is_file():  # opening a pipe would wait for ever
        return None
    try:
        with place.open("rb") as file:
            header = file.read(72)
    except OSError:  # not ours to read
        return None
    return int.from_bytes(header[68:], "big") if header.startswith(b"SQLite format 3\0") else None
