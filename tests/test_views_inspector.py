"""inspector.js: its pure part under Node, the page in Chromium, and the saved HTML on paper and without its style."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from samples import ANSWER, count, failing_events, fold, hostile_events, state_of, three_round_events

from nb_agent.views import fold as folding
from nb_agent.views import html, text
from nb_agent.views.fold import Fold

HERE = Path(__file__).parent
STATIC = Path(folding.__file__).parent / "static"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
WAIT = 5_000  # ms at most for anything on the page

PAGE = """<!doctype html><meta charset="utf-8"><title>page</title><style>body{margin:10px;background:BACK}</style><style>CSS</style>
<button id="before">before</button><div id="here"></div><script type="module">
window.m = await import(URL.createObjectURL(new Blob([JS], { type: "text/javascript" })));
window.seen = [];
document.addEventListener("keydown", (event) => seen.push(event.key), true);
window.ready = true;
</script>"""


def inside(value):
    """A value as JavaScript inside a script element."""
    return json.dumps(value).replace("<", "\\u003c")


def test_the_pure_part_passes_under_node():
    node = shutil.which("node")
    assert node, "node is missing: install Node 20 or newer (Debian: apt-get install nodejs)"
    done = subprocess.run([node, "--test", str(HERE / "js")], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout


def test_both_views_use_the_same_words_and_colours(tmp_path):
    node = shutil.which("node")
    assert node, "node is missing: install Node 20 or newer (Debian: apt-get install nodejs)"
    module = shutil.copy(STATIC / "inspector.js", tmp_path / "inspector.mjs")
    code = "import(process.argv[1]).then((m) => console.log(JSON.stringify([m.PARTS, m.NEXT, m.STEPS])))"
    done = subprocess.run([node, "-e", code, Path(module).as_uri()], capture_output=True, timeout=30, check=True)
    said = json.loads(done.stdout)
    assert said == [text.WORDS, text.NEXT, list(folding.events.STEPS)]
    css = (STATIC / "inspector.css").read_text(encoding="utf-8")
    assert dict(re.findall(r"\.nba-(\w+) \{ background: (#\w{6}); \}", css)) == html.COLOURS


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    assert path, "chromium is missing: the inspector is tested in a real browser (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium):
    """Makes pages; at the end none of them may have logged an error."""
    pages, errors = [], []

    def make(back="#fff", **options):
        page = chromium.new_page(**({"viewport": {"width": 1000, "height": 700}} | options))
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        css, js = ((STATIC / name).read_text(encoding="utf-8") for name in ("inspector.css", "inspector.js"))
        page.set_content(PAGE.replace("JS", inside(js)).replace("CSS", css).replace("BACK", back))
        page.wait_for_function("window.ready")
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.close()
    assert errors == []


@pytest.fixture
def mounted(new_page):
    """A page with the inspector of a state."""

    def make(state, **options):
        page = new_page(**options)
        page.evaluate("(state) => { window.view = m.mount(document.getElementById('here'), state); }", state)
        return page

    return make


@pytest.fixture
def whole():
    return state_of(three_round_events())


def apply(page, changes):
    page.evaluate("(changes) => view.apply(changes)", changes)


def button(page, name):
    return page.get_by_role("button", name=name)


def current(page):
    return page.locator(".nba-item[aria-current]").get_attribute("aria-label")


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent")


# ------------------------------------------------------------------------------------------------------- what it shows


def test_an_ended_run_is_there_at_a_glance(mounted, whole):
    page = mounted(whole)
    root = page.locator(".nba")
    assert (root.get_attribute("data-rounds"), root.get_attribute("data-status")) == ("3", "ended")
    assert page.get_by_text("mock model · mock-8k").is_visible()
    assert page.locator(".nba-status").inner_text() == "ended: stop"
    assert page.locator(".nba-head").inner_text().split("\n")[-3:] == ["in 1,234 · out 243", "1.64 s", "ended: stop"]
    assert [item.get_attribute("aria-label") for item in page.locator(".nba-item").all()] == [
        *("Request 1, 244 tokens", "Reply 1, 2 calls, 48 tokens", "Call read_file, 3 ms", "Call search_files, 5 ms"),
        *("Request 2, 390 tokens", "Reply 2, 1 call, 131 tokens", "Call write_file, 11 ms"),
        *("Request 3, 594 tokens", "Reply 3, answer, 64 tokens"),
    ]
    assert page.locator(".nba-answer").inner_text() == ANSWER


def test_the_meter_names_each_part_and_the_difference(mounted, whole):
    page = mounted(whole)
    assert "Request 3: 594 tokens counted · 600 reported · difference +6" in page.locator(".nba-caption").inner_text()
    assert "7 % of the window of 8,192" in page.locator(".nba-caption").inner_text()
    assert page.locator(".nba-legend li").all_inner_texts() == [
        *("system 24", "tool calls 247 +177", "tool results 103 +27", "user 33", "tool definitions 176", "overhead 11"),
    ]
    widths = page.locator(".nba-bar .nba-part").evaluate_all("(parts) => parts.map((part) => part.getBoundingClientRect().width)")
    assert len(widths) == 6
    assert widths[1] / sum(widths) == pytest.approx(247 / 594, abs=0.01)
    assert page.locator(".nba-meter table tr").count() == 6


def test_a_request_marks_what_is_new_and_where_the_shared_part_ends(mounted, whole):
    page = mounted(whole)
    button(page, "Request 2").click()
    assert "60 % the same as request 1" in page.locator(".nba-title").inner_text()
    order = page.locator(".nba-tree .nba-new, .nba-tree .nba-line").evaluate_all(
        "(all) => all.map((el) => [el.className, el.getAttribute('aria-label') ?? el.textContent])"
    )
    assert [name for name, _ in order] == ["nba-line", "nba-node nba-new", "nba-node nba-new", "nba-node nba-new"]
    assert order[0][1] == (
        "the part shared with request 1 ends here: a prompt cache could reuse about 233 tokens, tool definitions included"
    )
    assert "assistant, calls read_file, search_files" in order[1][1]
    assert page.locator(".nba-new").first.evaluate("(el) => getComputedStyle(el).boxShadow") != "none"
    button(page, "Request 1").click()
    assert page.locator(".nba-new, .nba-line").count() == 0


def test_json_opens_and_closes_and_remembers(mounted, whole):
    page = mounted(whole)
    button(page, "Request 2").click()
    rows = page.get_by_role("treeitem")
    folded = rows.count()
    page.get_by_role("treeitem", name="tool, answers call_1").locator(".nba-row").click()
    assert rows.count() == folded + 3
    page.get_by_role("treeitem", name='"content": "{').locator(".nba-row").click()
    assert page.locator(".nba-long").count() == 0, "a short text needs no unfolding"
    button(page, "Reply 2").click()
    button(page, "Request 2").click()
    assert rows.count() == folded + 3
    page.locator(".nba-tree > .nba-node > .nba-row").click()
    assert rows.count() == 1


def test_the_other_tabs_hold_the_news_the_tokens_and_the_command(mounted, whole):
    page = mounted(whole)
    button(page, "Request 3").click()
    page.get_by_role("tab", name="What is new").click()
    assert "The first 5 entries of “messages” are those of request 2; 2 new." in page.get_by_role("tabpanel").inner_text()
    page.get_by_role("tab", name="Tokens").click()
    rows = {row.split("\t")[0]: row.split("\t")[1] for row in page.locator(".nba-table tr").all_inner_texts()}
    assert (rows["tool definitions"], rows["read_file"], rows["Counted"], rows["Difference"]) == ("176", "54", "594", "+6")
    page.get_by_role("tab", name="cURL").click()
    assert page.get_by_role("tabpanel").locator("pre").inner_text().startswith("curl -N \"$BASE_URL\"'/v1/chat/completions'")
    button(page, "Request 1").click()
    assert page.get_by_role("tab", name="cURL").get_attribute("aria-selected") == "true", "the choice of a tab stays"


def test_a_failed_call_is_plain_and_an_error_says_what_to_do(mounted):
    page = mounted(state_of(failing_events()))
    assert "run the cell again" in page.locator(".nba-note").inner_text()
    assert page.locator(".nba-status").inner_text() == "ended: error"
    button(page, "Call weather, failed").first.click()
    steps = page.get_by_role("list", name="Steps of the call").get_by_role("listitem").all_inner_texts()
    assert [re.sub(r"[^a-z: ]", "", step).strip() for step in steps] == [
        *("known: done", "parsed: done", "fits schema: failed", "policy: skipped", "run: skipped", "result: skipped"),
        "back to model: done",
    ]
    assert page.locator(".nba-fault").inner_text() == "Failed at “fits schema”: town: 5 is not a string"
    button(page, "Call weather, failed").last.click()
    assert not page.get_by_label("traceback").is_visible()
    page.get_by_text("Traceback (for you").click()
    assert "ZeroDivisionError" in page.get_by_label("traceback").inner_text()


def test_foreign_text_is_text_everywhere(mounted):
    state = state_of(hostile_events())
    page = mounted(state)
    for number in range(page.locator(".nba-item").count()):
        page.locator(".nba-item").nth(number).click()
        for tab in page.get_by_role("tab").all():
            tab.click()
        assert page.locator(".nba").locator("script, svg, img, i:not(.nba-part), b b").count() == 0
    assert page.title() == "page"
    assert '<img src=x onerror=alert(2)> & "quotes"' in page.get_by_label("result").inner_text()
    assert page.locator(".nba-signature code").inner_text() == '<b>t</b>(q="</td><script>alert(1)</script>")'


def test_a_picture_is_shown_from_its_bytes_and_never_fetched(mounted, whole):
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = {"media_type": "image/png", "data": None, "url": None}
    images = [
        image | {"data": dot},
        image | {"url": "https://example.test/spy.png"},
        image | {"data": dot, "media_type": "image/svg+xml"},
    ]
    whole["rounds"][0]["calls"][0]["result"] = {"text": "", "images": images, "code": None}
    page = mounted(whole)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    button(page, "Call read_file").click()
    assert page.locator("img").count() == 1
    assert page.locator("img").evaluate("(el) => el.decode().then(() => el.naturalWidth)") == 1
    assert "picture at https://example.test/spy.png (not fetched)" in page.locator(".nba-pane").inner_text()
    assert [url for url in asked if not url.startswith("data:")] == []


# ------------------------------------------------------------------------------------------------------- while it runs


@pytest.mark.parametrize("events", [three_round_events, failing_events, hostile_events])
def test_the_live_view_ends_as_the_whole_one(mounted, events):
    state, changes = fold(events())
    live, at_once = mounted(Fold().state), mounted(state)
    for some in changes:
        apply(live, some)
    for page in (live, at_once):
        page.locator(".nba-item").last.click()
    assert live.locator(".nba").inner_text() == at_once.locator(".nba").inner_text()


def test_the_newest_is_followed_until_somebody_chooses(mounted):
    _, changes = fold(three_round_events())
    page = mounted(Fold().state)
    told = []
    for some in changes[:40]:
        apply(page, some)
        told.append((current(page) or "").split(",")[0] if page.locator(".nba-item").count() else "")
    assert list(dict.fromkeys(told)) == ["", "Request 1", "Reply 1", "Call read_file", "Call search_files", "Request 2", "Reply 2"]
    button(page, "Call read_file").click()
    for some in changes[40:70]:
        apply(page, some)
    assert current(page) == "Call read_file, 3 ms"
    button(page, "Follow the run").click()
    assert current(page).startswith("Reply 3")
    for some in changes[70:]:
        apply(page, some)
    assert page.locator(".nba-answer").inner_text() == ANSWER
    assert not button(page, "Follow the run").is_visible()


def test_streamed_text_grows_in_place(mounted):
    _, changes = fold(three_round_events())
    page = mounted(Fold().state)
    for some in changes[:-10]:
        apply(page, some)
    assert page.locator(".nba-status").inner_text() == "running: reply 3 is coming"
    assert "coming…" in page.locator(".nba-title").inner_text()
    page.evaluate("window.node = document.querySelector('.nba-answer').firstChild")
    page.evaluate("getSelection().setBaseAndExtent(node, 0, node, 6)")
    had = page.locator(".nba-answer").inner_text()
    assert ANSWER.startswith(had)
    for some in changes[-10:]:
        apply(page, some)
    assert page.evaluate("() => [node.isConnected, node.data, String(getSelection())]") == [True, ANSWER, "I read"]


def test_calls_are_seen_as_their_arguments_come(mounted):
    _, changes = fold(three_round_events())
    page = mounted(Fold().state)
    for some in changes[:5]:
        apply(page, some)
    assert current(page) == "Reply 1, 1 call, coming"
    shown = page.locator(".nba-call").all_inner_texts()
    assert len(shown) == 1
    assert shown[0].startswith('read_file {"path"')


def test_focus_folding_and_scroll_stay_while_it_goes_on(mounted):
    _, changes = fold(three_round_events())
    page = mounted(Fold().state)
    for some in changes[:20]:
        apply(page, some)
    button(page, "Request 1").click()
    page.get_by_role("treeitem", name='"tools"').locator(".nba-row").click()
    page.evaluate("window.tree = document.querySelector('.nba-tree')")
    page.locator(".nba-pane").evaluate("(pane) => { pane.style.maxHeight = '90px'; pane.scrollTop = 60; }")
    before = focused(page)
    for some in changes[20:]:
        apply(page, some)
    assert page.evaluate("tree.isConnected")
    assert focused(page) == before
    assert "tools" in before
    assert page.evaluate("document.querySelector('.nba-pane').scrollTop") == 60


def test_3000_pieces_are_drawn_in_time(mounted):
    page = mounted(state_of(list(three_round_events())[:2]))
    took = page.evaluate("""() => {
        view.apply([["set", ["rounds", 0, "live"], { text: "", thinking: "", calls: [] }]]);
        const begun = performance.now();
        for (let i = 0; i < 3000; i += 1) view.apply([["add", ["rounds", 0, "live", "text"], `word ${i} `]]);
        document.body.offsetHeight;
        return performance.now() - begun;
    }""")
    assert page.locator(".nba-answer").inner_text().rstrip().endswith("word 2999")
    assert took < 3_000


def test_the_end_of_a_growing_text_stays_in_sight_until_somebody_scrolls_up(mounted):
    page = mounted(state_of(list(three_round_events())[:3]))
    end = "(pane) => pane.scrollHeight > pane.clientHeight && pane.scrollHeight - pane.scrollTop - pane.clientHeight < 2"
    more = [["add", ["rounds", 0, "live", "text"], "a line of text\n" * 60]]
    for _ in range(3):
        apply(page, more)
        page.wait_for_function(f"({end})(document.querySelector('.nba-pane'))")
    page.locator(".nba-pane").evaluate("(pane) => new Promise((done) => { pane.onscroll = done; pane.scrollTop = 40; })")
    apply(page, more)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.locator(".nba-pane").evaluate("(pane) => pane.scrollTop") == 40


def test_the_status_is_announced_only_when_it_changes(mounted):
    _, changes = fold(three_round_events())
    page = mounted(Fold().state)
    for some in changes[:-20]:
        apply(page, some)
    page.evaluate("""() => { window.told = 0; const watch = new MutationObserver((all) => { told += all.length; });
        watch.observe(document.querySelector('.nba-status'), { childList: true, characterData: true, subtree: true }); }""")
    for some in changes[-20:-2]:
        apply(page, some)
    assert page.evaluate("told") == 0
    assert page.locator(".nba-status").get_attribute("role") == "status"


# ------------------------------------------------------------------------------------------------------- keys


def test_arrows_move_and_fold_in_the_rail(mounted, whole):
    page = mounted(whole)
    page.locator(".nba-item[aria-current]").focus()
    page.keyboard.press("ArrowUp")
    assert current(page) == focused(page) == "Request 3, 594 tokens"
    page.keyboard.press("ArrowUp")
    assert (current(page), "Round 3" in focused(page)) == ("Request 3, 594 tokens", True)
    page.keyboard.press("ArrowUp")
    assert current(page) == "Call write_file, 11 ms"
    page.keyboard.press("ArrowLeft")
    assert not button(page, "Call write_file").is_visible()
    assert page.get_by_role("button", name="Round 2").get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowUp")
    assert current(page) == "Call search_files, 5 ms"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert button(page, "Call write_file").is_visible()


def test_the_tab_key_finds_one_stop_in_the_meter_the_rail_and_the_tree(mounted, whole):
    page = mounted(whole)
    button(page, "Request 2").click()
    page.locator("#before").focus()
    stops = []
    for _ in range(6):
        page.keyboard.press("Tab")
        stops.append(focused(page))
    assert stops.pop(0) == "system 24"
    assert stops[0] == "Request 2, 390 tokens"
    assert stops[1] == "JSON"
    assert stops[2] == "Search in the JSON of request 2"
    assert stops[3] == "Copy"
    assert stops[4].startswith("{")


def test_arrows_move_and_fold_in_the_tree(mounted, whole):
    page = mounted(whole)
    button(page, "Request 2").click()
    page.get_by_role("treeitem").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert focused(page).startswith('"role": "system"')
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert focused(page).startswith("{ system")
    page.keyboard.press("Enter")
    assert page.locator(':focus[aria-expanded="true"]').count() == 1
    page.keyboard.press("End")
    assert focused(page).startswith('"stream": true')


def test_slash_searches_and_enter_goes_on(mounted, whole):
    page = mounted(whole)
    button(page, "Request 3").click()
    page.get_by_role("tab", name="Tokens").click()
    page.keyboard.press("/")
    page.keyboard.type("部署说明")
    assert page.locator(".nba-toolbar").inner_text().startswith("1 of 1")
    assert "部署说明" in page.locator(".nba-hit").inner_text()
    page.keyboard.press("Control+a")
    page.keyboard.type("write_file")
    assert "1 of 2" in page.locator(".nba-toolbar").inner_text()
    page.keyboard.press("Enter")
    assert "2 of 2" in page.locator(".nba-toolbar").inner_text()
    page.keyboard.type("nowhere")
    assert "nothing found" in page.locator(".nba-toolbar").inner_text()


def test_n_shows_what_is_new(mounted, whole):
    page = mounted(whole)
    button(page, "Call write_file").click()
    page.keyboard.press("n")
    assert current(page) == "Request 2, 390 tokens"
    assert page.get_by_role("tab", name="What is new").get_attribute("aria-selected") == "true"
    assert focused(page) == "What is new"
    page.keyboard.press("ArrowRight")
    assert focused(page) == "Tokens"


def test_keys_stay_away_from_the_notebook_except_those_with_a_modifier(mounted, whole):
    page = mounted(whole)
    button(page, "Request 2").click()
    page.evaluate("seen.length = 0")
    for key in ("x", "d", "ArrowDown", "Enter", "Control+s", "Shift+Enter", "Escape"):
        page.keyboard.press(key)
    assert page.evaluate("seen.filter((key) => !['Control', 'Shift'].includes(key))") == ["s", "Enter", "Escape"]
    page.locator("#before").focus()
    page.keyboard.press("x")
    assert page.evaluate("seen.at(-1)") == "x"


def test_a_long_list_is_drawn_a_part_at_a_time(mounted, whole):
    change = whole["rounds"][0]["request"]["change"]
    change["new"]["messages"] = [{"role": "user", "content": f"line {number}"} for number in range(350)]
    whole["rounds"] = whole["rounds"][:1]
    page = mounted(whole)
    button(page, "Request 1").click()
    assert page.get_by_role("treeitem", name="{ user").count() == 100
    page.get_by_text("show 100 of 250 more").click()
    assert page.get_by_role("treeitem", name="{ user").count() == 200
    page.keyboard.press("/")
    page.keyboard.type("line 333")
    assert "line 333" in page.locator(".nba-hit").inner_text()


# ------------------------------------------------------------------------------------------------------- how it looks

CONTRAST = """() => {
  const lin = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const over = (top, low) => [0, 1, 2].map((i) => top[i] * top[3] + low[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => 0.2126 * lin(r / 255) + 0.7152 * lin(g / 255) + 0.0722 * lin(b / 255);
  const low = [];
  for (const el of document.querySelectorAll('.nba *')) {
    const own = [...el.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !el.checkVisibility({ visibilityProperty: true }) || el.closest('.nba-sr')) continue;
    const chain = []; for (let p = el; p; p = p.parentElement) chain.unshift(rgba(getComputedStyle(p).backgroundColor));
    const back = chain.reduce((low, top) => over(top, low), [255, 255, 255, 1]);
    const [a, b] = [light(over(rgba(getComputedStyle(el).color), back)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${el.className || el.tagName} ${ratio.toFixed(2)}: ${el.textContent.slice(0, 30)}`);
  }
  return low;
}"""


@pytest.mark.parametrize(("back", "theme"), [("#fff", "light"), ("#111", "dark")])
@pytest.mark.parametrize("events", [three_round_events, failing_events])
def test_all_text_has_enough_contrast(mounted, back, theme, events):
    page = mounted(state_of(events()), back=back)
    page.wait_for_function(f"document.querySelector('.nba').dataset.theme === '{theme}'")
    for number in range(page.locator(".nba-item").count()):
        page.locator(".nba-item").nth(number).click()
        assert page.evaluate(CONTRAST) == []


def test_the_theme_of_the_host_is_followed(mounted, whole):
    page = mounted(whole)
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function("document.querySelector('.nba').dataset.theme === 'dark'")
    page.evaluate("document.documentElement.style.setProperty('--jp-layout-color1', 'rgb(33, 33, 33)')")
    assert page.locator(".nba").evaluate("(el) => getComputedStyle(el).backgroundColor") == "rgb(33, 33, 33)"
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    page.wait_for_function("document.querySelector('.nba').dataset.theme === 'light'")


def test_a_narrow_view_has_the_rounds_as_a_strip_and_nothing_runs_out_of_it(mounted, whole):
    page = mounted(whole, viewport={"width": 420, "height": 800})
    for number in range(page.locator(".nba-item").count()):
        page.locator(".nba-item").nth(number).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 420
    rail, pane = (page.locator(name).bounding_box() for name in (".nba-rail", ".nba-pane"))
    assert rail["height"] < 60
    assert rail["y"] + rail["height"] <= pane["y"] + 1
    assert page.locator(".nba-item[aria-current]").evaluate(
        "(el) => el.getBoundingClientRect().right <= document.querySelector('.nba-rail').getBoundingClientRect().right"
    )


def test_nothing_moves_for_those_who_asked_for_it(mounted):
    moving = mounted(state_of(list(three_round_events())[:4]))
    still = mounted(state_of(list(three_round_events())[:4]), reduced_motion="reduce")
    name = "(el) => getComputedStyle(el, '::before').animationName"
    assert moving.locator(".nba-status").evaluate(name) == "nba-beat"
    assert still.locator(".nba-status").evaluate(name) == "none"


def test_destroy_leaves_nothing_behind(mounted, whole):
    page = mounted(whole)
    button(page, "Request 2").click()
    page.evaluate("view.destroy()")
    assert page.locator("#here").inner_html() == ""
    page.locator("#before").focus()
    page.evaluate("seen.length = 0")
    page.keyboard.press("n")
    assert page.evaluate("seen") == ["n"]


def test_two_views_of_one_run_do_not_disturb_each_other(mounted):
    _, changes = fold(three_round_events())
    page = mounted(Fold().state)
    page.evaluate(
        "(state) => { window.two = m.mount(document.body.appendChild(document.createElement('div')), state); }", Fold().state
    )
    page.evaluate("(all) => { for (const some of all) { view.apply(some); two.apply(some); } }", changes)
    assert page.locator(".nba-answer").all_inner_texts() == [ANSWER, ANSWER]


# ------------------------------------------------------------------------------------------------------- the widget

MODEL = """(state) => {
  const heard = { "msg:custom": new Set(), "change:truth": new Set() };
  window.sent = [];
  window.truth = { seq: 0, state };
  window.say = (message) => heard["msg:custom"].forEach((fn) => fn(message));
  window.push = (value) => { window.truth = value; heard["change:truth"].forEach((fn) => fn()); };
  window.listeners = () => heard["msg:custom"].size + heard["change:truth"].size;
  const on = (kind, fn) => heard[kind].add(fn);
  const off = (kind, fn) => heard[kind].delete(fn);
  const model = { get: () => window.truth, send: (message) => sent.push(message), on, off };
  window.undo = m.default.render({ model, el: document.getElementById("here") });
}"""


def say(page, seq, changes):
    page.evaluate("(message) => say(message)", {"type": "changes", "seq": seq, "changes": changes})


def test_the_widget_follows_from_its_first_message_though_nobody_answers(new_page):
    _, changes = fold(three_round_events())
    page = new_page()
    page.evaluate(MODEL, Fold().state)
    for number, some in enumerate(changes, 1):
        say(page, number, some)
    assert page.locator(".nba").get_attribute("data-status") == "ended"
    assert page.locator(".nba-answer").inner_text() == ANSWER


def test_the_widget_says_hello_until_the_state_comes(new_page):
    _, changes = fold(three_round_events())
    page = new_page()
    page.evaluate(MODEL, Fold().state)
    page.wait_for_function("sent.length >= 3")
    assert page.evaluate("new Set(sent.map((message) => JSON.stringify(message))).size") == 1
    assert page.evaluate("sent[0].type") == "hello"
    middle = fold(list(three_round_events())[:30])[0]
    page.evaluate("(state) => say({ type: 'state', seq: 30, state })", middle)
    told = page.evaluate("sent.length")
    say(page, 30, changes[29])  # it is in the state already
    for number, some in enumerate(changes[30:], 31):
        say(page, number, some)
    assert page.locator(".nba-answer").inner_text() == ANSWER
    page.wait_for_timeout(400)
    assert page.evaluate("sent.length") == told
    page.evaluate("undo()")
    assert page.evaluate("listeners()") == 0
    assert page.locator("#here").inner_html() == ""


def test_the_widget_asks_again_when_a_message_is_missing(new_page):
    state, changes = fold(three_round_events())
    page = new_page()
    page.evaluate(MODEL, Fold().state)
    page.evaluate("(state) => say({ type: 'state', seq: 0, state })", Fold().state)
    before = page.evaluate("sent.length")
    say(page, 2, changes[1])
    assert page.locator(".nba").get_attribute("data-rounds") == "0"
    page.wait_for_function(f"sent.length > {before}")
    page.evaluate("(state) => say({ type: 'state', seq: 90, state })", state)
    assert page.locator(".nba").get_attribute("data-rounds") == "3"


def test_a_truth_that_comes_unasked_closes_a_gap_and_is_never_taken_back(new_page):
    state, changes = fold(three_round_events())
    page = new_page()
    page.evaluate(MODEL, Fold().state)
    for number in range(20, 31):  # the first nineteen came before there was a view
        say(page, number, changes[number - 1])
    assert page.locator(".nba").get_attribute("data-rounds") == "0"
    page.evaluate("(state) => push({ seq: 24, state })", fold(list(three_round_events())[:24])[0])
    assert page.locator(".nba").get_attribute("data-rounds") == "2"
    for number, some in enumerate(changes[30:], 31):
        say(page, number, some)
    assert page.locator(".nba").inner_text().count("ended: stop") == 1
    page.evaluate("(state) => push({ seq: 24, state })", Fold().state)
    assert page.locator(".nba").get_attribute("data-rounds") == "3"
    assert state["ending"]


# ------------------------------------------------------------------------------------------------------- the saved page


def static(chromium, body, **options):
    page = chromium.new_page(**options)
    page.set_content(f"<!doctype html><meta charset='utf-8'><body>{body}")
    return page


def test_paper_holds_what_is_folded_on_the_screen(chromium, whole):
    page = static(chromium, html.page(whole))
    seen = "[...document.querySelectorAll('.nba-page details pre')].map((pre) => pre.checkVisibility())"
    assert set(page.evaluate(seen)) == {False}
    page.emulate_media(media="print")
    assert set(page.evaluate(seen)) == {True}
    page.close()


def test_the_saved_page_reads_without_its_style(chromium, whole):
    bare = re.sub(r' style="[^"]*"', "", re.sub(r"(?s)<style>.*?</style>", "", html.page(whole)))
    page = static(chromium, bare)
    shown = page.locator("body").inner_text()
    assert all(
        said in shown for said in ("mock model", "Ended: stop", "Round 3", "Request 2", "write_file", "600, +6 (template)", ANSWER)
    )
    page.close()


def test_the_saved_page_fits_a_narrow_window(chromium, whole):
    page = static(chromium, html.page(whole), viewport={"width": 420, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach((el) => { el.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.close()


def test_the_sample_counts_add_up(whole):
    for entry in whole["rounds"]:
        tokens = entry["request"]["tokens"]
        assert sum(tokens["parts"].values()) == tokens["total"]
    assert count.__doc__
