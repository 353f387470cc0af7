"""Definitions of tools in every wire format: each is judged by the rules of its provider, and by what becomes of the arguments."""
# ruff: noqa: N803, PLC2401  parameters are named as people name them

import json
import re
from typing import Annotated, Any, Literal

import pytest
from annotation_samples import ANNOTATIONS, Box, Node
from jsonschema import Draft202012Validator
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic import BaseModel, Field

from nb_agent.adapters import WIRES
from nb_agent.messages import Definition, Message
from nb_agent.mock.anthropic_messages import checks as anthropic_checks
from nb_agent.mock.chat_completions import checks as chat_checks
from nb_agent.mock.gemini_generate import checks as gemini_checks
from nb_agent.mock.responses import checks as responses_checks
from nb_agent.tools.schema import ArgumentsError, tool

OPENAI = ("chat_completions", "responses")
MOCKS = {
    "chat_completions": chat_checks.check,
    "responses": responses_checks.check,
    "anthropic_messages": anthropic_checks.check,
    "gemini_generate": gemini_checks.check,
}


def sent(wire, *definitions):
    """The body of a request with the tools, as it goes over the wire, and what was given up."""
    request = WIRES[wire].request([Message.of("user", "go")], definitions, model="m")
    return json.loads(request.content), request.notices


def written(wire, definition):
    """The tool in wire form, its schema, and whether it is strict."""
    (form,) = sent(wire, definition)[0]["tools"]
    form = form.get("function", form)
    form = form["functionDeclarations"][0] if "functionDeclarations" in form else form
    return form, form.get("parameters", form.get("input_schema")), form.get("strict")


def taking(annotation, **options):
    def take(x):
        """Take it."""

    take.__annotations__["x"] = annotation
    return tool(take, **options)


def parts(schema, place="#"):
    """Every schema in a schema, and its place; what stands under ``properties`` is a name and no keyword."""
    yield place, schema
    for key in ("properties", "$defs"):
        for name, part in schema.get(key, {}).items():
            yield from parts(part, f"{place}/{key}/{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, part in enumerate(schema.get(key, ())):
            yield from parts(part, f"{place}/{key}/{number}")
    for key in ("items", "additionalProperties", "propertyNames", "not"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{place}/{key}")


# ------------------------------------------------------------------------------------------------- the providers' rules


def openai_faults(schema):
    """What makes OpenAI refuse a schema that is not strict."""
    if schema.get("type") != "object" or "properties" not in schema:
        yield "#: the root is no object with properties"
    if schema.keys() & {"anyOf", "oneOf", "allOf", "$ref", "enum", "not"}:
        yield "#: the root is a choice"
    for place, part in parts(schema):
        if part.get("type") == "array" and "items" not in part:
            yield f"{place}: array schema missing items"


STRICT = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "$ref", "$defs", "title"),
        *("description", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems"),
    )
)
OPENAI_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


def openai_strict_faults(schema):
    """What makes OpenAI refuse a strict schema."""
    yield from openai_faults(schema)
    for place, part in parts(schema):
        yield from (f"{place}: {key} is not permitted" for key in part.keys() - STRICT)
        if "$ref" in part:
            yield from [f"{place}: $ref has something beside it"] * (len(part) > 1)
            yield from [f"{place}: {part['$ref']} is not there"] * (part["$ref"].removeprefix("#/$defs/") not in schema["$defs"])
        elif "anyOf" not in part and "type" not in part:
            yield f"{place}: schema must have a 'type' key"
        if "properties" in part or part.get("type") == "object":
            yield from [f"{place}: additionalProperties is not false"] * (part.get("additionalProperties") is not False)
            yield from [f"{place}: required is not every key"] * (part["required"] != list(part["properties"]))
        if part.get("format", "date") not in OPENAI_FORMATS:
            yield f"{place}: {part['format']} is not a valid format"


def anthropic_faults(schema):
    """What makes Anthropic refuse a schema that is not strict."""
    if schema.get("type") != "object" or schema.keys() & {"anyOf", "oneOf", "allOf"}:
        yield "#: the root is no object, or a choice"
    for name in schema.get("properties", {}):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            yield f"#/properties/{name}: property keys should match the pattern"


ANTHROPIC_STRICT = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs", "title"),
        *("description", "format", "minItems"),
    )
)


def anthropic_strict_faults(schema):
    """What makes Anthropic refuse a strict schema."""
    yield from anthropic_faults(schema)
    for place, part in parts(schema):
        yield from (f"{place}: {key} is not supported" for key in part.keys() - ANTHROPIC_STRICT)
        if part.get("type") == "object" and part.get("additionalProperties") is not False:
            yield f"{place}: additionalProperties is not false"
        if part.get("format", "uri") not in OPENAI_FORMATS | {"uri"} or part.get("minItems", 0) not in (0, 1):
            yield f"{place}: not supported"
        if not part.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
            yield f"{place}: schema must have a type"


GEMINI = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties", "required"),
        *("minProperties", "maxProperties", "minLength", "maxLength", "pattern", "default", "anyOf", "minimum", "maximum"),
    )
)


def gemini_faults(schema):
    """What makes Gemini refuse the field ``parameters``."""
    if schema is None:
        return
    for place, part in parts(schema):
        yield from (f"{place}: unknown field {key}" for key in part.keys() - GEMINI)
        if not isinstance(part.get("type"), str) and "anyOf" not in part:
            yield f"{place}: no single type"
        if not all(isinstance(value, str) and value for value in part.get("enum", ())):
            yield f"{place}: enum of something else than texts"
        if part.get("type") == "array" and "items" not in part:
            yield f"{place}: items missing"
        if part.get("properties") == {}:
            yield f"{place}: properties should be non-empty"
        if part.get("type") == "string" and part.get("format", "enum") not in ("enum", "date-time"):
            yield f"{place}: format"


RULES = {
    ("chat_completions", False): openai_faults,
    ("chat_completions", True): openai_strict_faults,
    ("responses", False): openai_faults,
    ("responses", True): openai_strict_faults,
    ("anthropic_messages", False): anthropic_faults,
    ("anthropic_messages", True): anthropic_strict_faults,
    ("gemini_generate", False): gemini_faults,
}


@pytest.mark.parametrize("strict", [None, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ANNOTATIONS)
def test_every_annotation_is_written_as_the_provider_takes_it(name, wire, strict):
    definition = taking(ANNOTATIONS[name][0], strict=strict).definition
    before = json.dumps(definition.parameters)
    body, notices = sent(wire, definition)
    MOCKS[wire](body)
    _, schema, is_strict = written(wire, definition)
    assert list(RULES[wire, bool(is_strict)](schema)) == []
    assert json.dumps(definition.parameters) == before
    if wire != "gemini_generate":
        Draft202012Validator.check_schema(schema)
    if strict and not is_strict:  # it says so
        assert any("strict" in said for said in notices)


# ------------------------------------------------------------------------------------------------- strictness


class Note(BaseModel):
    text: str = Field("x", min_length=1, description="what it says")
    box: Box | None = None
    link: Annotated[Box, Field(description="a box, too")] = Box(w=1)
    kind: Literal["a", "b"] = "a"


def test_a_strict_tool_asks_for_every_key_and_null_stands_for_one_that_is_left_out():
    @tool(strict=True)
    def book(room: str, nights: int = 2, mode: Literal["a", "b"] = "a", note: Note | None = None, tags: list[str] = ["q"]):  # noqa: B006
        return room, nights, mode, note, tags

    for wire in OPENAI:
        _, schema, is_strict = written(wire, book.definition)
        assert is_strict is True
        assert schema["required"] == ["room", "nights", "mode", "note", "tags"]
        assert schema["properties"]["nights"] == {"type": ["integer", "null"], "description": "default: 2"}
        assert schema["properties"]["mode"]["enum"] == ["a", "b", None]
        given = dict.fromkeys(schema["required"]) | {"room": "oak"}
        assert Draft202012Validator(schema).is_valid(given)
        assert book.call(book.check(given)) == ("oak", 2, "a", None, ["q"])
        given["note"] = {"text": None, "box": None, "link": None, "kind": None}
        assert Draft202012Validator(schema).is_valid(given)
        assert book.call(book.check(given))[3] == Note()


def test_null_for_something_that_has_to_be_there_is_refused_all_the_same():
    made = tool(lambda: None, name="f")
    with pytest.raises(ArgumentsError, match="there is no such parameter"):
        made.check({"x": None})

    def take(box: Box, n: int = 1):
        """Take."""

    for strict in (None, True):
        made = tool(take, strict=strict)
        with pytest.raises(ArgumentsError, match=r"box\.w"):
            made.check({"box": {"w": None, "title": "a"}})
    with pytest.raises(ArgumentsError, match="n: expected"):
        tool(take).check({"box": {"w": 1}, "n": None})
    assert tool(take, strict=True).check({"box": {"w": 1, "title": None}, "n": None}) == {"box": Box(w=1)}


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (dict[str, str], "x takes keys of any name"),
        (dict, "x takes keys of any name"),
        (list[dict[str, int]], "x.items takes keys of any name"),
        (Any, "x takes any value"),
        (list, "x.items takes any value"),
    ],
)
def test_an_open_schema_is_never_closed_but_sent_without_strictness(annotation, reason):
    definition = taking(annotation, strict=True).definition
    for wire in (*OPENAI, "anthropic_messages"):
        _, notices = sent(wire, definition)
        _, schema, is_strict = written(wire, definition)
        assert not is_strict
        assert list(notices) == [f"take was sent without strict, because {reason}"]
        assert schema == written(wire, taking(annotation).definition)[1]


def test_a_schema_that_holds_itself_is_strict_where_the_provider_takes_that():
    definition = taking(Node, strict=True).definition
    assert [written(wire, definition)[2] for wire in WIRES] == [True, True, None, None]
    assert sent("anthropic_messages", definition)[1] == ("take was sent without strict, because x.kids.items refers to itself",)


def test_a_description_beside_a_reference_is_kept():
    def take(box: Annotated[Box, Field(description="the first")], boxes: list[Box]):
        """Take."""

    definition = tool(take, strict=True).definition
    for wire in OPENAI:
        schema = written(wire, definition)[1]
        assert schema["properties"]["box"] == {"anyOf": [{"$ref": "#/$defs/Box"}], "description": "the first"}


def test_a_strict_schema_is_what_the_official_client_would_leave_as_it_is():
    for name in ("model", "recursive model", "recursive dataclass", "optional", "typed dict", "discriminated"):
        schema = written("responses", taking(ANNOTATIONS[name][0], strict=True).definition)[1]
        assert _ensure_strict_json_schema(json.loads(json.dumps(schema)), path=(), root=schema) == schema


def test_what_is_too_large_for_strictness_goes_without():
    deep = {"type": "string"}
    for _ in range(11):
        deep = {"type": "object", "properties": {"in": deep}, "additionalProperties": False}
    wide = {"type": "object", "properties": {"x": {"enum": [str(n) for n in range(1001)]}}, "additionalProperties": False}
    for schema, reason in ((deep, "nested more than 10 levels deep"), (wide, "lists more than 1,000 values")):
        _, notices = sent("responses", Definition("f", "d", schema, strict=True))
        assert notices == (f"f was sent without strict, because it {'is ' * ('nested' in reason)}{reason}",)


# ------------------------------------------------------------------------------------------------- roots, items, names


def test_a_root_that_is_a_choice_becomes_an_object_for_openai_too():
    schema = {"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}}]}
    for wire in OPENAI:
        form = written(wire, Definition("f", "d", schema))[1]
        assert form == {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}}


def test_a_property_called_like_a_keyword_is_no_keyword():
    def take(items: int = 1, anyOf: str = "", required: bool = False, properties: list[int] = []):  # noqa: B006, FBT001, FBT002
        """Take."""

    for strict in (None, True):
        definition = tool(take, strict=strict).definition
        for wire in WIRES:
            assert set(written(wire, definition)[1]["properties"]) == {"items", "anyOf", "required", "properties"}


def test_names_of_parameters_that_anthropic_refuses_are_made_to_fit_and_read_back():
    def weather(
        城市: Annotated[str, "城市名"], 单位: str = "c", filter_: Annotated[str, Field(alias="filter[id]")] = "", plain: int = 0
    ):
        return 城市, 单位, filter_, plain

    made = tool(weather)
    schema = written("anthropic_messages", made.definition)[1]
    first, second, third, last = schema["properties"]
    assert list(anthropic_faults(schema)) == []
    assert schema["required"] == [first]
    assert schema["properties"][first] == {"type": "string", "description": "城市: 城市名"}
    assert schema["properties"][third]["description"] == "filter[id]"
    assert last == "plain"
    assert made.call(made.check({first: "北京", second: "f", third: "7", last: 1})) == ("北京", "f", "7", 1)
    assert made.call(made.check({"城市": "北京"})) == ("北京", "c", "", 0)
    assert "城市" in written("chat_completions", made.definition)[1]["properties"]


def test_a_name_that_gemini_refuses_is_an_error_of_the_definition():
    with pytest.raises(Exception, match="the first a letter or _"):
        tool(lambda: None, name="3d")
