"""The clinic: what it finds in definitions, what it leaves in peace, and what it measures of two versions."""

import datetime as dt
import io
import json
import sqlite3
import warnings
from typing import Any, Literal

import pandas as pd
import pytest
from pydantic import BaseModel
from scripted import answers, said

from nb_agent import Agent, ToolError, tool
from nb_agent.clinic import RULES, compare_definitions, lint
from nb_agent.clinic.words import KINDS, content, kind_of, meaning
from nb_agent.errors import ProviderError, SettingError
from nb_agent.kit.calculator import calculator_tools
from nb_agent.kit.clock import clock_tools
from nb_agent.kit.database import database_tools
from nb_agent.kit.files import file_tools
from nb_agent.kit.shop import shop_tools
from nb_agent.tools.sets import ToolSets
from nb_agent.tools.toolbox import Toolbox

WAREHOUSES = {"east-01": 12, "west-02": 40}  # invented


def rules_of(*tools, **settings):
    return {finding.rule for finding in lint(tools, **settings)}


def defined(name, description, properties=(), **more):
    return {"name": name, "description": description, "parameters": {"type": "object", "properties": dict(properties), **more}}


# ------------------------------------------------------------------------------------------------- what is sick


def do_it(x):
    """Does stuff."""


def get_user(user_id: str):
    """Get a user."""


def get_short(city: str):
    """Weather."""


def get_silent(city: str):
    """Current weather of a place, as a text.

    Args:
        city: the city
    """


def get_free(town: str, tags: list[str]):
    """Current weather of a place, as a text.

    Args:
        town: place that the person names
        tags: labels of the report
    """


def get_forms(order_id: str, day: str, currency: str, distance: float):
    """Cost of a delivery, as a number.

    Args:
        order_id: which order of the shop it is
        day: when it has to arrive
        currency: in which the answer is wanted
        distance: how far away the person lives
    """


def get_anything(filters: dict, more: Any, several: list):
    """Rows of the orders that fit all filters.

    Args:
        filters: which rows are wanted, e.g. {"city": "Oslo"}
        more: further wishes, e.g. 3
        several: columns of the answer, e.g. ["city"]
    """


def list_orders(**filters):
    """All orders of the shop that fit the filters."""


def flags(**described):
    parts = {name: {"type": "boolean", "description": text} for name, text in described.items()}
    return defined("list_parcels", "All parcels of the shop, the newest first.", parts)


def list_omitted(city: str | None = None):
    """All orders of the shop, the newest first.

    Args:
        city: the city of the customer, e.g. Oslo
    """


def make_many(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int):
    """Make a parcel of nine measures."""


class Street(BaseModel):
    number: int


class Address(BaseModel):
    street: Street


class Person(BaseModel):
    address: Address


def make_deep(person: Person):
    """Make a new customer of the shop."""


def delete_order(number: int):
    """Delete an order of the shop for good."""


@tool(tier="write")
def book_nothing(count: int):
    """The seats of tomorrow, by their count."""


def get_parcel(place: Any):
    try:
        return WAREHOUSES[place]
    except KeyError:
        return None


def get_wordless(count: int):
    """Number of parcels with so many pieces."""
    if count < 0:
        raise ValueError
    return count


def get_place(warehouse: str):
    """Parcels that are in one warehouse now."""
    return WAREHOUSES[warehouse]


SICK = [
    ("description", do_it),
    ("description", get_user),
    ("description", get_short),
    ("description", defined("get_x", "")),
    ("description", defined("get_x", "...")),
    ("description", defined("get_data", "Handles the data and so on")),
    ("parameter", get_user),
    ("parameter", get_silent),
    ("free text", get_short),
    ("free text", get_free),
    ("form", get_forms),
    ("form", defined("get_fee", "What a transfer of money costs.", {"amount": {"type": "number", "description": "what is paid"}})),
    ("omitted", list_omitted),
    ("any", get_anything),
    ("any", do_it),
    ("catch-all", list_orders),
    ("flag", flags(no_returns="whether returns are left out")),
    ("flag", flags(express="the fast ones")),
    ("flag", flags(**dict.fromkeys("abcd", "whether it is one"))),
    ("name", defined("get weather!", "Current weather of a city.")),
    ("name", defined("x" * 65, "Current weather of a city.")),
    ("parameter name", defined("get_rain", "Current rain of a city.", {"the city": {"type": "string"}})),
    ("many parameters", make_many),
    ("nesting", make_deep),
    ("tier", delete_order),
    ("tier", tool(name="drop_table", tier="read")(delete_order)),
    ("side effect", book_nothing),
    ("error", get_parcel),
    ("error", get_wordless),
    ("error", get_place),
    ("tokens", defined("get_long", "Current weather of a city. " * 200)),
]


@pytest.mark.parametrize(("rule", "given"), SICK)
def test_each_rule_finds_what_it_is_for_and_says_why_and_what_would_be_better(rule, given):
    found = [finding for finding in lint([given]) if finding.rule == rule]
    assert found
    for finding in found:
        assert finding.tool
        assert len(finding.reason.split()) >= 4
        assert finding.wording
        assert finding.wording != finding.reason


def test_every_rule_has_a_reason_and_a_source_and_is_tried_here():
    tried = {rule for rule, _ in SICK} | {"clash", "overlap", "many tools"}
    assert {rule.name for rule in RULES} == tried
    assert all(len(rule.why.split()) > 4 and rule.source for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_each_parameter_without_a_form_is_named_with_what_it_is():
    reasons = {finding.parameter: finding.reason for finding in lint([get_forms]) if finding.rule == "form"}
    assert {name: reason.split(",")[0] for name, reason in reasons.items()} == {
        "order_id": "it is an id",
        "day": "it is a date",
        "currency": "it is a currency",
        "distance": "it is a length",
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("get_user", "getUser"),
        ("get_user", "get-user"),
        ("get_user", "fetch_user"),
        ("delete_file", "file_remove"),
        ("read_file", "readFile"),
    ],
)
def test_names_that_a_model_takes_for_each_other_clash(one, other):
    tools = [defined(one, "One customer with the address."), defined(other, "Everything about orders, by month.")]
    (finding,) = [finding for finding in lint(tools) if finding.rule == "clash"]
    assert (finding.tool, one in finding.reason) == (other, True)


def test_two_tools_of_one_name_are_a_finding_and_no_error():
    findings = lint([defined("get_user", "One customer."), tool(name="get_user")(get_short)])
    assert "two different tools have this name" in next(finding.reason for finding in findings if finding.rule == "clash")
    assert list(findings.tokens) == ["get_user"]


def test_descriptions_that_say_the_same_overlap():
    tools = [
        defined("get_price", "Current price of an article of the shop, in euros."),
        defined("get_quote", "The current price of one article of our shop in euros."),
        defined("get_stock", "Pieces of an article that are in a warehouse now."),
    ]
    assert [(finding.tool, finding.rule) for finding in lint(tools)] == [("get_quote", "overlap")]


def test_more_than_thirty_tools_in_one_request_are_too_many():
    tools = [defined(f"get_{number}", f"The value with the number {number}.") for number in range(31)]
    assert "many tools" not in rules_of(*tools[:30])
    (finding,) = [finding for finding in lint(tools) if finding.rule == "many tools"]
    assert "31 tools" in finding.reason
    assert "ToolSets" in finding.wording


# ------------------------------------------------------------------------------------------------- the wording


def test_the_values_that_a_function_looks_up_are_proposed_as_a_list_of_choices():
    choices = [finding.wording for finding in lint([get_place]) if finding.parameter == "warehouse"]
    assert set(choices) == {'warehouse: Literal["east-01", "west-02"]'}
    (error,) = [finding.wording for finding in lint([get_place]) if finding.rule == "error"]
    assert "if warehouse not in WAREHOUSES: raise ToolError" in error


def test_values_of_the_function_around_are_found_and_many_of_them_give_an_example():
    places = [f"hall-{number}" for number in range(40)]

    def get_hall(hall: str) -> str:
        """Parcels that are in one hall now."""
        return "none" if hall not in places else "one"

    assert {finding.wording for finding in lint([get_hall])} == {"hall: name of the hall, e.g. hall-0"}


@pytest.mark.parametrize(
    ("name", "schema", "wording"),
    [
        ("order_id", {"type": "string"}, "order_id: number of the order, e.g. ORD-1001"),
        ("deadline", {"type": "string"}, "deadline: the deadline, as YYYY-MM-DD"),
        ("timeout", {"type": "integer"}, "timeout: the timeout in seconds"),
        ("unit", {"type": "string"}, 'unit: Literal["…", "…"]'),
        ("express", {"type": "boolean"}, "express: true to express, false to …"),
        ("style", {"type": "string", "default": "plain"}, "style: the style, e.g. plain; plain where it is left out"),
    ],
)
def test_a_wording_is_made_of_names_types_and_defaults(name, schema, wording):
    found = [finding.wording for finding in lint([defined("get_it", "What was asked for, in full.", {name: schema})])]
    assert found
    assert all(text.startswith(wording) for text in found)


def test_what_is_proposed_for_a_kind_of_value_is_content_itself():
    for kind in KINDS:
        shape = "number" if kind.number else "string"
        text = kind.form.format(noun="thing", letters="THI")
        part = {min(kind.words) if kind.called != "an id" else "thing_id": {"type": shape, "description": text}}
        assert rules_of(defined("get_it", "What was asked for, in full.", part), ignore=["omitted"]) == set(), kind


# ------------------------------------------------------------------------------------------------- what is well


@pytest.fixture
def kit(tmp_path):
    database = tmp_path / "shop.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE customers (city TEXT)")
    connection.close()
    return [*file_tools(tmp_path), *database_tools(database), *clock_tools(), *calculator_tools(), *shop_tools()]


def test_the_tools_of_the_kit_pass(kit):
    assert str(lint(kit)).splitlines()[1:] == []


def test_the_tools_of_the_lesson_server_pass():
    agent = Agent()
    try:
        agent.mcp("people", command=["python", "-m", "nb_agent.mcp.lesson_server", "--dir", "."])
        findings = lint(agent.toolbox())
    finally:
        agent.close()
    assert list(findings) == []
    assert len(findings.tokens) == 4


def book_room(room: Literal["blue", "red"], day: dt.date, hours: int = 1, note: str | None = None) -> str:
    """Book a meeting room for one day. A room that is taken is refused, with those that are free.

    Args:
        room: the room
        day: the day of the meeting
        hours: how long, in hours
        note: a text for the door; without one the door stays empty
    """
    if room not in WAREHOUSES:
        raise ToolError("taken", code="taken")
    return "booked"


WELL = [
    book_room,
    defined("get_rain", "查询一个城市现在的天气和气温。", {"city": {"type": "string", "description": "城市的名字，例如 北京"}}),
    defined("roll_dice", "Roll some dice and add them up.", {"sides": {"type": "integer", "description": "sides of each die"}}),
    defined(
        "set_timer",
        "Start a timer that rings after a while.",
        {"minutes": {"type": "number", "description": "how long it runs"}, "label": {"enum": ["tea", "egg"]}},
        required=["minutes", "label"],
    ),
    defined("pay", "Pay a bill.", {"amount": {"type": "number", "description": "what is paid"}, "currency": {"enum": ["EUR"]}}),
]


@pytest.mark.parametrize("given", WELL)
def test_a_definition_that_says_what_is_needed_is_left_in_peace(given):
    ignore = {"omitted", "tier", "description"} if isinstance(given, dict) else set()
    findings = [str(finding) for finding in lint([given]) if finding.rule not in ignore]
    assert findings == []


def test_a_class_that_holds_itself_is_looked_at_once():
    class Node(BaseModel):
        label: str
        inner: "list[Node]" = []

    def store_tree(tree: Node):
        """Store a tree of labels, with all that is below it."""

    paths = [finding.parameter for finding in lint([store_tree])]
    assert paths
    assert max(map(len, paths)) <= len("tree.inner.label")


def test_what_is_inside_of_a_list_and_behind_a_reference_is_looked_at_too():
    assert {finding.parameter for finding in lint([make_deep]) if finding.rule == "parameter"} == {
        "person",
        "person.address",
        "person.address.street",
        "person.address.street.number",
    }


# ------------------------------------------------------------------------------------------------- what it takes


def test_functions_tools_definitions_and_their_json_are_taken_alike():
    made = tool(get_user)
    several = [get_user, made, made.definition, made.schema, {"type": "function", "function": made.schema}]
    first, *others = [
        [(finding.rule, finding.parameter) for finding in lint([given], ignore=["error", "catch-all"])] for given in several
    ]
    assert all(other == first for other in others)
    assert [len(lint(given)) for given in (get_user, made, Toolbox([made]), ToolSets({"a": [made]}), [made, made])] == [
        len(lint([made]))
    ] * 5


def test_what_is_no_tool_is_a_finding_with_the_reason():
    def broken(x: io.StringIO): ...

    findings = lint([broken, {"description": "no name"}, get_user])
    assert [finding.rule for finding in findings][:2] == ["definition", "definition"]
    assert findings[0].tool == "broken"
    assert "x" in findings[0].reason


def test_schemas_of_strangers_never_end_in_an_error():
    odd = [True, None, [], {"$ref": "#/nowhere"}, {"$ref": "#"}, {"anyOf": [3, {}]}, {"type": 7}, {"enum": None}, {"items": [1]}]
    for part in odd:
        lint([defined("get_x", "What was asked for.", {"it": part})])
        lint(
            [
                {"name": "get_x", "parameters": {"properties": part, "required": part, "$defs": part}},
                {"name": "x", "parameters": part},
            ]
        )


def test_rules_can_be_left_out_and_one_that_is_not_there_is_said():
    assert "description" not in rules_of(do_it, ignore=["description"])
    with pytest.raises(SettingError, match="no rule named 'descripton'"):
        lint([do_it], ignore=["descripton"])


# ------------------------------------------------------------------------------------------------- how it is shown


def test_the_tokens_are_those_that_a_request_counts():
    tools = [get_user, get_silent]
    findings = lint(tools)
    run = Agent(tools=tools).run("Hello", view=False)
    counted = run.tokens.query("part == 'tools'").set_index("tool")["counted"].to_dict()
    assert findings.tokens == counted
    assert findings.total == sum(counted.values())
    assert f"{findings.total / 8192:.1%} of the window of 8,192" in str(findings)
    assert lint(tools, model="gpt-4o").window is None
    assert "tokens" in rules_of(*tools, window=100)


def test_findings_are_a_sequence_a_frame_a_text_and_a_table():
    findings = lint([do_it])
    assert findings[0] in findings
    assert list(findings[:2]) == [findings[0], findings[1]]
    frame = findings.frame()
    assert list(frame.columns) == ["rule", "tool", "parameter", "reason", "wording"]
    assert len(frame) == len(findings)
    assert str(findings).startswith(f"1 tool: {len(findings)} findings.")
    assert repr(findings) == f"<Findings: {len(findings)} in 1 tool>"
    page = lint([defined("get_x", "<script>alert(1)</script>", {"<b>": {"type": "string"}})])._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert lint([]).frame().empty
    assert "nothing to say" in lint([])._repr_html_()


def test_words_are_told_apart():
    assert meaning("search_users") == meaning("find_users") != meaning("get_users")
    assert content("The name of the value") == {"name"}
    assert kind_of("width", number=False) is None
    assert kind_of("width", number=True).called == "a length"
    assert kind_of("code", number=False) is None


# ------------------------------------------------------------------------------------------------- comparing


STOCK = {("SKU-A100", "east-01"): 7, ("SKU-A100", "west-02"): 0}


def stock_of(sku, warehouse):
    if warehouse not in WAREHOUSES:
        raise ToolError(f"there is no warehouse {warehouse!r}; allowed are {', '.join(WAREHOUSES)}", code="invalid_value")
    return {"sku": sku, "warehouse": warehouse, "stock": STOCK.get((sku, warehouse), 0)}


@tool(name="get_stock", tier="read")
def vague(sku: str, warehouse: str):
    """Gets stuff."""
    return stock_of(sku, warehouse)


@tool(name="get_stock", tier="read")
def good(sku: str, warehouse: Literal["east-01", "west-02"]):
    """Pieces of an article that are in stock in one warehouse.

    Args:
        sku: number of the article, e.g. SKU-A100
        warehouse: code of the warehouse
    """
    return stock_of(sku, warehouse)


RIGHT = {"name": "get_stock", "arguments": {"sku": "SKU-A100", "warehouse": "east-01"}}
PROMPT = {"prompt": "What is the stock of SKU-A100 in the east warehouse?", "calls": [RIGHT]}


def call(**arguments):
    return ("get_stock", json.dumps(arguments))


WRONG_FIRST = [
    said("", call(sku="SKU-A100", warehouse="east-99")),
    said("", call(sku="SKU-A100", warehouse="east-01")),
    said("There are 7."),
]
RIGHT_FIRST = [said("", call(sku="SKU-A100", warehouse="east-01")), said("There are 7.")]


def test_a_call_that_is_mended_counts_the_round_in_which_it_was_right(monkeypatch):
    answers(monkeypatch, *WRONG_FIRST, *RIGHT_FIRST)
    compared = compare_definitions([vague], [good], [PROMPT], names=("vague", "good"))
    first, second = compared
    assert (first.first_right, first.right_after, first.rounds, first.failed) == (False, 2, 3, 1)
    assert (second.first_right, second.right_after, second.rounds, second.failed) == (True, 1, 2, 0)
    assert first.calls == "get_stock(sku='SKU-A100', warehouse='east-99')"
    assert first.definitions == lint([vague]).total
    assert first.sent > second.sent
    assert compared.summary["vague"]["first_right"] == 0


@pytest.mark.parametrize(
    ("expected", "reply", "first_right"),
    [
        ([RIGHT], [call(sku="SKU-A100", warehouse="east-01")], True),
        ([RIGHT], [call(warehouse="east-01", sku="SKU-A100", extra=1)], True),  # what is not named may be anything
        ([RIGHT], [call(sku="SKU-A100", warehouse="east-01"), call(sku="SKU-A100", warehouse="west-02")], False),
        ([RIGHT, RIGHT], [call(sku="SKU-A100", warehouse="east-01")], True),  # the other one may come later
        ([RIGHT], [call(sku="SKU-A100", warehouse="east-01")] * 2, False),
        ([RIGHT], [("get_stock", "{")], False),
        ([RIGHT], [("get_stuff", "{}")], False),
        ([RIGHT], [], False),
        ([], [], True),
        ([], [call(sku="SKU-A100", warehouse="east-01")], False),
        ([{"name": "get_stock"}], [call(sku="x", warehouse="y")], True),
        ([{"name": "get_stock", "arguments": {"sku": lambda sku: sku.startswith("SKU")}}], [call(sku="SKU-1")], True),
        (None, [call(sku="SKU-A100", warehouse="east-01")], True),
        (None, [call(sku="SKU-A100", warehouse="east-99")], False),
        (None, [], None),
    ],
)
def test_first_calls_are_judged_by_what_was_expected_or_else_by_what_came_of_them(monkeypatch, expected, reply, first_right):
    script = [said("x" if not reply else "", *reply), *([said("ready")] if reply else [])]
    answers(monkeypatch, *script, *script)
    prompt = {"prompt": "go"} | ({} if expected is None else {"calls": expected})
    trial, _ = compare_definitions([vague], [good], [prompt])
    assert trial.first_right is first_right


def test_calls_that_never_reach_a_tool_are_counted_apart(monkeypatch):
    wrong = [said("", ("get_stuff", "{}"), ("get_stock", "{"), call(sku="a", warehouse="b")), said("ready")]
    answers(monkeypatch, *wrong, *wrong)
    trial, _ = compare_definitions([vague], [vague], ["go"], names=("one", "two"))
    assert (trial.unknown, trial.invalid, trial.failed) == (1, 1, 1)


def test_bare_definitions_are_asked_for_and_not_carried_out(monkeypatch):
    answers(monkeypatch, *RIGHT_FIRST, said("", call(sku=3)), said("ready"))
    compared = compare_definitions([vague.definition], [vague.schema], [PROMPT])
    assert [trial.first_right for trial in compared] == [True, False]
    assert "nothing was carried out" in compared.runs[0].tool_results[0].text
    assert compared.runs[1].tool_results[0].code == "invalid_arguments"


def test_nobody_is_asked_for_leave_and_what_needs_it_does_not_run(monkeypatch):
    ran = []

    @tool(tier="danger")
    def delete_order(number: int):
        """Delete an order for good."""
        ran.append(number)

    script = [said("", ("delete_order", '{"number": 1}')), said("ready")]
    answers(monkeypatch, *script, *script)
    compared = compare_definitions([delete_order], [delete_order], ["go"])
    assert ran == []
    assert [trial.failed for trial in compared] == [1, 1]
    answers(monkeypatch, *script, *script)
    compare_definitions([delete_order], [delete_order], ["go"], policy={"danger": "go"})
    assert ran == [1, 1]


def test_each_prompt_has_a_conversation_of_its_own(monkeypatch):
    sent = answers(monkeypatch, *[said("ready")] * 4)
    compare_definitions([vague], [good], ["one", "two"], system="Be brief.")
    assert [[message["content"] for message in request.body["messages"]] for request in sent] == [
        ["Be brief.", "one"],
        ["Be brief.", "two"],
    ] * 2


def test_a_server_that_fails_at_first_is_an_error_and_later_a_trial_that_says_so(monkeypatch):
    broken = ProviderError("no credit is left", kind="billing")
    answers(monkeypatch, broken)
    with pytest.raises(ProviderError, match="no credit"):
        compare_definitions([vague], [good], ["one"])
    answers(monkeypatch, said("ready"), broken)
    trial = compare_definitions([vague], [good], ["one"])[1]
    assert (trial.error, trial.first_right) == ("no credit is left", None)


@pytest.mark.parametrize("prompts", [[], [3], [{"calls": []}], [{"prompt": "x", "calls": "y"}], [{"prompt": "x", "calls": [{}]}]])
def test_prompts_that_cannot_be_read_are_said_before_anything_is_sent(prompts):
    with pytest.raises(SettingError, match="prompt"):
        compare_definitions([vague], [good], prompts)


def test_two_versions_need_two_names():
    with pytest.raises(SettingError, match="two different names"):
        compare_definitions([vague], [good], ["x"], names=("a", "a"))


def test_a_comparison_is_a_frame_a_text_a_table_and_a_picture(monkeypatch):
    answers(monkeypatch, *WRONG_FIRST, *RIGHT_FIRST)
    compared = compare_definitions([vague], [good], [PROMPT], names=("vague 差", "<good>"))
    frame = compared.frame()
    assert list(frame["first_right"]) == [False, True]
    assert frame["right_after"].dtype == pd.Int64Dtype()
    assert str(compared).startswith("vague 差: first calls right 0%, rounds until right 2.0, calls that failed 1")
    assert repr(compared) == "<Comparison of vague 差 and <good>: 1 prompts, mock>"
    page = compared._repr_html_()
    assert "&lt;good&gt;" in page
    assert "<good>" not in page
    for dark in (False, True):
        figure = compared.plot(dark=dark)
        content = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # missing glyphs are warnings
            figure.savefig(content, format="png", dpi=40)
        assert content.getvalue().startswith(b"\x89PNG")
        assert "first calls right 100%" in figure.get_label()
        assert [text.get_text() for text in figure.axes[0].texts][:2] == ["0%", "2.0"]


# ------------------------------------------------------------------------------------------------- the lesson


def test_with_a_vague_description_the_mock_invents_a_value_and_mends_it_and_with_a_good_one_it_is_right_at_once():
    compared = compare_definitions([vague], [good], [PROMPT], names=("vague", "good"))
    before, after = compared
    assert "east-99" in before.calls
    assert (before.first_right, before.right_after) == (False, 2)
    assert "allowed are east-01, west-02" in compared.runs[0].tool_results[0].text
    assert "7" in compared.runs[0].text
    assert (after.first_right, after.right_after, after.failed) == (True, 1, 0)
    assert len(lint([vague])) > 3
    assert list(lint([good])) == []
