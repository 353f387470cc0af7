"""saved.py: what a notebook keeps of a run, whole and in proportion to the run."""

import json
import random
import shutil
import subprocess
from copy import deepcopy

import nbformat
import pytest
from samples import (
    ANSWER,
    PROMPT,
    SYSTEM,
    call_events,
    call_pieces,
    count,
    failing_events,
    hostile_events,
    reply,
    request,
    state_of,
    text_pieces,
    three_round_events,
    wire_call,
)

from nb_agent.events import ReplyDone, RequestReady, RunEnded, RunStarted
from nb_agent.messages import Message, Reply, Text, ToolCall
from nb_agent.usage import Usage
from nb_agent.values import dumps
from nb_agent.views.saved import MIME, opened, saved

FORMS = ("text/html", "text/markdown", "text/plain")
WORDS = "the a of file line result value model window config report total error number path name".split()


def result_text(number, kind, size=2_000):
    """Two kilobytes of a result: of words, of noise that no packing makes smaller, of Chinese."""
    source = random.Random(number)
    if kind == "noise":
        return "".join(chr(source.randrange(33, 127)) for _ in range(size))
    if kind == "chinese":
        return "".join(chr(source.randrange(0x4E00, 0x9FA0)) for _ in range(size // 3))
    return " ".join(source.choice(WORDS) for _ in range(size // 5))[:size]


def long_events(rounds, kind="words", size=2_000):
    """A run of so many rounds with a call in each but the last, as it streams."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    yield RunStarted(PROMPT, "mock-8k", "chat_completions", mock=True, window=8192)
    for number in range(1, rounds + 1):
        yield RequestReady(number, request(messages))
        if number == rounds:
            yield from text_pieces(number, ANSWER)
            yield ReplyDone(number, reply(number, ANSWER, usage=Usage(9, output=9)), 0.4, 0.1)
            break
        call = ToolCall(f"call_{number}", "read_file", dumps({"path": f"docs/part-{number}.md"}))
        text = result_text(number, kind, size)
        yield from call_pieces(0, call)
        yield ReplyDone(number, reply(number, calls=[call], usage=Usage(9, output=9)), 0.4, 0.1)
        yield from call_events(number, call, text, 0.01)
        messages = [*messages, {"role": "assistant", "content": None, "tool_calls": [wire_call(call)]}]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    yield RunEnded("stop", (), Usage(9, output=9), seconds=9.0)


def new_bytes(events):
    """What went over the wire for the first time: of each request what the one before had not, and each reply, not streamed."""
    total, before = 0, []
    for event in events:
        if isinstance(event, RequestReady):
            body = event.request.body
            total += len(dumps(body["messages"][len(before) :]).encode())
            total += len(dumps({key: value for key, value in body.items() if key != "messages"}).encode()) if not before else 0
            before = body["messages"]
        elif isinstance(event, ReplyDone):
            total += len(dumps(event.reply.body).encode())
    return total


def notebook_of(*bundles):
    """The file that Jupyter writes for a cell with these outputs."""
    outputs = [nbformat.v4.new_output("display_data", data=bundle) for bundle in bundles]
    cell = nbformat.v4.new_code_cell("%%agent\n" + PROMPT, outputs=outputs)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbformat.validate(notebook)
    return nbformat.writes(notebook).encode()


@pytest.fixture(scope="module", params=["words", "noise", "chinese"])
def long_run(request):
    events = list(long_events(200, request.param))
    return events, state_of(events)


def test_a_notebook_with_200_rounds_is_hardly_larger_than_what_was_new(long_run):
    events, state = long_run
    new, bundle = new_bytes(events), saved(state)
    assert new > 500_000
    assert len(notebook_of(bundle)) < 1.2 * new + 50_000
    assert opened(bundle[MIME])["rounds"][100]["calls"] == state["rounds"][100]["calls"]
    assert all(PROMPT.split(" 报告")[0] in bundle[kind] for kind in FORMS)
    assert all("report.md" in bundle[kind] for kind in FORMS)


@pytest.mark.parametrize(
    ("rounds", "size"), [(1, 2_000), (3, 2_000), (12, 2_000), (40, 2_000), (40, 10), (200, 10), (20, 19_000), (60, 0)]
)
def test_size_goes_with_the_run_at_any_length(rounds, size):
    events = list(long_events(rounds, size=size))
    assert len(notebook_of(saved(state_of(events)))) < 1.2 * new_bytes(events) + 50_000
