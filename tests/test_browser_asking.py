"""JupyterLab and Notebook 7 in Chromium while a cell waits for a person: buttons, edits, faults, branches and interrupts."""

import re
import time

import pytest
from lab_server import Notebook, browser, lab
from test_browser import problems, written

TOOLS = """%load_ext nb_agent
from pathlib import Path

from nb_agent import tool
from nb_agent.kit.files import file_tools
from nb_agent.lessons.demo import make_folder

make_folder(Path('files'))
read_file, search_files, write_file = file_tools(Path('files'))[:3]
gone = []


@tool(tier="danger")
def remove(path: str) -> str:
    '''Remove a thing.

    Args:
        path: which one, e.g. lamp
    '''
    gone.append(path)
    return f"{path} is gone"
"""


COUNT = "print(run.reason, len(run.branches), len(run.requests), 'README.md' in run.tool_results[0].text)"
HOSTS = {"lab": "lab/tree", "notebook": "notebooks"}
everywhere = pytest.mark.parametrize("host", HOSTS)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("asking")


@pytest.fixture(scope="module")
def base(root):
    with lab(root) as base:
        yield base


@pytest.fixture(scope="module")
def chromium():
    with browser() as chromium:
        yield chromium


@pytest.fixture
def opened(chromium, base, root):
    contexts = []

    def make(name, *cells, host="lab", **viewport):
        context = chromium.new_context(viewport={"width": 1280, "height": 900, **viewport})
        contexts.append(context)
        notebook = Notebook(context, base, written(root, f"{name}-{host}.ipynb", TOOLS, *cells), HOSTS[host])
        notebook.wait_until_idle()
        notebook.run(0)
        return notebook

    yield make
    for context in contexts:
        context.close()


def ask(notebook):
    """The open question."""
    panel = notebook.page.locator(".nba-ask").first
    panel.wait_for(timeout=20_000)
    return panel


def say(notebook, label, title):
    """Press a button of the question that says this."""
    panel = notebook.page.locator(".nba-ask", has_text=title).first
    panel.wait_for(timeout=20_000)
    panel.get_by_role("button", name=label, exact=True).first.click()


def printed(notebook, number):
    notebook.run(number)
    return notebook.cell(number).locator(".jp-OutputArea-output").last.text_content().strip()


@everywhere
def test_leave_is_given_edited_and_refused_by_buttons_in_running_cells(opened, host):
    cells = ["%%agent --new -o run\nRemove `lamp`."] * 3
    notebook = opened("leave", *cells, "print(gone, run.tool_results[0].code)", host=host)
    notebook.run(1, wait=False)
    notebook.shot(f"asking-leave-{host}")
    say(notebook, "Approve", "Let it run remove")
    notebook.wait_until_idle()
    assert printed(notebook, 4) == "['lamp'] None"

    notebook.run(2, wait=False)
    panel = ask(notebook)
    panel.get_by_role("button", name="Edit").first.click()
    panel.locator("textarea.nba-editor").fill('{"path": 4}')
    panel.get_by_role("button", name="Approve", exact=True).click()
    assert "path" in panel.locator(".nba-fault").text_content()
    panel.locator("textarea.nba-editor").fill('{"path": "chair"}')
    panel.get_by_role("button", name="Approve", exact=True).click()
    notebook.wait_until_idle()
    assert printed(notebook, 4) == "['lamp', 'chair'] None"

    notebook.run(3, wait=False)
    panel = ask(notebook)
    panel.get_by_role("button", name=re.compile("Reject")).first.click()
    panel.locator("textarea, input").last.fill("it is not yours")
    panel.get_by_role("button", name="Reject", exact=True).click()
    notebook.wait_until_idle()
    assert printed(notebook, 4) == "['lamp', 'chair'] refused"
    assert "it is not yours" in notebook.cell(3).locator(".jp-OutputArea").text_content()
    notebook.save()
    notebook.page.reload()
    notebook.cell(3).locator(".nba[data-status='ended']").wait_for(timeout=30_000)
    notebook.cell(3).scroll_into_view_if_needed()
    notebook.shot(f"asking-reloaded-{host}")
    notebook.shut_down()
    assert problems(notebook) == []


@everywhere
def test_the_file_task_is_stepped_with_an_edit_a_fault_and_a_branch(opened, host):
    from nb_agent.lessons.demo import PROMPT

    notebook = opened("step", f"%%agent --step -o run\n{PROMPT}", COUNT, host=host)
    notebook.run(1, wait=False)
    say(notebook, "Next", "Request 1 is about to go out")
    notebook.page.locator(".nba-ask", has_text="is about to run").first.wait_for(timeout=20_000)
    notebook.shot(f"step-call-{host}")
    panel = ask(notebook)
    panel.get_by_role("button", name=re.compile("Inject")).first.click()
    panel.locator("select").first.select_option("times_out")
    panel.get_by_role("button", name="Inject", exact=True).click()
    for title in ["search_files is about to run", "The result", "The result"]:
        say(notebook, "Next", title)
    notebook.page.locator(".nba-ask", has_text="Request 2 is about to go out").first.wait_for(timeout=20_000)
    notebook.shot(f"step-fault-{host}")
    panel = ask(notebook)
    panel.get_by_role("button", name=re.compile("Go back")).first.click()
    panel.locator("select").last.select_option(index=0)
    panel.get_by_role("button", name="Go back, as a branch").click()
    notebook.page.locator(".nba-ask", has_text="Request 1 is about to go out").first.wait_for(timeout=20_000)
    notebook.shot(f"step-branch-{host}")
    say(notebook, "Next", "Request 1 is about to go out")
    panel = notebook.page.locator(".nba-ask", has_text="read_file is about to run").first
    panel.get_by_role("button", name="Edit").first.click()
    panel.locator("textarea.nba-editor").fill('{"path": "README.md"}')
    panel.get_by_role("button", name="Next", exact=True).click()
    say(notebook, "Run on", "search_files is about to run")
    notebook.wait_until_idle()
    assert printed(notebook, 2) == "stop 1 3 True"
    notebook.shut_down()
    assert problems(notebook) == []


@everywhere
def test_the_stop_button_ends_a_wait_at_once_and_the_next_cell_runs(opened, host):
    notebook = opened("interrupt", "%%agent --new -o run\nRemove `lamp`.", "print(run.reason)", host=host)
    notebook.run(1, wait=False)
    ask(notebook)
    began = time.monotonic()
    notebook.interrupt()
    notebook.page.locator(".jp-OutputArea", has_text="Interrupted").first.wait_for(timeout=5_000)
    assert time.monotonic() - began < 2.5
    assert printed(notebook, 2) == "cancelled"
    notebook.shut_down()


def test_a_run_that_waits_between_cells_is_answered_by_buttons_and_by_words(opened):
    notebook = opened("detach", "%%agent --detach -o run\nRemove `lamp`.", "%agent next", "print(gone, run.reason)")
    notebook.run(1)
    say(notebook, "Next", "Request 1 is about to go out")
    notebook.page.locator(".nba-ask", has_text="Let it run remove").first.wait_for(timeout=20_000)
    notebook.wait_until_idle()
    say(notebook, "Approve", "Let it run remove")
    notebook.page.locator(".nba-ask", has_text="The result").or_(
        notebook.page.locator(".nba-ask", has_text="result")
    ).first.wait_for(timeout=20_000)
    notebook.shot("detached")
    notebook.wait_until_idle()
    notebook.run(2)
    notebook.run(2)
    assert printed(notebook, 3) == "['lamp'] stop"
    notebook.shut_down()
    assert problems(notebook) == []


def test_a_question_is_readable_in_both_themes_and_in_a_narrow_window(opened):
    notebook = opened("narrow", "%%agent --step -o run\n移除台灯 `lamp`，谢谢。Remove `lamp` 🪔.", width=700)
    notebook.run(1, wait=False)
    panel = ask(notebook)
    panel.scroll_into_view_if_needed()
    notebook.shot("question-light")
    assert panel.get_by_role("button").count() > 3
    notebook.use_dark()
    notebook.page.wait_for_selector(".nba[data-theme='dark']")
    panel.scroll_into_view_if_needed()
    notebook.shot("question-dark")
    notebook.interrupt()
    notebook.shut_down()


def test_what_a_server_asks_in_the_middle_of_a_call_is_asked_by_buttons(opened):
    add = "%agent mcp add people --trust -- python -m nb_agent.mcp.lesson_server --dir . --ask"
    run = "%%agent --tools people__ask_nickname --policy write=go,read=go,danger=go -o run\nAsk for a nickname for U-1001."
    notebook = opened("server-asks", add, run, "print(run.tool_results[0].text)")
    notebook.run(1)
    notebook.run(2, wait=False)
    panel = notebook.page.locator(".nba-ask", has_text="asks you").first
    panel.wait_for(timeout=20_000)
    notebook.shot("asking-server")
    editor = panel.locator("textarea.nba-editor")
    if not editor.is_visible():
        panel.get_by_role("button", name="Edit").first.click()
    editor.fill('{"nickname": "Ada L."}')
    panel.get_by_role("button", name="Approve", exact=True).click()
    notebook.wait_until_idle()
    assert "Ada L." in printed(notebook, 3)
    notebook.shut_down()
    assert problems(notebook) == []
