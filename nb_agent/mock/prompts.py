"""A prompt, read once: its values, its concepts, and whose parameters the values could be.

Unlike `reading`, which finds values whatever the tools are, this knows the tools of the request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nb_agent.messages import Definition
from nb_agent.mock.params import Param, params
from nb_agent.mock.phrases import statement
from nb_agent.mock.reading import Finding, findings
from nb_agent.mock.words import concepts, merged, places, turns

__all__ = ["Prompt", "read"]

#: Kinds whose letters are no words of the prompt.
_LITERAL: Final = frozenset({"code", "path", "glob", "url", "email"})
_MOST_FINDINGS: Final = 60  # a page pasted into a prompt holds thousands


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with what was found in it. ``rivals`` are the parameters of all tools: a code belongs to whom it is named after."""

    text: str
    found: tuple[Finding, ...]
    places: dict[str, list[int]]
    rivals: tuple[Param, ...] = ()


def read(text: str, tools: tuple[Definition, ...] = ()) -> Prompt:
    """A prompt, read once for all tools. The words of a value say nothing of what is asked: a code is no mention of its prefix."""
    named = merged(concepts(tool.name) for tool in tools)
    trimmed = [_trimmed(finding, named) for finding in findings(text)[:_MOST_FINDINGS]]
    found = [f for f in trimmed if f.kind != "name" or not concepts(f.text) or concepts(f.text) - named]
    asked = text
    for finding in found:
        if finding.marked or (finding.kind in _LITERAL and text[finding.start : finding.end] == finding.text):
            asked = asked[: finding.start] + " " * (finding.end - finding.start) + asked[finding.end :]
    if written := statement(asked):
        asked = asked[: written[0]] + " " * (written[1] - written[0]) + asked[written[1] :]
    return Prompt(text, tuple(found), {**places(asked), **turns(text)}, tuple(param for tool in tools for param in params(tool)))


def _trimmed(finding: Finding, named: frozenset[str]) -> Finding:
    """A name without a tool's verb that a sentence begins with: "Greet Alice"."""
    first, _, rest = finding.text.partition(" ")
    if finding.kind != "name" or not rest or not concepts(first) or concepts(first) - named:
        return finding
    return replace(finding, text=rest, start=finding.end - len(rest))
