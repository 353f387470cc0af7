"""The parameters of a tool as the planner sees them: names, types and examples, and which kinds of value each of them takes.

`weighing` says how well a value suits one of them; nothing here knows of a prompt.
"""
# ruff: noqa: SIM905  it names the signs that people type; lists of words read best as text

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from nb_agent.messages import Definition
from nb_agent.mock.reading import kind_of, shape
from nb_agent.mock.words import concepts, pieces
from nb_agent.values import JSON

__all__ = ["Param", "of_schema", "params", "related", "resolve", "shortens"]


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
        "name": "city town place location country region capital destination origin name person user customer employee author "
        "director writer singer composer owner assignee company team airport station address language timezone tz zone state "
        "department actor artist",
    }.items()
    for word in line.split()
}
#: Likes that come from a schema's ``format``.
_FORMATS: Final = {"email": "email", "uri": "url", "date": "date", "date-time": "date", "time": "time", "uuid": "code"}
#: Kinds of values (and of likes) that an example can be of.
_KINDS: Final = frozenset("path glob email url date time code symbol expression name unit".split())
_NO_NOUN: Final = frozenset("id ids code key number no name ref value of the".split())
_EXAMPLE: Final = re.compile(
    r"(?:e\.g\.|\beg\b|such as|for example|for instance|\blike\b|\bexamples?\b|例如|比如|如)\s*[:,：]?\s*([^();；。]+)",
    re.IGNORECASE,
)


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
        likes |= {kind} & _KINDS
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
