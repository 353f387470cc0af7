"""The rules of the clinic, a row each: its name, why it is one, where that is from, and what looks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nb_agent.clinic import of_parameters, of_sets, of_tools
from nb_agent.clinic.of_sets import Together
from nb_agent.clinic.of_tools import Fault
from nb_agent.clinic.subjects import Subject

__all__ = ["RULES", "Rule", "Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the tools are to be used: the model, and its window in tokens where that is known."""

    model: str
    window: int | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: what a finding carries.
        why: what goes wrong where it is broken.
        source: who says so.
        check: finds the places.
    """

    name: str
    why: str
    source: str
    check: Callable[[Sequence[Subject], Setting], Iterator[Together]]


def _each(check: Callable[[Subject], Iterator[Fault]]) -> Callable[[Sequence[Subject], Setting], Iterator[Together]]:
    """A check of one tool, as one of all."""
    return lambda subjects, _: ((subject.name, *fault) for subject in subjects for fault in check(subject))


def _all(check: Callable[[Sequence[Subject]], Iterator[Together]]) -> Callable[[Sequence[Subject], Setting], Iterator[Together]]:
    return lambda subjects, _: check(subjects)


_OPENAI: Final = "OpenAI, Function calling guide"
_ANTHROPIC: Final = "Anthropic, documentation of tool use"
_OURS: Final = "our own judgement"

#: In the order in which findings are listed.
RULES: Final = (
    Rule("description", "the model chooses a tool by its description", _ANTHROPIC, _each(of_tools.describes_little)),
    Rule("parameter", "the model fills a parameter in by what is said of it", _ANTHROPIC, _each(of_parameters.is_silent)),
    Rule("free text", "where any text fits, the model invents one", f"{_OPENAI} (enums)", _each(of_parameters.is_free)),
    Rule("form", "ids, dates and quantities are written in many ways", f"{_OPENAI} (formats)", _each(of_parameters.wants_form)),
    Rule("omitted", "a model leaves out what it need not give, and has to know what holds then", _OURS,
         _each(of_parameters.omits_in_silence)),
    Rule("any", "without a type nothing can be checked before the function runs", f"{_OPENAI} (strict mode)",
         _each(of_parameters.is_anything)),
    Rule("catch-all", "a model only gives parameters that it is told of", _OURS, _each(of_tools.catches_all)),
    Rule("flag", "true and false are mixed up where the name does not tell them apart", f"{_OPENAI} (invalid states)",
         _each(of_parameters.traps)),
    Rule("name", "a provider refuses the whole request for one bad name", "the API references", _each(of_tools.misnamed)),
    Rule("parameter name", "likewise for the name of a parameter", "Anthropic's API error", _each(of_parameters.misspelled)),
    Rule("clash", "tools of nearly the same name are taken for each other", _ANTHROPIC, _all(of_sets.clash)),
    Rule("overlap", "where two descriptions say the same, the choice is a toss", _ANTHROPIC, _all(of_sets.overlap)),
    Rule("many parameters", "each parameter is one more that can be wrong", _OURS, _each(of_tools.has_many)),
    Rule("nesting", "deep objects come back with brackets and keys missing", _OURS, _each(of_tools.is_deep)),
    Rule("tier", "the policy asks only for what is said to be dangerous", "guards.policy", _each(of_tools.says_no_tier)),
    Rule("side effect", "a model that does not know of a side effect does not ask before", _ANTHROPIC,
         _each(of_tools.says_no_effect)),
    Rule("error", "a model mends its call by what the error says", _ANTHROPIC, _each(of_tools.swallows)),
    Rule("many tools", "the more tools, the more often the wrong one", f"{_OPENAI}", _all(of_sets.crowd)),
    Rule("tokens", "definitions are sent and paid for in every round", f"{_OPENAI} (token usage)",
         lambda subjects, setting: of_sets.cost(subjects, setting.model, setting.window)),
)  # fmt: skip
