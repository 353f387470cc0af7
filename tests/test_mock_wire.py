import functools
import json
import re
import time
from typing import get_type_hints

import pytest
import wires

from nb_agent import mock, tokens
from nb_agent.adapters import chat_completions as adapter
from nb_agent.errors import ProviderError
from nb_agent.messages import Definition, Message, Request, Text, ToolCall
from nb_agent.mock import chat_completions as writer
from nb_agent.mock import wire
from nb_agent.mock.chat_completions import checks
from nb_agent.mock.wire import Draft, Usage

WEATHER = Definition(
    "get_weather",
    "Get the weather for a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
PARIS = [{"role": "user", "content": "Weather in Paris?"}]
BOTH = [{"role": "user", "content": "Weather in Paris and Rome?"}]
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": WEATHER.description, "parameters": WEATHER.parameters},
}


def body(messages=PARIS, *, tools=True, **more):
    return {"model": "mock", "messages": messages, **({"tools": [TOOL]} if tools else {}), **more}


def asked(request, path="/v1/chat/completions"):
    answered = mock.answer(path, json.dumps(request).encode())
    return answered.status, b"".join(answered.chunks)


def whole(**more):
    status, content = asked(body(**more))
    assert status == 200, content
    return json.loads(content)


def chunks(**more):
    status, content = asked(body(stream=True, **more))
    assert status == 200, content
    lines = content.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


received = functools.partial(wires.received, "chat_completions")


# ------------------------------------------------------------------------------------------------- both ends of the wire

DRAFTS = [
    Draft("Hello, 京都 🙂\n\n- a", (), "stop"),
    Draft("", wires.CALLS[:1], "tool_calls"),
    Draft("", wires.CALLS, "tool_calls"),
    Draft("First I look.", wires.CALLS, "tool_calls"),
    Draft("cut o", (), "length"),
    Draft("", (ToolCall("call_3", "save", '{"text":"cut o'),), "length"),
]


@pytest.mark.parametrize("draft", DRAFTS, ids=range(len(DRAFTS)))
def test_the_adapter_reads_what_the_writer_wrote(draft):
    request = {"model": "mock", "messages": [], "stream_options": {"include_usage": True}}
    usage = Usage(7, 5)
    streamed = b"".join(frame.payload for frame in writer.stream(request, [draft], usage, "seed"))
    unstreamed = json.dumps(writer.whole(request, [draft], usage, "seed")).encode()
    for reply in (received(streamed), received(unstreamed)):
        assert reply.message.text == draft.text
        assert reply.message.tool_calls == draft.calls
        assert reply.finish == draft.finish
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 5)


def test_a_request_of_the_adapter_is_read_back_whole():
    call = ToolCall("call_1", "get_weather", '{"city":"Paris"}')
    history = [Message.of("system", "Be brief."), Message.of("user", "Weather?"), Message("assistant", (Text("Look."), call))]
    request = json.loads(adapter.request([*history], [WEATHER], model="mock", settings={"n": 2, "stop": "x"}).content)
    request["messages"].append({"role": "tool", "tool_call_id": "call_1", "content": "18"})
    ask = writer.read(request)
    assert list(ask.messages[:3]) == history
    assert (ask.messages[3].tool_result.name, ask.messages[3].text) == ("get_weather", "18")
    assert (ask.tools, ask.copies, ask.stop) == ((WEATHER,), 2, ("x",))


# ------------------------------------------------------------------------------------------------------------ whole, streamed


def test_streamed_and_whole_are_the_same_answer():
    for messages in (PARIS, BOTH, [{"role": "user", "content": "hello"}]):
        answer = whole(messages=messages)
        streamed = received(asked(body(messages, stream=True, stream_options={"include_usage": True}))[1])
        reply = received(json.dumps(answer).encode())
        assert (streamed.message, streamed.finish, streamed.usage) == (reply.message, reply.finish, reply.usage)
        assert streamed.id == answer["id"]


def test_the_same_request_gets_the_same_answer_and_another_one_other_ids():
    assert whole() == whole()
    ids = [call["id"] for messages in (PARIS, BOTH) for call in whole(messages=messages)["choices"][0]["message"]["tool_calls"]]
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"call_[A-Za-z0-9]{24}", one) for one in ids)


def test_a_single_call_begins_in_the_chunk_of_the_role_and_its_arguments_come_in_pieces():
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks()]
    first = deltas[0]["tool_calls"][0]
    assert (deltas[0]["role"], deltas[0]["content"]) == ("assistant", None)
    assert (first["function"]["name"], first["function"]["arguments"], first["type"]) == ("get_weather", "", "function")
    pieces = [delta["tool_calls"][0] for delta in deltas[1:-1]]
    assert len(pieces) > 2
    assert all("id" not in piece and "name" not in piece["function"] for piece in pieces)
    assert "".join(piece["function"]["arguments"] for piece in pieces) == '{"city":"Paris"}'
    assert deltas[-1] == {}


def test_several_calls_come_one_after_the_other_behind_a_chunk_of_their_own_for_the_role():
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(messages=BOTH)]
    assert "tool_calls" not in deltas[0]
    places = [call["index"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert places == sorted(places)
    assert set(places) == {0, 1}


def test_usage_comes_in_a_last_chunk_without_choices_only_where_it_is_asked_for():
    assert all("usage" not in chunk for chunk in chunks())
    counted = chunks(stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in counted[:-1]] == [None] * (len(counted) - 1)
    assert counted[-1]["choices"] == []
    assert counted[-1]["usage"] == whole()["usage"]


def test_usage_is_what_our_own_counter_counts():
    request = body(BOTH)
    answer = json.loads(asked(request)[1])
    message = received(json.dumps(answer).encode()).message
    assert answer["usage"]["prompt_tokens"] == tokens.breakdown(adapter.segments(request), model="mock").total
    assert answer["usage"]["completion_tokens"] == tokens.breakdown_reply(message, model="mock").total
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]


def test_several_choices_are_alike_but_for_their_ids_and_come_by_turns():
    answer = whole(n=2)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    first, second = (choice["message"]["tool_calls"][0] for choice in answer["choices"])
    assert first["function"] == second["function"]
    assert first["id"] != second["id"]
    assert answer["usage"]["completion_tokens"] == 2 * whole()["usage"]["completion_tokens"]
    assert [chunk["choices"][0]["index"] for chunk in chunks(n=2)][:4] == [0, 1, 0, 1]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_limit_cuts_the_text_or_the_arguments(field):
    text = whole(messages=[{"role": "user", "content": "hello"}], **{field: 4})
    assert text["choices"][0]["finish_reason"] == "length"
    assert text["usage"]["completion_tokens"] <= 4
    assert text["choices"][0]["message"]["content"].startswith("Hello")
    call = whole(**{field: 4})["choices"][0]
    assert call["finish_reason"] == "length"
    arguments = call["message"]["tool_calls"][0]["function"]["arguments"]
    assert '{"city":"Paris"}'.startswith(arguments)
    assert len(arguments) < len('{"city":"Paris"}')
    assert whole(**{field: 500})["choices"][0]["finish_reason"] == "tool_calls"


def test_a_limit_too_small_for_a_name_leaves_no_call():
    choice = whole(max_tokens=1)["choices"][0]
    assert (choice["finish_reason"], choice["message"].get("tool_calls"), choice["message"]["content"]) == ("length", None, "")


def test_a_stop_sequence_ends_the_text_before_it():
    choice = whole(messages=[{"role": "user", "content": "hello"}], tools=False, stop=["mock"])["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello! I am the ", "stop")


def test_a_named_tool_is_called_and_finishes_with_stop_as_openai_does():
    other = {
        "type": "function",
        "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    choice = {"type": "function", "function": {"name": "get_weather"}}
    answer = json.loads(asked({**body(), "tools": [other, TOOL], "tool_choice": choice})[1])["choices"][0]
    assert answer["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert answer["finish_reason"] == "stop"
    assert "tool_calls" not in whole(tool_choice="none")["choices"][0]["message"]


def test_allowed_tools_are_the_only_ones_that_are_called():
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
    assert "tool_calls" not in whole(tool_choice=choice)["choices"][0]["message"]


def test_the_window_bounds_the_prompt_and_what_is_left_bounds_the_answer():
    long = [{"role": "user", "content": "word " * 1100}]
    assert asked(body(long))[0] == 200
    status, content = asked({**body(long), "model": "mock-1k"})
    assert (status, json.loads(content)["error"]["code"], json.loads(content)["error"]["param"]) == (
        400,
        "context_length_exceeded",
        "messages",
    )
    nearly = {"model": "mock-1k", "messages": [{"role": "user", "content": "word " * 1010}]}
    answer = json.loads(asked(nearly)[1])
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] <= 1024
    assert (mock.window("mock-1k"), mock.window("mock"), mock.window("gpt-4o")) == (1024, 8192, 8192)


def test_the_slow_model_is_paced_in_short_sleeps(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    request = {**body([{"role": "user", "content": "Tell me a long story"}], stream=True), "model": "mock-slow"}
    answer = mock.answer("/chat/completions", json.dumps(request).encode())
    assert slept == []
    next(answer.chunks)
    first = sum(slept)
    b"".join(answer.chunks)
    assert 0 < first < 0.2
    assert max(slept) <= 0.05
    assert 5 < sum(slept) < 20
    assert asked({**request, "model": "mock"})[0] == 200
    slept.clear()
    asked({**request, "model": "mock"})
    assert slept == []


def test_fragments_put_together_are_the_text():
    for text in ("", " ", "a", "Hello, world! 你好 🙂\n\n  x_y", '{"a":"' + "x" * 50 + '"}', "\ud83d", "\t\r\n"):
        assert "".join(wire.fragments(text)) == text
    assert max(map(len, wire.fragments("x" * 100))) < 20


# ----------------------------------------------------------------------------------------------------------------- refusals

CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
USER = {"role": "user", "content": "x"}

REFUSED = [
    ({"messages": None}, "messages", "empty array"),
    ({"messages": []}, "messages", "empty array"),
    ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role", "'function'"),
    ({"messages": ["x"]}, "messages[0].role", "None"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "null"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "3"),
    ({"messages": [{"role": "user", "content": []}]}, "messages[0].content", "content parts"),
    ({"messages": [USER, {"role": "assistant", "content": None}]}, "messages[1].content", "null"),
    ({"messages": [USER, {"role": "assistant", "content": None, "tool_calls": []}]}, "messages[1].content", "null"),
    ({"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": []}]}, "messages[1].tool_calls", "minimum length 1"),
    ({"messages": [USER, RESULT]}, "messages[1].role", "preceding message with 'tool_calls'"),
    ({"messages": [USER, CALLED]}, "messages[2].role", "call_1"),
    ({"messages": [USER, CALLED, USER, RESULT]}, "messages[2].role", "call_1"),
    ({"messages": [USER, CALLED, RESULT, RESULT]}, "messages[3].tool_call_id", "Duplicate"),
    ({"messages": [USER, CALLED, RESULT, USER, RESULT]}, "messages[4].role", "preceding"),
    ({"messages": [USER, CALLED, {**RESULT, "content": [{"type": "image_url"}]}]}, "messages[2].content", "text only"),
    ({"messages": [USER, CALLED, {**RESULT, "tool_call_id": None}]}, "messages[2].tool_call_id", "Missing"),
    (
        {"messages": [USER, {**CALLED, "tool_calls": [{**CALL, "id": "x" * 41}]}]},
        "messages[1].tool_calls[0].id",
        "at most 40 characters, but got 41",
    ),
    ({"tools": []}, "tools", "empty array"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "Missing"),
    ({"tools": [{"type": "function", "function": {"name": "a.b"}}]}, "tools[0].function.name", "'a.b'"),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]},
        "tools[0].function.parameters",
        "'type: \"object\"'",
    ),
    ({"tools": [TOOL] * 129}, "tools", "got 129"),
    ({"tools": None, "tool_choice": "required"}, "tool_choice", "only allowed when 'tools' are specified"),
    ({"tools": None, "parallel_tool_calls": False}, "parallel_tool_calls", "only allowed"),
    ({"tool_choice": {"type": "function", "function": {"name": "nope"}}}, "tool_choice", "'nope'"),
    ({"tool_choice": "any"}, "tool_choice", "'any'"),
    ({"temperature": 3}, "temperature", "<= 2"),
    ({"n": 0}, "n", ">= 1"),
    ({"max_tokens": 0}, "max_tokens", ">= 1"),
    ({"max_tokens": "9"}, "max_tokens", "an integer"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "'stream' is enabled"),
    ({"top_k": 5}, "top_k", "Unrecognized request argument supplied: top_k"),
    ({"functions": [{}]}, "functions", "use 'tools'"),
    ({"model": ""}, "model", "model parameter"),
]


@pytest.mark.parametrize(("change", "param", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_real_server_refuses_is_refused_by_name(change, param, words):
    request = {key: value for key, value in {**body(), **change}.items() if value is not None or key == "messages"}
    status, content = asked(request)
    error = json.loads(content)["error"]
    assert (status, error["param"], error["type"]) == (400, param, "invalid_request_error")
    assert words in error["message"]


@pytest.mark.parametrize(
    "messages",
    [
        [USER, CALLED, RESULT],
        [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, USER],
        [USER, {"role": "assistant", "content": ""}, USER],
        [USER, {**CALLED, "content": "I look."}, {**RESULT, "content": [{"type": "text", "text": "1"}]}, USER],
        [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:"}}]}],
        [USER, {**CALLED, "tool_calls": [CALL, {**CALL, "id": "b"}]}, {**RESULT, "tool_call_id": "b"}, RESULT],
    ],
)
def test_what_a_real_server_takes_is_taken(messages):
    assert asked(body(messages))[0] == 200


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_a_400(content):
    answered = mock.answer("/v1/chat/completions", content)
    assert answered.status == 400
    assert json.loads(b"".join(answered.chunks))["error"]["type"] == "invalid_request_error"


def test_an_unknown_path_is_a_404_that_names_the_known_one():
    status, content = asked({}, "/v1/nothing")
    assert status == 404
    assert "/v1/chat/completions" in json.loads(content)["error"]["message"]


def test_the_models_are_listed():
    status, content = asked({}, "/v1/models")
    assert (status, [model["id"] for model in json.loads(content)["data"]]) == (200, ["mock", "mock-slow", "mock-1k"])
    assert json.loads(asked({}, "/v1/models/mock-1k")[1])["id"] == "mock-1k"
    assert asked({}, "/v1/models/none")[0] == 404


def test_the_fields_of_the_official_client_are_all_known():
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    assert get_type_hints(CompletionCreateParamsNonStreaming).keys() - {"stream"} <= checks.FIELDS


# ------------------------------------------------------------------------------------------------------------ in the process


def test_sending_in_the_process_gives_the_bytes_of_the_answer():
    request = Request("chat_completions", "/chat/completions", body())
    assert b"".join(mock.send(request)) == asked(body())[1]


def test_sending_what_is_refused_raises_with_the_kind_of_the_fault():
    with pytest.raises(ProviderError, match="maximum context length is 1024") as long:
        mock.send(
            Request(
                "chat_completions", "/chat/completions", {**body([{"role": "user", "content": "word " * 2000}]), "model": "mock-1k"}
            )
        )
    assert long.value.kind == "context_length"
    with pytest.raises(ProviderError, match="Unrecognized request argument supplied: top_k") as unknown:
        mock.send(Request("chat_completions", "/chat/completions", body(top_k=1)))
    assert (unknown.value.kind, unknown.value.retryable) == ("bad_request", False)
