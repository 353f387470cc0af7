"""What each generation of models reads of definitions, calls and results, on requests made up here; and what a round costs."""

import json
import random

import pytest

from nb_agent import adapters, vocabulary
from nb_agent.messages import Definition, Message, Segment, Text, ToolCall, ToolResult
from nb_agent.tokens import Segments, breakdown, count, encoding_for, explained, explained_reply
from nb_agent.tokens.breakdowns import Breakdown, breakdown_reply
from nb_agent.tokens.rendering import written
from nb_agent.usage import Usage

ROLL = Definition("roll", "Rolls a die.", {"type": "object", "properties": {"sides": {"type": "integer"}}})
LOOK = Definition(
    "look", "Looks something up.", {"type": "object", "properties": {"at": {"type": "string", "description": "Where."}}}
)
ROLL_TEXT = "// Rolls a die.\ntype roll = (_: { sides?: number }) => any;"
LOOK_TEXT = "// Looks something up.\ntype look = (_: {\n// Where.\nat?: string,\n}) => any;"
NAMESPACE = f"namespace functions {{\n\n{ROLL_TEXT}\n\n{LOOK_TEXT}\n\n}} // namespace functions"
CALL = Message("assistant", (ToolCall("call_00001", "roll", '{ "sides": 6 }'),))
RESULT = Message("tool", (ToolResult("call_00001", "roll", (Text("four"),)),))
SAID = [Message.of("system", "Be brief."), Message.of("user", "Roll a die.")]
FRAMES = 2 * 4  # of the two messages
TOOLS = f"\n\n# Tools\n\n## functions\n\n{NAMESPACE}"
FUNCTIONS = f"{ROLL_TEXT}\n\n{LOOK_TEXT}"

SCHEMA = {
    "title": "Args",
    "type": "object",
    "required": ["unit", "deep"],
    "properties": {
        "unit": {"enum": ["C", "F"], "default": "C", "description": "Which.\n  Or none."},
        "town": {"type": ["string", "null"], "default": None},
        "deep": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Inner"}}},
        "all": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "object"}]}},
    },
    "$defs": {"Inner": {"type": "object", "title": "Inner", "properties": {"x": {"description": "Far in."}}}},
}


def found(history, definitions, wire, model, **settings):
    body = adapters.WIRES[wire].request(history, definitions, model=model, settings=settings).body
    return breakdown(adapters.WIRES[wire].segments(body), model=model)


@pytest.mark.parametrize(
    ("wire", "model", "expected"),
    [
        ("chat_completions", "gpt-4o", count(f"Be brief.{TOOLS}") + 3 - 1),
        ("responses", "gpt-4.1", count(f"Be brief.{TOOLS}") + 3 - 3),
        ("chat_completions", "gpt-5-mini", count("Be brief.\n\n") - 1 + 2 + count(FUNCTIONS) + 97),
        ("responses", "o4-mini", count("Be brief.") + 2 + count(FUNCTIONS) + 15),
        (
            "chat_completions",
            "gpt-3.5-turbo-0125",
            count("Be brief.\n", model="gpt-4") - 4 + 3 + count(NAMESPACE, model="gpt-4") + 9,
        ),
    ],
)
def test_definitions_cost_what_the_generation_reads(wire, model, expected):
    b = found(SAID, [ROLL, LOOK], wire, model)
    assert b.total == expected + count("Roll a die.", model=model) + FRAMES
    assert b.exact
    for name, text in (("roll", ROLL_TEXT), ("look", LOOK_TEXT)):  # the line ends and slashes between two are in one of them
        assert abs(b.tools[name] - count(text, model=model)) <= 2


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "gpt-4", "gpt-3.5-turbo"])
def test_each_tool_has_its_own_stretch_and_all_stretches_are_the_whole_text(model):
    dice = random.Random(9)
    abouts = ["", "Does it.", "\n\nAnd\n\n so on", "// twice", "/", "。", "(a)", "京都"]
    for _ in range(40):
        forms = [{"name": f"f{n}", "description": dice.choice(abouts), "parameters": SCHEMA} for n in range(dice.randrange(1, 12))]
        tools = [Segment("tools", json.dumps(form), tool=form["name"]) for form in forms]
        texts = [written(form, terse=model != "gpt-4") for form in forms]
        whole = "\n\n".join(texts)
        if model != "gpt-5":
            whole = f"namespace functions {{\n\n{whole}\n\n}} // namespace functions"
        whole = f"# Tools\n\n## functions\n\n{whole}" if model == "gpt-4o" else whole
        constants = {"gpt-4o": 3 + 4 - 1, "gpt-5": 2 + 97}.get(model, 3 + 9)
        b = breakdown(tools, model=model)
        assert b.total == count(whole, model=model) + constants
        assert sum(b.tools.values()) == b.parts["tools"]
        assert b.parts["overhead"] > 0


@pytest.mark.parametrize("system", ["Be brief.", "Be brief", "Be brief.\n   ", "京都。", "List:\n- a\n- b ", "word" * 100])
def test_definitions_behind_a_system_message_are_one_text_with_it(system):
    b = found([Message.of("system", system), SAID[1]], [ROLL], "chat_completions", "gpt-4o")
    whole = f"{system}\n\n# Tools\n\n## functions\n\nnamespace functions {{\n\n{ROLL_TEXT}\n\n}} // namespace functions"
    assert b.total == count(whole) + count("Roll a die.") + 2 * 4 + 3 - 1
    assert b.parts["system"] == count(system)


def test_definitions_without_a_system_message_are_a_message_of_their_own():
    text = f"# Tools\n\n## functions\n\nnamespace functions {{\n\n{ROLL_TEXT}\n\n}} // namespace functions"
    chat, flat = (found(SAID[1:], [ROLL], wire, "gpt-4o") for wire in ("chat_completions", "responses"))
    assert chat.total == count("Roll a die.") + 4 + 3 + count(text) + 4 - 1
    assert flat.total == count("Roll a die.") + 4 + 3 + count(text) - 3


@pytest.mark.parametrize(
    ("wire", "model", "pair"),
    [
        ("chat_completions", "gpt-4o", 11),
        ("responses", "gpt-4o", 9),
        ("chat_completions", "gpt-5", 17),
        ("responses", "gpt-5", 18),
        ("chat_completions", "gpt-3.5-turbo", 11),
    ],
)
def test_a_call_and_its_result_cost_their_texts_their_names_and_a_frame(wire, model, pair):
    before, after = found(SAID, [ROLL], wire, model), found([*SAID, CALL, RESULT], [ROLL], wire, model)
    names = 2 * count("functions.roll", model=model)
    assert after.total - before.total == count('{"sides":6}', model=model) + count("four", model=model) + names + pair
    assert after.parts["tool_results"] == count("four", model=model)


def test_a_tool_that_the_request_does_not_define_costs_three_more_on_responses_only():
    for wire, more in (("responses", 3), ("chat_completions", 0)):
        known, other = (found([*SAID, CALL, RESULT], [one], wire, "gpt-4o") for one in (ROLL, LOOK))
        without = [found(SAID, [one], wire, "gpt-4o").total for one in (ROLL, LOOK)]
        assert (other.total - without[1]) - (known.total - without[0]) == more


@pytest.mark.parametrize(("wire", "model", "frame"), [("chat_completions", "gpt-4o", 13), ("responses", "gpt-5", 24)])
def test_calls_side_by_side_are_one_call_of_their_own(wire, model, frame):
    calls = Message("assistant", (ToolCall("call_00001", "roll", '{"sides": 6}'), ToolCall("call_00002", "roll", "{}")))
    results = [Message("tool", (ToolResult(f"call_0000{n}", "roll", (Text("four"),)),)) for n in (1, 2)]
    before, after = found(SAID, [ROLL], wire, model), found([*SAID, calls, *results], [ROLL], wire, model)
    uses = '{"recipient_name":"functions.roll","parameters":{"sides":6}},{"recipient_name":"functions.roll","parameters":{}}'
    written_down = count(f'{{"tool_uses":[{uses}]}}') + count("multi_tool_use.parallel")
    assert after.total - before.total == written_down + frame + 2 * (count("four") + count("functions.roll"))
    assert after.parts["tool_calls"] == written_down
    assert not after.exact


def test_the_oldest_form_of_calls_and_choices():
    functions = [{"name": "roll", "description": "Rolls a die.", "parameters": ROLL.parameters}]
    body = {"messages": [{"role": "user", "content": "Roll a die."}], "functions": functions}

    def total(**more):
        return breakdown(adapters.WIRES["chat_completions"].segments({**body, **more}), model="gpt-3.5-turbo-0613").total

    indented = "// Rolls a die.\ntype roll = (_: {\nsides?: number,\n}) => any;"
    text = f"namespace functions {{\n\n{indented}\n\n}} // namespace functions"
    assert total() == count("Roll a die.", model="gpt-4") + 4 + 3 + count(text, model="gpt-4") + 9
    assert total(function_call="none") - total() == 1
    assert total(function_call={"name": "roll"}) - total() == 4 + count("roll", model="gpt-4")
    called = {"role": "assistant", "content": "", "function_call": {"name": "roll", "arguments": "{}"}}
    answered = {"role": "function", "name": "roll", "content": "four"}
    more = total(messages=[*body["messages"], called, answered]) - total()
    assert more == (4 + 3 + 1 + 1) + (4 - 2 + 1 + 1 + 1)


def test_the_newer_way_of_writing_keeps_titles_and_does_not_indent():
    assert written({"name": "f", "parameters": SCHEMA}, terse=True) == (
        "type f = (\n// Args\n_: {\n// Which.\n// Or none.\n"
        'unit: "C" | "F", // default: C\ntown?: string | null, // default: null\n'
        "deep: {\n// Inner\ninner?: {\n// Far in.\nx?: any,\n},\n},\nall?: number | object[],\n}) => any;"
    )


def test_the_older_way_of_writing_indents_and_forgets_what_is_deep():
    assert written({"name": "f", "description": "Does.", "parameters": SCHEMA}, terse=False) == (
        "// Does.\ntype f = (_: {\n// Which.\n//   Or none.\n"
        'unit: "C" | "F", // default: C\ntown?: string | null, // default: null\n'
        "deep: {\n  inner?: {\n    x?: any,\n  },\n},\nall?: number | object[],\n}) => any;"
    )


@pytest.mark.parametrize("terse", [True, False])
def test_definitions_that_go_round_in_a_ring_end(terse):
    ring = {f"D{n}": {"type": "object", "properties": {f"p{m}": {"$ref": f"#/$defs/D{m}"} for m in range(12)}} for n in range(12)}
    lists = {"type": "array", "items": {"$ref": "#/$defs/L"}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}, "l": lists}, "$defs": {**ring, "L": lists}}
    assert len(written({"name": "f", "parameters": schema}, terse=terse)) < 500_000


@pytest.mark.parametrize(
    "form", ["no json", "[]", "{}", '{"type":"web_search"}', '{"name":7}', '{"a":' * 2_000 + "1" + "}" * 2_000]
)
def test_what_is_no_function_counts_as_its_json_and_is_not_exact(form):
    b = breakdown([Segment("user", "hello", 0), Segment("tools", form, tool="t")], model="gpt-4o")
    assert (b.tools, b.exact) == ({"t": count(form)}, False)


def test_the_mock_model_counts_definitions_as_the_json_that_is_sent():
    b = found([*SAID, CALL, RESULT], [ROLL], "chat_completions", "mock")
    sent = adapters.WIRES["chat_completions"].request(SAID, [ROLL], model="mock").body["tools"][0].content.decode()
    assert b.tools == {"roll": count(sent)}
    assert b.parts["overhead"] == 4 * 4 + 3
    assert b.exact


def test_a_schema_for_the_answer_is_counted_and_makes_it_an_estimate():
    form = {"type": "json_schema", "json_schema": {"name": "town", "schema": {"type": "object", "properties": {}}}}
    for wire in ("chat_completions", "responses"):
        plain, asked = found(SAID, [], wire, "gpt-4o"), found(SAID, [], wire, "gpt-4o", response_format=form)
        assert asked.total > plain.total + 8
        assert (plain.exact, asked.exact) == (True, False)


# ------------------------------------------------------------------------------------------------- what a round costs


@pytest.fixture
def encoded(monkeypatch):
    """The bytes that were put through an encoder, a number for each time."""
    monkeypatch.setattr(vocabulary, "_memo", type(vocabulary._memo)())
    monkeypatch.setattr(vocabulary, "_remembered", 0)
    sizes, encode = [], vocabulary._encode
    monkeypatch.setattr(vocabulary, "_encode", lambda encoding, text: sizes.append(len(text.encode())) or encode(encoding, text))
    return sizes


def round_of(number):
    call = ToolCall(f"call_{number:05}", "look", json.dumps({"at": number}))
    text = f"page {number}: " + f"what stands on page {number}, " * 70
    return [Message("assistant", (call,)), Message("tool", (ToolResult(call.id, "look", (Text(text),)),))]


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ("chat_completions", "gpt-4o"),
        ("chat_completions", "mock"),
        ("responses", "gpt-5"),
        ("anthropic_messages", "claude-sonnet-4-5"),
        ("gemini_generate", "gemini-2.5-pro"),
    ],
)
def test_200_rounds_encode_only_the_bytes_that_are_new_in_each(wire, model, encoded):
    history = [*SAID]
    for number in range(200):
        history += round_of(number)
        b = found(history, [ROLL, LOOK], wire, model)
    new = sum(len(call.arguments) for message in history for call in message.tool_calls)
    new += sum(len(message.text.encode()) for message in history)
    new += sum(len(definition.description) + len(json.dumps(definition.parameters)) for definition in (ROLL, LOOK))
    assert new > 200 * 1_500
    assert sum(encoded) <= 1.1 * new
    assert b == found([*map(again, history)], [ROLL, LOOK], wire, model)


def again(message):
    """The same message, of which nothing is remembered."""
    return Message(message.role, message.parts)


def test_only_the_segments_that_are_new_are_looked_at(monkeypatch):
    history, looked = [*SAID], []
    look = adapters.chat_completions._content
    monkeypatch.setattr(adapters.chat_completions, "_content", lambda *given: looked.append(given) or look(*given))
    for number in range(50):
        history += round_of(number)
        found(history, [LOOK], "chat_completions", "gpt-4o")
    assert len(looked) == len(history)


def test_a_conversation_that_was_changed_or_forked_is_counted_anew():
    first = [*SAID, *round_of(1)]
    longer, other = [*first, *round_of(2)], [*first, *round_of(3), Message.of("user", "And now?")]
    for history in (first, longer, other, first[:2], longer, [SAID[1], *first[2:]]):
        fresh = [*map(again, history)]
        for wire, model in (("chat_completions", "gpt-4o"), ("responses", "o3"), ("anthropic_messages", "mock")):
            assert found(history, [LOOK], wire, model) == found(fresh, [LOOK], wire, model)


def test_each_model_of_one_conversation_has_its_own_count():
    history = [*SAID, *round_of(1)]
    totals = {model: found(history, [LOOK], "chat_completions", model).total for model in ("gpt-4o", "mock", "gpt-5", "gpt-4")}
    for model, total in totals.items():
        assert found([*map(again, history)], [LOOK], "chat_completions", model).total == total
    assert len(set(totals.values())) > 2


def test_a_list_of_segments_that_is_not_an_adapters_counts_like_chat_completions():
    segments = adapters.WIRES["chat_completions"].segments(
        adapters.WIRES["chat_completions"].request([*SAID, CALL, RESULT], [ROLL], model="gpt-4o").body
    )
    assert isinstance(segments, Segments)
    assert breakdown(list(segments), model="gpt-4o") == breakdown(segments, model="gpt-4o")


# ------------------------------------------------------------------------------------------------- names and scripts


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("qwen3:8b-q4_K_M", "o200k_base", False),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "o200k_base", False),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "o200k_base", False),
        ("models/gemini-2.5-flash", "o200k_base", False),
        ("publishers/google/models/gemini-2.5-flash", "o200k_base", False),
        ("gpt-4o@2024-11-20", "o200k_base", True),
        ("openai/gpt-oss-120b", "o200k_base", True),
        ("gpt-4-turbo-2024-04-09", "cl100k_base", True),
    ],
)
def test_decorated_names(model, name, exact):
    assert encoding_for(model) == (name, exact)


def test_claude_under_any_name_has_claudes_frame():
    plain = found(SAID, [ROLL], "anthropic_messages", "claude-sonnet-4-5")
    bedrock = found(SAID, [ROLL], "anthropic_messages", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert plain.parts == bedrock.parts
    assert plain.parts["overhead"] > 500  # what it is told of tools
    forced = found(SAID, [ROLL], "anthropic_messages", "claude-sonnet-4-5", tool_choice="required")
    assert forced.total - plain.total == 97


@pytest.mark.parametrize("text", ["大模型读取整个历史。" * 20, "日本語の文章です。" * 20, "안녕하세요 세계 " * 20, "สวัสดีครับ" * 20])
def test_a_vocabulary_that_is_not_known_may_be_poor_in_other_scripts(text):
    exact = count(text, model="gpt-4o")
    for model in ("claude-opus-4-8", "llama3:8b", "somebody/else"):
        assert exact <= count(text, model=model) <= 3 * len(text)
        assert count(text, model=model) >= len(text) / 2.5
    assert count("plain words", model="llama3:8b") == count("plain words", model="gpt-4o")


# ------------------------------------------------------------------------------------------------- beside what was reported


def test_the_difference_to_what_was_reported_is_named_and_adds_up():
    counted = found(SAID, [], "chat_completions", "gpt-4o")
    same = explained(counted, Usage(input=counted.total - 5, cache_read=5), model="gpt-4o")
    assert (same.differences, same.reported, same.cache_read) == ((), counted.total, 5)
    assert str(same) == f"{counted.total} counted, {counted.total} reported, 5 of them read from a cache"
    for model, name in (("gpt-4o", "template"), ("claude-opus-4-8", "vocabulary"), ("team-blue", "vocabulary")):
        off = explained(counted, Usage(input=40), model=model)
        assert [(one.name, one.tokens) for one in off.differences] == [(name, 40 - counted.total)]
    pictured = Breakdown({"user": 5, "images": 85}, {}, (90,), 90, exact=False, encoding="o200k_base")
    assert str(explained(pictured, Usage(input=1100), model="gpt-4o")) == "90 counted (estimate), 1,100 reported, +1,010 images"


def test_hidden_reasoning_has_a_name_of_its_own():
    counted = breakdown_reply(Message.of("assistant", "four"), model="o3")
    found = explained_reply(counted, Usage(output=9, reasoning=640), model="o3")
    assert [(one.name, one.tokens) for one in found.differences] == [("hidden reasoning", 640), ("template", 8)]
    assert found.counted + sum(one.tokens for one in found.differences) == found.reported == 649
    assert found.shown()["differences"] == {"hidden reasoning": 640, "template": 8}


def test_where_nothing_was_reported_there_is_no_difference():
    counted = breakdown_reply(Message.of("assistant", "four"), model="o3")
    for usage in (None, Usage()):
        assert str(explained_reply(counted, usage, model="o3")) == "1 counted (estimate), none reported"


def test_all_choices_of_a_reply_are_counted():
    one, two = Message.of("assistant", "four"), Message.of("assistant", "four or five")
    found = breakdown_reply(one, two, model="mock")
    assert found.messages == (1, 3)
    assert found.total == 4
