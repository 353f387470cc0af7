"""The values that a prompt names: quoted text, codes, numbers, dates, paths, places … each with its place in the text.

Finds what could be an argument, whatever the tools are; `filling` decides which parameter it belongs to, `words` finds meaning.
"""
# ruff: noqa: SIM905  it names the signs that people type; lists of words read best as text

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nb_agent.mock.lexicon import CURRENCIES, EXTENSIONS, FILES, HAN_PLACES, HAN_STOP, LONG_UNITS, NO_NAME, UNITS
from nb_agent.mock.words import ZH_WORDS, concepts

__all__ = ["Finding", "after_words", "findings", "kind_of", "shape"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A value in a prompt.

    Attributes:
        kind: ``text`` (quoted, and none of the others), ``url``, ``email``, ``glob``, ``date``, ``time``, ``path``,
            ``expression``, ``code``, ``unit``, ``number``, ``symbol`` (capitals), ``name`` (of a place, a person, a thing) or
            ``plain`` (a word that may be a value).
        marked: whether it stood in quotes or backticks.
    """

    kind: str
    text: str
    start: int
    end: int
    marked: bool = False


_MONTHS: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_L: Final = r"(?<![A-Za-z0-9_])"  # where a Latin word begins and ends; \b sees none between Chinese and Latin letters
_R: Final = r"(?![A-Za-z0-9_])"
_UPPER: Final = "A-ZÀ-ÖØ-ÞĀŁŚŠŽİ"
_N: Final = r"\d+(?:\.\d+)?"
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
            rf"{_L}(?:~|\.{{1,2}})?/(?:[\w.-]+/)*(?:[\w.-]*[\w-]|(?<=[\w.-]/))|(?<!\S)\.{{1,2}}/?(?=\s|$)",
            re.ASCII,
        ),
        ("path", rf"(?<![\w./-])(?:[\w.-]+/)+[\w-]+\.(?:{EXTENSIONS}){_R}", re.ASCII),
        ("path", rf"(?<![\w./-])[\w.-]*[\w-]\.(?:{EXTENSIONS}){_R}|(?<![\w/])(?:[\w.-]+/)+(?=[\s,.]|$)", re.ASCII),
        ("name", rf"{_L}[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_]+)+{_R}", 0),  # Europe/Paris
        ("expression", rf"(?<![\w(-])\({{0,8}}{_N}(?:\s*(?:\*\*|[-+*/×÷^%])\s*\(*{_N}\)*)+", re.ASCII),
        ("expression", rf"{_L}(?:square root of|sqrt) {_N}{_R}|{_N}(?:(?: ?% of| {_SPOKEN}) {_N}{_R})+", re.IGNORECASE),
        (
            "code",
            rf"{_L}(?=[A-Za-z0-9])(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])(?!\d+[A-Za-z]{{1,3}}{_R})[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*{_R}",
            0,
        ),
        ("unit", rf"(?<=\d)\s?(?:{UNITS}){_R}|{_L}(?:{LONG_UNITS}){_R}", 0),
        ("number", r"(?<![A-Za-z0-9_.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d_])", 0),
        ("number", rf"{_L}(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve){_R}", re.IGNORECASE),
        ("symbol", rf"(?<![A-Za-z0-9_.])(?<![a-z], )[A-Z]{{2,6}}{_R}(?! [{_UPPER}][a-z])", 0),
        ("name", rf"(?<![\w'’]){_CAPITAL}(?:(?: (?:de|la|of|the|van|von|da|do|del) | ){_CAPITAL})*(?:, [A-Z]{{2}}{_R})?", 0),
    )
)

_MOST_READ: Final = 6000  # characters: a page of text that was pasted holds no arguments
_FILE_WORDS: Final = re.compile(
    rf"{_L}({'|'.join(FILES)})\s*(?:files?{_R}|documents?{_R}|文件|文档)|{_L}(notebook)s{_R}", re.IGNORECASE
)
_MONEY: Final = re.compile("|".join(rf"{_L}{word}s?{_R}" if word.isascii() else word for word in CURRENCIES), re.IGNORECASE)
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
_HAN_SPLIT: Final = re.compile("|".join(sorted({*HAN_STOP, *ZH_WORDS, *HAN_PLACES}, key=lambda word: (-len(word), word))))
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
        found.append(Finding("glob", f"*.{FILES[kind]}", match.start(), match.end()))
    for match in _MONEY.finditer(prompt):
        found.append(Finding("symbol", CURRENCIES[match.group().lower().rstrip("s")], match.start(), match.end()))
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
    elif kind == "symbol" and match.group().lower() in NO_NAME:
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
    while first and first.group().strip().lower() in NO_NAME:
        run, start = run[first.end() :], start + first.end()
        first = re.match(r"[\w'’.-]+\s+", run)
    text = re.sub(r"['’]s$|\.$", "", run)
    if text and text.lower() not in NO_NAME and text[0].isupper() and not _bids(text, start, prompt):
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
            if stop and stop.group() in HAN_PLACES:
                yield Finding("name", stop.group(), run.start() + stop.start(), run.start() + stop.end())
            start = stop.end() if stop else end


_AFTER: Final = re.compile(rf"{_L}(?:in|for|at|of|from|to|about|into|near|named|called|on|with|is){_R}", re.IGNORECASE)
_WORD: Final = re.compile(r"\s*(,)?\s*([^\W\d_][\w'’-]*)")
_ENDS: Final = frozenset(  # words that end a list of values and are none
    "tomorrow today yesterday tonight right currently like me than one two three good bad nice old latest same other whole "
    "free cheap open off many much".split()
)


def after_words(prompt: str, known: frozenset[str], param: Sequence[str] = (), tool: Sequence[str] = ()) -> list[Finding]:
    """Lower-case words that may be values, since they stand beside a noun of the parameter or after such as "in", "for", "of".

    Args:
        prompt: where to look.
        known: the concepts of the tool itself, which are no values.
        param: the words of the parameter's name: "table sales", "the sales table", "the bedroom" for a room.
        tool: the words of the tool's name: "the kitchen light".
    """
    named = re.compile(rf"{_L}(?:{'|'.join(map(re.escape, param))}){_R}(?! and| or|,)", re.IGNORECASE) if param else None
    ways = (
        _beside(prompt, known, param),
        _led(prompt, known, named) if named else (),
        _led(prompt, known, _AFTER),
        _beside(prompt, known, tool),
        _beside(prompt, known, param, inside=True),
    )
    return next((found for way in ways if (found := list({finding.start: finding for finding in way}.values()))), [])


def _led(prompt: str, known: frozenset[str], leads: re.Pattern[str]) -> Iterator[Finding]:
    for match in leads.finditer(prompt):
        yield from _listed(prompt, match.end(), known)


def _beside(prompt: str, known: frozenset[str], nouns: Sequence[str], *, inside: bool = False) -> Iterator[Finding]:
    """The words just before a noun, or those that end in it."""
    for noun in map(re.escape, nouns):
        for match in re.finditer(rf"{_L}([a-z]+{noun}){_R}" if inside else rf"{_L}([a-z][\w-]+) {noun}s?{_R}", prompt):
            if match.group(1) not in NO_NAME | _ENDS and concepts(match.group(1)) - known:
                yield Finding("plain", match.group(1), *match.span(1))


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
        if text in NO_NAME or text in _ENDS or not (concepts(text) - known or text == "new"):
            break
        words.append(word)
    if words:
        yield _plain(prompt, words)


def _plain(prompt: str, words: list[re.Match[str]]) -> Finding:
    text = re.sub(r"['’]s$", "", prompt[words[0].start(2) : words[-1].end(2)])
    return Finding("plain", text, words[0].start(2), words[0].start(2) + len(text))
