"""The inspector on a plain page: questions and their answers, branches, the microscope, axe, and how long a long run keeps it busy.

What it shows of a run without a person is in test_views_inspector.py. axe-core comes from npm, as the lock file has it; where it
cannot be fetched, its tests are skipped, but never in CI.
"""

import json
import re
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from fetched import node_modules
from playwright.sync_api import sync_playwright
from samples import CALLS, count, failing_events, hostile_events, three_round_events

from nb_agent import Agent
from nb_agent.events import Delta
from nb_agent.kit.files import file_tools
from nb_agent.lessons.demo import PROMPT, make_folder
from nb_agent.stepping import CHOICES
from nb_agent.views import fold as folding
from nb_agent.views.fold import Fold

STATIC = Path(folding.__file__).parent / "static"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
BACK = {"light": "#fff", "dark": "#111418"}
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title><style>body{margin:10px;background:BACK}</style>
<style>CSS</style><main><div id="here"></div></main><script type="module">
window.m = await import(URL.createObjectURL(new Blob([JS], { type: "text/javascript" })));
window.said = [];
const answer = (message) => said.push(message);
window.show = (state) => { window.view = m.mount(document.getElementById("here"), state, { answer }); };
window.ready = true;
</script></html>"""


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    assert path, "chromium is missing: the inspector is tested in a real browser (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def mounted(chromium):
    """A page with the inspector of a state; no page may have logged an error."""
    pages, errors = [], []

    def make(state, theme="light", width=1000):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(5_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        css, js = ((STATIC / name).read_text(encoding="utf-8") for name in ("inspector.css", "inspector.js"))
        source = json.dumps(js).replace("<", "\\u003c")
        page.set_content(PAGE.replace("JS", source).replace("CSS", css).replace("BACK", BACK[theme]))
        page.wait_for_function("window.ready")
        page.evaluate("(state) => show(state)", state)
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.close()
    assert errors == []


def timed(events):
    """The same events, with fragments 25 ms apart."""
    return [replace(event, seconds=0.1 + place / 40) if isinstance(event, Delta) else event for place, event in enumerate(events)]


def state_of(events):
    fold = Fold(count)
    for event in events:
        fold.apply(event)
    return fold.state


SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}


def asked(**more):
    """The question whether the third call may run."""
    question = {"id": "q1", "at": "call", "round": 1, "call": 0, "asks": "it writes a file: report.md", "problem": ""}
    question |= {"edits": json.dumps(json.loads(CALLS[2].arguments), indent=2), "schema": SCHEMA, "faults": ["fails", "times_out"]}
    return question | {"choices": ["approve", "always", "reject", "inject", "back", "stop"]} | more


@pytest.fixture
def waiting():
    """The state of a run that waits before its third call."""
    events = timed(three_round_events())
    at = next(place for place, event in enumerate(events) if getattr(getattr(event, "call", None), "id", "") == "call_3")
    return state_of(events[: at + 1])


@pytest.fixture
def branched():
    whole = state_of(timed(three_round_events()))
    other = deepcopy(whole)
    del other["branches"]
    other["rounds"][1]["calls"][0]["result"]["text"] = "PermissionError: report.md"
    other["rounds"][1]["calls"][0]["arguments"] = '{"path": "报告.md", "content": ""}'
    return whole | {"branches": [{"label": "", "from_round": 1, "state": other}]}


def button(page, name, *, exact=True):
    return page.get_by_role("button", name=name, exact=exact)


def said(page):
    return page.evaluate("said")


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent")


def put(page, question):
    page.evaluate("(question) => view.apply([['set', ['question'], question]])", question)


# ------------------------------------------------------------------------------------------------------- questions


def test_a_question_stands_under_the_ladder_of_its_call_and_is_said(mounted, waiting):
    page = mounted(waiting)
    put(page, asked())
    assert page.locator(".nba-status").inner_text() == "waiting for you"
    assert page.locator(".nba-steps + * ~ * .nba-ask").count() == 1
    assert page.locator("p[role=status]").text_content() == "Let it run write_file? it writes a file: report.md"
    names = [name for name in page.locator(".nba-choices button").all_inner_texts() if name]
    assert names == ["Approve", "Edit…", "Always in this run", "Reject…", "Inject a fault…", "Go back…", "Stop"]
    assert page.evaluate("document.activeElement === document.body"), "nobody was here: the focus stays where it was"
    page.locator(".nba-item").first.click()
    assert page.locator(".nba-ask").count() == 0
    button(page, "Show the question").click()
    assert focused(page) == "Let it run write_file?"


@pytest.mark.parametrize(("name", "choice"), [("Approve", "approve"), ("Always in this run", "always"), ("Stop", "stop")])
def test_a_button_answers_once(mounted, waiting, name, choice):
    page = mounted(waiting | {"question": asked()})
    button(page, name).dblclick()
    page.keyboard.press("a")
    assert said(page) == [{"kind": "answer", "id": "q1", "choice": choice}]
    assert "Sent" in page.locator(".nba-ask").inner_text()
    put(page, None)
    assert page.locator(".nba-ask").count() == 0
    assert page.evaluate("document.activeElement.className") == "nba"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"path": 5, "content": ""}', "Not sent: “path”: a string is needed, not 5."),
        ('{"path": "a"}', "Not sent: “content” is missing."),
        ('{"path": "a", "content": "", "x": 1}', "Not sent: “x” is not known; there are: path, content."),
        ("[]", "Not sent: an object is needed, not []."),
        ('{"path": "a",', "Not sent: this is no JSON: "),
    ],
)
def test_wrong_json_is_said_in_one_line_and_nothing_is_sent(mounted, waiting, text, wrong):
    page = mounted(waiting | {"question": asked()})
    button(page, "Edit…").click()
    page.locator(".nba-editor").fill(text)
    button(page, "Approve").click()
    assert page.get_by_role("alert").inner_text().startswith(wrong)
    assert "\n" not in page.get_by_role("alert").inner_text()
    assert said(page) == []
    assert focused(page) == "JSON that goes on instead"
    page.locator(".nba-editor").fill('{"path": "报告.md", "content": ""}')
    page.keyboard.press("Control+Enter")
    assert said(page) == [{"kind": "answer", "id": "q1", "choice": "approve", "text": '{"path": "报告.md", "content": ""}'}]


def test_an_edit_that_is_left_as_it_was_is_not_sent(mounted, waiting):
    page = mounted(waiting | {"question": asked()})
    button(page, "Edit…").click()
    page.locator(".nba-editor").fill("no JSON")
    button(page, "Leave it as it was").click()
    button(page, "Approve").click()
    assert said(page) == [{"kind": "answer", "id": "q1", "choice": "approve"}]


def test_reject_inject_and_back_say_what_they_need(mounted, waiting):
    page = mounted(waiting | {"question": asked()})
    page.locator(".nba-item[aria-current]").focus()
    page.keyboard.press("r")
    page.keyboard.type("a w n: not this file")
    page.keyboard.press("Enter")
    put(page, asked(id="q2"))
    button(page, "Inject a fault…").click()
    page.get_by_label("What goes wrong").select_option("times_out")
    button(page, "Inject").click()
    put(page, asked(id="q3"))
    button(page, "Go back…").click()
    page.get_by_label("Round to go back to").select_option("round 1")
    button(page, "Go back, as a branch").click()
    assert [{key: value for key, value in message.items() if key != "kind"} for message in said(page)] == [
        {"id": "q1", "choice": "reject", "reason": "a w n: not this file"},
        {"id": "q2", "choice": "inject", "fault": "times_out"},
        {"id": "q3", "choice": "back", "round": 0},
    ]


def test_the_keys_step_and_the_focus_goes_with_the_questions(mounted, waiting):
    page = mounted(waiting)
    page.locator(".nba-item[aria-current]").focus()
    steps = ["next", "to_call", "run_on", "stop"]
    for number, key in enumerate("ncg"):
        put(page, asked(id=str(number), asks="", choices=steps))
        page.keyboard.press("Escape")
        page.keyboard.press("a")  # not offered here
        page.keyboard.press(key)
        assert focused(page) == "write_file is about to run."
    assert [message["choice"] for message in said(page)] == steps[:3]
    put(page, asked(id="3", asks="", choices=steps))
    page.keyboard.press("e")
    page.keyboard.type("ngc")
    assert len(said(page)) == 3, "letters in a text field are letters"


def test_a_result_is_edited_as_text_and_a_request_where_it_stands(mounted, waiting):
    page = mounted(waiting)
    put(page, asked(at="result", call=0, asks="", edits='"one\\ntwo"', schema={"type": "string"}, choices=["next", "stop"]))
    button(page, "Edit…").click()
    assert page.locator(".nba-editor").input_value() == "one\ntwo"
    page.locator(".nba-editor").fill('"three"\n四')
    button(page, "Next").click()
    assert json.loads(said(page)[0]["text"]) == '"three"\n四'
    put(page, asked(id="q2", at="request", call=None, asks="", edits='{"model": "m"}', schema={"type": "object"}, choices=["next"]))
    assert page.locator(".nba-item[aria-current]").get_attribute("aria-label") == "Request 2, 390 tokens"
    assert "Request 2 is about to go out." in page.locator(".nba-pane").inner_text()


def test_who_plays_the_model_may_send_wrong_json_when_it_is_meant(mounted, waiting):
    page = mounted(waiting)
    put(page, asked(at="model", call=None, asks="", edits="{}", schema=None, choices=["next", "stop"]))
    page.locator(".nba-editor").fill('{"arguments": ')
    button(page, "Send this reply").click()
    assert said(page) == []
    button(page, "Send this reply").click()
    assert said(page)[0]["text"] == '{"arguments": '


def test_a_problem_is_said_and_what_was_typed_stays(mounted, waiting):
    page = mounted(waiting | {"question": asked(schema=None)})
    button(page, "Edit…").click()
    page.locator(".nba-editor").fill('{"path": "../x", "content": ""}')
    button(page, "Approve").click()
    put(page, asked(id="q2", schema=None, problem="the arguments do not fit: path leaves the folder"))
    assert page.get_by_role("alert").inner_text() == "the arguments do not fit: path leaves the folder"
    assert page.locator(".nba-editor").input_value() == '{"path": "../x", "content": ""}'
    assert page.locator(".nba-editor").is_visible()


def test_a_person_who_reads_is_not_led_away_by_a_question(mounted, waiting):
    page = mounted(waiting)
    button(page, "Request 1", exact=False).click()
    page.locator(".nba-search").focus()
    put(page, asked())
    assert page.locator(".nba-item[aria-current]").get_attribute("aria-label").startswith("Request 1")
    assert focused(page) == "Search in the JSON of request 1"
    assert button(page, "Show the question").is_visible()


def test_what_a_person_changed_stands_beside_what_was_asked(mounted, waiting):
    page = mounted(waiting | {"question": asked()})
    here = ["rounds", 1, "calls", 0]
    result = {"text": "by hand", "images": [], "code": None}
    page.evaluate(
        "(changes) => view.apply(changes)",
        [
            *(["set", [*here, "asked"], CALLS[2].arguments], ["set", [*here, "arguments"], '{"path": "mine.md"}']),
            *(["set", [*here, "result"], result], ["set", [*here, "given"], result | {"text": "of the tool"}]),
            ["set", ["question"], None],
        ],
    )
    assert page.locator(".nba-signature code").inner_text() == 'write_file(path="mine.md")'
    assert page.locator("summary").all_inner_texts() == [
        *("What the model asked for, before a person changed it", "What the tool gave, before a person changed it")
    ]


def test_what_is_being_typed_stays_when_the_whole_state_comes_again(mounted, waiting):
    page = mounted(waiting | {"question": asked()})
    button(page, "Edit…").click()
    page.locator(".nba-editor").fill("half of")
    changes = [["set", [key], value] for key, value in (waiting | {"question": asked()}).items()]
    page.evaluate("(changes) => view.apply(changes)", changes)
    page.keyboard.type(" it")
    assert page.locator(".nba-editor").input_value() == "half of it"


def test_the_widget_sends_the_answer_and_a_saved_view_offers_none(mounted, waiting):
    page = mounted(waiting)
    page.evaluate(
        """(state) => {
        view.destroy();
        const model = { get: () => ({ seq: 0, state }), on() {}, off() {}, send: (message) => message.kind && said.push(message) };
        m.default.render({ model, el: document.getElementById("here") });
    }""",
        waiting | {"question": asked()},
    )
    button(page, "Approve").click()
    assert said(page) == [{"kind": "answer", "id": "q1", "choice": "approve"}]
    page.evaluate("(state) => m.mount(document.getElementById('here'), state)", waiting | {"question": asked(id="q2")})
    assert "The run waited for a person here." in page.locator(".nba-ask").last.inner_text()
    assert button(page, "Approve").count() == 1, "that of the widget, which has been used"


def test_a_question_of_hostile_words_is_text(mounted, waiting, branched):
    bad = "<img src=x onerror=alert(1)>{{7*7}}<script>document.title='owned'</script>\u202e"
    page = mounted(waiting | {"branches": [branched["branches"][0] | {"label": bad}]})
    put(page, asked(asks=bad, problem=bad, edits=json.dumps({bad: bad}), faults=[bad]))
    button(page, "Edit…").click()
    button(page, "Inject a fault…").click()
    for tab in page.get_by_role("tablist", name="Lines of this run").get_by_role("tab").all():
        tab.click()
        assert page.locator(".nba").first.locator("script, img, svg, iframe").count() == 0
    assert page.title() == "page"
    button(page, "Show the question").click()
    assert page.locator(".nba-why").inner_text() == bad
    assert page.locator(".nba-body").count() == 1


CONTRAST = """() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const paper = canvas.getContext("2d", { willReadFrequently: true });
    const probe = document.querySelector(".nba-tree").appendChild(document.createElement("i"));
    const mixed = (layers) => {
        for (const colour of layers) {
            probe.style.color = colour;
            paper.fillStyle = getComputedStyle(probe).color;
            paper.fillRect(0, 0, 1, 1);
        }
        return [...paper.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const linear = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const light = (layers) => mixed(layers).reduce((all, part, i) => all + [0.2126, 0.7152, 0.0722][i] * linear(part / 255), 0.05);
    const shade = "color-mix(in srgb, var(--accent) 14%, transparent)"; // of a row, see inspector.css
    const hit = getComputedStyle(document.querySelector(".nba-hit")).backgroundColor;
    const found = [[shade], ["var(--new)", shade], [hit]].flatMap((back) => ["--fg", "--fg2", "--key", "--text"].map((name) => {
        const [dark, bright] = [light(["var(--bg)", ...back]), light(["var(--bg)", `var(${name})`])].sort((a, b) => a - b);
        return bright / dark;
    }));
    probe.remove();
    return Math.min(...found);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_words_of_the_json_are_read_on_every_shade(mounted, branched, theme):
    page = mounted(branched, theme)
    button(page, "Request 3", exact=False).click()
    button(page, "tool calls 247 +177").click()
    assert page.evaluate(CONTRAST) >= 4.5


def test_the_buttons_are_the_choices_that_python_knows(mounted):
    assert sorted(mounted(Fold().state).evaluate("Object.keys(m.CHOICES)")) == sorted(CHOICES)


def test_a_run_is_stepped_edited_spoilt_and_left_from_the_page(mounted, tmp_path):
    make_folder(tmp_path)
    steps = Agent(tools=file_tools(tmp_path)[:3]).step(PROMPT, view=False)
    page = mounted(steps.run.state)

    def shown():
        return steps.run.state | {"question": steps.question}

    def answered(act):
        page.evaluate(
            "(state) => { said.length = 0; view.destroy(); show(state); }", steps.run.state | {"question": steps.question}
        )
        act()
        (message,) = said(page)
        steps.take(message)

    def edited():
        button(page, "Edit…").click()
        page.locator(".nba-editor").fill('{"path": "README.md"}')
        button(page, "Next").click()

    def spoilt():
        button(page, "Inject a fault…").click()
        page.get_by_label("What goes wrong").select_option("times_out")
        button(page, "Inject").click()

    def left():
        button(page, "Go back…").click()
        page.get_by_label("Round to go back to").select_option("round 1")
        button(page, "Go back, as a branch").click()

    answered(lambda: button(page, "Run to the next call").click())
    answered(edited)
    call = steps.run.state["rounds"][0]["calls"][0]
    assert json.loads(call["arguments"]) == {"path": "README.md"}
    while steps.question["at"] != "call":
        answered(lambda: button(page, "Next").click())
    answered(spoilt)
    assert steps.run.state["rounds"][0]["calls"][1]["result"]["code"] == "tool_timeout"
    while steps.question["round"] == 0:
        answered(lambda: button(page, "Next").click())
    answered(left)
    assert steps.question["at"] == "request"
    page.evaluate("(state) => { view.destroy(); show(state); }", shown())
    assert page.get_by_role("tablist", name="Lines of this run").get_by_role("tab").count() == 3


def test_the_tab_key_goes_through_the_question_with_the_focus_in_sight(mounted, waiting):
    page = mounted(waiting | {"question": asked()})
    page.locator(".nba-item[aria-current]").focus()
    seen = []
    for _ in range(7):
        page.keyboard.press("Tab")
        seen.append(focused(page))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert seen == ["Approve", "Edit…", "Always in this run", "Reject…", "Inject a fault…", "Go back…", "Stop"]


# ------------------------------------------------------------------------------------------------------- branches, stream, parts


def test_lines_of_a_run_are_tabs_and_can_be_compared(mounted, branched):
    page = mounted(branched)
    tabs = page.get_by_role("tablist", name="Lines of this run").get_by_role("tab")
    assert tabs.all_inner_texts() == ["This line", "left at round 2", "Compare with left at round 2"]
    tabs.nth(1).click()
    inner = page.locator(".nba .nba")
    inner.get_by_role("button", name="Call write_file").click()
    assert "PermissionError" in inner.get_by_label("result", exact=True).inner_text()
    assert not page.locator(".nba-body").last.is_visible(), "one line at a time"
    tabs.nth(2).click()
    assert inner.count() == 0
    assert page.locator(".nba-differs caption").inner_text() == "The same up to round 1. They part in round 2."
    assert page.locator(".nba-differs th[scope=row]").all_inner_texts() == ["call 1 › arguments", "call 1 › result"]
    tabs.nth(0).click()
    assert page.locator(".nba-body").count() == 1
    assert page.locator(".nba-answer").is_visible()


def test_a_branch_takes_the_place_of_the_line_that_is_left(mounted, branched):
    page = mounted(branched | {"branches": []})
    shorter = branched["rounds"][:1]
    changes = [["set", ["rounds"], shorter], ["set", ["ending"], None], ["set", ["branches"], branched["branches"]]]
    page.evaluate("(changes) => view.apply(changes)", changes)
    assert page.locator(".nba-item").count() == 4
    assert page.locator(".nba-item[aria-current]").get_attribute("aria-label") == "Call search_files, 5 ms"
    assert page.get_by_role("tab", name="left at round 2", exact=True).is_visible()


def test_the_microscope_steps_scrubs_and_plays_both_ways(mounted, branched):
    page = mounted(branched)
    button(page, "Reply 1", exact=False).click()
    page.get_by_role("tab", name="Stream").click()
    button(page, "arguments of read_file whole at 3").click()
    holds = page.get_by_role("group", name="What the accumulator holds")
    assert re.split(r"\n+", holds.inner_text()) == ["Call read_file ✓ whole just now", '{"path":"config.yaml"}']
    button(page, "One fragment back").click()
    assert "… not whole yet" in holds.inner_text()
    assert page.locator(".nba-here").inner_text().startswith("2 · ")
    page.get_by_label("Place in the stream").focus()
    page.keyboard.press("End")
    assert page.get_by_label("Place in the stream").get_attribute("aria-valuetext").startswith("7 of 7 fragments")
    assert holds.inner_text().count("✓ whole") == 2
    page.get_by_label("Speed").fill("50")
    button(page, "Play backwards").click()
    page.locator(".nba-here").wait_for(state="detached")
    assert holds.inner_text().endswith("(empty)")
    button(page, "Play").click()
    page.wait_for_function("document.querySelector('.nba-slide').value === '7'")
    button(page, "Play").wait_for()


def test_a_part_of_the_token_bar_leads_to_its_json(mounted, branched):
    page = mounted(branched)
    button(page, "tool results 103 +27").click()
    assert page.locator(".nba-item[aria-current]").get_attribute("aria-label") == "Request 3, 594 tokens"
    first = page.locator(".nba-hit").inner_text()
    button(page, "tool results 103 +27").click()
    second = page.locator(".nba-hit").inner_text()
    assert ("answers call_1" in first, "answers call_2" in second) == (True, True)
    page.locator(".nba-bar .nba-tools").click()
    assert '"tools"' in page.locator(".nba-hit").inner_text()
    assert focused(page).startswith('"tools"')
    assert button(page, "overhead 11").count() == 0


def test_x_goes_from_error_to_error(mounted):
    page = mounted(state_of(failing_events()))
    page.locator(".nba-item").first.click()
    seen = []
    for _ in range(4):
        page.keyboard.press("x")
        seen.append(page.locator(".nba-item[aria-current]").get_attribute("aria-label").split(",")[0])
    assert seen == ["Call weather", "Call weather", "Reply 2", "Call weather"]


# ------------------------------------------------------------------------------------------------------- axe


@pytest.fixture(scope="module")
def axe():
    """The text of axe.js, fetched once as the lock file has it."""
    there = node_modules("axe", "axe-core")
    return (there / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page):
    """What axe finds on the page, none of it left out for being mild."""
    found = page.evaluate("async () => (await axe.run('#here')).violations")
    return [(entry["id"], entry["impact"], node["html"][:150]) for entry in found for node in entry["nodes"]]


@pytest.mark.parametrize(("theme", "width"), [("light", 1000), ("dark", 1000), ("light", 360), ("dark", 360)])
def test_axe_finds_nothing(mounted, axe, branched, waiting, theme, width):
    page = mounted(waiting | {"question": asked(problem="the arguments do not fit")}, theme, width)
    page.evaluate(axe)
    for opened in ("Edit…", "Reject…"):
        button(page, opened).click()
    assert violations(page) == []
    page.evaluate("(state) => { view.destroy(); show(state); }", branched)
    for place in range(3):
        page.locator(".nba-item").nth(place).click()
        for tab in page.locator(".nba-pane").get_by_role("tab").all():
            tab.click()
            assert violations(page) == []
    for tab in page.get_by_role("tablist", name="Lines of this run").get_by_role("tab").all():
        tab.click()
        assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_failed_and_in_hostile_runs(mounted, axe, theme):
    page = mounted(state_of(failing_events()), theme)
    page.evaluate(axe)
    for state in (state_of(failing_events()), state_of(hostile_events()), Fold().state):
        page.evaluate("(state) => { view.destroy(); show(state); }", state)
        for item in [None, *page.locator(".nba-item").all()]:
            if item:
                item.click()
            assert violations(page) == []


# ------------------------------------------------------------------------------------------------------- a long run

LONG = """async ({ rounds, pieces, size, ending }) => {
    const words = Array.from({ length: pieces }, (_, place) => `word ${place} `);
    const stream = [["text", 0, words.map((_, place) => place * 20), words]];
    const { port1, port2 } = new MessageChannel(); // setTimeout would wait for four milliseconds each time
    const rest = () => new Promise((done) => { port1.onmessage = done; port2.postMessage(0); });
    await rest();
    window.long = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => Math.round(entry.duration))))
        .observe({ entryTypes: ["longtask"] });
    const tell = async (changes) => { view.apply(changes); await rest(); };
    for (const [number, { begun, reply, call }] of rounds.entries()) {
        const path = ["rounds", number];
        await tell([["set", path, begun]]);
        for (let at = 0; at < pieces; at += size) {
            await tell(words.slice(at, at + size).map((word) => ["add", [...path, "live", "text"], word]));
        }
        const whole = { ...reply, text: words.join("").slice(0, 20000), stream };
        await tell([["set", [...path, "live"], null], ["set", [...path, "reply"], whole], ["set", [...path, "calls", 0], call]]);
    }
    await tell([["set", ["ending"], ending]]);
    await new Promise((done) => setTimeout(done, 120));
    return long;
}"""


def long_run(rounds, pieces, size):
    """A run of so many rounds, each with so many fragments, which come so many at a time."""
    state = state_of(three_round_events())
    shown = []
    for number in range(rounds):
        first = deepcopy(state["rounds"][min(number, 1)])
        said = f"Round {number + 1} says something about the files. "
        messages = [{"role": "assistant", "content": said}, {"role": "tool", "tool_call_id": "c", "content": said * 8}]
        if number:
            first["request"]["change"] = {"same": {"messages": 2 * number}, "new": {"messages": messages}}
        begun = first | {"number": number + 1, "live": {"text": "", "thinking": "", "calls": []}, "reply": None, "calls": []}
        shown.append({"begun": begun, "reply": first["reply"], "call": first["calls"][0]})
    return {"rounds": shown, "pieces": pieces, "size": size, "ending": state["ending"]}


SCRUB = """async () => {
    long.length = 0;
    [...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent === "Stream").click();
    const slide = document.querySelector(".nba-slide");
    for (let place = 0; place <= 65000; place += 1625) {
        await new Promise((done) => setTimeout(done, 0));
        slide.value = place;
        slide.dispatchEvent(new Event("input", { bubbles: true }));
    }
    await new Promise((done) => setTimeout(done, 120));
    return long;
}"""


def longest(measure):
    """The longest task in milliseconds; once more where another program may have had the processor."""
    took = 0
    for _ in range(3):
        took = max(measure(), default=0)
        if took < 100:
            break
    return took


def test_200_rounds_with_65000_fragments_keep_the_page_free(mounted):
    page = mounted(Fold().state)
    page.set_default_timeout(60_000)

    def measure():
        page.evaluate("(state) => { view.destroy(); show(state); }", Fold().state)
        return page.evaluate(LONG, long_run(200, 325, 110))

    assert longest(measure) < 100
    assert page.locator(".nba").get_attribute("data-rounds") == "200"


def test_one_reply_of_65000_fragments_keeps_the_page_free(mounted):
    page = mounted(Fold().state)
    page.set_default_timeout(60_000)

    def measure():
        page.evaluate("(state) => { view.destroy(); show(state); }", Fold().state)
        return page.evaluate(LONG, long_run(1, 65_000, 650))

    assert longest(measure) < 100
    page.get_by_role("button", name="Reply 1").click()
    assert longest(lambda: page.evaluate(SCRUB)) < 100
    assert page.locator(".nba-moment").count() == 13
    assert "before this" in page.get_by_role("group", name="What the accumulator holds").inner_text()
