"""text.py: the run as plain text, and the words that html.py shares."""

import pytest
from samples import ANSWER, PROMPT, failing_events, hostile_events, request, state_of, three_round_events

from nb_agent.events import ENDINGS, Delta, RequestReady, RunEnded, RunStarted, ToolAsked
from nb_agent.messages import PARTS, Piece
from nb_agent.views.fold import Fold
from nb_agent.views.text import MOST, NEXT, WORDS, answer, compared, fault, percent, seconds, signature, text, totals, visible


def test_the_text_has_the_question_the_tools_and_the_answer(cases):
    assert "text/plain" in cases["F11"]["expect"]["bundle_has"][0]
    shown = text(state_of(three_round_events()))
    assert PROMPT in shown
    assert all(name in shown for name in ("read_file", "search_files", "write_file"))
    assert all(line in shown for line in ANSWER.split("\n"))


def test_the_mock_model_is_called_the_mock_model():
    assert text(state_of(three_round_events())).startswith("%%agent · mock model mock-8k · chat completions · window 8,192\n")
    assert "mock" not in text(state_of(failing_events()))


def test_rounds_are_told_in_their_order_with_their_tokens():
    lines = text(state_of(three_round_events())).split("\n")
    told = [line.strip() for line in lines if line.startswith(("Round", "    Request", "    Reply", "    Call", "Ended"))]
    assert [line.split(":")[0].split("(")[0] for line in told] == [
        *("Round 1", "Request 1", "Reply 1", "Call read_file", "Call search_files"),
        *("Round 2", "Request 2", "Reply 2", "Call write_file", "Round 3", "Request 3", "Reply 3", "Ended"),
    ]
    assert "594 tokens counted · 600 reported · difference +6 (template)" in told[-3]
    assert told[-1] == "Ended: stop, the model gave its final answer · 3 rounds · in 1,234 · out 243 tokens · 1.64 s"


def test_a_failed_call_says_at_which_step():
    shown = text(state_of(failing_events()))
    assert "Call weather(town=5): failed at “fits schema”: town: 5 is not a string\n" in shown
    assert 'Call weather(town="Bergen"): failed at “run”: ZeroDivisionError: division by zero · 0.20 s\n' in shown


def test_an_error_is_shown_with_the_next_step_and_what_had_come():
    shown = text(state_of(failing_events()))
    assert shown.endswith(f"connection reset; run the cell again, the history up to here is kept\n    {NEXT['error']}")
    assert "Answer, not whole\n    The weather in\n" in shown
    assert "thinking: It seems that" in shown
    assert "note: a call without a result was given one" in shown


def test_hostile_text_stays_as_it_was_written(cases):
    given, shown = cases["H17"]["given"], text(state_of(hostile_events()))
    assert given["tool_result"] in shown
    assert given["tool_name"] in shown
    assert given["arguments"]["q"] in shown
    assert given["error_text"] in shown


def test_control_characters_are_shown_and_not_obeyed():
    assert visible("a\x1b[2Jb\x00\r\nc\rd\x9b1m\u202ee\tf") == "a␛[2Jb␀\nc␍d\ufffd1m⟨U+202E⟩e\tf"
    shown = text(state_of([RunStarted("\x1b]0;owned\x07 \ud83d", "m", "w")]))
    assert "\x1b" not in shown
    shown.encode()


def test_foreign_lines_cannot_pass_for_ours():
    shown = text(state_of([RunStarted("hello\nEnded: stop, all is well\r\nRound 9", "m", "w")]))
    assert "\n    Ended: stop, all is well\n    Round 9\n" in shown


def test_long_arguments_and_results_are_cut_and_their_length_said():
    state = state_of(three_round_events())
    state["rounds"][0]["calls"][0]["result"]["text"] = "x" * (MOST + 500)
    shown = text(state)
    assert "x" * MOST + "\n        … 2,500 characters in all" in shown
    assert "x" * (MOST + 1) not in shown


def test_a_run_that_goes_on_says_so():
    folding = Fold()
    assert text(folding.state).endswith("Running · 0 rounds")
    folding.apply(RequestReady(1, request([])))
    folding.apply(Delta(1, (Piece("text", "half an ans"),)))
    shown = text(folding.state)
    assert "Reply 1: coming" in shown
    assert "Answer, not whole\n    half an ans\nRunning · 1 round" in shown


def test_every_part_and_every_ending_has_its_words():
    assert tuple(WORDS) == PARTS
    assert set(NEXT) == set(ENDINGS) - {"stop"}
    for reason in ENDINGS:
        assert f"Ended: {reason}, {ENDINGS[reason]}" in text(state_of([RunEnded(reason, ())]))


def test_counted_and_reported_are_told_apart():
    state = state_of(three_round_events())
    first, last = state["rounds"][0], state["rounds"][2]
    assert compared(first) == "244 tokens counted · 244 reported"
    last["request"]["tokens"]["exact"] = False
    assert compared(last) == (
        "594 tokens counted (an estimate: this model's tokenizer is not public) · 600 reported · difference +6 (template)"
    )
    last["request"]["tokens"] = None
    assert compared(last) == "600 tokens reported"
    last["reply"]["usage"] = None
    assert compared(last) == "none reported"


def test_what_was_not_reported_is_not_nothing():
    assert totals(state_of(failing_events())) == "2 rounds · 2.50 s"


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (None, ""),
        (0.0, "<1 ms"),
        (0.0032, "3 ms"),
        (0.0999, "0.10 s"),
        (0.41, "0.41 s"),
        (59.999, "1 min 0 s"),
        (119.7, "2 min 0 s"),
    ],
)
def test_times_are_told_in_the_unit_that_fits(time, said):
    assert seconds(time) == said


def test_shares_are_never_rounded_to_nothing():
    assert [percent(1, 1000), percent(0, 5), percent(1, 2), percent(0, 0)] == ["<1 %", "0 %", "50 %", "0 %"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"a": 1, "b": "京都"}', 'f(a=1, b="京都")'),
        ("{}", "f()"),
        ("", "f()"),
        ('{"a": ', 'f({"a": )'),
        ("[1, 2]", "f([1, 2])"),
        ('{"id": 12345678901234567890}', "f(id=12345678901234567890)"),
    ],
)
def test_a_call_is_one_line(arguments, line):
    assert signature("f", arguments) == line


def test_a_call_without_steps_fails_with_its_code():
    assert fault({"steps": [], "result": {"code": "cancelled"}}) == "failed: cancelled"
    assert fault({"steps": [], "result": None}) == ""


def test_a_run_that_stopped_at_a_call_has_no_answer():
    events = list(three_round_events())
    asked = max(place for place, event in enumerate(events) if isinstance(event, ToolAsked))
    state = state_of(events[: asked + 1])
    assert state["rounds"][-1]["calls"]
    assert answer(state) == ""
