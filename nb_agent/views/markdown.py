"""A run's state as Markdown, for places that show neither the extension nor HTML, and for copying into an issue.

Nothing that a model or a tool wrote is ever Markdown here: one line of it stands in a code span, more of it in a fence, each with
more backticks than any row of them inside. So it cannot link, load, become a heading or close what it stands in. Unlike `html` it
has no bars, no pictures and no request in whole, and unlike `text` it has the JSON of what is new in each request.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from nb_agent.messages import PARTS
from nb_agent.values import JSON
from nb_agent.views import words

__all__ = ["markdown"]

_SIGNS: Final = {"done": "✓", "failed": "✗", "skipped": "\u2013", "asked": "?"}


def markdown(state: JSON) -> str:
    """The run as CommonMark with GitHub's tables.

    Args:
        state: as `nb_agent.views.fold.Fold` keeps it.
    """
    blocks = ["### %%agent", *_head(state)]
    blocks += ["#### Prompt", fence(state["prompt"])] if state["prompt"] else []
    if said := words.answer(state):
        blocks += ["#### Answer" if state["rounds"][-1]["reply"] else "#### Answer, not whole", fence(said)]
    if state["branches"]:
        blocks += ["#### Lines of this run that were left", _list([words.left(branch) for branch in state["branches"]])]
    blocks += _tokens(state)
    for place, entry in enumerate(state["rounds"]):
        blocks += _round(state, place, entry)
    return "\n\n".join(filter(None, blocks)) + "\n"


# ------------------------------------------------------------------------------------------------------- what is not ours


def _longest(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def span(foreign: Any) -> str:
    """Foreign text as one code span. A line break in it becomes a space: a span ends with its paragraph.

    >>> span("a `b`"), span("")
    ('`` a `b` ``', '(empty)')
    """
    line = " ".join(words.visible(str(foreign)).split())
    ticks = "`" * (_longest(line) + 1)
    pad = " " if line[:1] == "`" or line[-1:] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else "(empty)"


def fence(foreign: str, kind: str = "text") -> str:
    """Foreign text as a fenced block, line breaks and all."""
    seen = words.visible(foreign)
    ticks = "`" * max(3, _longest(seen) + 1)
    return f"{ticks}{kind}\n{seen}\n{ticks}"


def _json(value: Any) -> str:
    return fence(json.dumps(value, ensure_ascii=False, indent=1), "json")


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {span(line)}" for line in lines)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


# ------------------------------------------------------------------------------------------------------- the parts of the page


def _head(state: JSON) -> list[str]:
    model = f"{'**mock model** ' if state['mock'] else ''}{span(state['model'])}"
    window = f"window {state['window']:,} tokens" if state["window"] else ""
    head = _joined(model, span(state["wire"].replace("_", " ")), window, words.totals(state))
    ending = state["ending"]
    if not ending:
        return [head, "**Running**"]
    said = [head, f"**Ended: {ending['reason'].replace('_', ' ')}**, {ending['meaning']}."]
    return [*said, fence(ending["error"]) if ending["error"] else "", words.NEXT.get(ending["reason"], "")]


def _tokens(state: JSON) -> list[str]:
    shown = [entry for entry in state["rounds"] if entry["request"]["tokens"] and not entry.get("brief")]
    if not shown:
        return []
    used = [part for part in PARTS if any(entry["request"]["tokens"]["parts"].get(part) for entry in shown)]
    rows = [["Request", *(words.WORDS[part] for part in used), "counted", "reported", "written", "time"]]
    rows += [[":--", *["--:"] * (len(rows[0]) - 1)], *(_row(entry, used) for entry in shown)]
    exact = all(entry["request"]["tokens"]["exact"] for entry in shown)
    note = "" if exact else " (an estimate: this model's tokenizer is not public)"
    encodings = ", ".join(span(name) for name in sorted({entry["request"]["tokens"]["encoding"] for entry in shown}))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return ["#### Tokens", f"Tokens of each request by part, counted with {encodings}{note}:", table]


def _row(entry: JSON, used: list[str]) -> list[str]:
    tokens, reply = entry["request"]["tokens"], entry["reply"] or {"usage": None, "seconds": None}
    numbers = [words.figure(tokens["parts"].get(part, 0)) for part in used]
    counted = [f"**{tokens['total']:,}**", words.figure(words.read(reply["usage"])), words.figure(words.written(reply["usage"]))]
    return [str(entry["number"]), *numbers, *counted, words.seconds(reply["seconds"])]


def _round(state: JSON, place: int, entry: JSON) -> list[str]:
    if entry.get("brief"):  # see `saved`
        return [f"- {span(words.brief(entry))}"]
    blocks = [f"#### Round {entry['number']}" + (f", for a {span(entry['purpose'])}" if entry["purpose"] else "")]
    blocks += [*_request(state, place, entry), _list([words.waited(retry) for retry in entry["retries"]])]
    reply, live = entry["reply"], entry["live"]
    if reply:
        raw = f" (on the wire: {span(reply['raw_finish'])})" if reply["raw_finish"] not in (None, reply["finish"]) else ""
        facts = _joined(span(reply["finish"]) + raw, words.seconds(reply["seconds"]), _plain(words.output(reply)))
        blocks += [f"**Reply {entry['number']}** {facts}", _list(reply["notices"]), *_said(reply), _json(reply["body"])]
    elif live:
        blocks += [f"**Reply {entry['number']}** {'cut off' if state['ending'] else 'coming'}", *_said(live)]
        blocks += [fence(f"{call['name']} {call['arguments']}") for call in live["calls"]]
    return blocks + [block for call in entry["calls"] for block in _call(call)]


def _request(state: JSON, place: int, entry: JSON) -> list[str]:
    request = entry["request"]
    size = words.plural(request["bytes"], "byte")
    title = f"**Request {entry['number']}** POST {span(request['path'])} · {_joined(size, _plain(words.compared(entry)))}"
    new = f"What is new since request {state['rounds'][place - 1]['number']}:" if place else "The whole request:"
    budget = _plain(request["budget"]["words"]) if request["budget"] else ""
    notes = [*(words.compacted(cut) for cut in entry["compacted"]), *request["notices"]]
    return [title, budget, _list(notes), new, _json(request["change"].get("new", {}))]


def _plain(words_of_ours: str) -> str:
    """A sentence of this package, in which only a name may come from elsewhere."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~&])", r"\\\1", words.visible(words_of_ours))


def _said(reply: JSON) -> list[str]:
    thought = ["Thinking:", fence(reply["thinking"])] if reply["thinking"] else []
    return thought + ([fence(reply["text"])] if reply["text"] else [])


def _call(call: JSON) -> list[str]:
    failed, result = words.fault(call), call["result"]
    outcome = f"**✗** {span(failed)}" if failed else "done" if result else "no result"
    blocks = [
        f"**Call** {span(words.signature(call['name'], call['arguments']))} {_joined(outcome, words.seconds(call['seconds']))}"
    ]
    steps = [f"{_SIGNS[step['state']]} {step['name']}" + (f": {step['note']}" if step["note"] else "") for step in call["steps"]]
    blocks.append(_list(steps) if any(step["note"] for step in call["steps"]) else " · ".join(steps))
    for title, said in _texts(call):
        blocks += [title, fence(said)]
    pictures = [*(result["images"] if result else []), *call["pictures"]]
    return [*blocks, *(f"Picture: {span(image['url'] or image['media_type'])} (not shown)" for image in pictures)]


def _texts(call: JSON) -> list[tuple[str, str]]:
    """What was said in a call, and what it is called here; what a person changed beside what there was."""
    asked, given = call["asked"], call["given"]
    by = "as the model wrote them" if asked is None else "as a person changed them"
    found = [
        (f"Arguments, {by}:", call["arguments"]),
        ("What the model had asked for:", asked),
        ("What the tool gave, before a person changed it:", given and given["text"]),
        ("Result, as the model reads it:", call["result"] and call["result"]["text"]),
        ("The whole result (the model got less):", call["whole"]),
        ("What the tool printed:", call["printed"]),
        ("Traceback (for you; the model does not get it):", call["traceback"]),
    ]
    return [(title, said) for title, said in found if said]
