"""Groups of tools, and the choice among them."""

import pytest

from nb_agent.errors import SettingError
from nb_agent.tools.sets import MANY, ToolSets, by_words, crowded


def read_file(path: str) -> str:
    """Read a text file."""


def write_file(path: str) -> str:
    """Write a text file."""


def list_orders(customer: str) -> str:
    """Orders of a customer."""


def find_customer(name: str) -> str:
    """Look for a customer by name. 查找客户。"""


@pytest.fixture
def sets():
    return ToolSets({"files": [read_file, write_file], "shop": [list_orders, find_customer], "reading": [read_file]})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("files", ["read_file", "write_file"]),
        ("files, list_orders", ["read_file", "write_file", "list_orders"]),
        (["shop", "reading"], ["list_orders", "find_customer", "read_file"]),
        ("files reading", ["read_file", "write_file"]),
        ("", []),
    ],
)
def test_groups_and_single_tools_are_chosen_by_name(sets, names, expected):
    assert list(sets.chosen(names).names) == expected


def test_all_of_them_are_offered_once(sets):
    assert sorted(sets.all.names) == ["find_customer", "list_orders", "read_file", "write_file"]


def test_a_name_that_is_none_is_said_with_those_that_are(sets):
    with pytest.raises(SettingError, match=r"named 'fils'; the groups are: files, shop, reading"):
        sets.chosen("fils")


@pytest.mark.parametrize(
    ("prompt", "first"),
    [("Which orders has Ann?", "shop"), ("Write it into a file", "files"), ("查找客户 Ann", "shop")],
)
def test_a_route_by_words_finds_the_group_that_a_prompt_is_about(sets, prompt, first):
    assert by_words(prompt, sets)[0] == first


def test_where_no_word_is_shared_all_groups_are_offered(sets):
    assert by_words("Hm?", sets) == ["files", "shop", "reading"]


def test_many_tools_are_said_and_few_are_not():
    assert crowded(MANY) is None
    assert f"{MANY + 1} tools" in crowded(MANY + 1)
