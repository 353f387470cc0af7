"""The lab extension in Chromium: a saved run opens as the inspector without a kernel, in JupyterLab and in Notebook 7.

It is laid out as the wheel would install it, so an installed copy that is older does not matter. Screenshots go to ``screenshots``.
"""

import json
import re
import shutil
import tomllib
from pathlib import Path

import nbformat
import pytest
from lab_server import HARMLESS, SHOTS, browser, lab
from nbformat.sign import NotebookNotary
from samples import three_round_events
from test_views_saved import long_events, state_of

import nb_agent
from nb_agent.views.saved import MIME, saved

ROOT = Path(__file__).parent.parent
PROSE = """%%agent -o run
# The task
Don't guess: read `config.yaml` in this folder for what it says, is it's content not in order, and **report** that in a line.
"""

HOSTS = {"lab": "lab/tree", "notebook": "notebooks"}


def laid_out(target):
    """The files of the extension where a wheel would put them, below ``target``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, place in settings["shared-data"].items():
        shutil.copytree(ROOT / source, target / place, dirs_exist_ok=True)
    return target / "share" / "jupyter"


def test_the_wheel_ships_what_the_extension_loads(tmp_path):
    there = laid_out(tmp_path) / "labextensions" / "nb-agent"
    package = json.loads((there / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == nb_agent.__version__
    entry = (there / package["jupyterlab"]["_build"]["load"]).read_text(encoding="utf-8")
    for name in re.findall(r'new URL\("([^".]+\.\w+)", here\)', entry):
        assert (there / "static" / name).read_bytes() == (ROOT / "nb_agent/views/static" / name).read_bytes()
    assert f'"{MIME}"' in entry


#: What a page learns of an extension is its name in a list: this takes it out while the page comes in.
ABSENT = """{
    const seen = new MutationObserver(() => {
        const found = document.getElementById("jupyter-config-data");
        if (!found?.textContent.trimEnd().endsWith("}")) return;
        seen.disconnect();
        const known = JSON.parse(found.textContent);
        known.federated_extensions = known.federated_extensions.filter(({ name }) => name !== "nb-agent");
        found.textContent = JSON.stringify(known);
    });
    seen.observe(document, { childList: true, subtree: true, characterData: true });
}"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("saved-runs")


@pytest.fixture(scope="module")
def base(root):
    """A server with the extension, with notebooks that nobody has run here: one of them is trusted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(laid_out(root / ".installed")))
        patch.setenv("JUPYTER_DATA_DIR", str(root / ".data"))
        (root / ".data").mkdir()
        state = state_of(three_round_events())
        write(root, "trusted", PROSE, saved(state))
        notary = NotebookNotary(data_dir=str(root / ".data"))
        notary.sign(nbformat.read(root / "trusted.ipynb", 4))
        notary.store.close()
        write(root, "untrusted", PROSE + "\nanother", saved(state))
        broken = [{"version": 1, "gzip": "H4sIAAAA"}, {"version": 2}, {"version": 1, "rounds": 5}, 7, None, state]
        html = "<p>the HTML</p><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
        outputs = [saved(state_of(long_events(200))), *({MIME: one, "text/html": html, "text/plain": "the text"} for one in broken)]
        write(root, "others", "x = 1", *outputs)
        with lab(root) as base:
            yield base


def write(root, name, code, *bundles):
    outputs = [nbformat.v4.new_output("display_data", data=bundle) for bundle in bundles]
    cells = [nbformat.v4.new_code_cell(code, outputs=outputs), nbformat.v4.new_code_cell("don = 'python'  # for in")]
    # The colours of Python, and no kernel that JupyterLab would start by itself.
    metadata = {"language_info": {"name": "ipython", "mimetype": "text/x-ipython", "file_extension": ".py"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), root / f"{name}.ipynb")


@pytest.fixture(scope="module")
def context():
    with browser() as chromium:
        context = chromium.new_context(viewport={"width": 1280, "height": 1000})
        context.set_default_timeout(30_000)
        yield context


@pytest.fixture(scope="module")
def opening(context, base):
    """Opens a notebook with no kernel, once for all tests; nothing may be in the console of its page."""
    pages, errors = {}, []

    def make(name, host="lab", *, absent=False):
        if (name, host, absent) not in pages:
            page = pages[name, host, absent] = context.new_page()
            page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            if absent:
                page.add_init_script(ABSENT)
            page.goto(f"{base}/{HOSTS[host]}/{name}.ipynb" + ("?reset" if host == "lab" else ""))
            page.get_by_role("dialog").get_by_role("button", name="No Kernel").click()
        pages[name, host, absent].bring_to_front()
        return pages[name, host, absent]

    yield make
    for page in pages.values():
        page.close()  # a server waits for its pages before it ends
    assert [error for error in errors if not HARMLESS.search(error)] == []


def shot(page, name):
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


@pytest.mark.parametrize(
    ("host", "name"), [("lab", "trusted"), ("lab", "untrusted"), ("notebook", "trusted"), ("notebook", "untrusted")]
)
def test_a_saved_run_opens_as_the_full_inspector_without_a_kernel(opening, host, name):
    page = opening(name, host)
    run = page.locator(".jp-OutputArea-output .nba")
    run.wait_for()
    assert (run.get_attribute("data-rounds"), run.get_attribute("data-status")) == ("3", "ended")
    run.get_by_role("button", name="Call write_file").click()
    assert "report.md" in run.get_by_label("result", exact=True).inner_text()
    run.get_by_role("button", name="Reply 1", exact=False).click()
    assert run.get_by_role("tab", name="Stream").count() == 1
    assert page.locator(".nba-page").count() == 0
    shot(page, f"saved-{host}-{name}")


@pytest.mark.parametrize("host", HOSTS)
def test_agent_cells_look_like_prose_and_other_cells_like_python(opening, host):
    page = opening("trusted", host)
    prose = page.locator(".nba-prose")
    prose.wait_for()
    assert prose.count() == 1
    colours = "(lines) => lines.flatMap((line) => [line, ...line.querySelectorAll('*')]).map((one) => getComputedStyle(one).color)"
    lines = prose.locator(".cm-line:not(.nba-prose-magic)")
    assert len(set(lines.evaluate_all(colours))) == 1, "a quote begins no string and a word is no keyword"
    assert len(set(page.locator(".cm-editor:not(.nba-prose) .cm-line").evaluate_all(colours))) > 1
    assert prose.locator(".nba-prose-head").inner_text() == "# The task"
    assert prose.locator(".nba-prose-code").inner_text() == "`config.yaml`"
    assert prose.locator(".nba-prose-strong").inner_text() == "**report**"


def test_a_cell_becomes_prose_while_it_is_typed(opening):
    page = opening("untrusted", "notebook")
    python = page.locator(".jp-Notebook .jp-CodeCell").nth(1).locator(".cm-editor")
    python.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("%%agent\n")
    page.locator(".nba-prose").nth(1).wait_for()
    page.keyboard.press("Control+Home")
    page.keyboard.type("x")
    page.wait_for_function("document.querySelectorAll('.nba-prose').length === 1")


def test_the_keys_of_an_inspector_do_not_reach_the_notebook(opening):
    page = opening("trusted", "lab")
    run = page.locator(".nba")
    run.locator(".nba-item").first.click()
    for key in ("ArrowDown", "x", "d", "d"):
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 2
    assert run.locator(".nba-item[aria-current]").get_attribute("aria-label").startswith("Reply 1")


def test_it_follows_the_theme_and_fits_a_narrow_page(opening):
    page = opening("trusted", "notebook")
    for name in ("Settings", "Theme", "JupyterLab Dark"):
        page.locator(".lm-MenuBar-item:visible, .lm-Menu-item:visible", has_text=re.compile(f"^{name}$")).first.click()
    page.locator(".nba[data-theme=dark]").wait_for()
    shot(page, "saved-dark")
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.locator(".nba").evaluate("(run) => run.scrollWidth <= run.clientWidth && run.getBoundingClientRect().right <= 360")
    shot(page, "saved-dark-narrow")


def test_200_rounds_open_from_their_packed_form(opening):
    run = opening("others", "notebook").locator(".nba").first
    run.wait_for()
    assert run.get_attribute("data-rounds") == "200"


def test_what_cannot_be_drawn_leaves_the_html_and_runs_nothing(opening):
    page = opening("others", "notebook")
    page.get_by_text("the HTML").nth(4).wait_for()
    assert page.locator(".nba").count() == 2, "a state that is not packed is drawn as it is"
    assert page.title() != "owned"


def test_without_the_extension_the_html_shows(opening):
    page = opening("untrusted", "notebook", absent=True)
    page.locator(".nba-page").wait_for()
    assert "Read config.yaml" in page.locator(".nba-page").inner_text()
    assert page.locator(".nba, .nba-prose").count() == 0
    shot(page, "saved-without")
