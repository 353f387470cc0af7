"""Where the tokens of a request and of a reply go: counted offline, split into parts that add up exactly.

What is counted here stands beside what a provider reports (`usage`) and is never scaled to agree with it; `explained` names the
difference. Unlike `vocabulary`, which counts a text, this knows models and what the protocol puts around messages and definitions.
It reads no wire format: the adapters say which text of a request belongs to which part (`messages.Segment`).
"""

from __future__ import annotations

from nb_agent import vocabulary
from nb_agent.tokens.breakdowns import OUTPUT_PARTS, Breakdown, breakdown_reply
from nb_agent.tokens.differences import Difference, Explained, explained, explained_reply
from nb_agent.tokens.families import Encoding, count, encoding_for
from nb_agent.tokens.images import IMAGE
from nb_agent.tokens.requests import breakdown
from nb_agent.tokens.segments import Segments

__all__ = [
    "IMAGE",
    "OUTPUT_PARTS",
    "Breakdown",
    "Difference",
    "Encoding",
    "Explained",
    "Segments",
    "breakdown",
    "breakdown_reply",
    "count",
    "encoding_for",
    "estimate",
    "explained",
    "explained_reply",
]

estimate = vocabulary.estimate
