"""`compare_definitions` asks a model the same things with two versions of the tools, and lays what it did side by side.

Unlike `findings`, which only reads, this runs: tools are carried out as the policy lets them, bare definitions are not. Nobody is
asked for leave; a call that needs it is refused.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from nb_agent.agent import Agent
from nb_agent.clinic import chart
from nb_agent.clinic.judging import Expected, all_right, right_after, written
from nb_agent.clinic.subjects import Given, made
from nb_agent.errors import ProviderError, SettingError
from nb_agent.events import ReplyDone, ToolDone
from nb_agent.run import Run, counted
from nb_agent.values import JSON

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Trial", "compare_definitions"]

#: Codes of calls that never reached a tool.
_UNKNOWN: Final = "unknown_tool"
_INVALID: Final = frozenset({"invalid_arguments", "truncated_arguments"})
_CELL: Final = 'style="text-align:left;vertical-align:top"'


@dataclass(frozen=True, slots=True)
class Trial:
    """What a model did with one prompt and one version.

    Attributes:
        version: its name.
        prompt: what was asked.
        calls: what the first reply asked for, as it reads in Python.
        first_right: whether those calls are right: all of them expected ones, or, where nothing is expected, none that failed;
            ``None`` where nothing is expected and nothing was called.
        right_after: number of the round in which the last expected call was made; ``None`` where it never was.
        rounds: requests in all.
        unknown: calls of tools that are not there.
        invalid: calls whose arguments did not fit.
        failed: calls that a tool itself refused, or that failed or were not allowed.
        definitions: tokens of the definitions, in each request.
        sent: tokens of all requests together, counted here.
        error: what the model server said, where it failed.
    """

    version: str
    prompt: str
    calls: str
    first_right: bool | None
    right_after: int | None
    rounds: int
    unknown: int
    invalid: int
    failed: int
    definitions: int
    sent: int
    error: str | None = None


class Comparison(Sequence[Trial]):
    """Two versions of definitions over the same prompts: a sequence of `Trial`, a table, a text and a picture.

    Attributes:
        names: of the two versions.
        model: that was asked.
        runs: the runs themselves, in the order of the trials.
    """

    def __init__(self, trials: Iterable[Trial], runs: Iterable[Run], *, names: Sequence[str], model: str) -> None:
        self._trials = tuple(trials)
        self.runs = tuple(runs)
        self.names = tuple(names)
        self.model = model

    def __getitem__(self, place: Any) -> Any:
        """One trial, or several."""
        return self._trials[place]

    def __len__(self) -> int:
        return len(self._trials)

    def __repr__(self) -> str:
        return f"<Comparison of {' and '.join(self.names)}: {len(self) // 2} prompts, {self.model}>"

    @property
    def summary(self) -> dict[str, JSON]:
        """For each version its number of prompts and its measures: shares and means, `None` where there is nothing to judge."""
        return {name: _summed([trial for trial in self if trial.version == name]) for name in self.names}

    def frame(self) -> pd.DataFrame:
        """A row for each trial; the columns are those of `Trial`."""
        import pandas as pd  # noqa: PLC0415  0.6 s that only whoever asks for a frame needs

        columns = {name: [asdict(trial)[name] for trial in self] for name in Trial.__dataclass_fields__}
        return pd.DataFrame({name: pd.Series(held, dtype=_DTYPES.get(name, "object")) for name, held in columns.items()})

    def plot(self, *, dark: bool | None = None) -> Figure:
        """The two versions side by side. ``dark`` chooses the colours; ``None`` follows matplotlib's own setting."""
        return chart.plot(self.summary, f"{len(self) // 2} prompts, {self.model}", dark=dark)

    def __str__(self) -> str:
        return "\n".join([chart.describe(self.summary), *(_line(trial) for trial in self)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th {_CELL}>{name}</th>" for name in _HEAD)
        half = len(self) // 2  # the trials of one version, so that both versions of a prompt stand together
        rows = "".join(_row(trial) for pair in zip(self[:half], self[half:], strict=True) for trial in pair)
        told = html.escape(chart.describe(self.summary))
        return f"<p>{told}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


_HEAD: Final = ("prompt", "version", "first calls", "right at once", "right in round")
_DTYPES: Final = {
    "first_right": "boolean",
    "right_after": "Int64",
    **dict.fromkeys(("rounds", "unknown", "invalid", "failed", "definitions", "sent"), "int64"),
}


def compare_definitions(
    a: Iterable[Given],
    b: Iterable[Given],
    prompts: Iterable[str | Mapping[str, Any]],
    model: str = "mock",
    *,
    names: Sequence[str] = ("a", "b"),
    **settings: Any,
) -> Comparison:
    """Ask a model the same things with two versions of the tools, each prompt in a conversation of its own.

    Args:
        a: tools, functions, MCP tools, or bare definitions, which are not carried out.
        b: the other version of them.
        prompts: texts; or ``{"prompt": text, "calls": [{"name": …, "arguments": {…}}]}`` with the calls that are right. Arguments
            that are not named there may be anything, and one that is a function says itself whether it is right.
        model: any that `Agent` takes.
        names: what the two versions are called.
        settings: of the `Agent`, such as ``system``, ``base_url`` or ``policy``.

    Raises:
        SettingError: there are no prompts, one cannot be read, or a setting cannot work.
        ToolDefinitionError: something cannot be told to a model.
        ProviderError: the model server failed at the first prompt; a later failure is a trial with its error.
    """
    if len(names) != 2 or names[0] == names[1]:
        raise SettingError(f"names={names!r}: two different names are needed, one for each version")
    asked = [_asked(entry) for entry in prompts]
    if not asked:
        raise SettingError("there are no prompts; give a list of texts")
    trials: list[Trial] = []
    runs: list[Run] = []
    for name, tools in zip(names, (a, b), strict=True):
        version = [made(given) for given in tools]
        for prompt, expected in asked:
            agent = Agent(model, version, **{"ask": lambda _: None, **settings})
            run, error = _run(agent, prompt, fatal=not trials)
            runs.append(run)
            trials.append(_trial(name, prompt, expected, run, model, error))
    return Comparison(trials, runs, names=names, model=model)


def _asked(entry: Any) -> tuple[str, list[Expected] | None]:
    """The text of a prompt, and the calls that are right where they are told."""
    if isinstance(entry, str):
        return entry, None
    match entry:
        case {"prompt": str(text), "calls": [*calls]} if all(isinstance(call, Mapping) and "name" in call for call in calls):
            return text, calls
        case {"prompt": str(text)} if entry.get("calls") is None:
            return text, None
    raise SettingError(
        f'{entry!r} is no prompt; write a text, or {{"prompt": "…", "calls": [{{"name": "…", "arguments": {{…}}}}]}}'
    )


def _run(agent: Agent, prompt: str, *, fatal: bool) -> tuple[Run, str | None]:
    try:
        return agent.run(prompt, view=False), None
    except ProviderError as error:
        if fatal:
            raise
        return agent.last_run or Run(), str(error)


# ------------------------------------------------------------------------------------------------- what a run shows


def _trial(version: str, prompt: str, expected: list[Expected] | None, run: Run, model: str, error: str | None) -> Trial:
    replies = [event.reply.message.tool_calls for event in run.events if isinstance(event, ReplyDone)]
    first = replies[0] if replies else ()
    done = [event for event in run.events if isinstance(event, ToolDone)]
    codes = [event.result.code for event in done]
    if expected is not None:
        right = all_right(expected, first) if replies else None
    else:
        right = not any(event.result.failed for event in done if event.number == 1) if first else None
    sizes = [counted(request, model) for request in run.requests]
    return Trial(
        version,
        prompt,
        calls=", ".join(map(written, first)),
        first_right=right,
        right_after=None if expected is None else right_after(expected, replies),
        rounds=len(run.requests),
        unknown=codes.count(_UNKNOWN),
        invalid=sum(code in _INVALID for code in codes),
        failed=sum(code is not None and code != _UNKNOWN and code not in _INVALID for code in codes),
        definitions=sizes[0]["parts"].get("tools", 0) if sizes else 0,
        sent=sum(size["total"] for size in sizes),
        error=error,
    )


# ------------------------------------------------------------------------------------------------- all of a version


def _summed(trials: list[Trial]) -> JSON:
    judged = [trial.first_right for trial in trials if trial.first_right is not None]
    reached = [trial.right_after for trial in trials if trial.right_after is not None]
    return {
        "prompts": len(trials),
        "first_right": sum(judged) / len(judged) if judged else None,
        "right_after": sum(reached) / len(reached) if reached else None,
        "rounds": sum(trial.rounds for trial in trials) / len(trials),
        "bad_calls": sum(trial.unknown + trial.invalid + trial.failed for trial in trials),
        "definitions": max(trial.definitions for trial in trials),
        "sent": sum(trial.sent for trial in trials) / len(trials),
    }


_JUDGED: Final = {True: "yes", False: "no", None: "nothing to judge"}


def _line(trial: Trial) -> str:
    right = f"right in round {trial.right_after}" if trial.right_after else f"{trial.rounds} rounds"
    said = trial.error or f"{trial.calls or 'no call'}; right at once: {_JUDGED[trial.first_right]}; {right}"
    return f"{trial.version:8}  {trial.prompt}\n          {said}"


def _row(trial: Trial) -> str:
    calls = trial.error or trial.calls or "no call"
    cells = [html.escape(trial.prompt), html.escape(trial.version), f"<code>{html.escape(calls)}</code>"]
    cells += [_JUDGED[trial.first_right], str(trial.right_after or "–")]
    return "<tr>" + "".join(f"<td {_CELL}>{cell}</td>" for cell in cells) + "</tr>"
