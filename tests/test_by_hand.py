"""You are the model: what a person writes is read like the answer of a server, and fails like one."""

import json

import pytest

from nb_agent import Agent, tool
from nb_agent.adapters import WIRES
from nb_agent.errors import ProviderError


@tool
def weigh(thing: str) -> str:
    """Weigh a thing.

    Args:
        thing: what.
    """
    return f"{thing}: 4 kg"


@pytest.fixture
def written(monkeypatch):
    """Writes these answers; the questions that were asked."""

    def write(*texts):
        questions, left = [], list(texts)

        def answer(question):
            questions.append(question)
            return {"choice": "next", "text": left.pop(0)} if left else None

        monkeypatch.setattr("nb_agent.views.notebook.by_typing", answer)
        return questions

    return write


CALL = {"id": "c1", "type": "function", "function": {"name": "weigh", "arguments": '{"thing": "a cat"}'}}


def test_a_person_asks_for_a_call_and_then_answers(written):
    questions = written(
        json.dumps({"role": "assistant", "content": None, "tool_calls": [CALL]}),
        json.dumps({"role": "assistant", "content": "A cat weighs 4 kg."}),
    )
    run = Agent("you", tools=[weigh]).run("How heavy is a cat?")
    assert (run.text, run.reason) == ("A cat weighs 4 kg.", "stop")
    assert [result.text for result in run.tool_results] == ["a cat: 4 kg"]
    assert [(question["at"], question["round"]) for question in questions] == [("model", 0), ("model", 1)]
    assert '"name": "weigh"' in questions[0]["title"]


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_offered_to_begin_with_is_an_answer_in_every_wire_format(written, wire):
    written(None, "")
    assert Agent("you", wire=wire).run("hello").text == "Write the answer here."


def test_json_that_is_not_whole_is_asked_for_again_as_from_a_server_and_then_fails(written, monkeypatch):
    monkeypatch.setattr("nb_agent.exchange._PAUSE", 0.001)
    questions = written('{"role": "assistant", "con', "nonsense", '{"choices": []')
    with pytest.raises(ProviderError):
        Agent("you").run("hello")
    assert len(questions) == 3


def test_arguments_that_do_not_fit_come_back_to_the_person_as_a_result(written):
    wrong = {**CALL, "function": {"name": "weigh", "arguments": '{"weight": 1}'}}
    written(json.dumps({"role": "assistant", "tool_calls": [wrong]}), json.dumps({"role": "assistant", "content": "sorry"}))
    run = Agent("you", tools=[weigh]).run("go")
    assert run.tool_results[0].code == "invalid_arguments"
    assert run.text == "sorry"


def test_the_time_in_which_a_person_writes_is_not_the_runs(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slowly(question):
        now[0] += 3600
        return {"choice": "next", "text": '{"role": "assistant", "content": "late"}'}

    monkeypatch.setattr("nb_agent.views.notebook.by_typing", slowly)
    assert Agent("you").run("hello").text == "late"


def test_where_nobody_can_write_the_run_says_so(written):
    written()
    with pytest.raises(ProviderError, match="nobody is here to write the answer of the model 'you'"):
        Agent("you").run("hello")
