"""html.py: the saved page. What a browser makes of it on paper is in test_views_inspector.py."""

import html
import json
import re
from html.parser import HTMLParser

import pytest
from samples import ANSWER, PROMPT, RESULTS, bodies, failing_events, hostile_events, request, state_of, three_round_events

from nb_agent.events import Delta, RequestReady, RunEnded, RunStarted, ToolDone
from nb_agent.messages import PARTS, Image, Piece, Text, ToolResult
from nb_agent.views.fold import Fold
from nb_agent.views.html import COLOURS, page

VOID = {"img"}


class Reader(HTMLParser):
    """Checks that tags nest, and keeps tags and text."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words, self.blocks = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if "pre" in self.open:
            self.blocks[-1] += data


def seen(state):
    reader = Reader()
    reader.feed(page(state))
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("events", [three_round_events, failing_events, hostile_events, lambda: ()])
def test_tags_nest_and_nothing_can_run_or_be_fetched(events):
    for tag, attributes in seen(state_of(events())).tags:
        assert tag not in {"script", "link", "iframe", "object", "form", "input", "svg", "a"}
        assert not [name for name in attributes if name.startswith("on") or name in {"href", "srcdoc", "action"}]
        assert attributes.get("src", "data:image/").startswith("data:image/")


def test_hostile_text_is_escaped(cases):
    expect, shown = cases["H17"]["expect"], page(state_of(hostile_events()))
    assert not [text for text in expect["forbidden"] if text in shown]
    assert [text for text in expect["must_contain"] if text not in shown] == []
    assert html.escape(cases["H17"]["given"]["tool_result"]) in shown


def test_hostile_text_is_escaped_at_every_leaf_of_the_state():
    mark = "\"'><script>x</script>&amp;"

    def spoil(value, key=None):
        if isinstance(value, dict):
            return {name: spoil(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [spoil(part, key) for part in value]
        return value + mark if isinstance(value, str) and key not in {"state", "reason"} else value

    for events in (three_round_events, failing_events, hostile_events):
        state = spoil(state_of(events()))
        assert {tag for tag, _ in seen(state).tags} <= {
            *("div", "style", "h3", "h4", "p", "b", "code", "pre", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"),
            *("details", "summary", "ul", "ol", "li"),
        }
        assert "<script" not in page(state)


def test_every_request_reply_call_and_result_is_in_the_page():
    state = state_of(three_round_events())
    reader = seen(state)
    blocks, words = [block.strip("\n") for block in reader.blocks], " ".join(reader.words)
    for entry in state["rounds"]:
        assert json.dumps(entry["request"]["change"]["new"], ensure_ascii=False, indent=2) in blocks
        assert json.dumps(entry["reply"]["body"], ensure_ascii=False, indent=2) in blocks
        for call in entry["calls"]:
            assert call["arguments"] in blocks
            assert call["result"]["text"] in blocks
    assert PROMPT in blocks
    assert ANSWER in blocks
    assert set(RESULTS) <= set(blocks)
    assert "messages" in words
    assert "the first 2 of 5 are those of request 1; the rest is new." in words


def test_requests_can_be_put_together_again_from_the_page():
    state = state_of(three_round_events())
    new = [json.loads(block) for block in seen(state).blocks if '"messages"' in block and "finish_reason" not in block]
    joined = [message for part in new for message in part["messages"]]
    assert joined == bodies(state)[-1]["messages"]


def test_a_text_that_begins_with_a_newline_keeps_it():
    state = state_of([RunStarted("\n\n  indented", "m", "w")])
    assert "<pre>\n\n\n  indented</pre>" in page(state)


def test_the_meaning_stands_without_any_style():
    bare = re.sub(r' style="[^"]*"| class="[^"]*"', "", re.sub(r"(?s)<style>.*?</style>", "", page(state_of(three_round_events()))))
    words = html.unescape(re.sub(r"<[^>]+>", " ", bare))
    for said in ("mock model", "Ended: stop", "244 tokens counted", "600 reported", "difference +6", "0.41 s", "tool definitions"):
        assert said in " ".join(words.split()), said


def test_the_token_table_has_each_part_and_the_difference():
    shown = page(state_of(three_round_events()))
    row = re.search(r'<tr><th scope="row">3</th>(.*?)</tr>', shown)[1]
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in row.split("</td>")[:-1]]
    assert cells == ["24", "247", "103", "33", "176", "11", "594", "600, +6 (template)", "64", "0.36 s"]
    assert re.search(r'title="request 3, tool calls 247" style="[^"]*width:41\.58%"', shown)


def test_every_part_has_a_colour():
    assert set(COLOURS) == set(PARTS)


def test_an_estimate_is_called_one():
    state = state_of(three_round_events())
    state["rounds"][0]["request"]["tokens"]["exact"] = False
    assert "(an estimate: this model's tokenizer is not public)" in page(state)
    assert "an estimate" not in page(state_of(three_round_events()))


def test_a_page_without_a_token_count_is_whole():
    state = state_of(three_round_events(), counted=False)
    assert "<h4>Tokens</h4>" not in page(state)
    assert "600 tokens reported" in page(state)


def test_a_failed_call_is_open_and_says_where():
    shown = page(state_of(failing_events()))
    assert "<details open><summary><b>Call</b> <code>weather(town=5)</code> <b>✗</b>" in shown
    assert "failed at “fits schema”: town: 5 is not a string" in shown
    assert "<li>✗ <b>fits schema</b>: <code>town: 5 is not a string</code></li>" in shown
    assert "Traceback (for you; the model does not get it)" in shown


def test_a_reply_that_was_cut_off_shows_what_had_come():
    shown = page(state_of(failing_events()))
    assert "<b>Reply 2</b> cut off" in shown
    assert "<h4>Answer, not whole</h4><pre>\nThe weather in</pre>" in shown
    folding = Fold()
    folding.apply(RequestReady(1, request([])))
    folding.apply(Delta(1, (Piece("call", "find"), Piece("arguments", '{"q": "a'))))
    assert "<b>Reply 1</b> coming" in page(folding.state)
    assert "<pre>\nfind {&quot;q&quot;: &quot;a</pre>" in page(folding.state)


def picture(**image):
    folding = Fold()
    folding.apply(RequestReady(1, request([])))
    folding.apply(ToolDone(1, ToolResult("c", "plot", (Image(**image), Text("a plot")))))
    return page(folding.state)


def test_a_picture_is_shown_from_its_bytes():
    assert '<img alt="picture from the tool" src="data:image/png;base64,iVBORw0KGgo=">' in picture(data="iVBORw0KGgo=")


@pytest.mark.parametrize(
    "image",
    [
        {"url": "https://example.test/spy.png"},
        {"data": 'x" onerror="alert(1)'},
        {"data": "AAAA", "media_type": 'image/png" onerror="alert(1)'},
        {"data": "AAAA", "media_type": "image/svg+xml"},
    ],
)
def test_a_picture_that_would_be_fetched_or_is_no_picture_is_only_named(image):
    shown = picture(**image)
    assert "<img" not in shown
    assert "(not shown)" in shown


def test_size_grows_with_the_run_and_not_with_its_square():
    def size(rounds):
        messages, folding = [], Fold()
        for number in range(1, rounds + 1):
            messages = [*messages, {"role": "user", "content": "x" * 500}]
            folding.apply(RequestReady(number, request(messages)))
        return len(page(folding.state))

    assert size(80) - size(40) == pytest.approx(size(40) - size(0), rel=0.15)


def test_the_page_can_be_saved_whatever_a_model_wrote():
    shown = page(state_of([RunStarted("half a pair: \ud83d, escape: \x1b[31m", "m", "w"), RunEnded("cancelled", ())]))
    shown.encode()
    assert "␛[31m" in shown
    assert "The conversation up to here is kept: the next cell goes on from it." in shown
