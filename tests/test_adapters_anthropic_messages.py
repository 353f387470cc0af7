"""The Anthropic Messages adapter alone: what it writes, what it reads, whole and piece by piece."""

import copy
import functools
import json
import random
import sys
import time
from collections import Counter

import anthropic
import jsonschema
import pytest
import wires

from nb_agent.adapters import anthropic_messages as adapter
from nb_agent.adapters import chat_completions, receive
from nb_agent.adapters.anthropic_messages.fields import MOST_TOKENS
from nb_agent.adapters.anthropic_messages.fields import SETTINGS as FATES
from nb_agent.agent import SETTINGS
from nb_agent.errors import ProviderError
from nb_agent.events import Delta, RunEnded
from nb_agent.history import mend
from nb_agent.loop import Limits, Target, run
from nb_agent.messages import Definition, Image, Message, Opaque, Segment, Text, Thinking, ToolCall, ToolResult
from nb_agent.tools.schema import tool
from nb_agent.usage import Usage
from nb_agent.values import from_json, to_json


def stream(events):
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


read = functools.partial(wires.read, "anthropic_messages")


def start(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def more(index, kind, **delta):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def stop(index):
    return {"type": "content_block_stop", "index": index}


BEGIN = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "cache_read_input_tokens": 3, "output_tokens": 1},
    },
}
PING = {"type": "ping"}
END = {"type": "message_stop"}


def finish(reason="end_turn", **usage):
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": usage or {"output_tokens": 9},
    }


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "moss"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://moss.test", "title": "Moss", "encrypted_content": "b3Bh"}],
}
CITED = {"type": "web_search_result_location", "url": "https://moss.test", "cited_text": "It is green.", "encrypted_index": "x1"}
#: Everything that a reply may hold, as a stream and as the message that it is.
RICH = [
    BEGIN,
    start(0, type="thinking", thinking="", signature=""),
    PING,
    more(0, "thinking_delta", thinking="Add  7 and"),
    more(0, "thinking_delta", thinking="\n8 🙂"),
    more(0, "signature_delta", signature="c2lnbmVk"),
    stop(0),
    start(1, type="redacted_thinking", data="b3BhcXVl"),
    stop(1),
    start(2, **{**SEARCH, "input": {}}),
    more(2, "input_json_delta", partial_json='{"query"'),
    more(2, "input_json_delta", partial_json=': "moss"}'),
    stop(2),
    start(3, **FOUND),
    stop(3),
    start(4, type="text", text=""),
    more(4, "text_delta", text="Moss is "),
    more(4, "text_delta", text="grün."),
    more(4, "citations_delta", citation=CITED),
    stop(4),
    {"type": "brand_new_event", "content": "?"},
    start(5, type="text", text=""),
    more(5, "text_delta", text=" Adding."),
    more(5, "brand_new_delta", text="?"),
    stop(5),
    start(6, type="tool_use", id="toolu_1", name="add", input={}, caller={"type": "direct"}),
    more(6, "input_json_delta", partial_json=""),
    more(6, "input_json_delta", partial_json='{"a": 7'),
    PING,
    more(6, "input_json_delta", partial_json=', "note": "京\\u90fd"}'),
    stop(6),
    start(7, type="tool_use", id="toolu_2", name="now", input={}),
    stop(7),
    finish("tool_use", input_tokens=12, cache_read_input_tokens=3, output_tokens=40, output_tokens_details={"thinking_tokens": 15}),
    END,
]
CONTENT = [
    {"type": "thinking", "thinking": "Add  7 and\n8 🙂", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    SEARCH,
    FOUND,
    {"type": "text", "text": "Moss is grün.", "citations": [CITED]},
    {"type": "text", "text": " Adding."},
    {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 7, "note": "京都"}, "caller": {"type": "direct"}},
    {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
]
PLAIN = [BEGIN, start(0, type="text", text=""), more(0, "text_delta", text="ok"), stop(0), finish("stop_sequence"), END]
CUT = [
    BEGIN,
    start(0, type="text", text=""),
    more(0, "text_delta", text="I save it."),
    stop(0),
    start(1, type="tool_use", id="toolu_1", name="save", input={}),
    more(1, "input_json_delta", partial_json='{"text": "cut o'),
    stop(1),
    finish("max_tokens"),
    END,
]
GOLDEN = {"rich": RICH, "plain": PLAIN, "cut": CUT, "paused": [*RICH[:13], finish("pause_turn"), END]}


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("case", ["B18", "G14"])
def test_the_streams_of_the_cases_are_read_as_they_were_meant(case, cases):
    given, expect = cases[case]["given"], cases[case]["expect"]
    reply, _ = read(stream(given["events"]))
    assert reply.message.text == expect.get("text", "ok")
    assert wires.called(reply) == expect.get("tool_calls", [])
    assert reply.finish == expect.get("finish", "stop")
    usage = expect["usage"]
    assert reply.usage.output == usage["output"]
    assert reply.usage.input == usage.get("input", usage.get("input_uncached"))
    assert (reply.usage.cache_read, reply.usage.cache_write) == (usage.get("cache_read"), usage.get("cache_write"))


def test_a_reply_holds_every_block_in_its_place():
    reply, pieces = read(stream(RICH))
    assert [type(part) for part in reply.message.parts] == [Thinking, Opaque, Opaque, Opaque, Text, Text, ToolCall, ToolCall]
    assert reply.message.text == "Moss is grün. Adding."
    assert [call.arguments for call in reply.message.tool_calls] == ['{"a":7,"note":"京都"}', "{}"]
    assert (reply.finish, reply.raw_finish, reply.id, reply.model) == ("tool_calls", "tool_use", "msg_1", "claude-x")
    assert reply.usage == Usage(input=12, cache_read=3, output=25, reasoning=15)
    assert reply.body["content"] == CONTENT
    assert reply.notices == ()
    told = {kind: "".join(piece.text for piece in pieces if piece.kind == kind) for kind in ("text", "thinking", "call")}
    assert told == {"text": "Moss is grün. Adding.", "thinking": "Add  7 and\n8 🙂", "call": "addnow"}
    assert json.loads("".join(piece.text for piece in pieces if piece.kind == "arguments" and piece.index == 0))["a"] == 7
    assert from_json(json.loads(json.dumps(to_json(reply)))) == reply


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stream_reads_the_same_wherever_the_network_cuts_it(name):
    for raw in (stream(GOLDEN[name]), stream(GOLDEN[name]).replace(b"\n", b"\r\n")):
        whole, pieces = read(raw)
        for place in range(1, len(raw)):
            assert read(raw[:place], raw[place:]) == (whole, pieces)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stream_and_its_whole_message_are_the_same_reply(name):
    streamed, _ = read(stream(GOLDEN[name]))
    document = json.dumps(streamed.body)
    assert adapter.decode(json.loads(document)) == streamed
    assert read(document.encode())[0] == streamed


def test_what_was_read_is_written_back_as_it_came():
    message = read(stream(RICH))[0].message
    request = adapter.request([Message.of("user", "x"), message], (), model="claude-x")
    assert json.loads(request.content)["messages"][1] == {"role": "assistant", "content": CONTENT}
    assert [list(block) for block in request.body["messages"][1]["content"]] == [list(block) for block in CONTENT]
    assert request.notices == ()
    saved = from_json(json.loads(json.dumps(to_json(message))))
    assert adapter.request([Message.of("user", "x"), saved], (), model="claude-x").content == request.content


def test_signed_thinking_goes_back_untouched_and_to_no_other_format(cases):
    given = cases["D17"]["given"]["response_content"]
    reply = adapter.decode({"role": "assistant", "content": given, "stop_reason": "tool_use"})
    result = Message("tool", (ToolResult("t1", "add", (Text("15"),)),))
    history = [Message.of("user", "7+8?"), reply.message, result]
    assert adapter.request(history, (), model="m").body["messages"][1]["content"] == given
    assert reply.message.text == "Adding."
    assert "Add  7" not in chat_completions.request(history, (), model="m").content.decode()


@pytest.mark.parametrize("events", [RICH[:-2], RICH[:5], CUT[:6], PLAIN[:1], PLAIN[:3], [PING]])
def test_a_stream_without_its_end_is_an_error(events):
    with pytest.raises(ProviderError) as caught:
        read(stream(events))
    assert (caught.value.kind, caught.value.retryable) == ("stream_interrupted", True)


def test_a_stream_that_breaks_off_inside_an_event_is_an_error():
    for place in (30, 60):
        with pytest.raises(ProviderError):
            read(stream(RICH[:-2])[:-place])


def test_a_stop_reason_without_the_last_event_is_a_whole_answer():
    assert read(stream(RICH[:-1]))[0].finish == "tool_calls"


def test_the_last_event_without_a_stop_reason_vouches_only_for_whole_arguments():
    reply, _ = read(stream([*RICH[:-2], END]))
    assert (reply.finish, reply.raw_finish, reply.notices) == ("tool_calls", None, ("the server gave no finish reason",))
    with pytest.raises(ProviderError, match="middle of a call's arguments"):
        read(stream([*CUT[:-2], END]))


@pytest.mark.parametrize(
    ("kind", "message", "expected", "retryable"),
    [
        ("overloaded_error", "Overloaded", "overload", True),
        ("rate_limit_error", "slow down", "rate_limit", True),
        ("api_error", "Internal server error", "server", True),
        ("timeout_error", "took too long", "timeout", True),
        ("invalid_request_error", "no such field", "bad_request", False),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "context_length", False),
        ("request_too_large", "32 MB", "context_length", False),
        ("authentication_error", "bad", "authentication", False),
        ("permission_error", "no", "authentication", False),
        ("not_found_error", "model: x", "not_found", False),
        ("brand_new_error", "well", "server", True),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told_by_its_type(kind, message, expected, retryable):
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    seen = []
    with pytest.raises(ProviderError, match=message) as caught:
        seen.extend(pieces for _, pieces in receive("anthropic_messages", [stream([*PLAIN[:3], error])]))
    assert (caught.value.kind, caught.value.retryable) == (expected, retryable)
    assert [piece.text for pieces in seen for piece in pieces] == ["ok"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"data: {",
        b"[1]",
        b'{"type": "message"}',
        b'{"id": "x"}',
        b"<html>busy</html>",
        b'{"type": "error"}',
        b"data: [DONE]\n\n",
    ],
)
def test_what_is_no_answer_is_an_error_and_never_an_empty_success(content):
    with pytest.raises(ProviderError):
        read(content)


@pytest.mark.parametrize(
    ("word", "finish_word"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "paused"),
        ("refusal", "content_filter"),
        ("cosmic_ray", "error"),
        ("tool_use", "stop"),  # without a call
    ],
)
def test_every_ending_has_our_word_and_keeps_its_own(word, finish_word):
    reply = adapter.decode({"content": [{"type": "text", "text": "Well"}], "stop_reason": word})
    assert (reply.finish, reply.raw_finish, reply.message.text) == (finish_word, word, "Well")
    assert bool(reply.notices) == (word in ("refusal", "cosmic_ray"))


def test_a_call_decides_whatever_the_server_calls_the_ending_but_not_over_a_cut():
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    found = {
        word: adapter.decode({"content": [call], "stop_reason": word}).finish for word in ("end_turn", "max_tokens", "refusal")
    }
    assert found == {"end_turn": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


def test_a_refusal_is_never_an_empty_answer(cases):
    body = next(item["anthropic-response"] for item in cases["C12"]["given"]["items"] if "anthropic-response" in item)
    reply = adapter.decode(body)
    assert (reply.finish, reply.message.parts, reply.notices) == ("content_filter", (), ("the model refused to answer",))
    details = {"type": "refusal", "category": "bio", "explanation": "It could do harm."}
    assert adapter.decode(body | {"stop_details": details}).notices == ("the model refused to answer: It could do harm.",)


def test_cut_arguments_stay_the_text_that_they_are():
    reply, _ = read(stream(CUT))
    assert (reply.finish, reply.message.tool_calls[0].arguments) == ("length", '{"text": "cut o')


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999}', "[1]", '{"a"', '"x"'])
def test_arguments_that_cannot_be_made_sure_of_are_not_smoothed_over(text):
    events = [BEGIN, start(0, type="tool_use", id="t", name="f", input={}), more(0, "input_json_delta", partial_json=text), END]
    reply, _ = read(stream([*events[:-1], finish("tool_use"), END]))
    assert reply.message.tool_calls[0].arguments == text
    assert adapter.decode(reply.body) == reply


# ------------------------------------------------------------------------------------------- servers that imitate the API


def test_calls_that_all_have_index_0_are_told_apart_by_where_they_begin():
    events = [BEGIN]
    for number in (1, 2):
        events += [start(0, type="tool_use", id=f"t{number}", name="f", input={})]
        events += [more(0, "input_json_delta", partial_json=piece) for piece in ('{"n":', f" {number}}}")]
    reply, pieces = read(stream([*events, finish("tool_use"), END]))
    assert [(call["id"], call["arguments"]) for call in wires.called(reply)] == [("t1", {"n": 1}), ("t2", {"n": 2})]
    assert [piece.index for piece in pieces if piece.kind == "arguments"] == [0, 0, 1, 1]


def test_deltas_without_an_index_or_without_a_beginning_are_understood_where_that_is_safe():
    events = [
        BEGIN,
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": None}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": {"n": 1}}},
        finish("tool_use"),
        END,
    ]
    reply, _ = read(stream(events))
    assert (reply.message.text, wires.called(reply)[0]["arguments"]) == ("Hi", {"n": 1})
    with pytest.raises(ProviderError, match="arguments for block 0, which is no call") as caught:
        read(stream([*PLAIN[:3], more(0, "input_json_delta", partial_json="{}"), *PLAIN[3:]]))
    assert caught.value.kind == "protocol"


def test_a_call_that_comes_whole_in_its_beginning_is_whole():
    for given in ({"n": 1}, '{"n": 1}'):
        events = [BEGIN, start(0, type="tool_use", id="t", name="f", input=given), stop(0), finish("tool_use"), END]
        reply, pieces = read(stream(events))
        assert wires.called(reply) == [{"id": "t", "name": "f", "arguments": {"n": 1}}]
        assert json.loads(pieces[1].text) == {"n": 1}


def test_a_block_announced_twice_is_one():
    events = [*RICH[:26], RICH[25], *RICH[26:]]
    assert events[25] == events[26]
    assert read(stream(events))[0] == read(stream(RICH))[0]


def test_ids_that_are_missing_or_given_twice_are_made_up_and_differ_from_turn_to_turn():
    calls = [{"type": "tool_use", "name": "f", "input": {}, **more_} for more_ in ({}, {"id": "same"}, {"id": "same"})]
    body = {"content": calls, "stop_reason": "tool_use"}
    ids = [[call.id for call in adapter.decode(body, turn=turn).message.tool_calls] for turn in (3, 5)]
    assert ids == [["call_3_0", "same", "call_3_2"], ["call_5_0", "same", "call_5_2"]]


def test_usage_that_was_not_reported_is_not_zero():
    assert adapter.decode({"content": [], "stop_reason": "end_turn"}).usage is None
    body = {"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 5, "cache_read_input_tokens": None}}
    assert adapter.decode(body).usage == Usage(input=5)


def test_whatever_comes_ends_in_a_reply_or_in_a_provider_error():
    chance = random.Random(7)
    odd = [None, [], {}, "", 0, True, "text", {"type": "text"}, {"type": []}, [None], "tool_use", {"a": {"b": [1]}}]
    ended = Counter()
    for _ in range(3000):
        events = copy.deepcopy(chance.choice([RICH, CUT, PLAIN]))
        for _ in range(chance.randint(1, 3)):
            spot = chance.choice(events)
            while isinstance(spot, dict) and spot:
                key = chance.choice(list(spot))
                if not isinstance(spot[key], dict) or chance.random() < 0.4:
                    spot[key] = chance.choice(odd)
                    break
                spot = spot[key]
        try:
            accumulator = adapter.Accumulator()
            for event in events:
                accumulator.feed(json.dumps(event))
            reply = accumulator.done()
            json.dumps(reply.body)
            adapter.request([Message.of("user", "x"), reply.message], (), model="m")
            ended["reply"] += 1
        except ProviderError:
            ended["error"] += 1
    assert ended["reply"] > 1000
    assert ended["error"] > 100


# ------------------------------------------------------------------------------------------------------------- history

CALL = ToolCall("c1", "f", '{"a": 1}')
USER = Message.of("user", "hi")


def result(call_id, *parts, code=None):
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Message("tool", (ToolResult(call_id, "f", made, code),))


def sent(*messages, definitions=()):
    return adapter.request(messages, definitions, model="m").body["messages"]


def neutral(history):
    """Our messages from a history in the cases' form."""
    for item in history:
        if item["role"] == "tool":
            yield result(item["tool_call_id"], item["content"])
            continue
        calls = []
        for call in item.get("tool_calls", ()):
            function = call.get("function", call)
            given = function["arguments"]
            calls.append(ToolCall(call["id"], function["name"], given if isinstance(given, str) else json.dumps(given)))
        text = (Text(item["content"]),) if item["content"] else ()
        yield Message(item["role"], (*text, *calls))


def test_a_call_left_open_by_an_interrupt_has_its_result_before_what_the_user_says_next(cases):
    history, _ = mend([*neutral(cases["D01"]["given"]["history"]), Message.of("user", "and now?")])
    request = adapter.request(history, (), model="m")
    assert request.body["system"] == "Be brief."
    last = request.body["messages"][-1]
    assert last["role"] == "user"
    assert [block["type"] for block in last["content"]] == ["tool_result", "tool_result", "text"]
    first, second, text = last["content"]
    assert first == {"type": "tool_result", "tool_use_id": "c1", "content": "AAA"}
    assert (second["tool_use_id"], second["is_error"], "interrupted" in second["content"]) == ("c2", True, True)
    assert text["text"] == "and now?"
    assert [message["role"] for message in request.body["messages"]] == ["user", "assistant", "user"]


def test_images_stay_in_the_result_that_they_belong_to(cases):
    given = cases["D05"]["given"]
    image = Image(data="iVBORw0KGgo=")
    _, _, last = sent(*neutral(given["history"]), result("c1", "chart", image), result("c2", "plain"))
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    assert last["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "chart"}, block]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "plain"},
    ]


def test_an_assistant_message_that_only_calls_has_no_empty_text(cases):
    messages = sent(*neutral(cases["D06"]["given"]["history"]))
    assert messages[1]["content"] == [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]


def test_empty_and_blank_texts_are_left_out(cases):
    history = [
        Message("user", (Text("hi"), Text(""))),
        Message("assistant", (Text("  \n"), ToolCall("t1", "f"))),
        result("t1", ""),
    ]
    messages = sent(*history)
    assert messages[:2] == cases["D08"]["expect"]["messages"][:2]
    assert messages[2] == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}
    assert [message["role"] for message in sent(USER, Message.of("assistant", " "), Message.of("user", "you?"))] == ["user"]


def test_results_stand_before_what_the_user_said_meanwhile(cases):
    history, notices = mend(tuple(neutral(cases["D10"]["given"]["history"])))
    assert sent(*history)[-1] == cases["D10"]["expect"]["last_message"]
    assert notices
    assistant, user, tool_message = list(neutral(cases["D10"]["given"]["history"]))[1:]
    assert sent(assistant, user, tool_message)[-1] == cases["D10"]["expect"]["last_message"]


def test_arguments_go_out_as_objects(cases):
    messages = sent(*neutral(cases["D13"]["given"]["history"]))
    assert [block["input"] for block in messages[1]["content"]] == [{"k": "ü", "n": 1}, {}]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ("", {}),
        ("null", {}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": 1', {"_raw": '{"a": 1'}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a": 1, "a": 2}', {"_raw": '{"a": 1, "a": 2}'}),
        ('{"a": NaN}', {"_raw": '{"a": NaN}'}),
        ('"x', {"_raw": '"x'}),
    ],
)
def test_arguments_that_are_no_object_go_back_as_one_that_shows_them(arguments, written):
    request = adapter.request([USER, Message("assistant", (ToolCall("c1", "f", arguments),))], (), model="m")
    assert request.body["messages"][1]["content"][0]["input"] == written
    assert bool(request.notices) == ("_raw" in written)


def test_ids_and_names_that_the_api_does_not_take_are_spelled_another_way_the_same_in_both_places():
    calls = (ToolCall("functions.get:0", "a.b"), ToolCall("functions.get.0", ""), ToolCall("toolu_ok-1", "x" * 130))
    history = [USER, Message("assistant", calls), *(result(call.id, "r") for call in calls)]
    _, assistant, results = sent(*history)
    ids = [block["id"] for block in assistant["content"]]
    assert [block["tool_use_id"] for block in results["content"]] == ids
    assert len(set(ids)) == 3
    assert ids[2] == "toolu_ok-1"
    assert all(id_.replace("-", "").replace("_", "").isalnum() for id_ in ids)
    assert [block["name"] for block in assistant["content"]] == ["a_b", "unnamed", "x" * 128]


def test_an_id_that_a_later_call_has_again_is_changed_there():
    again = Message("assistant", (ToolCall("call_0", "f"),)), result("call_0", "r")
    history = [USER, *again, *again, Message.of("user", "more"), *again]
    messages = sent(*history)
    calls = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for message in messages for block in message["content"] if block["type"] == "tool_result"]
    assert calls == results
    assert len(set(calls)) == 3
    assert calls[0] == "call_0"
    assert sent(*history) == messages
    twins = Message("assistant", (ToolCall("c", "f"), ToolCall("c", "f")))
    assert len(sent(USER, twins, result("c", "r"))) == 3  # not ours to mend, and no endless round


def test_system_and_developer_text_stands_outside_the_list(cases):
    request = adapter.request(list(neutral(cases["D07"]["given"]["history"])), (), model="m")
    assert (request.body["system"], [message["role"] for message in request.body["messages"]]) == ("Be brief.", ["user"])
    history = [Message.of("system", "S"), Message.of("developer", "D"), USER, Message.of("system", "late"), Message.of("user", "x")]
    request = adapter.request(history, (), model="m")
    assert [block["text"] for block in request.body["system"]] == ["S", "D", "late"]
    assert [message["role"] for message in request.body["messages"]] == ["user"]
    assert request.notices == ("a system message inside the conversation was moved to its front",)


def test_images_of_all_kinds_and_those_that_the_api_does_not_take():
    pictures = (
        Image(url="https://x.test/i.png"),
        Image(url="data:image/jpeg;base64,/9j/"),
        Image(data="Qk0=", media_type="image/bmp"),
    )
    request = adapter.request([Message("user", pictures), Message("assistant", (Text("ok"), Image(data="x")))], (), model="m")
    first, second, third = request.body["messages"][0]["content"]
    assert first["source"] == {"type": "url", "url": "https://x.test/i.png"}
    assert second["source"] == {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"}
    assert third == {"type": "text", "text": "(an image of type image/bmp, which cannot be shown here)"}
    assert request.notices == (
        "an image of type image/bmp was left out: this API takes JPEG, PNG, GIF and WebP",
        "an image in a message of the assistant was left out",
    )


def test_what_only_another_provider_understands_is_left_out_and_said():
    foreign = Message(
        "assistant",
        (
            Thinking("deep", extra={"wire": "chat_completions", "field": "reasoning"}),
            Opaque("responses", {"type": "reasoning", "encrypted_content": "secret"}),
            Text("4", extra={"refusal": True}),
            ToolCall("c", "f", extra={"wire": "gemini_generate", "thoughtSignature": "sig"}),
        ),
        name="Ann",
    )
    request = adapter.request([USER, foreign], (), model="m")
    assert request.body["messages"][1]["content"] == [
        {"type": "text", "text": "4"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]
    assert request.notices == (
        "the name of a speaker was left out",
        "reasoning of another wire format was left out",
        "a part that only responses knows was left out",
    )
    only = Message("assistant", foreign.parts[:2])
    assert [message["role"] for message in sent(USER, only, Message.of("user", "x"))] == ["user"]


def test_thinking_that_nothing_followed_is_left_out_since_it_would_be_refused():
    thought = Thinking("hm", extra={"wire": "anthropic_messages", "signature": ""})
    request = adapter.request([USER, Message("assistant", (Text("a"), thought)), Message.of("user", "go on")], (), model="m")
    assert request.body["messages"][1]["content"] == [{"type": "text", "text": "a"}]
    assert request.notices == ("reasoning that nothing followed was left out",)


def test_only_a_last_assistant_text_loses_the_white_space_at_its_end():
    said = Message.of("assistant", "And so ")
    assert sent(USER, said)[-1]["content"][0]["text"] == "And so"
    assert sent(USER, said, USER)[1]["content"][0]["text"] == "And so "


# ------------------------------------------------------------------------------------------------------------ the loop


class NoCalls:
    def prepare(self, call):
        raise AssertionError(f"{call} is not ours to run")

    def carry_out(self, number, ready, *, idle=None):
        assert not ready
        return iter(())


def go(answers, *, rounds=10, history=(), as_stream=False):
    requests, events, given = [], [], []

    def send(request):
        requests.append(json.loads(request.content))
        answer = answers[min(len(requests), len(answers)) - 1]
        yield stream(answer) if as_stream else json.dumps(answer).encode()

    running = run(
        "Moss?",
        history,
        target=Target("m", "anthropic_messages"),
        send=send,
        calls=NoCalls(),
        limits=Limits(rounds),
        stream=as_stream,
    )
    for event in running:
        events.append(event)
        given += event.pieces if isinstance(event, Delta) else ()
    return requests, events[-1]


def test_a_paused_turn_is_sent_again_as_it_is_until_the_answer_comes(cases):
    paused, answer = cases["C09"]["given"]["responses"]
    requests, ended = go([paused, answer])
    assert len(requests) == 2
    assert requests[1]["messages"] == [*requests[0]["messages"], {"role": "assistant", "content": paused["content"]}]
    assert isinstance(ended, RunEnded)
    assert ended.reason == "stop"
    assert ended.history[-1].text == "Moss is green."
    later, _ = go([answer], history=ended.history)
    assert [message["role"] for message in later[0]["messages"]] == ["user", "assistant", "assistant", "user"]


def test_a_paused_turn_that_was_streamed_goes_back_as_it_was():
    paused = [BEGIN, *RICH[1:8], *RICH[9:13], finish("pause_turn"), END]
    requests, ended = go([paused, PLAIN], as_stream=True)
    assert requests[1]["messages"][-1] == {"role": "assistant", "content": CONTENT[:3]}
    assert ended.reason == "stop"


def test_a_server_that_pauses_for_ever_is_stopped_by_the_limit_on_rounds(cases):
    requests, ended = go(cases["C09"]["given"]["responses"][:1], rounds=4)
    assert (len(requests), ended.reason) == (4, "max_rounds")
    assert requests[-1]["messages"][-1]["role"] == "assistant"


# ------------------------------------------------------------------------------------------------- settings and tools


def asked(definitions=(), **settings):
    return adapter.request([USER], definitions, model="m", settings=settings)


def fields(definitions=(), **settings):
    return {key: value for key, value in asked(definitions, **settings).body.items() if key not in ("model", "messages", "tools")}


TOOLS = [Definition(name, "d", {"type": "object", "properties": {}}) for name in ("f", "g")]


def test_nothing_is_sent_unasked_but_the_limit_that_has_to_be_there():
    body = asked().body
    assert body == {
        "model": "m",
        "max_tokens": MOST_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    assert asked(thinking={"type": "enabled", "budget_tokens": 9000}).body["max_tokens"] == MOST_TOKENS + 9000


@pytest.mark.parametrize(
    ("settings", "sent_fields"),
    [
        ({"max_tokens": 500, "temperature": 0.2}, {"max_tokens": 500, "temperature": 0.2}),
        ({"max_completion_tokens": 500}, {"max_tokens": 500}),
        ({"max_tokens": None, "stop": None}, {}),
        ({"stop": "x", "top_p": 1}, {"stop_sequences": ["x"], "top_p": 1}),
        ({"stop": ["x", "y"]}, {"stop_sequences": ["x", "y"]}),
        ({"user": "u"}, {"metadata": {"user_id": "u"}}),
        ({"reasoning_effort": "minimal"}, {"output_config": {"effort": "low"}}),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        (
            {
                "reasoning_effort": "high",
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}}},
            },
            {"output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"a": 1}}}},
        ),
        ({"response_format": {"type": "text"}, "n": 1, "logprobs": False}, {}),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}),
        ({"top_k": 3, "cache_control": {"type": "ephemeral"}}, {"top_k": 3, "cache_control": {"type": "ephemeral"}}),
        ({"output_config": {"effort": "max"}}, {"output_config": {"effort": "max"}}),
    ],
)
def test_settings_go_out_under_the_names_of_the_api(settings, sent_fields):
    assert fields(**settings) == {"max_tokens": MOST_TOKENS, **sent_fields}
    assert asked(**settings).notices == ()


@pytest.mark.parametrize(
    ("settings", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": {"type": "function", "function": {"name": "g"}}}, {"type": "tool", "name": "g"}),
        ({"tool_choice": {"type": "any"}}, {"type": "any"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"parallel_tool_calls": False, "tool_choice": "required"}, {"type": "any", "disable_parallel_tool_use": True}),
        ({"parallel_tool_calls": True}, None),
    ],
)
def test_the_choice_of_tools_is_said_in_the_words_of_the_api(settings, choice):
    assert asked(TOOLS, **settings).body.get("tool_choice") == choice


def test_without_tools_there_is_no_choice_of_them():
    for settings in ({"parallel_tool_calls": False}, {"tool_choice": "auto"}, {"tool_choice": "none"}):
        assert "tool_choice" not in asked(**settings).body
    assert asked(tool_choice="required").body["tool_choice"] == {"type": "any"}


def test_of_allowed_tools_only_those_are_offered():
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}
    body = asked(TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": allowed}).body
    assert ([entry["name"] for entry in body["tools"]], body["tool_choice"]) == (["g"], {"type": "any"})


def test_what_the_api_has_no_field_for_is_left_out_and_said():
    settings = {
        "frequency_penalty": 1,
        "logit_bias": {},
        "logprobs": True,
        "metadata": {"team": "x"},
        "n": 2,
        "presence_penalty": 1,
        "response_format": {"type": "json_object"},
        "seed": 1,
        "service_tier": "flex",
        "top_logprobs": 2,
    }
    assert fields(**settings) == {"max_tokens": MOST_TOKENS}
    assert [notice.split()[0] for notice in asked(**settings).notices] == list(settings)
    assert asked(seed=1).notices == ("seed was left out: Anthropic Messages has nothing like 1",)


def test_every_setting_of_an_agent_has_a_fate():
    assert set(FATES) == SETTINGS


def test_tools_that_the_server_carries_out_join_those_that_we_do():
    search = {"type": "web_search_20250305", "name": "web_search"}
    assert [entry["name"] for entry in asked(TOOLS, tools=[search]).body["tools"]] == ["f", "g", "web_search"]
    assert asked(tools=[search], tool_choice="auto").body["tool_choice"] == {"type": "auto"}


def test_a_tool_without_parameters_has_the_empty_schema(cases):
    names = {}
    exec(cases["A11"]["given"]["python"], names)
    for definition in (tool(names["clock"]).definition, Definition("clock", "", {})):
        (entry,) = asked([definition]).body["tools"]
        schema = {key: value for key, value in entry["input_schema"].items() if key != "additionalProperties"}
        assert schema == {"type": "object", "properties": {}}


def test_references_are_kept_and_resolve(cases):
    given = cases["E25"]["given"]["tools"][0]
    before = copy.deepcopy(given)
    (entry,) = asked([Definition(given["name"], given["description"], given["inputSchema"])]).body["tools"]
    assert given == before
    judge = jsonschema.Draft202012Validator(entry["input_schema"])
    expect = cases["E25"]["expect"]["openai-chat and anthropic"]
    assert all(judge.is_valid(instance) for instance in expect["schema_accepts"])
    assert not any(judge.is_valid(instance) for instance in expect["schema_rejects"])


def test_a_schema_that_refers_to_itself_is_written_at_once_and_kept():
    node = {"type": "object", "properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/Chore"}}}}
    circle = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/Chore"}}, "$defs": {"Chore": node}}
    began = time.monotonic()
    for strict in (None, True):
        plan, round_ = asked([Definition("plan", "d", schema, strict), Definition("round", "d", circle, strict)]).body["tools"]
        assert plan["input_schema"]["properties"] == {"root": {"$ref": "#/$defs/Chore"}}
        assert "$ref" not in round_["input_schema"]
        assert round_["input_schema"]["type"] == "object"
    assert time.monotonic() - began < 1


def test_the_root_of_a_schema_is_an_object_and_no_choice():
    schema = {
        "$ref": "#/$defs/Place",
        "$defs": {"Place": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}},
        "anyOf": [
            {"properties": {"lat": {"type": "number"}, "lon": {}}, "required": ["lat", "lon"]},
            {"properties": {"lon": {}, "town": {}}, "required": ["lon"]},
        ],
        "allOf": [{"required": ["day"]}, {"properties": {"day": {"type": "string"}}, "required": ["hour"]}],
    }
    before = copy.deepcopy(schema)
    (entry,) = asked([Definition("f", "d", schema)]).body["tools"]
    made = entry["input_schema"]
    assert schema == before
    assert made["type"] == "object"
    assert not made.keys() & {"$ref", "anyOf", "oneOf", "allOf"}
    assert made["properties"] == {"town": {"type": "string"}, "lat": {"type": "number"}, "lon": {}, "day": {"type": "string"}}
    assert set(made["required"]) == {"town", "day", "hour", "lon"}


def test_a_strict_schema_is_what_the_official_client_would_make_of_it():
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "description": "in years"},
            "when": {"type": "string", "format": "date"},
            "code": {"type": "string", "pattern": "^a", "format": "regex"},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 3},
            "who": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Who"}]},
            "pattern": {"enum": ["x", "y"]},
        },
        "required": ["age"],
        "additionalProperties": False,
        "$defs": {"Who": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False}},
    }
    (entry,) = asked([Definition("f", "d", schema, strict=True)]).body["tools"]
    assert entry["strict"] is True
    assert entry["input_schema"] == anthropic.transform_schema(schema)
    assert "strict" not in asked([Definition("f", "d", schema, strict=False)]).body["tools"][0]


# ------------------------------------------------------------------------------------------------- cost and counting


def test_the_body_is_the_bytes_that_are_sent():
    history = [Message.of("system", "S"), Message.of("user", "Grüße 🌲 \ud800"), Message("assistant", (CALL,)), result("c1", "r")]
    request = adapter.request(history, TOOLS, model="m", stream=True, settings={"top_p": 1})
    body = json.loads(request.content)
    assert list(body) == ["model", "max_tokens", "system", "messages", "tools", "stream", "top_p"]
    assert body["messages"][0]["content"][0]["text"] == "Grüße 🌲 ?"
    assert (body["messages"][1:], body["tools"]) == (request.body["messages"][1:], request.body["tools"])


def test_a_message_is_encoded_once_however_often_it_is_sent():
    history = [USER, Message("assistant", (CALL, ToolCall("c2", "g"))), result("c1", "r"), result("c2", "s")]
    first, second = sent(*history), sent(*history, Message.of("assistant", "done"))
    assert all(before is after for before, after in zip(first, second, strict=False))
    grown = sent(*history, Message.of("user", "and?"))
    assert [block["type"] for block in grown[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert sent(*history)[2] == first[2]


def test_a_request_makes_no_more_function_calls_in_a_long_conversation():
    def calls(rounds):
        history = [Message.of("system", "S"), USER]
        for number in range(rounds):
            history += [Message("assistant", (Text("look"), ToolCall(f"c{number}", "f"))), result(f"c{number}", "r")]
        adapter.request(history, TOOLS, model="m")
        history += [Message("assistant", (ToolCall("last", "f"),)), result("last", "r")]
        count = 0

        def seen(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(seen)
        try:
            adapter.request(history, TOOLS, model="m")
        finally:
            sys.setprofile(None)
        return count

    assert calls(60) <= 1.05 * calls(10)


def test_the_segments_say_which_text_belongs_to_which_part():
    history = [
        Message.of("system", "S"),
        Message.of("user", "old"),
        Message.of("assistant", "answer"),
        Message("user", (Text("new"), Image(url="https://x.test/i.png"))),
        Message("assistant", (Thinking("t", extra={"wire": "anthropic_messages", "signature": "s"}), CALL)),
        result("c1", "r", Image(data="iVBORw0KGgo=")),
    ]
    found = adapter.segments(adapter.request(history, TOOLS[:1], model="m").body)
    assert [(s.part, s.text, s.message) for s in found[:-1]] == [
        ("system", "S", None),
        ("history", "old", 0),
        ("assistant", "answer", 1),
        ("user", "new", 2),
        ("images", "", 2),
        ("assistant", "t", 3),
        ("tool_calls", "f", 3),
        ("tool_calls", '{"a":1}', 3),
        ("tool_results", "r", 4),
        ("images", "", 4),
    ]
    assert found[-1] == Segment("tools", found[-1].text, tool="f")
    plain = {"system": [{"type": "text", "text": "S"}], "messages": [{"role": "user", "content": "hi"}]}
    assert adapter.segments(plain) == [Segment("system", "S"), Segment("user", "hi", message=0)]


def test_the_base64_of_a_picture_is_never_counted():
    history = [Message("user", (Image(data="A" * 4000),)), Message("assistant", (CALL,)), result("c1", Image(data="B" * 4000))]
    assert sum(len(segment.text) for segment in adapter.segments(adapter.request(history, (), model="m").body)) < 20
