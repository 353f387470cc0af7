"""The parameters of a tool as the planner sees them, and how well a value found in a prompt suits one of them.

The judgement is made of tables: which kinds of value a parameter of that name takes, which words stand before it, what its examples
look like. `filling` uses the scores; nothing here chooses.
"""
# ruff: noqa: RUF001, SIM905  it names the signs that people type; lists of words read best as text

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from nb_agent.messages import Definition
from nb_agent.mock.lexicon import COMPANIES, ZONES
from nb_agent.mock.reading import Finding, kind_of, shape
from nb_agent.mock.words import concepts, pieces
from nb_agent.values import JSON

__all__ = ["Param", "convert", "leads", "params", "personal", "related", "resolve", "shortens", "suits", "word_before"]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: its name, its schema with references resolved, and what can be read off both."""

    name: str
    schema: JSON
    required: bool
    words: frozenset[str]  # what its name is about
    hints: frozenset[str]  # what its description is about
    nouns: tuple[str, ...]  # the words of its name without id, code …
    likes: frozenset[str]  # which rows of `_ACCEPTS` apply
    examples: tuple[str, ...]

    @property
    def type(self) -> str:
        """Its JSON type; the first one that is not null where there are several."""
        kind = self.schema.get("type")
        if isinstance(kind, list):
            kind = next((entry for entry in kind if entry != "null"), "null")
        if kind is None:
            kind = "object" if "properties" in self.schema else "array" if "items" in self.schema else "string"
        return str(kind)


#: What the words of a parameter's name say about its values.
_LIKES: Final = {
    word: like
    for like, line in {
        "path": "path file filename filepath directory folder dir",
        "glob": "pattern glob",
        "email": "email mail recipient recipients",
        "url": "url link uri website",
        "unit": "unit units",
        "value": "value amount threshold",
        "people": "attendees participants invitees guests members",
        "date": "date deadline when checkin checkout",
        "time": "time hour",
        "code": "id ids sku code key ref reference serial barcode isbn number",
        "symbol": "symbol ticker currency iata",
        "expression": "expression expr formula equation",
        "body": "text message content contents body title subject note sentence comment summary description task reminder markdown",
        "query": "query question topic keyword keywords term search phrase word input prompt q",
        "sql": "sql statement",
        "name": "city town place location country region capital destination origin name person user customer employee author director "
        "writer singer composer owner assignee company team airport station address language timezone tz zone state department actor artist",
    }.items()
    for word in line.split()
}
#: Likes that come from a schema's ``format``.
_FORMATS: Final = {"email": "email", "uri": "url", "date": "date", "date-time": "date", "time": "time", "uuid": "code"}
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
_NO_NOUN: Final = frozenset("id ids code key number no name ref value of the".split())
_EXAMPLE: Final = re.compile(
    r"(?:e\.g\.|\beg\b|such as|for example|for instance|\blike\b|\bexamples?\b|例如|比如|如)\s*[:,：]?\s*([^();；。]+)",
    re.IGNORECASE,
)
_NUMERALS: Final = "zero one two three four five six seven eight nine ten eleven twelve".split()


def params(tool: Definition) -> tuple[Param, ...]:
    """The parameters of a tool in the order of its schema."""
    return of_schema(tool.parameters, tool.parameters)


def of_schema(schema: JSON, root: JSON) -> tuple[Param, ...]:
    """The properties of an object's schema as parameters."""
    required, properties = schema.get("required"), schema.get("properties")
    required = required if isinstance(required, list) else []
    properties = properties if isinstance(properties, dict) else {}
    return tuple(_param(name, resolve(part, root), required=name in required) for name, part in properties.items())


def resolve(schema: Any, root: JSON, depth: int = 0) -> JSON:
    """A schema with its references followed and the null of an optional value left out."""
    if not isinstance(schema, dict) or depth > 8:
        return {}
    if isinstance(schema.get("$ref"), str):
        target: JSON = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            inner = target.get(step)
            target = inner if isinstance(inner, dict) else {}
        return {**resolve(target, root, depth + 1), **{key: part for key, part in schema.items() if key != "$ref"}}
    for key in ("anyOf", "oneOf", "allOf"):
        given = schema.get(key)
        variants = (
            [part for part in given if isinstance(part, dict) and part.get("type") != "null"] if isinstance(given, list) else []
        )
        if variants:
            return {**{k: part for k, part in schema.items() if k != key}, **resolve(variants[0], root, depth + 1)}
    schema = {**schema, "enum": [schema["const"]]} if "const" in schema else schema
    if "items" in schema:
        schema = {**schema, "items": resolve(schema["items"], root, depth + 1)}
    if isinstance(schema.get("properties"), dict):
        schema = {**schema, "properties": {k: resolve(part, root, depth + 1) for k, part in schema["properties"].items()}}
    resolved: JSON = schema
    return resolved


def _param(name: str, schema: JSON, *, required: bool) -> Param:
    description = str(schema.get("description") or "")
    examples = _examples(description, schema)
    split = pieces(name)
    hints = concepts(_EXAMPLE.sub("", description))
    return Param(name, schema, required, concepts(name), hints, tuple(word for word in split if word not in _NO_NOUN),
                 _likes(split, description, schema, examples), examples)  # fmt: skip


def _examples(description: str, schema: JSON) -> tuple[str, ...]:
    listed = schema.get("examples")
    given = [str(entry) for entry in listed if isinstance(entry, (str, int, float))] if isinstance(listed, list) else []
    for match in _EXAMPLE.finditer(description):
        entries = re.split(r"\s*,(?! [A-Z]{2}\b)\s*(?:or\s+|and\s+)?|\s+or\s+|\s+and\s+|、|或", match.group(1))
        given += [text for entry in entries if (text := entry.strip().strip("`'\"“”‘’「」").rstrip("."))]
    return tuple(given)


def _likes(split: list[str], description: str, schema: JSON, examples: tuple[str, ...]) -> frozenset[str]:
    likes = {_FORMATS[str(schema["format"])]} if str(schema.get("format")) in _FORMATS else set()
    for example in examples:
        kind = "name" if example[:1].isupper() and example[1:].islower() else kind_of(example)
        likes |= {kind} & _ACCEPTS.keys()
    named = [_LIKES[word] for word in split if word in _LIKES]
    if named and (named[-1] != "code" or not likes):
        likes.add(named[-1])
    if "sql" in description.lower() and "query" in likes:
        return frozenset({"sql"})
    if not likes:
        likes |= {_LIKES[word] for word in pieces(description) if word in _LIKES and _LIKES[word] not in ("code", "query", "body")}
    return frozenset(likes)


def related(code: str, param: Param) -> bool:
    """Whether a code names the parameter in its own letters (``ORD-1001`` an order) or looks like one of its examples."""
    letters = re.match(r"[^\W\d_]*", code)
    prefix = letters.group().lower() if letters else ""
    for example in param.examples:
        if prefix and re.match(rf"{prefix}(?![^\W\d_])", example.lower()) and shape(example) == shape(code):
            return True
    return bool(prefix) and any(shortens(prefix, noun) for noun in param.nouns)


def shortens(prefix: str, noun: str) -> bool:
    """Whether the letters stand in the noun in their order, its first one first: ``tkt`` and ``ticket``."""
    rest = iter(noun)
    return prefix[0] == noun[:1] and all(letter in rest for letter in prefix)


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
