"""The mock model's sentences: what came of the calls, what it needs to know, and what it is. In the language of the prompt.

Only quotes what is in the results; decides nothing.
"""
# ruff: noqa: SIM905  Chinese sentences have Chinese signs; lists of words read best as text

from __future__ import annotations

import re
from typing import Any, Final

from nb_agent.messages import Definition
from nb_agent.mock.params import Param
from nb_agent.mock.plans import Outcome
from nb_agent.mock.words import is_chinese, pieces

__all__ = ["ask_for", "introduce", "report", "told"]

_MOST_ENTRIES: Final = 10
_MOST_TEXT: Final = 600  # characters of a result that is running text
_MOST_ARGUMENT: Final = 40
_VERBS: Final = frozenset("get fetch check find search lookup look query show list read up by for run".split())
_GREETING: Final = re.compile(r"^\s*(?:(?:hi|hello|hey|good (?:morning|day|evening)|greetings)\b|你好|您好|嗨)", re.IGNORECASE)
_ECHO: Final = re.compile(
    r"\b(?:say|repeat|echo|reply with|answer with)\b[^\"“'`]{0,20}[\"“'`](.+?)[\"”'`]\s*[.!]?\s*$",
    re.IGNORECASE,
)


def introduce(prompt: str, tools: tuple[Definition, ...]) -> str:
    """The answer to a prompt that no tool matches."""
    if echo := _ECHO.search(prompt):
        return echo.group(1)
    names = ", ".join(tool.name for tool in tools[:_MOST_ENTRIES]) + (", …" if len(tools) > _MOST_ENTRIES else "")
    if is_chinese(prompt):
        hello = "你好！" if _GREETING.search(prompt) else ""
        return f"{hello}我是 nb_agent 的模拟模型（mock），没有真正的知识。" + (
            f"这次可用的工具：{names}。没有一个与这句话相符；请用工具名称或说明里的词来提问，并给出它需要的值。"
            if tools
            else "给我一些工具，用它们说明里的词提问，我就会调用它们，并根据结果回答。"
        )
    hello = "Hello! " if _GREETING.search(prompt) else ""
    return f"{hello}I am the mock model of nb_agent and know nothing of the world. " + (
        f"The tools of this request are: {names}. None of them matches this prompt; "
        "ask in words of a tool's name or description, and give the values that it needs."
        if tools
        else "Give me tools, ask in words of their descriptions, and I will call them and answer from their results."
    )


def ask_for(tool: Definition, missing: tuple[Param, ...], prompt: str) -> str:
    """The question for arguments that nothing supplies."""
    needed = [(param.name, str(param.schema.get("description") or "").rstrip(".。")) for param in missing]
    if is_chinese(prompt):
        listed = "、".join(f"`{name}`" + (f"（{text}）" if text else "") for name, text in needed)
        return f"要调用 `{tool.name}`，我还需要 {listed}。请告诉我。"
    listed = _joined([f"`{name}`" + (f" ({text})" if text else "") for name, text in needed])
    return f"To call `{tool.name}` I need {listed}. " + ("Which one do you mean?" if len(needed) == 1 else "Please give them.")


def report(done: tuple[Outcome, ...], prompt: str) -> str:
    """What came of the calls, a sentence each."""
    chinese = is_chinese(prompt)
    lines = [told(outcome, chinese=chinese) for outcome in done]
    return lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)


def told(outcome: Outcome, *, chinese: bool = False) -> str:
    """One outcome as a sentence that quotes its values.

    >>> from nb_agent.mock.plans import Call
    >>> told(Outcome(Call("get_weather", {"city": "Oslo"}), {"city": "Oslo", "temperature": -3}))
    'Weather for Oslo: temperature -3.'
    """
    call, value = outcome.call, outcome.value
    arguments = [text for part in call.arguments.values() if (text := _flat(part, chinese=chinese)) and _is_short(text)]
    whose = ("（" + "，".join(arguments) + "）" if chinese else f" for {', '.join(arguments)}") if arguments else ""
    title = call.name.rsplit("__", 1)[-1]
    if outcome.error is not None:
        error = outcome.error.rstrip(". ")
        return f"{title}{whose}失败：{error}。" if chinese else f"{title}{whose} failed: {error}."
    if not isinstance(value, (dict, list)):
        text = _text(value, chinese=chinese)
        if "\n" in text:
            return f"{title}{whose}：\n{text}" if chinese else f"{title}{whose}:\n{text}"
        return f"{title}{whose}的结果是 {text}。" if chinese else f"The result of {title}{whose} is {text.rstrip('.')}."
    fresh = {key: part for key, part in value.items() if call.arguments.get(key) != part} if isinstance(value, dict) else value
    said = _flat(fresh if fresh or not isinstance(value, dict) else value, chinese=chinese)
    return f"{title}{whose}：{said}。" if chinese else f"{_title(title)}{whose}: {said}."


def _title(name: str) -> str:
    """A tool's name without its verb: get_stock_price → Stock price."""
    words = [word for word in pieces(name) if word not in _VERBS] or pieces(name)
    return " ".join(words).capitalize()


def _is_short(text: str) -> bool:
    """Whether an argument can be named in passing."""
    return len(text) <= _MOST_ARGUMENT and "\n" not in text


def _text(value: Any, *, chinese: bool) -> str:
    if value is None or value == "":
        return "空" if chinese else "empty"
    if isinstance(value, bool):
        return ("是" if value else "否") if chinese else "yes" if value else "no"
    text = str(value).strip()
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT].rstrip() + " …"


def _flat(value: Any, *, chinese: bool) -> str:
    """JSON as running text."""
    comma = "，" if chinese else ", "
    if isinstance(value, dict):
        return comma.join(_pair(key, part, chinese=chinese) for key, part in value.items()) or _text("", chinese=chinese)
    if not isinstance(value, list):
        return _text(value, chinese=chinese)
    if not value:
        return "没有条目" if chinese else "no entries"
    more = len(value) - _MOST_ENTRIES
    entries = [_flat(part, chinese=chinese) for part in value[:_MOST_ENTRIES]]
    if any(isinstance(part, (dict, list)) for part in value):
        entries = [f"({entry})" for entry in entries]
    rest = [f"另有 {more} 条" if chinese else f"and {more} more"] if more > 0 else []
    return comma.join([*entries, *rest])


def _pair(key: str, part: Any, *, chinese: bool) -> str:
    name = str(key).replace("_", " ")
    said = _flat(part, chinese=chinese)
    return f"{name}: {said}" if isinstance(part, (dict, list)) else f"{name} {said}"


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"
