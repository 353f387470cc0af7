"""The arguments of a tool from the values in a prompt: one set of arguments, or several where several things are named.

`params` says how well each value suits; here values are given out, each to one parameter, and what is left over in the same list
("Paris and London") makes further calls. What cannot be found is said, not invented.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, product
from typing import Any, Final

from nb_agent.messages import Definition
from nb_agent.mock.params import Param, params, related
from nb_agent.mock.phrases import flag, free_text, options, statement
from nb_agent.mock.prompts import Prompt
from nb_agent.mock.reading import Finding, after_words, shape
from nb_agent.mock.weighing import convert, leads, near, suits
from nb_agent.mock.words import concepts, pieces
from nb_agent.values import JSON, dumps

__all__ = ["Filled", "fill"]


@dataclass(frozen=True, slots=True)
class Filled:
    """What a prompt gives a tool.

    Attributes:
        rows: the arguments of each call; one row at least, which may lack what is in ``missing``.
        missing: required parameters that the prompt has nothing for.
        used: the findings that went into the rows.
        strong: how much the arguments speak for this tool: 1 for a fitting one, 2 for one that can hardly be meant for another.
    """

    rows: tuple[JSON, ...]
    missing: tuple[Param, ...] = ()
    used: frozenset[Finding] = frozenset()
    strong: int = 0


#: Least score for a required and for an optional parameter. An optional one takes a value only where something points at it.
_LEAST: Final = {True: 2.0, False: 5.0}
#: Kinds that say themselves what they are: they need less to go to an optional parameter that takes them.
_PLAIN_KINDS: Final = frozenset({"path", "email", "url", "date", "time", "glob", "expression"})
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MOST_NUMBERS: Final = 20  # of one expression
_MOST_CALLS: Final = 12
_STRONG: Final = 6.0
_SURE: Final = 8.0
_ALIKE: Final = 5.5  # the first of a list has the preposition, and may be the example itself
_COORDINATED: Final = re.compile(
    r",|;|&|\band\b|\bor\b|\bvs\b|\bversus\b|\bthen\b|\bplus\b|[、，和与及跟；]|还有|以及|\n",
    re.IGNORECASE,
)
_OTHER_ACT: Final = re.compile(r"\b(?:tell|send|email|write|save|give|compare|let|show|put|report)\b", re.IGNORECASE)


@dataclass
class _Sheet:
    """The state of filling one tool: which values each parameter has so far, with the place of each."""

    prompt: Prompt
    free: list[Finding]
    values: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    used: list[Finding] = field(default_factory=list)
    givers: dict[str, list[Finding]] = field(default_factory=dict)
    strong: int = 0

    def take(self, param: Param, finding: Finding, score: float) -> None:
        self.free.remove(finding)
        self.used.append(finding)
        self.givers.setdefault(param.name, []).append(finding)
        self.values.setdefault(param.name, []).append((finding.start, convert(param, finding)))
        self.scores.setdefault(param.name, score)
        self.strong += 2 if score >= _SURE else score >= _STRONG

    def drop(self, taken: Collection[Finding]) -> None:
        """Take out what a value that was not found as a finding stands on."""
        self.used += [finding for finding in self.free if finding in taken]
        self.free = [finding for finding in self.free if finding not in taken]


def fill(tool: Definition, prompt: Prompt, *, about: frozenset[str] = frozenset(), guess: bool = True) -> Filled:
    """Fill a tool's parameters from a prompt.

    Args:
        tool: whose parameters.
        prompt: where the values are.
        about: the concepts of the tool, which are no values.
        guess: whether words without any mark of a value, and the prompt's own sentence, may be taken for a required parameter.
    """
    wanted = params(tool)
    sheet = _Sheet(prompt, _spread(prompt.found, prompt.text, wanted))
    _take_choices(wanted, sheet)
    _take_best([param for param in wanted if param.required], sheet)
    _take_more(wanted, sheet)
    _take_best([param for param in wanted if not param.required], sheet)
    _take_more([param for param in wanted if not any(other.required for other in wanted)], sheet)
    if guess:
        _take_words(tool, wanted, sheet, about)
    missing = tuple(param for param in wanted if param.required and param.name not in sheet.values)
    return Filled(_rows(wanted, sheet), missing, frozenset(sheet.used), sheet.strong)


def _spread(found: tuple[Finding, ...], text: str, wanted: tuple[Param, ...]) -> list[Finding]:
    """The findings, with "2 + 3" as two numbers for a tool that takes numbers and no expression."""
    if any("expression" in param.likes for param in wanted):
        return list(found)
    spread: list[Finding] = []
    for finding in found:
        numbers = _NUMBER.finditer(text, finding.start, finding.end) if finding.kind == "expression" else ()
        parts = [Finding("number", number.group(), *number.span()) for number in islice(numbers, _MOST_NUMBERS)]
        spread += parts or [finding]
    return spread


def _take_choices(wanted: tuple[Param, ...], sheet: _Sheet) -> None:
    """Enums, flags, lists and objects: they are looked for by their own words and not among the findings one by one."""
    _take_options(wanted, sheet)
    for param in wanted:
        if param.type == "boolean":
            value = flag(param, sheet.prompt.text, sheet.prompt.places)
            sheet.values |= {param.name: [(0, bool(value))]} if value is not None or param.required else {}
        elif "sql" in param.likes and (written := statement(sheet.prompt.text)):
            start, end, text = written
            sheet.values[param.name] = [(start, text)]
            sheet.strong += 4  # nothing else takes SQL
            sheet.drop([finding for finding in sheet.free if start <= finding.start < end])
    for param in wanted:
        if param.type == "array":
            _take_list(param, sheet)
        elif param.type == "object" and param.schema.get("properties"):
            _take_object(param, sheet)


def _take_options(wanted: tuple[Param, ...], sheet: _Sheet) -> None:
    """Choices of a list of words. Of two parameters with the same choices each place in the prompt goes to one."""
    given: set[tuple[str, int]] = set()
    chosen = [param for param in wanted if isinstance(param.schema.get("enum"), list)]
    for param in sorted(chosen, key=lambda param: (not param.required, leads(param, "to") <= 0)):
        for start, end, value in options(param, sheet.prompt.text, sheet.prompt.places):
            place = dumps(param.schema["enum"]), start
            if place not in given:
                given.add(place)
                sheet.values.setdefault(param.name, []).append((start, value))
                sheet.strong += 1
                sheet.drop([finding for finding in sheet.free if finding.start < end and start < finding.end])


def _take_list(param: Param, sheet: _Sheet) -> None:
    items = param.schema.get("items")
    item = replace(param, schema={**(items if isinstance(items, dict) else {}), "description": ""})
    if item.schema.get("enum"):
        values = [value for _, _, value in options(item, sheet.prompt.text, sheet.prompt.places)]
    elif item.type == "object" and item.schema.get("properties"):
        inner = fill(Definition(param.name, "", item.schema), sheet.prompt)
        values = list(inner.rows) if not inner.missing else []
        sheet.drop(inner.used)
    else:
        scored = [(_score(item, finding, sheet), finding) for finding in sheet.free]
        best = max((score for score, _ in scored), default=0)
        chosen = [finding for score, finding in scored if score >= max(_LEAST[param.required], best - 3)]
        values = [convert(item, finding) for finding in chosen]
        sheet.drop(chosen)
    if values:
        sheet.values[param.name] = [(0, values)]


def _take_object(param: Param, sheet: _Sheet) -> None:
    inner = fill(Definition(param.name, "", param.schema), replace(sheet.prompt, found=tuple(sheet.free)))
    if inner.rows[0] and not inner.missing:
        sheet.values[param.name] = [(0, inner.rows[0])]
        sheet.drop(inner.used)


def _take_best(wanted: list[Param], sheet: _Sheet) -> None:
    """Give each parameter its best finding, the surest pair first; equal pairs go by the order of both."""
    while True:
        pairs = [
            (-score, finding.start, order, finding, param)
            for order, param in enumerate(wanted)
            if param.name not in sheet.values and param.type in ("string", "integer", "number") and "enum" not in param.schema
            for finding in sheet.free
            if (score := _score(param, finding, sheet)) >= _least(param, finding)
        ]
        if not pairs:
            return
        score, _, _, finding, param = min(pairs, key=lambda pair: pair[:3])
        sheet.take(param, finding, -score)


def _least(param: Param, finding: Finding) -> float:
    return 4.0 if not param.required and finding.kind in _PLAIN_KINDS and finding.kind in param.likes else _LEAST[param.required]


def _score(param: Param, finding: Finding, sheet: _Sheet) -> float:
    """How well it suits, unless the value is named after something else."""
    if finding.kind == "code" and not related(finding.text, param):
        claimed = any(related(finding.text, rival) for rival in sheet.prompt.rivals)
        if claimed and near(param, finding, sheet.prompt.text, sheet.prompt.places) < 3:
            return 0
    score = suits(param, finding, sheet.prompt.text, sheet.prompt.places)
    if finding.kind == "number" and "code" in param.likes and _nearer(param, finding, sheet):
        return 0
    return score


def _nearer(param: Param, finding: Finding, sheet: _Sheet) -> bool:
    """Whether a number stands closer to the name of another parameter: "the customer of order 1001"."""
    mine = near(param, finding, sheet.prompt.text, sheet.prompt.places)
    return any(near(rival, finding, sheet.prompt.text, sheet.prompt.places) > mine for rival in sheet.prompt.rivals)


def _take_more(wanted: tuple[Param, ...] | list[Param], sheet: _Sheet) -> None:
    """Further values of the same kind in the same list: each will make a call of its own."""
    takers = [param for param in wanted if param.name in sheet.scores]
    single = len([param for param in takers if param.type != "string"]) <= 1
    for finding in list(sheet.free):
        alike = [param for param in takers if (param.type == "string" or single) and _alike(finding, sheet.givers[param.name][0])]
        scored = [(_score(param, finding, sheet), param) for param in alike]
        score, param = max(scored, key=lambda pair: pair[0], default=(0, None))
        if param is None or score < max(_LEAST[True], sheet.scores[param.name] - _ALIKE):
            continue
        giver = min(sheet.givers[param.name], key=lambda used: abs(used.start - finding.start))
        between = sheet.prompt.text[min(giver.end, finding.end) : max(giver.start, finding.start)]
        if _COORDINATED.search(between) and not _OTHER_ACT.search(between):
            sheet.take(param, finding, score)


def _alike(one: Finding, two: Finding) -> bool:
    """Whether two values can stand in one list: of a kind, and codes of one make, since a place of storage is no article."""
    shapes = shape(one.text), shape(two.text)
    return one.kind == two.kind and (one.kind != "code" or shapes[0].endswith(shapes[1]) or shapes[1].endswith(shapes[0]))


def _take_words(tool: Definition, wanted: tuple[Param, ...], sheet: _Sheet, about: frozenset[str]) -> None:
    """For required text that has no value yet: words after "in", "for" …, then the prompt's own sentence."""
    for param in wanted:
        if not param.required or param.name in sheet.values or param.type != "string" or param.schema.get("enum"):
            continue
        known = about | param.words | frozenset(word for finding in sheet.used for word in concepts(finding.text))
        plain = [
            finding
            for finding in after_words(sheet.prompt.text, known, param.nouns, pieces(tool.name.rsplit("__", 1)[-1]))
            if not _overlaps(finding, sheet.used)
        ]
        chosen = [finding for finding in plain if suits(param, finding, sheet.prompt.text, sheet.prompt.places) >= 1.5]
        if chosen and not param.likes & {"query", "body", "sql"}:
            first = chosen[0]
            for finding in chosen:
                if _COORDINATED.search(sheet.prompt.text[first.end : finding.start]) or finding is first:
                    sheet.free.append(finding)
                    sheet.take(param, finding, 2)
        elif (text := free_text(param, sheet.prompt.text)) is not None:
            sheet.values[param.name] = [(0, text)]
        elif names := [finding for finding in sheet.free if finding.kind == "name" and "title" in pieces(param.name)]:
            sheet.take(param, names[0], 2)


def _overlaps(finding: Finding, used: list[Finding]) -> bool:
    return any(finding.start < other.end and other.start < finding.end for other in used)


def _rows(wanted: tuple[Param, ...], sheet: _Sheet) -> tuple[JSON, ...]:
    """One row for each thing named. Values named by turns belong together in pairs, else each goes with each."""
    columns = {param.name: sheet.values[param.name] for param in wanted if param.name in sheet.values}
    columns = {name: sorted(values, key=lambda value: value[0]) for name, values in columns.items()}
    many = [name for name, values in columns.items() if len(values) > 1]
    leading = [name for name in many if any(param.name == name and not param.schema.get("enum") for param in wanted)] or many
    if len(leading) > 1 and _by_turns([columns[name] for name in leading]):
        combined = list(zip(*(columns[name] for name in leading), strict=True))
    else:
        combined = list(product(*(columns[name] for name in leading)))
    rows: list[JSON] = []
    for values in combined[:_MOST_CALLS]:
        chosen = dict(zip(leading, values, strict=True))
        place = max((start for start, _ in values), default=0)
        row = {name: (chosen[name] if name in chosen else _nearest(column, place))[1] for name, column in columns.items()}
        rows += [row] if row not in rows else []
    return tuple(rows)


def _by_turns(columns: list[list[tuple[int, Any]]]) -> bool:
    """Whether the values of the columns follow one another as a, b, a, b."""
    if len({len(column) for column in columns}) > 1:
        return False
    starts = [[start for start, _ in row] for row in zip(*columns, strict=True)]
    return all(max(one) < min(two) for one, two in pairwise(starts))


def _nearest(column: list[tuple[int, Any]], place: int) -> tuple[int, Any]:
    """The value that is named next after ``place``, or else the last one before it."""
    return min(column, key=lambda value: (value[0] < place, abs(value[0] - place)))
