import json
import socket
import threading

import httpx
import openai
import pytest
import wires

from nb_agent import adapters, mock, tokens
from nb_agent.adapters import chat_completions as adapter
from nb_agent.errors import SettingError
from nb_agent.messages import Request
from nb_agent.mock import server


@pytest.fixture(scope="module")
def url():
    with server.running() as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=20) as made:
        yield made


def function(definition):
    parts = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
    return {"type": "function", "function": parts}


FLOWS = {name: (prompt, list(map(function, tools)), names) for name, (prompt, tools, names) in wires.FLOWS.items()}
WEATHER = function(wires.WEATHER)


def over_http(client):
    """One turn by the official client, unstreamed: its message as a dict, its finish reason and its usage."""

    def turn(request):
        answer = client.chat.completions.create(**request)
        choice = answer.choices[0]
        message = {"role": "assistant", "content": choice.message.content}
        if choice.message.tool_calls:
            message["tool_calls"] = [call.model_dump(include={"id", "type", "function"}) for call in choice.message.tool_calls]
        return message, choice.finish_reason, answer.usage.prompt_tokens, answer.usage.completion_tokens

    return turn


def over_http_streamed(client):
    """The same from a stream, put together by hand as the vendor's guide does it."""

    def turn(request):
        text, calls, finish, usage = "", {}, None, None
        for chunk in client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    entry = calls.setdefault(piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
                    entry["id"] += piece.id or ""
                    entry["function"]["name"] += piece.function.name or ""
                    entry["function"]["arguments"] += piece.function.arguments or ""
        message = {"role": "assistant", "content": text or None, **({"tool_calls": list(calls.values())} if calls else {})}
        return message, finish, usage.prompt_tokens, usage.completion_tokens

    return turn


def in_process(*, stream):
    """The same without a socket and through our own adapter."""

    def turn(request):
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        reading = adapters.receive(
            "chat_completions", mock.send(Request("chat_completions", "/chat/completions", {**request, **more}))
        )
        while True:
            try:
                next(reading)
            except StopIteration as end:
                reply = end.value
                break
        written = adapter.request([reply.message], [], model="mock").body["messages"][0]
        return dict(written), reply.finish, reply.usage.input_tokens, reply.usage.output_tokens

    return turn


def played(turn, prompt, tools):
    """The loop by hand: every message, and what each reply cost."""
    messages, costs = [{"role": "user", "content": prompt}], []
    for _ in range(6):
        request = {"model": "mock", "messages": messages, "tools": tools}
        message, finish, read, written = turn(request)
        assert read == tokens.breakdown(adapter.segments(request), model="mock").total
        costs.append((finish, read, written))
        messages = [*messages, message]
        if "tool_calls" not in message:
            return messages, costs
        for call in message["tool_calls"]:
            given = json.loads(call["function"]["arguments"])
            value = wires.RESULTS[call["function"]["name"]](given)
            content = value if isinstance(value, str) else json.dumps(value)
            messages = [*messages, {"role": "tool", "tool_call_id": call["id"], "content": content}]
    raise AssertionError("no end")


@pytest.mark.parametrize("flow", FLOWS)
def test_the_official_client_gets_the_same_as_the_process(client, flow):
    prompt, tools, names = FLOWS[flow]
    here, costs = played(in_process(stream=False), prompt, tools)
    called = [[call["function"]["name"] for call in message["tool_calls"]] for message in here if "tool_calls" in message]
    assert called == names
    assert here[-1]["content"]
    assert [finish for finish, _, _ in costs] == ["tool_calls"] * len(names) + ["stop"]
    for turn in (over_http(client), over_http_streamed(client), in_process(stream=True)):
        assert played(turn, prompt, tools) == (here, costs)


def test_the_report_of_the_three_rounds_holds_what_was_read(client):
    prompt, tools, _ = FLOWS["three rounds"]
    messages, _ = played(over_http_streamed(client), prompt, tools)
    write = json.loads(messages[4]["tool_calls"][0]["function"]["arguments"])
    assert write["path"] == "report.md"
    assert "- name: demo\n- version: 2" in write["content"]
    assert "- README.md" in write["content"]
    assert messages[-1]["content"].endswith("The summary is in report.md.")


def test_the_streaming_helper_of_the_official_client_takes_the_stream(client):
    with client.chat.completions.stream(
        model="any-name", messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[WEATHER]
    ) as made:
        final = made.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.arguments == '{"city":"Oslo"}'


def test_errors_reach_the_official_client_as_its_own(client):
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model="mock-1k", messages=[{"role": "user", "content": "word " * 2000}])
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "messages")
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceding message"):
        client.chat.completions.create(model="mock", messages=[{"role": "tool", "tool_call_id": "x", "content": "y"}])
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        client.embeddings.create(model="mock", input="x")
    assert [model.id for model in client.models.list()] == list(mock.MODELS)


def test_a_slow_answer_comes_piece_by_piece(url):
    request = {"model": "mock-slow", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    with httpx.stream("POST", f"{url}/chat/completions", json=request, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        pieces = [piece for _, piece in zip(range(4), answer.iter_raw(), strict=False)]
    assert len(pieces) == 4
    assert all(piece.endswith(b"\n\n") for piece in pieces)
    assert b"[DONE]" not in b"".join(pieces)


def test_the_server_says_what_it_is_and_refuses_what_it_does_not_know(url):
    assert httpx.get(url).json()["data"][0]["id"] == "mock"
    assert httpx.post(f"{url}/v1/chat/completions", content=b"{").json()["error"]["type"] == "invalid_request_error"
    assert httpx.put(f"{url}/v1/models").status_code == 405


def test_a_fault_of_the_mock_itself_is_a_500_in_the_usual_form(url, monkeypatch):
    def broken(path, content, served):
        raise RuntimeError("oops")

    monkeypatch.setattr(mock, "answer", broken)
    answer = httpx.post(f"{url}/v1/chat/completions", json={})
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, "the mock model failed: RuntimeError: oops")


def test_the_port_is_free_again_afterwards_and_the_thread_has_ended():
    before = set(threading.enumerate())
    with server.running() as address:
        assert httpx.get(f"{address}/v1/models").status_code == 200
        serving = set(threading.enumerate()) - before
    port = int(address.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        pass
    assert "nb_agent mock server" in {thread.name for thread in serving}
    assert not any(thread.is_alive() for thread in serving if thread.name == "nb_agent mock server")


def test_a_port_in_use_is_one_sentence_with_the_next_step():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"cannot listen on 127.0.0.1 port {port}: it is in use; choose another with --port"):
            server.serve("127.0.0.1", port)
    with pytest.raises(SettingError, match="a port is a number from 0 to 65535"):
        server.serve("127.0.0.1", 70_000)
    with pytest.raises(SettingError, match=r"cannot listen on no\.such\.host\.invalid port 0"):
        server.serve("no.such.host.invalid")
