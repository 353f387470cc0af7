"""A mock model to order: window, speed and fault by the model's name, for a whole server, or by a word of the prompt.

Each fault is seen for what it is, over all four wire formats, streamed and whole. Nothing waits: pauses are counted or shortened.
"""

import contextlib
import json
import subprocess
import sys
from types import SimpleNamespace

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types

from nb_agent import Agent, mock, tool
from nb_agent.adapters import WIRES
from nb_agent.errors import AgentError, ProviderError, SettingError
from nb_agent.messages import Definition
from nb_agent.mock import faults, wire
from nb_agent.mock.planner import plan
from nb_agent.mock.plans import Ask
from nb_agent.mock.server import running
from nb_agent.retrying import Patience
from nb_agent.views.fold import Fold
from nb_agent.views.text import text

SAYS = "hello"
#: Wire format -> path and body of a request; what else the body takes is added to it.
BODIES = {
    "chat_completions": ("/v1/chat/completions", lambda says: {"messages": [{"role": "user", "content": says}]}),
    "responses": ("/v1/responses", lambda says: {"input": says}),
    "anthropic_messages": ("/v1/messages", lambda says: {"messages": [{"role": "user", "content": says}], "max_tokens": 900}),
    "gemini_generate": (
        "/v1/models/{model}:generateContent",
        lambda says: {"contents": [{"role": "user", "parts": [{"text": says}]}]},
    ),
}


def asked(form, *, model="mock", says=SAYS, served=None, **more):
    path, body = BODIES[form]
    named = {} if form == "gemini_generate" else {"model": model}
    answered = mock.answer(path.format(model=model), json.dumps(named | body(says) | more).encode(), served)
    return answered.status, json.loads(b"".join(answered.chunks))


def refusal(form, **given):
    status, body = asked(form, **given)
    return status, body["error"]


# ------------------------------------------------------------------------------------------------------- by the model's name


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("mock", (8192, 0, "")),
        ("mock:window=1500,speed=40,fault=drop", (1500, 40, "drop")),
        ("mock: fault = drop , speed=0.5,", (8192, 0.5, "drop")),
        ("mock:drop,window=70", (70, 0, "drop")),
        ("mock-slow:window=1500", (1500, 30, "")),
        ("mock-1k:speed=2", (1024, 2, "")),
        ("llama3:8b", (8192, 0, "")),
        ("gpt-4o:window=10", (8192, 0, "")),
    ],
)
def test_a_name_says_what_is_to_be_different(name, made):
    model = mock.models.model(name)
    assert (model.window, model.speed, model.fault) == made
    assert mock.window(name) == made[0]


@pytest.mark.parametrize("form", WIRES)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mock:size=4", r"no option named 'size'\. It has: window=a whole number .*; speed=.*; fault=the name of a fault"),
        ("mock:window=big", "option 'window' takes a whole number of tokens, such as 1500, and not 'big'"),
        ("mock:window=0", "and not '0'"),
        ("mock:window", "option 'window' takes .* and not ''"),
        ("mock:speed=-3", "option 'speed' takes a number of tokens a second, such as 40, and not '-3'"),
        ("mock:speed=nan", "and not 'nan'"),
        ("mock:fault=nonsense", r"no fault named 'nonsense'\. It has: invented_argument, .*, stall\."),
        ("mock:nonsense", "no fault named 'nonsense'"),
    ],
)
def test_a_wrong_option_is_one_line_that_names_it_and_what_there_is(form, name, words):
    with pytest.raises(ProviderError, match=words) as refused:
        Agent(name, wire=form).run(SAYS)
    assert refused.value.kind == "bad_request"
    assert "\n" not in str(refused.value)
    assert refusal(form, model=name)[0] == 400


def test_what_a_name_asks_for_counts_more_than_what_its_server_is_told():
    served = faults.served(window="20", speed="3", fault="overload")
    assert refusal("responses", says="word " * 50, served=faults.served(window="20"))[1]["code"] == "context_length_exceeded"
    assert asked("responses", says="word " * 50, model="mock:window=900", served=faults.served(window="20"))[0] == 200
    assert refusal("responses", served=served)[0] == 503
    assert refusal("responses", served=served, model="mock:bad_key")[0] == 401
    assert refusal("responses", served=served, model="mock:bad_key", says="hello fault:rate_limit")[0] == 429


@pytest.mark.parametrize("given", [{"window": "x"}, {"speed": "0"}, {"fault": "nonsense"}])
def test_a_server_is_not_started_with_a_wrong_option(given):
    with pytest.raises(SettingError, match=r"The mock model('s option|  ?has no fault)"):
        faults.served(**given)


# ------------------------------------------------------------------------------------------------------- by a word of the prompt


@pytest.mark.parametrize(
    "prompt",
    ["fault:overload", "hello, FAULT:Overload!", "你好fault:overload", "你好，fault：overload。", "(fault:overload) hello"],
)
def test_the_word_is_found_wherever_it_stands(prompt):
    assert refusal("chat_completions", says=prompt)[0] == 503


@pytest.mark.parametrize("prompt", ["default:overload", "a fault: overload", "fault overload", "Fault:"])
def test_what_is_not_the_word_is_not_taken_for_it(prompt):
    assert asked("chat_completions", says=prompt)[0] == 200


def test_only_what_the_user_said_last_asks_for_a_fault():
    earlier = [{"role": "user", "content": "fault:overload"}, {"role": "assistant", "content": "Ok."}]
    assert asked("chat_completions", messages=[*earlier, {"role": "user", "content": "hello"}])[0] == 200


# ------------------------------------------------------------------------------------------------------- faults, and how they look


@tool
def get_weather(city: str) -> dict:
    """Current weather of a city.

    Args:
        city: name of the city, e.g. Berlin
    """
    return {"city": city, "temperature": 21}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("nb_agent.providers.Patience", lambda: Patience(sleep=lambda seconds: None))
    monkeypatch.setattr("nb_agent.exchange._PAUSE", 0.001)


#: Fault -> how the run ends, and words of the view; each list is for the formats that its key names.
FAILED = "Ended: error, the model server failed or refused"
SEEN = {
    "invented_argument": ("stop", ['Call get_weather(city="ABC-123"): done']),
    "unknown_tool": ("stop", ["failed at “known”: there is no tool named 'get_weather_v2'"]),
    "broken_arguments": ("stop", ["failed at “parsed”: the arguments are not one JSON object"]),
    "wrong_type": ("stop", ["failed at “fits schema”", 'city: expected a valid string, got ["Berlin"]']),
    "repeat": ("max_rounds", ["These calls gave the same results 3 times"]),
    "cut_arguments": (
        "stop",
        ["Reply 1: length", "the arguments were cut off at the output token limit and the call was not made"],
    ),
    "filter": ("content_filter", ["Reply 1: content_filter", "the provider filtered the answer"]),
    "two_choices": ("stop", ['choice 2 was not chosen: get_weather({"city":"Berlin"})']),
    "rate_limit": (
        "error",
        ["waited 1.00 s: rate limit", "HTTP 429: Rate limit reached", "the server asks to come back in 1 s", FAILED],
    ),
    "busy_once": ("stop", [": overload (the model server answered HTTP 5", "The engine is busy"]),
    "server_error": ("error", ["HTTP 500: The server had an error.", "ried 3 times", FAILED]),
    "overload": ("error", ["waited 0.", ": overload (the model server answered HTTP 5", "The engine is overloaded.", FAILED]),
    "bad_key": ("error", ["HTTP 401: Incorrect API key provided.", "check the key", FAILED]),
    "context": ("error", ["HTTP 400", "8193", "too long, a shorter one follows", FAILED]),
    "drop": ("error", [": stream interrupted (", FAILED]),
    "broken_json": ("error", ["the model server sent broken JSON", FAILED]),
    "error_in_stream": ("error", ["the model server broke off with an error: The worker ran out of slots.", FAILED]),
    "stall": ("time_limit", ["the time limit of the run was reached"]),
}
#: What cannot be seen over a format: Gemini hands out whole calls only, and two formats have one choice.
OTHERWISE = {
    ("broken_arguments", "gemini_generate"): ("error", ["the model ended with MALFORMED_FUNCTION_CALL", FAILED]),
    ("cut_arguments", "gemini_generate"): (
        "length",
        ["Reply 1: length (MAX_TOKENS)", "the answer was cut off at the output limit"],
    ),
    ("two_choices", "responses"): ("stop", ["Reply 1: tool_calls"]),
    ("two_choices", "anthropic_messages"): ("stop", ["Reply 1: tool_calls"]),
}


def view(fault, *, model="mock", word="", form="chat_completions", stream=True):
    """The state of a run with a fault, and its text."""
    prompt = "What is the weather?" if fault == "invented_argument" else "What is the weather in Berlin?"
    limits = {"max_rounds": 4, "time_limit": 0.1 if fault == "stall" else 20}
    fold = Fold()
    with contextlib.suppress(AgentError):  # the view has it too
        Agent(model, tools=[get_weather], wire=form, stream=stream, **limits).run(prompt + word, on_event=fold.apply)
    return fold.state, text(fold.state)


def test_every_fault_is_looked_at_here():
    assert list(SEEN) == list(faults.FAULTS)


@pytest.mark.parametrize("fault", SEEN)
@pytest.mark.parametrize("form", WIRES)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_fault_is_seen_for_what_it_is(fault, form, stream):
    state, shown = view(fault, model=f"mock:fault={fault}", form=form, stream=stream)
    reason, words = OTHERWISE.get((fault, form), SEEN[fault])
    assert state["ending"]["reason"] == reason
    assert [part for part in words if part not in shown] == []


@pytest.mark.parametrize("fault", SEEN)
@pytest.mark.parametrize("way", ["word", "name", "server"])
def test_a_fault_is_the_same_whichever_way_it_is_asked_for(fault, way, monkeypatch):
    if way == "server":
        answer, served = mock.answer, faults.served(fault=fault)
        monkeypatch.setattr(mock, "answer", lambda path, content, _=None: answer(path, content, served))
    asking = {"word": {"word": f" fault:{fault}"}, "name": {"model": f"mock:{fault}"}, "server": {}}[way]
    state, shown = view(fault, **asking)
    assert state["ending"]["reason"] == SEEN[fault][0]
    assert [part for part in SEEN[fault][1] if part not in shown] == []


def test_a_busy_server_shows_its_wait_and_the_run_goes_on():
    state, shown = view("busy_once", model="mock:busy_once")
    assert [wait["attempt"] for wait in state["rounds"][0]["retries"]] == [1]
    assert "Weather for Berlin: temperature 21." in shown


def drafts_of(fault, arguments, *, calls=1):
    made = wire.ToolCall("call_1", "f", json.dumps(arguments))
    draft = wire.Draft("", (made,) * calls, "tool_calls")
    ask = Ask("mock", (wire.Message.of("user", "x"),), (Definition("f", "f", {"type": "object"}),))
    return faults.spoil(faults.FAULTS[fault], [draft], ask, "seed")[0]


@pytest.mark.parametrize("first", ["plain", 'a "quoted" one, with {braces}', 3, 1.5, True, None, {"deep": 1}, "京都"])
def test_a_wrong_type_is_still_json_whatever_the_value_was(first):
    given = {"first": first, "second": ["x"]}
    assert json.loads(drafts_of("wrong_type", given).calls[0].arguments) == {"first": [first], "second": ["x"]}


def test_a_wrong_type_is_found_for_lists_and_for_no_arguments_too():
    assert json.loads(drafts_of("wrong_type", {"items": [1]}).calls[0].arguments) == {"items": "[1]"}
    assert json.loads(drafts_of("wrong_type", {}).calls[0].arguments) == {"unheard_of": [True]}


def test_nothing_comes_behind_a_call_that_was_cut():
    draft = drafts_of("cut_arguments", {"first": "京都"}, calls=3)
    assert (len(draft.calls), draft.finish) == (1, "length")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(draft.calls[0].arguments)


# ------------------------------------------------------------------------------------------------------- over HTTP


@pytest.fixture(scope="module")
def url():
    with running() as address:
        yield address


def test_the_command_serves_what_it_is_told_to():
    command = [sys.executable, "-m", "nb_agent.cli", "mock", "--port", "0"]
    options = ["--window", "300", "--speed", "9000", "--fault", "filter"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, encoding="utf-8") as started:
        try:
            base = started.stdout.readline().split()[3]
            with openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0, timeout=20) as client:
                ask = client.chat.completions.create
                said = [{"role": "user", "content": "hello"}]
                assert ask(model="any", messages=said).choices[0].finish_reason == "content_filter"
                with pytest.raises(openai.BadRequestError, match="maximum context length is 300 tokens"):
                    ask(model="any", messages=[{"role": "user", "content": "word " * 400}])
                with pytest.raises(openai.RateLimitError):
                    ask(model="mock:rate_limit", messages=said)
        finally:
            started.terminate()


def test_the_command_says_what_is_wrong_with_an_option_and_does_not_start():
    command = [sys.executable, "-m", "nb_agent.cli", "mock", "--port", "0", "--fault", "nonsense"]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=20, check=False)
    assert (ended.returncode > 0, ended.stdout) == (True, "")
    assert ended.stderr.count("\n") == 1
    assert "no fault named 'nonsense'. It has: invented_argument, " in ended.stderr


def test_a_server_that_asks_to_slow_down_says_for_how_long(url):
    body = {"model": "mock:rate_limit", "messages": [{"role": "user", "content": "hello"}]}
    answered = httpx.post(f"{url}/v1/chat/completions", json=body)
    assert (answered.status_code, answered.headers["retry-after"]) == (429, "1")


@pytest.mark.parametrize("form", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_dropped_connection_is_gone_for_real(url, form, stream):
    agent = Agent("mock:drop", base_url=url, api_key="any", wire=form, stream=stream)
    with pytest.raises(ProviderError, match="broke off in the middle of the answer") as caught:
        agent.run("hello")
    assert caught.value.kind == "stream_interrupted"


def test_nothing_is_printed_by_a_server_whose_connections_break_off(capfd):
    with running() as address, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{address}/v1/responses", json={"model": "mock:drop", "input": "hello"})
    assert capfd.readouterr() == ("", "")


def test_the_vendors_own_clients_take_an_error_in_a_stream_for_one(url):
    said = [{"role": "user", "content": "hello"}]
    gpt = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    claude = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    gemini = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url))
    with gpt, claude:
        with pytest.raises(openai.APIError, match="ran out of slots"):
            list(gpt.chat.completions.create(model="mock:error_in_stream", messages=said, stream=True))
        last = list(gpt.responses.create(model="mock:error_in_stream", input="hello", stream=True))[-1]
        assert (last.type, last.message) == ("error", "The worker ran out of slots.")
        with pytest.raises(anthropic.APIStatusError) as broken:
            list(claude.messages.create(model="mock:error_in_stream", messages=said, max_tokens=99, stream=True))
        assert broken.value.type == "overloaded_error"
        with pytest.raises(anthropic.OverloadedError):
            claude.messages.create(model="mock:overload", messages=said, max_tokens=99)
    with pytest.raises(genai.errors.ServerError, match="UNAVAILABLE"):
        list(gemini.models.generate_content_stream(model="mock:error_in_stream", contents="hello"))
    gemini.close()


# ------------------------------------------------------------------------------------------------------- speed


@pytest.mark.parametrize("form", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_speed_is_tokens_per_second(form, stream, monkeypatch):
    slept = []
    monkeypatch.setattr(wire, "time", SimpleNamespace(sleep=slept.append))
    done = Agent("mock:speed=40", wire=form, stream=stream, time_limit=None).run("hello")
    assert sum(slept) == pytest.approx(done.replies[0].usage.output_tokens / 40, rel=0.01)
    assert max(slept) <= 0.05


def test_a_speed_of_the_server_is_for_names_that_say_none(monkeypatch):
    slept = []
    monkeypatch.setattr(wire, "time", SimpleNamespace(sleep=slept.append))
    _, fast = asked("responses", model="mock:speed=500", served=faults.served(speed="5"))
    short = sum(slept)
    _, slow = asked("responses", served=faults.served(speed="5"))
    assert short == pytest.approx(fast["usage"]["output_tokens"] / 500)
    assert sum(slept) - short == pytest.approx(slow["usage"]["output_tokens"] / 5)


# --------------------------------------------------------------------------------------------- endings, in each one's words

#: What a request says to stop at "mock" -> where its answer says how it ended.
STOPS = {
    "chat_completions": ({"stop": "mock"}, lambda body: body["choices"][0]["finish_reason"], "stop"),
    "anthropic_messages": (
        {"stop_sequences": ["never", "mock"]},
        lambda body: (body["stop_reason"], body["stop_sequence"]),
        ("stop_sequence", "mock"),
    ),
    "gemini_generate": (
        {"generationConfig": {"stopSequences": ["mock"]}},
        lambda body: body["candidates"][0]["finishReason"],
        "STOP",
    ),
}


@pytest.mark.parametrize("form", STOPS)
def test_a_stop_sequence_ends_the_text_and_is_named_as_the_format_does(form):
    more, ended, word = STOPS[form]
    _, body = asked(form, **more)
    assert ended(body) == word
    assert "Hello! I am the " in json.dumps(body)
    assert "model of nb_agent" not in json.dumps(body)


@pytest.mark.parametrize("form", [*STOPS])
@pytest.mark.parametrize("stream", [True, False])
def test_a_stop_sequence_is_an_ordinary_end_of_a_run(form, stream):
    done = Agent(wire=form, stream=stream, stop=["mock"]).run("hello")
    assert (done.reason, done.text) == ("stop", "Hello! I am the ")


def test_responses_have_no_stop_sequence_and_refuse_one():
    assert "stop" in refusal("responses", stop="mock")[1]["message"]


#: How each vendor words that a prompt does not fit: status, words, and the fields beside them.
TOO_LONG = {
    "chat_completions": ("This model's maximum context length is 40 tokens. However, your messages resulted in ",
                         {"type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}),
    "responses": ("Your input exceeds the context window of this model. Please adjust your input and try again.",
                  {"type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}),
    "anthropic_messages": ("prompt is too long: ", {"type": "invalid_request_error"}),
    "gemini_generate": ("The input token count (", {"code": 400, "status": "INVALID_ARGUMENT"}),
}  # fmt: skip


@pytest.mark.parametrize("form", TOO_LONG)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_prompt_that_does_not_fit_is_refused_in_the_vendors_own_words(form, streamed):
    more = {"stream": True} if streamed and form != "gemini_generate" else {}
    status, error = refusal(form, model="mock:window=40", says="word " * 90, **more)
    words, beside = TOO_LONG[form]
    assert status == 400
    assert error.pop("message").startswith(words)
    assert error == beside


@pytest.mark.parametrize("form", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_window_that_fills_while_the_model_speaks_cuts_the_answer(form, stream):
    done = Agent("mock:window=30", wire=form, stream=stream).run("hello", max_rounds=1)
    raw = {
        "chat_completions": "length",
        "responses": "incomplete: max_output_tokens",
        "anthropic_messages": "model_context_window_exceeded",
        "gemini_generate": "MAX_TOKENS",
    }
    assert (done.replies[0].finish, done.replies[0].raw_finish) == ("length", raw[form])
    usage = done.replies[0].usage
    assert usage.input_tokens + usage.output_tokens == 30


def test_a_limit_of_the_request_is_told_apart_from_a_full_window():
    assert asked("anthropic_messages", max_tokens=5)[1]["stop_reason"] == "max_tokens"
    assert asked("anthropic_messages", model="mock:window=30")[1]["stop_reason"] == "model_context_window_exceeded"


def test_the_planner_does_not_see_the_word():
    said = [plan(Ask("mock", (wire.Message.of("user", prompt),), ())).text for prompt in ("你好", "你好fault：busy_once")]
    assert said[0] == said[1]
