"""What a round costs, without a clock: calls of the system that a request takes, and bytes that are copied for it."""

import socket
import threading

import httpcore
import pytest

from nb_agent import sockets

HEAD, BODY = b"POST / HTTP/1.1\r\n\r\n", [b"a" * 70_000, b"b" * 300_000, b"c" * 20]


class Inner(httpcore.NetworkStream):
    """One end of a connection, as httpcore has it: ``sealed`` stands for TLS."""

    def __init__(self, end, sealed):
        self.end, self.sealed, self.written = end, sealed, []

    def get_extra_info(self, info):
        return {"socket": self.end, "ssl_object": self.sealed}[info]

    def read(self, max_bytes, timeout=None):
        self.end.settimeout(timeout)
        return self.end.recv(max_bytes)

    def write(self, buffer, timeout=None):
        self.end.settimeout(timeout)
        self.written.append(buffer)
        self.end.sendall(buffer)

    def close(self):
        self.end.close()


@pytest.fixture(params=[None, object()], ids=["plain", "sealed"])
def connection(request):
    """The stream, what is below it, and a function that waits for so many bytes at the other end."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    inner, got = Inner(ours, request.param), []

    def received(size):
        with theirs.makefile("rb") as file:
            got.append(file.read(size))

    with ours, theirs:
        yield sockets._Stream(inner), inner, received, got


def test_a_request_in_pieces_arrives_whole_though_the_socket_takes_a_part_at_a_time(connection):
    stream, inner, received, got = connection
    whole = HEAD + b"".join(BODY)
    reader = threading.Thread(target=received, args=(len(whole),))
    reader.start()
    for piece in (HEAD, *BODY, b""):
        stream.write(piece, 5.0)
    reader.join(5)
    assert got == [whole]
    assert len(inner.written) == 1
    assert whole.endswith(inner.written[0])
    assert (inner.written[0] == whole) == (inner.sealed is not None)


def test_the_pieces_of_a_short_request_go_out_at_once(connection):
    stream, inner, received, got = connection
    for piece in (HEAD, b"{}"):
        stream.write(piece, 5.0)
    assert inner.written == []
    stream.write(b"", 5.0)
    received(len(HEAD) + 2)
    assert got == [HEAD + b"{}"]
    assert inner.written == ([] if inner.sealed is None else [HEAD + b"{}"])


def test_whoever_reads_has_sent_what_was_written_before(connection):
    stream, inner, received, got = connection
    stream.write(b"hello", 5.0)
    inner.end.shutdown(socket.SHUT_RD)
    assert stream.read(10, 5.0) == b""
    received(5)
    assert got == [b"hello"]
