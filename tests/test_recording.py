"""Runs on disk: what is written comes back equal, and a file is whole or not there."""

import json

import pytest

from nb_agent import recording
from nb_agent.adapters import chat_completions
from nb_agent.errors import SettingError
from nb_agent.events import RequestReady, RunEnded, RunStarted
from nb_agent.messages import Message, Text, ToolCall, ToolResult


def long_run(rounds):
    """A run that reads 2 KB in each round."""
    history = [Message.of("system", "S"), Message.of("user", "京都 🌲")]
    yield RunStarted("京都 🌲", "m", "chat_completions")
    for number in range(1, rounds + 1):
        yield RequestReady(number, chat_completions.request(list(history), (), model="m", stream=True))
        history.append(Message("assistant", (ToolCall(f"c{number}", "read", "{}"),)))
        history.append(Message("tool", (ToolResult(f"c{number}", "read", (Text("x" * 2000),)),)))
    yield RunEnded("stop", tuple(history))


def test_a_run_comes_back_equal(tmp_path):
    events = list(long_run(4))
    recording.save(events, tmp_path / "run.jsonl")
    assert recording.load(tmp_path / "run.jsonl") == events


def test_a_body_that_was_read_back_has_the_same_bytes(tmp_path):
    events = list(long_run(4))
    recording.save(events, tmp_path / "run.jsonl")
    back = recording.load(tmp_path / "run.jsonl")
    assert [e.request.content for e in back if isinstance(e, RequestReady)] == [
        e.request.content for e in events if isinstance(e, RequestReady)
    ]


def test_a_file_grows_with_its_run_and_not_with_the_square(tmp_path):
    sizes = []
    for rounds in (20, 40):
        recording.save(long_run(rounds), tmp_path / "run.jsonl")
        sizes.append((tmp_path / "run.jsonl").stat().st_size)
    assert sizes[1] < 2.1 * sizes[0]


def test_a_write_that_fails_half_way_leaves_what_was_there(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("before", encoding="utf-8")

    def broken():
        yield from list(long_run(1))[:1]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        recording.save(broken(), path)
    assert path.read_text(encoding="utf-8") == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["run.jsonl"]


@pytest.mark.parametrize(
    "content", ["", "hello", "{}", '{"format":"nb_agent run","version":99}', '{"format":"nb_agent run","version":1}\n[]']
)
def test_what_is_no_run_is_one_line_that_names_the_file(content, tmp_path):
    (tmp_path / "x.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SettingError, match=r"x\.jsonl"):
        recording.load(tmp_path / "x.jsonl")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingError, match="nowhere"):
        recording.save([], tmp_path / "nowhere" / "run.jsonl")
    with pytest.raises(SettingError, match="No such file"):
        recording.load(tmp_path / "nowhere")


def test_a_saved_run_is_plain_json_lines(tmp_path):
    recording.save(long_run(2), tmp_path / "run.jsonl")
    lines = (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line).get("type", "head") for line in lines] == [
        "head",
        "RunStarted",
        "RequestReady",
        "RequestReady",
        "RunEnded",
    ]
    assert "京都" in lines[1]
