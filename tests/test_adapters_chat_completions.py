"""The Chat Completions adapter alone: what it writes, what it reads, whole and piece by piece."""

import functools
import json

import pytest
import wires

from nb_agent.adapters import chat_completions, receive
from nb_agent.errors import ProviderError
from nb_agent.messages import Definition, Image, Message, Opaque, Segment, Text, Thinking, ToolCall, ToolResult
from nb_agent.usage import Usage


def stream(events, *, done=True):
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


read = functools.partial(wires.read, "chat_completions")

STREAMS = ["B01", "B02", "B04", "B06", "B07", "B08", "B16"]


@pytest.mark.parametrize("case", STREAMS)
def test_what_imitating_servers_stream_is_read_as_it_was_meant(case, cases):
    given, expect = cases[case]["given"], cases[case]["expect"]
    reply, _ = read(stream(given["events"], done=given["done_marker"]))
    assert reply.message.text == expect["text"]
    assert wires.called(reply) == expect["tool_calls"]
    assert reply.finish == expect["finish"]
    if "usage" in expect:
        assert (reply.usage.input, reply.usage.output) == (expect["usage"]["input"], expect["usage"]["output"])


@pytest.mark.parametrize("case", STREAMS)
def test_a_stream_reads_the_same_wherever_the_network_cuts_it(case, cases):
    given = cases[case]["given"]
    raw = stream(given["events"], done=given["done_marker"]).replace(b"\n", b"\r\n")
    whole = read(raw)[0]
    for place in range(1, len(raw), 7):
        assert read(raw[:place], raw[place:])[0] == whole


def test_comments_retry_lines_and_event_names_are_no_payload(cases):
    reply, _ = read(cases["B10"]["given"]["text"].encode())
    assert (reply.message.text, reply.finish) == ("rain", "stop")


def test_a_character_torn_apart_by_two_reads_is_whole_again(cases):
    reply, _ = read(*map(bytes.fromhex, cases["B12"]["given"]["reads"]))
    assert reply.message.text == cases["B12"]["expect"]["text"]


def test_two_choices_are_never_mixed_and_the_first_is_chosen(cases):
    reply, pieces = read(stream(cases["B09"]["given"]["events"]))
    assert reply.message.text == "Hello"
    assert [other.text for other in reply.others] == ["Bye"]
    assert "".join(p.text for p in pieces if p.choice == 0) == "Hello"


@pytest.mark.parametrize(("code", "retryable"), [(503, True), (400, False)])
@pytest.mark.parametrize("choices", [None, []])
def test_an_error_in_the_middle_of_a_stream_is_raised_with_its_words(code, retryable, choices, cases):
    first, error = json.loads(json.dumps(cases["B14"]["given"]["events"]))
    error["error"]["code"] = code
    if choices is not None:
        error["choices"] = choices
    seen = []
    with pytest.raises(ProviderError, match="worker ran out of slots") as caught:
        seen.extend(pieces for _, pieces in receive("chat_completions", [stream([first, error], done=False)]))
    assert (caught.value.status, caught.value.retryable) == (code, retryable)
    assert [p.text for pieces in seen for p in pieces] == ["Let me "]


def test_a_stream_that_breaks_off_is_an_error(cases):
    with pytest.raises(ProviderError) as caught:
        read(stream(cases["B15"]["given"]["events"], done=False))
    assert (caught.value.kind, caught.value.retryable) == ("stream_interrupted", True)


def test_a_stream_that_breaks_off_inside_an_event_is_an_error(cases):
    raw = stream(cases["B15"]["given"]["events"], done=False)
    with pytest.raises(ProviderError):
        read(raw[:-20])


def test_a_finish_reason_without_the_end_marker_is_a_whole_answer(cases):
    events = [*cases["B15"]["given"]["events"][:1], {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
    reply, _ = read(stream(events, done=False))
    assert [call.name for call in reply.message.tool_calls] == ["note_add"]


def test_the_end_marker_without_a_finish_reason_vouches_only_for_whole_arguments(cases):
    events = cases["B15"]["given"]["events"]
    assert read(stream(events[:1]))[0].finish == "tool_calls"
    with pytest.raises(ProviderError, match="middle of a call's arguments"):
        read(stream(events))


def test_reasoning_goes_back_to_the_server_that_sent_it_and_to_no_other(cases):
    reply, _ = read(stream(cases["B22"]["given"]["events"]))
    thinking = next(part for part in reply.message.parts if isinstance(part, Thinking))
    assert (thinking.text, reply.message.text) == ("Need depth.", "")
    sent = chat_completions.request([reply.message], (), model="m").body["messages"][0]
    assert sent["reasoning_content"] == "Need depth."
    foreign = Message("assistant", (Thinking("Need depth.", extra={"wire": "anthropic_messages", "signature": "x"}), Text("4")))
    assert "Need depth" not in json.dumps(chat_completions.request([foreign], (), model="m").body)


# -------------------------------------------------------------------------------------------------- endings


@pytest.mark.parametrize(("case", "finish"), [("C01", "tool_calls"), ("C03", "stop"), ("C04", "length"), ("C06", "length")])
def test_what_the_message_holds_decides_between_stop_and_tool_calls(case, finish, cases):
    assert chat_completions.decode(cases[case]["given"]["response"]).finish == finish


def test_a_refusal_and_a_filtered_answer_are_never_a_plain_stop(cases):
    bodies = [item["openai-chat-response"] for item in cases["C12"]["given"]["items"] if "openai-chat-response" in item]
    replies = [chat_completions.decode(body) for body in bodies]
    assert [reply.finish for reply in replies] == ["content_filter", "content_filter"]
    assert replies[0].message.text == "I can't help with that."


def test_an_unknown_finish_reason_is_not_taken_for_stop():
    body = {"choices": [{"message": {"content": "Well"}, "finish_reason": "cosmic_ray"}]}
    reply = chat_completions.decode(body)
    assert (reply.finish, reply.raw_finish, reply.message.text) == ("error", "cosmic_ray", "Well")
    assert "cosmic_ray" in reply.notices[0]


@pytest.mark.parametrize("content", [b"", b"data: [DO", b"[1]", b'{"choices": 3', b'{"id": "x"}', b"<html>busy</html>"])
def test_what_is_no_answer_is_an_error_and_never_an_empty_success(content):
    with pytest.raises(ProviderError):
        read(content)


def test_a_server_that_does_not_stream_although_asked_is_understood():
    body = {"id": "r", "model": "m", "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]}
    assert read(json.dumps(body).encode())[0].message.text == "hi"


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"index": None, "delta": None}]},
        {"choices": [{"delta": {"tool_calls": [None], "content": {"text": "?"}}}]},
        {"choices": [{"delta": {"tool_calls": None, "content": [None, 3]}}], "usage": "none"},
    ],
)
def test_odd_chunks_are_passed_over(odd):
    chunks = [odd, {"choices": [{"delta": {"content": "ok"}}]}, odd, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    reply, _ = read(stream(chunks))
    assert (reply.message.text, reply.finish) == ("ok", "stop")


def test_calls_without_an_index_are_told_apart_by_their_ids():
    def piece(**call):
        return {"choices": [{"delta": {"tool_calls": [call]}}]}

    reply, _ = read(
        stream(
            [
                piece(id="a", function={"name": "f", "arguments": '{"n":'}),
                piece(function={"arguments": " 1}"}),
                piece(id="b", function={"name": "f", "arguments": '{"n":'}),
                piece(id="b", function={"arguments": " 2}"}),
                piece(index=None, function={"name": "f", "arguments": '{"n": 3}'}),
            ]
        )
    )
    assert [(c.name, json.loads(c.arguments)["n"]) for c in reply.message.tool_calls] == [("f", 1), ("f", 2), ("f", 3)]


def test_usage_is_split_into_buckets_that_add_up():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    body = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage}
    assert chat_completions.decode(body).usage == Usage(input=40, cache_read=60, output=10, reasoning=20)


# -------------------------------------------------------------------------------------------------- writing

CALL = ToolCall("c1", "f", '{"a": 1}')


def sent(*messages, definitions=()):
    return chat_completions.request(messages, definitions, model="m").body["messages"]


def test_an_assistant_message_that_only_calls_has_null_for_its_content():
    assert sent(Message("assistant", (CALL,)))[0]["content"] is None


def test_arguments_go_out_as_the_string_that_the_model_wrote_and_never_empty():
    calls = sent(Message("assistant", (CALL, ToolCall("c2", "g", ""))))[0]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"a": 1}', "{}"]


def test_what_stood_beside_a_call_goes_back_to_this_format_and_to_no_other():
    signed = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "k", "extra_content": signed, "function": {"name": "f", "arguments": "{}"}}
    reply = chat_completions.decode({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    assert sent(reply.message)[0]["tool_calls"][0]["extra_content"] == signed
    foreign = ToolCall("k", "f", "{}", extra={"wire": "gemini_generate", "part": {"thoughtSignature": "x"}})
    assert set(sent(Message("assistant", (foreign,)))[0]["tool_calls"][0]) == {"id", "type", "function"}


def test_reasoning_of_another_format_is_left_out_and_said():
    history = [Message("assistant", (Opaque("anthropic_messages", {"type": "redacted_thinking"}), Text("4")))]
    request = chat_completions.request(history, (), model="m")
    assert request.notices == ("reasoning of another wire format was left out",)
    assert request.body["messages"] == [{"role": "assistant", "content": "4"}]


def test_images_of_results_follow_the_whole_group_of_results(cases):
    image = Image(data="iVBORw0KGgo=")
    group = [
        Message("user", (Text("show both"),)),
        Message("assistant", (ToolCall("c1", "plot"), ToolCall("c2", "text"))),
        Message("tool", (ToolResult("c1", "plot", (Text("chart"), image)),)),
        Message("tool", (ToolResult("c2", "text", (Text("plain"),)),)),
    ]
    messages = sent(*group, Message.of("user", "and now?"))
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert messages[2]["content"].startswith("chart")
    assert "image" in messages[2]["content"]
    assert messages[4]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    assert sent(*group)[-1] == messages[4]


def test_the_body_is_the_bytes_that_are_sent():
    tool = Definition("get", "Get 京都.", {"type": "object", "properties": {}})
    request = chat_completions.request(
        [Message.of("user", "Grüße 🌲 \ud800")], [tool], model="m", stream=True, settings={"top_p": 1}
    )
    body = json.loads(request.content)
    assert body["messages"][0]["content"] == "Grüße 🌲 ?"
    assert list(body) == ["model", "messages", "tools", "stream", "stream_options", "top_p"]
    assert body["tools"] == request.body["tools"]


def test_nothing_is_sent_unasked():
    assert set(chat_completions.request([Message.of("user", "hi")], (), model="m").body) == {"model", "messages"}


@pytest.mark.parametrize("model", ["gpt-5-mini", "o3", "o1-preview", "openai/gpt-5.1", "azure:o4-mini"])
def test_reasoning_models_get_the_limit_under_its_other_name_and_nothing_that_they_refuse(model):
    request = chat_completions.request([], (), model=model, settings={"max_tokens": 500, "temperature": 0.2, "seed": 1})
    assert request.body == {"model": model, "messages": [], "max_completion_tokens": 500, "seed": 1}
    assert request.notices == (f"temperature was left out, because {model} refuses it",)


@pytest.mark.parametrize("model", ["gpt-4o", "mistral-large", "foo3", "gpt-50", "qwen3:8b"])
def test_other_models_get_the_settings_as_they_are(model):
    request = chat_completions.request([], (), model=model, settings={"max_tokens": 500, "temperature": 0.2})
    assert request.body == {"model": model, "messages": [], "max_tokens": 500, "temperature": 0.2}
    assert request.notices == ()


def test_a_message_is_encoded_once_however_often_it_is_sent():
    message = Message.of("user", "hi")
    first, second = (chat_completions.request([message], (), model="m").body["messages"][0] for _ in range(2))
    assert first is second


def test_a_reply_that_was_read_is_written_back_as_it_came():
    reply = chat_completions.decode(
        {
            "choices": [
                {"message": {"content": "On it.", "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": "{ }"}}]}}
            ]
        }
    )
    (written,) = sent(reply.message)
    assert written == {
        "role": "assistant",
        "content": "On it.",
        "tool_calls": [{"id": "k", "type": "function", "function": {"name": "f", "arguments": "{ }"}}],
    }


def test_ids_that_are_missing_or_given_twice_are_made_up_and_differ_from_turn_to_turn():
    call = {"id": "", "function": {"name": "f", "arguments": "{}"}}
    twice = {"id": "same", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "choices": [{"message": {"tool_calls": [call, twice | {"index": 1}, twice | {"index": 2}]}, "finish_reason": "tool_calls"}]
    }
    ids = [[c.id for c in chat_completions.decode(body, turn=turn).message.tool_calls] for turn in (3, 5)]
    assert ids[0][1] == "same"
    assert len({*ids[0], *ids[1]}) == 5


def test_the_segments_say_which_text_belongs_to_which_part():
    history = [
        Message.of("system", "S"),
        Message.of("user", "old"),
        Message.of("assistant", "answer"),
        Message("user", (Text("new"), Image(url="https://x.test/i.png"))),
        Message("assistant", (CALL,)),
        Message("tool", (ToolResult("c1", "f", (Text("r"),)),)),
    ]
    tool = Definition("f", "d", {"type": "object", "properties": {}})
    found = chat_completions.segments(chat_completions.request(history, [tool], model="m").body)
    assert [(s.part, s.message) for s in found if s.text or s.part == "images"] == [
        ("system", 0),
        ("history", 1),
        ("assistant", 2),
        ("user", 3),
        ("images", 3),
        ("tool_calls", 4),
        ("tool_calls", 4),
        ("tool_results", 5),
        ("tools", None),
    ]
    assert found[-1] == Segment("tools", found[-1].text, tool="f")
