"""A scripted Chat Completions server on the loopback interface, in a process of its own and fast enough never to be waited for.

    python benchmarks/server.py     # prints its port, then serves until its input ends

It keeps nothing about its clients: the script stands in the address (`Script.path`), and the round is the number of results that
the request holds. A reply is built once and is then a look-up and one write. Requests are not checked: a client is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

#: What `save` is asked to save, over and over: escapes and characters of several bytes, as model output has them.
FILLING = 'def area(r):\n    """Return the "area"."""\n    return 3.14 * r ** 2  # caf\u00e9 \u6570\u636e\n\n'
FRAGMENT = 4  # characters of a streamed piece of arguments


class Script(NamedTuple):
    """So many rounds with so many calls of a tool each, then a text. ``size`` is about the length of the arguments of `save`."""

    rounds: int
    tool: str
    calls: int = 1
    size: int = 0

    @property
    def path(self) -> str:
        return "/" + ",".join(map(str, self)) + "/v1"


def script_of(path: str) -> Script:
    rounds, tool, calls, size = path.split("/")[1].split(",")
    return Script(int(rounds), tool, int(calls), int(size))


def arguments(script: Script, number: int) -> str:
    if script.tool != "save":
        return json.dumps({"number": number})
    return json.dumps({"content": (FILLING * (script.size // len(FILLING) + 1))[: script.size]}, ensure_ascii=False)


def calls(script: Script, turn: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{turn}_{place}",
            "type": "function",
            "function": {"name": script.tool, "arguments": arguments(script, turn * script.calls + place)},
        }
        for place in range(script.calls if turn < script.rounds else 0)
    ]


USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}


def form(turn: int, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{turn}", "object": kind, "created": 1_700_000_000, "model": "scripted", "system_fingerprint": "fp_0"}
    return {**head, "choices": choices, **more}


def whole(script: Script, turn: int) -> bytes:
    asked = calls(script, turn)
    message = {"role": "assistant", "content": None if asked else "done", "refusal": None}
    if asked:
        message["tool_calls"] = asked
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if asked else "stop"}
    body = json.dumps(form(turn, "chat.completion", [choice], usage=USAGE)).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def deltas(script: Script, turn: int) -> Iterator[dict[str, Any]]:
    asked = calls(script, turn)
    yield {"role": "assistant", "content": None if asked else "done"}
    for place, call in enumerate(asked):
        text = call["function"]["arguments"]
        yield {"tool_calls": [{"index": place, **call, "function": {"name": script.tool, "arguments": ""}}]}
        for start in range(0, len(text), FRAGMENT):
            yield {"tool_calls": [{"index": place, "function": {"arguments": text[start : start + FRAGMENT]}}]}


def events(script: Script, turn: int) -> list[bytes]:
    """The events of a streamed reply, as servers cut them: one piece each, the finish reason, the usage, the end."""
    finish = "tool_calls" if turn < script.rounds else "stop"
    choices = [
        *({"index": 0, "delta": delta, "logprobs": None, "finish_reason": None} for delta in deltas(script, turn)),
        {"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish},
    ]
    forms = [form(turn, "chat.completion.chunk", [choice]) for choice in choices]
    forms.append(form(turn, "chat.completion.chunk", [], usage=USAGE))
    return [b"data: %b\n\n" % json.dumps(each, separators=(",", ":")).encode() for each in forms] + [b"data: [DONE]\n\n"]


def streamed(script: Script, turn: int) -> bytes:
    """Each event in an HTTP chunk of its own."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events(script, turn)) + b"0\r\n\r\n"


@lru_cache(maxsize=512)
def reply(path: str, turn: int, *, stream: bool) -> bytes:
    return (streamed if stream else whole)(script_of(path), turn)


class Connection(asyncio.Protocol):
    """One client; its requests come one after the other and have a content-length."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.read = bytearray()
        self.body_begins, self.body_ends = 0, 0

    def data_received(self, data: bytes) -> None:
        self.read += data
        if not self.body_begins:
            end = self.read.find(b"\r\n\r\n")
            if end < 0:
                return
            length = bytes(self.read[:end]).lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            self.body_begins, self.body_ends = end + 4, end + 4 + int(length)
        if len(self.read) >= self.body_ends:
            self.answer(bytes(self.read[: self.body_begins]), bytes(self.read[self.body_begins : self.body_ends]))
            self.read.clear()
            self.body_begins = 0

    def answer(self, head: bytes, body: bytes) -> None:
        path = head.split(b" ", 2)[1].decode()
        turn = body.count(b'"tool_call_id"') // script_of(path).calls
        self.transport.write(reply(path, turn, stream=b'"stream":true' in body))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # whoever started it closes it


if __name__ == "__main__":
    asyncio.run(serve())
