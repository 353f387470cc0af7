"""Whatever comes over the wire: what the mock's writers write comes back equal, and anything else is a reply or a `ProviderError`.

Hypothesis makes the replies, the reads and the damage, the same ones in every run.
"""

import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_samples import DRAFTS, SEVERAL, WIRES, cut, joined, kept, rewritten

from nb_agent import adapters
from nb_agent.errors import ProviderError
from nb_agent.messages import Message, Reply, Text, Thinking, ToolCall, ToolResult
from nb_agent.mock.wire import Draft, Usage
from nb_agent.tools.calling import Caller
from nb_agent.tools.toolbox import Toolbox
from nb_agent.values import dumps, from_json, to_json

every_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def often(examples):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=checks)


# ----------------------------------------------------------------------------------------------- what the writers write

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
names = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=12).map(lambda name: f"t{name}")
arguments = st.dictionaries(st.text(max_size=6), values, max_size=3)


@st.composite
def drafts(draw):
    made = draw(st.lists(st.tuples(names, arguments), max_size=3))
    calls = tuple(ToolCall(f"call_{place}", name, dumps(given)) for place, (name, given) in enumerate(made))
    finish = draw(st.sampled_from([None, None, "length", "content_filter"]))
    return Draft(draw(st.text(max_size=40)), calls, finish or ("tool_calls" if calls else "stop"))


def said(draft):
    return draft.text, [(call.name, call.arguments) for call in draft.calls], draft.finish


def heard(reply):
    return reply.message.text, [(call.name, call.arguments) for call in reply.message.tool_calls], reply.finish


@every_wire
@often(60)
@given(st.data())
def test_any_reply_that_the_writers_can_write_comes_back_equal_in_reads_of_any_size(wire, data):
    answer = [data.draw(drafts()) for _ in range(data.draw(st.integers(1, 3)) if wire.name in SEVERAL else 1)]
    usage = Usage(data.draw(st.integers(1, 10**6)), data.draw(st.integers(1, 10**6)))
    frames = wire.frames(*answer, usage=usage)
    for place in data.draw(st.lists(st.integers(0, len(frames)), max_size=3)):
        frames.insert(place, b": still there\n\n")
    raw = rewritten(b"".join(frames), data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    chunks = cut(raw, data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    reply, pieces = wire.receive(chunks)
    whole, _ = wire.receive([wire.whole(*answer, usage=usage)])
    assert heard(reply) == said(answer[0])
    assert [other.text for other in reply.others] == [draft.text for draft in answer[1:]]
    assert (reply.usage.input_tokens, reply.usage.output) == (usage.prompt, usage.completion)
    assert kept(reply) == kept(whole)
    assert joined(pieces).get((0, "text", 0), "") == answer[0].text


# ------------------------------------------------------------------------------------------------------------ anything


def area(w: float, note: str = "") -> str:
    """An area."""
    return f"{w}{note}"


def now() -> str:
    """The time."""
    return "12:00"


CALLER = Caller(Toolbox([area, now]))


def check(wire, chunks, whole_calls=frozenset()):
    """A reply that is sound, or an error of the server's; nothing else."""
    try:
        reply, _ = wire.receive(chunks)
    except ProviderError as error:
        assert str(error)  # noqa: PT017  either may come
        return None
    check_reply(reply)
    for call in reply.message.tool_calls:  # one that was not whole is never run, unless what is left of it is whole by itself
        if (call.name, call.arguments) not in whole_calls and not is_object(call.arguments):
            ready = CALLER.prepare(call)
            assert ready.result is not None or ready.arguments in ({}, json_of(call.arguments))
    return reply


def check_reply(reply):
    """What everything that reads replies relies on."""
    assert isinstance(reply, Reply)
    assert all(isinstance(word, (str, type(None))) for word in (reply.id, reply.model, reply.raw_finish))
    assert all(
        isinstance(count, (int, type(None))) for count in to_json(reply.usage or Text("")).values() if not isinstance(count, str)
    )
    for message in (reply.message, *reply.others):
        assert all(isinstance(part.text, str) for part in message.parts if isinstance(part, (Text, Thinking)))
        calls = message.tool_calls
        assert all(isinstance(word, str) for call in calls for word in (call.id, call.name, call.arguments))
        assert all(call.id for call in calls)
        assert len({call.id for call in calls}) == len(calls)
    form = json.dumps(to_json(reply))
    assert json.dumps(to_json(from_json(json.loads(form)))) == form
    check_history(reply.message)


def check_history(message):
    """The conversation can go on with it, over every wire format."""
    results = [Message("tool", (ToolResult(call.id, call.name, (Text("1"),)),)) for call in message.tool_calls]
    history = [Message.of("user", "x"), message, *results, Message.of("user", "y")]
    for adapter in adapters.WIRES.values():
        for entry in history:
            entry.memo.clear()
        request = adapter.request(history, (), model="mock")
        adapter.segments(json.loads(request.content))


def is_object(text):
    return isinstance(json_of(text), dict)


def json_of(text):
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return json_of(value) if isinstance(value, str) and value != text else value


# A word of every format, so that what is made up comes past the first look.
WORDS = [
    "type",
    "error",
    "message",
    "response",
    "item",
    "delta",
    "text",
    "output",
    "id",
    "call_id",
    "name",
    "arguments",
    "input",
    "index",
    "output_index",
    "item_id",
    "content",
    "choices",
    "candidates",
    "parts",
    "functionCall",
    "args",
    "finishReason",
    "finish_reason",
    "stop_reason",
    "usage",
    "usageMetadata",
    "tool_calls",
    "function",
    "role",
    "status",
    "code",
    "details",
    "part",
    "annotation",
    "content_block",
    "partial_json",
    "input_json_delta",
    "text_delta",
    "content_block_start",
    "content_block_delta",
    "message_start",
    "message_delta",
    "message_stop",
    "response.completed",
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "function_call",
    "tool_use",
    "stop",
    "tool_use",
    "refusal",
    "metadata",
    "raw",
    "promptFeedback",
    "blockReason",
]
weird = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(["", "x", "\ud800", "{", *WORDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)
events = weird.map(lambda value: b"data: " + json.dumps(value).encode() + b"\n\n")


@every_wire
@often(80)
@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"data:", b"data: {", b"[", b"\n", b"\r", b"\xef\xbb\xbf", b"\xf0\x9f", b'"', b"}"])).map(b"".join)
)
def test_any_bytes_are_a_reply_or_an_error_of_the_server(wire, raw):
    check(wire, [raw])


@every_wire
@often(150)
@given(st.lists(events, max_size=5), weird)
def test_any_json_is_a_reply_or_an_error_of_the_server(wire, stream, document):
    check(wire, stream)
    check(wire, [json.dumps(document).encode()])


@every_wire
@pytest.mark.parametrize("deep", [99, 300, 900, 990, 5000, 100_000])
def test_json_that_is_nested_without_measure_is_an_error_of_the_server(wire, deep):
    for opening, closing in (("[", "]"), ('{"error":', "}"), ('[{"message":', "}]"), ('{"a":', "}")):
        nested = opening * deep + "1" + closing * deep
        for form in (
            '{"error":%s}',
            '{"id":%s}',
            '{"choices":[{"delta":{"content":%s}}]}',
            '{"type":"message_start","message":%s}',
        ):
            text = (form % nested).encode()
            check(wire, [b"data: ", text, b"\n\n"])
            check(wire, [text])


# -------------------------------------------------------------------------------------------------------------- damage

CASES = [
    (wire, draft, wire.frames(draft), frozenset((call.name, call.arguments) for call in draft.calls))
    for wire in WIRES.values()
    for draft in DRAFTS.values()
]
cases = st.sampled_from(CASES)
place = st.integers(0, 10_000)


def places_in(value, path=()):
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places_in(part, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def with_another_value(frame, where, new):
    head, mark, content = frame.partition(b"data: ")
    if content.startswith(b"[DONE]"):
        return frame
    body = json.loads(content)
    paths = list(places_in(body))
    return head + mark + json.dumps(replaced(body, paths[where % len(paths)], new)).encode() + b"\n\n"


def dropped(frames, first, second, new):
    del frames[first % len(frames)]


def doubled(frames, first, second, new):
    frames.insert(second % len(frames), frames[first % len(frames)])


def swapped(frames, first, second, new):
    one, other = first % len(frames), second % len(frames)
    frames[one], frames[other] = frames[other], frames[one]


def shortened(frames, first, second, new):
    frame = frames[first % len(frames)]
    frames[first % len(frames)] = frame[: second % len(frame)]


def flipped(frames, first, second, new):
    frame = bytearray(frames[first % len(frames)])
    frame[second % len(frame)] = 33 + (first * 7 + second) % 200 % 223
    frames[first % len(frames)] = bytes(frame)


def exchanged(frames, first, second, new):
    frames[first % len(frames)] = with_another_value(frames[first % len(frames)], second, new)


simple = st.tuples(st.sampled_from([dropped, doubled, swapped]), place, place, st.none())
rough = st.tuples(st.sampled_from([dropped, doubled, swapped, shortened, flipped]), place, place, st.none())


def damaged(frames, damage):
    frames = list(frames)
    for spoil, first, second, new in damage:
        if frames:
            try:
                spoil(frames, first, second, new)
            except (ValueError, ZeroDivisionError):  # there is no JSON in it any more, or nothing at all
                continue
    return frames


@often(600)
@given(cases, st.lists(rough, min_size=1, max_size=4))
def test_a_stream_with_events_lost_doubled_swapped_cut_or_garbled_is_a_reply_or_an_error_of_the_server(case, damage):
    wire, _, frames, calls = case
    check(wire, [b"".join(damaged(frames, damage))], calls)


@often(1200)
@given(cases, place, place, weird)
def test_a_stream_with_a_value_of_another_kind_in_it_is_a_reply_or_an_error_of_the_server(case, first, second, new):
    wire, _, frames, calls = case
    check(wire, damaged(frames, [(exchanged, first, second, new)]), calls)


@often(600)
@given(cases, place, weird)
def test_a_whole_answer_with_a_value_of_another_kind_in_it_is_a_reply_or_an_error_of_the_server(case, second, new):
    wire, draft, _, calls = case
    frame = with_another_value(b"data: " + wire.whole(draft), second, new)
    check(wire, [frame.removeprefix(b"data: ")], calls)


@often(400)
@given(cases, st.lists(simple, max_size=2), place)
def test_a_call_of_a_stream_that_was_cut_is_whole_or_there_is_no_reply(case, damage, end):
    """Beginnings of arguments that happen to be JSON are the danger, such as the 1 of 12: none of them may get out."""
    wire, draft, frames, calls = case
    raw = b"".join(frames)
    reply = check(wire, [raw[: end % len(raw)]], calls)
    if reply is not None and reply.finish != "length":
        assert {(call.name, call.arguments) for call in reply.message.tool_calls} <= calls
        assert len(reply.message.tool_calls) == len(draft.calls)


@often(150)
@given(st.sampled_from([case for case in CASES if case[0].name == "responses"]), st.sets(place, max_size=30))
def test_a_responses_stream_that_lost_fragments_is_the_same_reply(case, lost):
    """This format says everything again when it is whole."""
    wire, _, frames, _ = case
    places = {number % len(frames) for number in lost}
    left = [frame for number, frame in enumerate(frames) if number not in places or b".delta" not in frame.partition(b"\n")[0]]
    assert kept(wire.receive([b"".join(left)])[0]) == kept(wire.receive([b"".join(frames)])[0])
