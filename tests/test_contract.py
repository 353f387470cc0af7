"""One contract for all wire formats: a reply is the same however it comes, a conversation the same whichever format carries it.

The other ends are the mock's: what its writers write is read here, and what `request` writes is read by the mock.
"""

import dataclasses
import json

import pytest
import wire_samples
from wire_samples import AREA, CUT, DRAFTS, LONG, NOW, WIRES, joined, kept

from nb_agent import adapters, mock
from nb_agent.adapters import sse
from nb_agent.errors import ProviderError
from nb_agent.history import mend
from nb_agent.messages import Definition, Image, Message, Text, Thinking, ToolCall, ToolResult
from nb_agent.mock.plans import outcomes
from nb_agent.mock.wire import Draft, Refused
from nb_agent.tools.arguments import parsed

SHORT = Draft("é🙂", (ToolCall("call_1", "f", '{"a":"京"}'),), "tool_calls")
ALL = {**DRAFTS, **LONG}

every_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
every_draft = pytest.mark.parametrize("draft", ALL.values(), ids=ALL)
every_plain_draft = pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
every_line_end = pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])


# ------------------------------------------------------------------------------------------------------------ replies


def expected_calls(wire, draft):
    """Name and arguments; Gemini hands out no call that is not whole."""
    calls = draft.calls if wire.name != "gemini_generate" else [call for call in draft.calls if call is not CUT]
    return [(call.name, call.arguments) for call in calls]


@every_draft
@every_wire
def test_streamed_and_whole_a_reply_says_what_the_writer_was_given(wire, draft):
    for raw in (wire.streamed(draft), wire.whole(draft)):
        reply, _ = wire.receive([raw])
        thoughts = [part for part in reply.message.parts if isinstance(part, Thinking)]
        assert reply.message.text == draft.text
        assert [(call.name, call.arguments) for call in reply.message.tool_calls] == expected_calls(wire, draft)
        assert reply.finish == draft.finish
        assert (reply.usage.input_tokens, reply.usage.output) == (7, 5)
        assert len(thoughts) == wire.thinks
        assert reply.others == ()


@every_draft
@every_wire
def test_streamed_and_whole_are_the_same_reply(wire, draft):
    assert kept(wire.receive([wire.streamed(draft)])[0]) == kept(wire.receive([wire.whole(draft)])[0])


@every_draft
@every_wire
def test_the_pieces_of_a_stream_put_together_are_the_reply(wire, draft):
    reply, pieces = wire.receive([wire.streamed(draft)])
    seen = joined(pieces)
    calls = reply.message.tool_calls
    assert "".join(seen.get((0, kind, 0), "") for kind in ("text", "refusal")) == reply.message.text
    assert [seen[0, "call", place] for place in range(len(calls))] == [call.name for call in calls]
    assert [seen.get((0, "arguments", place), "") or "{}" for place in range(len(calls))] == [c.arguments or "{}" for c in calls]
    thoughts = "".join(part.text for part in reply.message.parts if isinstance(part, Thinking))
    assert seen.get((0, "thinking", 0), "") == thoughts


@pytest.mark.parametrize("name", wire_samples.SEVERAL)
def test_of_several_choices_the_first_is_the_reply_and_the_others_are_kept_apart(name):
    wire = next(wire for wire in WIRES.values() if wire.name == name)
    first, second = DRAFTS["text with calls"], DRAFTS["Chinese and emoji"]
    for raw in (wire.streamed(first, second), wire.whole(first, second)):
        reply, _ = wire.receive([raw])
        assert (reply.message.text, len(reply.message.tool_calls), reply.finish) == (first.text, 2, "tool_calls")
        assert [other.text for other in reply.others] == [second.text]


# ------------------------------------------------------------------------------------------------------ every split


@every_line_end
@every_plain_draft
@every_wire
def test_the_size_of_the_reads_and_the_line_ends_do_not_matter(wire, draft, line_end):
    raw = wire.streamed(draft)
    once = wire.receive([raw])
    raw = wire_samples.rewritten(raw, line_end)
    for size in (1, 3, 1460):
        reply, pieces = wire.receive(wire_samples.in_steps(raw, size))
        assert (reply, joined(pieces)) == (once[0], joined(once[1]))


@pytest.mark.parametrize("draft", LONG.values(), ids=LONG)
@every_wire
def test_a_long_reply_is_the_same_in_reads_of_any_size(wire, draft):
    raw = wire.streamed(draft)
    once, _ = wire.receive([raw])
    for size in (61, 1460):
        assert wire.receive(wire_samples.in_steps(wire_samples.rewritten(raw, b"\r\n"), size))[0] == once


@every_line_end
@every_wire
def test_a_stream_in_two_reads_is_the_same_reply_with_the_same_pieces(wire, line_end):
    raw = wire.streamed(SHORT)
    once = wire.receive([raw])
    raw = wire_samples.rewritten(raw, line_end)
    for place in range(1, len(raw), 1 + len(raw) // 100):  # the next test has every place
        assert wire.receive([raw[:place], raw[place:]]) == once


@every_plain_draft
@every_wire
def test_a_stream_reads_the_same_at_every_split(wire, draft):
    reads_the_same_at_every_split(wire_samples.rewritten(wire.streamed(draft), wire.line_end), len(wire.frames(draft)))


@every_line_end
@every_wire
def test_a_short_stream_with_any_line_end_reads_the_same_at_every_split(wire, line_end):
    reads_the_same_at_every_split(wire_samples.rewritten(wire.streamed(SHORT), line_end), len(wire.frames(SHORT)))


def reads_the_same_at_every_split(raw, events):
    """What an accumulator gets depends on the bytes by way of these payloads alone: where they are equal, reply and events are."""
    once = list(sse.payloads([raw]))
    assert len(once) == events
    for place in range(1, len(raw)):
        assert list(sse.payloads([raw[:place], raw[place:]])) == once


@every_plain_draft
@every_wire
def test_a_whole_answer_reads_the_same_at_every_split(wire, draft):
    raw = wire.whole(draft)
    once = list(sse.payloads([raw]))
    assert once == [(raw.decode(), True)]
    for place in range(1, len(raw)):
        assert list(sse.payloads([raw[:place], raw[place:]])) == once
    assert list(sse.payloads(wire_samples.in_steps(raw, 1))) == once
    assert wire.receive(wire_samples.in_steps(raw, 1)) == wire.receive([raw])


@every_plain_draft
@every_wire
def test_a_stream_that_breaks_off_anywhere_is_the_whole_reply_or_an_error_that_can_be_tried_again(wire, draft):
    raw = wire.streamed(draft)
    once, _ = wire.receive([raw])
    for place in range(0, len(raw), 1 + len(raw) // 400):
        try:
            reply, _ = wire.receive([raw[:place]])
        except ProviderError as error:
            assert (error.kind, error.retryable) == ("stream_interrupted", True), str(error)  # noqa: PT017  either may come
        else:
            assert (reply.message, reply.finish) == (once.message, once.finish)


# ---------------------------------------------------------------------------------------------------------- histories

IMAGE = Image("aW1hZ2U=", "image/png")
FAILED = ToolResult.failure(NOW, "no clock here", code="tool_failed")
TOOLS = (
    Definition("area", "An area.", {"type": "object", "properties": {"w": {"type": "number"}, "note": {"type": "string"}}}),
    Definition("now", "The time.", {"type": "object", "properties": {}}),
)


def answer_of(call, text):
    return Message("tool", (ToolResult(call.id, call.name, (Text(text),)),))


HISTORIES = {
    "text": [
        Message.of("system", "Be brief."),
        Message.of("user", "Hi"),
        Message.of("assistant", "Ho"),
        Message.of("user", "And?"),
    ],
    "Chinese and emoji": [Message.of("user", "你好 🙂\n\u2028"), Message.of("assistant", "京都"), Message.of("user", "再见")],
    "one call": [Message.of("user", "x"), Message("assistant", (AREA,)), answer_of(AREA, "6 m² 🙂")],
    "parallel calls": [
        Message.of("user", "x"),
        Message("assistant", (AREA, NOW)),
        answer_of(AREA, '{"area":6}'),
        answer_of(NOW, "12:00"),
        Message.of("assistant", "Six."),
        Message.of("user", "Thanks"),
    ],
    "text with calls": [
        Message.of("system", "s"),
        Message.of("user", "x"),
        Message("assistant", (Text("I look."), AREA, NOW)),
        answer_of(AREA, "6"),
        answer_of(NOW, "12"),
    ],
    "the same tool twice": [
        Message.of("user", "x"),
        Message("assistant", (ToolCall("a", "area", '{"w":1}'), ToolCall("b", "area", '{"w":2}'))),
        answer_of(ToolCall("a", "area"), "first"),
        answer_of(ToolCall("b", "area"), "second"),
    ],
    "a failed call": [Message.of("user", "x"), Message("assistant", (NOW, AREA)), Message("tool", (FAILED,)), answer_of(AREA, "6")],
    "images": [Message.of("user", "x"), Message.of("assistant", "y"), Message("user", (Text("What is this?"), IMAGE, IMAGE))],
    "an empty result": [Message.of("user", "x"), Message("assistant", (NOW,)), answer_of(NOW, ""), Message.of("assistant", "z")],
}
every_history = pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)


def written(wire, history, **options):
    """The request as it arrives at the server."""
    for message in history:
        message.memo.clear()
    model = options.pop("model", wire.body["model"])
    request = adapters.WIRES[wire.name].request(history, TOOLS, model=model, **options)
    return request, json.loads(request.content) | wire.writer.carried(request.path.partition("?")[0])


def shape(messages):
    """Who says what, in order; calls by their number, since only some formats have ids for them."""
    numbers = {}
    for message in messages:
        for call in message.tool_calls:
            numbers[id(call)] = len(numbers)
    found, waiting = [], []
    for message in messages:
        waiting += [(call.id, numbers[id(call)]) for call in message.tool_calls]
        found.append((message.role, [form for part in message.parts if (form := _part_shape(part, waiting))]))
    joined_up = []
    for role, parts in found:
        if parts and role == "user" and joined_up and joined_up[-1][0] == "user":  # some formats have one user turn at a time
            joined_up[-1][1].extend(parts)
        elif parts:
            joined_up.append((role, parts))
    return joined_up


def _part_shape(part, waiting):
    if isinstance(part, Text):
        return ("text", part.text) if part.text else None
    if isinstance(part, Image):
        return ("image",)
    if isinstance(part, ToolCall):
        return ("call", part.name, parsed(part.arguments))
    if isinstance(part, ToolResult):
        number = next(number for known, number in reversed(waiting) if known == part.call_id)
        return ("result", number, part.name, part.text)
    return None  # thinking and what is opaque


@every_history
@every_wire
def test_a_conversation_is_read_back_as_the_same_messages(wire, history):
    ask = wire.writer.read(written(wire, history)[1])
    assert shape(ask.messages) == shape(history)


@every_wire
def test_what_came_of_the_calls_is_known_on_the_other_side(wire):
    found = outcomes(wire.writer.read(written(wire, HISTORIES["a failed call"])[1]).messages)
    assert [(outcome.call.name, outcome.error, outcome.code) for outcome in found] == [
        ("now", "no clock here", "tool_failed"),
        ("area", None, None),
    ]


@every_wire
def test_an_image_in_a_result_goes_out_once_and_its_text_with_it(wire):
    seen = Message("tool", (ToolResult(NOW.id, "now", (Text("a plot"), IMAGE)),))
    history = [Message.of("user", "x"), Message("assistant", (NOW,)), seen, Message.of("assistant", "y"), Message.of("user", "z")]
    request, body = written(wire, history)
    assert request.content.count(b"aW1hZ2U=") == 1
    assert wire.writer.read(body).messages[2].text.startswith("a plot")


@every_wire
def test_the_tools_are_read_back(wire):
    ask = wire.writer.read(written(wire, HISTORIES["text"])[1])
    assert [(tool.name, tool.description) for tool in ask.tools] == [(tool.name, tool.description) for tool in TOOLS]
    assert ask.tools[0].parameters["properties"] == TOOLS[0].parameters["properties"]


def test_an_answer_of_any_format_can_be_gone_on_with_in_any_format():
    for source in WIRES.values():
        for name, draft in DRAFTS.items():
            reply, _ = source.receive([source.streamed(draft)])
            results = [answer_of(call, f"result {number}") for number, call in enumerate(reply.message.tool_calls)]
            history, _ = mend([Message.of("user", "x"), reply.message, *results, Message.of("user", "Go on")])
            for target in WIRES.values():
                _, body = written(target, history)
                try:
                    ask = target.writer.read(body)
                except Refused as refused:
                    pytest.fail(f"{source.name} -> {target.name}, {name}: {refused}")
                if draft is not DRAFTS["cut off in a call"]:  # half a call is no JSON: some formats have to put it another way
                    assert shape(ask.messages) == shape(history)


@pytest.mark.parametrize("wire", [wire for wire in WIRES.values() if wire.thinks], ids=lambda wire: wire.name)
def test_a_server_gets_its_thinking_back_exactly_and_notices_where_it_does_not(wire):
    reply, _ = wire.receive([wire.streamed(DRAFTS["one call"])])
    results = [answer_of(call, "6") for call in reply.message.tool_calls]
    _, body = written(wire, [Message.of("user", "x"), reply.message, *results])
    whole = {**{key: value for key, value in wire.body.items() if key not in body}, **body}
    wire.writer.read(json.loads(json.dumps(whole)))
    thought = next(part for part in reply.message.parts if isinstance(part, Thinking))
    changed = [_changed(part) if part is thought else part for part in reply.message.parts]
    without = [part for part in reply.message.parts if part is not thought]
    for parts in (changed, without):
        _, body = written(wire, [Message.of("user", "x"), Message("assistant", tuple(parts)), *results])
        with pytest.raises(Refused):
            wire.writer.read({**whole, **body})


def _changed(thought):
    extra = json.loads(json.dumps(thought.extra))
    if "item" in extra:
        extra["item"]["summary"][0]["text"] += "!"
    return dataclasses.replace(thought, text=f"{thought.text}!", extra=extra)


# ----------------------------------------------------------------------------------------------------------- settings

FORM = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
NAMED = {"type": "function", "function": {"name": "now"}}
#: Neutral setting -> what has to be read of it on the other side; or the format says that it has nothing like it.
SETTINGS = [
    ({"max_tokens": 40}, lambda ask: ask.limit == 40),
    ({"max_completion_tokens": 41}, lambda ask: ask.limit == 41),
    ({"stop": ["END", "停"]}, lambda ask: ask.stop == ("END", "停")),
    ({"stop": "END"}, lambda ask: ask.stop == ("END",)),
    ({"n": 2}, lambda ask: ask.copies == 2),
    ({"tool_choice": "none"}, lambda ask: ask.choice == "none"),
    ({"tool_choice": "required"}, lambda ask: ask.choice == "required"),
    ({"tool_choice": "auto"}, lambda ask: ask.choice == "auto"),
    ({"tool_choice": NAMED}, lambda ask: (ask.choice, ask.named, [t.name for t in ask.tools]) == ("required", True, ["now"])),
    ({"parallel_tool_calls": False}, lambda ask: ask.parallel is False),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "f", "schema": FORM}}}, lambda ask: ask.form == FORM),
    ({"response_format": {"type": "text"}}, lambda ask: ask.form is None),
]


@pytest.mark.parametrize(("settings", "arrives"), SETTINGS, ids=[json.dumps(settings)[:60] for settings, _ in SETTINGS])
@every_wire
def test_a_setting_arrives_or_the_request_says_that_it_was_left_out(wire, settings, arrives):
    request, body = written(wire, HISTORIES["text"], settings=settings)
    ask = wire.writer.read(body)
    said = any(notice.startswith(name) for name in settings for notice in request.notices)
    assert arrives(ask) is not said


@pytest.mark.parametrize("setting", ["temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "top_logprobs"])
@every_wire
def test_a_number_arrives_under_some_name_or_the_request_says_that_it_was_left_out(wire, setting):
    plain, _ = written(wire, HISTORIES["text"])
    request, body = written(wire, HISTORIES["text"], settings={setting: 1})
    wire.writer.read(body)
    said = any(notice.startswith(setting) for notice in request.notices)
    assert (request.content != plain.content) is not said


@every_wire
def test_streamed_or_not_only_the_way_of_delivery_differs(wire):
    asked = {stream: written(wire, HISTORIES["parallel calls"], stream=stream)[1] for stream in (False, True)}
    for body in asked.values():
        for key in ("stream", "stream_options"):
            body.pop(key, None)
    assert asked[True] == asked[False]


@every_wire
def test_the_mock_answers_the_same_streamed_and_whole(wire):
    replies = []
    for stream in (False, True):
        request, _ = written(wire, [Message.of("user", "What is the area of w 3 with the note 京都?")], stream=stream)
        replies.append(wire.receive(mock.send(request))[0])
    assert kept(replies[0]) == kept(replies[1])
