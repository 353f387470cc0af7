"""Values: equal by content, and equal again after a trip through JSON."""

import json

import pytest

from nb_agent import events
from nb_agent.messages import (
    Definition,
    Image,
    Message,
    Opaque,
    Piece,
    Reply,
    Request,
    Segment,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from nb_agent.usage import Usage
from nb_agent.values import Encoded, encode, from_json, to_json

FOREIGN = {"type": "Message", "role": "x", "list": [1, {"type": "Text"}], "京": None}
MESSAGE = Message(
    "assistant", (Thinking("t", extra=FOREIGN), Text("京都 🌲"), ToolCall("c", "f", '{"a": 1}', extra=FOREIGN)), extra=FOREIGN
)
RESULT = ToolResult("c", "f", (Text("r"), Image(data="iVBO"), Image(url="https://x.test")), "tool_failed")
VALUES = [
    MESSAGE,
    Message("tool", (RESULT,), name="n"),
    Definition("f", "d", FOREIGN, strict=True),
    Request("chat_completions", "/x", FOREIGN, stream=True, notices=("n",)),
    Message("assistant", (Opaque("w", FOREIGN),)),
    Reply(MESSAGE, "stop", "eos", Usage(1, 2, 3, 4, 5), "id", "m", FOREIGN, (MESSAGE,), ("a", "b")),
    Segment("user", "t", 1),
    Piece("arguments", "{", 2, 1),
    events.RunStarted("p", "m", "w", mock=True, window=8192, history=(MESSAGE,)),
    events.RequestReady(1, Request("w", "/x", {}), ("n",)),
    events.Delta(1, (Piece("text", "t"),), "{}"),
    events.ReplyDone(1, Reply(MESSAGE, "stop"), seconds=1.5, first=0.5),
    events.ToolAsked(1, ToolCall("c", "f"), (events.Step("known", "failed", "why"),)),
    events.ToolDone(1, RESULT, (events.Step("known"),), 0.1, "Traceback"),
    events.RunEnded("error", (MESSAGE,), Usage(1), "words", 2.0),
    events.Refuse("no"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_equal_from_json(value):
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


def test_somebody_elses_json_is_never_looked_into():
    back = from_json(json.loads(json.dumps(to_json(Definition("f", "d", FOREIGN)))))
    assert back.parameters == FOREIGN
    assert isinstance(back.parameters["list"], list)


def test_what_was_worked_out_for_a_message_is_no_part_of_it():
    one, other = Message.of("user", "a"), Message.of("user", "a")
    one.memo["wire"] = {}
    assert one == other
    assert "memo" not in to_json(one)
    assert "memo" not in repr(one)


def test_seconds_do_not_count_when_events_are_compared():
    assert events.ToolDone(1, RESULT, seconds=1.0) == events.ToolDone(1, RESULT, seconds=2.0)


def test_encoding_takes_remembered_bytes_and_gives_the_same_json():
    entry = Encoded(role="user", content="京都")
    assert entry.content is entry.content
    assert (
        encode({"messages": [entry, [entry]], "n": 1.5})
        == json.dumps({"messages": [entry, [entry]], "n": 1.5}, ensure_ascii=False, separators=(",", ":")).encode()
    )


def test_a_failed_result_says_so_to_the_model():
    result = ToolResult.failure(ToolCall("c", "f"), "no such file: 'a'", code="not_found")
    assert json.loads(result.text) == {"success": False, "error": "no such file: 'a'", "code": "not_found"}
    assert result.failed
    assert not ToolResult("c", "f", (Text("ok"),)).failed


def test_usage_adds_bucket_by_bucket_and_unknown_is_not_zero():
    assert Usage(input=1) + Usage(cache_read=2) == Usage(input=1, cache_read=2)
    assert Usage().total_tokens is None
    assert Usage(input=1, cache_read=2, cache_write=3, output=4, reasoning=5).total_tokens == 15
