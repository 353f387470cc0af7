"""What servers ask back: words, a model's answer, directories; answered by a person that a test plays, in both eras."""

import io
import json
import queue
import sys
import threading
from typing import Annotated

import pytest
from fetched import node_modules
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.types import ImageContent, SamplingMessage, TextContent
from pydantic import BaseModel, Field

from nb_agent import background
from nb_agent.errors import ToolError
from nb_agent.mcp import Hub
from nb_agent.mcp.asking import attach
from nb_agent.mcp.inbox import Inbox
from nb_agent.messages import Image, Message, Reply
from nb_agent.views.asking import by_typing


class Trip(BaseModel):
    town: str = Field(description="Where to?", min_length=2)
    days: int = 3


def which_trip():
    return Elicit("Which trip?\x1b[2J", Trip)


def poem():
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="Write a poem"))], max_tokens=50)


def picture():
    return Sample(
        [SamplingMessage(role="user", content=ImageContent(type="image", data="iVBORw0K", mimeType="image/png"))], max_tokens=5
    )


def asker():
    """Asks by what works in both eras."""
    server = MCPServer("asker")

    @server.tool()
    def book(trip: Annotated[Trip, Resolve(which_trip)]) -> str:
        return f"booked {trip.town} for {trip.days}"

    @server.tool()
    def rhyme(poem: Annotated[object, Resolve(poem)]) -> str:
        return f"{poem.model}: {poem.content.text}"

    @server.tool()
    def look(seen: Annotated[object, Resolve(picture)]) -> str:
        return seen.content.text

    @server.tool()
    def places(found: Annotated[object, Resolve(ListRoots)]) -> str:
        return " ".join(str(root.uri) for root in found.roots)

    @server.tool()
    async def visit(ctx: Context) -> str:
        result = await ctx.elicit_url("Please sign in.", "https://пример.example/login?x=1", "e1")
        return result.action

    @server.tool()
    async def known(ctx: Context) -> str:
        able = ctx.session.client_params.capabilities.model_dump(exclude_none=True)
        return " ".join(sorted(able))

    @server.tool()
    async def form(schema: dict, ctx: Context) -> str:
        return (await ctx.session.elicit_form("Well?", schema)).action

    @server.tool()
    async def lure(ctx: Context) -> str:
        return (await ctx.elicit_url("Look!", "file:///etc/passwd", "e2")).action

    return server


class Played:
    """A person who says these things, one after the other, and then nothing."""

    def __init__(self, *words):
        self.words = list(words)
        self.asked = []
        self.threads = set()

    def __call__(self, question):
        self.asked.append(question)
        self.threads.add(threading.current_thread())
        return self.words.pop(0) if self.words else None


YES, NO = {"choice": "approve"}, {"choice": "reject", "reason": "not now"}


def edited(**fields):
    return {"choice": "approve", "text": json.dumps(fields)}


def sung(messages, *, system, max_tokens):
    assert max_tokens > 0
    return Reply(Message.of("assistant", f"on {messages[-1].text}"), "stop", model="bard-1")


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close_all()


@pytest.fixture
def inbox():
    return Inbox()


@pytest.fixture(params=["legacy", "modern"])
def connection(hub, inbox, request):
    return told(hub.connect("s", server=asker(), era=request.param), ask=inbox.ask, answer=sung, model="bard")


def told(connection, **who):
    """The same connection, started again by its next call and then knowing who answers."""
    attach(connection, who.pop("ask"), **who)
    connection.close()
    return connection


def call(connection, inbox, person, tool, **arguments):
    with inbox.open(person):
        result = inbox.during(lambda: connection.call(tool, arguments))
    return "".join(block.get("text", "") for block in result["content"]), result.get("isError", False)


def test_a_form_is_filled_in_by_the_person_in_the_thread_of_the_cell(connection, inbox):
    person = Played(edited(town="Oslo", days=5))
    assert call(connection, inbox, person, "book") == ("booked Oslo for 5", False)
    assert person.threads == {threading.current_thread()}
    (question,) = person.asked
    assert question["title"] == "the MCP server 's'"
    assert question["asks"].split("\n")[0] == "it wants to know: Which trip? [2J"  # the escape is gone
    assert "    town (string, needed): Where to?" in question["asks"]
    assert json.loads(question["edits"]) == {"town": None, "days": 3}


def test_a_form_that_does_not_fit_its_schema_is_asked_for_again(connection, inbox):
    person = Played(YES, edited(town="O"), {"choice": "approve", "text": "Oslo"}, edited(town="Oslo", card=1), edited(town="Oslo"))
    assert call(connection, inbox, person, "book") == ("booked Oslo for 3", False)
    problems = [question["problem"] for question in person.asked]
    assert problems[:2] == ["", "argument 'town' is missing"]
    assert "argument 'town': 'O' is too short" in problems[2]
    assert problems[3].startswith("that is no JSON")
    assert problems[4].startswith("argument 'card' is not known")


@pytest.mark.parametrize("person", [Played(NO), Played(), None], ids=["said no", "says nothing", "nobody is there"])
def test_without_a_yes_the_server_gets_nothing(connection, inbox, person):
    text, failed = call(connection, inbox, person, "book")
    assert failed
    assert "booked" not in text


def test_a_model_is_asked_only_with_leave_and_its_answer_is_seen_before_it_goes_out(connection, inbox):
    person = Played(YES, YES)
    assert call(connection, inbox, person, "rhyme") == ("bard-1: on Write a poem", False)
    first, second = person.asked
    assert first["asks"] == "it wants an answer of at most 50 tokens from bard (sampling is retired since 2026-07-28)"
    assert json.loads(first["edits"])["messages"] == [{"role": "user", "text": "Write a poem"}]
    assert json.loads(second["edits"]) == {"answer": "on Write a poem"}


def test_what_a_model_is_asked_and_what_it_answered_can_be_changed(connection, inbox):
    person = Played(edited(messages=[{"role": "user", "text": "Hum"}]), edited(answer="hm"))
    assert call(connection, inbox, person, "rhyme") == ("bard-1: hm", False)
    assert json.loads(person.asked[1]["edits"]) == {"answer": "on Hum"}


def test_a_picture_in_what_a_model_is_asked_is_named_to_the_person_and_reaches_the_model(hub, inbox):
    seen = []

    def seeing(messages, **_):
        seen.extend(messages)
        return Reply(Message.of("assistant", "a dot"), "stop")

    connection = told(hub.connect("s", server=asker()), ask=inbox.ask, answer=seeing)
    person = Played(YES, YES)
    assert call(connection, inbox, person, "look") == ("a dot", False)
    assert json.loads(person.asked[0]["edits"])["messages"] == [{"role": "user", "text": "", "pictures": 1}]
    assert seen == [Message("user", (Image("iVBORw0K", "image/png"),))]


@pytest.mark.parametrize("words", [[NO], [YES, NO], []])
def test_a_refused_sampling_is_an_error_for_the_server(connection, inbox, words):
    with pytest.raises(ToolError, match="the person refused"):
        call(connection, inbox, Played(*words), "rhyme")


def test_a_model_that_fails_fails_the_sampling_and_its_words_stay_here(hub, inbox):
    def broken(*_, **__):
        raise OSError("key sk-123 is wrong")

    connection = told(hub.connect("s", server=asker()), ask=inbox.ask, answer=broken)
    with pytest.raises(ToolError, match=r"no answer came from the model: OSError$"):
        call(connection, inbox, Played(YES), "rhyme")


def test_an_address_is_shown_with_its_true_host_and_one_that_is_none_of_the_web_is_refused(hub, inbox):
    connection = told(hub.connect("s", server=asker(), era="legacy"), ask=inbox.ask)
    person = Played(YES)
    assert call(connection, inbox, person, "visit") == ("accept", False)
    assert person.asked[0]["url"] == "https://пример.example/login?x=1"
    assert "(at xn--e1afmkfd.example): Please sign in. Nothing is opened for you" in person.asked[0]["asks"]
    assert person.asked[0]["edits"] is None
    unasked = Played(YES)
    assert call(connection, inbox, unasked, "lure") == ("decline", False)
    assert unasked.asked == []
    assert "file:///etc/passwd" in connection.notes[-1]


def test_the_clock_of_a_call_stands_still_while_a_person_thinks(connection, inbox):
    ends = []

    def thinking(_):
        ends.extend(deadline.when() for deadline in connection.wishes.deadlines)
        return edited(town="Oslo")

    assert call(connection, inbox, thinking, "book") == ("booked Oslo for 3", False)
    assert ends == [None]
    assert connection.wishes.deadlines == set()


def test_the_question_can_be_typed(connection, inbox, monkeypatch):
    typed = iter(["y", "e", json.dumps({"town": "Lima"})])
    told = []
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda asked: (told.append(asked), next(typed))[1])
    assert call(connection, inbox, by_typing, "book") == ("booked Lima for 3", False)
    assert told[0].startswith("the MCP server 's' needs your leave: it wants to know: Which trip?")
    assert told[1].startswith("argument 'town' is missing")


def test_an_interrupt_while_a_person_is_asked_reaches_the_cell(connection, inbox):
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(connection, inbox, interrupted, "book")
    assert call(connection, inbox, Played(edited(town="Oslo")), "book")[0] == "booked Oslo for 3"


def test_a_question_that_comes_when_the_person_has_just_left_is_not_waited_for(inbox, monkeypatch):
    with inbox.open(Played(YES)):
        monkeypatch.setattr(inbox, "_waiting", LateQueue(inbox))
        assert background.run(inbox.ask({}), timeout=5) is None


class LateQueue(queue.SimpleQueue):
    """The person leaves while something is put into it."""

    def __init__(self, inbox):
        self._inbox = inbox

    def put(self, item):
        self._inbox._asking = None
        super().put(item)


def test_the_server_is_told_the_roots_that_were_given(hub, inbox, tmp_path):
    connection = told(hub.connect("s", server=asker()), ask=None, roots=[tmp_path])
    assert call(connection, inbox, None, "places") == (tmp_path.as_uri(), False)


def test_what_nobody_can_answer_is_not_announced(hub, inbox):
    connection = hub.connect("s", server=asker(), era="legacy")
    for ask, answer, kinds in [(None, sung, ""), (inbox.ask, None, "elicitation"), (inbox.ask, sung, "elicitation sampling")]:
        told(connection, ask=ask, answer=answer)
        assert call(connection, inbox, None, "known") == (kinds, False)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"n": {"type": "no such"}}},
        {"type": "object", "properties": {"n": {"type": "object"}}},
        {"type": "object", "properties": {"n": True}},
    ],
)
def test_a_form_that_cannot_be_checked_is_not_put_to_anyone(hub, inbox, schema):
    connection = told(hub.connect("s", server=asker(), era="legacy"), ask=inbox.ask)
    person = Played(YES)
    assert call(connection, inbox, person, "form", schema=schema) == ("decline", False)
    assert person.asked == []
    assert connection.notes[-1] == "it asked with a form that is none, and was refused: Well?"


def test_the_lesson_server_asks_a_person(hub, inbox):
    connection = hub.connect("people", command=[sys.executable, "-m", "nb_agent.mcp.lesson_server", "--ask"])
    told(connection, ask=inbox.ask)
    person = Played(edited(nickname="Ady"))
    assert json.loads(call(connection, inbox, person, "ask_nickname", user_id="U-1001")[0])["nickname"] == "Ady"


def test_the_reference_server_asks_for_words_for_an_answer_and_reads_roots(hub, inbox, tmp_path):
    there = node_modules("mcp", "@modelcontextprotocol/server-memory") / "@modelcontextprotocol" / "server-everything"
    connection = hub.connect("e", command=["node", str(there / "dist" / "index.js"), "stdio"])
    told(connection, ask=inbox.ask, answer=sung, roots=[tmp_path])
    connection.open()
    text, failed = call(connection, inbox, Played(YES, YES), "trigger-sampling-request", prompt="Say hi", maxTokens=20)
    assert (failed, "bard-1" in text) == (False, True)
    person = Played(edited(name="Ada"), NO)
    text, failed = call(connection, inbox, person, "trigger-elicitation-request")
    assert "Ada" in text
    assert tmp_path.name in call(connection, inbox, None, "get-roots-list")[0]
