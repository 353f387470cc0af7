"""The driver alone: what it sends while a run goes on, and what it leaves in the output."""

import copy
from typing import ClassVar

import pytest
from IPython.core.interactiveshell import InteractiveShell
from samples import state_of, three_round_events
from traitlets.config import Config

from nb_agent.events import RequestReady, RunStarted
from nb_agent.messages import Request
from nb_agent.values import dumps
from nb_agent.views import notebook
from nb_agent.views.fold import Fold, change_state


class Shown:
    """What a view is asked about; it can be referred to weakly, as a run can."""


class Watched:
    """Stands in for the inspector: keeps what it was sent, as it was at that moment."""

    made: ClassVar = []

    def __init__(self, state):
        self.first = copy.deepcopy(state)
        self.sent = []
        self.closed = False
        Watched.made.append(self)

    def apply(self, changes):
        self.sent.append(copy.deepcopy(changes))

    def close(self):
        self.closed = True

    def _ipython_display_(self):
        pass


@pytest.fixture
def kernel_shell(monkeypatch):
    """A shell that says it has a kernel, with the stand-in inspector."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.kernel = object()
    Watched.made.clear()
    monkeypatch.setattr("nb_agent.views.widget.Inspector", Watched)
    yield shell
    InteractiveShell.clear_instance()


def watch(events, run=None):
    shown = notebook.opened()
    shown.begin(run or Shown(), Fold())
    for event in events:
        shown.observe(event)
    shown.close()


@pytest.mark.parametrize("pause", [0, 1e9])
def test_what_is_sent_leads_to_the_state_whether_it_is_held_back_or_not(pause, kernel_shell, monkeypatch):
    monkeypatch.setattr(notebook, "_PAUSE", pause)
    monkeypatch.setattr(notebook, "_MOST_MESSAGES", 1e9)
    events = list(three_round_events())
    watch(events)
    (inspector,) = Watched.made
    state = inspector.first
    for changes in inspector.sent:
        change_state(state, changes)
    fold = Fold()
    for event in events:
        fold.apply(event)
    assert {**state, "rounds": [r | {"request": None} for r in state["rounds"]]} == {
        **fold.state,
        "rounds": [r | {"request": None} for r in fold.state["rounds"]],
    }
    assert inspector.closed


def test_pieces_that_come_quickly_are_sent_together(kernel_shell, monkeypatch):
    monkeypatch.setattr(notebook, "_PAUSE", 1e9)
    events = list(three_round_events())
    watch(events)
    deltas = sum(type(event).__name__ == "Delta" for event in events)
    assert len(Watched.made[0].sent) <= len(events) - deltas + 1


def test_a_run_that_goes_faster_than_anybody_reads_sends_no_more_than_a_page_takes(kernel_shell, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(notebook.time, "monotonic", lambda: now[0])
    shown, start = notebook.opened(), RunStarted("go", "mock", "chat_completions")
    shown.begin(Shown(), Fold())
    shown.observe(start)
    for number in range(1, 801):
        now[0] += 0.001
        request = Request("chat_completions", "/chat/completions", {"messages": ["x" * 1_000] * number})
        shown.observe(RequestReady(number, request))
    (inspector,) = Watched.made
    assert len(inspector.sent) < 80 + 0.8 * 80 + 5
    assert sum(len(dumps(changes)) for changes in inspector.sent) < 400_000 * 2.3
    assert max(len(dumps(changes)) for changes in inspector.sent) < 250_000


def test_a_run_is_known_as_shown_only_in_the_cell_that_ran_it(kernel_shell):
    run, other = Shown(), Shown()
    watch(three_round_events(), run)
    assert notebook.shown_here(run)
    assert not notebook.shown_here(other)
    kernel_shell.execution_count += 1
    assert not notebook.shown_here(run)


def test_without_a_shell_nothing_is_shown(capsys):
    InteractiveShell.clear_instance()
    watch(three_round_events())
    assert capsys.readouterr().out == ""


def test_a_state_without_a_shell_is_shown_as_text(capsys):
    notebook.show(state_of(three_round_events()))
    assert "Round 3" in capsys.readouterr().out
