"""What a model's name says about how it wants to be asked, for the formats of one vendor that share its models."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["reasons"]

#: OpenAI's o-series, and GPT-5 and later without the chat models, with whatever a gateway writes in front.
_REASONS: Final = re.compile(r"(?:^|[/:.@_ -])(?:o[1-9](?![a-z\d])|gpt-?[5-9](?!\d)(?!.*-chat))", re.IGNORECASE)


def reasons(model: str) -> bool:
    """Whether the model reasons before it answers: such models call the output limit by another name and refuse samplers.

    >>> [reasons(name) for name in ("gpt-5-mini", "openai/o3", "gpt-4o", "gpt-5-chat-latest")]
    [True, True, False, False]
    """
    return _REASONS.search(model) is not None
