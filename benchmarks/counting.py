"""What counting the tokens of a request costs, and whether it grows with the conversation.

    python benchmarks/counting.py [--runs 9] [--check]

A conversation of 200 rounds with results of 2 KB, as it is sent in each wire format; only the counting is timed. README.md says
what each row means.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator

from measuring import Row, main

from nb_agent import adapters, tokens
from nb_agent.messages import Definition, Message, Text, ToolCall, ToolResult

ROUNDS, GROWTH = 200, 1.5
WIRES = (
    ("chat_completions", "gpt-4o"),
    ("responses", "gpt-5"),
    ("anthropic_messages", "claude-sonnet-4-5"),
    ("gemini_generate", "gemini-2.5-pro"),
    ("chat_completions", "mock"),
)
FETCH = Definition(
    "fetch", "Fetches a page.", {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}
)
_made = iter(range(10**9))


def turn() -> list[Message]:
    """A call and a result that was never counted before."""
    number = next(_made)
    call = ToolCall(f"call_{number:06}", FETCH.name, json.dumps({"page": number}))
    text = f"page {number}: " + f"a word about page {number}; " * 75
    return [Message("assistant", (call,)), Message("tool", (ToolResult(call.id, call.name, (Text(text),)),))]


def conversation(wire: str, model: str) -> list[float]:
    """CPU seconds of counting in each round."""
    history, taken = [Message.of("system", "You are a helper."), Message.of("user", "Read all pages.")], []
    for _ in range(ROUNDS):
        history = [*history, *turn()]
        body = adapters.WIRES[wire].request(history, [FETCH], model=model).body
        begun = time.process_time()
        tokens.breakdown(adapters.WIRES[wire].segments(body), model=model)
        taken.append(time.process_time() - begun)
    return taken


def rows(runs: int) -> Iterator[Row]:
    for wire, model in WIRES:
        conversation(wire, model)
        taken = [conversation(wire, model) for _ in range(runs)]
        first, last = (
            statistics.median(statistics.median(one[part]) for one in taken) for part in (slice(5, 15), slice(-10, None))
        )
        name = f"counting, round 200 / round 10, {wire}, {model}"
        yield Row(name, f"{last * 1e3:.2f} ms", f"{first * 1e3:.2f} ms", last / first, GROWTH)


if __name__ == "__main__":
    sys.exit(main("Counting the tokens of a conversation that grows.", ("round 200", "round 10", "ratio"), 9, rows))
