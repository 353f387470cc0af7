"""Error answers, as servers of all four formats send them, to one error each."""

import json

import pytest

from nb_agent.adapters.error_kinds import KIND_OF_NAME, KIND_OF_STATUS
from nb_agent.adapters.refusals import failure, refusal
from nb_agent.errors import PROVIDER_KINDS, WHAT_TO_DO


def openai(message, kind="invalid_request_error", code=None, param=None):
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic(message, kind):
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_9"}


def gemini(message, code, status, *details):
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


KEY_INVALID = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48s"}
PER_MINUTE = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "TokensPerMinute-Free"}]}
PER_DAY = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDay-Free"}]}

ANSWERS = [
    # Chat Completions and Responses
    (400, openai("Too many.", code="context_length_exceeded", param="messages"), "context_length"),
    (400, openai("Your input exceeds the context window of this model.", param="input"), "context_length"),
    (401, openai("Incorrect API key provided.", code="invalid_api_key"), "authentication"),
    (404, openai("The model `x` does not exist or you do not have access to it.", code="model_not_found"), "not_found"),
    (400, openai("The requested model 'x' does not exist.", code="model_not_found", param="model"), "not_found"),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", "context_length"),
    (429, openai("Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 9000.", "tokens"), "rate_limit"),
    (429, openai("You exceeded your current quota, please check your plan.", code="insufficient_quota"), "billing"),
    (500, openai("The server had an error.", "server_error"), "server"),
    (503, openai("Slow down.", "server_error"), "overload"),
    (400, openai("Not supported with this model.", code="unsupported_parameter", param="temperature"), "bad_request"),
    (400, openai("Unsupported value: 'system'.", code="unsupported_value", param="messages[0].role"), "bad_request"),
    (400, openai("Failed to download image.", code="invalid_image_url"), "bad_request"),
    (400, openai("The response was filtered due to the content management policy.", code="content_filter"), "content_filter"),
    (400, openai("Your prompt was flagged as potentially violating our usage policy.", code="invalid_prompt"), "content_filter"),
    (409, openai("Conflict"), "overload"),
    (422, openai("Unprocessable"), "bad_request"),
    (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}, "not_found"),
    # Anthropic
    (400, anthropic("messages: text content blocks must be non-empty", "invalid_request_error"), "bad_request"),
    (400, anthropic("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), "context_length"),
    (
        400,
        anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "invalid_request_error"),
        "context_length",
    ),
    (400, anthropic("max_tokens: 90000 > 64000, which is the maximum allowed number of output tokens", ""), "bad_request"),
    (400, anthropic("Your credit balance is too low to access the API.", "invalid_request_error"), "billing"),
    (401, anthropic("invalid x-api-key", "authentication_error"), "authentication"),
    (402, anthropic("Payment required", "billing_error"), "billing"),
    (403, anthropic("Not allowed", "permission_error"), "authentication"),
    (404, anthropic("model: x", "not_found_error"), "not_found"),
    (413, anthropic("Request exceeds the maximum size", "request_too_large"), "context_length"),
    (
        429,
        anthropic("This request would exceed your rate limit of 30,000 input tokens per minute", "rate_limit_error"),
        "rate_limit",
    ),
    (500, anthropic("Internal server error", "api_error"), "server"),
    (504, anthropic("Timed out", "timeout_error"), "timeout"),
    (529, anthropic("Overloaded", "overloaded_error"), "overload"),
    # Gemini
    (400, gemini("Invalid value", 400, "INVALID_ARGUMENT"), "bad_request"),
    (400, gemini("API key not valid. Please pass a valid API key.", 400, "INVALID_ARGUMENT", KEY_INVALID), "authentication"),
    (400, gemini("The input token count (11) exceeds the maximum number of tokens allowed (10).", 400, "X"), "context_length"),
    (400, gemini("User location is not supported", 400, "FAILED_PRECONDITION"), "bad_request"),
    (403, gemini("No access", 403, "PERMISSION_DENIED"), "authentication"),
    (404, [gemini("models/x is not found for API version v1", 404, "NOT_FOUND")], "not_found"),
    (429, gemini("You exceeded your current quota, please check billing", 429, "RESOURCE_EXHAUSTED", RETRY), "rate_limit"),
    (500, gemini("An internal error has occurred.", 500, "INTERNAL"), "server"),
    (503, gemini("The model is overloaded.", 503, "UNAVAILABLE"), "overload"),
    (504, gemini("Deadline expired", 504, "DEADLINE_EXCEEDED"), "timeout"),
    # Servers that imitate them
    (404, {"error": "model 'x' not found"}, "not_found"),  # ollama
    (404, openai('model "x" not found, try pulling it first', "api_error"), "not_found"),
    (400, {"error": "registry/x does not support tools"}, "bad_request"),
    (400, {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "x"}}, "context_length"),
    (400, {"error": {"code": 400, "message": "too big", "type": "exceed_context_size_error", "n_ctx": 4096}}, "context_length"),
    (500, {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}, "context_length"),
    (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "overload"),
    (501, {"error": {"code": 501, "message": "tools need --jinja", "type": "not_supported_error"}}, "bad_request"),
    (400, {"object": "error", "message": "This model's maximum context length is 9 tokens.", "code": 400}, "context_length"),
    (
        400,
        openai("The decoder prompt (length 9) is longer than the maximum model length of 8", "BadRequestError"),
        "context_length",
    ),
    (
        400,
        openai("'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length is 8"),
        "bad_request",
    ),
    (404, openai("The model `x` does not exist.", "NotFoundError", 404), "not_found"),
    (400, {"error": "Trying to keep the first 9 tokens when context the overflows."}, "context_length"),  # LM Studio
    (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 8. Given: 9", "error_type": "validation"}, "context_length"),
    (429, {"error": "Model is overloaded", "error_type": "overloaded"}, "overload"),
    (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: sk***"}, "authentication"),  # xAI
    (400, {"code": "x", "error": "This model's maximum prompt length is 8 but the request contains 9 tokens."}, "context_length"),
    (403, {"code": "x", "error": "Your newly created team doesn't have any credits yet."}, "billing"),
    (422, {"object": "error", "message": {"detail": [{"loc": ["body", "foo"], "msg": "Extra inputs"}]}}, "bad_request"),  # Mistral
    (401, {"detail": "Unauthorized"}, "authentication"),
    (429, {"message": "Requests rate limit exceeded"}, "rate_limit"),
    (402, openai("Insufficient Balance", "unknown_error"), "billing"),
    (400, openai("Range of input length should be [1, 9]"), "context_length"),  # DashScope
    (400, {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}, "content_filter"),
    (400, openai("Your request exceeded model token limit: 9"), "context_length"),
    (429, openai("Engine is overloaded", "engine_overloaded_error"), "overload"),
    (400, openai("输入内容过长,超出模型上下文长度"), "context_length"),
    (
        413,
        openai("Request too large on tokens per minute (TPM): Limit 6, Requested 9", "tokens", "rate_limit_exceeded"),
        "context_length",
    ),
    (429, openai("Request too large on tokens per min (TPM): Limit 30, Requested 40.", "tokens"), "context_length"),
    # Bedrock and gateways
    (400, {"__type": "com.amazon.coral.service#ThrottlingException", "message": "Too many tokens"}, "rate_limit"),
    (400, {"message": "Too many tokens, please wait before trying again."}, "rate_limit"),
    (400, {"__type": "ValidationException", "Message": "Input is too long for requested model."}, "context_length"),
    (403, {"__type": "AccessDeniedException", "message": "No access"}, "authentication"),
    (400, {"message": "ExpiredTokenException: The security token is expired"}, "authentication"),
    (502, "<html>\r\n<head><title>502 Bad Gateway</title></head><body>x</body></html>", "server"),
    (524, "error code: 524", "timeout"),
    (500, "", "server"),
    (400, '"just words"', "bad_request"),
    (400, "[]", "bad_request"),
    (400, "null", "bad_request"),
    (418, "teapot", "bad_request"),
]


def content(body):
    return (body if isinstance(body, str) else json.dumps(body)).encode()


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_every_answer_has_its_kind_in_one_line(status, body, kind):
    error = refusal(status, content(body))
    assert (error.kind, error.status) == (kind, status)
    assert error.retryable == (PROVIDER_KINDS[kind] and status != 501)
    assert str(error).startswith(f"the model server answered HTTP {status}: ")
    assert "\n" not in str(error)
    assert "<html" not in str(error)


@pytest.mark.parametrize("case", ["G08"])
def test_overflow_is_told_from_throttling_whatever_the_wording(case, cases):
    expected = cases[case]["expect"]
    ours = {"context_overflow": "context_length"}
    for (status, body), kind, retry in zip(
        cases[case]["given"]["errors"], expected["kinds"], expected["retry_same_payload"], strict=True
    ):
        error = refusal(status, body.encode())
        assert (error.kind, error.retryable) == (ours.get(kind, kind), retry), body
        assert json.loads(body).get("message", "") in str(error)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (openai("No.", code="unsupported_parameter", param="temperature"), "No. (temperature, unsupported_parameter)"),
        ({"detail": [{"loc": ["body", "n"], "msg": "too small"}, {"msg": "bad"}]}, "body.n: too small; bad"),
        ({"object": "error", "message": {"detail": [{"loc": ["body", "foo"], "msg": "Extra"}]}}, "body.foo: Extra"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": '{"error":{"message":"bad role"}}'}}}, "bad role"),
        ({"success": False, "errors": [{"code": 7, "message": "No route"}]}, "No route"),
        (gemini("Bad", 400, "INVALID_ARGUMENT", {"fieldViolations": [{"field": "contents[0].parts"}]}), "contents[0].parts"),
        ({"error": {"message": "line one\n  line two"}}, "line one line two"),
        ({"error": {"weird": 5}}, '{"weird": 5}'),
    ],
)
def test_the_server_s_words_and_the_field_are_kept(body, text):
    assert text in str(refusal(400, content(body)))


def test_the_next_step_is_named_where_servers_seldom_do():
    text = str(refusal(401, content(openai("Bad key."))))
    assert text == "the model server answered HTTP 401: Bad key. Check the key, and that it belongs to this server"


def test_the_model_is_named_where_the_server_does_not():
    assert "(the model asked for is 'gpt-x')" in str(refusal(404, b'{"detail":"Not Found"}', model="gpt-x"))
    assert "asked for" not in str(refusal(404, content(openai("no model gpt-x")), model="gpt-x"))


def test_a_page_of_words_is_cut():
    assert len(str(refusal(500, b"x" * 5000))) < 600


@pytest.mark.parametrize(
    ("status", "body", "seconds"),
    [
        (429, gemini("Slow", 429, "RESOURCE_EXHAUSTED", PER_MINUTE, RETRY), 48.0),
        (429, openai("Please try again in 1m12.5s. Visit us."), 72.5),
        (429, openai("Please try again in 350ms."), 0.35),
        (429, openai("Please retry after 6 seconds."), 6.0),
        (429, openai("Slow down."), None),
        (400, openai("Please try again in 5s."), None),
    ],
)
def test_the_wait_that_a_body_asks_for_is_read(status, body, seconds):
    assert refusal(status, content(body)).retry_after == (seconds and pytest.approx(seconds))


def test_a_quota_of_the_day_is_not_waited_for():
    error = refusal(429, content(gemini("Quota", 429, "RESOURCE_EXHAUSTED", PER_DAY, RETRY)))
    assert (error.kind, error.retryable) == ("rate_limit", False)
    assert "RequestsPerDay-Free" in str(error)


def test_the_request_id_of_the_body_is_kept():
    assert refusal(529, content(anthropic("Overloaded", "overloaded_error"))).request_id == "req_9"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ({"choices": [], "error": {"message": "no slots", "code": 503}}, "overload", 503),
        ({"error": {"message": "bad", "code": 400}}, "bad_request", 400),
        ({"error": {"message": "bad", "code": "429"}}, "rate_limit", 429),
        ({"error": "boom"}, "server", None),
        (anthropic("Overloaded", "overloaded_error"), "overload", None),
        (anthropic("Bad", "invalid_request_error"), "bad_request", None),
        ({"type": "error", "code": "server_error", "message": "boom", "param": None}, "server", None),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "x"}}}, "rate_limit", None),
        (gemini("Overloaded", 503, "UNAVAILABLE"), "overload", 503),
        ({"object": "error", "message": "prompt is too long", "code": 40303}, "context_length", None),
    ],
)
def test_an_error_inside_an_answer_is_found(body, kind, status):
    error = failure(body)
    assert (error.kind, error.status, error.retryable) == (kind, status, PROVIDER_KINDS[kind])


@pytest.mark.parametrize(
    "body", [None, [], "error", {}, {"error": None}, {"type": "error"}, {"type": "response.failed"}, {"message": "hi"}]
)
def test_what_is_no_error_is_none(body):
    assert failure(body) is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"details": "x", "metadata": 5, "code": {}, "message": None, "param": ["a"]}},
        {"error": {"details": [None, {"violations": "x", "fieldViolations": 5}], "innererror": []}},
        {"error": [[]], "errors": {}},
        {"message": [[{"loc": 1}]], "code": True, "status": 1e400},
        [[1]],
        {"error": {"metadata": {"raw": {"a": 1}}}},
        {"error": {"metadata": {"raw": [1]}}},
    ],
)
def test_a_body_of_any_form_is_one_error_and_never_another_exception(body):
    assert refusal(400, content(body)).kind in PROVIDER_KINDS


def test_every_kind_is_in_the_one_vocabulary_and_says_what_to_do():
    assert set(KIND_OF_NAME.values()) | set(KIND_OF_STATUS.values()) <= set(PROVIDER_KINDS)
    assert set(WHAT_TO_DO) == set(PROVIDER_KINDS)
