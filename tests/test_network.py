"""HTTP below the transport: requests that go straight to the pool, against httpcore's own stand-in for a network."""

import gzip

import httpcore
import httpx
import pytest

from nb_agent.errors import ProviderError
from nb_agent.messages import Request
from nb_agent.retrying import Patience
from nb_agent.transport import Secret, Transport
from nb_agent.values import Encoded

ASKED = Request("chat_completions", "/chat/completions", {"model": "m", "messages": [Encoded(role="user", content="x" * 70_000)]})
OK = b"HTTP/1.1 200 OK\r\n"


class Network(httpcore.MockBackend):
    """Gives these bytes to whoever reads, and keeps what was written."""

    def __init__(self, *reads, fault=None):
        super().__init__([*reads])
        self.fault, self.written = fault, []

    def connect_tcp(self, *place, **options):
        if self.fault:
            raise self.fault
        stream = super().connect_tcp(*place, **options)
        stream.write = lambda buffer, timeout=None: self.written.append(buffer)
        return stream


def transport(network, base_url="http://llm.example.test:81/v1"):
    client = httpx.Client(trust_env=False)
    client._transport._pool = httpcore.ConnectionPool(network_backend=network)
    return Transport(base_url, Secret("sk-test-0123456789"), client=client, patience=Patience(0))


def test_a_request_goes_out_with_all_its_headers_and_its_length():
    network = Network(OK + b"content-length: 2\r\n\r\n{}")
    assert b"".join(transport(network).send(ASKED)) == b"{}"
    head, _, body = b"".join(network.written).partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = dict(field.lower().split(": ", 1) for field in fields)
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert headers["host"] == "llm.example.test:81"
    assert headers["authorization"] == "bearer sk-test-0123456789"
    assert headers["content-length"] == str(len(body))
    assert headers["content-type"] == "application/json"
    assert "transfer-encoding" not in headers
    assert body == ASKED.content


@pytest.mark.parametrize("name", [b"content-encoding", b"Content-Encoding"])
def test_an_answer_that_is_packed_is_unpacked(name):
    packed = gzip.compress(b'{"a":1}')
    network = Network(OK + name + b": gzip\r\ncontent-length: %d\r\n\r\n" % len(packed) + packed)
    assert b"".join(transport(network).send(ASKED)) == b'{"a":1}'


def test_an_answer_that_cannot_be_unpacked_says_so():
    network = Network(OK + b"content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc")
    with pytest.raises(ProviderError, match="cannot be unpacked") as caught:
        list(transport(network).send(ASKED))
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    ("network", "kind"),
    [
        (Network(OK + b"content-length: 9\r\n\r\nabc"), "stream_interrupted"),
        (Network(b"nonsense\r\n\r\n"), "network"),
        (Network(fault=httpcore.ConnectError("refused")), "network"),
        (Network(fault=httpcore.ConnectTimeout("slow")), "timeout"),
        (Network(fault=httpcore.ReadTimeout("slow")), "timeout"),
        (Network(fault=httpcore.ProxyError("no")), "network"),
    ],
)
def test_every_fault_on_the_way_has_its_kind(network, kind):
    with pytest.raises(ProviderError) as caught:
        list(transport(network).send(ASKED))
    assert caught.value.kind == kind


def test_what_an_error_answer_says_is_read():
    network = Network(b'HTTP/1.1 429 No\r\nRetry-After: 7\r\ncontent-length: 27\r\n\r\n{"error":{"message":"busy"}}')
    with pytest.raises(ProviderError, match="busy") as caught:
        list(transport(network).send(ASKED))
    assert (caught.value.kind, caught.value.retry_after) == ("rate_limit", 7.0)


def test_a_name_and_a_password_in_the_address_become_a_header():
    seen = []

    def serve(request):
        seen.append(request.headers["authorization"])
        return httpx.Response(200, content=b"{}")

    client = httpx.Client(transport=httpx.MockTransport(serve))
    list(Transport("http://ann:pa55@llm.example.test/v1", client=client).send(ASKED))
    assert seen == ["Basic YW5uOnBhNTU="]
