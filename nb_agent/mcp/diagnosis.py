"""What the doctor found: five stages as values, with their text, HTML and JSON. Looks at nothing itself; `doctor` does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Final, Literal, TypeAlias

from nb_agent.values import JSON

__all__ = ["STAGES", "Diagnosis", "Stage", "Verdict"]

Verdict: TypeAlias = Literal["ok", "warning", "failed", "skipped"]

#: In the order that finds faults fastest.
STAGES: Final = (
    "the server starts by itself",
    "the connection stands",
    "names and arguments fit",
    "a result is well formed",
    "the model's context holds them",
)
_MARKS: Final[dict[Verdict, str]] = {"ok": "✓", "warning": "!", "failed": "✗", "skipped": "·"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: what was tried, what came back, and what to do where that was not good."""

    name: str
    verdict: Verdict
    tried: str = ""
    came: str = ""
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All five stages of one server; those after the first that failed are skipped."""

    name: str
    target: str
    stages: tuple[Stage, ...]

    @property
    def sound(self) -> bool:
        """Whether no stage failed."""
        return self.failed is None

    @property
    def failed(self) -> Stage | None:
        """The stage that failed, if one did."""
        return next((stage for stage in self.stages if stage.verdict == "failed"), None)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.target}"]
        for number, stage in enumerate(self.stages, 1):
            lines.append(f"{_MARKS[stage.verdict]} {number}. {stage.name}: {stage.verdict}")
            lines += [f"     {label}: {text}" for label, text in _rows(stage)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """A list without script or style of its own; everything that came from a server is escaped."""
        items = "".join(
            f"<li><b>{_MARKS[stage.verdict]} {escape(stage.name)}</b>: {stage.verdict}"
            + "".join(f"<br>{label}: {escape(text)}" for label, text in _rows(stage))
            + "</li>"
            for stage in self.stages
        )
        return f"<div><b>{escape(self.name)}</b> <code>{escape(self.target)}</code><ol>{items}</ol></div>"

    def to_json(self) -> JSON:
        """The same as JSON."""
        stages = [{**asdict(stage), "advice": list(stage.advice)} for stage in self.stages]
        return {"name": self.name, "target": self.target, "sound": self.sound, "stages": stages}


def _rows(stage: Stage) -> list[tuple[str, str]]:
    rows = [("tried", stage.tried), ("came back", stage.came), *(("do", advice) for advice in stage.advice)]
    return [(label, text) for label, text in rows if text]
