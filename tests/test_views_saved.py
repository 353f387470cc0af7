"""saved.py: what a notebook keeps of a run, whole and in proportion to the run."""

import json
import random
from copy import deepcopy

import nbformat
import pytest
from samples import (
    ANSWER,
    PROMPT,
    SYSTEM,
    call_events,
    call_pieces,
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
from nb_agent.messages import ToolCall
from nb_agent.usage import Usage
from nb_agent.values import dumps
from nb_agent.views.saved import MIME, opened, saved

FORMS = ("text/html", "text/markdown", "text/plain")
WORDS = ["the", "a", "of", "file", "line", "result", "value", "model", "window", "config", "report", "total", "error", "number"]


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


@pytest.fixture(scope="module", params=["words", "noise"])
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
    ("rounds", "size", "kind"),
    [(1, 2_000, "words"), (3, 2_000, "noise"), (40, 2_000, "chinese"), (8, 60_000, "chinese"), (80, 10, "words")],
)
def test_size_goes_with_the_run_at_any_length(rounds, size, kind):
    events = list(long_events(rounds, kind, size))
    assert len(notebook_of(saved(state_of(events)))) < 1.2 * new_bytes(events) + 50_000


@pytest.mark.parametrize("events", [three_round_events, failing_events, hostile_events, lambda: ()])
def test_the_saved_json_opens_as_the_state_it_was(events):
    state = state_of(events())
    before = deepcopy(state)
    bundle = json.loads(json.dumps(saved(state)))
    assert opened(bundle[MIME]) == state == before
    assert list(bundle) == [MIME, *FORMS]
    assert saved(state) == bundle, "the same run is saved as the same bytes"


def test_a_short_run_is_whole_in_every_form():
    bundle = saved(state_of(three_round_events()))
    for kind in FORMS:
        assert "not shown here" not in bundle[kind]
        assert all(words in bundle[kind] for words in ("报告用中文也可以", "部署说明.md", "read_file"))


def test_budgets_and_what_a_person_changed_stand_in_every_form():
    state = state_of(three_round_events())
    call = state["rounds"][0]["calls"][0]
    call |= {"asked": '{"path": "other.yaml"}', "given": {"text": "what the tool said", "images": [], "code": None}}
    bundle = saved(state)
    for kind in FORMS:
        assert all(words in bundle[kind] for words in ("other.yaml", "what the tool said", "config.yaml"))
        assert state["rounds"][0]["request"]["budget"]["words"] in bundle[kind]
        assert "+6 (template)" in bundle[kind]


def test_what_a_long_run_leaves_out_is_said(long_run):
    bundle = saved(long_run[1])
    shown = bundle["text/markdown"]
    assert "characters in all" in shown
    assert ANSWER.split("\n")[0] in shown
    lines = shown.count("not shown here: read_file")
    assert lines >= 150
    assert shown.count("#### Round") == 200 - lines
    assert bundle["text/html"].count("<h4>Round") < 200 or "characters in all" in bundle["text/html"]


def test_branches_share_the_rounds_that_they_kept():
    state = state_of(list(long_events(40)))
    other = deepcopy(state)
    other["rounds"][30]["calls"][0]["result"]["text"] = "another result"
    alone = len(json.dumps(saved(state)[MIME]))
    branched = state | {"branches": [{"label": "left at round 31", "from_round": 31, "state": other}]}
    bundle = saved(branched)
    assert opened(bundle[MIME]) == branched
    assert len(json.dumps(bundle[MIME])) < 1.35 * alone
    assert all("left at round 31: 40 rounds" in bundle[kind] for kind in FORMS)


def test_a_stream_that_would_make_the_run_too_large_is_left_out():
    state = state_of(three_round_events())
    noise = random.Random(1)
    for entry in state["rounds"]:
        entry["reply"]["stream"] = [[number, [["text", 0, noise.randbytes(12).hex()]]] for number in range(2_000)]
    bundle = saved(state)
    assert [entry["reply"]["stream"] for entry in opened(bundle[MIME])["rounds"]] == [[], [], []]
    assert len(notebook_of(bundle)) < 1.2 * new_bytes(three_round_events()) + 50_000


def test_what_a_server_sent_costs_a_run_no_more_than_its_share():
    events = list(long_events(60, "chinese"))
    state = state_of(events)
    for call in (call for entry in state["rounds"] for call in entry["calls"]):
        call["wire"] = [{"direction": "in", "body": json.dumps({"result": {"content": [{"text": call["result"]["text"]}]}})}]
    assert len(notebook_of(saved(state))) < 1.2 * new_bytes(events) + 50_000


def test_results_that_would_make_the_run_too_large_are_cut_and_stand_whole_in_the_next_request():
    kept = opened(saved(state_of(list(long_events(4, "chinese", 60_000))))[MIME])["rounds"]
    assert "characters in all" in kept[0]["calls"][0]["result"]["text"]
    assert "characters in all" not in dumps(kept[1]["request"])


def test_a_question_is_not_saved():
    assert opened(saved(state_of(three_round_events()) | {"question": {"title": "?"}})[MIME])["question"] is None


def test_pictures_stay_whole_where_they_are_shown():
    state = state_of(three_round_events())
    data = "iVBORw0KGgo" + "A" * 30_000
    state["rounds"][0]["calls"][0]["pictures"] = [{"data": data, "media_type": "image/png", "url": None}]
    bundle = saved(state)
    assert f"base64,{data}" in bundle["text/html"]
    assert opened(bundle[MIME]) == state


@pytest.mark.parametrize("broken", [{"gzip": "?"}, {"gzip": ""}, {"gzip": "H4sIAAAA"}])
def test_what_is_not_a_saved_run_is_refused(broken):
    with pytest.raises((EOFError, OSError, ValueError)):
        opened({"version": 1} | broken)
