"""What the mock's writers write, for the tests of all wire formats together: the same replies over each, and their reading."""

import json
from dataclasses import dataclass, field
from itertools import pairwise

from nb_agent import adapters
from nb_agent.messages import ToolCall
from nb_agent.mock import anthropic_messages, chat_completions, gemini_generate, responses
from nb_agent.mock.wire import Draft, Usage
from nb_agent.values import dumps

USAGE = Usage(7, 5)
KEPT = ("message", "finish", "raw_finish", "usage", "id", "model", "others", "notices")  # the same streamed and whole


@dataclass(frozen=True)
class Wire:
    """One wire format in one of its ways: the other end's module, and the request that its answers are for."""

    name: str
    writer: object
    body: dict = field(hash=False)
    thinks: bool = False

    @property
    def line_end(self):
        """What its real server ends lines with."""
        return b"\r\n" if self.name == "gemini_generate" else b"\n"

    def whole(self, *drafts, usage=USAGE):
        return json.dumps(self.writer.whole(self.body, drafts, usage, "seed"), ensure_ascii=False).encode()

    def frames(self, *drafts, usage=USAGE):
        """The events of a stream; their lines end in LF."""
        frames = self.writer.stream(self.body, drafts, usage, "seed")
        return [frame.payload.replace(b"\r\n", b"\n") for frame in frames]

    def streamed(self, *drafts, usage=USAGE):
        return b"".join(self.frames(*drafts, usage=usage))

    def receive(self, chunks):
        """The reply, and all its pieces."""
        reading, pieces = adapters.receive(self.name, chunks), []
        while True:
            try:
                pieces += next(reading)[1]
            except StopIteration as end:
                return end.value, pieces


_USER = [{"role": "user", "content": "x"}]
WIRES = {
    "chat": Wire(
        "chat_completions", chat_completions, {"model": "mock", "messages": _USER, "stream_options": {"include_usage": True}}
    ),
    "responses": Wire("responses", responses, {"model": "mock", "input": "x"}),
    "responses, thinking": Wire(
        "responses", responses, {"model": "mock", "input": "x", "reasoning": {"effort": "low", "summary": "auto"}}, thinks=True
    ),
    "anthropic": Wire("anthropic_messages", anthropic_messages, {"model": "mock", "messages": _USER, "max_tokens": 500}),
    "anthropic, thinking": Wire(
        "anthropic_messages",
        anthropic_messages,
        {"model": "mock", "messages": _USER, "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        thinks=True,
    ),
    "gemini": Wire("gemini_generate", gemini_generate, {"model": "mock"}),
    "gemini, signing": Wire("gemini_generate", gemini_generate, {"model": "gemini-3-pro"}),
}
#: Formats in which one answer can hold several choices.
SEVERAL = ("chat_completions", "gemini_generate")

AREA = ToolCall("call_1", "area", '{"w":2,"note":"京都 \\"x\\" 🙂"}')
NOW = ToolCall("call_2", "now", "{}")
CUT = ToolCall("call_3", "save", '{"text":"cut o')

DRAFTS = {
    "text": Draft("Hello!", (), "stop"),
    "Chinese and emoji": Draft('你好，京都 🙂👩‍👩‍👧\n\n- a\t\\"b"\u2028c', (), "stop"),
    "nothing": Draft("", (), "stop"),
    "one call": Draft("", (AREA,), "tool_calls"),
    "no arguments": Draft("", (NOW,), "tool_calls"),
    "parallel calls": Draft("", (AREA, NOW, ToolCall("call_4", "area", '{"w":3}')), "tool_calls"),
    "text with calls": Draft("I look.", (AREA, NOW), "tool_calls"),
    "cut off": Draft("cut o", (), "length"),
    "cut off in a call": Draft("", (CUT,), "length"),
    "filtered": Draft("Half an", (), "content_filter"),
}
LONG = {
    "long text": Draft("Ein langer Satz, 很长的句子。🙂 " * 400, (), "stop"),
    "long call": Draft("", (ToolCall("call_5", "save", dumps({"text": "長い x " * 1500})),), "tool_calls"),
}


def rewritten(raw, line_end):
    return raw.replace(b"\n", line_end)


def cut(raw, places):
    """The bytes in chunks that end at these places."""
    ends = [0, *sorted(places), len(raw)]
    return [raw[begin:end] for begin, end in pairwise(ends)]


def in_steps(raw, size):
    return [raw[begin : begin + size] for begin in range(0, len(raw), size)]


def kept(reply):
    return tuple(getattr(reply, name) for name in KEPT)


def joined(pieces):
    """The pieces put together: what anybody has seen of a reply who watched it come."""
    texts = {}
    for piece in pieces:
        key = (piece.choice, piece.kind, piece.index)
        texts[key] = texts.get(key, "") + piece.text
    return texts
