"""Stepping: where a run stops, what may be said there, what that changes, and branches that go on from an earlier round."""

import json

import pytest
from scripted import answers, said

from nb_agent import Agent, tool
from nb_agent.errors import ProviderError, SettingError
from nb_agent.events import Changed, RequestReady
from nb_agent.run import Run
from nb_agent.stepping import CALL_FAULTS, CHOICES, Stepper
from nb_agent.views.asking import by_typing


@tool
def read(path: str) -> str:
    """Read a file.

    Args:
        path: which one.
    """
    return f"text of {path}"


@tool(tier="danger")
def remove(path: str) -> str:
    """Remove a file.

    Args:
        path: which one.
    """
    return f"{path} is gone"


def two_rounds(monkeypatch, times=1):
    script = [said("", ("read", '{"path": "a.txt"}')), said("done")]
    return answers(monkeypatch, *script * times)


def stepping(monkeypatch, *script, tools=(read,), **options):
    answers(monkeypatch, *script or [said("", ("read", '{"path": "a.txt"}')), said("done")])
    return Agent(tools=tools).step("go", view=False, **options)


def test_a_stepped_run_stops_before_each_request_before_each_call_and_after_each_result(monkeypatch):
    steps = stepping(monkeypatch)
    stops = []
    while steps.question:
        stops.append((steps.question["at"], steps.question["round"], steps.question["call"]))
        steps.next()
    assert stops == [("request", 0, None), ("call", 0, 0), ("result", 0, 0), ("request", 1, None)]
    assert (steps.run.text, steps.run.reason) == ("done", "stop")
    assert "ended" in repr(steps)


def test_every_choice_that_is_offered_is_one_that_is_explained(monkeypatch):
    steps = stepping(monkeypatch)
    while steps.question:
        assert set(steps.question["choices"]) <= set(CHOICES)
        assert all(choice in repr(steps) for choice in steps.question["choices"])
        steps.next()


def test_running_to_the_next_call_passes_requests_and_results(monkeypatch):
    script = [said("", ("read", '{"path": "a"}')), said("", ("read", '{"path": "b"}')), said("done")]
    steps = stepping(monkeypatch, *script)
    assert [steps.to_call().question["title"] for _ in range(2)] == ['read({"path": "a"})', 'read({"path": "b"})']
    assert steps.to_call().question is None
    assert steps.run.text == "done"


def test_running_on_stops_no_more(monkeypatch):
    assert stepping(monkeypatch).run_on().text == "done"


def test_running_on_still_stops_where_leave_is_needed(monkeypatch):
    steps = stepping(monkeypatch, said("", ("remove", '{"path": "a"}')), said("done"), tools=[remove])
    steps.run_on()
    assert steps.question["asks"]
    assert "next" not in steps.question["choices"]
    assert steps.approve().question is None
    assert steps.run.tool_results[0].text == "a is gone"


def test_an_edited_request_is_the_one_that_goes_out_and_that_is_shown(monkeypatch):
    sent = answers(monkeypatch, said("done"))
    steps = Agent().step("go", view=False)
    body = json.loads(steps.question["edits"])
    body["messages"][-1]["content"] = "go north"
    steps.edit(body)
    assert sent[0].body["messages"][-1]["content"] == "go north"
    assert steps.run.requests == sent
    (shown,) = steps.run.state["rounds"]
    assert "go north" in json.dumps(shown["request"]["change"])
    assert "changed by hand before it went out" in shown["request"]["notices"]


def test_edited_arguments_are_run_and_the_model_is_told(monkeypatch):
    steps = stepping(monkeypatch).next().edit({"path": "b.txt"})
    told = '[a person changed this call before it was made: read({"path": "b.txt"})]'
    assert steps.run.tool_results[0].text == f"text of b.txt\n{told}"
    assert '{"path": "a.txt"}' in str(steps.run_on().messages)
    call = steps.run.state["rounds"][0]["calls"][0]
    assert (call["asked"], call["arguments"]) == ('{"path": "a.txt"}', '{"path": "b.txt"}')


def test_an_edited_result_is_what_the_model_gets_and_the_tools_own_stays_to_be_seen(monkeypatch):
    sent = two_rounds(monkeypatch)
    steps = Agent(tools=[read]).step("go", view=False).next().next()
    steps.edit('"nothing here"').run_on()
    assert sent[1].body["messages"][-1]["content"] == "nothing here"
    assert steps.run.tool_results[0].text == "nothing here"
    call = steps.run.state["rounds"][0]["calls"][0]
    assert (call["given"]["text"], call["result"]["text"]) == ("text of a.txt", "nothing here")


@pytest.mark.parametrize(
    ("stops", "wrong", "words"),
    [
        (0, "{", "the request is no JSON"),
        (0, "[1]", "one JSON object"),
        (1, '{"path": ', "cannot go on like this"),
        (1, '{"path": 4}', "do not fit"),
        (1, '{"way": "b"}', "do not fit"),
    ],
)
def test_what_cannot_go_on_is_refused_in_words_and_the_run_still_waits(monkeypatch, stops, wrong, words):
    steps = stepping(monkeypatch)
    for _ in range(stops):
        steps.next()
    at = steps.question
    with pytest.raises(SettingError, match=words):
        steps.edit(wrong)
    assert steps.question is at
    assert steps.run_on().text == "done"


def test_an_answer_that_is_not_offered_is_refused_with_those_that_are(monkeypatch):
    steps = stepping(monkeypatch)
    with pytest.raises(SettingError, match=r"'approve' is no answer here; there are: next, to_call"):
        steps.approve()
    with pytest.raises(SettingError, match="no fault named 'rain' here; there are: invented_argument"):
        steps.inject("rain")


def test_a_run_that_has_ended_takes_no_more_answers(monkeypatch):
    steps = stepping(monkeypatch)
    steps.stop()
    assert steps.run.reason == "stopped"
    with pytest.raises(SettingError, match="the run has ended"):
        steps.next()


@pytest.mark.parametrize("name", CALL_FAULTS)
def test_a_fault_of_a_call_takes_the_place_of_its_result_and_the_tool_does_not_run(monkeypatch, name):
    ran = []

    @tool
    def look() -> str:
        """Look around."""
        ran.append(1)
        return "all is well"

    steps = stepping(monkeypatch, said("", ("look", "{}")), said("done"), tools=[look]).next()
    steps.inject(name).run_on()
    (result,) = steps.run.tool_results
    assert (ran, result.code) == ([], CALL_FAULTS[name][0])
    assert CALL_FAULTS[name][1] in result.text
    assert steps.run.text == "done"


def test_a_fault_after_a_result_takes_its_place_too(monkeypatch):
    steps = stepping(monkeypatch).next().next().inject("not_found")
    assert steps.run.tool_results[0].code == "tool_error"
    assert "LookupError" in steps.run.tool_results[0].text


def test_a_fault_of_the_server_is_what_the_next_request_meets(monkeypatch):
    steps = Agent(stream=True).step("Tell me about the sea, please.", view=False)
    with pytest.raises(ProviderError, match="API key"):
        steps.inject("bad_key")
    assert (steps.run.reason, steps.question) == ("error", None)


def test_a_fault_that_passes_is_met_by_asking_again(monkeypatch):
    monkeypatch.setattr("nb_agent.retrying.FIRST", 0.001)
    steps = Agent().step("Tell me about the sea, please.", view=False).inject("overload")
    assert steps.run.reason == "stop"
    assert [retry["attempt"] for retry in steps.run.state["rounds"][0]["retries"]] == [1]


def test_the_time_between_two_steps_is_not_the_runs(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    steps = stepping(monkeypatch, stream=False)
    while steps.question:
        now[0] += 3600
        steps.next()
    assert steps.run.reason == "stop"
    assert steps.run.events[-1].seconds == 0


# --------------------------------------------------------------------------------------------------- branches


def test_going_back_makes_a_branch_that_begins_as_the_run_did(monkeypatch):
    asks = said("", ("read", '{"path": "a.txt"}'))
    sent = answers(monkeypatch, asks, asks, said("done"))
    steps = Agent(tools=[read]).step("go", view=False).next().next().next()
    left = steps.run
    assert steps.question["round"] == 1
    steps.back(1)
    assert (steps.question["at"], steps.question["round"]) == ("request", 0)
    assert left.reason == "stopped"
    assert [branch.run for branch in steps.run.branches] == [left]
    steps.run_on()
    assert steps.run.text == "done"
    assert len(sent) == 3  # round 1 twice, and round 2 of the branch: that of the line that was left never went out
    assert [line["from_round"] for line in steps.run.state["branches"]] == [1]


def test_a_branch_keeps_the_rounds_before_it_and_sends_them_again(monkeypatch):
    sent = answers(monkeypatch, said("", ("read", '{"path": "a"}')), said("one"), said("two"))
    agent = Agent(tools=[read])
    run = agent.run("go")
    other = agent.branch(run, 2)
    assert (run.text, other.text) == ("one", "two")
    assert sent[2].body == sent[1].body
    assert other.events[: other.events.index(other.events[-1])][: len(run.events) - 4] == run.events[: len(run.events) - 4]
    assert agent.history == other.messages
    assert [message.role for message in other.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_branch_before_the_calls_of_a_round_asks_the_model_nothing_again(monkeypatch):
    sent = answers(monkeypatch, said("", ("read", '{"path": "a"}')), said("one"), said("two"))
    agent = Agent(tools=[read])
    run = agent.run("go")
    other = agent.branch(run, 1, calls=True, answer=lambda event: None)
    assert len(sent) == 3
    assert other.text == "two"
    assert [result.text for result in other.tool_results] == ["text of a"]
    assert other.usage == run.usage


def test_what_is_answered_in_a_branch_changes_the_run_from_there_on(monkeypatch):
    def change(event):
        if isinstance(event, RequestReady) and event.number == 2:
            return type(event.request)(**{**vars_of(event.request), "body": {**event.request.body, "temperature": 0.5}})
        return None

    sent = answers(monkeypatch, said("", ("read", '{"path": "a"}')), said("one"), said("two"))
    agent = Agent(tools=[read])
    branch = agent.branch(agent.run("go"), 2, answer=change)
    assert sent[2].body["temperature"] == 0.5
    assert [type(event) for event in branch.events].count(Changed) == 1


def vars_of(request):
    return {name: getattr(request, name) for name in ("wire", "path", "stream", "notices")}


def test_a_round_that_a_run_does_not_have_cannot_be_gone_back_to(monkeypatch):
    two_rounds(monkeypatch)
    agent = Agent(tools=[read])
    run = agent.run("go")
    with pytest.raises(SettingError, match="no round 3; it has 2"):
        agent.branch(run, 3)
    with pytest.raises(SettingError, match="round 2 of this run asks for no calls"):
        agent.branch(run, 2, calls=True)
    assert agent.last_run is run


def test_a_text_that_was_cut_off_is_gone_on_with_in_a_branch_too(monkeypatch):
    cut = said("The sea is ")
    cut["choices"][0]["finish_reason"] = "length"
    answers(monkeypatch, cut, said("wide."), said("deep."))
    agent = Agent()
    run = agent.run("go")
    assert run.text == "The sea is wide."
    assert agent.branch(run, 2).text == "The sea is deep."


def test_a_changed_run_is_the_same_when_it_is_read_from_its_file(monkeypatch, tmp_path):
    steps = stepping(monkeypatch)
    body = json.loads(steps.question["edits"])
    steps.edit({**body, "temperature": 0.1}).edit({"path": "b.txt"}).edit("other").run_on()
    steps.run.save(tmp_path / "run.jsonl")
    read_back = Run.load(tmp_path / "run.jsonl")
    assert read_back.events == steps.run.events
    assert read_back.state == steps.run.state


# -------------------------------------------------------------------------------------------- asked while a cell runs


def asked_by(monkeypatch, *typed):
    lines = list(typed)
    monkeypatch.setattr("nb_agent.views.asking._line", lambda asked: lines.pop(0) if lines else None)
    return lines


def test_a_person_at_a_terminal_steps_with_letters(monkeypatch):
    two_rounds(monkeypatch)
    left = asked_by(monkeypatch, "n", "", "e", '{"path": "b"}', "what?", "n", "g")
    run = Agent(tools=[read]).run("go", step=True, view=False)
    assert left == []
    assert run.tool_results[0].text.startswith("text of b")
    assert run.reason == "stop"


def test_what_was_wrong_is_told_before_it_is_asked_again(monkeypatch):
    two_rounds(monkeypatch)
    questions = []
    said_then = iter([{"choice": "next"}, {"choice": "next", "text": "{"}, {"choice": "run_on"}])
    monkeypatch.setattr("nb_agent.views.notebook.by_typing", lambda question: questions.append(question) or next(said_then))
    run = Agent(tools=[read]).run("go", step=True, view=False)
    assert [bool(question["problem"]) for question in questions] == [False, False, True]
    assert run.text == "done"


def test_going_back_while_a_cell_runs_goes_on_as_a_branch_in_the_same_cell(monkeypatch):
    asks = said("", ("read", '{"path": "a.txt"}'))
    answers(monkeypatch, asks, asks, said("done"))
    asked_by(monkeypatch, "n", "n", "n", "b 1", "g")
    agent = Agent(tools=[read])
    run = agent.run("go", step=True, view=False)
    assert run.text == "done"
    assert [branch.run.reason for branch in run.branches] == ["stopped"]
    assert agent.last_run is run


def test_where_nobody_can_be_asked_a_stepped_run_goes_on_by_itself(monkeypatch):
    two_rounds(monkeypatch)
    asked_by(monkeypatch)
    assert Agent(tools=[read]).run("go", step=True, view=False).text == "done"


def test_a_person_may_inject_a_fault_by_typing_its_name(monkeypatch):
    two_rounds(monkeypatch)
    asked_by(monkeypatch, "c", "i", "times_out", "g")
    assert Agent(tools=[read]).run("go", step=True, view=False).tool_results[0].code == "tool_timeout"


def test_a_reason_after_reject_reaches_the_model(monkeypatch):
    steps = stepping(monkeypatch).next().reject("not this file")
    assert "the person said: not this file" in steps.run.tool_results[0].text


def test_long_bodies_are_shortened_where_they_are_typed_about(monkeypatch):
    shown = []
    monkeypatch.setattr("nb_agent.views.asking._line", shown.append)
    question = {"at": "request", "title": "t", "asks": "", "problem": "", "edits": "x" * 100_000, "choices": ["next"], "faults": []}
    assert by_typing(question) is None
    assert len(shown[0]) < 3_000
    assert "100,000 characters in all" in shown[0]


def test_leave_for_the_rest_of_a_run_is_remembered_by_name():
    assert Stepper().default(RequestReady(1, None)) is None
