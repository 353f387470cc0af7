"""Which tools a prompt asks for: those whose words it uses and whose arguments it holds, each for something of its own.

A tool is added only for what no tool before it explains, so that "stock of SKU-A100" does not also ask for a share price.
"""
# ruff: noqa: SIM905  lists of words read best as text

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from nb_agent.messages import Definition
from nb_agent.mock.filling import Filled, fill
from nb_agent.mock.params import Param, params, related
from nb_agent.mock.prompts import Prompt
from nb_agent.mock.reading import Finding
from nb_agent.mock.weighing import personal
from nb_agent.mock.words import GENERIC, concepts, merged, pieces

__all__ = ["Pick", "about", "choose", "makes", "tells"]


@dataclass(frozen=True, slots=True)
class Pick:
    """A tool that is to be called, with what the prompt gives it."""

    tool: Definition
    filled: Filled
    places: tuple[int, ...] = ()  # where the prompt names it
    score: float = 0
    told: frozenset[str] = frozenset()  # the concepts of the prompt that only its description holds, where its name holds none


_ENOUGH: Final = 0.8
_FEW_WORDS: Final = 4
_MOST_PICKS: Final = 6
#: Tools of these verbs are called only where the prompt says so, whatever else matches.
_RISKY: Final = frozenset({"delete", "cancel", "drop", "kill", "pay", "transfer", "refund"})
#: Verbs that change something: less likely where the prompt does not say them.
_CHANGING: Final = frozenset({"write", "send", "create", "update", "reserve", "insert", "append", "order"})
#: Verbs of tools that are also meant where the prompt only names the thing.
_ASKING: Final = frozenset("get fetch check find search list show lookup look read query set now is count track".split())
_ALIASES: Final = {"now": "time", "today": "date"}
_PEOPLE: Final = frozenset({"customer", "user", "employee", "person", "author", "owner", "contact", "staff"})
#: First words of descriptions of tools that only tell something.
_TELLING: Final = frozenset("where what how who when which whether the a an current name price value return returns tell".split())
#: Kinds of values that speak for no tool where the prompt has none of its words: a city is no question for the weather.
_WEAK: Final = frozenset({"name", "plain", "text", "number", "unit", "date", "time", "symbol"})
_NO_TOOLS: Final = re.compile(
    r"\b(?:without (?:using )?(?:any |a )?tools?|(?:do not|don't) (?:use|call) (?:any |a )?tools?|no tools)\b"
    r"|不要(?:使用|调用)工具",
    re.IGNORECASE,
)


def about(tool: Definition) -> frozenset[str]:
    """All concepts of a tool: of its name, its description and its parameters' names."""
    named = concepts(_local(tool.name)) | concepts(tool.description)
    return named.union(*(param.words for param in params(tool)))


def _local(name: str) -> str:
    """A tool's own name, without the server that an MCP tool's name begins with."""
    own = name.rsplit("__", 1)[-1]
    return _ALIASES.get(own, own)


def choose(prompt: Prompt, tools: tuple[Definition, ...], *, least: int = 0) -> list[Pick]:
    """The tools that a prompt asks for, in the order in which it names them.

    Args:
        prompt: what was asked.
        tools: what there is.
        least: take so many at least, the best ones, even where the prompt hardly speaks of them.
    """
    picks: list[Pick] = []
    if _NO_TOOLS.search(prompt.text) and not least:
        return picks
    fills = {tool.name: fill(tool, prompt, about=about(tool), guess=False) for tool in tools}
    while len(picks) < _MOST_PICKS:
        rated = [_rated(tool, prompt, fills[tool.name], picks) for tool in tools if all(tool is not pick.tool for pick in picks)]
        best = max(rated, key=lambda pick: pick.score - 0.3 * len(pick.filled.missing), default=None)
        if best is None or (best.score < _ENOUGH and len(picks) >= least):
            break
        if picks and not _due(best, prompt, tools, picks, fills):
            tools = tuple(tool for tool in tools if tool is not best.tool)
            continue
        picks.append(best)
    picks.sort(key=lambda pick: min(pick.places, default=len(prompt.text)))
    return [replace(pick, filled=_own(pick, picks, prompt)) for pick in picks]


def _rated(tool: Definition, prompt: Prompt, filled: Filled, picks: list[Pick]) -> Pick:
    """How much of the prompt is explained by this tool and by none of the picks."""
    known: frozenset[str] = frozenset()
    taken: frozenset[Finding] = frozenset()
    for pick in picks:
        known |= concepts(_local(pick.tool.name)).union(*(param.words for param in params(pick.tool)))
        taken |= pick.filled.used
        known |= merged(concepts(pick.filled.rows[0].get(name, "")) for name in _statements(pick.tool))
    own = concepts(_local(tool.name))
    new = frozenset(prompt.places.keys() - known)
    named = own & new
    score = sum(0.3 if concept in GENERIC else 1.0 for concept in named)
    described = concepts(tool.description) & new - own
    described -= merged(concepts(pick.tool.description) for pick in picks)
    score += sum(0.5 if "㐀" <= concept[0] <= "鿿" else 0.4 for concept in described - GENERIC)
    score += 0.3 * len(merged(param.words for param in params(tool)) & new - own - GENERIC)
    fresh = filled.used - taken
    if (fresh or not picks) and (score or _fits_alone(filled, fresh, prompt)):
        score += 0.5 * min(filled.strong, 2 if picks else 3)
    score += (
        _verb(tool, prompt, named=bool(named - GENERIC), further=bool(picks))
        + _by_name(tool, prompt)
        + (_server(tool, new) if score else 0)
    )
    if own & _PEOPLE and _asks_who(prompt, filled, picks):
        score += 1.0
    spots = [place for concept in (named or described) for place in prompt.places[concept]]
    return Pick(tool, filled, tuple(sorted(spots)), score, described if not named else frozenset())


def _statements(tool: Definition) -> list[str]:
    """The names of the parameters that take SQL: what a statement names is asked of that tool and of no other."""
    return [param.name for param in params(tool) if "sql" in param.likes]


def _fits_alone(filled: Filled, fresh: frozenset[Finding], prompt: Prompt) -> bool:
    """Whether the values speak for a tool that no word of the prompt speaks for: a code that is no other tool's, or several."""
    telling = [finding for finding in fresh if finding.kind not in _WEAK]
    few = len(pieces(prompt.text)) <= _FEW_WORDS or (not filled.missing and len(filled.rows[0]) > 1)
    return any(few or sum(related(finding.text, rival) for rival in prompt.rivals) == 1 for finding in telling)


def _asks_who(prompt: Prompt, filled: Filled, picks: list[Pick]) -> bool:
    """Whether a person is asked for: the one that is named, or the one behind what another tool finds."""
    known = merged(concepts(_local(pick.tool.name)) for pick in picks)
    named = any(finding.kind == "name" for finding in filled.used)
    return not known & _PEOPLE and personal(prompt.text) and bool(filled.missing if picks else named)


def _verb(tool: Definition, prompt: Prompt, *, named: bool, further: bool) -> float:
    """More for a tool whose verb the prompt uses, less for one that changes something unasked."""
    split = pieces(_local(tool.name))
    verb = split[0] if split else ""
    if concepts(verb) & prompt.places.keys():
        return 0.5 if named else 0.2
    if verb in _RISKY or concepts(verb) & _RISKY:
        return -9
    if concepts(verb) & _CHANGING:
        return -0.4
    return -0.5 if further and len(split) > 1 and not tells(tool) else 0


def tells(tool: Definition) -> bool:
    """Whether a tool only finds something out, by its verb or by the first word of its description."""
    verb = pieces(_local(tool.name))[:1]
    return not _ASKING.isdisjoint(verb) or tool.description.lower().partition(" ")[0] in _TELLING | _ASKING


def _by_name(tool: Definition, prompt: Prompt) -> float:
    """A tool that is called by its very name, other than by a word that everybody uses."""
    written = rf"(?<![\w]){re.escape(tool.name)}(?![\w])"
    plain = tool.name.isalpha() and tool.name.islower()
    return 5 if re.search(rf"`{written}`|\b{written}\(" if plain else written, prompt.text) else 0


def _server(tool: Definition, new: frozenset[str]) -> float:
    """A little for the server's name: it tells tools of the same name apart."""
    prefix = tool.name.rsplit("__", 1)[0] if "__" in tool.name else ""
    return 0.4 if concepts(prefix) & new else 0


def _due(pick: Pick, prompt: Prompt, tools: tuple[Definition, ...], picks: list[Pick], fills: dict[str, Filled]) -> bool:
    """Whether a further tool is more than an echo: its arguments are there, can come from another tool, or its name is new."""
    if not pick.filled.missing:
        return True
    if all(("body" in param.likes and not tells(pick.tool)) or _comes(param, picks, tools, fills) for param in pick.filled.missing):
        return True
    described = merged(about(other.tool) for other in picks)
    return bool(concepts(_local(pick.tool.name)) & prompt.places.keys() - described - GENERIC)


def _comes(param: Param, picks: list[Pick], tools: tuple[Definition, ...], fills: dict[str, Filled]) -> bool:
    is_id = "id" in pieces(param.name)  # what a look-up by a sure argument returns mostly holds the ids of what belongs to it
    return any(makes(pick.tool, param) or (is_id and pick.filled.strong) for pick in picks) or any(
        makes(tool, param) and not fills[tool.name].missing and fills[tool.name].strong for tool in tools
    )


def makes(tool: Definition, param: Param) -> bool:
    """Whether a tool's name or description suggests that its result holds this parameter's value."""
    if param.name in {other.name for other in params(tool)}:
        return False
    nouns = concepts(" ".join(param.nouns)) - GENERIC or param.words
    return bool(nouns) and nouns <= concepts(_local(tool.name)) | concepts(tool.description)


def _own(pick: Pick, picks: list[Pick], prompt: Prompt) -> Filled:
    """The pick's arguments from the findings that belong to it: those that stand after its words and before another's."""
    known = merged(about(other.tool) for other in picks)
    mine = [finding for finding in prompt.found if _owner(finding, picks) in (pick, None)]
    own = fill(pick.tool, replace(prompt, found=tuple(mine)), about=known, guess=False)
    if own.missing and len(mine) < len(prompt.found):
        shared = fill(pick.tool, prompt, about=known, guess=False)
        own = shared if len(shared.missing) < len(own.missing) else own
    return own


def _owner(finding: Finding, picks: list[Pick]) -> Pick | None:
    """The pick that a finding belongs to where several could take it; ``None`` where nobody wants it."""
    wanting = [pick for pick in picks if any(finding.start <= used.start < finding.end for used in pick.filled.used)]
    if len(wanting) < 2:
        return wanting[0] if wanting else None
    spots = [(place - finding.start, order) for order, pick in enumerate(wanting) for place in pick.places]
    before = [(-gap, order) for gap, order in spots if gap <= 0]
    after = [spot for spot in spots if spot[0] > 0]
    return wanting[min(before or after or [(0, 0)])[1]]
