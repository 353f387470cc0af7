"""Compaction: where a history is cut, what the strategies leave, and whole runs in windows that are too small for them."""

import contextlib
import json
import random

import pytest
from samples import state_of

from nb_agent import Agent, Run, mock, tool
from nb_agent.adapters import WIRES
from nb_agent.compaction import (
    DEFAULT,
    STRATEGIES,
    Fitting,
    Room,
    chosen,
    drop_turns,
    keep_last,
    stub_newest,
    stub_results,
)
from nb_agent.compaction.places import fault, units, went
from nb_agent.compaction.strategies import weigh
from nb_agent.errors import ProviderError, SettingError
from nb_agent.events import Compacted, ReplyDone, RequestReady, RunEnded, RunStarted, Stop
from nb_agent.guards.untrusted import fenced
from nb_agent.messages import Image, Message, Text, ToolCall, ToolResult
from nb_agent.mock import respond
from nb_agent.mock.models import Model
from nb_agent.mock.plans import Call, Plan
from nb_agent.run import counted
from nb_agent.values import dumps, from_json, to_json
from nb_agent.views.html import page
from nb_agent.windows import limit_in

S, USER = Message.of("system", "S"), Message.of("user", "the last question")


def calls(*ids, name="f"):
    return Message("assistant", tuple(ToolCall(i, name, '{"n":1}') for i in ids))


def result(call_id, text="r", name="f", code=None):
    return Message("tool", (ToolResult(call_id, name, (Text(text),), code),))


def of_wire(entry):
    if entry["role"] == "tool":
        return result(entry["tool_call_id"], entry["content"])
    asked = [ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in entry.get("tool_calls", [])]
    return Message(entry["role"], (*([Text(entry["content"])] if entry["content"] else []), *asked))


def of_words(line):
    role, name, *ids = line.replace("(calls ", "").replace(")", "").replace(",", "").replace("(call ", "").split()
    if role == "tool":
        return result(name)
    return calls(*ids) if ids else Message.of(role, name)


def is_valid(before, after):
    """What every provider asks for, and what must never be lost."""
    roles = [message.role for message in after if message.role not in {"system", "developer"}]
    open_calls = []
    for message in after:
        if message.role == "tool":
            open_calls.remove(message.tool_call_id)  # ValueError: no call before it
        else:
            assert open_calls == []
            open_calls = [call.id for call in message.tool_calls]
    assert open_calls == []
    assert roles[0] == "user"
    standing = [message for message in before if message.role in {"system", "developer"}]
    assert [message for message in after if message.role in {"system", "developer"}] == standing
    assert [message for message in before if message.role == "user"][-1] in after
    return True


# ------------------------------------------------------------------------------------------------- keeping the last few


def test_trimming_moves_the_cut_so_that_no_result_stands_without_its_call(cases):
    history = [of_wire(entry) for entry in cases["D03"]["given"]["history"]]
    kept = keep_last(history, 3)
    assert is_valid(history, kept)
    assert [message.text for message in kept if message.role == "user"][-1] == "two"
    assert len(kept) <= 1 + 1 + 3  # system, the note, and three


@pytest.mark.parametrize("count", range(12))
def test_for_every_number_the_cut_is_safe_and_one_note_says_what_went(count, cases):
    history = [of_words(line) for line in cases["G11"]["given"]["history"]]
    kept = keep_last(history, count)
    assert is_valid(history, kept)
    assert (kept[0], kept[-1]) == (history[0], history[-1])
    assert keep_last(kept, count) == kept
    if count >= 10:
        assert kept == history
    else:
        assert kept[1].text.startswith(
            f"[{len(history) - len(kept) + 1} earlier messages were left out to save room; calls in them: f "
        )
        assert sum("left out" in message.text for message in kept) == 1
    for wire in ("chat_completions", "anthropic_messages"):
        request = WIRES[wire].request(kept, (), model="mock")
        assert mock.answer(request.path, request.content).status == 200


def test_the_last_question_stays_where_the_limit_is_nothing():
    history = [S, Message.of("user", "q"), calls("a"), result("a"), calls("b"), result("b")]
    kept = keep_last(history, 0)
    assert [message.role for message in kept] == ["system", "user", "user", "assistant", "tool"]
    assert kept[1].text == "[2 earlier messages were left out to save room; calls in them: f ×1]"


def test_a_note_adds_up_what_went_before_and_counts_the_calls_by_tool():
    history = [Message.of("user", "one"), calls("a", "b"), result("a"), result("b"), calls("c", name="g"), result("c"), USER]
    once = keep_last([*history, calls("d"), result("d"), calls("e"), result("e")], 3)
    assert once[0].text == "[8 earlier messages were left out to save room; calls in them: f ×3, g ×1]"
    twice = keep_last([*once, calls("x"), result("x")], 3)
    assert twice[0].text == "[10 earlier messages were left out to save room; calls in them: f ×4, g ×1]"


def test_units_keep_a_call_together_with_all_its_results():
    history = [S, Message.of("user", "q"), calls("a", "b"), result("a"), result("b"), Message.of("assistant", "done")]
    assert [len(unit) for unit in units(history)] == [1, 1, 3, 1]


# ------------------------------------------------------------------------------------------------- the strategies


def long(lines=40):
    return "\n".join(f"line {n}: the river is {n} metres wide" for n in range(lines))


def test_a_stub_says_what_was_there():
    history = [USER, calls("a"), result("a", long(), "read_file"), calls("b"), result("b", long())]
    made = stub_results(history, Room(10_000))
    assert made[2].text == (
        "[the result of read_file was left out to save room: 1,459 characters, 479 tokens; "
        "it began: line 0: the river is 0 metres wide]"
    )
    assert made[2].tool_call_id == "a"
    assert [one is other for one, other in zip(made, history, strict=True)] == [True, True, False, True, True]


@pytest.mark.parametrize(
    "kept",
    [result("a", "short"), result("a", dumps({"success": False, "error": long()}), code="tool_failed")],
    ids=["short", "failed"],
)
def test_short_results_and_those_of_failed_calls_stay(kept):
    history = [USER, calls("a"), kept, calls("b"), result("b", long())]
    assert stub_results(history, Room(10_000)) == history


def test_results_that_the_model_has_not_seen_stay_until_nothing_else_helps():
    history = [USER, calls("a", "b"), result("a", long()), result("b", long())]
    assert stub_results(history, Room(10_000)) == history
    made = stub_newest(history, Room(10_000, least=100))
    assert [one is other for one, other in zip(made, history, strict=True)] == [True, True, False, True]


def test_what_strangers_wrote_is_not_quoted_outside_of_its_fence():
    history = [USER, calls("a"), result("a", fenced("Do as I say. " * 60, "web")), calls("b"), result("b")]
    stub = stub_results(history, Room(10_000))[2].text
    assert stub == "[the result of f was left out to save room: 780 characters, 301 tokens]"


def test_pictures_of_a_result_go_with_it_and_are_told():
    shown = Message("tool", (ToolResult("a", "plot", (Text("a plot"), Image("iVBO"), Image("iVBO"))),))
    stub = stub_results([USER, calls("a"), shown, calls("b"), result("b")], Room(10_000))[2]
    assert stub.text == "[the result of plot was left out to save room: 6 characters, 2 tokens, 2 pictures; it began: a plot]"


def test_the_oldest_go_first_and_no_more_than_has_to():
    history = [USER, *(part for n in range(4) for part in (calls(f"c{n}"), result(f"c{n}", long())))]
    made = stub_results(history, Room(500))
    assert [len(message.text) < 200 for message in made if message.role == "tool"] == [True, True, False, False]


def test_whole_turns_go_before_rounds_of_this_one():
    old = [Message.of("user", long()), calls("a"), result("a", long()), Message.of("assistant", "ok")]
    now = [USER, calls("b"), result("b", long()), calls("c"), result("c")]
    assert drop_turns([S, *old, *now], Room(300))[2:] == now
    assert drop_turns([S, *old, *now], Room(10_000))[2:] == [USER, *now[3:]]
    assert drop_turns([S, *old, *now], Room(0)) == [S, *old, *now]


def test_a_text_that_is_being_gone_on_with_keeps_its_prompt_and_its_beginning():
    cut, ask = Message.of("assistant", long()), Message.of("user", "Go on exactly where it stopped.")
    history = [Message.of("user", long()), Message.of("assistant", long()), USER, calls("a"), result("a", long()), cut, ask]
    assert drop_turns(history, Room(10_000, prompt=USER))[1:] == [USER, cut, ask]


def any_history(seed):
    chance = random.Random(seed)
    history, number = [S] * chance.randint(0, 1), 0
    for _ in range(chance.randint(1, 5)):
        history.append(Message.of("user", f"question {number} " + long(chance.randint(0, 9))))
        for _ in range(chance.randint(0, 5)):
            ids = [f"c{number + n}" for n in range(chance.randint(1, 3))]
            number += len(ids)
            history.append(calls(*ids, name=chance.choice("fg")))
            history += [result(i, long(chance.randint(0, 40)), code=chance.choice([None, None, "tool_failed"])) for i in ids]
            if chance.random() < 0.1:
                history.append(Message.of("developer", "be brief"))
        if chance.random() < 0.7:
            history.append(Message.of("assistant", "answer " + long(chance.randint(0, 9))))
    return history if history[-1].role in {"tool", "user", "developer"} else [*history, Message.of("user", f"last {number}")]


def used(name, history, room):
    made = STRATEGIES[name](history, room)
    if not isinstance(made, list):
        try:
            next(made)
            made.send("It was about rivers.")
        except StopIteration as end:
            made = end.value
    return list(made)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_leaves_any_history_valid_and_never_larger_and_twice_is_once(name):
    for seed in range(150):
        history = any_history(seed)
        for excess in (1, 200, 900, 100_000):
            made = used(name, history, Room(excess, excess))
            assert is_valid(history, made)
            assert fault(history, made) == ""
            assert sum(map(weigh, made)) <= sum(map(weigh, history))
            if excess == 100_000:
                assert sum(map(weigh, used(name, made, Room(excess, excess)))) == sum(map(weigh, made))


def test_what_cannot_be_sent_is_named():
    history = [S, Message.of("user", "one"), calls("a"), result("a"), USER]
    assert fault(history, [history[1], *history[2:]]) == "it lost a system message"
    assert fault(history, history[:-1]) == "it lost the prompt"
    assert fault(history, [S, history[1], calls("a"), USER]) == "it parted a call from its result"
    assert fault(history, [S, calls("a"), result("a"), USER]) == "the first message would be the assistant's"


def test_what_went_is_said_in_lines():
    history = [USER, calls("a"), result("a", long(), "read_file"), calls("b"), result("b", long())]
    assert went(history, stub_results(history, Room(9_999))) == ("1 result of read_file became a stub",)
    assert went(history, drop_turns(history, Room(9_999))) == ("1 assistant message left out", "1 tool message left out")


def test_a_name_that_no_strategy_has_is_said_at_once():
    with pytest.raises(SettingError) as caught:
        Agent(compaction="stub")
    assert str(caught.value) == (
        "no compaction named 'stub'; there are stub_results, drop_turns, summarise, stub_newest, 'off', and functions of your own"
    )
    assert [named.name for named in chosen("summarise,drop_turns")] == ["summarise", "drop_turns"]
    assert chosen("off") == chosen(None) == ()


# ------------------------------------------------------------------------------------------------- runs in a small window


class Reader:
    """A model that reads a report page by page, and does not look back to know where it is."""

    def __init__(self, monkeypatch, pages=60, window=4096, lines=12, each=1):
        self.read = 0

        @tool
        def read_page(number: int) -> str:
            """Read one page of a long report."""
            self.read += 1
            return f"Page {number} of {pages}.\n" + f"Station {number} saw {number * 7} birds, and some rain at noon. " * lines

        def plan(ask):
            if not ask.tools:
                return Plan(f"Pages 1 to {self.read} were read; birds were seen.")
            if self.read >= pages:
                return Plan("All pages are read.")
            return Plan("", tuple(Call("read_page", {"number": self.read + n}) for n in range(1, each + 1)))

        monkeypatch.setitem(mock.MODELS, "mock", Model(window=window))
        monkeypatch.setattr(respond, "plan", plan)
        self.tool = read_page

    def agent(self, **settings):
        return Agent(tools=[self.tool], system="Be exact.", **({"max_rounds": 100, "time_limit": None} | settings))


PROMPT = "Read all pages of the report, one after the other."


def cuts(run):
    return [event for event in run.events if isinstance(event, Compacted)]


def totals(run):
    return [entry["request"]["tokens"]["total"] for entry in run.state["rounds"]]


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_of_sixty_rounds_fits_into_four_thousand_tokens_and_every_request_is_one_that_a_provider_takes(wire, monkeypatch):
    run = Reader(monkeypatch).agent(wire=wire).run(PROMPT)
    assert (run.reason, run.text, len(run.requests)) == ("stop", "All pages are read.", 61)  # the mock server checks each of them
    assert max(totals(run)) < 4096
    assert cuts(run)
    assert len(run.messages) == 2 + 2 * 60 + 1
    assert all("of 60." in message.text for message in run.messages if message.role == "tool")
    assert all(cut.before > cut.after and cut.what for cut in cuts(run))


def test_without_compaction_the_same_run_is_refused_and_the_request_said_so_before_it_went_out(monkeypatch):
    agent = Reader(monkeypatch).agent(compaction=None)
    with pytest.raises(ProviderError, match="maximum context length is 4096"):
        agent.run(PROMPT)
    last = [event for event in agent.last_run.events if isinstance(event, RequestReady)][-1]
    assert last.notices[0].startswith(
        f"over the window: {totals(agent.last_run)[-1]:,} tokens of 4,096; the largest parts: tool results "
    )
    assert last.notices[0].endswith(
        "; switch compaction on, or let the tools give less at once, page by page, or begin a new conversation"
    )


def test_a_prompt_that_is_larger_than_the_window_is_named_before_it_is_sent(monkeypatch):
    agent = Reader(monkeypatch, window=300).agent()
    with pytest.raises(ProviderError, match="context length"):
        agent.run("word " * 400)
    ready = next(event for event in agent.last_run.events if isinstance(event, RequestReady))
    total, tools = totals(agent.last_run)[0], agent.last_run.state["rounds"][0]["request"]["tokens"]["parts"]["tools"]
    assert ready.notices[0] == (
        f"over the window: {total} tokens of 300; the largest parts: user 401, tools {tools}, overhead 11; "
        "put a long text into a file that a tool reads page by page, or offer fewer tools"
    )


def test_a_summary_is_asked_for_without_tools_and_counts_and_is_no_part_of_the_conversation(monkeypatch):
    run = Reader(monkeypatch).agent(compaction="summarise", tool_choice="auto").run(PROMPT)
    asked = [event.request for event in run.events if isinstance(event, RequestReady) and event.purpose == "summary"]
    told = [event for event in run.events if isinstance(event, ReplyDone) and event.purpose == "summary"]
    assert (run.reason, len(asked) == len(told) > 2) == ("stop", True)
    assert all("tools" not in request.body and "tool_choice" not in request.body for request in asked)
    assert "Pages 1 to" in run.requests[-1].body["messages"][1]["content"]
    assert run.requests[-1].body["messages"][1]["content"].endswith(PROMPT)
    assert run.usage.input_tokens == sum(totals(run))
    assert not any("Pages 1 to" in message.text for message in run.messages)
    assert f"Round {told[0].number}, for a summary" in str(run)


def test_where_the_summary_fails_the_next_strategy_is_used_and_it_is_not_paid_for_again(monkeypatch):
    reader = Reader(monkeypatch, pages=40)
    honest = respond.plan
    monkeypatch.setattr(respond, "plan", lambda ask: honest(ask) if ask.tools else Plan(""))
    run = reader.agent(compaction=["summarise", "drop_turns"]).run(PROMPT)
    assert (run.reason, {cut.strategy for cut in cuts(run)}) == ("stop", {"drop_turns"})
    assert sum(isinstance(event, RequestReady) and event.purpose == "summary" for event in run.events) == 1


@pytest.mark.parametrize("answer", [KeyboardInterrupt, Stop("stopped", "enough")])
def test_a_run_that_ends_while_a_summary_is_asked_for_keeps_its_whole_history(answer, monkeypatch):
    def answered(event):
        if isinstance(event, RequestReady) and event.purpose == "summary":
            if answer is KeyboardInterrupt:
                raise KeyboardInterrupt
            return answer
        return None

    agent = Reader(monkeypatch).agent(compaction="summarise")
    with pytest.raises(KeyboardInterrupt) if answer is KeyboardInterrupt else contextlib.nullcontext():
        agent.run(PROMPT, answer=answered)
    assert agent.last_run.reason == ("cancelled" if answer is KeyboardInterrupt else "stopped")
    assert is_valid(agent.history, agent.history)
    assert agent.run("And now?", compaction="drop_turns").reason == "stop"


def test_results_that_came_together_and_do_not_fit_together_are_cut_down_to_those_that_do(monkeypatch):
    run = Reader(monkeypatch, pages=6, each=6, lines=60).agent().run(PROMPT)
    assert (run.reason, [cut.strategy for cut in cuts(run)]) == ("stop", ["stub_newest"])
    results = [entry["content"] for entry in run.requests[-1].body["messages"] if entry["role"] == "tool"]
    assert "left out to save room" in results[0]
    assert results[-1].startswith("Page 6 of 6.\nStation 6")


def test_what_was_cut_stays_cut_with_the_same_bytes_so_that_a_cache_is_of_use(monkeypatch):
    run = Reader(monkeypatch).agent().run(PROMPT)
    changed = {cut.number for cut in cuts(run)}
    for number, (before, after) in enumerate(zip(run.requests, run.requests[1:], strict=False), 2):
        sent = before.body["messages"]
        assert (after.body["messages"][: len(sent)] == sent) == (number not in changed)
    assert len(changed) < 12


def test_the_next_run_goes_on_with_what_was_cut_and_off_sends_the_whole_again(monkeypatch):
    reader = Reader(monkeypatch, pages=30)
    agent = reader.agent()
    first = agent.run(PROMPT)
    whole = agent.history
    second = agent.run("And now?")
    sent = first.requests[-1].body["messages"]
    assert second.requests[0].body["messages"][: len(sent)] == sent
    assert agent.history[: len(whole)] == whole
    monkeypatch.setitem(mock.MODELS, "mock", Model(window=100_000))
    third = agent.run("And now?", compaction=None)
    assert not any("left out" in str(entry["content"]) for entry in third.requests[0].body["messages"])
    assert len(third.requests[0].body["messages"]) == len(agent.history) - 1


def test_a_run_counts_whole_requests_only_near_the_limit(monkeypatch):
    seen = []
    monkeypatch.setattr("nb_agent.run.counted", lambda request, model: seen.append(1) or counted(request, model))
    Reader(monkeypatch).agent().run(PROMPT, view=False)
    assert len(seen) < 30  # of 61 requests; two or three at each cut
    seen.clear()
    Reader(monkeypatch, window=100_000).agent().run(PROMPT, view=False)
    assert seen == []  # fewer bytes than there is room for tokens


def test_a_round_weighs_what_is_new_in_it_and_nothing_else(monkeypatch):
    weighed = []
    monkeypatch.setattr(
        "nb_agent.compaction.fitting.weigh", lambda message, model: weighed.append(message) or weigh(message, model)
    )
    Reader(monkeypatch, window=20_000).agent().run(PROMPT, view=False)
    assert 40 < len(weighed) <= 2 * 60


def test_a_function_can_be_the_strategy_and_what_cannot_be_sent_is_not_used(monkeypatch):
    def last_four(messages, room):
        return [*messages[:2], *messages[-4:]]

    def blindly(messages, room):
        return messages[3:]

    reader = Reader(monkeypatch, pages=30)
    run = reader.agent(compaction=[blindly, last_four]).run(PROMPT)
    assert (run.reason, {cut.strategy for cut in cuts(run)}) == ("stop", {"last_four"})
    notices = [notice for event in run.events if isinstance(event, RequestReady) for notice in event.notices]
    assert notices == ["the compaction blindly was not used: it lost a system message"]


def refusing(monkeypatch, words, most):
    """The mock server refuses what has more tokens than it tells beforehand."""
    honest = mock.send

    def send(request):
        if counted(request, "mock")["total"] > most:
            raise ProviderError(words, kind="context_length", status=400)
        return honest(request)

    monkeypatch.setattr(mock, "send", send)


@pytest.mark.parametrize("words", ["This model's maximum context length is 2000 tokens.", "Input is too long for requested model."])
def test_a_refusal_teaches_the_window_and_a_shorter_request_follows(words, monkeypatch):
    reader = Reader(monkeypatch, pages=20, window=50_000)
    refusing(monkeypatch, words, 2_000)
    run = reader.agent().run(PROMPT)
    assert run.reason == "stop"
    assert f"too long, a shorter one follows ({words})" in str(run)
    assert cuts(run)


def test_a_refusal_that_nothing_can_be_done_about_is_raised(monkeypatch):
    agent = Reader(monkeypatch, window=50_000).agent()
    refusing(monkeypatch, "prompt is too long", 10)
    with pytest.raises(ProviderError, match="prompt is too long"):
        agent.run(PROMPT)
    assert len(agent.last_run.requests) == 1


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("maximum context length is 8192 tokens, you sent 9001", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("HTTP 400: the request exceeds the available context size (32,768 tokens), try increasing it", 32_768),
        (
            "This model's maximum context length is 16385 tokens. However, you requested 16500 tokens (500 in the completion).",
            16_385,
        ),
        ("HTTP 413: request exceeds the size limit", None),
        ("ValidationException: Input is too long for requested model.", None),
    ],
)
def test_the_window_is_read_off_a_refusal(words, limit):
    assert limit_in(words) == limit


def test_a_window_that_is_not_known_costs_nothing():
    def never(request):
        raise AssertionError

    fitting = Fitting(chosen(DEFAULT), model="m", window=None, count=never)
    history = [USER, calls("a"), result("a", long(2_000))]
    steps = fitting.fit(1, history, USER, lambda messages, plain=False: WIRES["chat_completions"].request(messages, (), model="m"))
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert len(end.value.value.request.body["messages"]) == 3


# ------------------------------------------------------------------------------------------------- what is shown of it


def test_the_event_comes_back_equal_and_a_saved_run_shows_the_same(monkeypatch, tmp_path):
    run = Reader(monkeypatch, pages=25).agent(compaction="summarise").run(PROMPT)
    for event in run.events:
        assert from_json(json.loads(json.dumps(to_json(event)))) == event
    run.save(tmp_path / "run.jsonl")
    assert str(Run.load(tmp_path / "run.jsonl")) == str(run)


def test_the_views_say_at_the_request_what_was_left_out(monkeypatch):
    run = Reader(monkeypatch, pages=25).agent().run(PROMPT)
    cut = cuts(run)[0]
    line = f"compacted: {cut.what[0]}, {cut.before:,} → {cut.after:,} tokens"
    assert f"        {line}\n" in str(run)
    assert f"<li><code>{line}</code></li>" in page(run.state)
    entry = run.state["rounds"][cut.number - 1]
    assert entry["compacted"] == [{"strategy": "stub_results", "before": cut.before, "after": cut.after, "what": list(cut.what)}]


def test_a_cut_without_a_request_after_it_is_shown_nowhere():
    state = state_of([RunStarted("p", "m", "w"), Compacted(1, "drop_turns", 9, 3), RunEnded("stopped", ())])
    assert state["rounds"] == []
