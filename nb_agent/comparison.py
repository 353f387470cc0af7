"""The same task over several wire formats, side by side: turn by turn, field by field, with what a format cannot carry marked.

Each format is a run of its own against the same model; here they are only laid next to each other. Which field is where in each
format is a table of paths, and so is why something is not there.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nb_agent.agent import Agent
from nb_agent.run import Run
from nb_agent.values import JSON

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIELDS", "Comparison", "Field", "compare"]

_MOST_CHARACTERS: Final = 400  # of one field, in the page
_CELL: Final = 'style="text-align:left;vertical-align:top"'

CHAT, RESPONSES, ANTHROPIC, GEMINI = "chat_completions", "responses", "anthropic_messages", "gemini_generate"


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that every format has to say somehow.

    Attributes:
        side: ``request`` or ``reply``.
        paths: wire format -> where it stands in the body: keys and places, with ``?key=value`` for the first entry that has it.
        lost: wire format -> why it is not there, in a sentence.
    """

    name: str
    side: str
    paths: dict[str, str]
    lost: dict[str, str]


def _field(name: str, side: str, /, *paths: str, **lost: str) -> Field:
    """A field with its paths in the order of the four formats."""
    return Field(name, side, dict(zip((CHAT, RESPONSES, ANTHROPIC, GEMINI), paths, strict=True)), lost)


#: What is compared, in the order in which it is shown.
FIELDS: Final = (
    _field("model", "request", "model", "model", "model", "", gemini_generate="the path of the request names it"),
    _field("system prompt", "request", "messages ?role=system content", "instructions", "system", "systemInstruction"),
    _field("prompt", "request", "messages ?role=user", "input ?role=user", "messages ?role=user", "contents ?role=user"),
    _field("a tool's definition", "request", "tools 0", "tools 0", "tools 0", "tools 0 functionDeclarations 0"),
    _field(
        "output limit",
        "request",
        "max_tokens",
        "max_output_tokens",
        "max_tokens",
        "generationConfig maxOutputTokens",
        chat_completions="sent only where it is set",
        responses="sent only where it is set",
        gemini_generate="sent only where it is set",
    ),
    _field("streaming", "request", "stream", "stream", "stream", "", gemini_generate="the path of the request asks for it"),
    _field(
        "a call, sent back",
        "request",
        "messages ?tool_calls tool_calls 0",
        "input ?type=function_call",
        "messages ?role=assistant content ?type=tool_use",
        "contents ?role=model parts ?functionCall",
    ),
    _field(
        "its result",
        "request",
        "messages ?role=tool",
        "input ?type=function_call_output",
        "messages -1 content ?type=tool_result",
        "contents -1 parts ?functionResponse",
    ),
    _field(
        "text",
        "reply",
        "choices 0 message content",
        "output ?type=message content 0 text",
        "content ?type=text text",
        "candidates 0 content parts ?text text",
    ),
    _field(
        "a call",
        "reply",
        "choices 0 message tool_calls 0",
        "output ?type=function_call",
        "content ?type=tool_use",
        "candidates 0 content parts ?functionCall functionCall",
    ),
    _field(
        "its id",
        "reply",
        "choices 0 message tool_calls 0 id",
        "output ?type=function_call call_id",
        "content ?type=tool_use id",
        "candidates 0 content parts ?functionCall functionCall id",
        gemini_generate="ids are optional here; the host makes one up and does not send it back",
    ),
    _field(
        "its arguments",
        "reply",
        "choices 0 message tool_calls 0 function arguments",
        "output ?type=function_call arguments",
        "content ?type=tool_use input",
        "candidates 0 content parts ?functionCall functionCall args",
    ),
    _field(
        "finish reason",
        "reply",
        "choices 0 finish_reason",
        "status",
        "stop_reason",
        "candidates 0 finishReason",
    ),
    _field(
        "tokens read", "reply", "usage prompt_tokens", "usage input_tokens", "usage input_tokens", "usageMetadata promptTokenCount"
    ),
    _field(
        "tokens written",
        "reply",
        "usage completion_tokens",
        "usage output_tokens",
        "usage output_tokens",
        "usageMetadata candidatesTokenCount",
    ),
    _field(
        "tokens in all",
        "reply",
        "usage total_tokens",
        "usage total_tokens",
        "",
        "usageMetadata totalTokenCount",
        anthropic_messages="no total is reported; it is the sum of the others",
    ),
)


def compare(
    prompt: str,
    *,
    wires: Iterable[str] = (CHAT, RESPONSES, ANTHROPIC, GEMINI),
    agent: Callable[[str], Agent] | None = None,
    tools: Iterable[Any] = (),
    system: str | None = None,
    stream: bool = False,
) -> Comparison:
    """Run a task once over each wire format, and lay the runs side by side.

    Args:
        prompt: what the user says.
        wires: names of wire formats (see `adapters.WIRES`).
        agent: makes the agent for a wire format; without it, the mock model with ``tools`` and ``system``.
        tools: functions, or tools made of them.
        system: the system prompt.
        stream: whether answers are asked for piece by piece.

    Raises:
        SettingError: a wire format does not exist.
        ProviderError: a model server failed.
    """
    tools = tuple(tools)
    made = agent or (lambda wire: Agent(tools=tools, system=system, wire=wire, stream=stream))
    return Comparison({wire: made(wire).run(prompt, view=False) for wire in wires})


class Comparison:
    """Runs of one task over several wire formats.

    Attributes:
        runs: wire format -> run.
    """

    def __init__(self, runs: dict[str, Run]) -> None:
        self.runs = runs

    def __repr__(self) -> str:
        return f"<Comparison over {', '.join(self.runs)}>"

    @property
    def rows(self) -> list[JSON]:
        """A row for each field that any format has in a round: round, side, field, and for each wire format what stands there.

        Where there is nothing the value is ``None``, and ``lost`` says for which formats, and why.
        """
        rounds = max((len(run.replies) for run in self.runs.values()), default=0)
        return [row for number in range(rounds) for field in FIELDS if (row := self._row(number, field))]

    def _row(self, number: int, field: Field) -> JSON | None:
        found = {wire: found_at(body, field.paths.get(wire, "")) for wire, body in self._bodies(number, field.side)}
        if all(value is None for value in found.values()):
            return None
        lost = {wire: field.lost.get(wire, "it has no field for this") for wire, value in found.items() if value is None}
        return {"round": number + 1, "side": field.side, "field": field.name, **found, "lost": lost}

    def _bodies(self, number: int, side: str) -> Iterable[tuple[str, JSON]]:
        for wire, run in self.runs.items():
            bodies = [request.body for request in run.requests] if side == "request" else [reply.body for reply in run.replies]
            yield wire, bodies[number] if number < len(bodies) else {}

    @property
    def frame(self) -> pd.DataFrame:
        """`rows` as a pandas DataFrame: columns round, side, field, one for each wire format (JSON values), and lost (text)."""
        import pandas as pd  # noqa: PLC0415  0.6 s that only whoever asks for a frame needs

        rows = [{**row, "lost": "; ".join(f"{wire}: {why}" for wire, why in row["lost"].items()) or None} for row in self.rows]
        return pd.DataFrame(rows, columns=["round", "side", "field", *self.runs, "lost"], dtype=object)

    @property
    def texts(self) -> dict[str, str]:
        """The answer over each wire format."""
        return {wire: run.text for wire, run in self.runs.items()}

    def _repr_html_(self) -> str:
        head = "".join(f"<th {_CELL}>{html.escape(wire)}</th>" for wire in self.runs)
        parts = [f"<h4>One task over {len(self.runs)} wire formats</h4>"]
        rows = self.rows
        for number, side in dict.fromkeys((row["round"], row["side"]) for row in rows):
            lines = "".join(self._line(row) for row in rows if (row["round"], row["side"]) == (number, side))
            table = f"<table><thead><tr><th {_CELL}>field</th>{head}</tr></thead><tbody>{lines}</tbody></table>"
            parts.append(f"<h5>Round {number}, {side}</h5>{table}")
        return "\n".join(parts)

    def _line(self, row: JSON) -> str:
        cells = "".join(
            f"<td {_CELL}><em>not in the body: {html.escape(row['lost'][wire])}</em></td>"
            if row[wire] is None
            else f"<td {_CELL}><pre style='background:none;margin:0'>{html.escape(_shown(row[wire]))}</pre></td>"
            for wire in self.runs
        )
        return f"<tr><th {_CELL}>{html.escape(row['field'])}</th>{cells}</tr>"


def found_at(body: Any, path: str) -> Any:
    """What stands at a path of `Field`, ``None`` where nothing does.

    >>> found_at({"a": [{"k": 1}, {"k": 2, "v": "x"}]}, "a ?k=2 v")
    'x'
    >>> found_at({"a": [1, 2]}, "a -1"), found_at({}, "")
    (2, None)
    """
    if not path:
        return None
    for step in path.split():
        body = _step(body, step)
        if body is None:
            return None
    return body


def _step(body: Any, step: str) -> Any:
    if step.startswith("?"):
        key, _, value = step[1:].partition("=")
        entries = body if isinstance(body, list) else []
        return next((e for e in entries if isinstance(e, dict) and key in e and (not value or str(e[key]) == value)), None)
    if isinstance(body, list):
        place = int(step)
        return body[place] if -len(body) <= place < len(body) else None
    return body.get(step) if isinstance(body, dict) else None


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} … {len(text):,} characters in all"
