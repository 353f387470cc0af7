"""What refusals teach: every server's words for a full window, numbers that are no window, and what is kept of them."""

import json

import pytest

from nb_agent import Agent, budget
from nb_agent.adapters.refusals import refusal
from nb_agent.errors import ProviderError
from nb_agent.windows import learned, limit_in, remember, use, window_in, window_of

FULL = [
    # OpenAI, Azure and those that speak like them
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", 8_192),
    ("This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3975 in your prompt).", 4_097),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens.", 272_000),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
    ("This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens.", 131_072),
    ("context_length_exceeded: 9001 tokens sent, limit 8192", 8_192),
    # Anthropic and Gemini
    ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
    ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length", 200_000),
    ("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
    ("The input token count exceeds the maximum number of tokens allowed 1048576.", 1_048_576),
    ("the input token count is 1200000 but model only supports up to 1048576. Reduce the input token count.", 1_048_576),
    # servers at home
    ("request (9012 tokens) exceeds the available context size (4096 tokens), try increasing it", 4_096),
    ("You passed 4097 input tokens. However, the model's context length is only 4096 tokens, leaving 3996 tokens.", 4_096),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096. Shorten it.", 4_096),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 4_096),
    ("Input validation error: `inputs` must have less than 1024 tokens. Given: 1700", 1_024),
    ("tokens to keep is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try a larger one", 4_096),
    ("Requested tokens (9001) exceed context window of 512", 512),
    ("prompt too long; exceeded max context length by 1234 tokens", None),
    ("the combined length of the prompt tokens (5000) and max_tokens (100) exceeds the context length 4096", 4_096),
    ("length of prompt_tokens (9000) must be less than max_seq_len (8192).", 8_192),
    # others
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768),
    ("too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 140000", 128_000),
    ("too many tokens: size limit exceeded by 11326 tokens. The limit for this model is 128000 tokens.", 128_000),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
    ("InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129_024),
    ("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)", 8_192),
    ("invalid params, context window exceeds limit (2013)", None),
    ("prompt token count of 70000 exceeds the limit of 64000", 64_000),
    ("input is too long: exceeds 196,608 tokens limit", 196_608),
    ("Prompt length exceeds max length: 40960 > 32768", 32_768),
    ("Context size 9001 is larger than allowed 8192", 8_192),
    ("the prompt is too long for the context window of 128k tokens", None),
    ("输入长度超出上限:最大 8192 个 token,实际 9001", 8_192),
    ("当前请求的输入长度超过模型最大上下文长度 32768", 32_768),
]


@pytest.fixture(autouse=True)
def forget():
    yield
    use({})
    learned._windows.clear()


def refused(words, status=400, **fields):
    return refusal(status, json.dumps({"error": {"message": words, **fields}}).encode())


@pytest.mark.parametrize(("words", "window"), FULL)
def test_a_full_window_is_known_in_the_words_of_every_server(words, window):
    error = refused(words)
    assert error.kind == "context_length"
    assert (window_in(str(error)), limit_in(words)) == (window, window)


@pytest.mark.parametrize(
    "words",
    [
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. Reduce the input or output tokens.",
        "Request too large for model `m` on tokens per minute (TPM): Limit 12000, Requested 15000, reduce your message size",
        "Request too large for model `m` on tokens per day (TPD): Limit 100000, Requested 150000",
    ],
)
def test_a_limit_per_minute_makes_one_request_shorter_and_is_no_window(words):
    error = refused(words, 413)
    assert error.kind == "context_length"
    assert limit_in(str(error)) in {12_000, 30_000, 100_000}
    assert window_in(str(error)) is None


@pytest.mark.parametrize(
    "words",
    [
        "Request exceeds the maximum allowed number of bytes. The maximum request size is 33554432 bytes",
        "request entity too large: at most 20971520 bytes",
        "The maximum request size is 32 MB",
        "request exceeds the size limit",
    ],
)
def test_a_limit_in_bytes_is_no_window(words):
    assert limit_in(str(refused(words, 413))) is None


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens, whereas you provided 99999.",
        "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
        "'max_tokens' is too large: 5000. The maximum context length is 4096 tokens and your request has 100 input tokens.",
        "The number of completion tokens exceeds the limit of this model",
        "messages: at most 2048 are allowed",
    ],
)
def test_an_answer_that_is_too_long_and_a_list_that_is_too_long_are_no_full_window(words):
    assert refused(words).kind == "bad_request"


@pytest.mark.parametrize(("status", "type_"), [(400, "exceed_context_size_error"), (500, "exceed_context_size_error")])
def test_a_window_that_stands_beside_the_words_is_read_too(status, type_):
    error = refused("the request exceeds the available context size", status, type=type_, n_prompt_tokens=9_012, n_ctx=4_096)
    assert (error.kind, window_in(str(error))) == ("context_length", 4_096)


def test_what_a_server_says_goes_before_the_table_and_the_smallest_counts():
    assert window_of("gpt-4o") == 128_000
    remember("gpt-4o", 8_000)
    remember("gpt-4o", 9_000)
    assert window_of("gpt-4o") == 8_000


def run_refused(monkeypatch, words, model):
    def send(self, request, until=None):
        raise refused(words)
        yield b""

    monkeypatch.setattr("nb_agent.transport.Transport.send", send)
    agent = Agent(model, base_url="http://127.0.0.1:9/v1", compaction=None)
    with pytest.raises(ProviderError):
        agent.run("hello", view=False)
    return agent


def test_a_known_model_that_is_served_with_less_is_believed(monkeypatch):
    agent = run_refused(monkeypatch, "Request body too large: maximum context length is 8000 tokens", "gpt-4o")
    assert budget(agent.last_run.requests[0], "gpt-4o").window == 8_000


def test_a_window_larger_than_the_known_one_teaches_nothing(monkeypatch):
    run_refused(monkeypatch, "maximum context length is 900000 tokens", "gpt-4o")
    assert window_of("gpt-4o") == 128_000
