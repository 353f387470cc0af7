"""The inspector on a plain page: questions and their answers, branches, the microscope, axe, and how long a long run keeps it busy.

What it shows of a run without a person is in test_views_inspector.py. axe-core comes from npm, as the lock file has it; where it
cannot be fetched, its tests are skipped, but never in CI.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from samples import CALLS, count, failing_events, hostile_events, three_round_events

from nb_agent.events import Delta
from nb_agent.views import fold as folding
from nb_agent.views.fold import Fold

AXE = Path(__file__).parent / "js" / "axe"
STATIC = Path(folding.__file__).parent / "static"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
BACK = {"light": "#fff", "dark": "#111418"}
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title><style>body{margin:10px;background:BACK}</style>
<style>CSS</style><main><div id="here"></div></main><script type="module">
window.m = await import(URL.createObjectURL(new Blob([JS], { type: "text/javascript" })));
window.said = [];
window.show = (state) => { window.view = m.mount(document.getElementById("here"), state, { answer: (message) => said.push(message) }); };
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
    return [
        replace(event, seconds=0.1 + place / 40) if isinstance(event, Delta) else event for place, event in enumerate(events)
    ]


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


# ------------------------------------------------------------------------------------------------------- branches, stream, parts


def test_lines_of_a_run_are_tabs_and_can_be_compared(mounted, branched):
    page = mounted(branched)
    tabs = page.get_by_role("tablist", name="Lines of this run").get_by_role("tab")
    assert tabs.all_inner_texts() == ["This line", "left at round 2", "Compare with left at round 2"]
    tabs.nth(1).click()
    inner = page.locator(".nba .nba")
    inner.get_by_role("button", name="Call write_file").click()
    assert "PermissionError" in inner.get_by_label("result").inner_text()
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
    page.get_by_label("Speed, 1 is as it came").fill("50")
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
    there = AXE / "node_modules"
    try:
        if not (there / "axe-core" / "axe.min.js").exists():
            with tempfile.TemporaryDirectory(dir=AXE, prefix="node_modules-") as made:
                for name in ("package.json", "package-lock.json"):
                    shutil.copy(AXE / name, made)
                command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
                subprocess.run(command, cwd=made, capture_output=True, timeout=120, check=True)
                with suppress(OSError):  # another process was quicker
                    (Path(made) / "node_modules").rename(there)
    except (OSError, subprocess.SubprocessError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"axe-core cannot be fetched ({error}); try npm ci --prefix tests/js/axe")
    return (there / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page):
    """What axe finds on the page, none of it left out for being mild."""
    found = page.evaluate("async () => (await axe.run(document)).violations")
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

LONG = """async ({ rounds, size, ending }) => {
    const long = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ["longtask"] });
    const rest = () => new Promise((done) => setTimeout(done, 0));
    const tell = async (changes) => { view.apply(changes); await rest(); };
    for (const { begun, pieces, whole } of rounds) {
        await tell(begun);
        for (let at = 0; at < pieces.length; at += size) await tell(pieces.slice(at, at + size));
        await tell(whole);
    }
    await tell(ending);
    await new Promise((done) => setTimeout(done, 120));
    return long;
}"""


def long_run(rounds, pieces):
    """The changes of a run of so many rounds, each with so many fragments."""
    state, request = state_of(three_round_events()), None
    shown = []
    for number in range(rounds):
        request = deepcopy(state["rounds"][min(number, 1)])
        text = f"Round {number + 1} says something about the files. "
        stream = [[place * 20, [["text", 0, f"word {place} "]]] for place in range(pieces)]
        reply = request["reply"] | {"text": "".join(piece[0][2] for _, piece in stream), "stream": stream}
        call = request["calls"][0]
        kept = 2 + 2 * (number - 1)
        messages = [{"role": "assistant", "content": text}, {"role": "tool", "tool_call_id": "c", "content": text * 8}]
        if number:
            request["request"]["change"] = {"same": {"messages": kept}, "new": {"messages": messages}}
        begun = {**request, "number": number + 1, "live": {"text": "", "thinking": "", "calls": []}, "reply": None, "calls": []}
        path = ["rounds", number]
        shown.append(
            {
                "begun": [["set", path, begun]],
                "pieces": [["add", [*path, "live", "text"], f"word {place} "] for place in range(pieces)],
                "whole": [
                    *(["set", [*path, "live"], None], ["set", [*path, "reply"], reply], ["set", [*path, "calls", 0], call]),
                ],
            }
        )
    return {"rounds": shown, "size": 22, "ending": [["set", ["ending"], state["ending"]]]}


def test_200_rounds_with_65000_fragments_keep_the_page_free(mounted):
    page = mounted(Fold().state)
    page.set_default_timeout(60_000)
    took = page.evaluate(LONG, long_run(200, 325))
    assert page.locator(".nba").get_attribute("data-rounds") == "200"
    assert max(took, default=0) < 100, sorted(took)[-5:]


def test_one_reply_of_65000_fragments_keeps_the_page_free(mounted):
    page = mounted(Fold().state)
    page.set_default_timeout(60_000)
    took = page.evaluate(LONG, long_run(1, 65_000) | {"size": 220})
    assert max(took, default=0) < 100, sorted(took)[-5:]
    page.get_by_role("button", name="Reply 1").click()
    scrubbed = page.evaluate("""async () => {
        const long = [];
        new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ["longtask"] });
        [...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent === "Stream").click();
        const slide = document.querySelector(".nba-slide");
        for (let place = 0; place <= 65000; place += 1625) {
            await new Promise((done) => setTimeout(done, 0));
            slide.value = place;
            slide.dispatchEvent(new Event("input", { bubbles: true }));
        }
        await new Promise((done) => setTimeout(done, 120));
        return long;
    }""")
    assert page.locator(".nba-moment").count() == 13
    assert "before this" in page.get_by_role("group", name="What the accumulator holds").inner_text()
    assert max(scrubbed, default=0) < 100, sorted(scrubbed)[-5:]
