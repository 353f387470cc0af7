"""Writes ``reference.md`` from the tables that the code itself goes by, so that the page says what the code does.

``python docs/tables.py`` writes it; a test compares it with what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nb_agent import errors, events
from nb_agent.adapters import WIRES
from nb_agent.adapters.anthropic_messages.words import FINISH as ANTHROPIC_FINISH
from nb_agent.adapters.chat_completions.stream import FINISH as CHAT_FINISH
from nb_agent.adapters.error_kinds import KIND_OF_STATUS
from nb_agent.adapters.gemini_generate.stream import FINISH as GEMINI_FINISH
from nb_agent.adapters.responses.ends import FINISH as RESPONSES_FINISH
from nb_agent.agent import SETTINGS
from nb_agent.messages import Definition, Message
from nb_agent.mock.faults import FAULTS
from nb_agent.providers import PROVIDERS

PAGE: Final = Path(__file__).parent / "reference.md"

FINISHES: Final = {
    "chat_completions": CHAT_FINISH,
    "responses": RESPONSES_FINISH,
    "anthropic_messages": ANTHROPIC_FINISH,
    "gemini_generate": GEMINI_FINISH,
}
#: A value of each setting that every format is asked to carry.
SAMPLES: Final[dict[str, Any]] = {
    "frequency_penalty": 0.5,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "max_completion_tokens": 500,
    "max_tokens": 500,
    "metadata": {"lesson": "1"},
    "n": 2,
    "parallel_tool_calls": False,
    "presence_penalty": 0.5,
    "reasoning_effort": "low",
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}}},
    "seed": 7,
    "service_tier": "default",
    "stop": ["END"],
    "temperature": 0.2,
    "tool_choice": "required",
    "top_logprobs": 2,
    "top_p": 0.9,
    "user": "u-1",
}
TOOL: Final = Definition("f", "F.", {"type": "object", "properties": {"a": {"type": "string"}}})


#: Fields of a body that only hold other fields.
GROUPS: Final = frozenset({"generationConfig", "output_config", "reasoning", "text", "toolConfig"})

ABOUT_FINISHES: Final = (
    "The words of each wire format, in one vocabulary. A word that is not here is never taken for `stop`. Between `stop` and "
    "`tool_calls` what the message holds decides, since servers mix them up."
)
ABOUT_SETTINGS: Final = (
    "What may be set on an `Agent`, and the field that it becomes. A dash means that the format has none: it is left out, and "
    "the request says so. Anything else goes into `extra_body` and is sent as it is."
)
ABOUT_ERRORS: Final = (
    "Any other status from 400 on is a `bad_request`, from 500 on a `server` error. A request is tried again at most twice, "
    "after the wait that the server asks for; of an answer that broke off nothing is kept, and none of its calls has run."
)


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# Reference",
        "Written by `python docs/tables.py` from the code's own tables.",
        "## How a run ends",
        table(["ending", "what it means"], [[f"`{name}`", meaning] for name, meaning in events.ENDINGS.items()]),
        "## Finish reasons",
        ABOUT_FINISHES,
        table(["here", *FINISHES], finish_rows()),
        "## Settings",
        ABOUT_SETTINGS,
        table(["setting", *WIRES], setting_rows()),
        "## Errors of a model server",
        ABOUT_ERRORS,
        table(["kind", "HTTP status", "tried again", "what to do"], error_rows()),
        "## Providers",
        table(
            ["prefix", "address", "key", "wire format"],
            [[f"`{name}:`", p.base_url, f"`{p.key}`" if p.key else "none", p.wire] for name, p in PROVIDERS.items()],
        ),
        "## Faults of the mock model",
        "Asked for by a word in the prompt, `fault:NAME`, or by the model's name, `mock:NAME`.",
        table(["fault", "what it shows"], [[f"`{name}`", fault.shows] for name, fault in FAULTS.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def finish_rows() -> list[list[str]]:
    """For each of our words those of the four formats."""
    ours = dict.fromkeys(word for words in FINISHES.values() for word in words.values())
    return [
        [f"`{own}`", *(", ".join(f"`{raw}`" for raw, word in words.items() if word == own) or "–" for words in FINISHES.values())]
        for own in ours
    ]


def setting_rows() -> list[list[str]]:
    """For each setting the place in the body where each format puts it."""
    return [[f"`{name}`", *(", ".join(places(wire, name)) or "–" for wire in WIRES)] for name in sorted(SETTINGS)]


def places(wire: str, name: str) -> list[str]:
    """The paths that a setting adds to a request of a format."""
    plain, asked = (
        WIRES[wire].request([Message.of("user", "hi")], [TOOL], model="m", settings=settings).body
        for settings in ({}, {name: SAMPLES[name]})
    )
    return [f"`{path}`" for path in added(plain, asked, "")]


def added(before: Any, after: Any, path: str) -> Iterator[str]:
    """The paths of what is new or other in the second value, no deeper than to the value that was set."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        if before != after:
            yield path
        return
    for key, value in after.items():
        place = f"{path}.{key}" if path else key
        if key in before:
            yield from added(before[key], value, place)
        elif place in GROUPS:
            yield from added({}, value, place)
        else:
            yield place


def error_rows() -> list[list[str]]:
    """For each kind its statuses, whether a repeat may help, and what to do."""
    return [
        [
            f"`{kind}`",
            ", ".join(str(status) for status, of in KIND_OF_STATUS.items() if of == kind) or "–",
            "yes" if again else "no",
            errors.WHAT_TO_DO.get(kind, "–"),
        ]
        for kind, again in errors.PROVIDER_KINDS.items()
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
