"""The few scripts of the lessons: the three-round file task, and a text that is long enough to watch and to interrupt.

Unlike the planner a script knows its tools by name. Everything it writes still comes from the real results.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from nb_agent.messages import Definition
from nb_agent.mock.answers import told
from nb_agent.mock.plans import Call, Outcome, Plan
from nb_agent.mock.reading import findings
from nb_agent.mock.words import is_chinese

__all__ = ["SCENARIOS", "Scenario", "find"]

Tools: TypeAlias = tuple[Definition, ...]
#: One round of a script: from the prompt, the tools and the results so far to the calls of this round, or to the final text.
Round: TypeAlias = Callable[[str, Tools, tuple[Outcome, ...]], Plan]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scripted run; each round is due until all of its calls have a result."""

    name: str
    matches: Callable[[str, Tools], bool]
    rounds: tuple[Round, ...]

    def plan(self, prompt: str, tools: Tools, done: tuple[Outcome, ...]) -> Plan:
        """The round that is due; of a round that is half done the planner leaves out what has a result."""
        plan = Plan()
        for step in self.rounds:
            plan = step(prompt, tools, done)
            if plan.text or any(not any(outcome.call.same(call) for outcome in done) for call in plan.calls):
                return plan
        return plan


def find(prompt: str, tools: Tools, *, required: bool = False) -> Scenario | None:
    """The script for a prompt, if there is one; one without calls is none where a call is demanded."""
    return next((s for s in SCENARIOS if s.matches(prompt, tools) and not (required and len(s.rounds) == 1)), None)


def _tool(tools: Tools, name: str) -> Definition | None:
    """A tool by its name, also where it comes from an MCP server."""
    return next((tool for tool in tools if tool.name == name or tool.name.endswith(f"__{name}")), None)


# ---------------------------------------------------------------------------------------------------- three-round file task

_WRITE: Final = re.compile(r"\b(?:write|save|put|create)\b|写入|写到|写|保存", re.IGNORECASE)


def _files(prompt: str) -> tuple[list[str], str]:
    """The files that a prompt names, and the pattern of the others that it asks for."""
    found = findings(prompt)
    return [finding.text for finding in found if finding.kind == "path"], next((f.text for f in found if f.kind == "glob"), "")


def _is_file_task(prompt: str, tools: Tools) -> bool:
    paths, pattern = _files(prompt)
    there = all(_tool(tools, name) for name in ("read_file", "search_files", "write_file"))
    return there and len(set(paths)) >= 2 and bool(pattern) and bool(_WRITE.search(prompt))


def _look(prompt: str, tools: Tools, done: tuple[Outcome, ...]) -> Plan:
    del done
    paths, pattern = _files(prompt)
    sources = [path for path in dict.fromkeys(paths) if path != paths[-1]]
    reads = [_call(tools, "read_file", [path]) for path in sources]
    return Plan(calls=(*reads, _call(tools, "search_files", [pattern])))


def _call(tools: Tools, name: str, values: list[str]) -> Call:
    """A call of a tool that takes these texts, under whatever names its own definition gives them."""
    tool = _tool(tools, name)
    properties = tool.parameters.get("properties") or {} if tool else {}
    required = [key for key in properties if key in (tool.parameters.get("required") or properties)] if tool else []
    return Call(tool.name if tool else name, dict(zip(required, values, strict=False)))


def _save(prompt: str, tools: Tools, done: tuple[Outcome, ...]) -> Plan:
    paths, pattern = _files(prompt)
    good = [outcome for outcome in done if outcome.error is None and not outcome.call.name.endswith("write_file")]
    if not good:
        return Plan()
    call = _call(tools, "write_file", [paths[-1], _summary(good, pattern, chinese=is_chinese(prompt))])
    made = next((outcome.call for outcome in done if outcome.call.name == call.name), call)  # a person may have changed it
    return Plan(calls=(made,))


def _summary(good: list[Outcome], pattern: str, *, chinese: bool) -> str:
    """The report: the settings of each file that was read, then the files that were found."""
    parts = ["# 摘要" if chinese else "# Summary"]
    for outcome in good:
        subject = str(next(iter(outcome.call.arguments.values()), ""))
        if outcome.call.name.endswith("read_file"):
            lines = _settings(_content(outcome.value))
            parts.append(f"## {subject} 中的设置" if chinese else f"## Settings in {subject}")
        else:
            lines = [f"- {name}" for name in _names(outcome.value)]
            parts.append(
                f"## 匹配 {pattern} 的文件（{len(lines)}）" if chinese else f"## Files that match {pattern} ({len(lines)})"
            )
        parts.append("\n".join(lines) or ("（无）" if chinese else "(none)"))
    return "\n\n".join(parts) + "\n"


def _content(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[key] for key in ("content", "text", "result") if isinstance(value.get(key), str)), value)
    if isinstance(value, dict):  # the file itself is JSON, and came as it is
        return "\n".join(f"{key}: {part}" for key, part in value.items())
    return str(value)


def _settings(text: str) -> list[str]:
    """Each ``key: value`` of a YAML, INI or TOML text as a bullet, an inner key with those above it."""
    lines: list[str] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"(\s*)(?:- )?([\w.-]+)\s*[:=]\s*(.*?)\s*(?:#.*)?$", line)
        if match is None:
            if item := re.match(r"\s*- (.+)", line):
                lines.append(f"- {'.'.join(name for _, name in above)}: {item.group(1)}".replace("- : ", "- "))
            continue
        depth = len(match.group(1))
        above = [entry for entry in above if entry[0] < depth] + [(depth, match.group(2))]
        if match.group(3):
            lines.append(f"- {'.'.join(name for _, name in above)}: {match.group(3)}")
    return lines or [f"- {line}" for line in text.splitlines()[:5] if line.strip()]


def _names(value: Any) -> list[str]:
    """File names in a result: a list, a list under any key, or lines of text."""
    if isinstance(value, dict):
        value = next((part for part in value.values() if isinstance(part, list)), [])
    if isinstance(value, list):
        named = [part.get("path") or part.get("name") or part if isinstance(part, dict) else part for part in value]
        return [str(name) for name in named]
    return [line.strip("-* ") for line in str(value).splitlines() if line.strip()]


def _done(prompt: str, tools: Tools, done: tuple[Outcome, ...]) -> Plan:
    del tools
    paths, pattern = _files(prompt)
    good = [outcome for outcome in done if outcome.error is None]
    read = [str(next(iter(o.call.arguments.values()), "")) for o in good if o.call.name.endswith("read_file")]
    names = [name for o in good if o.call.name.endswith("search_files") for name in _names(o.value)]
    written = any(outcome.call.name.endswith("write_file") for outcome in good)
    failed = [told(outcome, chinese=is_chinese(prompt)) for outcome in done if outcome.error is not None]
    if is_chinese(prompt):
        text = f"已读取 {'、'.join(read) or '（无）'}，找到 {len(names)} 个匹配 {pattern} 的文件：{'、'.join(names)}。"
        return Plan(text + f"摘要{'已' if written else '没有'}写入 {paths[-1]}。" + "".join(failed))
    matching = "1 file that matches" if len(names) == 1 else f"{len(names)} files that match"
    found = f"found {matching} {pattern}: {', '.join(names) or 'none'}"
    text = f"I read {' and '.join(read) or 'no file'} and {found}. "
    return Plan(" ".join([f"{text}The summary {'is in' if written else 'was not written to'} {paths[-1]}.", *failed]))


# ------------------------------------------------------------------------------------------------------------ slow text

_STORY: Final = (
    "A prompt sets out from a notebook cell. It does not travel alone: the system message goes first, the definitions of "
    "the tools ride along, and all of it is counted in tokens before it leaves.\n\n"
    "The model reads everything from the first word to the last, every time, for it remembers nothing. It cannot open a "
    "file, look up an order or ask for the weather. All it can do is write, and one of the things that it can write is a "
    "wish: please call this tool, with these arguments.\n\n"
    "The host reads the wish and is careful. Is there such a tool? Do the arguments parse, and do they fit the schema? May "
    "it run? Only then does it run, and whatever comes of it, a value or an error, goes into the history as one more "
    "message.\n\n"
    "So the history has grown, and the whole of it sets out again. Round after round the request is a little longer and the "
    "model knows a little more, until there is nothing left to wish for.\n\n"
    "Then the model writes its last answer, the loop comes to rest, and the cell is done. What happened on the way stands "
    "in the notebook, round by round, for anybody to read."
)
_STORY_ZH: Final = (
    "一条提示从笔记本的单元格出发。它并不孤单：系统消息走在前面，工具的定义与它同行，出发之前，每一个词元都被数过。\n\n"
    "模型每一次都从第一个字读到最后一个字，因为它什么也不记得。它不能打开文件，也查不到订单和天气。它只会写，而它能写"
    "的东西之一，是一个愿望：请用这些参数调用这个工具。\n\n"
    "宿主程序读到这个愿望，十分谨慎。有这个工具吗？参数能解析吗，符合模式吗？允许运行吗？都没有问题，它才去运行；无论"
    "得到的是值还是错误，都作为一条新消息写进历史。\n\n"
    "于是历史变长了，整段历史再次出发。一轮又一轮，请求长了一点，模型知道的也多了一点，直到再没有什么要求。\n\n"
    "最后，模型写下答案，循环停了下来，单元格也就完成了。一路上发生的事都留在笔记本里，一轮一轮，谁都可以读。"
)


def _is_story(prompt: str, tools: Tools) -> bool:
    del tools
    return re.search(r"\bslowly\b|\blong story\b|慢慢|长故事", prompt, re.IGNORECASE) is not None


def _tell(prompt: str, tools: Tools, done: tuple[Outcome, ...]) -> Plan:
    del tools, done
    return Plan(_STORY_ZH if is_chinese(prompt) else _STORY)


#: The first that matches is played.
SCENARIOS: Final = (
    Scenario("three-round file task", _is_file_task, (_look, _save, _done)),
    Scenario("long text", _is_story, (_tell,)),
)
