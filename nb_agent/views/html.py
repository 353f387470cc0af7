"""A run's state as static HTML, for the saved notebook: no script, no widget, no kernel, nothing fetched.

It carries its meaning in headings, tables, ``details`` and ``pre``, since code hosts and untrusted notebooks strip styles. What a
model or a tool wrote is escaped and stands in ``pre`` or ``code`` (where MathJax leaves dollar signs alone too). Its size grows
with the run and not with its square: a request is shown as what is new in it. The live view is inspector.js; both draw the state
of `fold`.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any, Final

from nb_agent.deltas import rebuild
from nb_agent.messages import PARTS
from nb_agent.values import JSON
from nb_agent.views import words

__all__ = ["page"]

#: The colours of the parts, the same in light and dark and in inspector.css.
COLOURS: Final[dict[str, str]] = {
    "system": "#64748b",
    "developer": "#475569",
    "history": "#0284c7",
    "assistant": "#7c3aed",
    "tool_calls": "#0e7490",
    "tool_results": "#15803d",
    "user": "#2563eb",
    "tools": "#a16207",
    "images": "#be185d",
    "overhead": "#9ca3af",
}

_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

# Built on the colour of the text around it, so it needs no theme. A closed `details` does not print: on paper all are opened.
_STYLE: Final = """
.nba-page{max-width:1040px;line-height:1.45}
.nba-page h3,.nba-page h4{margin:14px 0 4px;font-weight:600}
.nba-page h3{font-size:1.15em}.nba-page h4{font-size:1em}
.nba-page p{margin:4px 0}
.nba-page pre{margin:4px 0 8px;padding:7px 10px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;line-height:1.5;
border-radius:6px;color:inherit;background:color-mix(in srgb,currentColor 6%,transparent)}
.nba-page code{color:inherit;background:none;padding:0;overflow-wrap:anywhere}
.nba-page table{margin:4px 0 8px;border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums}
.nba-page caption{text-align:start;padding:0 0 4px;opacity:.8}
.nba-page th,.nba-page td{padding:2px 10px 2px 0;text-align:right;border:0;
border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent)}
.nba-page td{white-space:nowrap}.nba-page th:first-child{text-align:left}
.nba-page details{margin:4px 0;padding:3px 10px;border:1px solid color-mix(in srgb,currentColor 18%,transparent);border-radius:6px}
.nba-page summary{cursor:pointer;overflow-wrap:anywhere}
.nba-page ol{display:flex;flex-wrap:wrap;gap:0 16px;margin:4px 0;padding:0;list-style:none;font-size:12px}
.nba-page img{max-width:100%}
.nba-page .nba-bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}
@media print{.nba-page details>*{display:block}.nba-page details::details-content{content-visibility:visible;block-size:auto}}
"""


def page(state: JSON) -> str:
    """The complete run as a fragment of HTML.

    Args:
        state: as `nb_agent.views.fold.Fold` keeps it.
    """
    parts = ['<div class="nba-page tex2jax_ignore mathjax_ignore">', f"<style>{_STYLE}</style>", _head(state)]
    parts += [f"<h4>Prompt</h4>{_pre(state['prompt'])}" if state["prompt"] else ""]
    said = words.answer(state)
    title = "Answer" if said and state["rounds"][-1]["reply"] else "Answer, not whole"
    parts += [f"<h4>{title}</h4>{_pre(said)}" if said else "", _left(state["branches"]), _token_table(state)]
    body: JSON = {}
    for place, entry in enumerate(state["rounds"]):
        body = rebuild(body, entry["request"]["change"])
        parts.append(_round(state, place, body))
    return "\n".join([*filter(None, parts), "</div>"])


# ------------------------------------------------------------------------------------------------------- small things


def _text(foreign: Any) -> str:
    return escape(words.visible(str(foreign)))


def _pre(foreign: str) -> str:
    return f"<pre>\n{_text(foreign)}</pre>"  # the parser drops a first newline: this one, never one of the text's own


def _code(foreign: str) -> str:
    return f"<code>{_text(foreign)}</code>"


def _json(value: Any) -> str:
    return _pre(json.dumps(value, ensure_ascii=False, indent=2))


def _list(notices: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{_code(notice)}</li>' for notice in notices)}</ul>" if notices else ""


def _fold(title: str, *inside: str, opened: bool = False) -> str:
    return f"<details{' open' if opened else ''}><summary>{title}</summary>{''.join(inside)}</details>"


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


# ------------------------------------------------------------------------------------------------------- the parts of the page


def _head(state: JSON) -> str:
    model = f"<b>mock model</b> {_code(state['model'])}" if state["mock"] else _code(state["model"])
    window = f"window {state['window']:,} tokens" if state["window"] else ""
    lines = ["<h3>%%agent</h3>", f"<p>{_joined(model, _text(state['wire'].replace('_', ' ')), window, words.totals(state))}</p>"]
    ending = state["ending"]
    if not ending:
        return "".join([*lines, "<p><b>Running</b></p>"])
    lines.append(f"<p><b>Ended: {_text(ending['reason'].replace('_', ' '))}</b>, {_text(ending['meaning'])}.</p>")
    lines += [_pre(ending["error"])] if ending["error"] else []
    lines += [f"<p>{words.NEXT[ending['reason']]}</p>"] if ending["reason"] in words.NEXT else []
    return "".join(lines)


def _left(branches: list[JSON]) -> str:
    each = [words.left(branch) for branch in branches]
    return f"<h4>Lines of this run that were left</h4>{_list(each)}" if each else ""


def _token_table(state: JSON) -> str:
    shown = [entry for entry in state["rounds"] if not entry.get("brief")]
    counted = [(entry, entry["request"]["tokens"]) for entry in shown if entry["request"]["tokens"]]
    if not counted:
        return ""
    used = [part for part in PARTS if any(tokens["parts"].get(part) for _, tokens in counted)]
    swatch = '<span style="display:inline-block;width:9px;height:9px;background:{}"></span> {}'
    names = [
        "Request",
        *(swatch.format(COLOURS[part], words.WORDS[part]) for part in used),
        "counted",
        "reported",
        "written",
        "time",
    ]
    encodings = ", ".join(sorted({tokens["encoding"] for _, tokens in counted}))
    note = "" if all(tokens["exact"] for _, tokens in counted) else " (an estimate: this model's tokenizer is not public)"
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(_token_row(entry, tokens, used) for entry, tokens in counted)
    caption = f"<caption>Tokens of each request by part, counted with {_text(encodings)}{note}</caption>"
    most = max(tokens["total"] for _, tokens in counted)
    bars = "".join(_bar(entry["number"], tokens, used, most) for entry, tokens in counted)
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h4>Tokens</h4><div style="overflow-x:auto">{table}</div>{bars}'


def _token_row(entry: JSON, tokens: JSON, used: list[str]) -> str:
    reply = entry["reply"] or {"usage": None, "seconds": None, "explained": None}
    numbers = [words.figure(tokens["parts"].get(part, 0)) for part in used]
    reported = words.read(reply["usage"])
    more = ""
    if reported is not None and reported != tokens["total"]:
        more = f", {_text(words.difference(reported - tokens['total'], reply, 'input'))}"
    numbers += [
        f"<b>{tokens['total']:,}</b>",
        words.figure(reported) + more,
        words.figure(words.written(reply["usage"])),
    ]
    cells = "".join(f"<td>{cell}</td>" for cell in [*numbers, words.seconds(reply["seconds"])])
    return f'<tr><th scope="row">{entry["number"]}</th>{cells}</tr>'


def _bar(number: int, tokens: JSON, used: list[str], most: int) -> str:
    """A stacked bar of coloured spans. Where styles are dropped nothing of it is left, and the table says it all."""
    spans = "".join(
        f'<span title="request {number}, {words.WORDS[part]} {tokens["parts"][part]:,}" style="display:inline-block;height:10px;'
        f'background:{COLOURS[part]};width:{100 * tokens["parts"][part] / most:.2f}%"></span>'
        for part in used
        if tokens["parts"].get(part)
    )
    return f'<div class="nba-bar" style="height:10px;margin:3px 0;font-size:0;white-space:nowrap">{spans}</div>'


def _round(state: JSON, place: int, body: JSON) -> str:
    entry = state["rounds"][place]
    if entry.get("brief"):  # see `saved`
        return f"<p>{_text(words.brief(entry))}</p>"
    reply = entry["reply"]
    purpose = f", for a {_text(entry['purpose'])}" if entry["purpose"] else ""
    parts = [
        f"<h4>Round {entry['number']}{purpose}</h4>",
        _budget(entry["request"]),
        _list([words.compacted(cut) for cut in entry["compacted"]]),
    ]
    parts.append(_request(state, place, body))
    parts.append(_list([words.waited(retry) for retry in entry["retries"]]))
    if reply:
        parts.append(_reply(entry["number"], reply))
    elif entry["live"]:
        state_now = "cut off" if state["ending"] else "coming"
        parts.append(
            _fold(f"<b>Reply {entry['number']}</b> {state_now}", *_said(entry["live"]), *_begun(entry["live"]), opened=True)
        )
    return "".join([*parts, *(_call(call) for call in entry["calls"])])


def _budget(request: JSON) -> str:
    return f"<p>{_text(request['budget']['words'])}</p>" if request["budget"] else ""


def _request(state: JSON, place: int, body: JSON) -> str:
    entry = state["rounds"][place]
    request, change = entry["request"], entry["request"]["change"]
    size = words.plural(request["bytes"], "byte")
    title = f"<b>Request {entry['number']}</b> POST {_code(request['path'])} · {_joined(size, words.compared(entry))}"
    tools = (request["tokens"] or {}).get("tools") or {}
    each = ", ".join(f"{_code(name)} {number:,}" for name, number in tools.items())
    per_tool = f"<p>Tokens of the tool definitions: {each}</p>" if each else ""
    before = state["rounds"][place - 1]["number"] if place else None
    return _fold(title, _list(request["notices"]), per_tool, _novelty(change, body, before), _json(change.get("new", {})))


def _novelty(change: JSON, body: JSON, before: int | None) -> str:
    """In words: what of a request is that of the one before, so that the JSON under it can be what is new."""
    if before is None:
        return "<p>The whole request:</p>"
    said = [
        f"{_code(key)}: the first {shared:,} of {len(body[key]):,} are those of request {before}; the rest is new."
        for key, shared in change.get("same", {}).items()
    ]
    said += [f"{_code(key)}: set anew." for key in change.get("new", {}) if key not in change.get("same", {})]
    said += [f"{_code(key)}: no longer there." for key in change.get("gone", ())]
    return f"<p>{' '.join(said)} All else is as in request {before}. What is new:</p>"


def _said(reply: JSON) -> list[str]:
    thought = [f"<p>Thinking:</p>{_pre(reply['thinking'])}"] if reply["thinking"] else []
    return thought + ([_pre(reply["text"])] if reply["text"] else [])


def _begun(live: JSON) -> list[str]:
    return [_pre(f"{call['name']} {call['arguments']}") for call in live["calls"]]


def _reply(number: int, reply: JSON) -> str:
    raw = f" (on the wire: {_code(reply['raw_finish'])})" if reply["raw_finish"] not in (None, reply["finish"]) else ""
    first = f"first piece after {words.seconds(reply['first'])}" if reply["first"] is not None else ""
    facts = [_code(reply["finish"]) + raw, words.seconds(reply["seconds"]), first]
    facts.append(_text(words.output(reply)))
    usage = {key: value for key, value in (reply["usage"] or {}).items() if value is not None}
    reported = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in usage.items()) or "nothing"
    spent = f"<p>Tokens as the provider reported them: {reported}</p>"
    return _fold(f"<b>Reply {number}</b> {_joined(*facts)}", _list(reply["notices"]), *_said(reply), spent, _json(reply["body"]))


_SIGNS: Final = {"done": "✓", "failed": "✗", "skipped": "\u2013", "asked": "?"}


def _call(call: JSON) -> str:
    failed, result = words.fault(call), call["result"]
    outcome = f"<b>✗</b> {_code(failed)}" if failed else "done" if result else "no result"
    title = (
        f"<b>Call</b> {_code(words.signature(call['name'], call['arguments']))} {_joined(outcome, words.seconds(call['seconds']))}"
    )
    steps = "".join(f"<li>{_SIGNS[step['state']]} {_step(step)}</li>" for step in call["steps"])
    by = "as the model wrote them" if call["asked"] is None else "as a person changed them"
    inside = [f"<ol>{steps}</ol>" if steps else "", f"<p>Arguments, {by} ({_code(call['name'])}):</p>", _pre(call["arguments"])]
    if call["asked"] is not None:
        inside.append(f"<p>What the model had asked for:</p>{_pre(call['asked'])}")
    if call["given"] is not None:
        inside.append(f"<p>What the tool gave, before a person changed it:</p>{_pre(call['given']['text'])}")
    if result:
        inside += ["<p>Result, as the model reads it:</p>", _pre(result["text"]) if result["text"] else ""]
        inside += [_picture(image) for image in result["images"]]
    if call["whole"] is not None:
        inside.append(_fold("The whole result (the model got less)", _pre(call["whole"])))
    if call["printed"] or call["pictures"]:
        inside.append(_fold("What the tool printed and showed", _pre(call["printed"]), *map(_picture, call["pictures"])))
    if call["traceback"]:
        inside.append(_fold("Traceback (for you; the model does not get it)", _pre(call["traceback"])))
    return _fold(title, *inside, opened=bool(failed))


def _step(step: JSON) -> str:
    name = f"<b>{_text(step['name'])}</b>" if step["state"] == "failed" else _text(step["name"])
    return name + (f": {_code(step['note'])}" if step["note"] else "")


def _picture(image: JSON) -> str:
    """A picture whose bytes are here. An address is only named: opening a notebook must not call anybody."""
    data = image["data"] or ""
    if image["media_type"] in _PICTURES and re.fullmatch(r"[A-Za-z0-9+/=\s]+", data):
        return f'<img alt="picture from the tool" src="data:{image["media_type"]};base64,{data}">'
    return f"<p>Picture: {_code(image['url'] or image['media_type'])} (not shown)</p>"
