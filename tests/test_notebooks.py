"""The notebooks as they are committed and as they run: offline, fast, without errors, with every run in full, with exercises that
can be solved.
"""

import base64
import html
import json
import re
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from nb_agent import Run
from nb_agent.lessons import execute

FOLDER = Path(__file__).parent.parent / "notebooks"
NAMES = ["00_tour", "01_one_tool", "02_parallel_tools", "03_dependent_tools", "04_file_task", "05_mcp", "06_safety", "07_clinic"]

#: Seconds that a notebook may take from the start of its kernel to its end: the promise is ten on a machine that does nothing else.
#: Here other tests run beside it, which has been seen to triple the time, so that only what is far off fails.
SECONDS = 30

#: What solves each exercise.
SOLUTIONS = {
    "00_tour": "%%agent --new -o mine\nWhat is the weather in Paris and in Cairo?",
    "01_one_tool": '''
@tool
def to_fahrenheit(celsius: float) -> float:
    """Turn a temperature in degrees Celsius into degrees Fahrenheit."""
    return celsius * 9 / 5 + 32
''',
    "02_parallel_tools": "%%agent --new -o mine\nWhat is the stock of SKU-B200 in east-01 and west-02, and what does it cost?",
    "03_dependent_tools": '''
@tool
def track_parcel(tracking_code: str) -> dict:
    """Where a parcel is now.

    Args:
        tracking_code: code of the parcel, e.g. TR-55
    """
    return {"tracking_code": tracking_code, "place": PARCELS[tracking_code]}
''',
    "04_file_task": "%%agent --new -o mine\nRead CHANGELOG.md and find the *.yaml files. Then write a summary to overview.md.",
    "05_mcp": "%%agent --new -o mine\nWho are the users U-1003 and U-1008?",
    "06_safety": """
def rule(name, arguments):
    if name != "reserve_stock":
        return None
    return "go" if arguments["quantity"] <= 10 else "ask"
""",
    "07_clinic": '''
@tool(tier="read")
def get_fee(weight: float, country: str) -> dict:
    """What it costs to send a parcel to a country, in euros.

    Args:
        weight: weight of the parcel in kilograms
        country: name of the country, e.g. Norway
    """
    return {"weight": weight, "country": country, "fee": round(4 + 1.5 * weight, 2), "currency": "EUR"}
''',
}
#: What comes close and is wrong.
MISTAKES = {
    "00_tour": "%%agent --new -o mine\nWhat is the weather in Oslo?",
    "01_one_tool": SOLUTIONS["01_one_tool"].replace("* 9 / 5 + 32", "* 9 / 5"),
    "02_parallel_tools": "%%agent --new -o mine\nWhat is the stock of SKU-A100 in east-01?",
    "03_dependent_tools": SOLUTIONS["03_dependent_tools"].replace("PARCELS[tracking_code]", "'lost'"),
    "04_file_task": "%%agent --new -o mine\nRead CHANGELOG.md",
    "05_mcp": "%%agent --new -o mine\nWho is the user U-1003?",
    "06_safety": "def rule(name, arguments):\n    return 'go'",
    "07_clinic": SOLUTIONS["07_clinic"].replace(", e.g. Norway", ""),
}

#: Put before everything in a copy: nothing leaves the machine.
GUARD = """
import sys


def guard(event, values):
    if event == "socket.connect" and isinstance(values[1], tuple) and values[1][0] not in {"127.0.0.1", "::1"}:
        raise RuntimeError(f"a notebook has tried to reach {values[1]}")


sys.addaudithook(guard)
"""
#: Put at the end of a copy: keeps the runs of all cells, by the number of the execution.
KEEP = """
from nb_agent import Run
for number, value in list(Out.items()):
    if isinstance(value, Run):
        value.save(f"run-{number}.jsonl")
"""


def read(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def cell_of(book, name):
    return next(cell for cell in book.cells if cell.id == name)


def copies(book, *, source, word):
    """The cells of an exercise once more, with something put into it."""
    for cell in book.cells:
        if cell.id in {"exercise", "exercise-run", "check"}:
            yield nbformat.v4.new_code_cell(source.strip("\n") if cell.id == "exercise" else cell.source, id=f"{word}-{cell.id}")


@pytest.fixture(scope="module", params=NAMES)
def outcome(request, tmp_path_factory):
    """One notebook after a run in a folder of its own. Behind its exercise stand two copies, one wrong and one solved."""
    book, name = read(request.param), request.param
    place = [cell.id for cell in book.cells].index("check") + 1
    book.cells[place:place] = [
        *copies(book, source=MISTAKES[name], word="wrong"),
        *copies(book, source=SOLUTIONS[name], word="solved"),
    ]
    book.cells = [nbformat.v4.new_code_cell(GUARD, id="guard"), *book.cells, nbformat.v4.new_code_cell(KEEP, id="keep")]
    path = tmp_path_factory.mktemp("notebooks") / f"{name}.ipynb"
    nbformat.write(book, path)
    return execute.execute([path])[0]


def said(book, word=""):
    """The lines that the check of an exercise prints."""
    return "".join(output.text for output in cell_of(book, f"{word}check").outputs).splitlines()


class Words(HTMLParser):
    """The text of a page: what is left without tags, styles and scripts."""

    def __init__(self, page):
        super().__init__()
        self.parts, self._inside = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in {"style", "script"}:
            self.parts.append(data)


def words(page):
    return " ".join("".join(Words(page).parts).split())


def texts(value):
    """Every text at any depth of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def shows(shown, text):
    """Whether a text can be read there, as it is or as it stands in JSON."""
    return any(" ".join(form.split()) in shown for form in (text, json.dumps(text, ensure_ascii=False)[1:-1]))


def bundle_of(cell):
    (output,) = [output for output in cell.outputs if "text/html" in output.get("data", {})]
    return output.data


# ------------------------------------------------------------------------------------------------- as they run


def test_a_notebook_runs_fast_and_without_errors_and_its_committed_outputs_are_those_of_today(outcome):
    assert outcome.faults == ()
    assert outcome.seconds < SECONDS
    book = read(outcome.path.stem)
    known = {cell.id for cell in book.cells}
    committed = {cell.id for cell in book.cells if cell.get("outputs")}
    today = {cell.id for cell in outcome.notebook.cells if cell.get("outputs") and cell.id in known}
    assert today == committed, "the committed outputs are old: make notebooks"


def test_a_notebook_shows_every_request_reply_call_and_result_of_its_runs(outcome):
    page = words(HTMLExporter().from_notebook_node(outcome.notebook)[0])
    asked = [cell for cell in outcome.notebook.cells if cell.source.startswith("%%agent")]
    assert len(asked) >= 4
    for cell in asked:
        run = Run.load(outcome.path.with_name(f"run-{cell.execution_count}.jsonl"))
        assert run.reason == "stop"
        shown = words(bundle_of(cell)["text/html"])
        assert shown in page
        wanted = [text for part in [*run.requests, *run.replies] for text in texts(part.body)]
        wanted += [message.text for message in run.messages]
        wanted += [call.arguments for message in run.messages for call in message.tool_calls]
        wanted += [result.text for result in run.tool_results]
        assert cell.source.partition("\n")[2] in wanted
        assert [text for text in wanted if not shows(shown, text)] == []
        plain = " ".join(bundle_of(cell)["text/plain"].split())
        for text in [run.text, *(result.text for result in run.tool_results), "mock model"]:
            assert " ".join(text.split()) in plain


def test_an_exercise_is_open_then_wrong_then_solved(outcome):
    for book in (read(outcome.path.stem), outcome.notebook):
        assert [line for line in said(book) if not line.startswith("○ not solved yet: ")] == []
    wrong = said(outcome.notebook, "wrong-")
    assert any(line.startswith("✗ ") for line in wrong)
    assert any(line.startswith("  it is ") for line in wrong)
    solved = said(outcome.notebook, "solved-")
    assert [line for line in solved if not line.startswith("✓ ")] == []
    assert len(solved) >= 2


# ------------------------------------------------------------------------------------------------- as they are committed


def test_the_folder_holds_the_notebooks_and_the_tour_leads_to_all_of_them():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES
    tour = "\n".join(cell.source for cell in read("00_tour").cells)
    assert all(f"]({name}.ipynb)" in tour for name in NAMES[1:])


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_notebook_opens_anywhere(name):
    book = read(name)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) == (4, 5)
    assert book.metadata.kernelspec == {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    assert set(book.metadata) == {"kernelspec", "language_info"}
    assert all(re.fullmatch(r"[a-z][a-z0-9-]+", cell.id) for cell in book.cells)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "the committed outputs are old: make notebooks"
    assert "%load_ext nb_agent" in code[0].source
    assert book.cells[0].cell_type == "markdown"
    hint = cell_of(book, "exercise-text").source
    assert "<details>" in hint
    assert hint.index("</details>") > hint.index("<summary>Hint</summary>")


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_output_needs_no_widget_and_knows_no_machine(name):
    content = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    outputs = [output for cell in read(name).cells for output in cell.get("outputs", ())]
    assert outputs
    assert {output.output_type for output in outputs} <= {"display_data", "execute_result", "stream"}
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert kinds <= {"text/html", "text/plain", "text/markdown", "image/png", "application/vnd.nb-agent.run+json"}
    here = {
        str(Path.home()),
        str(FOLDER.parent),
        sys.prefix,
        sys.executable,
        tempfile.gettempdir(),
        "/home/",
        "/Users/",
        "/tmp/",
        "site-packages",
    }
    assert [place for place in here if len(place) > 1 and place in content] == []
    for output in outputs:
        if "image/png" in output.get("data", {}):
            assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")


def test_a_notebook_runs_without_a_key_and_without_the_settings_of_a_person(tmp_path, monkeypatch):
    monkeypatch.setenv("NB_AGENT_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("NB_AGENT_API_KEY", "sk-never")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "profile"))
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell("import os; print([name for name in os.environ if name.startswith('NB_AGENT_')])", id="a")
    ]
    (tmp_path / "profile" / "profile_default" / "startup").mkdir(parents=True)
    (tmp_path / "profile" / "profile_default" / "startup" / "0.py").write_text("print('mine')", encoding="utf-8")
    nbformat.write(book, tmp_path / "a.ipynb")
    (outcome,) = execute.execute([tmp_path / "a.ipynb"])
    assert outcome.notebook.cells[0].outputs[0].text == "[]\n"


def test_the_text_of_a_page_is_what_a_reader_sees():
    assert words("<style>p{}</style><p>a &lt;b&gt;</p>\n<script>x</script> c") == f"a {html.unescape('&lt;b&gt;')} c"
