"""A list that grows: what is new is all that is looked at, and what was there before changes nothing in what comes out."""

import copy
import json
import random
import threading

import pytest

from nb_agent.adapters import WIRES
from nb_agent.growing import begun, keep
from nb_agent.messages import Definition, Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from nb_agent.values import Encoded, chunks, encode, from_json, to_json

TOOLS = [Definition("look", "Look.", {"type": "object", "properties": {"n": {"type": "integer"}}})]
PICTURE = Image(data="iVBORw0KGgo=")


def called(*ids):
    return Message("assistant", tuple(ToolCall(known, "look", json.dumps({"n": len(known)})) for known in ids))


def answered(known, *more):
    return Message("tool", (ToolResult(known, "look", (Text(f"seen {known}"), *more)),))


#: Turns that a conversation may be made of, each a function of its number.
TURNS = [
    lambda n: [Message.of("user", f"go {n}")],
    lambda n: [Message("user", (Text(f"see {n}"), PICTURE))],
    lambda n: [Message("user", (Text("hi"),), name="ada")],
    lambda n: [Message.of("assistant", f"said {n} ")],
    lambda n: [Message.of("assistant", " ")],
    lambda n: [Message("assistant", (Thinking("hm", extra={"wire": "anthropic_messages", "signature": "s"}), Text(f"so {n}")))],
    lambda n: [Message("assistant", (Opaque("responses", {"type": "reasoning", "id": f"rs_{n}", "summary": []}), Text("ok")))],
    lambda n: [Message.of("system", f"rule {n}")],
    lambda n: [called(f"c{n}"), answered(f"c{n}")],
    lambda n: [called(f"a{n}", f"b{n}"), answered(f"a{n}", PICTURE), answered(f"b{n}")],
    lambda n: [called("same"), answered("same")],
    lambda n: [called(f"p{n}"), called(f"q{n}"), answered(f"p{n}"), answered(f"q{n}")],
    lambda n: [called(f"o{n}")],
    lambda n: [answered(f"o{n - 1}")],
]


def written(wire, messages):
    return WIRES[wire].request(messages, TOOLS, model="gpt-4.1", stream=True)


def fresh(messages):
    return [from_json(to_json(message)) for message in messages]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(8))
def test_a_request_is_the_same_whether_or_not_others_went_before_it(wire, seed):
    draw, messages, sent = random.Random(seed), [Message.of("user", "begin")], []
    for number in range(60):
        match draw.randrange(8):
            case 0:  # the history is another one from some place on, as after a reply that was cut off, or by hand
                messages = messages[: draw.randint(1, len(messages))]
            case 1:  # or from its beginning on
                messages = [*messages[:1], *messages[draw.randint(1, len(messages)) :]]
            case _:
                messages = [*messages, *draw.choice(TURNS)(number)]
        request = written(wire, messages)
        sent.append((request, copy.deepcopy(request.body)))
        assert request == written(wire, fresh(messages))
        assert json.loads(request.content) == request.body
        assert b"".join(chunks(request.body)) == request.content
    for request, then in sent:
        assert request.body == then


@pytest.mark.parametrize("wire", WIRES)
def test_a_turn_that_was_sent_as_a_whole_can_still_go_on(wire):
    begin = [Message.of("user", "go"), called("a", "b")]
    written(wire, [*begin, Message.of("user", "never mind")])
    longer = [*begin, answered("b"), answered("a")]
    assert written(wire, longer) == written(wire, fresh(longer))


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_that_a_person_changes_changes_no_other(wire):
    messages = [Message.of("user", "go")]
    for number in range(3):
        messages = [*messages, called(f"c{number}"), answered(f"c{number}")]
        body = written(wire, messages).body
        entries = next(value for key, value in body.items() if key in {"messages", "input", "contents"})
        mine = copy.deepcopy(entries)
        mine[0]["role"] = "changed"
        assert b"changed" in encode(mine)
        entries.append({"role": "added"})
        assert b"added" in encode(body)
    assert b"changed" not in written(wire, messages).content
    assert b"added" not in written(wire, messages).content


class Noted(dict):
    """What was worked out for a message, and how often anybody wanted to know."""

    looks = 0

    def __contains__(self, key):
        Noted.looks += 1
        return super().__contains__(key)

    def __getitem__(self, key):
        Noted.looks += 1
        return super().__getitem__(key)

    def get(self, key, default=None):
        Noted.looks += 1
        return super().get(key, default)


@pytest.mark.parametrize("wire", WIRES)
def test_only_messages_that_are_new_are_looked_at(wire):
    def looks_at(rounds):
        """How often messages are looked at for the last of so many requests."""
        messages = [Message.of("user", "go")]
        for number in range(rounds):
            messages += [called(f"c{number}"), answered(f"c{number}")]
            for message in messages[-2:]:
                object.__setattr__(message, "memo", Noted())
            Noted.looks = 0
            written(wire, messages)
        return Noted.looks

    assert 0 < looks_at(60) == looks_at(10)


def test_bytes_that_were_joined_are_not_copied_again():
    entries = [Encoded(content="x" * 2000, n=n) for n in range(400)]
    for end in range(1, 401):
        made = chunks({"messages": entries[:end], "stream": True})
        large = [chunk for chunk in made if len(chunk) >= 65_536]
        assert sum(map(len, made)) - sum(map(len, large)) < 2 * 65_536
        assert len(made) <= 5
        if end == 390:
            before = large
    assert any(chunk is before[0] for chunk in large)


def test_what_is_kept_holds_for_a_list_that_begins_with_the_same_objects():
    one, two, three = (Message.of("user", str(number)) for number in range(3))
    keep("key", [one, two], "made")
    assert begun("key", [one, two]) == (2, "made")
    assert begun("key", [one, two, three]) == (2, "made")
    for other in ([one], [one, three], [one, Message.of("user", "1"), three], [two, one], []):
        assert begun("key", other) == (0, None)
    assert begun("another key", [one, two]) == (0, None)
    keep("key", [], "nothing")


def test_equal_entries_with_other_bytes_are_not_taken_for_each_other():
    first, one, true = Encoded(a=0), Encoded(n=1), Encoded(n=True)
    assert one == true
    assert encode([first, one]) == b'[{"a":0},{"n":1}]'
    assert encode([first, true]) == b'[{"a":0},{"n":true}]'


def test_conversations_that_begin_with_one_message_can_be_written_at_the_same_time():
    first = Message.of("user", "go")
    wrong = []

    def talk(name):
        messages = [first]
        for number in range(60):
            messages = [*messages, called(f"{name}{number}"), answered(f"{name}{number}")]
            body = written("chat_completions", messages).body
            if json.loads(encode(body)) != body or len(body["messages"]) != len(messages):
                wrong.append(name)

    threads = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
