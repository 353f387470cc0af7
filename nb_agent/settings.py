"""The request fields that an agent may be given by name; one that does not exist is answered with the one that was meant.

They are OpenAI's words, which are the neutral ones too; each adapter writes its own. What only one server knows goes into
``extra_body``, which nobody looks at.
"""

from __future__ import annotations

import difflib
from typing import Final

from nb_agent.errors import SettingError
from nb_agent.values import JSON

__all__ = ["SETTINGS", "known"]

#: The request fields that may be set on an agent, sent as they are and only when set. Anything else goes into ``extra_body``.
SETTINGS: Final = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "user",
    }
)

_NAMED: Final = (
    *("model", "tools", "system", "base_url", "api_key", "wire", "stream"),
    *("max_rounds", "time_limit", "tool_time_limit", "max_parallel", "policy", "ask", "ask_limit", "masks"),
    *("compaction", "token_limit", "cost_limit", "prices", "window"),
)


def known(settings: JSON) -> JSON:
    """The settings as they are.

    Raises:
        SettingError: one has no such name.
    """
    for name in settings:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, [*SETTINGS, *_NAMED], 1, cutoff=0.7)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SettingError(f"no setting named {name!r}; {hint}what only one server knows goes into extra_body={{…}}")
    return settings
