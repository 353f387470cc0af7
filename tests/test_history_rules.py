"""The rules by which a provider refuses a history: each is broken here once, and no history that a server refuses slips through.

The judge is the mock's other end, which is written against the wire formats and not against our values.
"""

import dataclasses
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_samples import WIRES

from nb_agent import adapters
from nb_agent.adapters.history_rules import RULES, rule_of
from nb_agent.errors import HistoryError
from nb_agent.history import check, mend
from nb_agent.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult

NAMES = list(adapters.WIRES)
IMAGE = Image("aW1hZ2U=")
USER = Message.of("user", "q")
NEXT = Message.of("user", "and now?")


def answer(call_id, *parts, name="f"):
    return Message("tool", (ToolResult(call_id, name, parts or (Text("r"),)),))


def calling(*ids, name="f"):
    return Message("assistant", tuple(ToolCall(known, name) for known in ids))


def thinking_last(extra):
    return Message("assistant", (Text("a"), Thinking("t", extra)))


# ------------------------------------------------------------------------------------------------- every rule, one history

SIGNED = {"wire": "anthropic_messages", "signature": "s"}
SEALED = {"wire": "responses", "item": {"type": "reasoning", "id": "rs_1", "summary": []}}
#: Rule -> a history that breaks it, and the places where (a message for each format where they need different ones).
BROKEN = {
    "unknown_role": ([USER, Message("function", (Text("x"),)), NEXT], 1),
    "misplaced_part": ([Message("user", (Text("x"), ToolCall("c", "f")))], 0),
    "results_of_message": ([USER, Message("tool", (ToolResult("c", "f"), ToolResult("d", "f"))), NEXT], 1),
    "no_image": ([Message("user", (Text("see"), Image()))], 0),
    "orphan_result": ([USER, Message.of("assistant", "a"), NEXT, answer("x")], 3),
    "second_result": ([USER, calling("a"), answer("a"), Message.of("assistant", "done"), answer("a"), NEXT], 4),
    "nothing_to_send": ([Message.of("user", " \n")], 0),
    "empty_message": ([USER, Message.of("assistant", " \n"), NEXT], 1),
    "user_twice": ([USER, NEXT], 1),
    "late_result": ([USER, calling("a"), Message.of("assistant", "hm"), answer("a"), NEXT], 3),
    "open_call": ([USER, calling("a", "b"), answer("b"), NEXT], 1),
    "same_id": ([USER, calling("a", "a"), answer("a"), answer("a"), NEXT], 1),
    "calls_first": ([Message.of("system", "s"), calling("a"), answer("a"), NEXT], 1),
    "ends_with_assistant": ([USER, Message.of("assistant", "So")], 1),
    "system_inside": ([USER, Message.of("assistant", "a"), Message.of("system", "s"), NEXT], 2),
    "developer_role": ([Message.of("developer", "d"), USER], 0),
    "nothing_left": ([USER, Message("assistant", (Thinking("t", SIGNED),)), NEXT], 1),
    "blank_text": ([USER, Message("assistant", (Text("\n"), ToolCall("a", "f"))), answer("a"), NEXT], 1),
    "trailing_space": ([USER, Message.of("assistant", "x "), NEXT, Message.of("assistant", "So ")], 3),
    "speaker_name": ([Message("user", (Text("x"),), name="Ann")], 0),
    "foreign_reasoning": ([USER, Message("assistant", (Thinking("t", {"wire": "another"}), Text("a"))), NEXT], 1),
    "foreign_part": ([Message("user", (Text("x"), Opaque("another", {"type": "document"})))], 0),
    "foreign_marks": ([USER, Message("assistant", (Text("a", {"wire": "another"}),)), NEXT], 1),
    "lonely_reasoning": ([USER, thinking_last(SIGNED), NEXT, thinking_last(SEALED), NEXT], 1, 3),
    "unsigned_thinking": ([USER, Message("assistant", (Thinking("t", SIGNED | {"signature": ""}), Text("a"))), NEXT], 1),
    "unsigned_call": ([USER, calling("a", "b"), answer("a"), answer("b"), NEXT], 1),
    "image_role": ([Message("system", (Text("s"), IMAGE)), USER, Message("assistant", (Text("a"), IMAGE)), NEXT], 0, 2),
    "image_type": ([Message("user", (Text("see"), Image("PHN2Zz4=", "image/svg+xml")))], 0),
    "image_apart": ([USER, calling("a"), answer("a", IMAGE), NEXT], 2),
    "call_id": ([USER, calling("functions.f:0" + "x" * 60), answer("functions.f:0" + "x" * 60), NEXT], 1),
    "id_again": ([USER, calling("a"), answer("a"), NEXT, calling("a"), answer("a"), NEXT], 4),
    "tool_name": ([USER, calling("a", name="sales query"), answer("a", name="sales query"), NEXT], 1),
    "arguments": ([USER, Message("assistant", (ToolCall("a", "f", "[1"),)), answer("a"), NEXT], 1),
    "user_after_result": ([USER, calling("a"), answer("a"), NEXT], 3),
}
#: Rule of some models only -> one of them.
MODELS = {"unsigned_call": "gemini-3-pro", "user_after_result": "mistral-large-latest"}


def test_every_rule_has_a_source_and_is_broken_here():
    assert set(BROKEN) == set(RULES)
    assert all(rule.source and set(rule.wires) <= set(NAMES) for rule in RULES.values())


@pytest.mark.parametrize(("rule", "wire"), [(name, wire) for name, rule in RULES.items() for wire in rule.wires])
def test_a_rule_that_is_broken_is_said_with_its_place_before_anything_is_sent(rule, wire):
    history, *places = BROKEN[rule]
    model = MODELS.get(rule, "")
    found = [finding for finding in check(history, wire, model=model) if finding.rule == rule]
    assert found
    assert {finding.place for finding in found} <= set(places)
    assert {finding.repaired for finding in found} == {RULES[rule].repaired}
    if RULES[rule].repaired:
        mended, _ = mend(history, wire=None if wire == "anthropic_messages" else wire, model=model)
        assert [finding for finding in check(mended, wire, model=model) if not finding.repaired and rule != "trailing_space"] == []
    else:
        with pytest.raises(HistoryError, match=re.escape(found[0].what)):
            mend(history, wire=wire, model=model)


@pytest.mark.parametrize("wire", NAMES)
def test_nothing_is_found_in_a_history_that_is_in_order(wire):
    history = [Message.of("system", "s"), USER, calling("a", "b"), answer("b"), answer("a"), Message.of("assistant", "x"), NEXT]
    assert check(history, wire, model="gpt-5") == ()
    assert mend(history, wire=wire, model="gpt-5")[1] == ()


def test_the_first_words_of_an_error_name_each_fault():
    with pytest.raises(HistoryError) as refused:
        mend([Message.of("user", "q"), answer("x"), answer("y"), NEXT])
    assert str(refused.value) == (
        "message 1 is a result for call 'x', which no message before it makes; remove it; "
        "message 2 is a result for call 'y', which no message before it makes; remove it"
    )


# --------------------------------------------------------------------------------------------------------- how it is mended


def sent(history, wire="chat_completions", model="m"):
    mended, _ = mend(history, wire=wire, model=model)
    return json.loads(adapters.WIRES[wire].request(mended, (), model=model).content)


def test_a_result_that_came_after_the_next_answer_goes_to_its_call_and_not_to_a_later_one_of_the_same_id():
    late = [
        USER,
        calling("a"),
        Message.of("assistant", "hm"),
        answer("a", Text("1")),
        NEXT,
        calling("a"),
        answer("a", Text("2")),
        NEXT,
    ]
    mended, notices = mend(late)
    assert [message.role for message in mended] == ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "user"]
    assert [message.text for message in mended if message.role == "tool"] == ["1", "2"]
    assert notices == ("message 3, a result, was moved up to its call",)


def test_calls_that_share_an_id_or_have_none_get_their_results_in_their_order():
    for known in ("a", ""):
        mended, _ = mend([USER, calling(known, known), answer(known, Text("1")), answer(known, Text("2")), NEXT])
        ids = [call.id for call in mended[1].tool_calls]
        assert len({*ids}) == 2
        assert [(message.tool_call_id, message.text) for message in mended[2:4]] == [(ids[0], "1"), (ids[1], "2")]
        assert mend(mended) == (mended, ())


def test_users_of_different_names_are_not_made_one():
    mended, _ = mend([Message("user", (Text("a"),), name="Ann"), Message("user", (Text("b"),), name="Bob")])
    assert [message.name for message in mended] == ["Ann", "Bob"]


def test_only_servers_that_are_known_to_know_it_get_the_developer_role():
    history = [Message.of("developer", "d"), USER]
    roles = {model: sent(history, model=model)["messages"][0]["role"] for model in ("gpt-5", "o3", "mock", "glm-x", "qwen3:8b")}
    assert roles == {"gpt-5": "developer", "o3": "developer", "mock": "developer", "glm-x": "system", "qwen3:8b": "system"}


@pytest.mark.parametrize("given", ["call_" + "x" * 60, "toolu_01.a:b", "", "ü"])
def test_ids_that_another_provider_made_fit_and_are_the_same_in_call_and_result(given):
    history = [USER, calling(given, "other"), answer(given), answer("other"), NEXT]
    for model, fits in {"m": r".{1,40}", "mistral-large": r"[a-zA-Z0-9]{9}"}.items():
        call, *results = sent(history, model=model)["messages"][1:4]
        ids = [entry["id"] for entry in call["tool_calls"]]
        assert [result["tool_call_id"] for result in results] == ids
        assert len({*ids}) == 2
        assert all(re.fullmatch(fits, known) for known in ids)


def test_mistral_gets_a_word_of_the_model_between_a_result_and_the_user_and_no_other_server_does():
    history = [USER, calling("a"), answer("a", Text("r"), IMAGE), NEXT]
    assert [message["role"] for message in sent(history, model="m")["messages"]] == ["user", "assistant", "tool", "user", "user"]
    roles = [message["role"] for message in sent(history, model="mistral-large")["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "user"]


def test_a_call_without_a_signature_is_marked_for_gemini_3_once_a_turn_and_a_signed_one_is_left_alone():
    signed = ToolCall("s", "f", "{}", extra={"wire": "gemini_generate", "part": {"thoughtSignature": "c2ln"}})
    history = [USER, calling("a", "b"), answer("a"), answer("b"), Message("assistant", (signed,)), answer("s"), NEXT]
    for model, marks in {
        "gemini-3-pro": ["skip_thought_signature_validator", None, "c2ln"],
        "gemini-2.5-pro": [None, None, "c2ln"],
    }.items():
        parts = [part for content in sent(history, "gemini_generate", model)["contents"] for part in content["parts"]]
        assert [part.get("thoughtSignature") for part in parts if "functionCall" in part] == marks


def test_gemini_gets_the_result_of_a_call_under_the_calls_own_name():
    contents = sent([USER, calling("a", name="get it"), answer("a", name="another"), NEXT], "gemini_generate")["contents"]
    assert contents[1]["parts"][0]["functionCall"]["name"] == contents[2]["parts"][0]["functionResponse"]["name"] == "get_it"


@pytest.mark.parametrize("wire", NAMES)
def test_a_picture_that_the_format_does_not_take_is_named_in_its_place(wire):
    drawing = Image("PHN2Zz4=", "image/svg+xml")
    history = [Message("user", (Text("see"), drawing)), calling("a"), answer("a", drawing), NEXT]
    text = json.dumps(sent(history, wire))
    assert text.count("(an image of type image/svg+xml, which cannot be shown here)") == 2
    assert "PHN2Zz4=" not in text


# ---------------------------------------------------------------------------------------------------------- any history

IDS = st.sampled_from(["a", "b", "", "functions.f:0", "x" * 70])
EXTRAS = st.sampled_from([None, {"wire": "another"}, SIGNED | {"signature": ""}])
TEXTS = st.builds(Text, st.sampled_from(["", " \n", "hello ", "京都 🙂"]))
IMAGES = st.sampled_from([IMAGE, Image("PHN2Zz4=", "image/svg+xml"), Image(url="https://x.test/i.gif")])
CALLS = st.builds(ToolCall, IDS, st.sampled_from(["f", "a.b", "", "1" * 200]), st.sampled_from(["{}", "", "[1", '{"n":1}', "null"]))
SHOWN = st.lists(TEXTS | IMAGES, max_size=2).map(tuple)
FOREIGN = st.builds(Opaque, st.just("another"), st.just({}))
PARTS = {
    "system": TEXTS | IMAGES,
    "developer": TEXTS,
    "user": TEXTS | IMAGES | FOREIGN,
    "assistant": TEXTS | IMAGES | FOREIGN | CALLS | st.builds(Thinking, st.just("hm"), EXTRAS),
}


def some(role):
    return st.builds(Message, st.just(role), st.lists(PARTS[role], max_size=3).map(tuple), st.sampled_from([None, None, "Ann"]))


@st.composite
def histories(draw):
    """Messages in any order; most calls get a result, some late, some twice, and some results answer nothing."""
    made, waiting = [], []
    for role in draw(
        st.lists(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system", "developer"]), max_size=9)
    ):
        if role != "tool":
            made.append(draw(some(role)))
            waiting += [call.id for call in made[-1].tool_calls]
        elif waiting or draw(st.integers(0, 9)) == 9:
            known = waiting.pop(draw(st.integers(0, len(waiting) - 1))) if waiting else draw(IDS)
            code = draw(st.sampled_from([None, "refused"]))
            made.append(Message("tool", (ToolResult(known, draw(st.sampled_from(["f", "g"])), draw(SHOWN), code),)))
    return [*made, NEXT] if draw(st.integers(0, 9)) else made


@settings(max_examples=150, deadline=None)
@given(histories())
def test_any_history_is_refused_here_or_taken_by_the_server_and_what_was_mended_is_said(history):
    for wire in WIRES.values():
        model = wire.body["model"]
        found = check(history, wire.name, model=model)
        refused = [finding.what for finding in found if not finding.repaired]
        if refused:
            with pytest.raises(HistoryError) as error:
                mend(history, wire=wire.name, model=model)
            assert any(what in str(error.value) for what in refused)
            continue
        mended, notices = mend(history, wire=wire.name, model=model)
        request = adapters.WIRES[wire.name].request(mended, (), model=model)
        wire.writer.read(json.loads(request.content) | wire.writer.carried(request.path.partition("?")[0]))
        assert {*notices} | {rule_of(notice) for notice in request.notices} <= {item for f in found for item in (f.what, f.rule)}
        assert mend(mended, wire=wire.name, model=model) == (mended, ())
        for end in range(1, len(mended)):
            adapters.WIRES[wire.name].request(mended[:end], (), model=model)
        anew = [dataclasses.replace(message) for message in mended]  # nothing is remembered of these
        assert adapters.WIRES[wire.name].request(mended, (), model=model) == adapters.WIRES[wire.name].request(
            anew, (), model=model
        )
