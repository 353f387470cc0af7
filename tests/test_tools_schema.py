"""Tools from Python functions: definitions, docstrings, arguments, calls."""

import asyncio
import contextlib
import datetime as dt
import enum
import functools
import json
import re
import sys
import textwrap
import threading
import time
import typing
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd
import pydantic
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field

from nb_agent.errors import AgentError, ToolDefinitionError
from nb_agent.tools.docstrings import read
from nb_agent.tools.schema import ArgumentsError, Tool, tool


def written(case, name=None):
    """The names that a case's code defines, or one of them; in a namespace of its own, like a notebook's."""
    scope = {"__name__": "__main__", "tool": tool}
    exec(compile(textwrap.dedent(case["given"]["python"]), "<cell>", "exec"), scope)
    return scope if name is None else scope[name]


def run(made, arguments):
    return made.call(made.check(arguments))


def parameters(function, **options):
    made = tool(function, **options)
    Draft202012Validator.check_schema(made.definition.parameters)
    json.dumps(made.schema, allow_nan=False)
    return made.definition.parameters


def properties(function):
    return parameters(function)["properties"]


def accepts(schema, instance):
    return Draft202012Validator(schema).is_valid(instance)


# ------------------------------------------------------------------------------------------------- cases


def test_variadic_parameters_are_left_out(cases):
    made = tool(written(cases["A01"], "tally"))
    expect = cases["A01"]["expect"]
    assert made.definition.parameters["required"] == expect["required"]
    assert made.definition.parameters["properties"] == {"start": expect["property_start"]}
    assert run(made, cases["A01"]["given"]["call"]) == expect["call_result"]


def test_postponed_annotations_are_resolved(cases):
    expect, made = cases["A02"]["expect"], tool(written(cases["A02"], "book"))
    schema = made.definition.parameters
    assert all(accepts(schema, instance) for instance in expect["schema_accepts"])
    assert not any(accepts(schema, instance) for instance in expect["schema_rejects"])
    assert schema["properties"]["room"]["enum"] == expect["room_enum"]
    assert [run(made, call) for call in cases["A02"]["given"]["calls"]] == expect["call_results"]


def test_google_docstring_without_a_blank_line_is_read(cases):
    expect, made = cases["A04"]["expect"], tool(written(cases["A04"], "count_birds"))
    assert made.description == expect["tool_description"]
    found = {name: form["description"] for name, form in made.definition.parameters["properties"].items()}
    assert found == expect["property_descriptions"]


def test_parameters_named_like_schema_keywords_stay(cases):
    expect, made = cases["A06"]["expect"], tool(written(cases["A06"], "file_note"))
    assert sorted(made.definition.parameters["properties"]) == expect["property_names"]
    assert made.definition.parameters["required"] == expect["required"]
    assert run(made, cases["A06"]["given"]["call"]) == expect["call_result"]


def test_partials_are_called_like_what_they_wrap_and_hide_what_is_bound(cases):
    expect, made = cases["A08"]["expect"], [tool(part) for part in written(cases["A08"], "tools")]
    assert [one.name for one in made] == expect["tool_names"]
    assert [one.description for one in made] == expect["descriptions"]
    assert [one.definition.parameters["required"] for one in made] == expect["required"]
    assert "abc" not in json.dumps([one.schema for one in made])
    assert [run(one, call[1]) for one, call in zip(made, cases["A08"]["given"]["calls"], strict=True)] == expect["call_results"]


def test_a_parameter_typed_as_a_model_arrives_as_one(cases):
    expect, made = cases["A09"]["expect"], tool(written(cases["A09"], "area"))
    assert run(made, cases["A09"]["given"]["call"]) == expect["call_result"]
    with pytest.raises(ArgumentsError) as caught:
        made.check(cases["A09"]["given"]["bad_call"])
    assert str(caught.value) == (
        'the arguments do not fit area: box.w: expected a valid integer, unable to parse string as an integer, got "wide"'
    )


def test_a_tool_without_parameters_has_properties_and_no_required(cases):
    made = tool(written(cases["A11"], "clock"))
    assert made.definition.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert run(made, {}) == "noon"


def test_an_open_dict_stays_open(cases):
    made = tool(written(cases["A12"], "store"))
    assert made.definition.parameters["properties"]["fields"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert made.definition.strict is None
    assert run(made, cases["A12"]["given"]["call"]) == cases["A12"]["expect"]["call_result"]


def test_recursive_models_end(cases):
    made = tool(written(cases["A14"], "plan"))
    schema = made.definition.parameters
    assert accepts(schema, cases["A14"]["given"]["call"])
    assert not accepts(schema, {"root": {"name": "a", "parts": [{"parts": []}]}})
    assert run(made, cases["A14"]["given"]["call"]) == cases["A14"]["expect"]["call_result"]


def test_what_is_awaitable_is_awaited_however_it_came(cases):
    scope = written(cases["A16"])
    made = [tool(eval(text, scope)) for text in cases["A16"]["given"]["tools"]]
    assert [one.name for one in made] == ["find_key", "Caller"]
    assert made[0].definition.parameters["required"] == ["room"]
    results = [run(one, call[1]) for one, call in zip(made, cases["A16"]["given"]["calls"], strict=True)]
    assert results == cases["A16"]["expect"]["call_results"]


def test_running_a_cell_again_replaces_the_tool(cases):
    scope = {"tool": tool}
    for cell in [*cases["A17"]["given"]["cells"], cases["A17"]["given"]["cells"][1]]:
        exec(cell, scope)
    assert scope["convert"].description == "Second version."
    assert run(scope["convert"], {"x": 1.239}) == "v2:1.24"


def test_methods_of_every_kind_are_tools_of_their_object(cases):
    scope = written(cases["A18"])
    made = {one.name: one for one in (tool(eval(text, scope)) for text in cases["A18"]["given"]["tools"])}
    found = {name: list(one.definition.parameters["properties"]) for name, one in made.items()}
    assert found == cases["A18"]["expect"]["parameters"]
    assert [run(made[name], call) for name, call in cases["A18"]["given"]["calls"]] == cases["A18"]["expect"]["call_results"]


def test_field_lists_with_items_are_kept_whole(cases):
    expect, made = cases["A20"]["expect"], tool(written(cases["A20"], "steer"))
    assert made.description == expect["tool_description"]
    found = {name: form["description"] for name, form in made.definition.parameters["properties"].items()}
    assert found["course"] == "compass course in degrees"
    assert found["knots"] == "speed through the water"
    assert found["mode"] == "one of\n* calm - slow\n* race - fast"


@pytest.mark.parametrize(
    ("name", "options"), [("zähle", {}), ("lam", {})] + [("zähle", {"name": n}) for n in ("B z: a!", "a" * 70, "")]
)
def test_a_name_that_providers_refuse_is_an_error_that_shows_it_and_the_rule(cases, name, options):
    function = written(cases["A21"], name)
    with pytest.raises(ToolDefinitionError) as caught:
        tool(function, **options)
    assert repr(options.get("name", function.__name__)) in str(caught.value)
    assert "^[a-zA-Z0-9_-]{1,64}$" in str(caught.value)
    assert run(tool(function, name="count"), {"n": 3}) in {"n3", "l3"}


def test_a_parameter_without_annotation_is_never_taken_for_text(cases):
    made = tool(written(cases["A23"], "total"))
    schema = made.definition.parameters
    assert schema["required"] == ["a"]
    assert schema["properties"]["a"] == {}
    assert schema["properties"]["b"] == {"type": "integer", "default": 3}
    assert run(made, cases["A23"]["given"]["call"]) == cases["A23"]["expect"]["call_result"]


# ------------------------------------------------------------------------------------------------- annotations


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Box(BaseModel):
    """A box."""

    w: int = Field(title="Width", description="how wide")
    title: str = "x"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: dt.date
    colour: Colour


@dataclass
class Point:
    x: int
    box: Box | None = None


class Trip(typing.TypedDict, total=False):
    """A trip."""

    start: typing.Required[str]
    stops: list["Trip2"]


class Trip2(typing.TypedDict):
    name: str


class Pair(NamedTuple):
    a: int
    b: str = "b"


TYPES = [
    (int, [3], ["x", 1.5, None], 3),
    (float, [1.5, 2], ["x"], 1.5),
    (bool, [True], ["perhaps"], True),
    (str, ["x"], [3], "x"),
    (Literal["a", 1], ["a", 1], ["b"], "a"),
    (Colour, ["red"], ["green"], Colour.RED),
    (int | None, [3, None], ["x"], 3),
    (int | str, [3, "x"], [[]], 3),
    (list[int], [[1, 2]], [["x"], 1], [1, 2]),
    (tuple[int, str], [[1, "x"]], [[1]], (1, "x")),
    (set[int], [[1, 2]], ["x"], {1, 2}),
    (dict[str, int], [{"a": 1}], [{"a": "x"}], {"a": 1}),
    (typing.Iterable[int], [[1, 2]], [["x"]], [1, 2]),
    (Annotated[int, Field(ge=1, le=5)], [1], [0, 6], 1),
    (Box, [{"w": 1}], [{}, {"w": "wide"}], Box(w=1)),
    (list[Box], [[{"w": 1}]], [[{}]], [Box(w=1)]),
    (Point, [{"x": 1, "box": {"w": 2}}], [{"x": "?"}], Point(1, Box(w=2))),
    (
        Trip,
        [{"start": "a", "stops": [{"name": "b"}]}],
        [{}, {"start": "a", "stops": [{}]}],
        {"start": "a", "stops": [{"name": "b"}]},
    ),
    (list[Trip] | None, [[{"start": "a"}], None], [[{}]], [{"start": "a"}]),
    (Pair, [[1, "c"]], [["x"]], Pair(1, "c")),
    (Strict, [{"day": "2031-02-03", "colour": "red"}], [{"day": 3}], Strict(day=dt.date(2031, 2, 3), colour=Colour.RED)),
    (dt.date, ["2031-02-03"], ["soon"], dt.date(2031, 2, 3)),
    (dt.datetime, ["2031-02-03T04:05:00"], ["soon"], dt.datetime(2031, 2, 3, 4, 5)),  # noqa: DTZ001  as the argument says
    (dt.time, ["04:05"], ["soon"], dt.time(4, 5)),
    (dt.timedelta, ["PT1H"], ["soon"], dt.timedelta(hours=1)),
    (Decimal, [1.1, "1.10"], ["x"], Decimal("1.1")),
    (uuid.UUID, [str(uuid.UUID(int=5))], ["x"], uuid.UUID(int=5)),
    (Path, ["a/b"], [3], Path("a/b")),
    (bytes, ["ab"], [3], b"ab"),
    (typing.Any, [3, "x", None, []], [], 3),
    (None, [None], [3], None),
]


@pytest.mark.parametrize(("annotation", "good", "bad", "first"), TYPES, ids=lambda value: str(value)[:30])
def test_every_annotation_becomes_a_schema_and_an_argument(annotation, good, bad, first):
    def take(x):
        return x

    take.__annotations__["x"] = annotation
    made = tool(take)
    schema = parameters(take)
    assert schema["required"] == ["x"]
    for value in good:
        assert accepts(schema, {"x": value})
        made.check({"x": value})
    for value in bad:
        with pytest.raises(ArgumentsError, match=r"^the arguments do not fit take: x"):
            made.check({"x": value})
    assert run(made, {"x": good[0]}) == first
    assert type(run(made, {"x": good[0]})) is type(first)


def test_titles_made_from_names_are_dropped_and_written_ones_stay():
    def take(box: Box, colour: Colour, point: Point, trip: Trip, pair: Pair):
        pass

    text = json.dumps(parameters(take))
    assert re.findall(r'"title": "(\w+)"', text) == ["Width"]


def test_a_class_that_is_used_twice_is_written_out_once():
    def take(box: Box, more: list[Box] = []):  # noqa: B006  what people write
        pass

    schema = parameters(take)
    assert schema["properties"]["box"] == {"$ref": "#/$defs/Box"}
    assert list(schema["$defs"]) == ["Box"]


def test_two_classes_of_one_name_are_told_apart():
    def other():
        class Box(BaseModel):
            sides: list[str]

        return Box

    def take(box: list[Box], more: list[int]):
        pass

    take.__annotations__["more"] = list[other()]
    schema = parameters(take)
    assert accepts(schema, {"box": [{"w": 1}], "more": [{"sides": []}]})
    assert not accepts(schema, {"box": [{"sides": []}], "more": []})


def test_enum_order_is_the_authors_even_where_types_compare_equal():
    def one(x: Literal["a", "b"]):
        pass

    def two(x: Literal["b", "a"]):
        pass

    assert properties(one)["x"]["enum"] == ["a", "b"]
    assert properties(two)["x"]["enum"] == ["b", "a"]


def test_classes_of_a_cell_with_postponed_annotations_are_found():
    source = """
        from __future__ import annotations
        import dataclasses, typing, pydantic

        @dataclasses.dataclass
        class Leg:
            end: Stop

        @dataclasses.dataclass
        class Stop:
            name: str

        class Way(typing.TypedDict):
            legs: list[Leg]

        class Plan(pydantic.BaseModel):
            ways: list[Later]

        class Later(pydantic.BaseModel):
            day: int

        def book(leg: Leg, way: Way, plan: Plan, legs: list["Leg"] | None = None) -> Unknown:
            return leg.end.name
    """
    for scope in ({}, {"__name__": "__main__"}):
        exec(textwrap.dedent(source), scope)
        made = tool(scope["book"])
        leg = {"end": {"name": "Oslo"}}
        arguments = {"leg": leg, "way": {"legs": [leg]}, "plan": {"ways": [{"day": 1}]}}
        assert accepts(made.definition.parameters, arguments)
        assert run(made, arguments) == "Oslo"


def test_classes_of_a_running_function_are_found_in_annotations_that_are_text():
    class Local(BaseModel):
        n: int

    @tool
    def take(x: "Local", y: "list[Local] | None" = None):
        return x.n

    class Holder:
        @tool
        def take(self, x: "Local"):
            return x.n

    assert run(take, {"x": {"n": 3}}) == 3
    assert run(Holder().take, {"x": {"n": 4}}) == 4


def test_a_none_default_means_that_none_is_fine():
    def take(x: int = None, y: Annotated[int, Field(ge=2)] = None):  # noqa: RUF013  what people write
        return x, y

    schema = parameters(take)
    assert accepts(schema, {"x": None, "y": None})
    assert not accepts(schema, {"y": 1})
    assert run(tool(take), {"x": None}) == (None, None)


def test_fields_describe_constrain_rename_and_fill():
    def take(
        a: int = Field(description="the a"),
        b: int = Field(3, ge=1),
        c: Annotated[str, Field(alias="from", description="where from")] = "x",
        d: Annotated[list[int], Field(default_factory=list)] = Field(default_factory=lambda: [7]),  # noqa: B008  what people write
        e: Annotated[int, "the e"] = 5,
    ):
        return a, b, c, d, e

    schema = parameters(take)
    assert schema["required"] == ["a"]
    assert schema["properties"]["a"] == {"type": "integer", "description": "the a"}
    assert schema["properties"]["b"] == {"type": "integer", "minimum": 1, "default": 3}
    assert schema["properties"]["from"] == {"type": "string", "description": "where from", "default": "x"}
    assert schema["properties"]["e"]["description"] == "the e"
    assert run(tool(take), {"a": 1, "from": "y"}) == (1, 3, "y", [7], 5)


def test_defaults_that_json_cannot_carry_are_left_out_and_used():
    marker = object()

    def take(a: typing.Any = marker, b: float = float("nan"), c: Colour = Colour.RED, d: dt.date = dt.date(2031, 2, 3)):
        return a is marker

    found = properties(take)
    assert "default" not in found["a"]
    assert "default" not in found["b"]
    assert found["c"]["default"] == "red"
    assert found["d"]["default"] == "2031-02-03"
    assert run(tool(take), {}) is True


@pytest.mark.parametrize("annotation", [threading.Lock, typing.Callable[[int], int], "Nowhere", "1 +", 5, type(sys)])
def test_an_annotation_that_cannot_become_a_schema_names_function_and_parameter(annotation):
    def take(good: int, odd):
        pass

    take.__annotations__["odd"] = annotation
    with pytest.raises(ToolDefinitionError, match=r"^take: .*parameter 'odd'"):
        tool(take)


def test_parameters_may_have_any_name():
    def take(_x: int, model_config: int, copy: int, self_: int, schema: int, json: int):
        return _x + model_config + copy + self_ + schema + json

    names = ["_x", "model_config", "copy", "self_", "schema", "json"]
    assert list(properties(take)) == names
    assert run(tool(take), dict.fromkeys(names, 1)) == 6


def test_positional_only_and_keyword_only_parameters_are_given_in_their_way():
    def take(a, b=2, /, c=3, *, d):
        return a, b, c, d

    assert run(tool(take), {"a": 1, "d": 4}) == (1, 2, 3, 4)
    assert run(tool(take), {"a": 1, "b": 5, "c": 6, "d": 4}) == (1, 5, 6, 4)


# ------------------------------------------------------------------------------------------------- docstrings


def test_numpy_docstrings_are_read_whatever_the_number_of_dashes():
    text = """Measure it.

    Goes on: here.

    Parameters
    ---
    x, y : int, optional
        The place,
        in metres.
    mode : {'a', 'b'}
        One of:

        1. a
        2. b

    Returns
    -------
    str
        nothing
    """
    described = read(text, ["x", "y", "mode"])
    assert described.text == "Measure it.\n\nGoes on: here."
    assert described.parameters == {"x": "The place, in metres.", "y": "The place, in metres.", "mode": "One of:\n\n1. a\n2. b"}


def test_untidy_google_docstrings_lose_nothing():
    text = """Do it
    in two lines.

    arguments:
        These are they
        x - the x
        which goes on
        y(list[int], optional): the y: with a colon
        z
            the z
        **rest: more
    Returns:
        no colon here
    Raises:
        ValueError when it must
    """
    described = read(text, ["x", "y", "z"])
    assert described.text == "Do it\nin two lines."
    assert described.parameters == {"x": "the x which goes on", "y": "the y: with a colon", "z": "the z", "rest": "more"}


def test_fields_of_other_kinds_do_not_spoil_a_rest_docstring():
    text = """Do :class:`X`.
    :class:`Foo` is used.

    :param dict[str, int] x: the x
    :param list of int y: the y
    :raises ValueError TypeError Foo: z
    @param z: epytext
    :return: foo
    """
    described = read(text, ["x", "y", "z"])
    assert described.text == "Do :class:`X`.\n:class:`Foo` is used."
    assert described.parameters == {"x": "the x", "y": "the y", "z": "epytext"}


def test_chinese_docstrings_are_read():
    described = read("查询天气。\n\nArgs:\n    城市\uff1a城市名\n    unit (str): 单位\n", ["城市", "unit"])
    assert described.text == "查询天气。"
    assert described.parameters == {"城市": "城市名", "unit": "单位"}


@pytest.mark.parametrize(
    "text", [None, "", "   ", "Args:", "Args:\n  nothing", ":param:", ":param x", "Parameters\n----------", "x: y\n"]
)
def test_odd_docstrings_never_fail(text):
    assert isinstance(read(text, ["x"]).text, str)


def test_a_docstring_types_a_parameter_that_has_no_annotation():
    def take(x, y, z=2):
        """Take.

        :param int x: the x
        :param y: the y
        :type y: list of things
        """

    found = properties(take)
    assert found == {
        "x": {"type": "integer", "description": "the x"},
        "y": {"description": "the y"},
        "z": {"type": "integer", "default": 2},
    }


def test_a_description_of_ones_own_replaces_the_docstrings_and_keeps_its_parameters():
    @tool(description="Other words.")
    def take(x: int):
        """Take.

        Args:
            x: the x
        """

    assert take.description == "Other words."
    assert take.definition.parameters["properties"]["x"]["description"] == "the x"


# ------------------------------------------------------------------------------------------------- arguments


def test_every_bad_argument_is_named_with_what_was_expected():
    @tool
    def book(room: Literal["oak", "elm"], nights: int, names: list[str] = (), size: int | list[int] = 1):
        """Book."""

    with pytest.raises(ArgumentsError) as caught:
        book.check({"room": "ash", "names": ["a", 3], "size": "big", "nihgts": 2})
    text = str(caught.value)
    assert "room: expected 'oak' or 'elm', got \"ash\"" in text
    assert "nights: missing, expected integer" in text
    assert "names.1: " in text
    assert text.count("size: expected") == 1
    assert "nihgts: there is no such parameter, did you mean nights?" in text
    assert "pydantic" not in text
    assert "http" not in text
    assert isinstance(caught.value, AgentError)
    assert isinstance(caught.value, ValueError)


def test_a_huge_argument_is_not_repeated_in_the_error():
    with pytest.raises(ArgumentsError) as caught:
        tool(lambda n: n, name="f").check({"m": 1, "n" * 3: 2})
    assert "there is no such parameter" in str(caught.value)

    @tool
    def take(n: int):
        """Take."""

    with pytest.raises(ArgumentsError) as caught:
        take.check({"n": "x" * 10_000})
    assert len(str(caught.value)) < 400


def test_a_validator_that_raises_anything_is_a_bad_argument():
    def fail(value):
        raise KeyError("odd")

    @tool
    def take(x: Annotated[int, pydantic.BeforeValidator(fail)]):
        """Take."""

    with pytest.raises(ArgumentsError, match="x: KeyError: 'odd'"):
        take.check({"x": 1})


def test_checking_changes_nothing_that_was_given():
    @tool
    def take(x: list[int]):
        """Take."""

    given = {"x": ["1", 2]}
    assert take.check(given) == {"x": [1, 2]}
    assert given == {"x": ["1", 2]}


# ------------------------------------------------------------------------------------------------- tools


def test_a_tool_is_still_the_function():
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert add(1, b=4) == 5
    assert add.__name__ == "add"
    assert add.__doc__ == "Add."
    assert repr(add) == "<tool add(a, b)>"
    assert add.schema["name"] == "add"


def test_a_tool_stays_the_same_unless_it_is_given_other_words():
    made = tool(len, name="size", description="The size.")
    assert tool(made) is made
    other = tool(made, name="length", main_thread=True)
    assert (other.name, other.description, other.main_thread) == ("length", "The size.", True)
    assert (made.name, made.main_thread) == ("size", False)


@pytest.mark.parametrize("odd", [5, "name", None.__class__.__name__, [1]])
def test_what_cannot_be_called_is_no_tool(odd):
    with pytest.raises(ToolDefinitionError, match="cannot be called"):
        tool(odd)


def test_decorators_of_methods_may_stand_in_any_order():
    class Shop:
        @tool
        @staticmethod
        def one(net: int):
            return net

        @staticmethod
        @tool
        def two(net: int):
            return net

        @tool
        @classmethod
        def three(cls, net: int):
            return cls.__name__, net

        @classmethod
        @tool
        def four(cls, net: int):
            return cls.__name__, net

        @tool
        def five(this, net: int):  # noqa: N805  an unusual name
            return type(this).__name__, net

        @tool
        async def six(self, net: int):
            return net

    shop = Shop()
    for name in ("one", "two", "six"):
        assert run(tool(getattr(shop, name)), {"net": 3}) == 3
    for name in ("three", "four", "five"):
        assert run(tool(getattr(shop, name)), {"net": 3}) == ("Shop", 3)
    assert run(tool(Shop.three), {"net": 3}) == ("Shop", 3)
    assert all(
        list(tool(getattr(shop, name)).definition.parameters["properties"]) == ["net"] for name in vars(Shop) if name[0] != "_"
    )
    assert not Shop.five.bound
    assert shop.five.bound
    assert shop.five == shop.five
    assert shop.five != Shop().five


def test_two_objects_have_a_tool_each():
    class Counter:
        def __init__(self):
            self.n = 0

        @tool
        def add(self, k: int):
            self.n += k
            return self.n

    one, two = Counter(), Counter()
    run(one.add, {"k": 2})
    assert run(one.add, {"k": 2}) == 4
    assert run(two.add, {"k": 1}) == 1


def test_callables_of_every_kind_are_tools():
    @dataclass
    class Scale:
        """Scale it."""

        by: int

        def __call__(self, x: int) -> int:
            """Scale a number.

            Args:
                x: the number
            """
            return self.by * x

    @functools.lru_cache
    def cached(x: int) -> int:
        """Cached."""
        return x

    scale = tool(Scale(3))
    assert (scale.name, scale.description) == ("Scale", "Scale a number.")
    assert scale.definition.parameters["properties"]["x"]["description"] == "the number"
    assert run(scale, {"x": 2}) == 6
    assert run(tool(cached), {"x": 2}) == 2
    assert run(tool(Point), {"x": 2}) == Point(2)
    assert tool(Point).description == ""
    assert run(tool("a-b".split), {"sep": "-"}) == ["a", "b"]
    assert run(tool(functools.partial(functools.partial(pow, 2), mod=7)), {"exp": 3}) == 1


def test_a_function_whose_parameters_python_does_not_know_is_an_error():
    with pytest.raises(ToolDefinitionError, match=r"^type: its parameters cannot be read"):
        tool(type)


def test_generators_are_read_to_their_end_or_far_enough():
    def count(n: int):
        yield from range(n)

    async def wait(n: int):
        for i in range(n):
            yield i

    def ever():
        while True:
            yield 1

    assert run(tool(count), {"n": 3}) == [0, 1, 2]
    assert run(tool(wait), {"n": 3}) == [0, 1, 2]
    assert run(tool(lambda: map(str, [1, 2]), name="f"), {}) == ["1", "2"]
    assert run(tool(ever), {})[-1] == "… only the first 10,000 items were read"


def test_async_tools_work_where_a_loop_is_running():
    @tool
    async def wait(n: int):
        await asyncio.sleep(0)
        return n

    async def inside():
        return run(wait, {"n": 3}), await wait(4)

    assert asyncio.run(inside()) == (3, 4)


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), ValueError("x")])
def test_an_async_tool_that_raises_does_not_end_the_background_loop(error):
    @tool
    async def fail():
        raise error

    @tool
    async def fine():
        return 1

    with pytest.raises(type(error)):
        fail.call({})
    assert fine.call({}) == 1


def test_a_definition_costs_little_when_its_types_are_known():
    def take(path: str, limit: int = 3, tags: list[str] | None = None, ratio: float = 0.5):
        """Search for a path.

        Args:
            path: where to look
            limit: how many at most
            tags: all of these
            ratio: from 0 to 1
        """

    tool(take)
    best = min(_seconds(lambda: [tool(take) for _ in range(20)]) for _ in range(5)) / 20
    assert best < 0.002  # about 0.00016 where nothing else runs


def _seconds(function):
    began = time.perf_counter()
    with contextlib.suppress(ToolDefinitionError):
        function()
    return time.perf_counter() - began


def test_schemas_are_copies_that_may_be_changed():
    @tool
    def take(x: list[int] | None = None):
        """Take."""

    take.schema["parameters"]["properties"]["x"]["anyOf"].clear()
    take.definition.parameters["properties"]["x"]["anyOf"].clear()

    def other(x: list[int] | None = None):
        """Other."""

    assert properties(other)["x"]["anyOf"]
    assert isinstance(take, Tool)


# ------------------------------------------------------------------------------------------------- what people also write


@pytest.mark.parametrize(
    "text",
    [
        "Do.\n\nArgs:\n- `x` (int): the x\n  goes on\n- **y**: the y\n",
        "Do.\n\nArgs:\nx: the x\ngoes on\ny: the y",
        "Do.\n\n## Args\n\n- `x`: the x\n  goes on\n- `y` (int): the y\n\n## Returns\n\nnothing",
        "Do.\n\n**Parameters:**\n    x: the x\n      goes on\n    y: the y\nReturns: nothing",
        "Do.\r\n\r\nArgs:\r\n    x: the x\r\n        goes on\r\n    y: the y\r\n",
        "Do.\n\nArgs:\n    x: the x\n        goes on\n\nRaises:\n    Error: never\n\nKeyword Args:\n  y: the y\n",
        "Do.\n\nParameters\n==========\nx : int\n    the x\n    goes on\ny\n    the y\n",
        "Do.\n\n@param x: the x\n  goes on\n@type x: int\n@param y: the y\n@see: z\n@return: nothing",
        "Do.\n\n:param x: the x\n    goes on\n:param y: the y\n:note: z\n:rtype: int",
    ],
)
def test_untidy_docstrings_say_the_same_as_tidy_ones(text):
    described = read(text, ["x", "y"])
    assert described.text == "Do."
    assert described.parameters == {"x": "the x goes on", "y": "the y"}


def test_text_behind_the_parameters_is_part_of_the_description():
    google = "Do.\n\nArgs:\n    x: the x\n\nNote:\n    Call it once.\n\nReturns:\n    nothing\n\nLast."
    assert read(google, ["x"]).text == "Do.\n\nNote:\n    Call it once.\n\nLast."
    fields = read("Do.\n\n:param x: the x\n\n    * a\n\nLast.\n", ["x"])
    assert (fields.text, fields.parameters) == ("Do.\n\nLast.", {"x": "the x\n* a"})


def test_what_looks_like_an_entry_and_is_none_goes_on_with_the_one_before():
    described = read("Do.\n\nArgs:\n    x: the x.\n    Example: Oslo\n    token: a secret\n    y: the y\n", ["x", "y"])
    assert described.parameters == {"x": "the x. Example: Oslo", "token": "a secret", "y": "the y"}


def test_chinese_headings_and_brackets_are_read():
    entries = "    城市\uff08字符串\uff09\uff1a城市名\uff0c\n        例如北京\n    unit (str)\uff1a单位\n"
    text = f"查询天气。\n\n参数\uff1a\n{entries}\n返回\uff1a\n    天气\n"
    described = read(text, ["城市", "unit"])
    assert (described.text, described.parameters) == ("查询天气。", {"城市": "城市名\uff0c 例如北京", "unit": "单位"})


def test_a_decorator_that_gives_some_arguments_itself_shows_only_the_others():
    def with_token(function):
        @functools.wraps(function)
        def inner(city: "str", *, days: int = 1):
            return function("secret", city, days)

        return inner

    class Service:
        @with_token
        def method(self, city, days):
            return city, days

    @with_token
    def fetch(token: str, city: str, days: int):
        """Fetch.

        Args:
            city: the city
        """
        return token, city, days

    assert properties(fetch) == {
        "city": {"type": "string", "description": "the city"},
        "days": {"type": "integer", "default": 1},
    }
    assert run(tool(fetch), {"city": "Oslo", "days": 2}) == ("secret", "Oslo", 2)
    assert tool(Service.method).name == "method"


def test_a_decorator_that_hides_all_parameters_is_an_error_that_says_what_to_write():
    def traced(function):
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    @traced
    def area(w: int):
        return w

    with pytest.raises(ToolDefinitionError, match=r"^inner: a decorator hides the parameters of .*area, .*functools\.wraps"):
        tool(area)
    assert run(tool(lambda *_, **__: "noon", name="clock"), {}) == "noon"
    assert run(tool(traced(lambda: "noon")), {}) == "noon"


def test_keywords_of_a_typed_dict_are_parameters():
    class Options(typing.TypedDict, total=False):
        days: typing.Required[Annotated[int, Field(ge=1)]]
        unit: Literal["c", "f"]

    def fetch(city: str, **options: typing.Unpack[Options]):
        """Fetch.

        Args:
            city: the city
            unit: the unit
        """
        return city, options

    schema = parameters(fetch)
    assert schema["required"] == ["city", "days"]
    assert schema["properties"]["unit"] == {"enum": ["c", "f"], "type": "string", "description": "the unit"}
    assert run(tool(fetch), {"city": "Oslo", "days": 2}) == ("Oslo", {"days": 2})
    with pytest.raises(ArgumentsError, match="days: missing"):
        tool(fetch).check({"city": "Oslo", "unit": "c"})


class Corner(Enum):
    NORTH = (0, 1)


class Right(enum.Flag):
    READ = 1
    WRITE = 2


def test_defaults_are_written_as_the_schema_has_the_values():
    def take(
        corner: Corner = Corner.NORTH,
        right: Right = Right.READ | Right.WRITE,
        zone: dt.timezone = dt.timezone(dt.timedelta(hours=2)),
        size: int = np.int64(3),
        key: pydantic.SecretStr = pydantic.SecretStr("hush"),  # noqa: B008
        frame: typing.Any = pd.DataFrame({"a": [1]}),  # noqa: B008
    ):
        return corner, right

    found = properties(take)
    assert found["corner"] == {"const": "NORTH", "type": "string", "default": "NORTH"}
    assert found["right"]["default"] == ["READ", "WRITE"]
    assert found["zone"]["default"] == "UTC+02:00"
    assert found["size"]["default"] == 3
    assert "default" not in found["key"]
    assert "default" not in found["frame"]
    assert run(tool(take), {"corner": "NORTH", "right": ["READ"]}) == (Corner.NORTH, Right.READ)
    assert run(tool(take), {"right": 3})[1] == Right.READ | Right.WRITE


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (np.ndarray, "annotate it with list[float]"),
        (pd.DataFrame, "annotate it with list[dict[str, Any]]"),
        (list[pd.DataFrame], "annotate it with list[dict[str, Any]]"),
        (dict[tuple[int, int], str], "no text is a tuple"),
        (dict[Literal[1, 2], str], "no text is a number"),
        (set[list[int]], "a set cannot hold a list"),
        (set[Point], "a set cannot hold a dataclass"),
        (type[int], "JSON has no classes"),
        (enum.Enum("Nothing", []), "has no members"),
        (typing.Callable[[int], int], "JSON has no functions"),
        (threading.Thread, "nothing in JSON is made into threading.Thread"),
    ],
)
def test_what_can_never_be_given_is_an_error_of_the_definition(annotation, words):
    def take(odd):
        pass

    take.__annotations__["odd"] = annotation
    with pytest.raises(ToolDefinitionError, match=r"^take: the parameter 'odd' .*" + re.escape(words)) as caught:
        tool(take)
    assert "arbitrary_types_allowed" not in str(caught.value)


def test_fields_of_a_class_that_can_never_be_given_are_errors_too():
    class Move(BaseModel):
        to: Corner

    class Chosen(BaseModel):
        colour: Literal[Colour.RED]

    for annotation, words in ((Move, r"\(0, 1\) is not a value"), (list[Chosen], "write its value, 'red'")):

        def take(odd):
            pass

        take.__annotations__["odd"] = annotation
        with pytest.raises(ToolDefinitionError, match=rf"^take: the parameter 'odd' .*{words}"):
            tool(take)


def test_numbers_of_numpy_and_times_of_pandas_arrive_as_such():
    def take(n: np.int64, f: np.float32, any_: np.integer, when: pd.Timestamp, long: pd.Timedelta):
        return n, f, any_, when, long

    made = run(tool(take), {"n": 3, "f": 0.5, "any_": 4, "when": "2031-02-03T04:05:00", "long": "PT1H"})
    assert made == (3, 0.5, 4, pd.Timestamp("2031-02-03T04:05"), pd.Timedelta(hours=1))
    assert [type(value) for value in made] == [np.int64, np.float32, int, pd.Timestamp, pd.Timedelta]


def test_generic_typed_dicts_are_filled():
    held = typing.TypeVar("held")

    class Cell(typing.TypedDict, typing.Generic[held]):
        value: held

    def take(x: Cell[int], y: Cell[list[str]]):
        return x, y

    schema = parameters(take)
    assert accepts(schema, {"x": {"value": 1}, "y": {"value": ["a"]}})
    assert not accepts(schema, {"x": {"value": "a"}, "y": {"value": ["a"]}})


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of Python 3.12")
def test_type_statements_and_type_parameters_are_read():
    source = """
        from __future__ import annotations
        type Json = int | list[Json]
        type Two[T] = tuple[T, T]

        def take[N: int](a: Json, b: Two[int], c: list[N]):
            return a, b, c
    """
    scope = {}
    exec(textwrap.dedent(source), scope)
    schema = parameters(scope["take"])
    assert accepts(schema, {"a": [1, [2]], "b": [1, 2], "c": [3]})
    assert not accepts(schema, {"a": ["x"], "b": [1, 2], "c": [3]})
    assert run(tool(scope["take"]), {"a": [1, [2]], "b": [1, 2], "c": [3]}) == ([1, [2]], (1, 2), [3])


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (dict[int, str], ["1", "-20"], ["a", "1.5", ""]),
        (dict[float, str], ["1", "-2.5", "1e3"], ["a", ""]),
        (dict[bool, str], ["true", "false"], ["a", "2"]),
        (dict[Decimal, str], ["1.50"], ["a"]),
        (typing.Counter[int], ["3"], ["a"]),
    ],
)
def test_keys_that_are_no_texts_look_like_what_they_are(annotation, good, bad):
    def take(x):
        return x

    take.__annotations__["x"] = annotation
    value = 1 if annotation == typing.Counter[int] else "v"
    for key in (*good, *bad):
        assert accepts(parameters(take), {"x": {key: value}}) is (key in good)
    for key in good:
        assert len(run(tool(take), {"x": {key: value}})) == 1
    for key in bad:
        with pytest.raises(ArgumentsError):
            tool(take).check({"x": {key: value}})
