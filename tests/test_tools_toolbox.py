"""The tools of one run, by name."""

import pytest

from nb_agent.errors import ToolDefinitionError
from nb_agent.messages import Definition
from nb_agent.tools.schema import tool
from nb_agent.tools.toolbox import AnyTool, Toolbox


def rain(town: str) -> int:
    """Rain of a day."""
    return len(town)


def wind(town: str) -> int:
    """Wind of a day."""
    return len(town)


class Remote:
    """A tool of a server."""

    name = "remote"
    definition = Definition("remote", "Far away.", {"type": "object", "properties": {}})
    main_thread, tier, untrusted, vouched, time_limit = False, None, False, True, None

    def check(self, arguments):
        return arguments

    def call(self, arguments):
        return "far"


def test_functions_become_tools_and_keep_their_order():
    remote = Remote()
    box = Toolbox([wind, remote, tool(rain)])
    assert box.names == ("wind", "remote", "rain")
    assert [definition.name for definition in box.definitions] == ["wind", "remote", "rain"]
    assert box.find("remote") is remote
    assert box.find("wind").call({"town": "Oslo"}) == 4
    assert all(isinstance(entry, AnyTool) for entry in box)
    assert len(box) == 3


def test_a_name_is_found_only_as_it_is_spelled():
    assert Toolbox([rain]).find("Rain") is None
    assert Toolbox().find("rain") is None
    assert Toolbox().definitions == ()


def test_the_same_tool_twice_is_one():
    class Shop:
        @tool
        def add(self, kg: int):
            return kg

    shop, made = Shop(), tool(rain)
    assert Toolbox([made, made, rain, shop.add, shop.add]).names == ("rain", "add")


def test_two_different_tools_of_one_name_are_an_error_that_names_it(cases):
    scopes = [{"tool": tool}, {"tool": tool}]
    for cell, scope in zip(cases["A17"]["given"]["cells"], scopes, strict=True):
        exec(cell, scope)
    with pytest.raises(ToolDefinitionError) as caught:
        Toolbox([scope["convert"] for scope in scopes])
    assert str(caught.value) == (
        "two different tools are called 'convert': <tool convert(x)> and <tool convert(x, places)>; "
        "give one of them another name with tool(function, name='…')"
    )


def test_a_method_without_its_object_is_an_error_that_says_so():
    class Shop:
        @tool
        def add(self, kg: int):
            return kg

        def sell(self, kg: int):
            return kg

    for method in (Shop.add, Shop.sell):
        with pytest.raises(ToolDefinitionError, match="is a method and needs its object"):
            Toolbox([method])
    assert Toolbox([Shop().add, Shop().sell]).names == ("add", "sell")


@pytest.mark.parametrize("odd", [5, "rain", None])
def test_what_is_no_tool_is_an_error_at_once(odd):
    with pytest.raises(ToolDefinitionError, match="a tool is made of a function"):
        Toolbox([odd])


def test_a_toolbox_is_made_of_another_one():
    assert Toolbox([*Toolbox([rain]), wind]).names == ("rain", "wind")
    assert Toolbox(Toolbox([rain])).names == ("rain",)
