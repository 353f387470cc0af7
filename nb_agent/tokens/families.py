"""Models by name: the vocabulary of their text, and what the protocol puts around messages, in tokens.

The constants reproduce recorded ``usage`` of the real services; for a model that was not measured they are estimates and say so.
Unlike `rendering`, which writes definitions down, this holds only numbers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from nb_agent import vocabulary

__all__ = ["Encoding", "Family", "count", "encoding_for", "family", "measured"]


class Encoding(NamedTuple):
    """The vocabulary that a model's text is counted with; ``exact`` is false where the model's own is not known."""

    name: str
    exact: bool


class Family(NamedTuple):
    """Models that read requests alike. Numbers are tokens."""

    encoding: str = "o200k_base"
    known: bool = True  # the vocabulary is the model's own
    framed: bool = True  # so are the constants below, for messages of text
    framing: int = 3  # around each message, beside one for its role
    name: int = 1  # for a speaker's name, beside its own tokens
    priming: int = 3  # once, where the reply begins
    channel: int = 0  # for each text that the model wrote before
    mock: bool = False  # reports what is counted here, so that tools and images are exact too
    generation: str = ""  # how definitions, calls and results are written (see `protocols`); "" as the JSON that is sent
    terse: bool = False  # of the first generation: objects without comments stand on one line, as later ones have it
    sparse: bool = False  # a vocabulary that may know few words of other scripts than Latin
    hidden: int = 0  # Claude: what it is told of tools as soon as there is one
    chosen: int = 0  # Claude: more of it where a call is demanded


def _claude(hidden: int, chosen: int = 60) -> Family:
    """Anthropic counts with a vocabulary that is not public; o200k_base stands in for it, and was near in short English texts."""
    numbers = {"framing": 4, "generation": "claude", "sparse": True, "hidden": hidden, "chosen": chosen}
    return Family(known=False, framed=False, **numbers)  # type: ignore[arg-type]  # names and numbers of its fields


_UNKNOWN: Final = Family(known=False, sparse=True)
_LARGE: Final = Family(known=False)  # not public or not ours, but about as rich in other scripts as o200k_base
_OLD: Final = Family("cl100k_base", generation="old")
_TERSE: Final = Family("cl100k_base", generation="old", terse=True)
_OMNI: Final = Family(generation="omni")
_REASONING: Final = Family(priming=2, channel=2, generation="reasoning")

#: Beginnings of model names, the first that fits. Sources: tiktoken.model for the vocabularies, measured usage for the rest.
_FAMILIES: Final = tuple(
    (rf"(?:^|[-_.@ ]){pattern}", found)
    for pattern, found in (
        (r"mock", Family(mock=True)),
        (r"gpt-?3\.?5-turbo-0301", Family("cl100k_base", framing=4, name=-1, generation="old")),
        (r"gpt-?3\.?5-turbo(?:-16k)?-0613", _OLD),
        (r"gpt-?3\.?5", _TERSE),
        (r"gpt-?4[.-]?[15](?!\d)", _OMNI),
        (r"(?:chat)?gpt-?4o", _OMNI),
        (r"gpt-?4-(?:turbo|\d{4}-(?:vision-)?preview|vision)", _TERSE),
        (r"gpt-?4(?![\d.])", _OLD),
        (r"gpt-?5[.\d]*-chat", Family(framed=False, generation="omni")),  # answers without reasoning; was not measured
        (r"gpt-?5(?!\d)", _REASONING),
        (r"gpt-?oss", Family(priming=2, channel=2, framed=False)),  # its vocabulary is public; each server has its own template
        (r"o1-mini", _REASONING._replace(framed=False)),  # seen to read 8 more
        (r"o[134](?![a-z\d])", _REASONING),
        (r"text-embedding-(?:3-|ada-002)|(?:davinci|babbage)-002", Family("cl100k_base", framed=False)),
        (r"claude-3[-.]5-haiku", _claude(286)),
        (r"claude-3", _claude(341)),
        (r"claude-(?:sonnet|opus)-4(?:[-.][01]|-20\d{6}|$)", _claude(326, chosen=27)),
        (r"claude-opus-4", _claude(302)),
        (r"claude-sonnet-4[-.]5", _claude(508, chosen=97)),
        (r"claude-haiku", _claude(515, chosen=97)),
        (r"claude-sonnet-5", _claude(481)),
        (r"claude-sonnet", _claude(511)),
        (r"claude", _claude(413)),
        (r"(?:gemini|gemma|qwen|qwq|deepseek|grok|glm|kimi|command-[ar])", _LARGE),
    )
)


def encoding_for(model: str | None) -> Encoding:
    """The vocabulary to count a model's text with; any name has one.

    A provider, an account or a tuning before or after the name does not matter (``azure/gpt-4o``, ``openai:gpt-4.1``,
    ``ft:gpt-4o:org``). A known name inside another (``team-gpt-4o``) gives the vocabulary but no certainty: deployments are named
    freely.

    >>> encoding_for("gpt-35-turbo"), encoding_for("claude-opus")
    (Encoding(name='cl100k_base', exact=True), Encoding(name='o200k_base', exact=False))
    """
    found = family(model)
    return Encoding(found.encoding, found.known)


@lru_cache(maxsize=256)
def family(model: str | None) -> Family:
    """The family of a model; one that is not known counts like the newest, as an estimate."""
    inside = None
    for name in (model or "").strip().lower().replace(":", "/").split("/"):
        for pattern, found in _FAMILIES:
            place = re.search(pattern, name)  # compiled when it is first needed, and kept by `re`
            if place and place.start() == 0 and name[0] not in "-_.@ ":
                return found
            if place and not inside and not found.mock:
                inside = found._replace(known=False)
    return inside or _UNKNOWN


def count(text: str, *, model: str | None = None) -> int:
    """The tokens of any text, spellings of special tokens as plain characters; never an exception.

    Args:
        text: what to count.
        model: its name decides the vocabulary (`encoding_for`), ``o200k_base`` where it is not known. Whether the count is exact
            for a model is said by `encoding_for` and by `Breakdown.exact`.

    >>> count("hello world"), count("<|endoftext|>", model="gpt-4")
    (2, 7)
    """
    return measured(text, family(model) if model else Family()).tokens


def measured(text: str, read_by: Family) -> vocabulary.Count:
    """The tokens of a text for a family.

    The newest vocabularies write a Chinese word in one token. Others need one for each character or more: where the model's own is
    not known, a text in another script than Latin costs at least what `vocabulary.estimate` says.
    """
    found = vocabulary.measure(text, read_by.encoding)
    if not read_by.sparse or text.isascii():
        return found
    return vocabulary.Count(max(found.tokens, vocabulary.estimate(text)), exact=False)
