"""How well a value that was found in a prompt suits a parameter, and what it is as a value of that parameter's type.

The judgement is made of tables: which kinds of value a parameter of that name takes, which words stand before it, what its examples
look like. `params` reads the parameters; `filling` uses the scores; nothing here chooses.
"""
# ruff: noqa: SIM905  it names the signs that people type; lists of words read best as text

from __future__ import annotations

import re
from typing import Any, Final

from nb_agent.mock.lexicon import COMPANIES, ZONES
from nb_agent.mock.params import Param, related
from nb_agent.mock.reading import Finding, shape
from nb_agent.mock.words import pieces

__all__ = ["convert", "leads", "near", "personal", "suits", "word_before"]

#: How well each kind of value suits a parameter that likes …; what is not listed does not suit at all.
_ACCEPTS: Final[dict[str, dict[str, float]]] = {
    "path": {"path": 4, "text": 2.5, "glob": 1, "plain": 1},
    "glob": {"glob": 6.5, "text": 3, "path": 1.5},
    "email": {"email": 6},
    "url": {"url": 6},
    "date": {"date": 4, "text": 2.5},
    "time": {"time": 4, "date": 2, "text": 2.5},
    "code": {"code": 3.5, "number": 3, "symbol": 3, "text": 2.5},
    "symbol": {"symbol": 4, "name": 2.5, "text": 3, "code": 1.5, "plain": 1.5},
    "expression": {"expression": 8, "text": 3},
    "body": {"text": 4, "path": 1, "expression": 1},
    "query": {"text": 4, "name": 2.5, "code": 2.5, "url": 2, "path": 2, "plain": 1.5},
    "sql": {},
    "value": {"number": 3, "text": 3, "name": 2.5, "code": 2.5, "date": 2},
    "unit": {"unit": 5, "text": 2.5, "symbol": 2},
    "people": {"email": 5.5, "name": 4},
    "name": {"name": 4, "text": 3, "symbol": 2.5, "code": 2, "path": 2, "email": 2, "plain": 2},
    "": {"name": 3, "code": 3, "symbol": 3, "text": 3.5, "path": 2, "email": 2, "url": 2, "glob": 2, "date": 1.5, "time": 1.5,
         "expression": 1.5, "number": 1.5, "plain": 1.5},
}  # fmt: skip
#: The prepositions that lead to a parameter, by the words of its name; a word of another row speaks against it.
_CUES: Final = (
    (
        frozenset("from source origin start departure sender since src base old".split()),
        frozenset({"from", "since", "between", "从", "由"}),
    ),
    (
        frozenset("to target destination end arrival recipient until dest dst quote new".split()),
        frozenset({"to", "into", "until", "till", "到", "成", "至"}),
    ),
)
_IN: Final = frozenset("in at near for of inside under on 在".split())
_OF: Final = frozenset("of by named called about for is".split())
_PERSONAL: Final = re.compile(
    r"\b(?:who(?:se|m)?|e-?mail|phone|birthday|age|salary|manager|job|mobile)\b|谁|邮箱|邮件|电话|生日|年龄|工资", re.IGNORECASE
)
_MEASURED: Final = re.compile(r"(\d)\s?$|\bhow many\s+$|多少$", re.IGNORECASE)
_WORD_BEFORE: Final = re.compile(r"([A-Za-z]+|[㐀-鿿])\s*(?:(?:the|a)\s+)?[`'\"“]?$")
_PLACES: Final = frozenset(
    "city town place location country region area warehouse capital zone timezone airport station room".split()
)
#: The words before a number that lead to a limit, by the words of the parameter's name.
_LIMITS: Final = (
    (frozenset("max maximum limit highest top count most n number budget until quantity qty copies".split()),
     re.compile(r"\b(?:under|below|less than|at most|up to|max(?:imum)?|top|first|last|within|show|list|give me|"
                r"return|roll|draw|buy|order|generate)\s+[$€£¥]?$",
                re.IGNORECASE)),
    (frozenset("min minimum least lowest from".split()),
     re.compile(r"\b(?:over|above|more than|at least|min(?:imum)?)\s+[$€£¥]?$", re.IGNORECASE)),
)  # fmt: skip
_NUMERALS: Final = "zero one two three four five six seven eight nine ten eleven twelve".split()


def convert(param: Param, finding: Finding) -> Any:
    """The finding as a value of the parameter's type, or ``None`` where it cannot be one."""
    text = finding.text
    if param.type in ("integer", "number"):
        digits = str(_NUMERALS.index(text.lower())) if text.lower() in _NUMERALS else text.replace(",", "").replace("−", "-")
        if not re.fullmatch(r"-?\d+(\.\d+)?", digits) or (param.type == "integer" and "." in digits):
            return None
        number = float(digits) if "." in digits else int(digits[:300])
        low, high = (param.schema.get(key) for key in ("minimum", "maximum"))
        outside = (isinstance(low, (int, float)) and number < low) or (isinstance(high, (int, float)) and number > high)
        return None if outside else number
    if param.type != "string":
        return None
    if param.likes == {"symbol"} and finding.kind in ("name", "plain"):
        return COMPANIES.get(text.lower())
    return ZONES.get(text.lower(), text) if "timezone" in param.name.lower() else text


def suits(param: Param, finding: Finding, prompt: str, places: dict[str, list[int]]) -> float:
    """How well a finding suits a parameter, from what it is and from the words around it; 0 where it does not."""
    if convert(param, finding) is None:
        return 0
    if param.type in ("integer", "number"):
        base = 0.0 if finding.kind != "number" else 3.0 if finding.text[0] in "-−0123456789" else 1.5
    else:
        base = max(_ACCEPTS[like].get(finding.kind, 0.0) for like in param.likes or {""})
    fits = _fits(param, finding)
    if (base == 0 and fits <= 0) or fits <= -9:
        return 0
    return base + fits + near(param, finding, prompt, places) + _cue(param, finding, prompt)


def _fits(param: Param, finding: Finding) -> float:
    """What the pattern and the examples say; -9 where the pattern refuses it."""
    pattern = param.schema.get("pattern")
    if isinstance(pattern, str):
        try:
            return 4 if re.search(pattern, finding.text) else -9
        except re.error:
            pass  # a pattern of another dialect says nothing
    if finding.kind == "code" and related(finding.text, param):
        return 5
    if finding.kind not in ("code", "symbol", "path") or not param.examples:
        return 0
    if any(shape(example) == shape(finding.text) for example in param.examples):
        return 3
    return -2 if finding.kind == "code" else 0


def near(param: Param, finding: Finding, prompt: str, places: dict[str, list[int]]) -> float:
    """Up to 3 for a word of the parameter's name just before or after the finding."""
    best = 0.0
    for concept in param.words:
        for place in places.get(concept, ()):
            if place < finding.start:
                between = re.sub(r"^[^\W_]+", "", prompt[place : finding.start])
                gap = len(re.findall(r"[^\W_]+", between))
                best = max(best, 0.0 if re.search(r"[`\"'.,;]\s", between) else 3.0 - gap)
            elif place >= finding.end and len(prompt[finding.end : place].strip("-`'\"")) <= 1:
                best = max(best, 2.5)
    return best


def _cue(param: Param, finding: Finding, prompt: str) -> float:
    if finding.kind == "number" and param.type != "string":
        named = [cue for names, cue in _LIMITS if names.intersection(pieces(param.name))]
        return 4 if any(cue.search(prompt[: finding.start]) for cue in named) else 0
    if finding.kind == "name" and prompt[finding.end :].startswith("的") and _PLACES.intersection(pieces(param.name)):
        return 2
    if finding.kind == "unit" and (measured := _MEASURED.search(prompt[: finding.start])):
        return leads(param, "from" if measured.group(1) else "to")
    word = word_before(prompt, finding.start)
    if (led := leads(param, word)) != 0:
        return led
    if finding.kind == "name" and word in _OF and "name" in param.likes and (personal(prompt) or " " in finding.text):
        return 1 if _PLACES.intersection(pieces(param.name)) else 1.5
    located = "path" in param.likes or _PLACES.intersection(pieces(param.name))
    return 2 if located and word in _IN | {"from"} else 0


def word_before(prompt: str, place: int) -> str:
    """The word that a value follows, without an article or a quotation mark between them."""
    before = _WORD_BEFORE.search(prompt[:place])
    return before.group(1).lower() if before else ""


def leads(param: Param, word: str) -> float:
    """Whether a preposition leads to a parameter (3), to the other of two (-2), or says nothing of it (0)."""
    named = [names for names, cues in _CUES if word in cues]
    if not named:
        return 0
    own = frozenset(pieces(param.name))
    return 3 if named[0] & own else -2 if any(names & own for names, _ in _CUES) else 0


def personal(prompt: str) -> bool:
    """Whether a prompt asks for what only a person has."""
    return _PERSONAL.search(prompt) is not None
