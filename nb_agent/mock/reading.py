"""The values that a prompt names: quoted text, codes, numbers, dates, paths, places … each with its place in the text.

Finds what could be an argument, whatever the tools are; `filling` decides which parameter it belongs to, `words` finds meaning.
"""
# ruff: noqa: RUF001, SIM905  it names the signs that people type; lists of words read best as text

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nb_agent.mock.words import ZH_WORDS, concepts

__all__ = ["Finding", "after_words", "findings", "kind_of", "shape"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A value in a prompt.

    Attributes:
        kind: ``text`` (quoted, and none of the others), ``url``, ``email``, ``glob``, ``date``, ``time``, ``path``,
            ``expression``, ``code``, ``unit``, ``number``, ``symbol`` (capitals), ``name`` (of a place, a person, a thing) or ``plain``
            (a word that may be a value).
        marked: whether it stood in quotes or backticks.
    """

    kind: str
    text: str
    start: int
    end: int
    marked: bool = False


_EXTENSIONS: Final = (
    "md|txt|ya?ml|json|jsonl|csv|tsv|py|toml|html?|xml|pdf|png|jpe?g|gif|svg|ini|cfg|conf|log|sql|db|sqlite|ipynb|jsx?|tsx?|css|rst|"
    "xlsx?|docx?|pptx?|parquet|zip|tar|gz|sh|env|lock|c|h|cpp|rs|go|java|rb|mp3|mp4|wav"
)
_MONTHS: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_L: Final = r"(?<![A-Za-z0-9_])"  # where a Latin word begins and ends; \b sees none between Chinese and Latin letters
_R: Final = r"(?![A-Za-z0-9_])"
_UPPER: Final = "A-ZÀ-ÖØ-ÞĀŁŚŠŽİ"
_N: Final = r"\d+(?:\.\d+)?"
_LONG_UNITS: Final = (
    "(?:kilo|centi|milli)?met(?:er|re)s?|miles?|yards?|feet|foot|inch(?:es)?|(?:kilo|milli)?grams?|pounds?|ounces?|tonnes?|tons?|"
    "(?:milli)?lit(?:er|re)s?|gallons?|pints?|cups?|hours?|minutes?|seconds?|days?|weeks?|knots|mph|kelvin|celsius|fahrenheit|"
    "Celsius|Fahrenheit|Kelvin|kilobytes?|megabytes?|gigabytes?|公里|千米|英里|公斤|英尺|英寸|厘米"
)
_UNITS: Final = rf"{_LONG_UNITS}|[kcm]?m|km/h|ft|yd|mi|lbs?|oz|[km]?g|m?[lL]|°?[CFK]|[KMGT]B|h|min|s|米|磅|克"
_SIGNS: Final = {
    "plus": "+", "minus": "-", "times": "*", "multiplied by": "*", "divided by": "/", "over": "/", "to the power of": "**",
}  # fmt: skip
_SPOKEN: Final = f"(?:{'|'.join(_SIGNS)})"
_CAPITAL: Final = rf"[{_UPPER}][\w'’.-]*[\w]"

#: Tried in this order; what one has taken, the next does not see.
_PATTERNS: Final = tuple(
    (kind, re.compile(pattern, flags))
    for kind, pattern, flags in (
        (
            "marked",
            r"`([^`\n]+)`|\"([^\"]+)\"|“([^”]+)”|「([^」]+)」|《([^》]+)》|(?<!\w)['‘]([^'‘’\n]+(?:['’]\w[^'‘’\n]*)*)['’](?!\w)",
            0,
        ),
        ("url", r"https?://[^\s，。；）)>]+[^\s，。；）)>.,;:!?]", 0),
        ("email", rf"{_L}[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", 0),
        ("glob", r"(?<![\w./*-])[\w./-]*\*(?=[\w./*-]*[A-Za-z/])[\w./*-]*\w", re.ASCII),
        (
            "date",
            rf"{_L}\d{{4}}-\d\d-\d\d(?:T[\d:]+Z?)?{_R}|\d{{4}}年\d{{1,2}}月\d{{1,2}}日|{_L}\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}{_R}",
            0,
        ),
        (
            "date",
            rf"{_L}(?:\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})|(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?)(?:,? \d{{4}})?{_R}",
            re.IGNORECASE,
        ),
        ("date", rf"{_L}(?:(?:next|this|on) )?(?:{_DAYS}){_R}|{_L}(?:today|tomorrow|yesterday|tonight){_R}", re.IGNORECASE),
        ("date", "今天|明天|昨天|后天", 0),
        ("time", rf"{_L}\d{{1,2}}:\d\d(?::\d\d)?(?: ?[ap]m)?{_R}|{_L}\d{{1,2}} ?[ap]m{_R}", re.IGNORECASE),
        (
            "path",
            rf"{_L}(?:~|\.{{1,2}})?/(?:[\w.-]+/)*(?:[\w.-]*[\w-]|(?<=[\w.-]/))|(?<![\w./-])(?:[\w.-]+/)+[\w-]+\.(?:{_EXTENSIONS}){_R}"
            r"|(?<!\S)\.{1,2}/?(?=\s|$)",
            re.ASCII,
        ),
        ("path", rf"(?<![\w./-])[\w.-]*[\w-]\.(?:{_EXTENSIONS}){_R}|(?<![\w/])(?:[\w.-]+/)+(?=[\s,.]|$)", re.ASCII),
        ("name", rf"{_L}[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_]+)+{_R}", 0),  # Europe/Paris
        ("expression", rf"(?<![\w(-])\({{0,8}}{_N}(?:\s*(?:\*\*|[-+*/×÷^%])\s*\(*{_N}\)*)+", re.ASCII),
        ("expression", rf"{_L}(?:square root of|sqrt) {_N}{_R}|{_N}(?:(?: ?% of| {_SPOKEN}) {_N}{_R})+", re.IGNORECASE),
        (
            "code",
            rf"{_L}(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])(?!\d+[A-Za-z]{{1,3}}{_R})[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*{_R}",
            0,
        ),
        ("unit", rf"(?<=\d)\s?(?:{_UNITS}){_R}|{_L}(?:{_LONG_UNITS}){_R}", 0),
        ("number", r"(?<![A-Za-z0-9_.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d_])", 0),
        ("number", rf"{_L}(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve){_R}", re.IGNORECASE),
        ("symbol", rf"(?<![A-Za-z0-9_.])(?<![a-z], )[A-Z]{{2,6}}{_R}(?! [{_UPPER}][a-z])", 0),
        ("name", rf"(?<![\w'’]){_CAPITAL}(?:(?: (?:de|la|of|the|van|von|da|do|del) | ){_CAPITAL})*(?:, [A-Z]{{2}}{_R})?", 0),
    )
)

_MOST_READ: Final = 6000  # characters: a page of text that was pasted holds no arguments
#: Words that open a sentence or stand in capitals and name nothing.
_NO_NAME: Final = frozenset(
    "what what's whats who who's where when which why how how's is are was were do does did can could will would should may "
    "please the a an and or but then also if for in on at to from with of by it i i'm i'd my we our you your he she they "
    "this that these those there here give get show tell find list look search check read write open save send create make "
    "add compute calculate compare convert translate run use call ask answer explain describe summarize summarise go let "
    "let's see set put take book reserve order buy cancel delete remove update say repeat reply hello hi hey thanks thank "
    "yes no ok okay first second next last finally now after before both each every all any some more report return count "
    "sum multiply divide subtract plus celsius fahrenheit markdown python json yaml csv sql api id ids sku url am pm ceo "
    "mcp llm ai faq html pdf utf degrees need want roll query fetch lookup track schedule remind draw plot generate once "
    "using about store load print display".split()
)
_FILES: Final = {
    "markdown": "md", "python": "py", "json": "json", "yaml": "yaml", "csv": "csv", "text": "txt", "toml": "toml", "html": "html",
    "notebook": "ipynb", "log": "log", "sql": "sql", "javascript": "js", "pdf": "pdf",
}  # fmt: skip
_FILE_WORDS: Final = re.compile(
    rf"{_L}({'|'.join(_FILES)})\s*(?:files?{_R}|documents?{_R}|文件|文档)|{_L}(notebook)s{_R}", re.IGNORECASE
)
_CURRENCIES: Final = {
    "dollar": "USD", "euro": "EUR", "yen": "JPY", "yuan": "CNY", "pound": "GBP", "franc": "CHF", "rupee": "INR", "美元": "USD",
    "欧元": "EUR", "日元": "JPY", "人民币": "CNY", "英镑": "GBP",
}  # fmt: skip
_MONEY: Final = re.compile("|".join(rf"{_L}{word}s?{_R}" if word.isascii() else word for word in _CURRENCIES), re.IGNORECASE)
_FOLDER: Final = re.compile(
    rf"{_L}(?!(?:the|an?|my|of)\s)(current|this|working|root|[\w.-]{{1,40}})\s+(?:folder|directory|dir){_R}"
    r"|([A-Za-z0-9_.-]{1,40}|当前)\s*(?:目录|文件夹)"
    rf"|{_L}(?:folder|directory)\s+([\w./-]*\w)",
    re.IGNORECASE,
)
_NO_FOLDER: Final = frozenset(
    "the a an my which that each list in of and is are named called listing for to with 列出 显示".split()
)
_HAN_RUN: Final = re.compile(r"[㐀-鿿·]+")
_HAN_STOP: Final = (
    "怎么样 怎么 什么 多少 哪里 哪些 哪个 如何 请问 帮我 帮忙 告诉我 告诉 查一下 看一下 看看 一下 今天 明天 昨天 现在 当前 "
    "目前 首都 都有 都是 都在 换成 换为 兑成 变成 改成 写成 说成 同时 然后 以及 还有 并且 或者 想知道 知道 需要 可以 能否 能不能 是否 一共 分别 之间 关于 里面 所有 比较 对比 显示 "
    "打开 运行 使用 调用 执行 总共 列举 住在 现有 的 了 吗 呢 吧 请 查 问 我 你 您 他 她 它 想 要 和 与 及 跟 或 在 是 从 "
    "到 给 用 把 将 对 有 并 这 那 个 几 度 各 也 还 再 为 做"
).split()
#: Names of places that hold one of these characters, or one of those that are taken off an end.
_HAN_PLACES: Final = (
    "新加坡 加拿大 加州 加纳 芝加哥 孟加拉 雅加达 里加 斯里兰卡 马达加斯加 呼和浩特 和田 和歌山 印度尼西亚 印度 埃及 也门 维也纳 巴塞罗那 哈瓦那 "
    "那不勒斯 那霸 的黎波里 加的夫 亚的斯亚贝巴 马德里 新德里 德里 马里 拉各斯 几内亚 从化 查尔斯顿 用友 中和 对马 都柏林 都灵 成都 "
    "首尔 日内瓦 发罗拉"
).split()
_HAN_SPLIT: Final = re.compile("|".join(sorted({*_HAN_STOP, *ZH_WORDS, *_HAN_PLACES}, key=lambda word: (-len(word), word))))
_HAN_ENDS: Final = re.compile(r"^成(?=..)|(?<=..)[都里中]$")  # "all", "in", "into": never where one character would be left


def shape(text: str) -> str:
    """What a code looks like: runs of capitals, letters and digits as one sign each.

    >>> shape("SKU-A100"), shape("east-01")
    ('A-A0', 'a-0')
    """
    marks = ("0" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign for sign in text)
    return re.sub(r"([Aa0])\1+", r"\1", "".join(marks))


def kind_of(text: str) -> str:
    """The kind of a value that stands alone; ``text`` where it is none of the others.

    >>> kind_of("config.yaml"), kind_of("*.md"), kind_of("hello there")
    ('path', 'glob', 'text')
    """
    for kind, pattern in _PATTERNS[1:]:
        if pattern.fullmatch(text) and kind not in ("name", "date"):
            return kind
    return "text"


def findings(prompt: str) -> list[Finding]:
    """The values in the first page of a prompt, in their order."""
    found: list[Finding] = []
    prompt = prompt[:_MOST_READ]
    free = prompt  # what has been taken is blanked out, so places stay right
    for match in _FILE_WORDS.finditer(prompt):
        kind = (match.group(1) or match.group(2)).lower()
        found.append(Finding("glob", f"*.{_FILES[kind]}", match.start(), match.end()))
    for match in _MONEY.finditer(prompt):
        found.append(Finding("symbol", _CURRENCIES[match.group().lower().rstrip("s")], match.start(), match.end()))
        free = _without(free, match)
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(free):
            found += _found(kind, match)
            free = _without(free, match)
    return sorted([*found, *_folders(free), *_chinese(free)], key=lambda finding: (finding.start, finding.end))


def _without(text: str, match: re.Match[str]) -> str:
    return text[: match.start()] + "\x00" * (match.end() - match.start()) + text[match.end() :]


def _found(kind: str, match: re.Match[str]) -> Iterator[Finding]:
    if kind == "marked":
        text = next(group for group in match.groups() if group is not None)
        yield Finding(kind_of(text), text, match.start(), match.end(), marked=True)
    elif kind == "name":
        yield from _names(match.group(), match.start(), match.string)
    elif kind == "symbol" and match.group().lower() in _NO_NAME:
        return
    else:
        text = match.group().strip()
        yield Finding(kind, _in_signs(text) if kind == "expression" else text, match.start(), match.end())


def _in_signs(spoken: str) -> str:
    """An expression as a calculator reads it: "15% of 80" is ``15 / 100 * 80``."""
    text = re.sub(r" ?% of ", " / 100 * ", spoken, flags=re.IGNORECASE)
    text = re.sub(r"(?:square root of|sqrt) (\S+)", r"sqrt(\1)", text, flags=re.IGNORECASE)
    return re.sub(rf" ({_SPOKEN}) ", lambda match: f" {_SIGNS[match.group(1).lower()]} ", text, flags=re.IGNORECASE)


_OBJECT: Final = re.compile(r"\s+(?:the|an?|my|our|this|that|these|those|some|all|every|each|me|us|on|off|up|down)\b")


def _bids(text: str, start: int, prompt: str) -> bool:
    """Whether a capitalised word is the verb that a sentence begins with: "Unlock the door"."""
    opens = not prompt[:start].strip() or prompt[:start].rstrip()[-1] in ".!?:\n"
    return opens and " " not in text and _OBJECT.match(prompt, start + len(text)) is not None


def _names(run: str, start: int, prompt: str) -> Iterator[Finding]:
    """A run of capitalised words without those that only open a sentence, and without a possessive ending."""
    first = re.match(r"[\w'’.-]+\s+", run)
    while first and first.group().strip().lower() in _NO_NAME:
        run, start = run[first.end() :], start + first.end()
        first = re.match(r"[\w'’.-]+\s+", run)
    text = re.sub(r"['’]s$|\.$", "", run)
    if text and text.lower() not in _NO_NAME and text[0].isupper() and not _bids(text, start, prompt):
        yield Finding("name", text, start, start + len(text))


def _folders(free: str) -> Iterator[Finding]:
    for match in _FOLDER.finditer(free):
        word = match.group(1) or match.group(2) or match.group(3)
        here = word.lower() in ("current", "this", "working", "root", "当前")
        if here or (word.lower() not in _NO_FOLDER and "\x00" not in word):
            yield Finding("path", "." if here else word, match.start(), match.end())


def _chinese(free: str) -> Iterator[Finding]:
    """Chinese names: what is left of a run of characters between the words that are no names."""
    for run in _HAN_RUN.finditer(free):
        start = 0
        for stop in [*_HAN_SPLIT.finditer(run.group()), None]:
            end = stop.start() if stop else len(run.group())
            name = _HAN_ENDS.sub("", run.group()[start:end])
            begin = run.start() + run.group().index(name, start)
            if 2 <= len(name) <= 8:
                yield Finding("name", name, begin, begin + len(name))
            if stop and stop.group() in _HAN_PLACES:
                yield Finding("name", stop.group(), run.start() + stop.start(), run.start() + stop.end())
            start = stop.end() if stop else end


_AFTER: Final = re.compile(rf"{_L}(?:in|for|at|of|from|to|about|into|near|named|called|on|with|is){_R}", re.IGNORECASE)
_WORD: Final = re.compile(r"\s*(,)?\s*([^\W\d_][\w'’-]*)")
_ENDS: Final = frozenset(
    {"tomorrow", "today", "yesterday", "tonight", "right", "currently", "like", "me", "than", "one", "two", "three"}
)


def after_words(prompt: str, known: frozenset[str]) -> list[Finding]:
    """Lower-case words that may be values, since they follow "in", "for", "of" …; ``known`` are the concepts of the tool itself."""
    found: list[Finding] = []
    for match in _AFTER.finditer(prompt):
        found += _listed(prompt, match.end(), known)
    return [finding for place, finding in enumerate(found) if finding.start not in {other.start for other in found[:place]}]


def _listed(prompt: str, start: int, known: frozenset[str]) -> Iterator[Finding]:
    """The words from ``start`` on that name something, up to the first that does not; "and" and commas part them."""
    words: list[re.Match[str]] = []
    while word := _WORD.match(prompt, start):
        start = word.end()
        text = word.group(2).lower()
        joins = text in ("and", "or")
        if words and (joins or word.group(1)):
            yield _plain(prompt, words)
            words = []
        if text in ("the", "a", "an") or joins:
            continue
        if text in _NO_NAME or text in _ENDS or not (concepts(text) - known or text == "new"):
            break
        words.append(word)
    if words:
        yield _plain(prompt, words)


def _plain(prompt: str, words: list[re.Match[str]]) -> Finding:
    text = re.sub(r"['’]s$", "", prompt[words[0].start(2) : words[-1].end(2)])
    return Finding("plain", text, words[0].start(2), words[0].start(2) + len(text))
