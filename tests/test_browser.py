"""JupyterLab in Chromium: what only a browser shows. Screenshots go to the folder ``screenshots``, which git ignores."""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from lab_server import HARMLESS, Notebook, browser, lab

from nb_agent.lessons.demo import PROMPT

ROOT = Path(__file__).parent.parent
TOUR = "notebooks/00_tour.ipynb"


@pytest.fixture(scope="module")
def chromium():
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", root / "notebooks", ignore=shutil.ignore_patterns(".*"))
    tour = nbformat.read(root / TOUR, 4)
    for cell in tour.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(tour, root / TOUR)
    return root


@pytest.fixture(scope="module")
def base(root):
    with lab(root) as base:
        yield base


@pytest.fixture
def page(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


def written(root, name, *codes):
    """A notebook with these cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in codes])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, root / name)
    return name


def outputs(root, name):
    """The data of all displayed outputs in a saved notebook."""
    cells = json.loads((root / name).read_text(encoding="utf-8"))["cells"]
    return [output["data"] for cell in cells for output in cell.get("outputs", ()) if "data" in output]


def problems(notebook):
    return [error for error in notebook.errors if not HARMLESS.search(error)]


def test_the_tour_is_seen_live_and_reads_the_same_without_a_kernel_after_saving(page, base, root):
    tour = Notebook(page, base, TOUR)
    tour.wait_until_idle()
    tour.run_all()
    live = tour.page.locator(".nba[data-status='running']")
    tour.page.locator(".nba[data-status='running'][data-rounds='2'] .nba-bar").first.wait_for(timeout=30_000)
    live.first.scroll_into_view_if_needed()  # the slow run, half-way
    tour.shot("tour-live")
    tour.wait_until_idle()
    saved = tour.page.locator(".nba[data-status='ended']")
    saved.nth(2).wait_for(timeout=30_000)
    assert tour.page.locator(".nba").count() == 3
    tour.shot("tour-ended")
    tour.save()
    tour.shut_down()
    tour.open()
    compared = tour.page.get_by_role("region", name="Run: Compare the weather in Oslo, Lima and Kyoto.")
    compared.first.wait_for(timeout=30_000)
    text = compared.first.text_content()
    for words in ("get_weather", "Round 2", "mock model", "Kyoto"):
        assert words in text
    saved.first.scroll_into_view_if_needed()
    tour.shot("tour-reopened")
    tour.shut_down()
    assert problems(tour) == []
    kinds = {kind for data in outputs(root, TOUR) for kind in data}
    assert not any("widget" in kind for kind in kinds)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_inspector_opens_again_with_its_json_and_its_token_bar(page, base, root, theme):
    name = written(
        root,
        f"inspect-{theme}.ipynb",
        "%load_ext nb_agent\nfrom nb_agent.kit.files import file_tools\nfrom nb_agent.lessons.demo import make_folder\n"
        "from pathlib import Path\nmake_folder(Path('files'))\nread_file, search_files, write_file = file_tools(Path('files'))[:3]",
        f"%%agent -o run\n{PROMPT}",
        "run.inspect()",
    )
    notebook = Notebook(page, base, name)
    notebook.wait_until_idle()
    if theme == "dark":
        notebook.use_dark()
    notebook.run_all()
    notebook.wait_until_idle()
    inspector = notebook.cell(2).locator(".nba[data-status='ended']")
    inspector.wait_for(timeout=20_000)
    inspector.scroll_into_view_if_needed()
    assert inspector.get_attribute("data-rounds") == "3"
    assert inspector.locator(".nba-bar").first.is_visible()
    inspector.locator(".nba-item").first.click()
    closed = inspector.get_by_role("treeitem", expanded=False).first
    before = inspector.get_by_role("treeitem").count()
    closed.locator(".nba-row").first.click()
    assert inspector.get_by_role("treeitem").count() > before
    notebook.shot(f"inspector-{theme}")
    notebook.page.set_viewport_size({"width": 760, "height": 900})
    inspector.scroll_into_view_if_needed()
    notebook.shot(f"inspector-{theme}-narrow")
    notebook.shut_down()
    assert problems(notebook) == []


def test_the_stop_button_ends_a_slow_answer_and_the_next_cell_goes_on(page, base, root):
    name = written(
        root, "stop.ipynb", "%load_ext nb_agent", "%%agent --model mock-slow -o run\nTell me a long story.", "%%agent -o run\nhello"
    )
    notebook = Notebook(page, base, name)
    notebook.wait_until_idle()
    notebook.run(0)
    notebook.run(1, wait=False)
    notebook.page.locator(".nba-answer", has_text=re.compile(r"\w+ \w+")).first.wait_for(timeout=20_000)
    notebook.shot("answer-streaming")
    notebook.interrupt()
    notebook.wait_until_idle()
    notebook.shot("answer-interrupted")
    assert "cancelled" in notebook.cell(1).inner_text()
    assert "Interrupted" in notebook.cell(1).inner_text()
    notebook.run(2)
    notebook.cell(2).locator(".nba[data-status='ended']").wait_for(timeout=20_000)
    assert "stop" in notebook.cell(2).inner_text()
    notebook.shut_down()
