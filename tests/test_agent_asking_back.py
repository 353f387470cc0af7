"""What MCP servers ask while an agent's run goes on, and what they give to read: asked of the person, put into the conversation."""

import json

import pytest
from scripted import answers, said

from nb_agent import Agent
from nb_agent.mcp_words import WORDS

SERVER = ["python", "-m", "nb_agent.mcp.lesson_server", "--dir", ".", "--ask"]


@pytest.fixture
def person(monkeypatch):
    """A person who says these things; the questions that they were asked."""

    def speaks(*choices):
        questions, left = [], list(choices)

        def ask(question):
            questions.append(question)
            return left.pop(0) if left else None

        monkeypatch.setattr("nb_agent.views.notebook.by_typing", ask)
        monkeypatch.setattr("nb_agent.views.notebook.somebody", lambda: True)
        return questions

    return speaks


@pytest.fixture
def agents():
    made = []
    yield lambda **settings: made.append(Agent(**settings)) or made[-1]
    for agent in made:
        agent.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_asks_the_person_in_the_middle_of_a_call(monkeypatch, person, agents, era):
    questions = person({"choice": "approve", "text": json.dumps({"nickname": "Ada L."})})
    answers(monkeypatch, said("", ("people__ask_nickname", json.dumps({"user_id": "U-1001"}))), said("done"))
    agent = agents()
    agent.mcp("people", command=SERVER, trusted=True, era=era)
    run = agent.run("Ask Ada for her nickname.", view=False, policy={"*": "go"})
    assert [question["at"] for question in questions] == ["mcp"]
    assert "Ada L." in run.tool_results[0].text
    assert run.text == "done"
    assert set(run.wire["era"]) == {era}


def test_where_nobody_is_there_the_server_is_told_so_and_the_run_goes_on(monkeypatch, agents):
    answers(monkeypatch, said("", ("people__ask_nickname", json.dumps({"user_id": "U-1001"}))), said("done"))
    agent = agents()
    agent.mcp("people", command=SERVER, trusted=True)
    run = agent.run("Ask Ada for her nickname.", view=False, policy={"*": "go"})
    assert (run.text, run.reason) == ("done", "stop")


def test_a_resource_and_a_prompt_are_put_into_the_conversation(monkeypatch, agents):
    sent = answers(monkeypatch, said("read"))
    agent = agents()
    agent.mcp("people", command=SERVER, trusted=True)
    assert "users://schema" in WORDS["resources"](agent, ["people"])
    told = WORDS["read"](agent, ["people", "users://schema"])
    assert "It is in the conversation now" in told
    WORDS["prompt"](agent, ["people", "welcome", "city=Oslo"])
    agent.run("Go on.", view=False)
    assert "Oslo" in json.dumps(sent[0].body["messages"])
    assert "CREATE TABLE users" in json.dumps(sent[0].body["messages"])
