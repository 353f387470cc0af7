"""Gemini's generateContent as the mock server speaks it, judged by the vendor's own client and by our adapter."""

import json
import time

import pytest
from google import genai
from google.genai import errors, types
from wires import FLOWS, ORDER, RESULTS, WEATHER

from nb_agent import Agent, mock, tokens, tool
from nb_agent.adapters import gemini_generate as adapter
from nb_agent.adapters import receive
from nb_agent.errors import ProviderError
from nb_agent.kit.files import file_tools
from nb_agent.lessons import demo
from nb_agent.messages import Image, Message, Request, Text, ToolCall, ToolResult
from nb_agent.mock import gemini_generate as writer
from nb_agent.mock import server
from nb_agent.mock.gemini_generate import checks
from nb_agent.mock.wire import Draft, Refused, Usage

PATH = "/v1beta/models/{}:{}"


def asked(body, model="mock", verb="generateContent"):
    answered = mock.answer(PATH.format(model, verb), json.dumps(body).encode())
    return answered.status, b"".join(answered.chunks)


def whole(body, **more):
    status, content = asked(body, **more)
    assert status == 200, content
    return json.loads(content)


def events(body, model="mock"):
    status, content = asked(body, model, "streamGenerateContent")
    assert status == 200, content
    lines = content.decode().split("\r\n\r\n")
    assert lines.pop() == ""
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def received(chunks):
    reading = receive("gemini_generate", chunks)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


def user(text):
    return {"role": "user", "parts": [{"text": text}]}


def prompt(text="Weather in Paris?", **more):
    return {"contents": [user(text)], "tools": [{"functionDeclarations": [declaration(WEATHER)]}]} | more


def declaration(tool):
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


# ------------------------------------------------------------------------------------------------- both ends of the wire

CALLS = (ToolCall("call_0_0", "area", '{"w":2,"note":"京都 \\"x\\" 🙂"}'), ToolCall("call_0_1", "now", "{}"))
DRAFTS = [
    Draft("Hello, 京都 🙂\n\n- a", (), "stop"),
    Draft("", CALLS[:1], "tool_calls"),
    Draft("", CALLS, "tool_calls"),
    Draft("First I look.", CALLS, "tool_calls"),
    Draft("cut o", (), "length"),
    Draft("", CALLS[:1], "length"),
    Draft("half of", (), "content_filter"),
    Draft("", (), "stop"),
]


@pytest.mark.parametrize("draft", DRAFTS, ids=range(len(DRAFTS)))
@pytest.mark.parametrize("model", ["mock", "gemini-3-pro"])
def test_the_adapter_reads_what_the_writer_wrote(draft, model):
    request, usage = {"model": model}, Usage(7, 5)
    streamed = [frame.payload for frame in writer.stream(request, [draft], usage, "seed")]
    unstreamed = [json.dumps(writer.whole(request, [draft], usage, "seed")).encode()]
    first, second = received(streamed), received(unstreamed)
    assert (first.message, first.finish, first.usage, first.id) == (second.message, second.finish, second.usage, second.id)
    assert first.message.text == draft.text
    assert [(call.name, call.arguments) for call in first.message.tool_calls] == [(c.name, c.arguments) for c in draft.calls]
    assert first.finish == draft.finish
    assert (first.usage.input_tokens, first.usage.output_tokens) == (7, 5)
    if model == "mock":
        assert first.message.tool_calls == draft.calls


@pytest.mark.parametrize(("finish", "raw"), [("length", "MAX_TOKENS"), ("tool_calls", "MALFORMED_FUNCTION_CALL")])
def test_a_call_that_is_not_whole_is_never_handed_out(finish, raw):
    draft = Draft("I save.", (ToolCall("c", "save", '{"text":"cut o'),), finish)
    for chunks in (
        [frame.payload for frame in writer.stream({"model": "mock"}, [draft], Usage(7, 5), "seed")],
        [json.dumps(writer.whole({"model": "mock"}, [draft], Usage(7, 5), "seed")).encode()],
    ):
        reply = received(chunks)
        assert (reply.message, reply.raw_finish) == (Message.of("assistant", "I save."), raw)


def test_a_request_of_the_adapter_is_read_back_whole():
    calls = (ToolCall("call_1_1", "get_weather", '{"city":"Paris"}'), ToolCall("call_1_2", "get_weather", '{"city":"Rome"}'))
    history = [
        Message.of("system", "Be brief."),
        Message.of("user", "Weather?"),
        Message("assistant", (Text("Look."), *calls)),
        *(
            Message("tool", (ToolResult(call.id, call.name, (Text(text),)),))
            for call, text in zip(calls, ("18", "{}"), strict=True)
        ),
    ]
    settings = {"n": 2, "stop": "x", "max_tokens": 9, "tool_choice": "required"}
    request = adapter.request(history, [WEATHER, ORDER], model="mock", settings=settings)
    ask = writer.read(json.loads(request.content) | writer.carried(request.path))
    assert list(ask.messages) == history
    assert ask.tools == (WEATHER, ORDER)
    assert (ask.model, ask.copies, ask.stop, ask.limit, ask.choice, ask.named) == ("mock", 2, ("x",), 9, "required", False)


def test_failures_are_read_as_failures_whoever_worded_them():
    call = ToolCall("call_1_0", "f", "{}")
    ours = ToolResult.failure(call, "no such town", code="not_found")
    history = [Message.of("user", "x"), Message("assistant", (call,)), Message("tool", (ours,))]
    body = json.loads(adapter.request(history, (), model="mock").content) | {"model": "mock"}
    assert writer.read(body).messages[-1].text == ours.text
    body["contents"][-1]["parts"][0]["functionResponse"]["response"] = {"error": "boom"}
    assert writer.read(body).messages[-1].text == '{"error":"boom"}'
    body["contents"][-1]["parts"][0]["functionResponse"]["response"] = {"result": [1]}
    assert writer.read(body).messages[-1].text == "[1]"


def test_images_of_results_do_not_look_like_a_new_prompt():
    result = ToolResult("c", "f", (Text("chart"), Image(data="AAAA")))
    history = [Message.of("user", "x"), Message("assistant", (ToolCall("c", "f"),)), Message("tool", (result,))]
    for model in ("gemini-2.5-flash", "mock"):
        body = json.loads(adapter.request(history, (), model=model).content) | {"model": model}
        assert [message.role for message in writer.read(body).messages] == ["user", "assistant", "tool"]


# --------------------------------------------------------------------------------------------------------- whole, streamed


@pytest.mark.parametrize("text", ["Weather in Paris?", "Weather in Paris and Rome?", "hello"])
def test_streamed_and_whole_are_the_same_answer(text):
    one, other = received([asked(prompt(text))[1]]), received([asked(prompt(text), verb="streamGenerateContent")[1]])
    assert (one.message, one.finish, one.usage, one.id, one.model) == (
        other.message,
        other.finish,
        other.usage,
        other.id,
        other.model,
    )


def test_events_come_as_google_sends_them():
    chunks = events(prompt("Weather in Paris and Rome?"))
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert [list(part) for part in parts] == [["functionCall"], ["functionCall"], ["text"]]
    assert all(list(part["functionCall"]) == ["name", "args"] for part in parts[:2])
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None, None, "STOP"]
    assert {chunk["responseId"] for chunk in chunks} == {whole(prompt("Weather in Paris and Rome?"))["responseId"]}
    counts = [chunk["usageMetadata"].get("candidatesTokenCount", 0) for chunk in events(prompt("hello"))]
    assert counts == sorted(counts)
    assert counts[-1] == whole(prompt("hello"))["usageMetadata"]["candidatesTokenCount"]


def test_usage_is_what_our_own_counter_counts():
    body = prompt("Weather in Paris and Rome?", systemInstruction={"parts": [{"text": "Be brief."}]})
    reply = received([asked(body)[1]])
    assert reply.usage.input == tokens.breakdown(adapter.segments(body), model="mock").total
    assert reply.usage.output == tokens.breakdown_reply(reply.message, model="mock").total
    assert reply.usage.total_tokens == reply.body["usageMetadata"]["totalTokenCount"]


def test_the_limit_the_stop_and_the_number_of_candidates_are_minded():
    assert whole(prompt("hello", generationConfig={"maxOutputTokens": 4}))["candidates"][0]["finishReason"] == "MAX_TOKENS"
    stopped = whole({"contents": [user("hello")], "generationConfig": {"stopSequences": ["mock"]}})["candidates"][0]
    assert stopped["content"]["parts"] == [{"text": "Hello! I am the "}]
    two = whole(prompt(generationConfig={"candidateCount": 2}))["candidates"]
    assert [candidate["index"] for candidate in two] == [0, 1]
    assert [c["candidates"][0]["index"] for c in events(prompt("hello", generation_config={"candidate_count": 2}))][:4] == [
        0,
        1,
        0,
        1,
    ]


def test_the_choice_of_tools_is_minded():
    def called(**config):
        tools = [{"functionDeclarations": [declaration(ORDER), declaration(WEATHER)]}]
        body = {"contents": [user("Weather in Paris?")], "tools": tools, "toolConfig": {"functionCallingConfig": config}}
        return [call.name for call in received([asked(body)[1]]).message.tool_calls]

    assert called(mode="AUTO") == ["get_weather"]
    assert called(mode="NONE") == []
    assert called(mode="ANY", allowedFunctionNames=["search_order"]) == ["search_order"]


def test_an_answer_can_be_asked_for_as_json():
    schema = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    config = {"responseMimeType": "application/json", "responseSchema": schema}
    text = received([asked({"contents": [user("Which city? Paris")], "generationConfig": config})[1]]).message.text
    assert isinstance(json.loads(text)["city"], str)


def test_a_prompt_that_does_not_fit_is_refused_in_the_words_of_the_vendor():
    long = {"contents": [user("word " * 2000)]}
    status, content = asked(long, "mock-1k")
    assert (status, json.loads(content)["error"]["status"]) == (400, "INVALID_ARGUMENT")
    request = adapter.request([Message.of("user", "word " * 2000)], (), model="mock-1k")
    with pytest.raises(ProviderError, match="exceeds the maximum number of tokens allowed") as caught:
        mock.send(request)
    assert caught.value.kind == "context_length"


def test_the_model_is_read_off_the_path():
    assert writer.carried("/models/mock:generateContent") == {"model": "mock", "stream": False}
    assert writer.carried("/models/mock-1k:streamGenerateContent") == {"model": "mock-1k", "stream": True}
    assert writer.carried("/models/mock%3Arepeat:generateContent") == {"model": "mock:repeat", "stream": False}
    assert writer.carried("/models/mock:repeat:generateContent") == {"model": "mock:repeat", "stream": False}
    for route in ("/models/mock", "/models", "/models/mock:countTokens", "/chat/completions", "/models/a/b:generateContent"):
        assert writer.carried(route) is None
    assert json.loads(asked({}, verb="countTokens")[1])["error"]


# --------------------------------------------------------------------------------------------------------------- refusals

MADE = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
ANSWERED = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "1"}}}]}
X = user("x")


def tools(*declarations):
    return {"tools": [{"functionDeclarations": list(declarations)}]}


def parameters(**schema):
    return tools({"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}})


REFUSED = [
    ({"contents": []}, "contents is not specified"),
    ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "valid role: user, model"),
    ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "valid role: user, model"),
    ({"contents": [{"role": "user", "parts": []}]}, "must not be empty"),
    ({"contents": [{"role": "user"}]}, "must not be empty"),
    ({"contents": [{"role": "user", "parts": [{}]}]}, "required oneof field 'data'"),
    ({"contents": [{"role": "user", "parts": [{"text": "x", "inlineData": {}}]}]}, "required oneof field 'data'"),
    ({"contents": [user("")]}, "empty text parameter"),
    ({"contents": [X, MADE]}, "number of function response parts"),
    ({"contents": [X, MADE, X]}, "number of function response parts"),
    ({"contents": [X, ANSWERED]}, "function response turn comes immediately after a function call turn"),
    ({"contents": [MADE, ANSWERED]}, "function call turn comes immediately after a user turn"),
    ({"contents": [X, {"role": "model", "parts": [{"text": "a"}]}, MADE, ANSWERED]}, "function call turn comes immediately"),
    ({"contents": [X, MADE, {"role": "user", "parts": ANSWERED["parts"] * 2}]}, "number of function response parts"),
    (
        {"contents": [X, MADE, {"role": "user", "parts": [{"functionResponse": {"name": "g", "response": {}}}]}]},
        "matches no function call",
    ),
    (
        {"contents": [X, MADE, {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "x", "response": {}}}]}]},
        "matches no function call",
    ),
    ({"contents": [X, MADE, {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "1"}}]}]}, "protobuf.Struct"),
    ({"contents": [X, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": "{}"}}]}, ANSWERED]}, "protobuf.Struct"),
    ({"contents": [X, {"role": "model", "parts": [{"functionCall": {"args": {}}}]}, ANSWERED]}, "Name cannot be empty"),
    ({"messages": []}, 'Unknown name "messages"'),
    ({"max_tokens": 3}, 'Unknown name "max_tokens"'),
    ({"generationConfig": {"max_tokens": 3}}, "Unknown name \"max_tokens\" at 'generation_config'"),
    ({"generationConfig": {"temperature": 3}}, "must be in the range [0.0, 2.0]"),
    ({"generationConfig": {"maxOutputTokens": 0}}, "must be in the range"),
    ({"generationConfig": {"candidateCount": "2"}}, "Invalid value at 'generation_config.candidateCount'"),
    ({"generationConfig": 3}, "Invalid value at 'generation_config'"),
    ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "set without function_declarations"),
    (tools({"name": "f"}, {"name": "f"}), "Duplicate function declaration found: f"),
    (tools({"name": "1f"}), "Invalid function name"),
    (tools(*({"name": f"f{n}"} for n in range(513))), "at most 512"),
    (tools({"name": "f"}) | {"toolConfig": {"functionCallingConfig": {"mode": "required"}}}, "function_calling_config.mode"),
    (
        tools({"name": "f"}) | {"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}},
        "should only be set when",
    ),
    (
        tools({"name": "f"}) | {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}}},
        "'g' is not one of",
    ),
    (tools({"name": "f", "parameters": {"type": "object", "properties": {}}}), "should be non-empty for OBJECT type"),
    (tools({"name": "f", "parameters": {"type": "string"}}), "must be OBJECT"),
    (parameters(type="string", const="a"), 'Unknown name "const"'),
    (parameters(**{"$ref": "#/$defs/A"}), 'Unknown name "$ref"'),
    (parameters(type="integer", enum=[1]), "only texts"),
    (parameters(type="string", enum=[""]), "none of them empty"),
    (parameters(type="string", format="uri"), "only 'enum' and 'date-time'"),
    (parameters(type="array"), "items: missing field"),
    (parameters(type=["string", "null"]), "type: must be specified"),
    (parameters(), "type: must be specified"),
    (parameters(type="object", properties={"b": {"type": "string"}}, required=["c"]), "property is not defined"),
    (parameters(anyOf=[{"type": "string"}, {"additionalProperties": False}]), 'Unknown name "additionalProperties"'),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_real_server_refuses_is_refused(change, words):
    status, content = asked({"contents": [X]} | change)
    error = json.loads(content)["error"]
    assert (status, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert words in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"contents": {"parts": {"text": "x"}}},
        {"contents": [X, {"role": "model", "parts": [{"text": ""}]}, X]},
        {"contents": [X, MADE, ANSWERED, MADE, ANSWERED, X]},
        {"contents": [X, MADE, {**ANSWERED, "role": "function"}]},
        {"contents": [{"role": "user", "parts": [{"text": "x"}, {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}]}]},
        {"contents": [X], "system_instruction": {"parts": [{"text": "s"}]}, "safety_settings": []},
        {"contents": [X, {"role": "model", "parts": [{"text": "t", "thought": True}, *MADE["parts"]]}, ANSWERED]},
        {"contents": [X], "tools": [{"googleSearch": {}}]},
        {"contents": [X]}
        | tools({"name": "a.b:c-d", "parameters_json_schema": {"type": "object", "properties": {"a": {"const": 1}}}}),
        {"contents": [X]} | tools({"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "OBJECT"}}}}),
    ],
)
def test_what_a_real_server_takes_is_taken(body):
    assert asked(body)[0] == 200


def test_errors_have_the_word_of_their_status():
    for status, word in {
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        413: "INVALID_ARGUMENT",
    }.items():
        assert writer.error(Refused("x", status=status)) == {"error": {"code": status, "message": "x", "status": word}}


def test_gemini_3_signs_its_calls_and_wants_the_signatures_back():
    text = "Weather in Paris and Rome?"
    reply = received([asked(prompt(text), "gemini-3-pro")[1]])
    first, second = reply.message.tool_calls
    assert first.extra["part"]["thoughtSignature"]
    assert "part" not in second.extra
    assert len({first.id, second.id}) == 2
    results = [Message("tool", (ToolResult(call.id, call.name, (Text("18"),)),)) for call in (first, second)]

    def status(message, *, signed=True):
        request = adapter.request([Message.of("user", text), message, *results], [WEATHER], model="gemini-3-pro")
        body = json.loads(request.content)
        for part in () if signed else body["contents"][1]["parts"]:
            part.pop("thoughtSignature", None)
        return mock.answer(request.path, json.dumps(body).encode()).status

    assert status(reply.message) == 200
    bare = tuple(
        ToolCall(call.id, call.name, call.arguments, extra={"wire": "gemini_generate", "call": call.extra["call"]})
        for call in (first, second)
    )
    assert status(Message("assistant", bare)) == 200  # the adapter says that it has none
    assert status(Message("assistant", bare), signed=False) == 400
    other = {**first.extra, "part": {"thoughtSignature": "b3RoZXI="}}
    assert status(Message("assistant", (ToolCall(first.id, first.name, first.arguments, extra=other), second))) == 400
    foreign = {**first.extra, "part": {"thoughtSignature": checks.SENTINEL}}
    assert status(Message("assistant", (ToolCall(first.id, first.name, first.arguments, extra=foreign), second))) == 200


def test_a_run_over_a_signing_model_comes_to_its_end():
    run = Agent("mock", tools=[weather], wire="gemini_generate").run("Weather in Paris?", view=False)
    assert run.reason == "stop"
    history, calls = [Message.of("user", "Weather in Paris?")], 0
    for _ in range(3):
        reply = received(mock.send(adapter.request(history, [WEATHER], model="gemini-3-pro", stream=True)))
        history.append(reply.message)
        calls += len(reply.message.tool_calls)
        history += [Message("tool", (ToolResult(call.id, call.name, (Text("18"),)),)) for call in reply.message.tool_calls]
    assert (calls, reply.finish) == (1, "stop")


@tool
def weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    return {"city": city, "temperature": 21}


# ------------------------------------------------------------------------------------------------- the vendor's own client


@pytest.fixture(scope="module")
def client():
    with server.running() as url:
        made = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url, timeout=20_000))
        yield made
        made.close()


def config(definitions):
    declarations = [
        types.FunctionDeclaration(name=d.name, description=d.description, parameters_json_schema=d.parameters) for d in definitions
    ]
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(tools=[types.Tool(function_declarations=declarations)], automatic_function_calling=off)


def over_http(client):
    """One turn by the official client: its content, its finish reason and its usage."""

    def turn(contents, definitions):
        answer = client.models.generate_content(model="mock", contents=contents, config=config(definitions))
        (candidate,) = answer.candidates
        return candidate.content, candidate.finish_reason, answer.usage_metadata

    return turn


def over_http_streamed(client):
    """The same from a stream, put together by hand."""

    def turn(contents, definitions):
        parts, finish, usage = [], None, None
        for chunk in client.models.generate_content_stream(model="mock", contents=contents, config=config(definitions)):
            (candidate,) = chunk.candidates
            finish, usage = candidate.finish_reason or finish, chunk.usage_metadata or usage
            for part in candidate.content.parts:
                if part.text and parts and parts[-1].text:
                    parts[-1].text += part.text
                elif part.text != "":
                    parts.append(part)
        return types.Content(role="model", parts=parts), finish, usage

    return turn


def played(turn, prompt, definitions):
    """The loop by hand: the calls of each round, the last text, and what each reply cost."""
    contents, calls, costs = [types.Content(role="user", parts=[types.Part(text=prompt)])], [], []
    for _ in range(6):
        content, finish, usage = turn(contents, definitions)
        costs.append((finish, usage.prompt_token_count, usage.candidates_token_count))
        made = [part.function_call for part in content.parts if part.function_call]
        if not made:
            return calls, "".join(part.text for part in content.parts), costs
        calls.append([(call.name, call.args) for call in made])
        results = [
            types.Part.from_function_response(name=call.name, response={"output": RESULTS[call.name](call.args)}) for call in made
        ]
        contents = [*contents, content, types.Content(role="user", parts=results)]
    raise AssertionError("no end")


def in_process(prompt, definitions, *, stream):
    """The same without a socket, through our own adapter."""
    history, calls, costs = [Message.of("user", prompt)], [], []
    declarations = [{"name": d.name, "description": d.description, "parametersJsonSchema": d.parameters} for d in definitions]
    for _ in range(6):
        request = adapter.request(
            history, (), model="mock", stream=stream, settings={"tools": [{"functionDeclarations": declarations}]}
        )
        reply = received(mock.send(request))
        assert reply.usage.input == tokens.breakdown(adapter.segments(request.body), model="mock").total
        costs.append((reply.raw_finish, reply.usage.input, reply.usage.output))
        history.append(reply.message)
        if not reply.message.tool_calls:
            return calls, reply.message.text, costs
        calls.append([(call.name, json.loads(call.arguments)) for call in reply.message.tool_calls])
        for call in reply.message.tool_calls:
            value = RESULTS[call.name](json.loads(call.arguments))
            text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            history.append(Message("tool", (ToolResult(call.id, call.name, (Text(text),)),)))
    raise AssertionError("no end")


@pytest.mark.parametrize("flow", FLOWS)
def test_the_official_client_gets_the_same_as_the_process(client, flow):
    prompt, definitions, names = FLOWS[flow]
    here = in_process(prompt, definitions, stream=False)
    assert [[name for name, _ in made] for made in here[0]] == names
    assert here[1]
    assert in_process(prompt, definitions, stream=True) == here
    for turn in (over_http(client), over_http_streamed(client)):
        assert played(turn, prompt, definitions) == here


def test_the_official_client_raises_what_is_refused(client):
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="mock", contents=[types.Content(role="tool", parts=[types.Part(text="x")])])
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


def test_the_chat_of_the_official_client_calls_python_functions_by_itself(client):
    def get_weather(city: str) -> dict:
        """Get the weather of a city."""
        return {"city": city, "temperature": 18}

    chat = client.chats.create(
        model="mock", config=types.GenerateContentConfig(tools=[get_weather], system_instruction="Be brief.")
    )
    assert "18" in chat.send_message("What's the weather in Paris?").text
    assert [content.role for content in chat.get_history()] == ["user", "model", "user", "model"]
    assert chat.send_message("hello").text


# ------------------------------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("stream", [True, False])
def test_the_file_task_goes_as_over_chat_completions(tmp_path, stream):
    runs = []
    for wire in ("chat_completions", "gemini_generate"):
        folder = tmp_path / wire
        demo.make_folder(folder)
        agent = Agent("mock", tools=file_tools(folder), system=demo.SYSTEM, wire=wire, stream=stream)
        runs.append(agent.run(demo.PROMPT, view=False))
    calls = [[[(c.name, c.arguments) for c in m.tool_calls] for m in run.messages if m.role == "assistant"] for run in runs]
    assert calls[0] == calls[1]
    assert [len(made) for made in calls[1]] == [2, 1, 0]
    assert runs[0].text == runs[1].text
    assert {call.id for message in runs[1].messages for call in message.tool_calls} == {"call_2_0", "call_2_1", "call_5_0"}
    assert runs[1].state["rounds"]


def test_a_tool_that_fails_is_read_as_one_that_failed():
    @tool
    def get_weather(city: str) -> dict:
        """Current weather of a city.

        Args:
            city: name of the city, e.g. Berlin
        """
        raise LookupError(f"no data for {city}")

    texts = [
        Agent(tools=[get_weather], wire=wire).run("Weather in Oslo?", view=False).text
        for wire in ("chat_completions", "gemini_generate")
    ]
    assert texts[0] == texts[1]


def test_the_slow_model_is_paced(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    body = {"contents": [user("Tell me a long story")]}
    events(body, "mock-slow")
    assert sum(slept) > 2
    assert max(slept) <= 0.05
    slept.clear()
    events(body)
    assert slept == []


def test_requests_that_are_no_json_are_refused_in_the_vendors_form():
    answered = mock.answer(PATH.format("mock", "generateContent"), b"{")
    assert json.loads(b"".join(answered.chunks))["error"]["status"] == "INVALID_ARGUMENT"
    assert Request("gemini_generate", "/models/mock:generateContent", {}).content == b"{}"
