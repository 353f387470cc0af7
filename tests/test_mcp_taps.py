"""What goes over the wire to servers: kept, tied to the call that caused it, and shown as JSON, a frame and HTML."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from nb_agent.guards.repeats import called_with
from nb_agent.mcp import Hub
from nb_agent.mcp.target import Target, Wishes
from nb_agent.mcp.wirelog import WireLog
from nb_agent.views import taps

LESSON = [sys.executable, "-m", "nb_agent.mcp.lesson_server"]


def connection(**given):
    return SimpleNamespace(name="s", era="legacy", target=Target.of(["srv"], **given), wishes=Wishes(), starts=1)


@pytest.fixture
def wire():
    """A log that watches a connection, and what the connection is told by a wiretap."""
    watched, log = connection(env={"KEY": "s3cret"}), WireLog(clock=iter(range(1000)).__next__)
    log.watch(watched)

    def went(way, message, key=""):
        with called_with(key):
            for watcher in watched.wishes.wire:
                watcher(way, {"jsonrpc": "2.0", **message})

    return SimpleNamespace(log=log, went=went, connection=watched)


def asked(number, **params):
    return {"id": number, "method": "tools/call", "params": params}


def causes(wire):
    return [entry["call_id"] for entry in wire.log.entries()]


@pytest.fixture(scope="module")
def eras(tmp_path_factory):
    """What the same call of the lesson server looks like in both eras."""
    place, logs = tmp_path_factory.mktemp("lesson"), {}
    hub = Hub()
    for era in ("legacy", "modern"):
        opened = hub.connect(era, command=[*LESSON, "--dir", str(place)], era=era)
        logs[era] = WireLog()
        leave = logs[era].watch(opened)
        with called_with("key-1"):
            opened.call("get_user", {"user_id": "U-1001"})
        leave()
        opened.call("get_user", {"user_id": "U-1002"})
    hub.close_all()
    entries = {era: log.entries({"key-1": "call_7"}) for era, log in logs.items()}
    return {era: [entry for entry in kept if entry["call_id"]] for era, kept in entries.items()}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_real_call_is_a_request_and_an_answer_that_know_their_cause(eras, era):
    request, answer = eras[era]
    assert (request["direction"], answer["direction"]) == ("sent", "received")
    assert request["method"] == answer["method"] == "tools/call"
    assert request["call_id"] == answer["call_id"] == "call_7"
    assert request["era"] == answer["era"] == era
    assert request["id"] == answer["id"]
    assert 0 < answer["seconds"] < 20
    assert request["body"]["params"]["arguments"] == {"user_id": "U-1001"}
    assert "Ada Lindqvist" in answer["body"]["result"]["content"][0]["text"]


def test_calls_from_several_threads_keep_their_own_causes(tmp_path):
    hub, log = Hub(), WireLog()
    opened = hub.connect("s", command=[*LESSON, "--dir", str(tmp_path)])
    log.watch(opened)

    def call(number):
        with called_with(f"key-{number}"):
            opened.call("get_user", {"user_id": f"U-100{number}"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(1, 9)))
    hub.close_all()
    sent = {entry["id"]: entry["call_id"] for entry in log.entries() if entry["direction"] == "sent"}
    received = {entry["id"]: entry["call_id"] for entry in log.entries() if entry["direction"] == "received"}
    assert sent == received
    assert sorted(sent.values()) == [f"key-{number}" for number in range(1, 9)]


def test_the_handshake_is_kept_and_belongs_to_no_call(tmp_path):
    hub, log = Hub(), WireLog()
    opened = hub.connect("s", command=[*LESSON, "--dir", str(tmp_path)])
    log.watch(opened)
    opened.close()
    opened.open()
    hub.close_all()
    assert [entry["method"] for entry in log.entries()][:3] == ["initialize", "initialize", "notifications/initialized"]
    assert {entry["call_id"] for entry in log.entries()} == {""}
    assert log.entries()[0]["era"] == "legacy"


def test_a_question_of_the_server_and_its_answer_belong_to_the_call_that_is_open(wire):
    wire.went("sent", asked(1), key="a")
    wire.went("received", {"id": 1, "method": "elicitation/create", "params": {}})
    wire.went("sent", {"id": 1, "result": {"action": "decline"}})
    wire.went("received", {"id": 1, "result": {}})
    assert causes(wire) == ["a", "a", "a", "a"]
    assert [entry["method"] for entry in wire.log.entries()] == [
        "tools/call",
        "elicitation/create",
        "elicitation/create",
        "tools/call",
    ]


def test_of_several_open_calls_progress_names_its_own_and_other_notices_none(wire):
    wire.went("sent", asked(1), key="a")
    wire.went("sent", asked(2), key="b")
    wire.went("received", {"method": "notifications/progress", "params": {"progressToken": 2, "progress": 1}})
    wire.went("received", {"method": "notifications/message", "params": {"data": "?"}})
    assert causes(wire) == ["a", "b", "b", ""]


def test_a_call_that_was_cancelled_is_open_no_longer(wire):
    wire.went("sent", asked(1), key="a")
    wire.went("sent", {"method": "notifications/cancelled", "params": {"requestId": 1}})
    wire.went("received", {"method": "notifications/message", "params": {"data": "late"}})
    assert causes(wire) == ["a", "a", ""]


def test_a_request_that_died_with_its_server_is_forgotten_when_the_next_begins(wire):
    wire.went("sent", asked(1), key="a")
    wire.connection.starts += 1
    wire.went("sent", {"id": 0, "method": "initialize", "params": {}})
    wire.went("received", {"method": "notifications/message", "params": {"data": "hello"}})
    assert causes(wire) == ["a", "", ""]


def test_what_a_line_sends_and_hears_for_itself_belongs_to_no_call(wire):
    wire.went("sent", asked(1), key="a")
    wire.went("sent", {"id": 2, "method": "tools/list"}, key="a")
    meta = {"io.modelcontextprotocol/subscriptionId": "listen-1"}
    wire.went("received", {"method": "notifications/tools/list_changed", "params": {"_meta": meta}})
    wire.went("received", {"id": 2, "result": {}})
    assert causes(wire) == ["a", "", "", ""]


def test_an_answer_to_nothing_and_odd_tokens_are_kept(wire):
    wire.went("received", {"id": 99, "result": {}})
    wire.went("received", {"method": "notifications/progress", "params": {"progressToken": [1]}})
    wire.went("received", {"method": "notifications/progress", "params": None})
    first, *_ = wire.log.entries()
    assert (first["method"], first["seconds"]) == ("", None)
    assert len(taps.page(wire.log.entries())) > 100


def test_secrets_that_the_server_was_given_are_hidden_and_bytes_are_those_of_the_wire(wire):
    wire.went("sent", asked(1, arguments={"text": ["key s3cret", "ö"]}))
    (entry,) = wire.log.entries()
    assert entry["body"]["params"]["arguments"] == {"text": ["key ***", "ö"]}
    assert entry["bytes"] == len(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"text":["key s3cret","ö"]}}}'.encode()
    )


def test_a_huge_body_is_told_of_and_not_kept(wire):
    wire.went("received", {"id": 1, "result": {"text": "x" * 300_000}})
    (entry,) = wire.log.entries()
    assert entry["body"] is None
    assert entry["bytes"] > 300_000
    assert "too large to be kept" in taps.page([entry])


def test_the_oldest_messages_go_first_and_are_counted():
    watched, log = connection(), WireLog(most=3)
    log.watch(watched)
    for number in range(5):
        watched.wishes.wire[0]("sent", asked(number))
    assert [entry["id"] for entry in log.entries()] == [2, 3, 4]
    assert log.dropped == 2
    assert "2 earlier messages are not kept" in taps.page(log.entries(), dropped=log.dropped)
    log.clear()
    assert (log.entries(), log.dropped) == ([], 0)


def test_the_frame_has_the_columns_that_it_promises(wire):
    wire.went("sent", asked(1), key="a")
    wire.went("received", {"id": 1, "result": {"ö": 1}})
    table = taps.frame(wire.log.entries())
    assert list(table.columns) == re.findall(r"``(\w+)``", taps.frame.__doc__)
    assert table["direction"].tolist() == ["sent", "received"]
    assert table["bytes"].dtype == "int64"
    assert table["body"][1] == '{"jsonrpc": "2.0", "id": 1, "result": {"ö": 1}}'
    assert list(taps.frame([]).columns) == list(table.columns)


class Tags(HTMLParser):
    """The tags of a page and their attributes, and whether each is closed."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.open = set(), []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.add((tag, *(name for name, _ in attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_what_a_server_writes_cannot_become_part_of_the_page(wire):
    evil = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\ud800"
    wire.went("received", {"id": evil, "method": evil, "params": {evil: evil}})
    wire.connection.name = evil
    wire.went("received", {"id": 1, "error": {"code": 1, "message": evil}}, key=evil)
    entries = wire.log.entries()
    page = taps.beside(entries, entries, titles=(evil, evil)) + taps.page(entries, title=evil)
    assert {tag for tag, *_ in Tags(page).seen}.isdisjoint({"script", "img", "a", "link", "iframe"})
    assert not [name for _, *names in Tags(page).seen for name in names if name.startswith("on")]
    assert "\x1b" not in page
    page.encode("utf-8")


def test_the_same_call_in_both_eras_stands_side_by_side(eras):
    page = taps.beside(eras["legacy"], eras["modern"])
    assert Tags(page).open == []
    assert re.findall(r"<h4>(.*?)</h4>", page) == ["legacy", "modern"]
    assert page.count("1 sent (") == page.count("1 received (") == 2
    assert page.count("call_7") == 4
    assert "io.modelcontextprotocol/protocolVersion" in page.split("<h4>modern</h4>")[1]
    assert "io.modelcontextprotocol/protocolVersion" not in page.split("<h4>modern</h4>")[0]


def test_a_round_in_which_the_server_asks_back_is_marked(wire):
    wire.went("sent", asked(1))
    wire.went("received", {"id": 1, "result": {"resultType": "input_required", "inputRequests": {}}})
    assert "(asks back)" in taps.page(wire.log.entries())


def test_nothing_is_said_to_be_nothing():
    assert "No message went over the wire" in taps.page([])
    assert "nothing was said" in taps.beside([], [])
