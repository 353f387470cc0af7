"""The Responses adapter alone: what it writes, what it reads, whole and event by event."""

import functools
import json
import random
import sys
from copy import deepcopy

import pytest
import wires

from nb_agent.adapters import receive, responses
from nb_agent.errors import ProviderError
from nb_agent.messages import Definition, Image, Message, Opaque, Segment, Text, Thinking, ToolCall, ToolResult
from nb_agent.usage import Usage
from nb_agent.values import from_json, to_json


def stream(events):
    return "".join(f"event: {event.get('type')}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events).encode()


read = functools.partial(wires.read, "responses", turn=3)


def said(pieces, kind="text"):
    return "".join(piece.text for piece in pieces if piece.kind == kind)


def sent(*messages, definitions=(), model="m", **settings):
    return responses.request(messages, definitions, model=model, settings=settings)


def items(*messages):
    return sent(*messages).body["input"]


# ------------------------------------------------------------------------------------------------ golden streams

REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "First\tI  look."}, {"type": "summary_text", "text": "Then 京都."}],
    "encrypted_content": "gAAA==",
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "phase": "commentary",
    "content": [
        {
            "type": "output_text",
            "annotations": [{"type": "url_citation", "url": "https://x.test"}],
            "logprobs": [],
            "text": "Grüße 🌲",
        },
        {"type": "output_text", "annotations": [], "logprobs": [], "text": " two"},
    ],
    "role": "assistant",
}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
CALL_1 = {"id": "fc_1", "type": "function_call", "status": "completed", "arguments": '{"n": 1}', "call_id": "call_1", "name": "f"}
CALL_2 = {"id": "fc_2", "type": "function_call", "status": "completed", "arguments": "{}", "call_id": "call_2", "name": "g"}
REFUSAL = {"id": "msg_2", "type": "message", "status": "completed", "role": "assistant"}
REFUSAL["content"] = [{"type": "refusal", "refusal": "I can't."}]


def response(*output, status="completed", reason=None, **more):
    usage = {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 12}
    usage["output_tokens_details"] = {"reasoning_tokens": 5}
    details = {"reason": reason} if reason else None
    form = {"id": "resp_1", "object": "response", "status": status, "error": None, "incomplete_details": details, "model": "m"}
    return {**form, "output": list(output), "usage": usage, **more}


def inside(item, where):
    for place, part in enumerate(item.get("summary", ())):
        here = {**where, "summary_index": place}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": {**part, "text": ""}}
        for piece in (part["text"][:4], part["text"][4:]):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}
    for place, part in enumerate(item.get("content", ())):
        here, key = {**where, "content_index": place}, "refusal" if part["type"] == "refusal" else "text"
        name = "refusal" if key == "refusal" else "output_text"
        yield {"type": "response.content_part.added", **here, "part": {**part, key: "", "annotations": []}}
        for piece in (part[key][:2], part[key][2:]):
            yield {"type": f"response.{name}.delta", **here, "delta": piece, "logprobs": [], "obfuscation": "x8"}
        for annotation in part.get("annotations", ()):
            yield {"type": "response.output_text.annotation.added", **here, "annotation_index": 0, "annotation": annotation}
        yield {"type": f"response.{name}.done", **here, key: part[key]}
        yield {"type": "response.content_part.done", **here, "part": part}
    if item["type"] == "function_call":
        for piece in (item["arguments"][:3], item["arguments"][3:]):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}


def events_of(whole):
    """The events by which a server streams this response."""
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    yield {"type": "response.in_progress", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": [], "encrypted_content": "g"}}
    for place, item in enumerate(whole["output"]):
        begun = {**item, "status": "in_progress", **empty.get(item["type"], {})}
        yield {"type": "response.output_item.added", "output_index": place, "item": begun}
        yield from inside(item, {"item_id": item["id"], "output_index": place})
        if item["type"] == "web_search_call":
            yield {"type": "response.web_search_call.searching", "output_index": place, "item_id": item["id"]}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


GOLDEN = {
    "text": response(MESSAGE),
    "reasoning and text": response(REASONING, MESSAGE),
    "two calls": response(CALL_1, CALL_2),
    "everything": response(REASONING, SEARCH, MESSAGE, CALL_1, CALL_2),
    "hidden reasoning": response({**REASONING, "summary": []}, CALL_1),
    "a refusal": response(REFUSAL),
    "cut text": response({**MESSAGE, "status": "incomplete"}, status="incomplete", reason="max_output_tokens"),
    "cut call": response(
        {**CALL_1, "arguments": '{"n": ', "status": "incomplete"}, status="incomplete", reason="max_output_tokens"
    ),
    "filtered": response(status="incomplete", reason="content_filter"),
}
FINISHES = {"two calls": "tool_calls", "everything": "tool_calls", "hidden reasoning": "tool_calls", "a refusal": "content_filter"}
FINISHES |= {"cut text": "length", "cut call": "length", "filtered": "content_filter"}


def numbered(whole):
    return [{**event, "sequence_number": number} for number, event in enumerate(events_of(whole))]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stream_gives_the_reply_that_the_whole_answer_gives(name):
    whole = GOLDEN[name]
    reply, pieces = read(stream(numbered(whole)))
    assert reply == responses.decode(whole, turn=3)
    assert reply.body == whole
    assert reply.finish == FINISHES.get(name, "stop")
    assert said(pieces) + said(pieces, "refusal") == reply.message.text
    assert [said([p for p in pieces if p.index == n], "arguments") for n, _ in enumerate(reply.message.tool_calls)] == [
        call.arguments for call in reply.message.tool_calls
    ]
    assert (reply.id, reply.model) == ("resp_1", "m")
    assert read(json.dumps(whole).encode())[0] == reply


@pytest.mark.parametrize("name", ["everything", "cut call"])
def test_a_stream_reads_the_same_wherever_the_network_cuts_it(name):
    raw = stream(numbered(GOLDEN[name])).replace(b"\n", b"\r\n")
    whole = read(raw)[0]
    for place in range(1, len(raw), 5):
        assert read(raw[:place], raw[place:])[0] == whole


@pytest.mark.parametrize("name", GOLDEN)
def test_what_was_read_is_written_back_as_it_came(name):
    whole = GOLDEN[name]
    reply = responses.decode(whole)
    back = responses.request([reply.message], (), model="m") if reply.message.parts else None
    assert (json.dumps(back.body["input"]) if back else "[]") == json.dumps(whole["output"])
    assert back is None or back.notices == ()
    assert from_json(json.loads(json.dumps(to_json(reply)))) == reply


# ------------------------------------------------------------------------------------------------ what servers do


def test_arguments_that_only_come_whole_are_neither_lost_nor_added_up(cases):
    given, expect = cases["B20"]["given"], cases["B20"]["expect"]
    reply, pieces = read(stream(given["events"]))
    assert wires.called(reply) == expect["tool_calls"]
    assert reply.finish == expect["finish"]
    assert reply.usage == Usage(input=30, output=12)
    assert [said([p for p in pieces if p.index == n], "arguments") for n in (0, 1)] == ['{"kg":5}', '{"kg":7}']
    raw = stream(given["events"])
    assert all(read(raw[:place], raw[place:])[0] == reply for place in range(1, len(raw), 11))


def broken(change):
    """The stream of everything, with each event changed; `None` leaves one out."""
    changed = (change(deepcopy(event)) for event in numbered(GOLDEN["everything"]))
    return [event for event in changed if event is not None]


def without(*types):
    return lambda event: None if event["type"].removeprefix("response.") in types else event


def dropped(*keys):
    return lambda event: {key: value for key, value in event.items() if key not in keys}


def rotated(event):
    if "item_id" in event:
        event["item_id"] = f"{event['item_id']}_{event['sequence_number']}"
    if event["type"] == "response.output_item.added":
        event["item"]["id"] += "_a"
    return event


def same_id(event):
    if "item_id" in event:
        event["item_id"] = "item"
    if "item" in event:
        event["item"]["id"] = "item"
    return event


def no_output(event):
    if event["type"] == "response.completed":
        event["response"]["output"] = []
    return event


def no_response(event):
    return {"type": "response.completed"} if event["type"] == "response.completed" else event


def unindexed(event):
    return event | {"output_index": 0} if "output_index" in event else event


def objects(event):
    if event["type"].endswith("arguments.done"):
        event["arguments"] = json.loads(event["arguments"])
    return event


ODD = {
    "no deltas": without("output_text.delta", "function_call_arguments.delta", "reasoning_summary_text.delta"),
    "only deltas and the end": without(
        "output_item.done", "content_part.done", "output_text.done", "function_call_arguments.done", "content_part.added"
    ),
    "nothing announced": without("output_item.added", "content_part.added", "reasoning_summary_part.added"),
    "only finished items": lambda event: event if event["type"].endswith(("item.done", "completed", "created")) else None,
    "only the end": lambda event: event if event["type"] == "response.completed" else None,
    "an empty list at the end": no_output,
    "no response at the end": no_response,
    "an id for each event": rotated,
    "one id for all": same_id,
    "one index for all": unindexed,
    "no indices": dropped("output_index"),
    "no item ids": dropped("item_id"),
    "neither": dropped("output_index", "item_id"),
    "no numbers": dropped("sequence_number"),
    "arguments as objects": objects,
    "every event twice": lambda event: event,
}


@pytest.mark.parametrize("name", ODD)
def test_what_imitating_servers_stream_is_read_as_it_was_meant(name):
    events = broken(ODD[name])
    if name == "every event twice":  # deltas aside, which nothing tells from a repeated word
        events = [again for event in events for again in [event] * (1 if event["type"].endswith("delta") else 2)]
    reply, pieces = read(stream(events))
    assert [(c.id, c.name, json.loads(c.arguments)) for c in reply.message.tool_calls] == [
        ("call_1", "f", {"n": 1}),
        ("call_2", "g", {}),
    ]
    assert reply.message.text == "Grüße 🌲 two"
    assert [part.text for part in reply.message.parts if isinstance(part, Thinking)] == ["First\tI  look.\n\nThen 京都."]
    assert [part.body["type"] for part in reply.message.parts if isinstance(part, Opaque)] == ["web_search_call"]
    assert reply.finish == "tool_calls"
    assert said(pieces) == "Grüße 🌲 two"


def test_the_end_names_what_the_stream_left_out_and_nothing_is_there_twice():
    events = [event for event in numbered(response(CALL_1)) if event["type"] != "response.completed"]
    reply, _ = read(stream([*events, {"type": "response.completed", "response": response(CALL_1, CALL_2)}]))
    assert [c.id for c in reply.message.tool_calls] == ["call_1", "call_2"]
    partial, _ = read(stream([*events, {"type": "response.completed", "response": response(CALL_2)}]))
    assert {c.id for c in partial.message.tool_calls} == {"call_1", "call_2"}


def test_a_call_that_is_there_twice_runs_once_and_another_under_its_id_gets_one_of_its_own():
    twice = responses.decode(response(CALL_1, {**CALL_1, "id": "fc_9"}), turn=3)
    assert (len(twice.message.tool_calls), twice.notices) == (1, ("the server sent the call 'call_1' twice",))
    other = responses.decode(response(CALL_1, {**CALL_1, "arguments": '{"n": 2}'}), turn=3)
    assert [c.id for c in other.message.tool_calls] == ["call_1", "call_3_1"]


def test_the_id_to_answer_with_is_the_call_id_and_a_missing_one_is_made_up():
    bare = {key: value for key, value in CALL_2.items() if key not in ("call_id", "id")}
    only_item_id = {key: value for key, value in CALL_1.items() if key != "call_id"}
    reply = responses.decode(response(only_item_id, bare), turn=3)
    assert [c.id for c in reply.message.tool_calls] == ["fc_1", "call_3_1"]
    history = [reply.message, *(Message("tool", (ToolResult(c.id, c.name, (Text("r"),)),)) for c in reply.message.tool_calls)]
    assert [item["call_id"] for item in items(*history)] == ["fc_1", "call_3_1"] * 2
    assert "id" not in items(*history)[1]


def test_a_stream_without_the_end_of_its_response_is_an_error_wherever_it_breaks_off():
    events = numbered(GOLDEN["everything"])
    for place in range(len(events)):
        with pytest.raises(ProviderError) as caught:
            read(stream(events[:place]) + b"data: [DONE]\n\n")
        assert (caught.value.kind, caught.value.retryable) == ("stream_interrupted", True)
    with pytest.raises(ProviderError):
        read(stream(events)[:-20])


def test_arguments_that_nobody_vouches_for_are_never_run():
    begun = {"type": "response.output_item.added", "output_index": 0, "item": {**CALL_1, "arguments": ""}}
    end = {"type": "response.completed", "response": {"status": "completed"}}
    for fragments in ([], ['{"n"'], ['{"n": 1}', '{"n": 1}']):
        deltas = [{"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text} for text in fragments]
        with pytest.raises(ProviderError, match="middle of a call's arguments"):
            read(stream([begun, *deltas, end]))
    whole = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"n": 1}'}
    assert wires.called(read(stream([begun, whole, end]))[0])[0]["arguments"] == {"n": 1}


def test_the_end_marker_of_another_format_and_unknown_events_are_passed_over():
    odd = [
        {"type": "response.future.thing", "x": [1]},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.content_part.done", "part": 3},
        {"type": ["odd"]},
        {},
        {"type": "keepalive", "sequence_number": 4},
    ]
    events = [event for golden in numbered(GOLDEN["two calls"]) for event in (*odd, golden)]
    reply, _ = read(b": OPENROUTER PROCESSING\n\n" + stream(events) + b"data: [DONE]\n\n")
    assert reply == responses.decode(GOLDEN["two calls"])


# -------------------------------------------------------------------------------------------------------- endings


def test_the_reason_decides_between_a_filter_and_the_limit(cases):
    given, expect = cases["C10"]["given"], cases["C10"]["expect"]
    replies = [responses.decode(body) for body in given["responses"]]
    assert [reply.finish for reply in replies] == expect["finishes"]
    assert [reply.message.text for reply in replies] == expect["texts"]
    assert [reply.raw_finish for reply in replies] == ["incomplete: content_filter", "incomplete: max_output_tokens"]


def test_a_refusal_is_no_stop_and_its_words_are_seen(cases):
    (body,) = [item["openai-responses-response"] for item in cases["C12"]["given"]["items"] if "openai-responses-response" in item]
    reply = responses.decode(body)
    assert (reply.finish, reply.message.text) == ("content_filter", "No.")
    assert reply.message.parts[0].extra["refusal"] is True
    assert said(read(stream(numbered(GOLDEN["a refusal"])))[1], "refusal") == "I can't."


@pytest.mark.parametrize(
    ("status", "reason", "finish"),
    [
        ("incomplete", None, "length"),
        ("incomplete", "steered", "error"),
        ("cosmic_ray", None, "error"),
        ("queued", None, "error"),
        ("in_progress", None, "error"),
        ("cancelled", None, "cancelled"),
        (None, None, "stop"),
    ],
)
def test_an_ending_that_is_not_known_is_never_taken_for_stop(status, reason, finish):
    reply = responses.decode(response(MESSAGE, status=status, reason=reason))
    assert reply.finish == finish
    assert reply.message.text == "Grüße 🌲 two"
    assert (finish in ("error", "length")) == bool(reply.notices)
    assert not reply.notices or (reason or status) in reply.notices[0]


def test_a_call_that_was_cut_off_in_a_response_that_claims_to_be_complete_is_not_whole():
    reply = responses.decode(response({**CALL_1, "status": "incomplete"}))
    assert (reply.finish, len(reply.notices)) == ("length", 1)


def test_the_last_event_knows_how_it_ended_where_the_response_in_it_does_not():
    for kind, given, finish in [
        ("response.incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("response.completed", {"status": "in_progress"}, "stop"),
        ("response.completed", {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ("response.done", {"status": "completed"}, "stop"),
    ]:
        delta = {"type": "response.output_text.delta", "delta": "Hi"}
        reply, pieces = read(stream([delta, {"type": kind, "response": given}]))
        assert (reply.finish, reply.message.text, said(pieces)) == (finish, "Hi", "Hi")


def test_an_item_that_nobody_here_can_carry_out_is_said():
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "shell", "input": "ls"}
    reply = responses.decode(response(custom))
    assert reply.notices == ("the model asks for a custom_tool_call, which is not carried out here",)
    assert items(reply.message) == [custom]


# --------------------------------------------------------------------------------------------------------- errors

FAILED = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "boom"}}}


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "server", True),
        ("rate_limit_exceeded", "rate_limit", True),
        ("insufficient_quota", "rate_limit", False),
        ("server_is_overloaded", "overload", True),
        ("slow_down", "overload", True),
        ("context_length_exceeded", "context_length", False),
        ("invalid_prompt", "bad_request", False),
        ("invalid_image_url", "bad_request", False),
        ("image_too_large", "bad_request", False),
        ("bio_policy", "content_filter", False),
        ("model_not_found", "not_found", False),
        ("something_new", "server", True),
        (503, "overload", True),
        ("400", "bad_request", False),
    ],
)
@pytest.mark.parametrize("form", ["failed", "flat", "nested", "bare", "whole"])
def test_an_error_in_a_stream_is_raised_with_its_kind_and_its_words(code, kind, retryable, form):
    error = {"code": code, "message": "boom", "param": None}
    event = {
        "failed": {"type": "response.failed", "response": {"id": "r", "status": "failed", "error": error}},
        "flat": {"type": "error", **error, "sequence_number": 9},
        "nested": {"type": "error", "error": error},
        "bare": {"error": error},
        "whole": {"id": "r", "object": "response", "status": "failed", "error": error, "output": []},
    }[form]
    seen, begun = [], [{"type": "response.output_text.delta", "delta": "Let me "}]
    with pytest.raises(ProviderError, match="boom") as caught:
        seen.extend(p for _, pieces in receive("responses", [stream([*begun, event])]) for p in pieces)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert caught.value.status == (int(code) if str(code).isdigit() else None)
    assert said(seen) == "Let me "


def test_a_failure_without_a_reason_is_still_an_error():
    for event in ({"type": "response.failed", "response": {"status": "failed", "error": None}}, {"type": "error"}):
        with pytest.raises(ProviderError) as caught:
            read(stream([event]))
        assert caught.value.kind == "server"


@pytest.mark.parametrize(
    "content", [b"", b"data: [DONE]\n\n", b"data: [DO", b"[1]", b'{"output": 3', b'{"id": "x"}', b"<html>no</html>"]
)
def test_what_is_no_answer_is_an_error_and_never_an_empty_success(content):
    with pytest.raises(ProviderError):
        read(content)


ODDITIES = [None, 0, -1, True, 1.5, "", "x", [], [None], [[]], {}, {"type": "message"}, {"type": []}, {"text": {}}, "{}"]


def test_whatever_a_server_sends_ends_in_a_reply_or_in_an_error_of_ours():
    dice, ends = random.Random(7), {"reply": 0, "error": 0}
    names = ("everything", "a refusal", "cut call")
    for _ in range(1500):
        events = deepcopy(numbered(GOLDEN[dice.choice(names)]))
        for _ in range(dice.randint(1, 4)):
            spot = dice.choice(events)
            while (
                inner := [value for value in (spot.values() if isinstance(spot, dict) else spot) if value]
            ) and dice.random() < 0.7:
                deeper = [value for value in inner if isinstance(value, (dict, list))]
                if not deeper:
                    break
                spot = dice.choice(deeper)
            if isinstance(spot, dict) and spot:
                spot[dice.choice(list(spot))] = deepcopy(dice.choice(ODDITIES))
            elif spot:
                spot[dice.randrange(len(spot))] = deepcopy(dice.choice(ODDITIES))
        try:
            reply, _ = read(stream([event if isinstance(event, dict) else {} for event in events]))
        except ProviderError:
            ends["error"] += 1
        else:
            ends["reply"] += 1
            assert from_json(json.loads(json.dumps(to_json(reply)))) == reply
            json.loads(responses.request([reply.message], (), model="m").content)
    assert min(ends.values()) > 20


# ---------------------------------------------------------------------------------------------------------- usage


def test_usage_is_split_into_buckets_that_add_up():
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 15}, "output_tokens": 30}
    usage["output_tokens_details"] = {"reasoning_tokens": 20}
    assert responses.decode(response(usage=usage)).usage == Usage(25, 60, 15, 10, 20)
    assert responses.decode(response(usage={"input_tokens": 4, "output_tokens": 2})).usage == Usage(input=4, output=2)
    assert responses.decode(response(usage={"prompt_tokens": 4, "completion_tokens": 2})).usage == Usage(input=4, output=2)
    assert responses.decode(response(usage=None)).usage is None
    assert responses.decode(response(usage={"input_tokens": "4", "input_tokens_details": None})).usage == Usage()


# -------------------------------------------------------------------------------------------------------- writing

CALL = ToolCall("c1", "f", '{"a": 1}')


def test_nothing_is_sent_unasked():
    assert sent(Message.of("user", "hi")).body == {"model": "m", "input": [{"role": "user", "content": "hi"}]}
    assert responses.request([Message.of("user", "hi")], (), model="m", stream=True).body["stream"] is True


def test_the_first_system_message_is_the_instructions_and_later_ones_keep_their_place():
    history = [Message.of("system", "S"), Message.of("developer", "D"), Message.of("user", "u"), Message.of("system", "T")]
    request = sent(*history)
    assert request.body["instructions"] == "S"
    assert [(item["role"], item["content"]) for item in request.body["input"]] == [
        ("developer", "D"),
        ("user", "u"),
        ("system", "T"),
    ]
    given = sent(*history, instructions="mine")
    assert (given.body["instructions"], given.body["input"][0]) == ("mine", {"role": "system", "content": "S"})


def test_calls_and_results_are_items_of_their_own():
    assert items(
        Message.of("user", "q"),
        Message("assistant", (Text("Look."), CALL, ToolCall("c2", "g", ""))),
        Message("tool", (ToolResult("c1", "f", (Text("r"),)),)),
        Message("tool", (ToolResult.failure(ToolCall("c2", "g"), "no", code="refused"),)),
        Message.of("assistant", "done"),
    ) == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Look."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
        {"type": "function_call_output", "call_id": "c2", "output": '{"success":false,"error":"no","code":"refused"}'},
        {"role": "assistant", "content": "done"},
    ]


def test_arguments_that_are_no_json_go_back_as_the_model_wrote_them():
    assert items(Message("assistant", (ToolCall("c1", "f", '{"a": 1'),)))[0]["arguments"] == '{"a": 1'


def test_images_go_out_in_messages_and_in_results_where_they_are(cases):
    image = Image(data="iVBORw0KGgo=")
    wire = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    link = {"type": "input_image", "image_url": "https://x.test/i.png", "detail": "auto"}
    assert items(Message("user", (Text("what?"), image, Image(url="https://x.test/i.png")))) == [
        {"role": "user", "content": [{"type": "input_text", "text": "what?"}, wire, link]}
    ]
    (result,) = items(Message("tool", (ToolResult("c1", "plot", (Text("chart"), image)),)))
    assert result["output"] == [{"type": "input_text", "text": "chart"}, wire]
    assert items(Message("tool", (ToolResult("c1", "plot", (image,)),)))[0]["output"] == [wire]


def test_an_id_that_another_format_made_too_long_is_shortened_alike_for_call_and_result():
    long = "toolu_" + "x" * 90
    call, result = items(Message("assistant", (ToolCall(long, "f"),)), Message("tool", (ToolResult(long, "f", (Text("r"),)),)))
    assert call["call_id"] == result["call_id"]
    assert len(call["call_id"]) <= 64
    other, _ = items(Message("assistant", (ToolCall(long + "y", "f"),)), Message("tool", (ToolResult(long, "f"),)))
    assert other["call_id"] != call["call_id"]


def test_what_only_another_format_knows_is_left_out_and_said():
    foreign = Message(
        "assistant",
        (
            Thinking("hmm", extra={"wire": "anthropic_messages", "signature": "s"}),
            Opaque("anthropic_messages", {"type": "redacted_thinking", "data": "d"}),
            Text("4", extra={"wire": "anthropic_messages", "citations": []}),
            Text("2"),
            ToolCall("c1", "f", "{}", extra={"wire": "gemini_generate", "thoughtSignature": "t"}),
        ),
    )
    request = sent(foreign)
    assert request.body["input"] == [
        {"role": "assistant", "content": "42"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]
    assert request.notices == (
        "reasoning of another wire format was left out",
        "what only another wire format knows of a text or a call was left out",
    )
    assert sent(Message("user", (Text("hi"),), name="Ann")).notices == (
        "the name 'Ann' of a speaker was left out: this wire format has none",
    )


def test_no_other_format_gets_what_came_from_this_one():
    from nb_agent.adapters import WIRES

    reply = responses.decode(GOLDEN["everything"])
    history = [Message.of("user", "q"), reply.message]
    history += [Message("tool", (ToolResult(call.id, call.name, (Text("r"),)),)) for call in reply.message.tool_calls]
    for name, wire in WIRES.items():
        text = wire.request(history, (), model="m").content.decode()
        assert all((mark in text) == (name == "responses") for mark in ("gAAA", "rs_1", "msg_1", "ws_1", "url_citation")), name
        assert "Grüße" in text


def test_reasoning_that_led_to_nothing_is_not_sent_back_since_servers_refuse_it_alone():
    reply = responses.decode(response(REASONING, status="incomplete", reason="max_output_tokens"))
    assert isinstance(reply.message.parts[0], Thinking)
    request = sent(Message.of("user", "q"), reply.message, Message.of("user", "go on"))
    assert [item["role"] for item in request.body["input"]] == ["user", "user"]
    assert request.notices == ("reasoning that nothing followed was left out",)
    blank = {**MESSAGE, "content": [{"type": "output_text", "annotations": [], "text": ""}]}
    kept = responses.decode(response(REASONING, blank))
    assert items(kept.message) == [REASONING, blank]
    assert responses.decode(response(blank)).message.parts == ()


def test_a_text_that_was_changed_goes_out_as_it_is_now():
    reply = responses.decode(response(MESSAGE))
    first, second = reply.message.parts
    changed = Message("assistant", (Text("new", extra=first.extra), second))
    (item,) = items(changed)
    assert [part["text"] for part in item["content"]] == ["new", " two"]
    assert item["id"] == "msg_1"


def test_two_messages_in_one_reply_stay_two_even_where_they_look_alike():
    plain = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    assert items(responses.decode(response(plain, plain)).message) == [plain, plain]
    bare = {"type": "message", "role": "assistant", "content": "as a string"}
    assert responses.decode(response(bare)).message.text == "as a string"


def test_a_message_is_encoded_once_however_often_it_is_sent():
    message, tool = Message("assistant", (Text("a"), CALL)), Definition("f", "d", {"type": "object", "properties": {}})
    first, second = (responses.request([message], [tool], model="m").body for _ in range(2))
    assert all(one is other for one, other in zip(first["input"], second["input"], strict=True))
    assert first["tools"][0] is second["tools"][0]


def test_a_round_costs_no_more_calls_in_a_long_conversation_than_in_a_short_one():
    def calls(rounds):
        history = [Message.of("system", "S"), Message.of("user", "q")]
        for number in range(rounds):
            call = ToolCall(f"c{number}", "f", "{}")
            history += [Message("assistant", (call,)), Message("tool", (ToolResult(call.id, "f", (Text("r"),)),))]
        responses.request(history, (), model="m")
        found = []
        sys.setprofile(lambda _, event, __: found.append(event) if "call" in event else None)
        try:
            responses.request([*history, Message.of("user", "new")], (), model="m").content  # noqa: B018  reading it encodes
        finally:
            sys.setprofile(None)
        return len(found)

    assert calls(60) <= calls(10) * 1.05


def test_the_body_is_the_bytes_that_are_sent():
    request = sent(Message.of("user", "Grüße 🌲 \ud800"), definitions=[Definition("get", "Get 京都.", {"type": "object"})], top_p=1)
    body = json.loads(request.content)
    assert body["input"][0]["content"] == "Grüße 🌲 ?"
    assert list(body) == ["model", "input", "tools", "top_p"]
    assert (request.path, request.wire) == ("/responses", "responses")


# ----------------------------------------------------------------------------------------------------------- tools


def test_a_definition_is_flat_and_says_that_it_is_not_strict(cases):
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "string"}}, "required": ["x"]}
    tools = sent(Message.of("user", "q"), definitions=[Definition("f", "d", schema), Definition("g", "d", schema, strict=True)])
    flat = {"type": "function", "name": "f", "description": "d", "parameters": schema, "strict": False}
    closed = {**schema, "additionalProperties": False}
    assert tools.body["tools"] == [flat, {**flat, "name": "g", "parameters": closed, "strict": True}]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}, "required": []}])
def test_a_tool_without_parameters_has_properties_all_the_same(schema):
    (tool,) = sent(Message.of("user", "q"), definitions=[Definition("clock", "", schema)]).body["tools"]
    assert tool["parameters"] == {"type": "object", "properties": {}}


# -------------------------------------------------------------------------------------------------------- settings


def fields(model="m", **settings):
    request = sent(Message.of("user", "q"), model=model, **settings)
    return {key: value for key, value in request.body.items() if key not in ("model", "input")}, request.notices


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"max_tokens": 500}, {"max_output_tokens": 500}),
        ({"max_completion_tokens": 500}, {"max_output_tokens": 500}),
        ({"temperature": 0.2, "top_p": 1, "user": "u", "metadata": {"a": "b"}, "service_tier": "flex", "top_logprobs": 2}, None),
        ({"parallel_tool_calls": False, "tool_choice": "required"}, None),
        ({"store": False, "truncation": "auto", "previous_response_id": "resp_1", "anything": {"else": 1}}, None),
        ({"logprobs": True}, {"include": ["message.output_text.logprobs"]}),
        ({"logprobs": False}, {}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"tool_choice": {"type": "function", "name": "f"}}),
        ({"tool_choice": {"type": "function", "name": "f"}}, None),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
                }
            },
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}},
        ),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
                }
            },
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}}},
        ),
        (
            {"text": {"verbosity": "low"}, "response_format": {"type": "text"}},
            {"text": {"verbosity": "low", "format": {"type": "text"}}},
        ),
        (
            {"reasoning_effort": "low", "reasoning": {"summary": "auto"}},
            {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]},
        ),
    ],
)
def test_settings_go_out_under_the_names_of_this_format(settings, expected):
    before = deepcopy(settings)
    assert fields(**settings) == (settings if expected is None else expected, ())
    assert settings == before


def test_settings_that_this_format_does_not_have_are_left_out_and_said():
    found, notices = fields(n=2, seed=1, stop=["x"], frequency_penalty=0.5, presence_penalty=1, logit_bias={})
    assert found == {}
    assert sorted(notice.split()[0] for notice in notices) == [
        "frequency_penalty",
        "logit_bias",
        "n",
        "presence_penalty",
        "seed",
        "stop",
    ]
    assert fields(n=1, stop=None) == ({}, ())


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-5-mini", True),
        ("o3", True),
        ("openai/o4-mini-2025-04-16", True),
        ("gpt-5.6", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-4.1", False),
        ("mock", False),
        ("llama-o3x", False),
    ],
)
def test_models_that_reason_are_asked_for_what_a_server_without_memory_needs_and_not_for_what_they_refuse(model, reasons, cases):
    found, notices = fields(model=model, **cases["G13"]["given"]["user_settings"])
    assert found["max_output_tokens"] == 500
    assert ("temperature" in found) is not reasons
    assert found.get("include") == (["reasoning.encrypted_content"] if reasons else None)
    assert [notice.split()[0] for notice in notices] == (["temperature"] if reasons else [])
    assert fields(model=model, include=[])[0] == {"include": []}
    assert "temperature" in fields(model=model, temperature=0, reasoning_effort="none")[0]


# -------------------------------------------------------------------------------------------------------- counting


def test_the_segments_say_which_text_belongs_to_which_part():
    history = [
        Message.of("system", "S"),
        Message.of("user", "old"),
        responses.decode(response(REASONING, {**MESSAGE, "content": MESSAGE["content"][1:]})).message,
        Message.of("developer", "D"),
        Message("user", (Text("new"), Image(url="https://x.test/i.png"))),
        Message("assistant", (CALL,)),
        Message("tool", (ToolResult("c1", "f", (Text("r"), Image(data="aaaa"))),)),
    ]
    found = responses.segments(sent(*history, definitions=[Definition("f", "d", {"type": "object"})]).body)
    assert [(s.part, s.text, s.message) for s in found[:-1]] == [
        ("system", "S", None),
        ("history", "old", 0),
        ("assistant", "First\tI  look.", 1),
        ("assistant", "Then 京都.", 1),
        ("assistant", " two", 2),
        ("developer", "D", 3),
        ("user", "new", 4),
        ("images", "", 4),
        ("tool_calls", "f", 5),
        ("tool_calls", '{"a": 1}', 5),
        ("tool_results", "r", 6),
        ("images", "", 6),
    ]
    assert found[-1] == Segment("tools", found[-1].text, tool="f")
    assert responses.segments({"model": "m", "input": "hi"}) == [Segment("user", "hi", message=0)]
