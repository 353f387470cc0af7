"""What an answer may have: the smallest of what was asked for, what the model can write, and what the window leaves it.

The rule is mission A4. Counts come from `tokens`; of an estimate a margin is kept free, and the whole is called one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nb_agent.values import JSON, Value

__all__ = ["Budget", "asked_for", "budgeted", "over_window"]

#: Kept free where the count is an estimate: a share of the input, and tokens on top of it.
_SHARE: Final = 0.02
_TOKENS: Final = 16
#: Parts that are named where something has to become smaller.
_MOST_PARTS: Final = 3

#: Where a request says how long its answer may be, in each wire format (mission A5).
_ANSWER_FIELDS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens")

#: Part of a request -> what makes it smaller.
_ADVICE: Final = {
    "tool_results": "let the tools give less at once, page by page",
    "tools": "offer fewer tools",
    "user": "put a long text into a file that a tool reads page by page",
    "images": "send fewer or smaller pictures",
    "system": "shorten the system prompt",
    "developer": "shorten the system prompt",
}
_BEGIN_ANEW: Final = "begin a new conversation"


@dataclass(frozen=True, slots=True)
class Budget(Value):
    """How much a model may answer to one request. All numbers are tokens.

    Attributes:
        model: the name that the limits were looked up by.
        input: what the request has.
        exact: whether that was counted exactly.
        window: of request and answer together.
        longest: the longest answer that the model can write; ``None`` where it is not known.
        asked: the longest answer that the request asks for; ``None`` where it does not say.
        reasoning: of the answer, what the request sets aside for thinking; providers count it into the answer.
        margin: kept free, since the input is an estimate.
        output: what may be put out; 0 where the request is over the window.
        binds: which limit it is: ``"asked for"``, ``"model maximum"`` or ``"window"``.
        over: by how much the request is over the window.
        largest: its largest parts, with what makes each smaller, where nothing is left for an answer.
    """

    model: str
    input: int
    exact: bool
    window: int
    longest: int | None
    asked: int | None
    reasoning: int
    margin: int
    output: int
    binds: str
    over: int = 0
    largest: tuple[tuple[str, int, str], ...] = ()

    def shown(self) -> JSON:
        """The form for a view's state."""
        return {"output": self.output, "binds": self.binds, "over": self.over, "reasoning": self.reasoning, "words": str(self)}

    def __str__(self) -> str:
        about = "" if self.exact else "about "
        if not self.output:
            parts = ", ".join(f"{name.replace('_', ' ')} {tokens:,}" for name, tokens, _ in self.largest)
            advice = ", or ".join(dict.fromkeys(words for *_, words in self.largest if words))
            head = "over the window" if self.over else "no room for an answer"
            return f"{head}: {about}{self.input:,} tokens of {self.window:,}; the largest parts: {parts}; {advice}"
        thought = f", {min(self.reasoning, self.output):,} of them for thinking" if self.reasoning else ""
        more = f"; {self.asked:,} were asked for" if self.asked is not None and self.asked > self.output else ""
        return f"{about}{self.input:,} tokens of {self.window:,}; the answer may have {self.output:,}{thought} ({self.binds}{more})"


def budgeted(counted: JSON, body: JSON, *, model: str, window: int, longest: int | None = None, asked: int | None = None) -> Budget:
    """What may be put out for a request.

    Args:
        counted: its tokens, in the form of `tokens.Breakdown.shown`.
        body: its JSON, in any wire format.
        model: for the words.
        window: of the model.
        longest: the longest answer of the model.
        asked: what is asked for in place of what the body says.
    """
    total, exact = counted["total"], counted["exact"]
    margin = 0 if exact else int(total * _SHARE) + _TOKENS
    asked = asked_for(body) if asked is None else asked
    limits = {"asked for": asked, "model maximum": longest, "window": window - total - margin}
    binds = min((name for name, tokens in limits.items() if tokens is not None), key=lambda name: limits[name] or 0)
    output = max(0, limits[binds] or 0)
    over = max(0, total - window)
    parts = () if output else largest(counted)
    return Budget(model, total, exact, window, longest, asked, _thinking(body), margin, output, binds, over, parts)


def asked_for(body: JSON) -> int | None:
    """The most tokens that the answer may have, where the request says so."""
    fields = _settings(body)
    return next((value for name in _ANSWER_FIELDS if isinstance(value := fields.get(name), int) and value > 0), None)


def _settings(body: JSON) -> Mapping[str, Any]:
    given = body.get("generationConfig")
    return given if isinstance(given, dict) else body


def _thinking(body: JSON) -> int:
    """What is set aside for thinking: Anthropic's budget, or Gemini's. Efforts are words, and say no number."""
    for form, name in ((body.get("thinking"), "budget_tokens"), (_settings(body).get("thinkingConfig"), "thinkingBudget")):
        value = form.get(name) if isinstance(form, dict) else None
        if isinstance(value, int) and value > 0:
            return value
    return 0


def largest(counted: JSON) -> tuple[tuple[str, int, str], ...]:
    """The largest parts of a request: name, tokens, and what makes it smaller; nothing can be done about the protocol."""
    parts = sorted(counted["parts"].items(), key=lambda entry: -entry[1])[:_MOST_PARTS]
    return tuple((part, tokens, "" if part == "overhead" else _ADVICE.get(part, _BEGIN_ANEW)) for part, tokens in parts)


def over_window(counted: JSON, window: int, *, compacting: bool) -> str:
    """Said before a request goes out that is over the window."""
    words = str(budgeted(counted, {}, model="", window=window))
    head, _, advice = words.rpartition("; ")
    return words if compacting else f"{head}; switch compaction on, or {advice}"
