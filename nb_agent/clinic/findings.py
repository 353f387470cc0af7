"""`lint` looks through tools before a model does; `Findings` is what it found, as a list, a table and a text.

It runs no tool and asks no model. What a model makes of a definition is measured by `trials`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from nb_agent import mock
from nb_agent.clinic.of_sets import weigh
from nb_agent.clinic.rules import RULES, Setting
from nb_agent.clinic.subjects import Given, Subject, made
from nb_agent.errors import SettingError, ToolDefinitionError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Finding", "Findings", "lint"]

_CELL: Final = 'style="text-align:left;vertical-align:top"'


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that could be better.

    Attributes:
        rule: its name in `rules.RULES`, or ``definition`` for what is no tool at all.
        tool: the tool's name; empty where it is about all of them.
        parameter: where it is about one, ``address.city`` for a part of one.
        reason: what is wrong.
        wording: what to start from instead.
    """

    rule: str
    tool: str
    parameter: str | None
    reason: str
    wording: str

    def __str__(self) -> str:
        where = ".".join(part for part in (self.tool, self.parameter) if part) or "all tools"
        return f"{where}: {self.reason} [{self.rule}]\n    better: {self.wording}"


class Findings(Sequence[Finding]):
    """What `lint` found: a sequence of `Finding`, empty where nothing is to be said.

    Attributes:
        tokens: tokens of each definition, in every request, by the tool's name.
        model: whose tokens they are.
        window: of the model, in tokens; ``None`` where it is not known.
    """

    def __init__(self, found: Iterable[Finding], tokens: dict[str, int], setting: Setting) -> None:
        self._found = tuple(found)
        self.tokens = tokens
        self.model, self.window = setting.model, setting.window

    @property
    def total(self) -> int:
        """Tokens of all definitions together, in every request."""
        return sum(self.tokens.values())

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, place: int | slice) -> Finding | tuple[Finding, ...]:
        """One finding, or several."""
        return self._found[place]

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<Findings: {len(self)} in {self._tools}>"

    @property
    def _tools(self) -> str:
        return f"{len(self.tokens)} tool{'s' * (len(self.tokens) != 1)}"

    @property
    def _summary(self) -> str:
        share = f", {self.total / self.window:.1%} of the window of {self.window:,}" if self.window else ""
        found = "nothing to say" if not self else f"{len(self)} finding{'s' * (len(self) != 1)}"
        return f"{self._tools}: {found}. The definitions take {self.total:,} tokens of every request{share}."

    def __str__(self) -> str:
        return "\n".join([self._summary, *map(str, self)])

    def frame(self) -> pd.DataFrame:
        """A row for each finding: rule, tool, parameter, reason, wording."""
        import pandas as pd  # noqa: PLC0415  0.6 s that only whoever asks for a frame needs

        return pd.DataFrame([asdict(finding) for finding in self], columns=list(Finding.__dataclass_fields__), dtype=object)

    def _repr_html_(self) -> str:
        head = "".join(f"<th {_CELL}>{name}</th>" for name in ("tool", "parameter", "what is wrong", "better", "rule"))
        rows = "".join(_row(finding) for finding in self)
        costs = ", ".join(f"{html.escape(name)} {number:,}" for name, number in self.tokens.items())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if self else ""
        return f"<p>{html.escape(self._summary)}</p>{table}<p>Tokens: {costs or 'none'}</p>"


def _row(finding: Finding) -> str:
    plain = (finding.tool or "all", finding.parameter or "", finding.reason)
    cells = [*map(html.escape, plain), f"<code>{html.escape(finding.wording)}</code>", html.escape(finding.rule)]
    return "<tr>" + "".join(f"<td {_CELL}>{cell}</td>" for cell in cells) + "</tr>"


def lint(
    tools: Iterable[Given] | Callable[..., Any],
    *,
    model: str = "mock",
    window: int | None = None,
    ignore: Iterable[str] = (),
) -> Findings:
    """Look through the definitions of tools: what a model would get wrong, why, and a wording to start from.

    >>> def do_it(x: str): "Does stuff."
    >>> [finding.rule for finding in lint([do_it])]
    ['description', 'parameter', 'free text']

    Args:
        tools: functions, tools, MCP tools, definitions, or one of them.
        model: whose tokens are counted.
        window: its context window in tokens, where the model's own is not known.
        ignore: names of rules that are left out.

    Raises:
        SettingError: a rule is not known.
    """
    left_out = set(ignore)
    if unknown := left_out - {rule.name for rule in RULES}:
        raise SettingError(
            f"no rule named {', '.join(map(repr, sorted(unknown)))}; rules: {', '.join(rule.name for rule in RULES)}"
        )
    setting = Setting(model, window or (mock.window(model) if mock.is_known(model) else None))
    subjects: list[Subject] = []
    found: list[Finding] = []
    for entry in _several(tools):
        try:
            subjects.append(Subject(made(entry)))
        except ToolDefinitionError as error:
            name = str(getattr(entry, "__name__", None) or getattr(entry, "name", "") or entry)
            found.append(Finding("definition", name, None, str(error), "see the reason: as it is, no run takes it"))
    for rule in RULES:
        if rule.name not in left_out:
            found += [Finding(rule.name, *fault) for fault in rule.check(subjects, setting)]
    costs: dict[str, int] = {}
    for subject, number in zip(subjects, weigh(subjects, model), strict=True):
        costs[subject.name] = costs.get(subject.name, 0) + number
    return Findings(found, costs, setting)


def _several(tools: Iterable[Given] | Callable[..., Any]) -> Iterator[Any]:
    """The tools one by one, the same one twice as one."""
    given = tools if isinstance(tools, Iterable) and not isinstance(tools, (dict, str)) else [tools]
    kept: list[Any] = []
    for entry in given:
        if not any(entry is other for other in kept):
            kept.append(entry)
            yield entry
