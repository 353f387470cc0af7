"""Words and numbers that the static forms of a run share: what an ending, a call, a count is called.

It formats and decides nothing; the state is that of `fold`. The inspector has the same words in JavaScript, and tests compare them.
"""

from __future__ import annotations

import json
from typing import Final

from nb_agent.values import JSON

__all__ = [
    "NEXT",
    "WORDS",
    "answer",
    "brief",
    "compacted",
    "compared",
    "difference",
    "fault",
    "figure",
    "left",
    "output",
    "percent",
    "plural",
    "read",
    "seconds",
    "signature",
    "totals",
    "visible",
    "waited",
    "written",
]

#: How the parts of a request (`nb_agent.messages.PARTS`) are called. inspector.js has the same words.
WORDS: Final[dict[str, str]] = {
    "system": "system",
    "developer": "developer",
    "history": "user before",
    "assistant": "assistant text",
    "tool_calls": "tool calls",
    "tool_results": "tool results",
    "user": "user",
    "tools": "tool definitions",
    "images": "images",
    "overhead": "overhead",
}

#: What to do after an ending that is not the wished one. inspector.js has the same words.
NEXT: Final[dict[str, str]] = {
    "length": "Ask for less at once, or allow a longer answer.",
    "content_filter": "Say it in other words, or begin a new conversation.",
    "max_rounds": "Allow more rounds, or go on in the next cell: the conversation is kept.",
    "time_limit": "Allow more time, or go on in the next cell: the conversation is kept.",
    "token_limit": "Allow more tokens, or go on in the next cell: the conversation is kept.",
    "cost_limit": "Allow more cost, or go on in the next cell: the conversation is kept.",
    "repeated_calls": "Say what should be done instead, or describe the tool better: its results did not help the model.",
    "stopped": "Go on in the next cell: the conversation is kept.",
    "error": "The conversation up to here is kept: run the cell again when the cause is mended.",
    "cancelled": "The conversation up to here is kept: the next cell goes on from it.",
}

# Characters that would move a terminal's cursor, colour it, or turn the reading direction round: shown, not obeyed.
_CONTROLS: Final = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {0x7F: "␡"}
_CONTROLS_TOO: Final = dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_TURNING: Final = {code: f"⟨U+{code:X}⟩" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SHOWN: Final = str.maketrans({**_CONTROLS, **_CONTROLS_TOO, **_TURNING})

# ------------------------------------------------------------------------------------------------------- words and numbers


def visible(foreign: str) -> str:
    r"""Text from a model or a tool with its control characters made visible, and half surrogate pairs replaced.

    >>> visible("red: \x1b[31m, half a pair: \ud83d")
    'red: ␛[31m, half a pair: ?'
    """
    return foreign.replace("\r\n", "\n").translate(_SHOWN).encode("utf-8", "replace").decode("utf-8")


def figure(number: int | None) -> str:
    """A number for reading, or a dash where it is not known."""
    return "\u2013" if number is None else f"{number:,}"


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "round"), plural(1200, "byte")
    ('1 round', '1,200 bytes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(part: int, total: int) -> str:
    """A share in percent; a share that rounds to nothing is not called nothing."""
    whole = round(100 * part / total) if total else 0
    return "<1 %" if part > 0 and whole < 1 else f"{whole} %"


def seconds(time: float | None) -> str:
    """Seconds in the unit that fits; nothing where the time is not known.

    >>> seconds(0.0032), seconds(0.41), seconds(125)
    ('3 ms', '0.41 s', '2 min 5 s')
    """
    if time is None:
        return ""
    if time < 0.001:
        return "<1 ms"
    if time < 0.0995:
        return f"{time * 1000:.0f} ms"
    return f"{time:.2f} s" if time < 59.995 else f"{round(time) // 60} min {round(time) % 60} s"


def signature(name: str, arguments: str) -> str:
    """A call as one line, with long values named by their length.

    >>> signature("write_file", '{"path": "a.md", "content": "' + "x" * 60 + '"}')
    'write_file(path="a.md", content=… 60 characters)'
    """
    try:
        values = json.loads(arguments)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return f"{name}({arguments if len(arguments) <= 80 else arguments[:80] + '…'})"
    forms = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    lengths = {key: len(value if isinstance(value, str) else forms[key]) for key, value in values.items()}
    shown = (f"{key}={form}" if len(form) <= 48 else f"{key}=… {plural(lengths[key], 'character')}" for key, form in forms.items())
    return f"{name}({', '.join(shown)})"


# ------------------------------------------------------------------------------------------------------- what the state says


def _sum(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def read(usage: JSON | None) -> int | None:
    """Input tokens that the provider reported, cached or not."""
    return _sum(usage["input"], usage["cache_read"], usage["cache_write"]) if usage else None


def written(usage: JSON | None) -> int | None:
    """Output tokens that the provider reported, hidden reasoning included."""
    return _sum(usage["output"], usage["reasoning"]) if usage else None


def compared(entry: JSON) -> str:
    """The tokens of a round's request: counted beside reported, the difference named, an estimate called one."""
    tokens, reply = entry["request"]["tokens"], entry["reply"]
    reported = read(reply["usage"]) if reply else None
    said = []
    if tokens:
        note = "" if tokens["exact"] else " (an estimate: this model's tokenizer is not public)"
        said.append(f"{plural(tokens['total'], 'token')} counted{note}")
    if reported is not None:
        said.append(f"{figure(reported)} {'' if tokens else 'tokens '}reported")
    elif reply:
        said.append("none reported")
    if tokens and reported is not None and reported != tokens["total"]:
        said.append(f"difference {difference(reported - tokens['total'], reply, 'input')}")
    return " · ".join(said)


def difference(number: int, reply: JSON, side: str) -> str:
    """What was reported beyond what was counted, with the names that are known for it.

    >>> difference(6, {"explained": {"input": {"differences": {"template": 6}}}}, "input")
    '+6 (template)'
    >>> difference(62, {"explained": {"output": {"differences": {"hidden reasoning": 64, "template": -2}}}}, "output")
    '+62 (hidden reasoning +64, template -2)'
    """
    names = reply["explained"][side]["differences"] if reply["explained"] else {}
    each = [name if len(names) == 1 else f"{name} {tokens:+,}" for name, tokens in names.items()]
    return f"{number:+,} ({', '.join(each)})" if each else f"{number:+,}"


def output(reply: JSON) -> str:
    """What a reply cost: tokens as reported, and how far they are from those that were counted in it."""
    number = written(reply["usage"])
    if number is None:
        return ""
    counted = reply["explained"]["output"] if reply["explained"] else {"counted": number}
    more = number - counted["counted"]
    apart = f", {counted['counted']:,} counted, difference {difference(more, reply, 'output')}" if more else ""
    return f"{plural(number, 'token')} written{apart}"


def brief(entry: JSON) -> str:
    """One line for a round that is not shown: its calls and its tokens.

    >>> brief({"number": 7, "request": {"tokens": None}, "reply": None, "calls": [{"name": "add", "steps": [], "result": None}]})
    'Round 7, not shown here: add'
    """
    calls = ", ".join(f"{call['name'][:40]}{' ✗' if fault(call) else ''}" for call in entry["calls"])
    calls = calls if len(calls) <= 160 else f"{calls[:160]}…"
    out = written(entry["reply"]["usage"]) if entry["reply"] else None
    said = [calls, compared(entry), "" if out is None else f"{plural(out, 'token')} written"]
    return f"Round {entry['number']}, not shown here: {' · '.join(part for part in said if part)}"


def left(branch: JSON) -> str:
    """One line for a line of the run that was left for another one."""
    ending = (branch["state"]["ending"] or {}).get("reason", "not ended")
    return f"{branch['label']}: {totals(branch['state'])} · {ending}"


def totals(state: JSON) -> str:
    """The size of a run in words: rounds, tokens in and out as reported, seconds."""
    ending, replies = state["ending"] or {}, [entry["reply"] for entry in state["rounds"] if entry["reply"]]
    usages = [ending["usage"]] if ending.get("usage") else [reply["usage"] for reply in replies]
    said = [plural(len(state["rounds"]), "round")]
    if any(usages):
        said.append(f"in {figure(_sum(*map(read, usages)))} · out {figure(_sum(*map(written, usages)))} tokens")
    if ending.get("seconds") is not None:
        said.append(seconds(ending["seconds"]))
    return " · ".join(said)


def answer(state: JSON) -> str:
    """The text of the last reply, where the run ended with one; what had come of it where the run broke off."""
    last = state["rounds"][-1] if state["rounds"] else {}
    said = last.get("reply") or last.get("live") or {"text": ""}
    whole = (state["ending"] or {}).get("text")  # put together, where it came in several replies
    return "" if last.get("calls") else str(whole or said["text"])


def waited(retry: JSON) -> str:
    """One line for a request that failed and went out again.

    >>> waited({"reason": "rate limit (slow down)", "seconds": 2.0, "attempt": 1})
    'waited 2.00 s: rate limit (slow down)'
    """
    return f"waited {seconds(retry['seconds'])}: {retry['reason']}" if retry["seconds"] else str(retry["reason"])


def compacted(cut: JSON) -> str:
    """One line for what a request leaves out of the conversation.

    >>> compacted({"strategy": "stub_results", "before": 3900, "after": 2100, "what": ["14 results of read_file became stubs"]})
    'compacted: 14 results of read_file became stubs, 3,900 → 2,100 tokens'
    """
    return f"compacted: {', '.join(cut['what']) or cut['strategy']}, {cut['before']:,} → {plural(cut['after'], 'token')}"


def fault(call: JSON) -> str:
    """What went wrong with a call, or nothing."""
    broken = next((step for step in call["steps"] if step["state"] == "failed"), None)
    if broken:
        return f"failed at “{broken['name']}”" + (f": {broken['note']}" if broken["note"] else "")
    code = (call["result"] or {}).get("code")
    return f"failed: {code}" if code else ""
