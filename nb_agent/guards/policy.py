"""Who may do what: a tier for each tool, a verdict for each tier, and rules that go before both.

A policy only decides; it neither asks nor runs. What an MCP server says of its own tools is a hint of a stranger: it can make a
verdict stricter, and never better than ``ask``, unless the person said that the server is trusted.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

from nb_agent.errors import SettingError

__all__ = ["Guarded", "Policy", "PolicyLike", "Rule", "Ruling", "Tier", "Verdict"]

#: What a tool may do: only look, change something that can be put right, or do harm.
Tier: TypeAlias = Literal["read", "write", "danger"]
#: Run the call, ask a person first, or tell the model that it is not allowed. Each is stricter than the one before.
Verdict: TypeAlias = Literal["go", "ask", "refuse"]
#: A pattern of tool names with its verdict, or a function of name and arguments that gives one, or ``None`` where it says nothing.
Rule: TypeAlias = "tuple[str, Verdict] | Callable[[str, Mapping[str, Any]], Verdict | None]"

_TIERS: Final[tuple[Tier, ...]] = get_args(Tier)
_VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


class Guarded(Protocol):
    """What a policy looks at in a tool."""

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def tier(self) -> Tier | None:
        """What it may do; ``None`` where nobody said, which counts as ``write``."""

    @property
    def vouched(self) -> bool:
        """Whether somebody the person trusts said so, and not a stranger's server."""


#: A policy, or what one is made of (see `Policy.of`).
PolicyLike: TypeAlias = "Policy | Mapping[str, str] | str | Iterable[Rule] | None"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict, and in a few words why."""

    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A verdict for each tier, and rules that go before.

    Attributes:
        read: for tools that only look.
        write: for tools that change something, and for those of which nobody said what they do.
        danger: for tools that may do harm.
        rules: the first that says something decides.
    """

    read: Verdict = "go"
    write: Verdict = "go"
    danger: Verdict = "ask"
    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, given: PolicyLike) -> Policy:
        """A policy as people write it: ``{"write": "ask", "delete_*": "refuse"}`` or ``"write=ask, delete_*=refuse"``.

        Words that are no tier are patterns of tool names (``*`` and ``?``); what is not named keeps its default.

        Raises:
            SettingError: a verdict is none.
        """
        if isinstance(given, Policy):
            return given
        if given is None:
            return cls()
        if isinstance(given, str):
            given = dict(_pair(part) for part in given.replace(",", " ").split())
        if not isinstance(given, Mapping):
            return cls(rules=tuple(given))
        checked = {name: _verdict(name, word) for name, word in given.items()}
        tiers = {name: word for name, word in checked.items() if name in _TIERS}
        return cls(**tiers, rules=tuple((name, word) for name, word in checked.items() if name not in _TIERS))

    def ruling(self, tool: Guarded, arguments: Mapping[str, Any]) -> Ruling:
        """What becomes of one call of a tool with these arguments.

        A rule that raises, or gives what is no verdict, refuses: a fence that is broken lets nothing through.
        """
        for rule in self.rules:
            try:
                found = _said(rule, tool.name, arguments)
            except Exception as error:  # noqa: BLE001  a rule is somebody else's code
                return Ruling("refuse", f"a rule failed: {type(error).__name__}: {error}")
            if found is not None:
                return found
        tier: Tier = tool.tier or "write"
        verdict: Verdict = getattr(self, tier)
        if not tool.vouched and verdict == "go":
            return Ruling("ask", f"{tier}, by the word of a server that is not trusted")
        return Ruling(verdict, tier if tool.tier else "nobody said what it may do")


def _said(rule: Rule, name: str, arguments: Mapping[str, Any]) -> Ruling | None:
    if isinstance(rule, tuple):
        return Ruling(rule[1], f"rule {rule[0]}") if fnmatch.fnmatchcase(name, rule[0]) else None
    verdict = rule(name, arguments)
    return None if verdict is None else Ruling(_verdict(name, verdict), f"rule {getattr(rule, '__name__', 'of the notebook')}")


def _pair(part: str) -> tuple[str, str]:
    name, sign, verdict = part.partition("=")
    if not sign:
        raise SettingError(f"{part!r} is no rule; write a tier or a pattern of names, = and a verdict, such as write=ask")
    return name, verdict


def _verdict(name: str, word: Any) -> Verdict:
    if word not in _VERDICTS:
        raise SettingError(f"{name}={word!r}: a verdict is one of {', '.join(_VERDICTS)}")
    found: Verdict = word
    return found
