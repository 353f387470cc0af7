"""HTTP alone, against httpx's own stand-in for a server."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from nb_agent import network, sockets
from nb_agent.errors import ProviderError, SettingError, TimeLimitError
from nb_agent.events import Waiting
from nb_agent.messages import Request
from nb_agent.retrying import Patience, Waits
from nb_agent.transport import Secret, Transport, address

KEY = "sk-test-0123456789abcdef"
ASKED = Request("chat_completions", "/chat/completions", {"model": "m", "stream": True}, stream=True)


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.time = 1000.0
        self.slept = []

    def __call__(self):
        return self.time

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds


def transport(
    *answers, key=KEY, base_url="https://llm.example.test/v1", clock=None, retries=2, now=time.time, wire="chat_completions"
):
    """A transport whose server gives these answers in turn, and the requests that it gets."""
    seen, left, clock = [], deque(answers), clock or Clock()

    def serve(request):
        seen.append(request)
        answer = left.popleft() if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    client = httpx.Client(transport=httpx.MockTransport(serve))
    patience = Patience(retries, clock.sleep, lambda: 0.0)
    secret = Secret(key) if key else None
    return Transport(base_url, secret, wire=wire, patience=patience, client=client, clock=clock, now=now), seen


def send(answer, *, until=None, **options):
    made, seen = transport(answer, retries=0, **options)
    return b"".join(made.send(ASKED, until=until)), seen[0]


def test_the_address_and_the_key_are_added_here():
    body, request = send(httpx.Response(200, content=b"data: {}\n\n"))
    assert body == b"data: {}\n\n"
    assert str(request.url) == "https://llm.example.test/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == {"model": "m", "stream": True}


def test_without_a_key_no_authorization_is_sent():
    assert "authorization" not in send(httpx.Response(200, content=b"{}"), key=None)[1].headers


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
        (400, {"code": "x", "error": "Incorrect API key"}, "authentication"),  # xAI's form and status
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
    _, request = send(httpx.Response(200, content=b"{}"), until=Clock().time + 5)
    assert 0 < request.extensions["timeout"]["read"] <= 5


def test_a_key_is_cleaned_of_white_space_around_it():
    assert send(httpx.Response(200, content=b"{}"), key=f" {KEY}\n")[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["", "  ", "sk-a b", "sk-ä", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    with pytest.raises(SettingError) as caught:
        Secret(key)
    assert "sk-" not in str(caught.value)


def test_no_view_of_a_transport_shows_the_key():
    transport = Transport("https://llm.example.test/v1", Secret(KEY))
    views = [repr(transport), str(transport), str(vars(transport)), repr([transport]), repr(vars(transport)["_key"])]
    assert all(KEY not in view and KEY[:8] not in view and KEY[-4:] not in view for view in views)


def test_a_key_in_another_form_or_in_the_middle_of_the_answer_is_masked_too():
    odd = "sk/test+0123=="
    with pytest.raises(ProviderError) as caught:
        send(httpx.Response(400, text="bad: /v1?key=sk%2Ftest%2B0123%3D%3D"), key=odd)
    assert "sk%2F" not in str(caught.value)
    assert send(httpx.Response(200, content=f'data: "{KEY}"\n\n'.encode()))[0] == b'data: "***"\n\n'


def test_a_key_at_the_end_of_what_is_shown_is_not_cut_in_two():
    with pytest.raises(ProviderError) as caught:
        send(httpx.Response(400, json={"error": {"message": "x" * 490 + f" {KEY}"}}))
    assert KEY[:7] not in str(caught.value)


def test_a_password_in_the_address_is_shown_nowhere():
    made, _ = transport(httpx.ConnectError("refused"), base_url="http://ann:pa55@llm.example.test/v1", retries=0)
    with pytest.raises(ProviderError) as caught:
        list(made.send(ASKED))
    assert "pa55" not in str(caught.value) + repr(made)
    with pytest.raises(SettingError) as refused:
        address("http://ann:pa55@:x")
    assert "pa55" not in str(refused.value)


@pytest.mark.parametrize("given", ["http://x.test:99999", "http://x.test:port", "http://:80"])
def test_an_address_with_no_host_or_no_such_port_is_refused_before_anything_is_sent(given):
    with pytest.raises(SettingError, match="is no address"):
        address(given)


def test_a_query_of_the_address_stays_behind_the_path():
    _, request = send(httpx.Response(200, content=b"{}"), base_url="https://x.test/openai/deployments/d?api-version=2024-10-21")
    assert str(request.url) == "https://x.test/openai/deployments/d/chat/completions?api-version=2024-10-21"


# ----------------------------------------------------------------------------------------------------------------- answers


def test_a_redirect_is_not_followed_and_says_where_it_leads():
    made, seen = transport(httpx.Response(308, headers={"location": "https://other.test/v1/chat?token=1"}))
    with pytest.raises(ProviderError, match=r"redirects to https://other\.test/v1/chat; the key is not sent on") as caught:
        list(made.send(ASKED))
    assert (len(seen), caught.value.kind, caught.value.status) == (1, "not_found", 308)


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "text/plain"])
def test_a_web_page_says_that_the_address_is_probably_wrong(kind):
    page = b"\n<!doctype html><html><head><title>Welcome</title></head></html>"
    with pytest.raises(ProviderError, match=r"a web page \('Welcome'\); base_url is probably wrong") as caught:
        send(httpx.Response(200, content=page, headers={"content-type": kind}))
    assert caught.value.kind == "protocol"


def test_json_that_is_called_html_is_read_all_the_same():
    assert send(httpx.Response(200, content=b'{"a":1}', headers={"content-type": "text/html"}))[0] == b'{"a":1}'


def test_the_model_that_was_not_found_is_named_in_every_format():
    made, _ = transport(httpx.Response(404, json={"detail": "Not Found"}), wire="gemini_generate")
    with pytest.raises(
        ProviderError, match=r"Not Found \(the model asked for is 'gemini-x'\); check the model's name and base_url"
    ):
        list(made.send(Request("gemini_generate", "/models/gemini-x:streamGenerateContent?alt=sse", {"contents": []})))


def test_an_error_answer_without_end_is_read_only_so_far():
    read = []

    class Endless(httpx.SyncByteStream):
        def __iter__(self):
            while len(read) < 1000:
                read.append(1)
                yield b"x" * 10_000

    with pytest.raises(ProviderError, match="HTTP 400: xxx"):
        send(httpx.Response(400, stream=Endless()))
    assert len(read) < 10


# ----------------------------------------------------------------------------------------------------------------- repeats

BUSY = httpx.Response(503, json={"error": {"message": "busy"}})


def fine():
    return httpx.Response(200, content=b"ok")


def test_a_request_that_failed_is_sent_again_unchanged_and_each_wait_is_said_before_it():
    clock = Clock()
    made, seen = transport(BUSY, BUSY, fine(), clock=clock)
    given = list(made.send(ASKED))
    reason = "overload (the model server answered HTTP 503: busy)"
    assert given == [Waiting(reason, 0.5, 1), Waiting(reason, 1.0, 2), b"ok"]
    assert sum(clock.slept) == pytest.approx(1.5)
    assert len({request.content for request in seen}) == 1


def test_after_the_last_repeat_the_error_says_how_often_it_was_tried():
    made, seen = transport(BUSY)
    with pytest.raises(ProviderError, match=r"HTTP 503: busy; tried 3 times$"):
        list(made.send(ASKED))
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "no"}}),
        (401, {"error": {"message": "no"}}),
        (402, {"error": {"message": "no"}}),
        (404, {"error": {"message": "no"}}),
        (413, {"error": {"message": "no"}}),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
    ],
)
def test_what_cannot_get_better_is_sent_once(status, body):
    made, seen = transport(httpx.Response(status, json=body, headers={"retry-after": "1"}))
    with pytest.raises(ProviderError):
        list(made.send(ASKED))
    assert len(seen) == 1


def test_nothing_is_sent_again_after_the_first_byte():
    class Torn(httpx.SyncByteStream):
        def __iter__(self):
            yield b"data: "
            raise httpx.ReadError("reset")

    made, seen = transport(httpx.Response(200, stream=Torn()), fine())
    with pytest.raises(ProviderError) as caught:
        list(made.send(ASKED))
    assert (len(seen), caught.value.kind) == (1, "stream_interrupted")


def test_a_connection_that_breaks_before_the_first_byte_is_tried_again():
    class Empty(httpx.SyncByteStream):
        def __iter__(self):
            raise httpx.ReadError("reset")
            yield

    made, seen = transport(httpx.Response(200, stream=Empty()), httpx.RemoteProtocolError("gone"), fine())
    assert list(made.send(ASKED))[-1] == b"ok"
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "300", "retry-after": "9"}, 0.3),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 20.0),
        ({"retry-after": "0"}, 0.5),
        ({"retry-after": "soon"}, 0.5),
        ({"retry-after": "-3"}, 0.5),
        ({"retry-after": "nan"}, 0.5),
    ],
)
def test_the_server_says_how_long_to_wait(headers, seconds):
    made, _ = transport(httpx.Response(429, json={"error": "slow"}, headers=headers), fine(), now=lambda: 10.0)
    assert next(made.send(ASKED)).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("asked", "left"), [("61", None), ("20", 15)])
def test_a_wait_that_is_too_long_is_not_begun_and_the_error_says_when_to_come_back(asked, left):
    clock = Clock()
    made, seen = transport(httpx.Response(429, json={"error": "slow"}, headers={"retry-after": asked}), clock=clock)
    with pytest.raises(ProviderError, match=f"asks to come back in {asked} s") as caught:
        list(made.send(ASKED, until=None if left is None else clock.time + left))
    assert (len(seen), clock.slept, caught.value.retry_after) == (1, [], float(asked))


def test_the_server_may_say_whether_to_try_again():
    made, seen = transport(httpx.Response(500, text="no", headers={"x-should-retry": "false"}))
    with pytest.raises(ProviderError):
        list(made.send(ASKED))
    assert len(seen) == 1
    made, _ = transport(httpx.Response(400, text="no", headers={"x-should-retry": "true"}), fine())
    assert list(made.send(ASKED))[-1] == b"ok"


def test_the_request_id_is_kept_for_the_provider_s_support():
    with pytest.raises(ProviderError) as caught:
        send(httpx.Response(400, text="no", headers={"X-Request-Id": "req_1"}))
    assert caught.value.request_id == "req_1"


def test_an_interrupt_while_waiting_ends_the_wait_at_once():
    clock = Clock()

    def sleep(seconds):
        clock.slept.append(seconds)
        raise KeyboardInterrupt

    made, seen = transport(httpx.Response(429, text="no", headers={"retry-after": "30"}))
    made._patience = Patience(2, sleep, lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        list(made.send(ASKED))
    assert (len(seen), max(clock.slept) <= 0.1) == (1, True)


# ----------------------------------------------------------------------------------------------------------------- real sockets


class Peer:
    """A server on loopback that answers each connection with these bytes and then stays silent, until it is told to end."""

    def __init__(self, *answers):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.answers, self.asked, self.gone = answers, threading.Event(), threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with self.listening:
            while True:
                try:
                    connection, _ = self.listening.accept()
                except OSError:
                    return
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            connection.settimeout(20)
            connection.recv(65536)
            for answer in self.answers:
                connection.sendall(answer)
            self.asked.set()
            try:
                while connection.recv(65536):
                    pass
            except TimeoutError:
                return
            except ConnectionError:
                pass
            self.gone.set()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PIECE = b"9\r\ndata: {}\n\r\n"


@pytest.mark.parametrize(
    ("answers", "scheme", "words"),
    [
        ((), "https", "no connection to .* within 0.15 s"),
        ((), "http", "no first byte of an answer from .* within 0.2 s"),
        ((HEAD,), "http", "no first byte of an answer from .* within 0.2 s"),
        ((HEAD, PIECE), "http", "went silent in the middle of the answer for 0.25 s"),
    ],
)
def test_each_time_limit_says_which_one_passed_and_how_long_it_was(answers, scheme, words):
    peer = Peer(*answers)
    waits = Waits(connect=0.15, first_byte=0.2, stall=0.25)
    made = Transport(peer.url.replace("http", scheme, 1), waits=waits, patience=Patience(0))
    began = time.monotonic()
    with pytest.raises(ProviderError, match=words) as caught:
        list(made.send(ASKED))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 5
    assert peer.gone.wait(5)


@pytest.mark.parametrize("answers", [(), (HEAD,), (HEAD, PIECE)])
def test_the_run_s_own_limit_is_kept_wherever_the_server_stalls(answers):
    made = Transport(Peer(*answers).url, patience=Patience(2))
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match="the time limit of the run passed"):
        list(made.send(ASKED, until=began + 0.3))
    assert 0.25 < time.monotonic() - began < 5


def test_a_server_that_only_keeps_the_line_open_does_not_outlive_the_run():
    clock = Clock()

    class Pings(httpx.SyncByteStream):
        def __iter__(self):
            while True:
                clock.time += 10
                yield b": ping\n\n"

    made, _ = transport(httpx.Response(200, stream=Pings()), clock=clock)
    with pytest.raises(TimeLimitError):
        list(made.send(ASKED, until=clock.time + 35))


def test_connections_are_kept_and_shared_by_all_threads(monkeypatch):
    for name in network._PROXIES:
        monkeypatch.delenv(name, raising=False)
    with ThreadPoolExecutor(8) as threads:
        clients = set(threads.map(lambda _: network.pooled(), range(16)))
    assert len(clients) == 1
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert network.pooled() not in clients


def test_our_own_sockets_are_in_use():
    client = network.pooled()
    assert isinstance(client._transport._pool._network_backend, sockets.Backend)


def test_a_server_on_this_machine_is_reached_past_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    body = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    assert list(Transport(Peer(body).url, patience=Patience(0)).send(ASKED)) == [b"ok"]


def test_a_proxy_that_cannot_be_used_is_an_error_of_ours(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "ftp://127.0.0.1:9")
    with pytest.raises(ProviderError, match="a proxy that the environment names cannot be used"):
        list(Transport("https://llm.example.test").send(ASKED))


def test_a_name_that_does_not_exist_is_not_tried_again(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for name in network._PROXIES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ProviderError, match=r"cannot reach http://nowhere.example.test/v1 .*not known") as caught:
        list(Transport("http://nowhere.example.test").send(ASKED))
    assert not caught.value.retryable


def test_a_lookup_that_hangs_is_left_when_the_time_for_connecting_is_over(monkeypatch):
    let_go = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: let_go.wait(20) and [])
    for name in network._PROXIES:
        monkeypatch.delenv(name, raising=False)
    made = Transport("http://slow.example.test", waits=Waits(connect=0.1), patience=Patience(0))
    with pytest.raises(ProviderError, match=r"no connection to .* within 0.1 s"):
        list(made.send(ASKED))
    let_go.set()


CHILD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from nb_agent import network
from nb_agent.events import Waiting
from nb_agent.messages import Request
from nb_agent.transport import Transport
kept = None
print("ready", flush=True)
try:
    for given in Transport(sys.argv[1]).send(Request("chat_completions", "/chat/completions", {})):
        print("waits" if isinstance(given, Waiting) else "byte", flush=True)
except KeyboardInterrupt as interrupt:
    kept = interrupt  # as IPython keeps the last traceback
    print(time.monotonic(), flush=True)
    sys.stdin.readline()
"""

LATER = b"HTTP/1.1 429 No\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n"


@contextmanager
def child(url):
    environment = {name: value for name, value in os.environ.items() if name not in network._PROXIES}
    command = [sys.executable, "-c", CHILD, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        stop = threading.Timer(30, process.kill)
        stop.start()
        try:
            yield process
        finally:
            stop.cancel()
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
@pytest.mark.parametrize(
    ("answers", "scheme", "last"),
    [
        ((), "https", "ready"),
        ((), "http", "ready"),
        ((HEAD,), "http", "ready"),
        ((HEAD, PIECE), "http", "byte"),
        ((LATER,), "http", "waits"),
    ],
    ids=["connecting", "before the answer", "before the first byte", "between bytes", "before the next attempt"],
)
def test_an_interrupt_leaves_within_half_a_second_and_closes_the_connection(answers, scheme, last):
    peer = Peer(*answers)
    with child(peer.url.replace("http", scheme, 1)) as process:
        while process.stdout.readline().strip() != last:
            assert process.poll() is None
        assert peer.asked.wait(20)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        left = float(process.stdout.readline())
        assert left - sent < 0.5
        assert last == "waits" or peer.gone.wait(2)
        process.stdin.write("\n")
        process.stdin.flush()
        process.wait(10)
