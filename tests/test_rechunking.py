"""Judged by h11: an answer says the same, whatever was made of its chunks."""

from itertools import pairwise

import h11
from hypothesis import given
from hypothesis import strategies as st

from nb_agent.rechunking import Chunks

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(*parts, end=b"0\r\n\r\n"):
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + end


def cut(raw, places):
    ends = [0, *sorted({place % (len(raw) + 1) for place in places}), len(raw)]
    return [raw[start:end] for start, end in pairwise(ends) if start < end]


def heard(reads):
    """What h11 makes of an answer: the bytes of its body, and whether it ended, broke or waits."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    body, state = b"", "waits"
    try:
        for read in reads:
            connection.receive_data(read)
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    body += event.data
                if isinstance(event, h11.EndOfMessage):
                    return body, "ended"
    except h11.RemoteProtocolError:
        state = "broke"
    return body, state


def after(reads):
    chunks = Chunks()
    chunks.begin()
    return [merged for merged in map(chunks.merged, reads) if merged]


def merged(raw, reads=()):
    chunks = Chunks()
    chunks.begin()
    chunks.merged(HEAD)
    return [chunks.merged(read) for read in (raw, *reads)]


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=20), st.lists(st.integers(0, 2000), max_size=12))
def test_any_body_at_any_cut_says_the_same_to_h11(parts, places):
    reads = cut(HEAD + chunked(*parts), places)
    assert heard(after(reads)) == heard(reads) == (b"".join(parts), "ended")


@given(
    st.lists(st.binary(min_size=1, max_size=9), max_size=4),
    st.one_of(st.binary(max_size=30), st.text("0123456789abF;x\r\n ", max_size=20).map(str.encode)),
    st.lists(st.integers(0, 200), max_size=9),
)
def test_a_body_that_is_broken_is_broken_for_h11_too_and_loses_nothing(parts, junk, places):
    reads = cut(HEAD + chunked(*parts, end=junk), places)
    assert heard(after(reads)) == heard(reads)


@given(st.binary(max_size=80), st.lists(st.integers(0, 80), max_size=5))
def test_anything_but_a_plain_chunked_answer_goes_through_byte_for_byte(body, places):
    reads = cut(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body), places)
    assert after(reads) == reads


def test_the_chunks_of_one_read_become_one():
    assert merged(chunked(b"one", b"two")) == [b"6\r\nonetwo\r\n0\r\n\r\n"]


def test_what_has_come_of_a_chunk_goes_on_at_once():
    assert merged(b"3\r\none\r\n5\r\nth", [b"ree\r", b"\n1\r\n!\r\n"]) == [b"3\r\none\r\n5\r\nth", b"ree\r", b"\n1\r\n!\r\n"]


def test_only_a_torn_size_line_waits_for_its_rest():
    assert merged(b"1\r\na\r\n1", [b"0\r\n" + b"x" * 16 + b"\r\n"]) == [b"1\r\na\r\n", b"10\r\n" + b"x" * 16 + b"\r\n"]
    assert merged(b"1", [b"\r\na\r\n"]) == [b"", b"1\r\na\r\n"]


def test_the_next_answer_on_a_connection_is_looked_at_anew():
    chunks = Chunks()
    for _ in range(2):
        chunks.begin()
        assert chunks.merged(HEAD + chunked(b"a", b"b")) == HEAD + b"2\r\nab\r\n0\r\n\r\n"
        assert chunks.merged(b"1\r\nx\r\n1\r\ny\r\n") == b"1\r\nx\r\n1\r\ny\r\n"


def test_a_head_that_comes_in_two_reads_leaves_its_answer_as_it_is():
    reads = [HEAD[:20], HEAD[20:] + chunked(b"a", b"b")]
    assert after(reads) == reads
