"""Names, parameters, content and arguments between MCP and the loop, with no server at all."""

import copy
import re

import jsonschema
import pytest

from nb_agent.mcp.arguments import argument_faults
from nb_agent.mcp.mapping import parameters, result_parts, wire_names
from nb_agent.mcp.mending import mend_listing, mend_result
from nb_agent.mcp.target import Target, one_line
from nb_agent.messages import Image, Text

FITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def texts(result):
    return "\n".join(part.text for part in result_parts(result) if isinstance(part, Text))


# ------------------------------------------------------------------------------------------------- names


def test_tools_of_the_same_name_on_two_servers_are_told_apart(cases):
    servers = cases["E03"]["given"]["servers"]
    names = wire_names((server, tool) for server, tools in servers.items() for tool in tools)
    assert names == {("lib", "search"): "lib__search", ("lib", "open"): "lib__open", ("web", "search"): "web__search"}


def test_names_that_become_alike_stay_different_and_fit(cases):
    origins = [("s", tool) for tool in cases["E05"]["given"]["servers"]["s"]]
    names = wire_names(origins)
    assert len(set(names.values())) == 5
    assert all(FITS.fullmatch(name) for name in names.values())
    assert names["s", "repo_list_items"] == "s__repo_list_items", "a name that fits stays as it is"
    assert names["s", "läs fil"] == "s__l_s_fil", "no hash where nothing clashes"


def test_names_do_not_depend_on_the_order_of_the_tools(cases):
    origins = [("s", tool) for tool in cases["E05"]["given"]["servers"]["s"]]
    assert wire_names(origins) == wire_names(reversed(origins))


def test_long_names_are_cut_and_stay_different():
    names = wire_names([("s", "a" * 100 + "1"), ("s", "a" * 100 + "2"), ("s", "b" * 61)])
    assert all(len(name) == 64 for name in names.values())
    assert len(set(names.values())) == 3
    assert wire_names([("s", "c" * 61)]) == {("s", "c" * 61): "s__" + "c" * 61}


@pytest.mark.parametrize("origin", [("1st", "go"), ("-a", "go"), ("_", "東京"), ("ok", "")])
def test_every_name_begins_with_a_letter_or_an_underscore(origin):
    assert FITS.fullmatch(wire_names([origin])[origin])


def test_two_servers_whose_joined_names_are_equal_are_told_apart():
    names = wire_names([("a__b", "c"), ("a", "b__c")])
    assert len(set(names.values())) == 2
    assert all(FITS.fullmatch(name) for name in names.values())


# ------------------------------------------------------------------------------------------------- parameters


def test_boolean_schemas_become_objects_and_a_property_that_is_false_goes(cases):
    schema = cases["E07"]["given"]["tools"][1]["inputSchema"]
    before = copy.deepcopy(schema)
    assert parameters(schema) == {
        "type": "object",
        "properties": {"raw": {}, "deep": {"type": "array", "items": {}}},
        "additionalProperties": False,
    }
    assert schema == before


def test_references_and_unknown_keywords_are_kept(cases):
    for case in ("E08", "E25"):
        schema = cases[case]["given"]["tools"][0]["inputSchema"]
        assert parameters(schema) == schema


def test_a_schema_without_type_and_properties_becomes_one_of_an_object():
    assert parameters({}) == {"type": "object", "properties": {}}


def test_a_false_schema_deep_inside_refuses_everything_still():
    schema = {"type": "object", "properties": {"a": {"anyOf": [True, False], "not": False}}}
    jsonschema.Draft202012Validator.check_schema(parameters(schema))
    assert parameters(schema)["properties"]["a"] == {"anyOf": [{}, {"not": {}}], "not": {"not": {}}}


# ------------------------------------------------------------------------------------------------- results


def test_structured_content_is_told_only_where_there_is_no_text(cases):
    said = [texts(result) for result in cases["E10"]["given"]["tools_call_results"]]
    assert said == ['{"rows":[{"id":1,"ö":"ä"}]}', "2 rows", "(no output)"]


def test_every_kind_of_content_is_passed_on_or_named_in_its_place(cases):
    result = cases["E12"]["given"]["tools_call_result"]
    parts = result_parts(result)
    assert parts[1] == Image("iVBORw0KGgo=", "image/png")
    said = [part.text for part in parts if isinstance(part, Text)]
    assert said == [
        "see files",
        "[audio: audio/wav, 4 bytes]",
        "[link to a resource: shelf://books/9, book nine, text/plain]",
        "[resource: shelf://notes/1, text/plain]\nembedded note",
        "[resource: shelf://pdf/2, application/pdf, 5 bytes]",
        "[hologram: a kind of content that nb_agent does not know]",
    ]
    assert "UklGRg==" not in str(said)
    assert "JVBERi0=" not in str(said)


def test_structured_content_is_told_beside_a_picture():
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result = {"content": [image], "structuredContent": {"width": 3}}
    assert result_parts(result) == (Image("AAAA", "image/png"), Text('{"width":3}'))


def test_a_picture_that_no_model_reads_is_named():
    image = {"type": "image", "data": "AAAA", "mimeType": "image/svg+xml"}
    assert result_parts({"content": [image]}) == (Text("[image: image/svg+xml, 3 bytes]"),)


@pytest.mark.parametrize("block", [None, 3, "text", {}, {"type": None}, {"type": "text"}, {"type": "resource"}, {"type": ["x"]}])
def test_content_that_is_broken_is_named_and_crashes_nothing(block):
    mended, _ = mend_result({"content": [block]})
    assert texts(mended).startswith("[")


# ------------------------------------------------------------------------------------------------- mending


def test_one_bad_tool_does_not_take_the_others_down():
    good = {"name": "good", "inputSchema": {"type": "object"}}
    page = {"tools": [good, {"name": "bad", "inputSchema": {"type": "string"}}, {"inputSchema": {}}, "tool", {"name": "bare"}]}
    mended, notes = mend_listing(page)
    assert [tool["name"] for tool in mended["tools"]] == ["good", "bare"]
    assert notes == [
        "tool 'bad' was left out because its inputSchema is no schema of an object",
        'a tool was left out because it has no name: {"inputSchema":{}}',
        'a tool was left out because it has no name: "tool"',
    ]


def test_parts_of_a_tool_that_are_of_the_wrong_type_are_dropped():
    odd = {"name": "a", "description": 3, "annotations": {"readOnlyHint": "yes", "title": "A"}, "outputSchema": {"type": "array"}}
    mended, _ = mend_listing({"tools": [odd]})
    assert mended["tools"] == [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"title": "A"}}]


def test_a_cursor_that_is_no_text_ends_the_list_with_a_note():
    mended, notes = mend_listing({"tools": [], "nextCursor": 2})
    assert mended == {"tools": []}
    assert notes == ["later pages of tools were not read: nextCursor is no text but 2"]


def test_structured_content_that_is_no_object_becomes_text():
    assert texts(mend_result({"structuredContent": [1, 2]})[0]) == "[1,2]"


def test_a_result_that_asks_for_something_first_is_left_to_the_sdk():
    asking = {"resultType": "input_required", "inputRequests": {}}
    assert mend_result(asking) == (asking, [])


# ------------------------------------------------------------------------------------------------- arguments

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "stops": {"type": "array", "items": {"type": "object", "required": ["at"], "properties": {"at": {"enum": ["a", "b"]}}}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"city": "Oslo", "limit": None, "stops": [{"at": "a"}]}, []),
        ({}, ["argument 'city' is missing"]),
        ({"city": 3}, ["argument 'city': 3 is not of type 'string'"]),
        ({"city": "Oslo", "town": 1}, ["argument 'town' is not known; known are: city, limit, stops"]),
        ({"city": "Oslo", "limit": 0}, ["argument 'limit': 0 is less than the minimum of 1"]),
        ({"city": "Oslo", "stops": [{"at": "a"}, {}]}, ["argument 'stops[1].at' is missing"]),
        ({"city": "Oslo", "stops": [{"at": "c"}]}, ["argument 'stops[0].at': 'c' is not one of ['a', 'b']"]),
    ],
)
def test_a_fault_names_its_argument(arguments, faults):
    assert argument_faults(SCHEMA, arguments) == faults


def test_each_missing_argument_is_named():
    schema = {"type": "object", "required": ["a", "b"]}
    assert argument_faults(schema, {}) == ["argument 'a' is missing", "argument 'b' is missing"]


def test_a_huge_value_is_not_quoted_whole():
    (fault,) = argument_faults({"properties": {"n": {"type": "integer"}}}, {"n": "x\n" * 10_000})
    assert len(fault) < 300
    assert "\n" not in fault


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"$ref": "#/$defs/none"}, {"$ref": "https://example.org/s.json"}, {"$ref": "#"}],
    ids=["bad type", "dangling", "remote", "endless"],
)
def test_a_broken_schema_checks_nothing_and_fetches_nothing(schema):
    assert argument_faults(schema, {"a": 1}) == []


def test_references_inside_the_schema_are_followed(cases):
    schema = cases["E25"]["given"]["tools"][0]["inputSchema"]
    expected = cases["E25"]["expect"]["openai-chat and anthropic"]
    assert [argument_faults(schema, fits) for fits in expected["schema_accepts"]] == [[], []]
    assert all(argument_faults(schema, wrong) for wrong in expected["schema_rejects"])


def test_arguments_that_a_false_schema_forbids_are_refused(cases):
    schema = cases["E07"]["given"]["tools"][1]["inputSchema"]
    assert argument_faults(schema, {"raw": object, "deep": [1, "x"]}) == []
    assert argument_faults(schema, {"none": 1})


# ------------------------------------------------------------------------------------------------- targets


def test_a_target_never_shows_what_is_in_its_environment():
    target = Target.of(["srv", "--key", "s3cret-key"], env={"KEY": "s3cret-key", "DEBUG": "1"})
    assert str(target) == "srv --key ***"
    assert repr(target) == "<srv --key ***>"


def test_an_address_is_shown_without_what_may_be_secret():
    assert str(Target.of(url="https://me:pw@example.org/mcp?key=abc#x")) == "https://example.org/mcp"


def test_a_long_text_is_cut_in_the_middle():
    assert one_line("a" * 50 + "b" * 50, 20) == "a" * 10 + " … " + "b" * 10


def test_a_text_that_fills_the_memory_is_cut_and_says_so():
    (part,) = result_parts({"content": [{"type": "text", "text": "y" * 50_000_000}]})
    assert len(part.text) < 2_000_100
    assert part.text.endswith("[cut: 50,000,000 characters came, 2,000,000 are kept]")
