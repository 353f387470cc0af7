"""What can be wrong with several tools together: names and descriptions that are alike, too many of them, what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nb_agent import tokens
from nb_agent.adapters import chat_completions
from nb_agent.clinic.subjects import Subject
from nb_agent.clinic.words import content, meaning, pieces
from nb_agent.messages import Message
from nb_agent.tools.sets import crowded

__all__ = ["Together", "clash", "cost", "crowd", "overlap", "weigh"]

#: A tool, or an empty text for all of them; a parameter; the reason; a wording to start from.
Together = tuple[str, str | None, str, str]

#: Share of their words that two descriptions have in common, of so many words at least.
_MOST_ALIKE: Final = 0.6
_LEAST_WORDS: Final = 3
#: Tokens of one definition, and share of the window that all of them may take.
_MOST_TOKENS: Final = 500
_MOST_SHARE: Final = 1 / 3  # results may take another third


def clash(subjects: Sequence[Subject]) -> Iterator[Together]:
    """Names that are the same but for case, signs, order, or a word that means the same."""
    for other, earlier in _in_turn(subjects):
        if any(one.name == other.name for one in earlier):
            yield other.name, None, "two different tools have this name: no run takes both", f"{other.name}_…"
        elif twin := next((one for one in earlier if _plain(one.name) == _plain(other.name)), None):
            yield other.name, None, f"it differs from {twin.name} only in case and signs", _apart(other)
        elif twin := next((one for one in earlier if meaning(one.name) == meaning(other.name)), None):
            yield other.name, None, f"it means the same as {twin.name}: a model takes one for the other", _apart(other)


def _in_turn(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, Sequence[Subject]]]:
    """Each tool with those before it, so that of many alike each is named once."""
    return ((subject, subjects[:place]) for place, subject in enumerate(subjects))


def _plain(name: str) -> str:
    return "".join(pieces(name))


def _apart(subject: Subject) -> str:
    return f"one tool for both; or say in the name what is different: {'_'.join(pieces(subject.name))}_by_…"


def overlap(subjects: Sequence[Subject]) -> Iterator[Together]:
    """Descriptions that say nearly the same."""
    for other, earlier in _in_turn(subjects):
        if twin := next((one for one in earlier if _alike(content(one.description), content(other.description))), None):
            wording = f"{other.description.rstrip('.')}. Use it when …; for … use {twin.name}."
            yield other.name, None, f"its description says nearly the same as that of {twin.name}", wording


def _alike(first: frozenset[str], second: frozenset[str]) -> bool:
    return min(len(first), len(second)) >= _LEAST_WORDS and len(first & second) >= _MOST_ALIKE * len(first | second)


def crowd(subjects: Sequence[Subject]) -> Iterator[Together]:
    """More tools than a model keeps apart."""
    if said := crowded(len(subjects)):
        yield "", None, said, "ToolSets({'…': […], '…': […]}), and for each prompt only the groups that it needs"


def cost(subjects: Sequence[Subject], model: str, window: int | None) -> Iterator[Together]:
    """Definitions that take much of every request."""
    costs = weigh(subjects, model)
    for subject, number in zip(subjects, costs, strict=True):
        if number > _MOST_TOKENS:
            wording = "a shorter description, or fewer parameters; or offer it only where it is needed"
            yield subject.name, None, f"its definition takes {number:,} tokens of every request", wording
    total = sum(costs)
    if window and total > _MOST_SHARE * window:
        reason = f"the definitions take {total:,} tokens of every request, {total / window:.0%} of the window"
        yield "", None, reason, "fewer tools in one request (ToolSets), or shorter definitions"


def weigh(subjects: Sequence[Subject], model: str) -> list[int]:
    """The tokens of each definition in a request, as the model's own vocabulary counts them."""
    return [_tokens(subject, model) for subject in subjects]


def _tokens(subject: Subject, model: str) -> int:
    request = chat_completions.request([Message.of("user", "")], [subject.tool.definition], model=model)
    parts = tokens.breakdown(chat_completions.segments(request.body), model=model).parts
    return parts.get("tools", 0)
