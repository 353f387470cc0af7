"""Every rule by which a provider refuses a history, as one table: its words, its source, the wire formats that it is for.

The words stand here and nowhere else: `nb_agent.history` raises and reports with them, and the adapters put them into a request's
notices. It mends nothing: what all formats need is mended in `nb_agent.history`, the rest by the adapter whose format wants it, on
the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from nb_agent.values import JSON

__all__ = ["ROLES", "RULES", "Rule", "rule_of", "said"]

_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI = _ALL = ("chat_completions", "responses", "anthropic_messages", "gemini_generate")
ROLES: Final = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        words: what is said where it is broken; what stands in braces is filled in.
        source: where it is known from.
        wires: the wire formats that it is for.
        repaired: whether it is mended on the way; otherwise nothing is sent.
        broken: whether a written body breaks it, for those rules that only a whole body can break.
    """

    words: str
    source: str
    wires: tuple[str, ...] = _ALL
    repaired: bool = True
    broken: Callable[[JSON], bool] | None = None


def said(rule: str, **details: Any) -> str:
    """The words of a rule with its details.

    >>> said("image_role", role="system")
    'an image in a message of the system was left out'
    """
    return RULES[rule].words.format(**details)


def rule_of(words: str) -> str | None:
    """The rule that a notice of a request comes from; ``None`` where it is about something else.

    >>> rule_of(said("image_role", role="system"))
    'image_role'
    """
    return next((name for name, pattern in _patterns().items() if pattern.fullmatch(words)), None)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Rule -> what its words look like with any details."""
    texts = {name: rule.words.replace("{{", "{").replace("}}", "}") for name, rule in RULES.items()}
    fills = {name: re.sub(r"\\{[a-z]+(?:!r)?\\}", ".*", re.escape(text)) for name, text in texts.items()}
    return {name: re.compile(fill, re.DOTALL) for name, fill in fills.items()}


# ----------------------------------------------------------------------------------------- what only a whole body can break

_LIST: Final = ("messages", "input", "contents")  # where the three spellings of a body keep the history


def _is_bare(body: JSON) -> bool:
    return not any(body.get(key) for key in _LIST)


def _begins_with_calls(body: JSON) -> bool:
    first: JSON = next(iter(body["contents"]), {})
    return first.get("role") == "model" and any("functionCall" in part for part in first["parts"])


def _ends_with_assistant(body: JSON) -> bool:
    return bool(body["messages"]) and body["messages"][-1]["role"] == "assistant"


# ---------------------------------------------------------------------------------------------------------------- the table

_THREADS: Final = "error texts in public issue threads"
_OPENAI: Final = "OpenAI's API reference"
_CLAUDE: Final = "Anthropic's API reference"
_GOOGLE: Final = "Gemini's API reference"
_OURS: Final = "the messages of nb_agent: no format can say it"

RULES: Final[dict[str, Rule]] = {
    # what cannot be mended, in any format
    "unknown_role": Rule(
        "message {place} has the role {role!r}; give it one of " + ", ".join(ROLES), f"{_OPENAI}, messages", repaired=False
    ),
    "misplaced_part": Rule(
        "message {place} ({role}) holds a {part}, which belongs into a message of the role {home!r}", _OURS, repaired=False
    ),
    "results_of_message": Rule(
        "message {place} (tool) holds {count} results; make it one message for each result", _OURS, repaired=False
    ),
    "no_image": Rule("message {place} holds an image with neither data nor url; give it one of them", _OURS, repaired=False),
    "orphan_result": Rule(
        "message {place} is a result for call {call!r}, which no message before it makes; remove it",
        f"{_OPENAI}; {_CLAUDE}; {_THREADS}",
        repaired=False,
    ),
    "second_result": Rule("message {place} is a second result for call {call!r}; keep one of the two", _THREADS, repaired=False),
    "nothing_to_send": Rule(
        "no message is left to send besides system text; add what the user says",
        f"{_OPENAI}; {_CLAUDE}; {_GOOGLE}",
        repaired=False,
        broken=_is_bare,
    ),
    # what is mended for all formats
    "empty_message": Rule("message {place} ({role}) is empty and was left out", f"{_THREADS}; {_CLAUDE}"),
    "user_twice": Rule(
        "message {place} and the user message before it were joined", "chat templates that refuse two user messages in a row"
    ),
    "late_result": Rule("message {place}, a result, was moved up to its call", f"{_OPENAI}; {_CLAUDE}"),
    "open_call": Rule("call {call!r} of message {place} had no result and was given one that says so", f"{_OPENAI}; {_CLAUDE}"),
    "same_id": Rule("calls of message {place} share the id {call!r} and were given ids of their own", f"{_CLAUDE}; {_THREADS}"),
    # what only some formats cannot carry, and their adapters mend
    "calls_first": Rule(
        "message {place} asks for calls and nobody speaks before it, which Gemini refuses; put the user's message before it",
        f"{_GOOGLE}: a function call turn comes after a user turn or a function response turn",
        (_GEMINI,),
        repaired=False,
        broken=_begins_with_calls,
    ),
    "ends_with_assistant": Rule(
        "message {place}, the last one, is the assistant's, and newer models of Anthropic refuse to go on with it; "
        "add what the user says",
        f"{_CLAUDE}, models without prefill",
        (_ANTHROPIC,),
        repaired=False,
        broken=_ends_with_assistant,
    ),
    "system_inside": Rule(
        "a system message inside the conversation was moved to its {end}", f"{_CLAUDE}; {_GOOGLE}", (_ANTHROPIC, _GEMINI)
    ),
    "developer_role": Rule(
        "a developer message was sent as a system message, because {model} may not know the role",
        f"{_OPENAI}; servers that imitate it answer 400",
        (_CHAT,),
    ),
    "nothing_left": Rule("a message with nothing in it was left out", f"{_GOOGLE}: parts must not be empty", (_CHAT, _GEMINI)),
    "blank_text": Rule("a text of white space was left out", f"{_THREADS}: text content blocks must be non-empty", (_ANTHROPIC,)),
    "trailing_space": Rule(
        "white space at the end of the last message was left out",
        f"{_THREADS}: final assistant content cannot end with trailing whitespace",
        (_ANTHROPIC,),
    ),
    "speaker_name": Rule(
        "the name{name} of a speaker was left out{why}", f"{_CLAUDE}; {_GOOGLE}", (_RESPONSES, _ANTHROPIC, _GEMINI)
    ),
    "foreign_reasoning": Rule(
        "reasoning of another wire format was left out", "signatures and seals are valid where they are from"
    ),
    "foreign_part": Rule("a part that only {wire} knows was left out", "the other format's reference"),
    "foreign_marks": Rule(
        "what only another wire format knows of a text or a call was left out", "the other format's reference", (_RESPONSES,)
    ),
    "lonely_reasoning": Rule(
        "reasoning that nothing followed was left out",
        f"{_THREADS}: provided without its required following item; the final block cannot be thinking",
        (_RESPONSES, _ANTHROPIC),
    ),
    "unsigned_thinking": Rule("thinking without a signature was left out", f"{_CLAUDE}: signature is required", (_ANTHROPIC,)),
    "unsigned_call": Rule(
        "calls without a thought signature were marked so that {model} does not look for one",
        "Gemini's guide to thought signatures: skip_thought_signature_validator",
        (_GEMINI,),
    ),
    "image_role": Rule("an image in a message of the {role} was left out", f"{_OPENAI}; {_CLAUDE}; {_GOOGLE}"),
    "image_type": Rule(
        "an image of type {media} was left out: this API takes {taken}", f"{_OPENAI}; {_CLAUDE}; {_GOOGLE}, image understanding"
    ),
    "image_apart": Rule(
        "images of results were put into a user message after them", f"{_OPENAI}: tool messages hold text", (_CHAT,)
    ),
    "call_id": Rule("a call's id that this API does not take was spelled another way", _THREADS, (_CHAT, _RESPONSES, _ANTHROPIC)),
    "id_again": Rule("a call's id that an earlier call has was changed", f"{_CLAUDE}: ids must be unique", (_ANTHROPIC,)),
    "tool_name": Rule("a tool's name that this API does not take was spelled another way", f"{_OPENAI}; {_CLAUDE}; {_GOOGLE}"),
    "arguments": Rule(
        'arguments that are no JSON object went back as {{"_raw": …}}', f"{_CLAUDE}; {_GOOGLE}: an object", (_ANTHROPIC, _GEMINI)
    ),
    "user_after_result": Rule(
        "a short word of the model was put between a result and what the user says",
        f"{_THREADS}: Unexpected role 'user' after role 'tool' (Mistral)",
        (_CHAT,),
    ),
}
