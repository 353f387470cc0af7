"""The Gemini adapter alone: what it writes, what it reads, whole and piece by piece."""

import copy
import functools
import json
import random
import sys
import time

import pytest
import wires
from google.genai import types

from nb_agent import tool
from nb_agent.adapters import gemini_generate as adapter
from nb_agent.adapters import receive
from nb_agent.adapters.gemini_generate.schema import parameters
from nb_agent.adapters.gemini_generate.settings import FIELDS, LEFT_OUT
from nb_agent.adapters.gemini_generate.stream import FINISH
from nb_agent.agent import SETTINGS
from nb_agent.errors import ProviderError
from nb_agent.mcp.mapping import parameters as plain
from nb_agent.messages import Definition, Image, Message, Opaque, Segment, Text, Thinking, ToolCall, ToolResult
from nb_agent.mock.gemini_generate import checks as judge
from nb_agent.mock.wire import Refused
from nb_agent.usage import Usage
from nb_agent.values import from_json, to_json


def stream(events):
    return "".join(f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n" for event in events).encode()


read = functools.partial(wires.read, "gemini_generate")


def answer(*parts, finish="STOP", **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], **more}


def call(name="f", **args):
    return {"functionCall": {"name": name, "args": args}}


def sent(*messages, model="gemini-x", definitions=(), **settings):
    return adapter.request(messages, definitions, model=model, settings=settings)


def contents(*messages, **more):
    return json.loads(sent(*messages, **more).content)["contents"]


USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
TAIL = {"usageMetadata": USAGE, "modelVersion": "gemini-x-001", "responseId": "r1"}
SIGNED = call("area", w=2, note="京都 🙂") | {"thoughtSignature": "c2ln"}
#: A stream of Gemini's -> the parts that it stands for.
STREAMS = {
    "text": (
        [answer({"text": "Grü"}, finish=None, **TAIL), answer({"text": "ße 🌲"}, finish=None), answer({"text": ""}, **TAIL)],
        [{"text": "Grüße 🌲"}],
    ),
    "two calls in one payload": ([answer(SIGNED, call("now"), **TAIL)], [SIGNED, call("now")]),
    "two calls, one after the other": (
        [answer(call("f", n=1), finish=None), answer(call("f", n=2), finish=None), answer(**TAIL)],
        [call("f", n=1), call("f", n=2)],
    ),
    "thoughts, text and a call": (
        [
            answer({"text": "Hm", "thought": True}, finish=None),
            answer({"text": "m.", "thought": True}, finish=None),
            answer({"text": "I "}, finish=None),
            answer({"text": "look."}, SIGNED, **TAIL),
        ],
        [{"text": "Hmm.", "thought": True}, {"text": "I look."}, SIGNED],
    ),
    "a signature behind the text": (
        [answer({"text": "a"}, finish=None), answer({"text": "", "thoughtSignature": "c2ln"}, **TAIL)],
        [{"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}],
    ),
    "signed texts are never joined": (
        [
            answer({"text": "a", "thoughtSignature": "c2ln"}, finish=None),
            answer({"text": "b"}, finish=None),
            answer({"text": "c"}, **TAIL),
        ],
        [{"text": "a", "thoughtSignature": "c2ln"}, {"text": "bc"}],
    ),
    "what only Gemini has": (
        [
            answer({"executableCode": {"language": "PYTHON", "code": "1"}}, finish=None),
            answer({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, {"text": "1"}, **TAIL),
        ],
        [
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "1"},
        ],
    ),
    "an id of the API's own, and no arguments": (
        [answer({"functionCall": {"id": "ab12cd34", "name": "now"}, "thoughtSignature": "c2ln"}, **TAIL)],
        [{"functionCall": {"id": "ab12cd34", "name": "now"}, "thoughtSignature": "c2ln"}],
    ),
}


# ------------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_reads_the_same_wherever_the_network_cuts_it(name):
    raw = stream(STREAMS[name][0])
    whole = read(raw)
    for place in range(1, len(raw)):
        assert read(raw[:place], raw[place:]) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_the_body_of_a_streamed_reply_is_the_answer_unstreamed(name):
    reply, _ = read(stream(STREAMS[name][0]))
    assert adapter.decode(reply.body) == reply
    assert reply.body["candidates"][0]["content"]["parts"] == STREAMS[name][1]
    assert read(json.dumps(reply.body).encode())[0] == reply
    assert types.GenerateContentResponse.model_validate(reply.body).candidates[0].finish_reason == "STOP"


@pytest.mark.parametrize("name", STREAMS)
def test_what_was_read_is_written_back_as_it_came(name):
    reply, _ = read(stream(STREAMS[name][0]))
    assert contents(reply.message)[0] == {"role": "model", "parts": STREAMS[name][1]}
    assert contents(from_json(json.loads(json.dumps(to_json(reply.message))))) == contents(reply.message)


def test_pieces_come_as_they_arrive_and_calls_are_numbered():
    _, pieces = read(stream(STREAMS["thoughts, text and a call"][0]))
    assert [(piece.kind, piece.text) for piece in pieces[:4]] == [
        ("thinking", "Hm"),
        ("thinking", "m."),
        ("text", "I "),
        ("text", "look."),
    ]
    _, pieces = read(stream(STREAMS["two calls, one after the other"][0]))
    assert [(piece.kind, piece.index) for piece in pieces] == [("call", 0), ("arguments", 0), ("call", 1), ("arguments", 1)]


def test_two_calls_of_one_function_keep_their_order_and_made_up_ids_are_not_sent_back(cases):
    given, expect = cases["B21"]["given"], cases["B21"]["expect"]
    reply, _ = read(stream(given["events"]), turn=3)
    calls = reply.message.tool_calls
    assert [{"name": c.name, "arguments": json.loads(c.arguments)} for c in calls] == expect["tool_calls"]
    assert [c.id for c in calls] == ["call_3_0", "call_3_1"]
    assert reply.finish == expect["finish"]
    assert (reply.usage.input, reply.usage.output) == (expect["usage"]["input"], expect["usage"]["output"])
    brno, graz = (Message("tool", (ToolResult(c.id, c.name, (Text(town),)),)) for c, town in zip(calls, ("B", "G"), strict=True))
    said, results = contents(reply.message, graz, brno)
    assert [part["functionResponse"] for part in results["parts"]] == [
        {"name": "temp_in", "response": {"output": "B"}},
        {"name": "temp_in", "response": {"output": "G"}},
    ]
    assert results["role"] == "user"
    assert "id" not in json.dumps(said)


def test_ids_that_the_api_gave_go_back_with_call_and_result():
    same = {"functionCall": {"id": "k1", "name": "f", "args": {}}}
    reply = adapter.decode(answer(same, same))
    ids = [c.id for c in reply.message.tool_calls]
    assert ids == ["k1", "call_0_1"]
    results = [Message("tool", (ToolResult(name, "f", (Text("1"),)),)) for name in ids]
    said, answered = contents(reply.message, *results)
    assert [part["functionCall"]["id"] for part in said["parts"]] == ["k1", "k1"]
    assert [part["functionResponse"]["id"] for part in answered["parts"]] == ["k1", "k1"]


def test_candidates_are_never_mixed_and_the_first_is_chosen():
    def part(number, text, finish=None):
        form = {"content": {"parts": [{"text": text}]}} | ({"finishReason": finish} if finish else {})
        return form | ({"index": number} if number else {})  # proto JSON leaves zeros out

    reply, pieces = read(
        stream(
            [
                {"candidates": [part(0, "Hel"), part(1, "By")]},
                {"candidates": [part(1, "e", "STOP")]},
                {"candidates": [part(0, "lo", "STOP")]},
            ]
        )
    )
    assert (reply.message.text, [other.text for other in reply.others]) == ("Hello", ["Bye"])
    assert "".join(piece.text for piece in pieces if piece.choice == 1) == "Bye"
    unnumbered = {"candidates": [part(0, "a", "STOP"), part(0, "b", "STOP")]}
    assert [other.text for other in adapter.decode(unnumbered).others] == ["b"]


def test_a_stream_asked_for_without_sse_is_a_list_that_is_read_the_same():
    events = STREAMS["two calls, one after the other"][0]
    raw = json.dumps(events).encode()
    assert read(raw)[0] == read(stream(events))[0]
    with pytest.raises(ProviderError) as caught:
        read(json.dumps(events[:1]).encode())
    assert caught.value.kind == "stream_interrupted"


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_breaks_off_is_an_error(name):
    events = STREAMS[name][0]
    raw = stream(events)
    for place in range(len(raw) - 4):  # the last line may miss its end
        with pytest.raises(ProviderError) as caught:
            read(raw[:place])
        assert caught.value.kind == "stream_interrupted"
    cut = copy.deepcopy(events)
    del cut[-1]["candidates"][0]["finishReason"]
    with pytest.raises(ProviderError, match="broke off before the model had finished"):
        read(stream(cut))


@pytest.mark.parametrize(
    ("error", "kind", "status", "retryable"),
    [
        ({"code": 503, "message": "model is overloaded", "status": "UNAVAILABLE"}, "overload", 503, True),
        ({"message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}, "rate_limit", 429, True),
        ({"code": 14, "message": "try later", "status": "UNAVAILABLE"}, "overload", 503, True),
        ({"message": "no such field", "status": "INVALID_ARGUMENT"}, "bad_request", 400, False),
        (
            {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).", "status": []},
            "context_length",
            400,
            False,
        ),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_in_the_middle_of_a_stream_is_raised_with_its_kind(error, kind, status, retryable, wrapped):
    seen = []
    event = {"error": error}
    raw = stream([answer({"text": "Let me "}, finish=None), [event] if wrapped else event])
    with pytest.raises(ProviderError, match=error["message"][:12]) as caught:
        seen.extend(pieces for _, pieces in receive("gemini_generate", [raw]))
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == (kind, status, retryable)
    assert seen[0][0].text == "Let me "


@pytest.mark.parametrize("content", [b"", b"data: {", b"[1]", b"[]", b'{"candidates": 3', b"{}", b"<html>busy</html>"])
def test_what_is_no_answer_is_an_error_and_never_an_empty_success(content):
    with pytest.raises(ProviderError):
        read(content)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"candidates": None},
        {"candidates": [None, 3]},
        {"candidates": [{"content": None, "index": None}]},
        {"candidates": [{"content": {"parts": None}}], "usageMetadata": "none", "promptFeedback": []},
        {"candidates": [{"content": {"parts": [None, {}, {"text": ""}]}, "index": True}], "usageMetadata": {"a": []}},
    ],
)
def test_odd_payloads_are_passed_over(odd):
    reply, _ = read(stream([odd, answer({"text": "o"}, finish=None), odd, answer({"text": "k"}), odd]))
    assert (reply.message, reply.finish) == (Message.of("assistant", "ok"), "stop")


def test_any_payloads_end_in_a_reply_or_in_a_provider_error():
    chance = random.Random(4)
    atoms = [None, 0, 1.5, True, "", "x", [], {}, float("nan"), 10**30, "STOP", [[]], {"text": 3}, "MAX_TOKENS", -1]
    keys = ["content", "parts", "text", "functionCall", "name", "args", "id", "index", "usageMetadata", "error", "candidates"]

    def grown(level):
        if level == 0 or chance.random() < 0.2:
            return chance.choice(atoms)
        if chance.random() < 0.4:
            return [grown(level - 1) for _ in range(chance.randrange(3))]
        return {chance.choice(keys): grown(level - 1) for _ in range(chance.randrange(5))}

    replies = 0
    for _ in range(3000):
        accumulator = adapter.Accumulator()
        try:
            for _ in range(chance.randrange(1, 4)):
                part = grown(4)
                accumulator.feed({"candidates": [{"content": {"parts": [part]}, "finishReason": chance.choice(atoms)}]})
                accumulator.feed(chance.choice([grown(5), json.dumps(grown(5)), "[DONE]", "[" * 9999]))
            replies += bool(to_json(accumulator.done()))
        except ProviderError:
            pass
    assert replies > 100


def test_a_long_text_is_put_together_in_a_time_that_grows_with_its_length():
    payload = json.dumps(answer({"text": "four"}, finish=None))
    seconds = []
    for count in (4_000, 40_000):
        accumulator = adapter.Accumulator()
        began = time.process_time()
        for _ in range(count):
            accumulator.feed(payload)
        accumulator.feed(answer())
        assert len(accumulator.done().message.text) == 4 * count
        seconds.append(time.process_time() - began)
    assert seconds[1] < 40 * seconds[0]  # ten times as much; a quadratic one takes a hundred times as long


# ------------------------------------------------------------------------------------------------------------- endings


@pytest.mark.parametrize("content", [{}, None, {"role": "model"}, {"parts": []}, "absent"])
def test_a_malformed_call_is_an_error_with_its_words_and_no_call(content, cases):
    body = copy.deepcopy(cases["C07"]["given"]["response"])
    if content == "absent":
        del body["candidates"][0]["content"]
    else:
        body["candidates"][0]["content"] = content
    for reply in (adapter.decode(body), read(stream([body]))[0]):
        assert (reply.finish, reply.raw_finish, reply.message.parts) == ("error", "MALFORMED_FUNCTION_CALL", ())
        assert reply.notices == ("the model ended with MALFORMED_FUNCTION_CALL: call could not be parsed",)
        assert (reply.usage.input, reply.usage.output) == (40, 0)


def test_every_finish_reason_of_the_reference_has_its_meaning():
    known = {reason.value for reason in types.FinishReason} - {"FINISH_REASON_UNSPECIFIED"}
    assert known == FINISH.keys() - {"FUNCTION_CALL"}
    for raw, finish in FINISH.items():
        if raw == "FUNCTION_CALL":
            continue  # the next test
        assert adapter.decode(answer({"text": "x"}, finish=raw)).finish == finish


@pytest.mark.parametrize(
    ("parts", "raw", "finish"),
    [
        ([call()], "STOP", "tool_calls"),
        ([{"text": "x"}], "STOP", "stop"),
        ([call()], "MAX_TOKENS", "length"),
        ([call()], "SAFETY", "content_filter"),
        ([call()], "MALFORMED_FUNCTION_CALL", "error"),
        ([{"text": "x"}], "COSMIC_RAY", "error"),
        ([call()], None, "tool_calls"),
    ],
)
def test_the_message_decides_between_stop_and_tool_calls_and_nothing_else_becomes_either(parts, raw, finish):
    reply = adapter.decode(answer(*parts, finish=raw))
    assert (reply.finish, reply.raw_finish) == (finish, raw)
    if raw in ("COSMIC_RAY", None):
        assert "finish reason" in reply.notices[0]


def test_stop_in_every_payload_does_not_hide_the_reason():
    events = [answer({"text": "a"}), answer({"text": "b"}, finish="MAX_TOKENS"), answer({"text": "c"})]
    assert read(stream(events))[0].finish == "length"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_blocked_prompt_is_filtered_and_says_why(streamed):
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}}
    reply = read(stream([body]))[0] if streamed else adapter.decode(body)
    assert (reply.finish, reply.raw_finish, reply.message.parts) == ("content_filter", "PROHIBITED_CONTENT", ())
    assert reply.notices == ("the provider blocked the prompt (PROHIBITED_CONTENT)",)
    assert reply.usage == Usage(input=7, output=0)


def test_calls_in_fragments_are_never_guessed_at():
    part = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}}
    with pytest.raises(ProviderError, match="streamFunctionCallArguments"):
        adapter.decode(answer(part))


def test_usage_is_split_into_buckets_that_add_up_and_the_last_numbers_count():
    early = {"promptTokenCount": 100, "totalTokenCount": 100}
    late = {**early, "cachedContentTokenCount": 60, "candidatesTokenCount": 10, "thoughtsTokenCount": 20}
    late |= {"toolUsePromptTokenCount": 5, "totalTokenCount": 135}
    reply, _ = read(stream([answer({"text": "x"}, finish=None, usageMetadata=early), answer(usageMetadata=late)]))
    assert reply.usage == Usage(input=45, cache_read=60, output=10, reasoning=20)
    assert reply.usage.total_tokens == 135
    assert adapter.decode(answer({"text": "x"})).usage is None


def test_a_pause_is_gone_on_from_with_the_token_that_the_server_gave():
    pause = answer({"text": "The first half"}, finish="CONTINUATION")
    pause["candidates"][0]["continuationToken"] = "dG9rZW4="
    reply = adapter.decode(pause)
    assert reply.finish == "paused"
    user = Message.of("user", "write")
    body = json.loads(sent(user, reply.message).content)
    assert body == {"contents": [{"role": "user", "parts": [{"text": "write"}]}], "continuationToken": "dG9rZW4="}
    rest = adapter.decode(answer({"text": " and the rest"})).message
    body = json.loads(sent(user, reply.message, rest, Message.of("user", "more")).content)
    assert "continuationToken" not in body
    assert [entry["role"] for entry in body["contents"]] == ["user", "model", "user"]
    assert body["contents"][1]["parts"] == [{"text": "The first half"}, {"text": " and the rest"}]


# ------------------------------------------------------------------------------------------------------------- history

CALL = ToolCall("c1", "f", '{"a": 1}')


def test_system_and_developer_text_stands_apart(cases):
    history = [Message.of(item["role"], item["content"]) for item in cases["D07"]["given"]["history"]]
    body = json.loads(sent(*history, Message.of("developer", "D")).content)
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "D"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hello"}]}]
    assert "moved to its beginning" in sent(*history, Message.of("developer", "D")).notices[0]
    assert sent(*history).notices == ()


def test_arguments_and_results_are_objects(cases):
    q, asked, *results = cases["D13"]["given"]["history"]
    calls = [ToolCall(c["id"], c["name"], json.dumps(c["arguments"])) for c in asked["tool_calls"]]
    messages = [Message.of("user", q["content"]), Message("assistant", (Text(""), *calls))]
    messages += [Message("tool", (ToolResult(r["tool_call_id"], "", (Text(r["content"]),)),)) for r in results]
    assert contents(*messages)[1:] == [
        {"role": "model", "parts": [call("f", k="ü", n=1), call("g")]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "r"}}},
                {"functionResponse": {"name": "g", "response": {"output": "s"}}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("", {}, False),
        ("null", {}, False),
        ('"{\\"n\\": 1}"', {"n": 1}, False),
        ('{"n": 1', {"_raw": '{"n": 1'}, True),
        ("[1]", {"_raw": "[1]"}, True),
        ('{"n": NaN}', {"_raw": '{"n": NaN}'}, True),
        ("[" * 99_999, {"_raw": "[" * 99_999}, True),
    ],
)
def test_arguments_that_are_no_object_go_back_whole_under_one_key(text, args, said):
    request = sent(Message("assistant", (ToolCall("c", "f", text),)))
    assert json.loads(request.content)["contents"][0]["parts"][0]["functionCall"]["args"] == args
    assert [notice for notice in request.notices if "_raw" in notice] == [adapter._LEFT_OUT["raw"]] * said


def test_a_failed_result_is_marked_as_one():
    result = Message("tool", (ToolResult.failure(CALL, "no such town", code="not_found"),))
    (_, answered) = contents(Message("assistant", (CALL,)), result)
    (error,) = answered["parts"][0]["functionResponse"]["response"].items()
    assert error == ("error", result.tool_result.text)


IMAGE = Image(data="iVBORw0KGgo=")
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def test_images_of_results_stand_inside_them_and_for_older_models_beside_them():
    history = [
        Message("assistant", (CALL, ToolCall("c2", "g"))),
        Message("tool", (ToolResult("c1", "f", (Text("chart"), IMAGE)),)),
        Message("tool", (ToolResult("c2", "g", (Text("plain"),)),)),
    ]
    for model in ("gemini-3-pro", "gemini-flash-latest", "x"):
        first, second = contents(*history, model=model)[1]["parts"]
        assert first["functionResponse"] == {"name": "f", "response": {"output": "chart"}, "parts": [INLINE]}
    for model in ("gemini-2.5-flash", "models/gemini-1.5-pro"):
        first, image, second = contents(*history, model=model)[1]["parts"]
        assert (first["functionResponse"]["response"], image) == ({"output": "chart\n(the image follows)"}, INLINE)
        assert second["functionResponse"]["name"] == "g"


def test_images_of_messages_are_data_or_an_address():
    message = Message(
        "user",
        (Text("see"), IMAGE, Image(url="data:image/webp;base64,AAAA"), Image(url="https://x.test/i.jpg?w=1"), Text("")),
    )
    assert contents(message)[0]["parts"] == [
        {"text": "see"},
        INLINE,
        {"inlineData": {"mimeType": "image/webp", "data": "AAAA"}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x.test/i.jpg?w=1"}},
    ]


def test_an_image_that_the_model_made_goes_back_as_an_image():
    reply = adapter.decode(answer(INLINE))
    assert reply.message.parts == (IMAGE,)
    assert contents(reply.message)[0]["parts"] == [INLINE]


def test_what_only_another_wire_format_understands_is_left_out_and_said():
    parts = (
        Thinking("secret", extra={"wire": "anthropic_messages", "signature": "s"}),
        Thinking("hidden"),
        Opaque("responses", {"type": "reasoning", "encrypted_content": "z"}),
        Text("seen", extra={"refusal": True}),
        ToolCall("c1", "f", "{}", extra={"wire": "responses", "id": "fc_1"}),
    )
    request = sent(Message.of("user", "q"), Message("assistant", parts), Message("tool", (ToolResult("c1", "f"),)))
    body = json.loads(request.content)
    assert body["contents"][1]["parts"] == [{"text": "seen"}, call("f")]
    assert body["contents"][2]["parts"] == [{"functionResponse": {"name": "f", "response": {"output": ""}}}]
    assert request.notices == (adapter._LEFT_OUT["thinking"], adapter._LEFT_OUT["opaque"])


def test_turns_with_nothing_in_them_are_left_out():
    empty = Message("assistant", (Text(""), Thinking("x")))
    request = sent(Message.of("user", "a"), empty, Message.of("user", "b"), Message.of("system", ""))
    assert [entry["parts"][0]["text"] for entry in json.loads(request.content)["contents"]] == ["a", "b"]
    assert "a message with nothing in it was left out" in request.notices
    assert "systemInstruction" not in request.body


def test_the_model_is_quoted_into_the_path():
    for model, path in {
        "gemini-x": "/models/gemini-x:generateContent",
        "models/gemini-x": "/models/gemini-x:generateContent",
        "mock:cut ü/…?": "/models/mock%3Acut%20%C3%BC%2F%E2%80%A6%3F:generateContent",
    }.items():
        assert adapter.request([Message.of("user", "x")], (), model=model).path == path
    streamed = adapter.request([Message.of("user", "x")], (), model="m", stream=True)
    assert (streamed.path, streamed.stream, "stream" in streamed.body) == ("/models/m:streamGenerateContent?alt=sse", True, False)


def test_nothing_is_sent_unasked():
    assert sent(Message.of("user", "hi")).body == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_the_body_is_the_bytes_that_are_sent():
    request = sent(Message.of("user", "Grüße 🌲 \ud800"), definitions=[Definition("f", "京都", {"properties": {"a": {}}})], top_p=1)
    body = json.loads(request.content)
    assert body["contents"][0]["parts"][0]["text"] == "Grüße 🌲 ?"
    assert body["tools"] == request.body["tools"]


def long_history(rounds):
    for number in range(rounds):
        yield Message.of("user", f"{number}")
        yield Message("assistant", (Text("I look."), ToolCall(f"a{number}", "f"), ToolCall(f"b{number}", "g")))
        yield Message("tool", (ToolResult(f"a{number}", "f", (Text("1"),)),))
        yield Message("tool", (ToolResult(f"b{number}", "g", (Text("2"),)),))


def test_a_history_that_was_sent_before_costs_no_call_for_each_message():
    def calls(history):
        counted = []
        sent(*history)
        sys.setprofile(lambda frame, event, argument: counted.append(1) if event in {"call", "c_call"} else None)
        try:
            sent(*history)
        finally:
            sys.setprofile(None)
        return len(counted)

    assert calls([*long_history(60)]) <= calls([*long_history(10)])


def test_a_turn_that_has_grown_is_written_anew():
    first, *rest = [*long_history(1)][1:]
    assert len(contents(first)) == 1
    assert len(contents(first, rest[0])[1]["parts"]) == 1
    assert len(contents(first, *rest)[1]["parts"]) == 2
    assert contents(first, *rest)[1]["parts"][1]["functionResponse"]["response"] == {"output": "2"}
    other = Message("tool", (ToolResult("b0", "g", (Text("another"),)),))
    assert contents(first, rest[0], other)[1]["parts"][1]["functionResponse"]["response"] == {"output": "another"}
    request, again = sent(first, *rest), sent(first, *rest)
    assert all(one is two for one, two in zip(request.body["contents"], again.body["contents"], strict=True))


# ------------------------------------------------------------------------------------------------------------- settings


def test_every_neutral_setting_is_translated_or_left_out_with_a_sentence():
    values = {
        "tool_choice": "auto",
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "service_tier": "flex",
        "stop": "x",
    }
    for name in SETTINGS:
        request = sent(Message.of("user", "x"), **{name: values.get(name, 1)})
        assert name not in request.body
        assert (len(request.body), len(request.notices)) == ((1, 1) if name in LEFT_OUT else (2, 0)), name
    assert set(FIELDS) | set(LEFT_OUT) <= SETTINGS


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        ({"max_tokens": 500, "temperature": 0.2}, {"generationConfig": {"maxOutputTokens": 500, "temperature": 0.2}}),
        ({"stop": "END"}, {"generationConfig": {"stopSequences": ["END"]}}),
        ({"stop": ["a", "b"], "n": 2}, {"generationConfig": {"stopSequences": ["a", "b"], "candidateCount": 2}}),
        ({"tool_choice": "required"}, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}},
        ),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"name": "f"}]}}},
            {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}}},
        ),
        ({"tool_choice": {"type": "any"}}, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
            {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}},
        ),
        ({"service_tier": "default"}, {"serviceTier": "standard"}),
        ({"service_tier": "auto"}, {}),
        (
            {"generationConfig": {"topK": 3, "thinkingConfig": {"includeThoughts": True}}, "reasoning_effort": "high", "seed": 1},
            {"generationConfig": {"topK": 3, "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}, "seed": 1}},
        ),
        ({"safetySettings": [1], "cachedContent": "c"}, {"safetySettings": [1], "cachedContent": "c"}),
    ],
)
def test_settings_go_into_the_fields_that_they_have_here(settings, body):
    request = sent(Message.of("user", "x"), **settings)
    assert {key: value for key, value in request.body.items() if key != "contents"} == body
    assert request.notices == ()


def test_effort_is_a_budget_for_the_models_before_gemini_3():
    body = sent(Message.of("user", "x"), model="gemini-2.5-flash", reasoning_effort="none").body
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 0}}


def test_a_value_that_says_nothing_here_is_left_out_with_a_sentence():
    request = sent(Message.of("user", "x"), tool_choice="perhaps", parallel_tool_calls=False)
    assert list(request.body) == ["contents"]
    assert request.notices == (
        "tool_choice was left out, because Gemini has nothing like 'perhaps'",
        "parallel_tool_calls was left out, because Gemini has no such setting",
    )


# --------------------------------------------------------------------------------------------------------------- tools


def declared(*definitions):
    return json.loads(sent(Message.of("user", "x"), definitions=definitions).content)["tools"][0]["functionDeclarations"]


def accepted(schema):
    """Whether a server takes the parameters: our mock's judge, and the types of the vendor's own client."""
    judge._check_schema(schema, "parameters", root=True)
    types.Schema.model_validate(schema)
    return schema


def test_a_tool_without_parameters_has_no_parameters_at_all(cases):
    names = {}
    exec(cases["A11"]["given"]["python"], names)
    assert declared(tool(names["clock"]).definition) == [{"name": "clock", "description": "Tell the time."}]


def test_a_type_that_holds_itself_is_written_out_a_few_levels_deep(cases):
    source = cases["A14"]["given"]["python"]
    names = {"__name__": "sample"}
    sys.modules["sample"] = type(sys)("sample")
    sys.modules["sample"].__dict__.update(names)
    exec(source, sys.modules["sample"].__dict__)
    definition = tool(sys.modules["sample"].plan).definition
    del sys.modules["sample"]
    request = sent(Message.of("user", "x"), definitions=[definition])
    schema = accepted(declared(definition)[0]["parameters"])
    assert json.dumps(schema).count('"parts"') == 3
    assert request.notices == ("the parameters of plan refer to Chore from inside it and were written out a few levels deep",)


def test_true_takes_any_value_and_false_none(cases):
    for given in (lambda schema: schema, plain):  # as a server gave it, and as our own tools have it
        good, odd = (Definition(t["name"], t["description"], given(t["inputSchema"])) for t in cases["E07"]["given"]["tools"])
        first, second = declared(good, odd)
        assert first == {"name": "good", "description": "d"}
        assert list(accepted(second["parameters"])["properties"]) == ["raw", "deep"]


def keywords(schema):
    yield from (key for key in schema if key != "properties")
    items = [schema["items"]] if "items" in schema else []
    for part in [*schema.get("properties", {}).values(), *items, *schema.get("anyOf", [])]:
        yield from keywords(part)


def test_keywords_that_gemini_does_not_know_are_gone_and_their_limits_are_told(cases):
    schema = cases["E08"]["given"]["tools"][0]["inputSchema"]
    before = copy.deepcopy(schema)
    found = accepted(parameters(schema, "grow")[0])
    expect = cases["E08"]["expect"]
    assert not {*keywords(found)} & {*expect["gemini_absent_keywords"]}
    assert sorted(found["properties"]) == expect["gemini_kept"]["property_names"]
    assert found["required"] == ["n"]
    assert found["properties"]["mode"] == {"type": "string", "enum": ["wet"]}
    assert found["properties"]["opt"] == {"type": "string", "nullable": True}
    assert found["properties"]["lvl"] == {"type": "integer", "description": "one of 1, 2"}
    assert found["properties"]["n"]["description"] == "greater than 0; a multiple of 2"
    assert schema == before


def test_references_are_written_out_where_they_stand(cases):
    schema = cases["E25"]["given"]["tools"][0]["inputSchema"]
    before = copy.deepcopy(schema)
    found, notices = parameters(schema, "press")
    assert accepted(found) == {
        "type": "object",
        "properties": {
            "shape": {"type": "string", "description": "outer form", "enum": ["disc", "cube"]},
            "more": {"type": "array", "items": {"type": "string", "enum": ["disc", "cube"]}},
        },
        "required": ["shape"],
    }
    assert (notices, schema) == ((), before)


A = {"$ref": "#/$defs/A"}
ODD = {
    "a chain without an end": {"properties": {"a": A}, "$defs": {"A": A}},
    "itself": {"properties": {"a": {"$ref": "#"}}},
    "nowhere": {"properties": {"a": {"$ref": "#/$defs/Missing", "description": "d"}, "b": {"$ref": "https://x.test/s.json"}}},
    "allOf of itself": {
        "$defs": {"A": {"allOf": [A, A, A, {"properties": {"a": A}}]}},
        "allOf": [A],
        "properties": {"b": {"allOf": [{"type": "string"}, {"minLength": 2}]}},
    },
    "alternatives at the top": {
        "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]
    },
    "several types": {"properties": {"a": {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 3, "enum": ["x", 1]}}},
    "a tuple": {"properties": {"a": {"prefixItems": [{"type": "number"}, {"type": "string"}]}, "b": {"items": [{}]}}},
    "a map": {"properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}, "b": {"type": "object"}}},
    "formats": {"properties": {"a": {"type": "string", "format": "uri"}, "b": {"type": "string", "format": "date-time"}}},
    "empty words": {"properties": {"a": {"enum": ["", "x"]}, "b": {"const": None}, "c": {"type": "null"}, "d": {"enum": []}}},
    "required without a property": {"properties": {"a": {"type": "any"}}, "required": ["a", "a", "b", 3]},
    "names that are keywords": {"properties": {"$id": {"type": "string"}, "const": {"const": True}, "properties": {"items": {}}}},
    "no schemas": {
        "properties": {"a": 3, "b": None, "c": [], "d": {"anyOf": []}, "e": {"anyOf": [True, False, 7]}, "f": {"not": 4}}
    },
    "types in capitals": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
    "an object that is one of two": {
        "properties": {
            "a": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "oneOf": [{"required": ["x"]}, {}]}
        }
    },
    "defaults": {"properties": {"a": {"type": "boolean", "default": None}, "b": {"anyOf": [{}, {"const": 3}], "title": "B"}}},
    "many that lead to many": {
        "$defs": {f"A{n}": {"properties": {f"p{m}": {"$ref": f"#/$defs/A{m}"} for m in range(9)}} for n in range(9)},
        "properties": {"a": {"$ref": "#/$defs/A0"}, "b": {"type": "string"}},
    },
    "two that double": {
        "$defs": {f"A{n}": {"properties": {x: {"$ref": f"#/$defs/A{n + 1}"} for x in "ab"}} for n in range(40)},
        "properties": {"a": {"$ref": "#/$defs/A0"}},
    },
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_a_server_calls_a_schema_becomes_one_that_gemini_takes(name):
    before = copy.deepcopy(ODD[name])
    began = time.process_time()
    found, _ = parameters(ODD[name], "t")
    assert time.process_time() - began < 1
    assert ODD[name] == before
    assert len(json.dumps(accepted(found))) < 60_000
    assert "$ref" not in {*keywords(found)}


def test_deep_schemas_come_to_an_end():
    schema = inner = {"type": "object"}
    for _ in range(5000):
        inner["properties"] = {"a": {"type": "object"}}
        inner = inner["properties"]["a"]
    found, notices = parameters(schema, "deep")
    accepted(found)
    assert notices == ("the parameters of deep are too large for this wire format and were written out in part",)


def test_details_of_what_is_kept():
    def one(**schema):
        return accepted(parameters({"properties": {"x": schema}}, "t")[0])["properties"]["x"]

    assert one(type=["string", "null"], description="d") == {"type": "string", "description": "d", "nullable": True}
    assert one(anyOf=[{"type": "integer"}, {"type": "null"}], default=None, title="X") == {
        "type": "integer",
        "title": "X",
        "default": None,
        "nullable": True,
    }
    assert one(const=3) == {"type": "integer", "description": "always 3"}
    assert one(oneOf=[{"type": "string"}, {"type": "number"}]) == {"anyOf": [{"type": "string"}, {"type": "number"}]}
    assert one(allOf=[{"type": "string"}, {"pattern": "^a"}], description="d") == {
        "type": "string",
        "description": "d",
        "pattern": "^a",
    }
    assert one(type="array", uniqueItems=False, minItems=1, items={"type": "string"}) == {
        "type": "array",
        "minItems": 1,
        "items": {"type": "string"},
    }
    assert one(type="object", additionalProperties={"type": "integer"}) == {"type": "object", "description": "values: integer"}
    assert one(type="string", format="uri", description="d") == {"type": "string", "description": "d (format uri)"}


def test_the_judge_refuses_what_the_adapter_takes_care_of(cases):
    for case in ("E07", "E08", "E25"):
        with pytest.raises(Refused):
            judge._check_schema(cases[case]["given"]["tools"][-1]["inputSchema"], "parameters", root=True)


def test_strictness_is_left_out_and_said():
    request = sent(Message.of("user", "x"), definitions=[Definition("f", "", {}, strict=True)])
    assert request.body["tools"] == [{"functionDeclarations": [{"name": "f"}]}]
    assert "strict was left out" in request.notices[0]


# ------------------------------------------------------------------------------------------------------------- counting


def test_the_segments_say_which_text_belongs_to_which_part():
    history = [
        Message.of("system", "S"),
        Message.of("user", "old"),
        Message.of("assistant", "answer"),
        Message("user", (Text("new"), Image(url="https://x.test/i.png"))),
        Message("assistant", (CALL,)),
        Message("tool", (ToolResult("c1", "f", (Text("r"), IMAGE)),)),
    ]
    found = adapter.segments(sent(*history, definitions=[Definition("f", "d", {})]).body)
    assert found == [
        Segment("system", "S"),
        Segment("history", "old", 0),
        Segment("assistant", "answer", 1),
        Segment("user", "new", 2),
        Segment("images", "", 2),
        Segment("tool_calls", "f", 3),
        Segment("tool_calls", '{"a":1}', 3),
        Segment("tool_results", "r", 4),
        Segment("images", "", 4),
        Segment("tools", '{"name":"f","description":"d"}', tool="f"),
    ]


def test_segments_of_a_body_that_another_client_wrote_are_read_too():
    body = {
        "system_instruction": {"parts": {"text": "S"}},
        "contents": {"parts": {"text": "hi"}},
        "tools": [{"function_declarations": [{"name": "f"}]}, {"googleSearch": {}}],
    }
    assert adapter.segments(body) == [
        Segment("system", "S"),
        Segment("user", "hi", 0),
        Segment("tools", '{"name":"f"}', tool="f"),
        Segment("tools", '{"googleSearch":{}}'),
    ]
