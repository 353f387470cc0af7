"""A run's state as plain text: for terminals, for ``text/plain`` in a saved notebook, and for reading aloud.

It draws what `fold` decided to show and decides nothing itself. Unlike `html` it cuts arguments and results at `MOST` characters
and leaves out the JSON of requests. The words that both use are here: numbers, endings, what a call was.
"""

from __future__ import annotations

import re
from typing import Final

from nb_agent.values import JSON
from nb_agent.views.words import (
    NEXT,
    WORDS,
    answer,
    brief,
    compacted,
    compared,
    fault,
    figure,
    left,
    output,
    percent,
    plural,
    read,
    seconds,
    signature,
    totals,
    visible,
    waited,
    written,
)

__all__ = ["NEXT", "WORDS", "answer", "compacted", "compared", "fault", "figure", "percent", "plural", "read", "seconds"]
__all__ += ["signature", "text", "totals", "visible", "waited", "written"]

#: Characters of an argument text, a result or a thought before it is cut.
MOST: Final = 2_000


def text(state: JSON) -> str:
    """The whole run as text.

    Args:
        state: as `nb_agent.views.fold.Fold` keeps it.
    """
    model = f"mock model {state['model']}" if state["mock"] else state["model"]
    window = f"window {state['window']:,}" if state["window"] else ""
    lines = [" · ".join(part for part in ("%%agent", model, state["wire"].replace("_", " "), window) if part)]
    lines += ["Prompt", *_block(state["prompt"], most=None)]
    for entry in state["rounds"]:
        lines += _round(entry, last=entry is state["rounds"][-1], ended=bool(state["ending"]))
    if said := answer(state):
        lines += ["Answer" if state["rounds"][-1]["reply"] else "Answer, not whole", *_block(said, most=None)]
    lines += [line for branch in state["branches"] for line in _block(f"Left: {left(branch)}")]
    return visible("\n".join([*lines, *_ending(state)]))


def _round(entry: JSON, *, last: bool, ended: bool) -> list[str]:
    if entry.get("brief"):  # see `saved`
        return [" ".join(brief(entry).split())]
    request, number = entry["request"], entry["number"]
    head = [f"POST {request['path']}", plural(request["bytes"], "byte"), compared(entry)]
    purpose = f", for a {entry['purpose']}" if entry["purpose"] else ""
    lines = [f"Round {number}{purpose}", f"    Request {number}: {' · '.join(part for part in head if part)}"]
    if request["tokens"]:
        parts = request["tokens"]["parts"]
        lines.append("        " + " · ".join(f"{WORDS.get(part, part)} {count:,}" for part, count in parts.items() if count))
    lines += [f"        {request['budget']['words']}"] if request["budget"] else []
    lines += [f"        {compacted(cut)}" for cut in entry["compacted"]]
    lines += [f"        note: {notice}" for notice in request["notices"]]
    lines += [f"        {waited(retry)}" for retry in entry["retries"]]
    said = entry["reply"] or entry["live"]
    if said:
        lines.append(f"    Reply {number}: {_finish(entry, ended=ended)}")
        lines += [f"        note: {notice}" for notice in said.get("notices", ())]
        lines += [*_block(said["thinking"], 2, mark="thinking: ")]
        lines += [] if last and not entry["calls"] else _block(said["text"], 2)
    for call in entry["calls"]:
        lines += _call(call)
    return lines


def _finish(entry: JSON, *, ended: bool) -> str:
    reply = entry["reply"]
    if not reply:
        return "cut off" if ended else "coming"
    raw = f" ({reply['raw_finish']})" if reply["raw_finish"] not in (None, reply["finish"]) else ""
    said = [reply["finish"] + raw, seconds(reply["seconds"]), output(reply)]
    return " · ".join(part for part in said if part)


def _call(call: JSON) -> list[str]:
    line, result = signature(call["name"], call["arguments"]), call["result"]
    state = fault(call) or ("done" if result else "no result yet")
    lines = [f"    Call {line}: {' · '.join(part for part in (state, seconds(call['seconds'])) if part)}"]
    if "… " in line or line.endswith("…)"):
        lines += _block(call["arguments"], 2, mark="arguments: ")
    if call["asked"] is not None:
        lines += _block(call["asked"] or "nothing", 2, mark="asked for by the model: ")
    if call["given"] is not None:
        lines += _block(call["given"]["text"] or "nothing", 2, mark="given by the tool: ")
    if result:
        lines += _block(result["text"], 2, mark="result: ")
        lines += [f"        picture: {image['media_type']}" for image in result["images"]]
    lines += _block(call["printed"], 2, mark="printed: ") if call["printed"] else []
    lines += [f"        note: {step['note']}" for step in call["steps"] if step["note"] and step["name"] in _REMARKED]
    return lines


#: The steps whose notes are worth a line where all went well.
_REMARKED = {"result", "back to model"}


def _ending(state: JSON) -> list[str]:
    ending = state["ending"]
    if not ending:
        return [f"Running · {totals(state)}"]
    lines = [f"Ended: {ending['reason']}, {ending['meaning']} · {totals(state)}"]
    lines += _block(ending["error"] or "")
    return lines + ([f"    {NEXT[ending['reason']]}"] if ending["reason"] in NEXT else [])


def _block(text: str, depth: int = 1, *, most: int | None = MOST, mark: str = "") -> list[str]:
    """Lines of foreign text, indented, so that none of them can pass for one of ours."""
    if not text:
        return []
    cut = text if most is None or len(text) <= most else f"{text[:most]}\n… {len(text):,} characters in all"
    return [("    " * depth + line).rstrip() for line in re.split(r"\r\n|\n", mark + cut)]
