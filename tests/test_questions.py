"""How a person is asked while a cell runs: which way is taken, and which answers count. No kernel, no browser."""

from types import SimpleNamespace

import pytest

from nb_agent.errors import SettingError
from nb_agent.views import questions
from nb_agent.views.questions import Desk

QUESTION = {
    "at": "call",
    "title": "remove",
    "asks": "it is dangerous",
    "choices": ["approve", "reject"],
    "edits": None,
    "problem": "",
}
YES = {"choice": "approve"}


def kernel(*, stdin=True):
    calls = []
    loop = SimpleNamespace(add_callback=lambda run, *given: calls.append((run, given)))
    return SimpleNamespace(get_parent=lambda channel: {"content": {"allow_stdin": stdin}}, io_loop=loop, calls=calls)


class Page:
    """What is shown, and what is clicked as soon as a question is."""

    def __init__(self, *, stdin=True, greeted=True, most_seconds=5.0, clicks=()):
        self.shown, self.clicks = [], list(clicks)
        self.kernel = kernel(stdin=stdin)
        self.desk = Desk(self.kernel, self.show, lambda: greeted, most_seconds)

    def show(self, changes):
        ((kind, path, question),) = changes
        assert (kind, path) == ("set", ["question"])
        self.shown.append(question)
        for click in self.clicks if question else ():
            self.desk.answer({"id": question["id"], **click})

    def loop(self):
        """What the kernel's loop does when no cell runs."""
        for run, given in self.kernel.calls:
            run(*given)
        self.kernel.calls.clear()


@pytest.fixture(autouse=True)
def typed(monkeypatch):
    """The questions that were asked by a line; each is answered with no."""
    asked = []
    monkeypatch.setattr(questions, "by_typing", lambda question: asked.append(question) or {"choice": "reject"})
    monkeypatch.setattr(questions, "_GREETING", 0.0)
    return asked


def test_a_page_that_said_hello_is_asked_by_buttons_and_by_nothing_else(typed):
    page = Page(clicks=[YES])
    said = page.desk.ask(QUESTION)
    assert said == {"id": page.shown[0]["id"], **YES}
    assert page.shown == [{**QUESTION, "id": said["id"]}, None]
    assert typed == []


def test_a_front_end_without_comms_while_a_cell_runs_is_asked_by_a_line_and_by_nothing_else(typed):
    page = Page(greeted=False)
    assert page.desk.ask(QUESTION) == {"choice": "reject"}
    assert (typed, page.shown) == ([QUESTION], [])


@pytest.mark.parametrize("greeted", [True, False])
def test_where_no_line_can_be_typed_nobody_is_asked(typed, greeted):
    page = Page(stdin=False, greeted=greeted)
    assert page.desk.ask(QUESTION) is None
    assert (typed, page.shown) == ([], [])


def test_the_first_answer_counts_and_those_with_another_id_do_not():
    page = Page(clicks=[{"choice": "always", "id": "of another"}, {"choice": "reject"}, YES])
    assert page.desk.ask(QUESTION)["choice"] == "reject"
    page.clicks = []
    page.desk._most_seconds = 0.0
    assert page.desk.ask(QUESTION) is None


def test_time_alone_is_no_yes_and_an_answer_that_comes_too_late_answers_no_later_question():
    page = Page(most_seconds=0.0)
    assert page.desk.ask(QUESTION) is None
    late = page.shown[0]["id"]
    page.desk.answer({"id": late, **YES})
    assert page.desk.ask(QUESTION) is None
    assert page.shown[2]["id"] != late


def test_an_answer_at_the_very_end_of_the_time_is_not_kept_for_the_next_question(monkeypatch):
    page = Page(most_seconds=0.0)
    usual = page.desk._set

    def set_late(question, *given):
        if question is None and page.desk._open:
            page.desk.answer({"id": page.desk._open, **YES})  # after the last look
        usual(question, *given)

    monkeypatch.setattr(page.desk, "_set", set_late)
    assert page.desk.ask(QUESTION) is None
    assert page.desk.ask(QUESTION) is None


def test_an_interrupt_closes_the_question():
    page = Page()
    page.desk._greeted = iter([True]).__next__

    def interrupted(arrived, seconds):
        if page.shown:
            raise KeyboardInterrupt
        return arrived()

    page.desk._waited_for = interrupted
    with pytest.raises(KeyboardInterrupt):
        page.desk.ask(QUESTION)
    assert page.shown[-1] is None


def test_a_click_for_a_run_that_waits_goes_to_it_once_and_in_the_kernels_loop():
    page, taken = Page(clicks=[YES, YES]), []
    page.desk.wait(QUESTION, taken.append)
    assert taken == []
    page.loop()
    assert [said["choice"] for said in taken] == ["approve"]


def test_a_click_that_a_cell_was_quicker_than_does_not_answer_the_question_after_it():
    page, taken = Page(clicks=[YES]), []
    page.desk.wait(QUESTION, taken.append)
    page.clicks = []
    page.desk.wait({**QUESTION, "title": "another"}, taken.append)  # as `%agent next` does in a cell
    page.loop()
    assert taken == []


def test_what_means_nothing_leaves_the_question_open_and_says_why():
    page = Page(clicks=[YES])

    def take(said):
        raise SettingError(f"{said['choice']} means nothing here")

    page.desk.wait(QUESTION, take)
    page.clicks = []
    page.loop()
    assert page.shown[-1]["problem"] == "approve means nothing here"
    assert page.shown[-1]["id"] != page.shown[0]["id"]


def test_after_a_run_that_waited_a_question_in_a_cell_gets_its_own_answer():
    page, taken = Page(), []
    page.desk.wait(QUESTION, taken.append)
    page.desk.wait(None, taken.append)
    page.clicks = [YES]
    assert page.desk.ask(QUESTION)["choice"] == "approve"
    assert taken == []
