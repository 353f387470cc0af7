"""The mock model over Anthropic Messages: judged by our own adapter, and over HTTP by the official client."""

import functools
import json
from typing import get_type_hints

import anthropic
import httpx
import pytest
import wires
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from nb_agent import mock, tokens
from nb_agent.adapters import anthropic_messages as adapter
from nb_agent.agent import Agent
from nb_agent.errors import ProviderError
from nb_agent.kit.files import file_tools
from nb_agent.lessons import demo
from nb_agent.messages import Definition, Image, Message, Request, Text, Thinking, ToolCall, ToolResult
from nb_agent.mock import anthropic_messages as writer
from nb_agent.mock import server
from nb_agent.mock.anthropic_messages import checks
from nb_agent.mock.wire import Draft, Refused, Usage


def function(name, description, **parameters):
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"name": name, "description": description, "input_schema": schema}


WEATHER = function("get_weather", "Get the current weather for a city.", city="Name of the city, e.g. Paris")
PARIS = [{"role": "user", "content": "Weather in Paris?"}]
HELLO = [{"role": "user", "content": "hello"}]


def body(messages=PARIS, *, tools=True, **more):
    return {"model": "mock", "max_tokens": 1000, "messages": messages, **({"tools": [WEATHER]} if tools else {}), **more}


def asked(request, path="/v1/messages"):
    answered = mock.answer(path, json.dumps(request).encode())
    return answered.status, b"".join(answered.chunks)


def whole(*given, **more):
    status, content = asked(body(*given, **more))
    assert status == 200, content
    return json.loads(content)


def events(*given, **more):
    status, content = asked(body(*given, stream=True, **more))
    assert status == 200, content
    frames = content.decode().split("\n\n")
    assert frames.pop() == ""
    made = []
    for frame in frames:
        name, payload = frame.split("\n")
        made.append(json.loads(payload.removeprefix("data: ")))
        assert name == f"event: {made[-1]['type']}"
    return made


received = functools.partial(wires.received, "anthropic_messages")


# ------------------------------------------------------------------------------------------------- both ends of the wire

DRAFTS = [
    Draft("Hello, 京都 🙂\n\n- a", (), "stop"),
    Draft("", (), "stop"),
    Draft("", wires.CALLS[:1], "tool_calls"),
    Draft("", wires.CALLS, "tool_calls"),
    Draft("First I look.", wires.CALLS, "tool_calls"),
    Draft("cut o", (), "length"),
    Draft("", (ToolCall("call_3", "save", '{"text":"cut o'),), "length"),
    Draft("", (ToolCall("call_3", "save", '{"text":"x",'), wires.CALLS[1]), "tool_calls"),
    Draft("I can't.", (), "content_filter"),
    Draft("Wait.", (), "paused"),
]


@pytest.mark.parametrize("thinking", [None, {"type": "adaptive"}, {"type": "adaptive", "display": "omitted"}])
@pytest.mark.parametrize("draft", DRAFTS, ids=range(len(DRAFTS)))
def test_the_adapter_reads_what_the_writer_wrote(draft, thinking):
    request = {"model": "mock", "max_tokens": 50, "messages": []} | ({"thinking": thinking} if thinking else {})
    usage = Usage(7, 5)
    streamed = b"".join(frame.payload for frame in writer.stream(request, [draft], usage, "seed"))
    unstreamed = json.dumps(writer.whole(request, [draft], usage, "seed")).encode()
    for reply in (received(streamed), received(unstreamed)):
        assert reply.message.text == draft.text
        assert reply.message.tool_calls == draft.calls
        assert reply.finish == draft.finish
        assert (reply.usage.input_tokens, reply.usage.output) == (7, 5)
        assert len([part for part in reply.message.parts if isinstance(part, Thinking)]) == bool(thinking)
    assert received(streamed) == received(unstreamed)


def test_a_request_of_the_adapter_is_read_back_whole():
    tool = Definition("get_weather", "Get it.", {"type": "object", "properties": {"city": {"type": "string"}}})
    call, other = ToolCall("call_1", "get_weather", '{"city":"Paris"}'), ToolCall("call_2", "get_weather", "{}")
    history = [
        Message.of("system", "Be brief."),
        Message("user", (Text("Weather?"), Image(data="iVBORw0KGgo="))),
        Message("assistant", (Text("Look."), call, other)),
        Message("tool", (ToolResult("call_1", "get_weather", (Text("18"),)),)),
        Message("tool", (ToolResult.failure(other, "no city", code="invalid_arguments"),)),
        Message.of("user", "and?"),
    ]
    settings = {"stop": "x", "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 9}
    ask = writer.read(json.loads(adapter.request(history, [tool], model="mock", settings=settings).content))
    assert list(ask.messages[:1]) + list(ask.messages[2:4]) == history[:1] + history[2:4]
    assert ask.messages[4].text == history[4].text
    assert ask.messages[5:] == (history[5],)
    assert ask.messages[1].text == "Weather?"
    assert (ask.tools, ask.stop, ask.choice, ask.parallel, ask.limit) == ((tool,), ("x",), "required", False, 9)


def test_a_result_that_is_only_marked_as_an_error_is_read_as_a_failure():
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True}
    messages = [*PARIS, {"role": "assistant", "content": [{**USE, "id": "t1"}]}, {"role": "user", "content": [result]}]
    assert json.loads(writer.read(body(messages)).messages[-1].text) == {"success": False, "error": "no such file"}


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        (None, ("auto", False, True, 2)),
        ({"type": "any", "disable_parallel_tool_use": True}, ("required", False, False, 2)),
        ({"type": "tool", "name": "get_weather"}, ("required", True, True, 1)),
        ({"type": "none"}, ("none", False, True, 2)),
    ],
)
def test_the_choice_of_tools_is_read(choice, read):
    request = body() | {"tools": [function("other", "d"), WEATHER]} | ({"tool_choice": choice} if choice else {})
    ask = writer.read(request)
    assert (ask.choice, ask.named, ask.parallel, len(ask.tools)) == read


# ------------------------------------------------------------------------------------------------------------ whole, streamed


def test_streamed_and_whole_are_the_same_answer():
    for messages in (PARIS, [{"role": "user", "content": "Weather in Paris and Rome?"}], HELLO):
        assert received(asked(body(messages, stream=True))[1]) == received(json.dumps(whole(messages)).encode())


def test_the_events_come_in_the_order_of_the_real_server():
    kinds = [event["type"] for event in events()]
    assert kinds[:4] == ["message_start", "content_block_start", "ping", "content_block_delta"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    opened = events()[0]["message"]
    assert (opened["content"], opened["stop_reason"], opened["usage"]["output_tokens"]) == ([], None, 1)
    deltas = [event["delta"] for event in events() if event["type"] == "content_block_delta"]
    assert deltas[0] == {"type": "input_json_delta", "partial_json": ""}
    assert "".join(delta["partial_json"] for delta in deltas) == '{"city":"Paris"}'
    both = [event for event in events([{"role": "user", "content": "Weather in Paris and Rome?"}]) if "index" in event]
    assert [event["index"] for event in both] == sorted(event["index"] for event in both)
    assert [event["content_block"]["input"] for event in both if event["type"] == "content_block_start"] == [{}, {}]


def test_a_call_without_arguments_has_one_empty_delta():
    request = {"model": "mock", "max_tokens": 9}
    frames = [frame.payload for frame in writer.stream(request, [Draft("", wires.CALLS[1:], "tool_calls")], Usage(1, 1), "s")]
    assert sum(b"input_json_delta" in frame for frame in frames) == 1


def test_usage_is_what_our_own_counter_counts():
    for more in ({}, {"thinking": {"type": "adaptive"}}):
        request = body(system="Be brief.", **more)
        reply = received(asked(request)[1])
        assert reply.usage.input_tokens == tokens.breakdown(adapter.segments(request), model="mock").total
        assert reply.usage.output_tokens == tokens.breakdown_reply(reply.message, model="mock").total


def test_the_limit_cuts_the_text_or_the_arguments_and_the_window_has_its_own_word():
    text = whole(HELLO, max_tokens=4)
    assert (text["stop_reason"], text["usage"]["output_tokens"]) == ("max_tokens", 4)
    call = received(asked(body(stream=True, max_tokens=4))[1])
    assert call.finish == "length"
    assert '{"city":"Paris"}'.startswith(call.message.tool_calls[0].arguments)
    assert whole(HELLO, max_tokens=0)["content"] == []
    nearly = [{"role": "user", "content": "word " * 1010}]
    assert whole(nearly, tools=False, model="mock-1k")["stop_reason"] == "model_context_window_exceeded"


def test_a_prompt_that_does_not_fit_is_refused_in_the_words_of_the_server():
    status, content = asked(body([{"role": "user", "content": "word " * 1100}], model="mock-1k"))
    error = json.loads(content)["error"]
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith("prompt is too long: ")
    assert error["message"].endswith(" tokens > 1024 maximum")


def test_tokens_are_counted_also_of_what_does_not_fit():
    counted = {"model": "mock-1k", "messages": [{"role": "user", "content": "word " * 1100}]}
    status, content = asked(counted, "/v1/messages/count_tokens")
    assert (status, json.loads(content)) == (
        200,
        {"input_tokens": tokens.breakdown(adapter.segments(counted), model="mock").total},
    )
    status, content = asked(counted | {"max_tokens": 5}, "/v1/messages/count_tokens")
    assert (status, json.loads(content)["error"]["message"]) == (400, "max_tokens: Extra inputs are not permitted")


def test_thinking_has_to_come_back_unchanged():
    on = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    reply = received(asked(body(**on))[1])
    thinking, call = reply.message.parts
    assert (type(thinking), call.name) == (Thinking, "get_weather")
    result = Message("tool", (ToolResult(call.id, call.name, (Text('{"temperature": 18}'),)),))
    history = [Message.of("user", "Weather in Paris?"), reply.message, result]
    settings = on | {"tools": [WEATHER]}

    def second(message):
        history[1] = message
        return b"".join(mock.send(adapter.request(history, (), model="mock", settings=settings)))

    assert received(second(reply.message)).finish == "stop"
    with pytest.raises(ProviderError, match=r"messages\.1\.content\.0: Invalid `signature` in `thinking` block"):
        second(Message("assistant", (Thinking(thinking.text + " ", thinking.extra), call)))
    assert "thinking" not in adapter.request([*history[:1], Message("assistant", (call,)), result], (), model="m", settings=on).body
    bare = [message | {"content": message["content"][-1:]} for message in adapter.request(history, (), model="m").body["messages"]]
    status, content = asked(body(messages=bare, **on))
    assert (status, "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in content.decode()) == (400, True)


# ----------------------------------------------------------------------------------------------------------------- refusals

USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
TEXT = {"type": "text", "text": "x"}
USER = {"role": "user", "content": "x"}
CALLED = {"role": "assistant", "content": [USE]}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}
ANSWERED = {"role": "user", "content": [RESULT]}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "Qk0="}}
THOUGHT = {"type": "thinking", "thinking": "a", "signature": "b"}


def said(*blocks, role="user"):
    return {"role": role, "content": list(blocks)}


REFUSED = [
    ({"messages": ...}, "messages: Field required"),
    ({"max_tokens": ...}, "max_tokens: Field required"),
    ({"model": ...}, "model: Field required"),
    ({"model": ""}, "model: "),
    ({"messages": []}, "messages: at least one message is required"),
    ({"messages": [{"role": "tool", "content": "x"}]}, 'messages.0.role: Unexpected role "tool"'),
    ({"messages": [{"role": "system", "content": "x"}, USER]}, 'messages.0.role: Unexpected role "system"'),
    ({"messages": ["x"]}, "messages.0.role: "),
    ({"messages": [{"role": "user", "content": None}]}, "messages.0.content: Input should be a valid list"),
    ({"messages": [{"role": "user", "content": ""}]}, "messages.0: all messages must have non-empty content"),
    ({"messages": [USER, said(role="assistant"), USER]}, "messages.1: all messages must have non-empty content"),
    ({"messages": [said({"type": "text", "text": ""})]}, "messages.0.content.0: text content blocks must be non-empty"),
    ({"messages": [said({"type": "text", "text": " \n"})]}, "text content blocks must contain non-whitespace text"),
    ({"messages": [said({"type": "text"})]}, "messages.0.content.0.text.text: Field required"),
    ({"system": [{"type": "text", "text": ""}]}, "system.0: text content blocks must be non-empty"),
    ({"system": 5}, "system: "),
    ({"messages": [USER, CALLED]}, "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"),
    ({"messages": [USER, CALLED, USER, ANSWERED]}, "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    ({"messages": [USER, ANSWERED]}, "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"),
    ({"messages": [USER, CALLED, ANSWERED, ANSWERED]}, "messages.3.content.0: unexpected `tool_use_id`"),
    ({"messages": [USER, CALLED, said(RESULT, RESULT)]}, "each tool_use must have a single result"),
    ({"messages": [USER, CALLED, said(TEXT, RESULT)]}, "messages.2: `tool_result` blocks must come first"),
    ({"messages": [USER, CALLED, ANSWERED, CALLED, ANSWERED]}, "messages.3.content.0: `tool_use` ids must be unique"),
    ({"messages": [USER, said({**USE, "id": "a.b"}, role="assistant")]}, "tool_use.id: String should match pattern"),
    ({"messages": [USER, said({**USE, "name": "a.b"}, role="assistant")]}, "tool_use.name: String should match pattern"),
    ({"messages": [USER, said({**USE, "input": "{}"}, role="assistant")]}, "tool_use.input: Input should be a valid dictionary"),
    ({"messages": [said(USE)]}, "`tool_use` blocks can only be in `assistant` messages"),
    ({"messages": [USER, said(PICTURE, role="assistant"), USER]}, "media_type: Input should be 'image/jpeg'"),
    ({"messages": [said({"type": "image", "source": "x"})]}, "image.source: Field required"),
    ({"messages": [USER, CALLED, said({**RESULT, "content": [PICTURE]})]}, "tool_result.content.0.image.source.base64.media_type"),
    ({"messages": [USER, CALLED, said({**RESULT, "content": [USE]})]}, "tool_result.content.0: Input tag 'tool_use'"),
    ({"messages": [USER, said(THOUGHT, TEXT, role="assistant"), USER]}, "Invalid `signature` in `thinking` block"),
    ({"messages": [USER, {"role": "assistant", "content": "x "}]}, "final assistant content cannot end with trailing whitespace"),
    ({"messages": [USER, said({"type": "redacted_thinking", "data": "x"}, role="assistant")]}, "The final block in an assistant"),
    ({"messages": [said(*[{**TEXT, "cache_control": {"type": "ephemeral"}}] * 5)]}, "A maximum of 4 blocks with cache_control"),
    ({"tools": [{"name": "a.b", "input_schema": {"type": "object"}}]}, "tools.0.custom.name: String should match pattern"),
    ({"tools": [{"name": "f"}]}, "tools.0.custom.input_schema: Field required"),
    ({"tools": [{"name": "f", "input_schema": {"type": "string"}}]}, "tools.0.custom.input_schema.type: Input should be 'object'"),
    ({"tools": [{"name": "f", "input_schema": {"type": "object", "anyOf": []}}]}, "does not support oneOf, allOf, or anyOf"),
    ({"tools": [WEATHER, WEATHER]}, "tools: Tool names must be unique."),
    ({"tools": "x"}, "tools: Input should be a valid list"),
    ({"tools": ..., "tool_choice": {"type": "any"}}, "tool_choice: may only be specified while providing tools"),
    ({"tool_choice": "auto"}, "tool_choice: Input tag 'auto'"),
    ({"tool_choice": {"type": "tool", "name": "nope"}}, "Tool 'nope' not found"),
    ({"temperature": 1.5}, "temperature: Input should be less than or equal to 1"),
    ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
    ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
    ({"stop_sequences": [" "]}, "stop_sequences: each stop sequence must contain non-whitespace"),
    ({"metadata": {"team": 1}}, "metadata.team: Extra inputs are not permitted"),
    ({"n": 2}, "n: Extra inputs are not permitted"),
    ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "greater than or equal to 1024"),
    ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "`max_tokens` must be greater than `thinking.budget_tokens`"),
    ({"thinking": "on"}, "thinking: Input tag"),
    ({"output_config": "x"}, "output_config: "),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_real_server_refuses_is_refused_by_name(change, words):
    request = {key: value for key, value in {**body(), **change}.items() if value is not ...}
    status, content = asked(request)
    answer = json.loads(content)
    assert (status, answer["type"], answer["error"]["type"]) == (400, "error", "invalid_request_error")
    assert words in answer["error"]["message"]


@pytest.mark.parametrize(
    "messages",
    [
        [USER, CALLED, ANSWERED],
        [USER, CALLED, said(RESULT, TEXT)],
        [USER, USER, {"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}, USER],
        [{"role": "assistant", "content": "x"}, USER],
        [USER, {"role": "system", "content": "x"}, USER],
        [USER, CALLED, said({"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True})],
        [USER, said(TEXT, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, role="assistant")],
        [USER, {"role": "assistant", "content": []}],
        [said({"type": "image", "source": {"type": "url", "url": "https://x.test/i.png"}}, TEXT)],
    ],
)
def test_what_a_real_server_takes_is_taken(messages):
    assert asked(body(messages))[0] == 200


@pytest.mark.parametrize("odd", [None, [], "x", 3, True, [None], [{"type": []}], {"a": 1}])
@pytest.mark.parametrize("key", sorted(checks.FIELDS))
def test_no_value_of_a_field_makes_the_mock_fail(key, odd):
    for request in (body(**{key: odd}), body([{"role": "user", "content": odd}]), body([said({"type": "tool_result", key: odd})])):
        assert asked(request)[0] in (200, 400)


def test_the_fields_of_the_official_client_are_all_known():
    assert get_type_hints(MessageCreateParamsNonStreaming).keys() <= checks.FIELDS
    assert get_type_hints(MessageCountTokensParams).keys() <= checks.COUNTED


def test_errors_have_the_types_of_the_api():
    kinds = {status: writer.error(Refused("x", status=status))["error"]["type"] for status in (400, 404, 429, 500, 503, 529)}
    assert list(kinds.values()) == [
        "invalid_request_error",
        "not_found_error",
        "rate_limit_error",
        "api_error",
        "overloaded_error",
        "overloaded_error",
    ]


# ------------------------------------------------------------------------------------------------- the official client


@pytest.fixture(scope="module")
def url():
    with server.running() as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0, timeout=20) as made:
        yield made


FILES = [
    function("read_file", "Read a file.", path="Path"),
    function("search_files", "Find files.", pattern="Glob pattern"),
    function("write_file", "Write a file.", path="Path", content="Text"),
]
RESULTS = {
    "get_weather": lambda given: json.dumps({"city": given["city"], "temperature": 18}),
    "search_order": lambda given: json.dumps({"order_id": given["order_id"], "customer_id": "C-204"}),
    "get_customer": lambda given: json.dumps({"customer_id": given["customer_id"], "name": "Ann"}),
    "read_file": lambda given: "name: demo\nversion: 2\n",
    "search_files": lambda given: '["README.md"]',
    "write_file": lambda given: json.dumps({"path": given["path"]}),
}
FLOWS = {
    "single": ("What's the weather in Paris?", [WEATHER], [["get_weather"]]),
    "parallel": ("What's the weather in Paris and Rome?", [WEATHER], [["get_weather", "get_weather"]]),
    "dependent": (
        "Who is the customer of order ORD-1001?",
        [
            function("search_order", "Look up an order.", order_id="Order id, e.g. ORD-1001"),
            function("get_customer", "Get a customer's name.", customer_id="Customer id, e.g. C-204"),
        ],
        [["search_order"], ["get_customer"]],
    ),
    "three rounds": (
        "Read `config.yaml` and list the Markdown files, then write a summary to `report.md`",
        FILES,
        [["read_file", "search_files"], ["write_file"]],
    ),
    "text": ("hello", [WEATHER], []),
}


def taken(message):
    content = [block.model_dump(exclude_none=True) for block in message.content]
    return content, message.stop_reason, message.usage.input_tokens, message.usage.output_tokens


def over_http(client):
    return lambda request: taken(client.messages.create(**request))


def over_http_with_the_helper(client):
    def turn(request):
        with client.messages.stream(**request) as made:
            return taken(made.get_final_message())

    return turn


def over_http_streamed(client):
    """A stream put together by hand, as the vendor's guide does it."""

    def turn(request):
        blocks, ended, usage = [], None, {}
        for event in client.messages.create(**request, stream=True):
            if event.type == "message_start":
                usage["input"] = event.message.usage.input_tokens
            elif event.type == "content_block_start":
                blocks.append((event.content_block.model_dump(exclude_none=True), []))
            elif event.type == "content_block_delta":
                delta = event.delta
                blocks[event.index][1].append(delta.text if delta.type == "text_delta" else delta.partial_json)
            elif event.type == "message_delta":
                ended, usage["output"] = event.delta.stop_reason, event.usage.output_tokens
        content = [
            block | ({"text": "".join(held)} if block["type"] == "text" else {"input": json.loads("".join(held) or "{}")})
            for block, held in blocks
        ]
        return content, ended, usage["input"], usage["output"]

    return turn


def in_process(*, stream):
    """The same without a socket and through our own adapter."""

    def turn(request):
        more = {"stream": True} if stream else {}
        reply = received(b"".join(mock.send(Request("anthropic_messages", "/messages", {**request, **more}))))
        written = adapter.request([reply.message], [], model="mock").body["messages"][0]["content"]
        return written, reply.raw_finish, reply.usage.input_tokens, reply.usage.output_tokens

    return turn


def played(turn, prompt, tools):
    """The loop by hand: every message, and what each reply cost."""
    messages, costs = [{"role": "user", "content": prompt}], []
    for _ in range(6):
        request = {"model": "mock", "max_tokens": 1000, "messages": messages, "tools": tools}
        content, finish, read, written = turn(request)
        assert read == tokens.breakdown(adapter.segments(request), model="mock").total
        costs.append((finish, read, written))
        messages = [*messages, {"role": "assistant", "content": content}]
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return messages, costs
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": RESULTS[call["name"]](call["input"])} for call in calls
        ]
        messages = [*messages, {"role": "user", "content": results}]
    raise AssertionError("no end")


@pytest.mark.parametrize("flow", FLOWS)
def test_the_official_client_gets_the_same_as_the_process(client, flow):
    prompt, tools, names = FLOWS[flow]
    here, costs = played(in_process(stream=False), prompt, tools)
    calls = [[block["name"] for block in message["content"] if "input" in block] for message in here if message["role"] != "user"]
    assert calls == [*names, []]
    assert here[-1]["content"][0]["text"]
    assert [finish for finish, _, _ in costs] == ["tool_use"] * len(names) + ["end_turn"]
    for turn in (over_http(client), over_http_streamed(client), over_http_with_the_helper(client), in_process(stream=True)):
        assert played(turn, prompt, tools) == (here, costs)


def test_a_named_and_a_forced_tool_are_called(client):
    for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}):
        answer = client.messages.create(**body(HELLO), tool_choice=choice)
        assert [block.name for block in answer.content if block.type == "tool_use"] == ["get_weather"]
    assert client.messages.create(**body(), tool_choice={"type": "none"}).stop_reason == "end_turn"


def test_the_client_streams_thinking_and_sends_it_back(client):
    more = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    with client.messages.stream(**(body() | more)) as made:
        first = made.get_final_message()
    thinking, call = first.content
    assert (thinking.type, call.name) == ("thinking", "get_weather")
    assert first.usage.output_tokens_details.thinking_tokens == tokens.count(thinking.thinking, model="mock")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": '{"temperature": 18}'}
    messages = [*PARIS, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    assert client.messages.create(**(body(messages) | more)).stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError, match="Expected `thinking`"):
        client.messages.create(**(body([*PARIS, {"role": "assistant", "content": [call]}, messages[2]]) | more))


def test_the_client_counts_tokens(client):
    request = body()
    counted = client.messages.count_tokens(model="mock", messages=request["messages"], tools=request["tools"])
    assert counted.input_tokens == client.messages.create(**request).usage.input_tokens


def test_cut_arguments_do_not_upset_the_client(client):
    answer = client.messages.create(**body(max_tokens=4))
    assert (answer.stop_reason, answer.content[0].type) == ("max_tokens", "tool_use")
    with client.messages.stream(**body(max_tokens=4)) as made:
        assert made.get_final_message().stop_reason == "max_tokens"


def test_errors_reach_the_official_client_as_its_own(client, url):
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long") as long:
        client.messages.create(model="mock-1k", max_tokens=9, messages=[{"role": "user", "content": "word " * 2000}])
    assert long.value.type == "invalid_request_error"
    with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`"):
        client.messages.create(model="mock", max_tokens=9, messages=[USER, ANSWERED])
    assert httpx.post(f"{url}/v1/messages", content=b"{").json()["error"]["type"] == "invalid_request_error"


# ------------------------------------------------------------------------------------------------------------- the agent


@pytest.mark.parametrize("stream", [True, False])
def test_the_file_task_is_the_same_over_both_formats(tmp_path, stream):
    runs = {}
    for wire in ("chat_completions", "anthropic_messages"):
        folder = tmp_path / wire
        demo.make_folder(folder)
        agent = Agent("mock", tools=file_tools(folder), system=demo.SYSTEM, wire=wire, stream=stream)
        run = agent.run(demo.PROMPT, view=False)
        calls = [[(call.name, call.arguments) for call in message.tool_calls] for message in run.messages if message.tool_calls]
        runs[wire] = (calls, run.text, run.reason, (folder / demo.REPORT).read_text(encoding="utf-8"))
        counted = [entry["request"]["tokens"]["total"] for entry in run.state["rounds"]]
        assert counted == [reply.usage.input_tokens for reply in run.replies]
    assert runs["anthropic_messages"] == runs["chat_completions"]
    assert [[name for name, _ in calls] for calls in runs["anthropic_messages"][0]] == [
        ["read_file", "search_files"],
        ["write_file"],
    ]


def test_the_agent_thinks_over_two_rounds_and_goes_on_over_another_format(tmp_path):
    demo.make_folder(tmp_path)
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    agent = Agent("mock", tools=file_tools(tmp_path), system=demo.SYSTEM, wire="anthropic_messages", extra_body=thinking)
    first = agent.run(demo.PROMPT, view=False)
    assert first.reason == "stop"
    assert sum(isinstance(part, Thinking) for message in first.messages for part in message.parts) == 3
    agent.wire, agent.settings = "chat_completions", {}
    agent.run("hello", view=False)
    agent.wire, agent.settings = "anthropic_messages", thinking
    assert agent.run("Read README.md", view=False).reason == "stop"
