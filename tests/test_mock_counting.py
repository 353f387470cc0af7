"""What a request costs, asked beforehand by the vendors' own clients from `nb-agent mock`: the same as a real answer reports."""

import subprocess
import sys

import anthropic
import openai
import pytest
import wires
from google import genai
from google.genai import types

from nb_agent import mock

SCHEMA = wires.WEATHER.parameters
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXTS = ["hello", "柏林今天的天气怎么样？🙂", 'Say "<|endoftext|>" {"a": [1, 2]}\n\n\tend', "word " * 300]


@pytest.fixture(scope="module")
def url():
    """The base URL of the command itself, on a free port."""
    command = [sys.executable, "-m", "nb_agent.cli", "mock", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as running:
        try:
            yield running.stdout.readline().split()[3]
        finally:
            running.terminate()


@pytest.fixture(scope="module")
def gpt(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=20) as made:
        yield made


@pytest.fixture(scope="module")
def claude(url):
    with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0, timeout=20) as made:
        yield made


@pytest.fixture(scope="module")
def gemini(url):
    made = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url, timeout=20_000))
    yield made
    made.close()


RESPONSES_TOOL = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": SCHEMA, "strict": False}
RESPONSES_ROUND = [
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "天气?"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}],
    },
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Berlin"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": '{"temperature": 21}'},
]


@pytest.mark.parametrize("model", ["mock", "mock:window=3000,fault=rate_limit", "another"])
@pytest.mark.parametrize(
    "asked",
    [
        *({"input": text} for text in TEXTS),
        {"input": "hello", "instructions": "Be brief.", "tools": [RESPONSES_TOOL], "tool_choice": "required"},
        {"input": RESPONSES_ROUND, "tools": [RESPONSES_TOOL], "reasoning": {"effort": "low"}},
    ],
)
def test_responses_counts_what_its_answer_costs(gpt, model, asked):
    counted = gpt.responses.input_tokens.count(model=model, **asked)
    answered = gpt.responses.create(model=model.partition(",")[0], **asked)
    assert (counted.object, counted.input_tokens) == ("response.input_tokens", answered.usage.input_tokens)


CLAUDE_TOOL = {"name": "get_weather", "description": "Weather.", "input_schema": SCHEMA}
CLAUDE_ROUND = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "天气?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ],
    },
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Berlin"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "21"}]},
]


@pytest.mark.parametrize("model", ["mock", "mock:window=3000,fault=rate_limit", "another"])
@pytest.mark.parametrize(
    "asked",
    [
        *({"messages": [{"role": "user", "content": text}]} for text in TEXTS),
        {"messages": CLAUDE_ROUND, "system": "Be brief.", "tools": [CLAUDE_TOOL], "tool_choice": {"type": "any"}},
        {"messages": CLAUDE_ROUND[:1], "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ],
)
def test_anthropic_counts_what_its_answer_costs(claude, model, asked):
    counted = claude.messages.count_tokens(model=model, **asked)
    answered = claude.messages.create(model=model.partition(",")[0], max_tokens=1500, **asked)
    assert counted.input_tokens == answered.usage.input_tokens


GEMINI_ROUND = [
    types.Content(
        role="user", parts=[types.Part(text="天气?"), types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png"))]
    ),
    types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(name="get_weather", args={"city": "Berlin"}))]),
    types.Content(
        role="user", parts=[types.Part(function_response=types.FunctionResponse(name="get_weather", response={"output": 21}))]
    ),
]


@pytest.mark.parametrize("model", ["mock", "mock:window=3000,fault=rate_limit", "another"])
@pytest.mark.parametrize("contents", [*TEXTS, GEMINI_ROUND])
def test_gemini_counts_what_its_answer_costs(gemini, model, contents):
    counted = gemini.models.count_tokens(model=model, contents=contents)
    answered = gemini.models.generate_content(model=model.partition(",")[0], contents=contents)
    assert counted.total_tokens == answered.usage_metadata.prompt_token_count


def test_gemini_counts_tools_and_system_text_of_a_wrapped_request():
    inner = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]}%s}'
    path = "/v1beta/models/mock"
    counted = [
        b"".join(mock.answer(f"{path}:countTokens", b'{"generateContentRequest":%s}' % (inner % more)).chunks)
        for more in (b"", b',"model":"models/mock"')
    ]
    answered = b"".join(mock.answer(f"{path}:generateContent", inner % b"").chunks)
    count = counted[0].rpartition(b":")[2].rstrip(b"}")
    assert counted[0] == counted[1]
    assert b'"promptTokenCount":' + count + b"," in answered


def test_what_a_server_refuses_is_refused_by_the_count_too(gpt, claude, gemini):
    with pytest.raises(openai.BadRequestError):
        gpt.responses.input_tokens.count(model="mock", input=[{"type": "function_call_output", "call_id": "x", "output": "y"}])
    with pytest.raises(anthropic.BadRequestError, match="messages: at least one message is required"):
        claude.messages.count_tokens(model="mock", messages=[])
    with pytest.raises(genai.errors.ClientError):
        gemini.models.count_tokens(model="mock", contents=[types.Content(role="system", parts=[types.Part(text="x")])])
    assert mock.answer("/v1/messages/count_tokens", b"{").status == 400


def test_a_prompt_that_does_not_fit_can_still_be_counted(gpt, claude, gemini):
    text = "word " * 2000
    assert gpt.responses.input_tokens.count(model="mock-1k", input=text).input_tokens > 2000
    assert claude.messages.count_tokens(model="mock-1k", messages=[{"role": "user", "content": text}]).input_tokens > 2000
    assert gemini.models.count_tokens(model="mock-1k", contents=text).total_tokens > 2000
