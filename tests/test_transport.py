"""HTTP alone, against httpx's own stand-in for a server."""

import json
import time

import httpx
import pytest

from nb_agent.errors import ProviderError, SettingError
from nb_agent.messages import Request
from nb_agent.transport import Secret, Transport, address

KEY = "sk-test-0123456789abcdef"


def send(answer, *, key=KEY, base_url="https://llm.example.test/v1", until=None):
    seen = []

    def serve(request):
        seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = httpx.Client(transport=httpx.MockTransport(serve))
    transport = Transport(base_url, Secret(key) if key else None, client=client)
    body = b"".join(
        transport.send(Request("chat_completions", "/chat/completions", {"model": "m", "stream": True}, stream=True), until=until)
    )
    return body, seen[0]


def test_the_address_and_the_key_are_added_here():
    body, request = send(httpx.Response(200, content=b"data: {}\n\n"))
    assert body == b"data: {}\n\n"
    assert str(request.url) == "https://llm.example.test/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == {"model": "m", "stream": True}


def test_without_a_key_no_authorization_is_sent():
    assert "authorization" not in send(httpx.Response(200), key=None)[1].headers


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        (" https://x.test/v1/ ", "https://x.test/v1"),
        ("https://x.test/openai/v2", "https://x.test/openai/v2"),
        ("https://x.test/v1/chat/completions", "https://x.test/v1"),
    ],
)
def test_a_base_url_works_with_and_without_v1(given, used):
    assert address(given) == used


@pytest.mark.parametrize("given", ["localhost:8000", "", "ftp://x.test", "http://"])
def test_what_is_no_address_is_named(given):
    with pytest.raises(SettingError, match="is no address; write it like"):
        address(given)


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (401, {"error": {"message": "bad key"}}, "authentication"),
        (404, {"error": {"message": "no such model", "code": "model_not_found"}}, "not_found"),
        (429, {"error": {"message": "slow down"}}, "rate_limit"),
        (422, {"detail": [{"msg": "field required"}]}, "bad_request"),
        (500, "Internal Server Error", "server"),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overload"),
        (400, {"code": "x", "error": "Incorrect API key"}, "bad_request"),
    ],
)
def test_a_refusal_is_one_line_with_the_servers_words(status, content, kind):
    response = httpx.Response(status, text=content) if isinstance(content, str) else httpx.Response(status, json=content)
    with pytest.raises(ProviderError) as caught:
        send(response)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert "\n" not in str(caught.value)
    words = content if isinstance(content, str) else str(next(iter(_leaves(content))))
    assert words in str(caught.value)


def _leaves(value):
    if isinstance(value, dict):
        wanted = [v for k, v in value.items() if k in {"error", "message", "detail", "msg"}]
        for part in wanted:
            yield from _leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def test_context_overflow_is_told_from_throttling_whatever_the_wording(cases):
    given, kinds = cases["G08"]["given"]["errors"], cases["G08"]["expect"]["kinds"]
    ours = {"context_overflow": "context_length"}
    for (status, content), kind, retry in zip(given, kinds, cases["G08"]["expect"]["retry_same_payload"], strict=True):
        with pytest.raises(ProviderError) as caught:
            send(httpx.Response(status, text=content))
        assert (caught.value.kind, caught.value.retryable) == (ours.get(kind, kind), retry), content


def test_a_key_that_the_server_repeats_is_masked():
    with pytest.raises(ProviderError) as caught:
        send(httpx.Response(401, json={"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    assert KEY not in str(caught.value)
    assert "Incorrect API key provided: ***" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), "network"),
        (httpx.ReadTimeout("slow"), "timeout"),
        (httpx.ConnectTimeout("slow"), "timeout"),
        (httpx.RemoteProtocolError("gone"), "network"),
    ],
)
def test_a_server_that_cannot_be_reached_is_said_with_its_address(error, kind):
    with pytest.raises(ProviderError, match=r"https://llm\.example\.test/v1") as caught:
        send(error)
    assert caught.value.kind == kind


def test_a_connection_that_breaks_off_in_the_answer_is_told_from_one_that_never_stood():
    class Torn(httpx.SyncByteStream):
        def __iter__(self):
            yield b"data: "
            raise httpx.ReadError("reset")

    with pytest.raises(ProviderError) as caught:
        send(httpx.Response(200, stream=Torn()))
    assert caught.value.kind == "stream_interrupted"


def test_the_time_that_is_left_of_the_run_limits_the_wait():
    _, request = send(httpx.Response(200), until=time.monotonic() + 5)
    assert 0 < request.extensions["timeout"]["read"] <= 5


def test_a_key_is_cleaned_of_white_space_around_it():
    assert send(httpx.Response(200), key=f" {KEY}\n")[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["", "  ", "sk-a b", "sk-ä", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    with pytest.raises(SettingError) as caught:
        Secret(key)
    assert "sk-" not in str(caught.value)


def test_no_view_of_a_transport_shows_the_key():
    transport = Transport("https://llm.example.test/v1", Secret(KEY))
    views = [repr(transport), str(transport), str(vars(transport)), repr([transport]), repr(vars(transport)["_key"])]
    assert all(KEY not in view and KEY[:8] not in view and KEY[-4:] not in view for view in views)
