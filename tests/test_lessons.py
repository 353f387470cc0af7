"""What the notebooks bring along: the demo, exercises that check themselves, and what runs notebooks."""

import re

import nbformat
import pytest

from nb_agent import Agent, ToolError, tool
from nb_agent.cli import main
from nb_agent.lessons import demo, execute
from nb_agent.lessons.checks import WRITE_HERE, calls_in, check, findings_in, is_open, results_in, rounds_in, written_history

# ------------------------------------------------------------------------------------------------- the demo


def test_the_demo_shows_two_calls_then_one_then_the_answer(tmp_path, capsys):
    assert main(["demo", "--dir", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    rounds = re.split(r"^Round \d$", printed, flags=re.MULTILINE)[1:]
    assert [re.findall(r"Call (\w+)\(", text) for text in rounds] == [["read_file", "search_files"], ["write_file"], []]
    for name in ("docs/部署说明.md", "mock model", "History", "report.md is there"):
        assert name in printed


def test_the_history_of_the_demo_pairs_every_result_with_its_call(tmp_path, capsys):
    run = demo.run(tmp_path / "demo")
    roles = [message.role for message in run.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    asked = [call.id for message in run.messages for call in message.tool_calls]
    assert [message.tool_call_id for message in run.messages if message.role == "tool"] == asked
    assert len(set(asked)) == 3
    lines = capsys.readouterr().out.partition("History\n")[2].splitlines()[:8]
    assert [line.split()[1] for line in lines] == roles
    report = (tmp_path / "demo" / "report.md").read_text(encoding="utf-8")
    assert "8080" in report
    assert "docs/部署说明.md" in report


def test_a_second_demo_keeps_what_the_person_has_changed(tmp_path):
    folder = tmp_path / "demo"
    demo.run(folder)
    (folder / "config.yaml").write_text("port: 9999\n", encoding="utf-8")
    (folder / "mine.md").write_text("mine", encoding="utf-8")
    (folder / "README.md").unlink()
    demo.run(folder)
    assert (folder / "config.yaml").read_text(encoding="utf-8") == "port: 9999\n"
    assert (folder / "README.md").is_file()
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "9999" in report
    assert "mine.md" in report


def test_the_demo_adds_nothing_to_a_folder_with_other_files(tmp_path, capsys):
    (tmp_path / "thesis.md").write_text("four years", encoding="utf-8")
    assert main(["demo", "--dir", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert (
        said == f"nb-agent: {str(tmp_path)!r} holds other files, and the demo would add its own; name another folder with --dir\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.md"]


def test_the_demo_says_in_one_line_that_a_file_is_in_its_way(tmp_path, capsys):
    (tmp_path / "demo").write_text("a file", encoding="utf-8")
    assert main(["demo", "--dir", str(tmp_path / "demo")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


# ------------------------------------------------------------------------------------------------- checks


@pytest.fixture
def run():
    @tool
    def get_weather(city: str) -> dict:
        """Current weather of a city.

        Args:
            city: name of the city, e.g. Berlin
        """
        if city == "Lima":
            raise ToolError("no data", code="not_found")
        return {"city": city, "temperature": 4}

    return Agent(tools=[get_weather]).run("What is the weather in Oslo and in Lima?", view=False)


def test_the_readers_take_a_run_apart(run):
    assert repr(calls_in(run, 1)) == "[get_weather(city='Oslo'), get_weather(city='Lima')]"
    assert calls_in(run, 2) == calls_in(run, 7) == []
    assert calls_in(run) == calls_in(run, 1)
    assert sorted(results_in(run, 1), key=str) == [
        {"city": "Oslo", "temperature": 4},
        {"success": False, "error": "no data", "code": "not_found"},
    ]
    assert rounds_in(run) == 2
    lines = written_history(run.messages).splitlines()
    assert [line.split()[1] for line in lines] == ["user", "assistant", "tool", "tool", "assistant"]
    assert lines[3].endswith(": failed")


def test_a_right_answer_is_one_line(run, capsys):
    check("round 1 makes two calls", len(calls_in(run, 1)), 2, hint="not shown")
    check("they are of one tool", calls_in(run, 1), lambda calls: {call.name for call in calls} == {"get_weather"})
    check("it is true", run.text)
    assert capsys.readouterr().out == "✓ round 1 makes two calls\n✓ they are of one tool\n✓ it is true\n"


@pytest.mark.parametrize(
    ("answer", "expected", "said"),
    [
        (1, 2, "it is 1, not 2"),
        ([], bool, "it is []"),
        ("abc", lambda text: text.isdigit(), "it is 'abc'"),
        (None, lambda text: text.isdigit(), "it is None, which cannot be checked: AttributeError"),
        (lambda: 1 // 0, 1, "it ends with ZeroDivisionError"),
        ("x" * 500, "y", f"it is '{'x' * 198}…, not 'y'"),
    ],
)
def test_a_wrong_answer_says_what_it_is_and_never_raises(answer, expected, said, capsys):
    check("the claim", answer, expected, hint="Look again.")
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "✗ the claim"
    assert second.strip().startswith(said)
    assert third.strip() == "hint: Look again."


def test_an_answer_that_breaks_when_it_is_shown_is_wrong_and_no_more(capsys):
    class Odd:
        def __repr__(self):
            raise RuntimeError("no")

    check("the claim", Odd(), 1)
    assert capsys.readouterr().out == "✗ the claim\n  it is a value of type Odd that cannot be shown: RuntimeError, not 1\n"


def test_an_open_exercise_is_not_solved_yet_and_not_wrong(capsys):
    @tool
    def to_do(number: float) -> float:
        """..."""
        return ...

    unwritten = Agent(tools=[to_do]).run(f"{WRITE_HERE}.", view=False)
    unfinished = Agent(tools=[to_do]).run("Call `to_do` with 21", view=False)
    assert is_open(unwritten)
    assert not is_open(unfinished)
    for answer in (..., to_do.description, calls_in(unwritten, 1), results_in(unwritten), rounds_in(unwritten), lambda: to_do(1)):
        check("the claim", answer, lambda _: 1 / 0)
    check("the claim", results_in(unfinished), [42])
    assert capsys.readouterr().out == "○ not solved yet: the claim\n" * 7


def test_a_tool_is_open_while_nobody_has_described_it_and_then_the_clinic_speaks(capsys):
    def made(text):
        def get_fee(weight: float) -> float: ...

        get_fee.__doc__ = text
        return tool(get_fee)

    check("the clinic is content", findings_in(made("...\n\nArgs:\n    weight: ...")), [])
    check("the clinic is content", findings_in(made("Fee of a parcel.\n\nArgs:\n    weight: weight")), [])
    check("the clinic is content", findings_in(made("Fee of a parcel.\n\nArgs:\n    weight: how heavy it is, in kilograms")), [])
    opened, wrong, what, right = capsys.readouterr().out.splitlines()
    assert opened.startswith("○")
    assert (wrong[0], right[0]) == ("✗", "✓")
    assert "weight: 'weight' only repeats its name" in what


# ------------------------------------------------------------------------------------------------- running notebooks


def book_of(path, *sources, tags=()):
    book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}})
    for number, source in enumerate(sources):
        cell = nbformat.v4.new_code_cell(source, id=f"cell-{number}")
        cell.metadata = {"execution": {"iopub.execute_input": "2026-01-01"}, "tags": list(tags)}
        book.cells.append(cell)
    nbformat.write(book, path)
    return path


def test_notebooks_are_run_in_place_and_hold_nothing_that_changes_from_run_to_run(tmp_path, capsys):
    path = book_of(tmp_path / "a.ipynb", "from pathlib import Path\nprint(1)\nprint(2)", "sorted(Path().glob('*.ipynb'))")
    book_of(tmp_path / "b.ipynb", "raise ValueError('meant')", tags=["raises-exception"])
    assert execute.main([str(tmp_path)]) == 0
    once = path.read_bytes()
    assert re.fullmatch(r"(\S+[ab]\.ipynb: \d+\.\d s\n){2}", capsys.readouterr().out)
    assert execute.main([str(path)]) == 0
    assert path.read_bytes() == once
    book = nbformat.read(path, 4)
    assert [cell.id for cell in book.cells] == ["cell-0", "cell-1"]
    assert [cell.metadata for cell in book.cells] == [{"tags": []}] * 2
    assert book.cells[0].outputs == [{"output_type": "stream", "name": "stdout", "text": "1\n2\n"}]
    assert "a.ipynb" in book.cells[1].outputs[0].data["text/plain"]  # it ran in its own folder
    assert "version" not in book.metadata.language_info
    assert "widgets" not in book.metadata
    assert {path.name for path in tmp_path.iterdir()} == {"a.ipynb", "b.ipynb"}


def test_every_failing_cell_is_a_line_and_the_file_stays_as_it_was(tmp_path, capsys):
    path = book_of(tmp_path / "a.ipynb", "1 / 0", "print('on')", "raise ValueError('two\\nlines')")
    before = path.read_bytes()
    assert execute.main([str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        f"{path}: cell 1 (cell-0): ZeroDivisionError: division by zero",
        f"{path}: cell 3 (cell-2): ValueError: two lines",
    ]
    assert printed.out.endswith(" s, not written\n")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [None, "not json", "{}"])
def test_what_is_no_notebook_is_said_in_one_line(tmp_path, capsys, content):
    path = tmp_path / "a.ipynb"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert execute.main([str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(repr(str(path)))
    assert said.count("\n") == 1


def test_a_cell_without_end_is_ended_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "CELL_LIMIT", 1)
    (outcome,) = execute.execute([book_of(tmp_path / "a.ipynb", "import threading; threading.Event().wait()")])
    assert "timed out" in outcome.faults[0]
