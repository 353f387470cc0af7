"""Arguments that are no values of their own in the prompt: one of a list of words, yes or no, a stretch of the sentence, SQL.

Unlike `params`, which judges what `reading` has found, this looks for what a given parameter needs.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nb_agent.mock.lexicon import ALIASES
from nb_agent.mock.params import Param, of_schema
from nb_agent.mock.weighing import leads, word_before
from nb_agent.mock.words import concepts, pieces
from nb_agent.values import JSON

__all__ = ["flag", "free_text", "invented", "options", "statement"]

_SWITCHED: Final = {
    off: re.compile(rf"\b(?:turn|switch|shut|power|put)\w*\s+(?:[\w'-]+\s+){{0,4}}?{word}\b|{more}", re.IGNORECASE)
    for off, word, more in (
        (True, "off", r"\b(?:disable|deactivate|stop)\b|关闭|关掉|关上|关了|^关|把.+关"),
        (False, "on", r"\b(?:enable|activate|start)\b|打开|开启|^开|把.+开"),
    )
}
_SWITCHES: Final = frozenset({"on", "off", "enabled", "active", "power", "powered", "state", "activated"})
_JOINED: Final = re.compile(r"\s*(?:,|、|，|和|及)?\s*(?:and|or)?\s*", re.IGNORECASE)
_NO: Final = re.compile(
    r"\b(?:no|not|don't|do not|without|never|skip|exclude|disable)\b(?:\s+\w+){0,2}\s*$|(?:不要|不|无需)\s*$",
    re.IGNORECASE,
)


def options(param: Param, prompt: str, places: dict[str, list[int]]) -> list[tuple[int, int, Any]]:
    """The values of an enum that a prompt names, in the order of their naming, with where each begins and ends."""
    found: dict[Any, tuple[int, int]] = {}
    for value in [entry for entry in param.schema["enum"] if isinstance(entry, (str, int, float))]:
        span = _written(str(value), prompt) or _alias(str(value), prompt)
        if span is None and isinstance(value, str):
            span = _meant(value, places, [other for other in param.schema["enum"] if other != value])
        if span is not None:
            found[value] = span
    inside = [v for v, (a, b) in found.items() if any(c <= a and b <= d and d - c > b - a for c, d in found.values())]
    spans = [(start, end, value) for value, (start, end) in found.items() if value not in inside]
    kept: list[tuple[int, int, Any]] = []
    lead, last = "", 0
    for start, end, value in sorted(spans, key=lambda span: span[0]):
        if not (last and _JOINED.fullmatch(prompt[last:start])):  # "to German and French": both are led by "to"
            lead = word_before(prompt, start)
        kept += [(start, end, value)] if leads(param, lead) >= 0 else []
        last = end
    return kept


def _written(value: str, prompt: str) -> tuple[int, int] | None:
    """Where the value stands in the prompt as it is, or with other signs between its words."""
    if value.lower() in ("on", "off"):
        match = _SWITCHED[value.lower() == "off"].search(prompt)
        return match.span() if match else None
    if len(value) == 2 and any(value.lower() in names for names in ALIASES):
        match = re.search(rf"\b(?:to|into|from|in)\s+[`'\"]?{value}\b", prompt, re.IGNORECASE)  # "it" and "de" are words
        return match.span() if match else None
    inner = r"[\s_-]*".join(re.escape(piece) for piece in pieces(value)) or re.escape(value)
    ending = r"(?:s|es|ed)?" if len(value) > 2 else ""
    case = 0 if len(value) == 1 else re.IGNORECASE  # the value "a" is no article
    match = re.search(rf"(?<![A-Za-z0-9]){inner}{ending}(?![A-Za-z0-9])", prompt, case)
    return match.span() if match else None


def _alias(value: str, prompt: str) -> tuple[int, int] | None:
    """Where another name of the value stands."""
    for name in (name for names in ALIASES if value.lower() in names for name in names if len(name) > 2 or not name.isascii()):
        written = rf"(?<![A-Za-z]){name}(?![A-Za-z])".replace("°", r"°\s?")
        if match := re.search(written, prompt, re.IGNORECASE):
            return match.span()
    return None


def _meant(value: str, places: dict[str, list[int]], others: list[Any]) -> tuple[int, int] | None:
    """Where a word of the prompt means the same as a word of the value that the other values do not have."""
    shared = frozenset(word for other in others for word in concepts(str(other)))
    starts = [place for word in concepts(value) - shared for place in places.get(word, ())]
    return (min(starts), min(starts) + 1) if starts else None


def flag(param: Param, prompt: str, places: dict[str, list[int]]) -> bool | None:
    """Whether a prompt asks for what a yes-or-no parameter is named after; ``None`` where it does not mention it."""
    if _SWITCHES.intersection(pieces(param.name)) and (said := switched(prompt)) is not None:
        return said != ("off" in pieces(param.name))
    weak = {"include", "use", "is", "with", "enable", "show", "list"}
    starts = [place for word in param.words - weak for place in places.get(word, ())]
    if not starts:
        return None
    negative = any(word in ("no", "without", "skip", "exclude", "disable") for word in pieces(param.name))
    return negative or not _NO.search(prompt[: min(starts)])


def switched(prompt: str) -> bool | None:
    """Whether something is to be on or off."""
    off, on = (_SWITCHED[kind].search(prompt) for kind in (True, False))
    return None if not (off or on) else on is not None


_END: Final = r"(?:[.?!。？！]?\s*$|[,，]?\s+(?:and\s+)?then\b|[。])"
_QUERY_CUES: Final = (
    rf"\b(?:search|look|find|google|query|ask)\b(?:\s+[\w-]+){{0,4}}?\s+(?:for|about|up)\s+(.+?){_END}",
    r"(?:(?<!\d):|：)\s*(.+?)\s*$",
    rf"\babout\s+(.+?){_END}",
    rf"^(?:please\s+)?(?:find|search|look up|show|get|list)(?:\s+me)?\s+(.+?){_END}",
    rf"(?:搜索|查找|查询|搜)(?:一下)?(.+?){_END}",
)
_BODY_CUES: Final = (
    r"(?:(?<!\d):|：)\s*(.+?)\s*$",
    rf"\b(?:saying|says|say|that|reads)\s+(?:that\s+)?(.+?){_END}",
    rf"\b(?:me|task|todo|note|reminder)\s+(?:to|about)\s+(.+?){_END}",
    rf"\b(?:translate|summari[sz]e|repeat|echo)\s+(.+?)(?:\s+(?:to|into|in)\s+\S+)?{_END}",
    r"\b(?:put|add|schedule|plan|arrange)\s+(?:an?\s+|the\s+)?(.+?)\s+(?:on|to|into|for|at)\s+(?:my|the|our|\w*day|tomorrow|\d)",
    rf"(?:提醒我|记下|备注|内容[是为])(.+?){_END}",
    rf"\babout\s+(.+?){_END}",
)


def free_text(param: Param, prompt: str) -> str | None:
    """A stretch of the prompt for a parameter that takes running text; ``None`` for any other parameter."""
    if "sql" in param.likes:
        return _sql(param, prompt)
    cues = _QUERY_CUES if "query" in param.likes else _BODY_CUES if "body" in param.likes else ()
    for cue in cues:
        if match := re.search(cue, prompt, re.IGNORECASE | re.DOTALL):
            return match.group(1).strip(" `'\"“”")
    return prompt.strip() if "query" in param.likes else None


def statement(prompt: str) -> tuple[int, int, str] | None:
    """A SELECT that stands in the prompt, with its place."""
    match = re.search(r"\bselect\b[^`]+?\bfrom\b[^`]*", prompt, re.IGNORECASE)
    return None if match is None else (match.start(), match.end(), match.group().strip().rstrip("?。. "))


def _sql(param: Param, prompt: str) -> str | None:
    """A plain statement over the table that the description or the prompt names."""
    described = re.search(r"\b(?:from|tables?:?)\s+`?([a-z_]\w*)", str(param.schema.get("description") or ""), re.IGNORECASE)
    named = re.search(r"\b(?:how many|all|the|list|count|table)\s+([a-z_]+s)\b", prompt, re.IGNORECASE)
    table = described or named
    if table is None:
        return None
    counted = re.search(r"\bhow many\b|\bcount\b|\bnumber of\b|多少|几个", prompt, re.IGNORECASE)
    columns, rest = ("COUNT(*) AS n", "") if counted else ("*", " LIMIT 10")
    return f"SELECT {columns} FROM {table.group(1)}{rest}"  # noqa: S608  a model writes SQL; the tool has to be safe, not the text


def invented(schema: JSON) -> Any:
    """A value that a schema allows, for a call that is demanded though the prompt has none."""
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    param = of_schema({"properties": {"it": schema}}, {})[0]
    kind = param.type
    if param.examples and kind == "string":
        return param.examples[0]
    if kind == "object":
        inner = of_schema(schema, schema)
        return {part.name: invented(part.schema) for part in inner if part.required or not schema.get("required")}
    low = schema.get("minimum", 1)
    return {"integer": low, "number": low, "boolean": False, "array": [], "null": None}.get(kind, "example")
