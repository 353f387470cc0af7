"""The mock model over the Responses format: against our own adapter, and against OpenAI's own client over HTTP."""

import functools
import json
import re
from typing import get_type_hints

import httpx
import openai
import pytest
import wires

from nb_agent import Agent, adapters, mock, tokens
from nb_agent.adapters import responses as adapter
from nb_agent.errors import ProviderError
from nb_agent.kit.files import file_tools
from nb_agent.lessons import demo
from nb_agent.messages import Definition, Image, Message, Request, Text, ToolCall, ToolResult
from nb_agent.mock import responses as writer
from nb_agent.mock import server
from nb_agent.mock.responses import checks
from nb_agent.mock.wire import Draft, Usage


def function(name, description, **parameters):
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "description": text} for key, text in parameters.items()},
        "required": list(parameters),
    }
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}


WEATHER = function("get_weather", "Get the current weather for a city.", city="Name of the city, e.g. Paris")
ORDER = function("search_order", "Look up an order.", order_id="Order id, e.g. ORD-1001")
CUSTOMER = function("get_customer", "Get a customer's name.", customer_id="Customer id, e.g. C-204")
RESULTS = {
    "get_weather": lambda given: {"city": given["city"], "temperature": 18},
    "search_order": lambda given: {"order_id": given["order_id"], "customer_id": "C-204"},
    "get_customer": lambda given: {"customer_id": given["customer_id"], "name": "Ann"},
}
REASON = {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"], "store": False}


def body(given="Weather in Paris?", *, tools=(WEATHER,), **more):
    return {"model": "mock", "input": given, **({"tools": list(tools)} if tools else {}), **more}


def asked(request):
    answered = mock.answer("/v1/responses", json.dumps(request).encode())
    return answered.status, b"".join(answered.chunks)


def whole(*given, **more):
    status, content = asked(body(*given, **more))
    assert status == 200, content
    return json.loads(content)


def events(*given, **more):
    status, content = asked(body(*given, stream=True, **more))
    assert status == 200, content
    frames = [frame.split("\n") for frame in content.decode().split("\n\n")]
    assert frames.pop() == [""]
    found = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in found]
    return found


received = functools.partial(wires.received, "responses")


# ------------------------------------------------------------------------------------------------- both ends of the wire

DRAFTS = [
    Draft("Hello, 京都 🙂\n\n- a", (), "stop"),
    Draft("", wires.CALLS[:1], "tool_calls"),
    Draft("", wires.CALLS, "tool_calls"),
    Draft("First I look.", wires.CALLS, "tool_calls"),
    Draft("cut o", (), "length"),
    Draft("", (), "length"),
    Draft("", (ToolCall("call_3", "save", '{"text":"cut o'),), "length"),
    Draft("I look.", (ToolCall("call_3", "save", ""),), "length"),
    Draft("Half an", (), "content_filter"),
]


@pytest.mark.parametrize("more", [{}, REASON, {"reasoning": {"effort": "high"}}], ids=["plain", "reasoning", "hidden reasoning"])
@pytest.mark.parametrize("draft", DRAFTS, ids=range(len(DRAFTS)))
def test_the_adapter_reads_what_the_writer_wrote(draft, more):
    request = {"model": "mock", "input": "x", **more}
    streamed = b"".join(frame.payload for frame in writer.stream(request, [draft], Usage(7, 5), "seed"))
    unstreamed = writer.whole(request, [draft], Usage(7, 5), "seed")
    reply = received(json.dumps(unstreamed).encode())
    assert received(streamed) == reply
    assert reply.message.text == draft.text
    assert [(c.id, c.name, c.arguments) for c in reply.message.tool_calls] == [(c.id, c.name, c.arguments) for c in draft.calls]
    assert reply.finish == draft.finish
    assert reply.body == unstreamed
    assert (reply.usage.input_tokens, reply.usage.output) == (7, 5)
    back = adapter.request([reply.message], (), model="mock").body["input"]
    output = [{**item, "arguments": item["arguments"] or "{}"} if "arguments" in item else item for item in unstreamed["output"]]
    assert back == (output if draft.text or draft.calls or more else [])


def test_a_request_of_the_adapter_is_read_back_whole():
    weather = Definition("get_weather", WEATHER["description"], WEATHER["parameters"])
    call = ToolCall("call_1", "get_weather", '{"city":"Paris"}')
    image = Image(url="https://x.test/i.png")
    history = [
        Message.of("system", "Be brief."),
        Message.of("user", "Weather?"),
        Message("assistant", (Text("Look."), call)),
        Message("tool", (ToolResult("call_1", "get_weather", (Text("18"), image)),)),
        Message("user", (Text("And?"), image)),
    ]
    settings = {"max_tokens": 40, "parallel_tool_calls": False, "response_format": {"type": "json_object"}}
    request = adapter.request(history, [weather], model="mock", settings=settings)
    ask = writer.read(json.loads(request.content))
    assert [message.text for message in ask.messages] == ["Be brief.", "Weather?", "Look.", "18", "And?"]
    assert ask.messages[:3] == tuple(history[:3])
    assert ask.messages[3].tool_result.name == "get_weather"
    assert (ask.tools, ask.limit, ask.parallel, ask.form) == ((weather,), 40, False, {})
    named = writer.read(body(tool_choice={"type": "function", "name": "get_weather"}, tools=[ORDER, WEATHER]))
    assert (named.choice, named.named, [tool.name for tool in named.tools]) == ("required", True, ["get_weather"])
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "search_order"}]}
    chosen = writer.read(body(tool_choice=allowed, tools=[ORDER, WEATHER]))
    assert (chosen.choice, chosen.named, [tool.name for tool in chosen.tools]) == ("required", False, ["search_order"])


def test_streamed_and_whole_are_the_same_answer():
    for prompt in ("Weather in Paris?", "Weather in Paris and Rome?", "hello"):
        assert received(asked(body(prompt, stream=True))[1]) == received(asked(body(prompt))[1])


def test_the_same_request_gets_the_same_answer_and_ids_have_the_forms_of_the_real_ones():
    answer = whole("Weather in Paris and Rome?")
    assert answer == whole("Weather in Paris and Rome?")
    ids = [item[key] for item in answer["output"] for key in ("id", "call_id")]
    assert len(set(ids)) == 4
    assert all(re.fullmatch(r"(fc|call)_[A-Za-z0-9]{24}", one) for one in ids)
    assert answer["id"].startswith("resp_")


def test_a_stream_names_each_item_when_it_begins_and_when_it_is_done():
    def kinds(*given, **more):
        found = [event["type"].removeprefix("response.") for event in events(*given, **more)]
        return [kind for place, kind in enumerate(found) if not place or kind != found[place - 1]]

    begun = ["created", "in_progress"]
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    text = [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert kinds("Weather in Paris and Rome?") == [*begun, *call, *call, "completed"]
    assert kinds("hello") == [*begun, *text, "completed"]
    assert kinds("hello", max_output_tokens=16) == [*begun, *text, "incomplete"]
    part = ["reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done"]
    thought = ["output_item.added", *part, "reasoning_summary_part.done", "output_item.done"]
    assert kinds(**REASON) == [*begun, *thought, *call, "completed"]
    numbers = [event["sequence_number"] for event in events()]
    assert numbers == list(range(len(numbers)))


def test_usage_is_what_our_own_counter_counts():
    for more in ({}, REASON):
        request = body("Weather in Paris and Rome?", instructions="Be brief.", **more)
        answer = json.loads(asked(request)[1])
        reply = received(json.dumps(answer).encode())
        assert answer["usage"]["input_tokens"] == tokens.breakdown(adapter.segments(request), model="mock").total
        counted = tokens.breakdown_reply(reply.message, model="mock")
        assert answer["usage"]["output_tokens"] == counted.total
        assert answer["usage"]["output_tokens_details"]["reasoning_tokens"] == counted.parts.get("reasoning", 0)
        assert reply.usage.total_tokens == answer["usage"]["total_tokens"]
        assert (reply.usage.reasoning > 0) == bool(more)


def test_what_the_request_asks_is_repeated_and_a_tool_that_says_nothing_is_strict():
    loose = {key: value for key, value in WEATHER.items() if key != "strict"}
    answer = whole(tools=[WEATHER, {**loose, "name": "other"}], max_output_tokens=100, temperature=0.5)
    assert [tool["strict"] for tool in answer["tools"]] == [False, True]
    assert (answer["max_output_tokens"], answer["temperature"], answer["store"], answer["error"]) == (100, 0.5, True, None)


def test_the_limit_cuts_the_text_or_the_arguments():
    text = whole("hello", max_output_tokens=16)
    assert (text["status"], text["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert text["output"][0]["status"] == "incomplete"
    assert text["usage"]["output_tokens"] <= 16
    note = function("add_note", "Add a note.", text="Text of the note")
    long = "Add a note saying `" + "rain and snow " * 20 + "`"
    call = received(json.dumps(whole(long, tools=[note], max_output_tokens=20)).encode())
    assert (call.finish, len(call.message.tool_calls)) == ("length", 1)
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(call.message.tool_calls[0].arguments)


def test_a_prompt_over_the_window_is_refused_in_the_words_of_the_format():
    status, content = asked({**body("word " * 2000), "model": "mock-1k"})
    error = json.loads(content)["error"]
    assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", "input")
    with pytest.raises(ProviderError) as long:
        mock.send(Request("responses", "/responses", {**body("word " * 2000), "model": "mock-1k"}))
    assert long.value.kind == "context_length"


# ----------------------------------------------------------------------------------------------------------- reasoning


def turn_with_reasoning(**more):
    """A first answer that reasons and calls, with the history that goes on from it."""
    first = whole(**REASON)
    call = first["output"][-1]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "18"}
    return [{"role": "user", "content": "Weather in Paris?"}, *first["output"], result]


def changed(place, **fields):
    history = turn_with_reasoning()
    history[place] = {**history[place], **fields}
    return history


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (
            lambda: [item for item in turn_with_reasoning() if item.get("type") != "reasoning"],
            "without its required 'reasoning' item",
        ),
        (lambda: changed(1, summary=[]), "could not be verified"),
        (lambda: changed(1, encrypted_content="mock.other"), "could not be verified"),
        (lambda: changed(1, encrypted_content=None), "Items are not persisted when `store` is set to false"),
        (lambda: [*turn_with_reasoning()[:2], {"role": "user", "content": "?"}], "without its required following item"),
        (lambda: [*turn_with_reasoning(), turn_with_reasoning()[1]], "Duplicate item found with id rs_"),
    ],
)
def test_reasoning_that_does_not_come_back_exactly_is_refused(history, words):
    assert asked(body(turn_with_reasoning(), **REASON))[0] == 200
    status, content = asked(body(history(), **REASON))
    assert status in (400, 404)
    assert words in json.loads(content)["error"]["message"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_run_that_reasons_fails_unless_the_item_of_the_first_round_goes_back(stream, monkeypatch):
    def weather(city: str) -> str:
        """Get the weather for a city."""
        return f"{city}: 18"

    def run():
        agent = Agent(tools=[weather], wire="responses", stream=stream, extra_body=REASON)
        return agent.run("What's the weather in Paris?", view=False)

    finished = run()
    assert (finished.reason, len(finished.requests)) == ("stop", 2)
    first, second = (request.body for request in finished.requests)
    assert second["input"][1:3] == finished.replies[0].body["output"]
    assert second["input"][1]["type"] == "reasoning"
    assert "include" in first
    kept = adapter.request

    def forgetful(history, *args, **more):
        request = kept(history, *args, **more)
        request.body["input"] = [item for item in request.body["input"] if item.get("type") != "reasoning"]
        return request

    monkeypatch.setattr(adapter, "request", forgetful)
    with pytest.raises(ProviderError, match="without its required 'reasoning' item"):
        run()


# ----------------------------------------------------------------------------------------------------------- refusals

USER = {"role": "user", "content": "x"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "1"}
STRICT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}


def tool(**change):
    return {"tools": [{key: value for key, value in {**WEATHER, **change}.items() if value is not None}]}


REFUSED = [
    ({"model": ""}, "model", "Missing required parameter: 'model'"),
    ({"input": None}, "input", "Missing required parameter: 'input'"),
    ({"input": []}, "input", "empty array"),
    ({"input": 3}, "input", "but got 3"),
    ({"messages": [USER]}, "messages", "has moved to 'input'"),
    ({"max_tokens": 9}, "max_tokens", "has moved to 'max_output_tokens'"),
    ({"response_format": {}}, "response_format", "has moved to 'text.format'"),
    ({"top_k": 5}, "top_k", "Unknown parameter: 'top_k'"),
    ({"max_output_tokens": 8}, "max_output_tokens", ">= 16"),
    ({"max_output_tokens": "20"}, "max_output_tokens", "an integer"),
    ({"temperature": 3}, "temperature", "<= 2"),
    ({"stream_options": {"include_obfuscation": False}}, "stream_options", "'stream' is enabled"),
    ({"previous_response_id": "resp_1"}, "previous_response_id", "'resp_1' not found"),
    ({"background": True}, "background", "stores nothing"),
    ({"reasoning": "low"}, "reasoning", "expected an object"),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort", "'huge'"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "'xml'"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name", "Missing"),
    ({"tools": {}}, None, None),
    ({"tools": "x"}, "tools", "array of objects"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name", "Missing required parameter"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", "Missing"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "'web_search'"),
    ({"tools": [WEATHER] * 129}, "tools", "got 129"),
    (tool(name="a.b"), "tools[0].name", "'a.b'"),
    (tool(parameters={"type": "string"}), "tools[0].parameters", "'type: \"object\"'"),
    (tool(parameters={"type": "object"}), "tools[0].parameters", "object schema missing properties"),
    (tool(parameters={"type": "object", "properties": {"x": {"type": "array"}}}), "tools[0].parameters", "missing items"),
    (tool(parameters=STRICT, strict=True), "tools[0].parameters", "'additionalProperties' is required"),
    (tool(parameters={**STRICT, "additionalProperties": False}, strict=True), "tools[0].parameters", "Missing 'b'"),
    ({"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}, "tool_choice.name", "Missing"),
    ({"tool_choice": {"type": "function", "name": "nope"}}, "tool_choice", "not found in 'tools'"),
    ({"tool_choice": "any"}, "tool_choice", "'any'"),
    ({"tools": None, "tool_choice": "required"}, "tool_choice", "must be specified with 'tools'"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "'tool'"),
    ({"input": ["x"]}, "input[0]", "None"),
    ({"input": [{"type": "surprise"}]}, "input[0]", "'surprise'"),
    ({"input": [{"type": "item_reference", "id": "rs_1"}]}, "input", "'rs_1' not found"),
    ({"input": [{"role": "user", "content": None}]}, "input[0].content", "got null"),
    ({"input": [{**USER, "name": "Ann"}]}, "input[0].name", "Unknown parameter"),
    ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "input[0].content[0]", "'text'"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text", "Missing"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].image_url", "Missing"),
    ({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, "input[0].content[0]", "'output_text'"),
    ({"input": [{**USER, "id": "m1"}]}, "input[0].id", "begins with 'msg'"),
    ({"input": [USER, {**CALL, "id": "call_1"}, OUTPUT]}, "input[1].id", "begins with 'fc'"),
    ({"input": [USER, {**CALL, "arguments": {}}, OUTPUT]}, "input[1].arguments", "expected a string"),
    ({"input": [USER, {**CALL, "call_id": "x" * 65}]}, "input[1].call_id", "length 65"),
    ({"input": [USER, {**CALL, "call_id": ""}]}, "input[1].call_id", "empty string"),
    ({"input": [USER, {"type": "function_call", "name": "f"}]}, "input[1].call_id", "Missing"),
    ({"input": [USER, CALL, {**OUTPUT, "output": {"a": 1}}]}, "input[2].output", "{'a': 1}"),
    ({"input": [USER, CALL, {"type": "function_call_output", "call_id": "c1"}]}, "input[2].output", "Missing"),
    ({"input": [USER, CALL]}, "input", "No tool output found for function call c1"),
    ({"input": [USER, OUTPUT]}, "input", "No tool call found for function call output with call_id c1"),
    ({"input": [USER, OUTPUT, CALL]}, "input", "No tool call found"),
    ({"input": [USER, CALL, OUTPUT, OUTPUT]}, "input", "No tool call found"),
    ({"input": [{"type": "reasoning", "id": "rs_1"}, {"role": "assistant", "content": "x"}]}, "input[0].summary", "Missing"),
]


@pytest.mark.parametrize(("change", "param", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_real_server_refuses_is_refused_by_name(change, param, words):
    request = {key: value for key, value in {**body(), **change}.items() if value is not None}
    status, content = asked(request)
    if words is None:  # no tools in any form
        assert status == 200
        return
    error = json.loads(content)["error"]
    assert status in (400, 404)
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert words in error["message"]


@pytest.mark.parametrize(
    "given",
    [
        "x",
        [USER],
        [{"role": "system", "content": "s"}, {"type": "message", "role": "developer", "content": "d"}, USER],
        [USER, CALL, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}, OUTPUT],
        [USER, CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "1"}, {"type": "input_image", "image_url": "data:"}]}],
        [USER, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, USER],
        [{"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_image", "file_id": "f"}]}],
        [USER, {"type": "reasoning", "id": "rs_1", "summary": []}, {**CALL, "id": "fc_1"}, OUTPUT],
    ],
)
def test_what_a_real_server_takes_is_taken(given):
    assert asked(body(given))[0] == 200


def test_the_fields_of_the_official_client_are_all_known():
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    assert get_type_hints(ResponseCreateParamsNonStreaming).keys() <= checks.FIELDS


# -------------------------------------------------------------------------------------------------- the official client

FLOWS = {
    "single": ("What's the weather in Paris?", [WEATHER], [["get_weather"]]),
    "parallel": ("What's the weather in Paris and Rome?", [WEATHER], [["get_weather", "get_weather"]]),
    "dependent": ("Who is the customer of order ORD-1001?", [ORDER, CUSTOMER], [["search_order"], ["get_customer"]]),
    "text": ("hello", [WEATHER], []),
}


@pytest.fixture(scope="module")
def url():
    with server.running() as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=20) as made:
        yield made


def over_http(client):
    """One turn by the official client, unstreamed: its items as they go back, its status and its usage."""

    def turn(request):
        answer = client.responses.create(**request)
        return [item.to_dict() for item in answer.output], answer.status, answer.usage.input_tokens, answer.usage.output_tokens

    return turn


def over_http_streamed(client):
    """The same from the raw events, each delta checked against what is done."""

    def turn(request):
        items, deltas = [], {}
        for event in client.responses.create(**request, stream=True):
            if event.type.endswith(".delta"):
                deltas[event.item_id] = deltas.get(event.item_id, "") + event.delta
            elif event.type == "response.output_item.done":
                item = event.item.to_dict()
                shown = [*item.get("summary", ()), *(item.get("content") or ()), {"text": item.get("arguments", "")}]
                assert "".join(part["text"] for part in shown) == deltas.get(item["id"], "")
                items.append(item)
            elif event.type == "response.completed":
                end = event.response
        return items, end.status, end.usage.input_tokens, end.usage.output_tokens

    return turn


def without(value, *keys):
    """JSON without what the client's accumulator adds to it."""
    if isinstance(value, list):
        return [without(part, *keys) for part in value]
    return {key: without(part, *keys) for key, part in value.items() if key not in keys} if isinstance(value, dict) else value


def over_the_helper(client):
    """The same by the client's own accumulator."""

    def turn(request):
        with client.responses.stream(**request) as made:
            answer = made.get_final_response()
        items = [without(item.to_dict(), "parsed", "parsed_arguments") for item in answer.output]
        return items, answer.status, answer.usage.input_tokens, answer.usage.output_tokens

    return turn


def in_process(*, stream):
    """The same without a socket and through our own adapter, there and back."""

    def turn(request):
        reading = adapters.receive("responses", mock.send(Request("responses", "/responses", {**request, "stream": stream})))
        while True:
            try:
                next(reading)
            except StopIteration as end:
                reply = end.value
                break
        items = [dict(item) for item in adapter.request([reply.message], (), model="mock").body["input"]]
        return items, reply.raw_finish, reply.usage.input_tokens, reply.usage.output_tokens

    return turn


def played(turn, prompt, tools, more):
    """The loop by hand: every item, and what each reply cost."""
    history, costs = [{"role": "user", "content": prompt}], []
    for _ in range(6):
        request = {"model": "mock", "input": history, "tools": tools, **more}
        items, status, read, written = turn(request)
        assert read == tokens.breakdown(adapter.segments(request), model="mock").total
        costs.append((status, read, written))
        history = [*history, *items]
        calls = [item for item in items if item["type"] == "function_call"]
        if not calls:
            return history, costs
        for call in calls:
            value = RESULTS[call["name"]](json.loads(call["arguments"]))
            history.append({"type": "function_call_output", "call_id": call["call_id"], "output": json.dumps(value)})
    raise AssertionError("no end")


@pytest.mark.parametrize("more", [{}, REASON], ids=["plain", "reasoning"])
@pytest.mark.parametrize("flow", FLOWS)
def test_the_official_client_gets_the_same_as_the_process(client, flow, more):
    prompt, tools, names = FLOWS[flow]
    here, costs = played(in_process(stream=False), prompt, tools, more)
    rounds = [[]]
    for item in here:
        rounds[-1] += [item["name"]] if item.get("type") == "function_call" else []
        if item.get("type") == "function_call_output" and rounds[-1]:
            rounds.append([])
    assert [calls for calls in rounds if calls] == names
    assert here[-1]["content"][0]["text"]
    assert {status for status, _, _ in costs} == {"completed"}
    for turn in (over_http(client), over_http_streamed(client), over_the_helper(client), in_process(stream=True)):
        assert played(turn, prompt, tools, more) == (here, costs)


def test_errors_reach_the_official_client_as_its_own(client):
    with pytest.raises(openai.BadRequestError) as long:
        client.responses.create(model="mock-1k", input="word " * 2000)
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(openai.BadRequestError, match="No tool output found for function call c1"):
        client.responses.create(model="mock", input=[USER, CALL])


def test_a_slow_answer_comes_piece_by_piece(url):
    request = {"model": "mock-slow", "input": "hello", "stream": True}
    with httpx.stream("POST", f"{url}/v1/responses", json=request, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        pieces = [piece for _, piece in zip(range(4), answer.iter_raw(), strict=False)]
    assert len(pieces) == 4
    assert all(piece.startswith(b"event: response.") for piece in pieces)


# ------------------------------------------------------------------------------------------------------------ the agent


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("extra", [{}, REASON], ids=["plain", "reasoning"])
def test_the_three_rounds_go_as_they_do_over_chat_completions(tmp_path, stream, extra):
    runs = {}
    for wire, body_of in (("chat_completions", {}), ("responses", extra)):
        folder = tmp_path / wire
        demo.make_folder(folder)
        agent = Agent("mock", tools=file_tools(folder), system=demo.SYSTEM, wire=wire, stream=stream, extra_body=body_of)
        run = agent.run(demo.PROMPT, view=False)
        assert run.reason == "stop"
        calls = [[(call.name, call.arguments) for call in reply.message.tool_calls] for reply in run.replies]
        runs[wire] = (calls, run.messages[-1].text, (folder / "report.md").read_text(encoding="utf-8"))
        again = agent.run("hello", view=False)
        assert again.reason == "stop"
    assert runs["responses"] == runs["chat_completions"]
    assert [len(calls) for calls in runs["responses"][0]] == [2, 1, 0]
