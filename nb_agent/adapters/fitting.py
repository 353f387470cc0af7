"""What each wire format takes in a history: ids, names, pictures, roles; and how what does not fit is spelled so that it does.

The adapters write with it. It knows values and no bodies, and unlike `history_rules` it says nothing.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple

from nb_agent.messages import Image

__all__ = ["IDS", "Dialect", "dialect", "fitting_id", "fitting_name", "is_signing", "stand_in", "taken", "unfit_type"]


class Taken(NamedTuple):
    """What one wire format takes."""

    names: re.Pattern[str]  # of tools
    foreign: re.Pattern[str]  # characters that no name has
    longest: int  # characters of a name
    images: tuple[str, ...]  # media types


_WORD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_USUAL: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")

#: Source: the API references.
_TAKEN: Final = {
    "chat_completions": Taken(re.compile(r"[a-zA-Z0-9_-]{1,64}"), _WORD, 64, _USUAL),
    "responses": Taken(re.compile(r"[a-zA-Z0-9_-]{1,64}"), _WORD, 64, _USUAL),
    "anthropic_messages": Taken(re.compile(r"[a-zA-Z0-9_-]{1,128}"), _WORD, 128, _USUAL),
    "gemini_generate": Taken(
        re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"),
        re.compile(r"[^a-zA-Z0-9_.:-]"),
        128,
        ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"),
    ),
}
#: What a call's id may be; Gemini sends and takes only its own. Source: error texts in public issue threads.
IDS: Final = {
    "chat_completions": re.compile(r".{1,40}", re.DOTALL),
    "responses": re.compile(r".{1,64}", re.DOTALL),
    "anthropic_messages": re.compile(r"[a-zA-Z0-9_-]+"),
}


class Dialect(NamedTuple):
    """How the servers of one family speak Chat Completions."""

    named: str  # in words
    key: str  # where a message's memo keeps what was written for them
    apart: str  # and what of it cannot stand in its place
    developer: bool = False  # whether they know the role
    ids: re.Pattern[str] = IDS["chat_completions"]
    longest: int = 40  # characters of an id
    strict: bool = False  # whether the model has to speak between a result and the user


#: What a model's name looks like -> the dialect of its server; the first that fits counts. Sources: Mistral's errors ("Tool call id
#: must be a-z, A-Z, 0-9, with a length of 9"; "Unexpected role 'user' after role 'tool'"), OpenAI's reference for ``developer``.
_DIALECTS: Final = (
    (
        re.compile(r"(?:^|[/:._ -])(?:mi(?:s|x|nis)tral|magistral|codestral|devstral|pixtral)", re.IGNORECASE),
        Dialect("Mistral", "chat mistral", "chat mistral apart", ids=re.compile(r"[a-zA-Z0-9]{9}"), longest=9, strict=True),
    ),
    (
        re.compile(r"(?:^|[/:.@_ -])(?:gpt-|chatgpt|codex|o\d(?![a-z\d])|mock(?:$|[:-]))", re.IGNORECASE),
        Dialect("OpenAI", "chat openai", "chat openai apart", developer=True),
    ),
    (re.compile(""), Dialect("this server", "chat", "chat apart")),
)


def dialect(model: str) -> Dialect:
    """The dialect that the server of this model speaks, as far as its name tells.

    >>> dialect("gpt-4o").developer, dialect("glm-x").developer, dialect("mistral-large-latest").strict
    (True, False, True)
    """
    return next(spoken for pattern, spoken in _DIALECTS if pattern.search(model))


_SIGNING: Final = re.compile(r"gemini-(?:[3-9]|\d\d|(?:\w+-)+latest)")


def is_signing(model: str) -> bool:
    """Whether a model wants a thought signature with the calls that are sent back to it: Gemini since version 3.

    >>> [is_signing(name) for name in ("gemini-3-pro", "gemini-flash-latest", "gemini-2.5-pro", "mock")]
    [True, True, False, False]
    """
    return _SIGNING.search(model) is not None


def fitting_id(given: str, fits: re.Pattern[str], longest: int = 40) -> str:
    """The id, or another in place of one that is not taken. The same id always gives the same, and another one another.

    >>> fitting_id("call_1", IDS["responses"]), len(fitting_id("x" * 99, IDS["responses"]))
    ('call_1', 40)
    """
    if fits.fullmatch(given):
        return given
    digest = sha256(given.encode("utf-8", "replace")).hexdigest()
    return digest[:longest] if longest < len("call_") + 8 else f"call_{digest}"[:longest]


def fitting_name(given: str, wire: str) -> str:
    """The name of a tool, or the nearest that the wire format takes.

    >>> fitting_name("sales.query", "responses"), fitting_name("sales.query", "gemini_generate"), fitting_name("", "responses")
    ('sales_query', 'sales.query', 'unnamed')
    """
    rules = _TAKEN[wire]
    if rules.names.fullmatch(given):
        return given
    name = rules.foreign.sub("_", given)[: rules.longest] or "unnamed"
    return name if rules.names.fullmatch(name) else f"_{name}"[: rules.longest]


_DATA_URL: Final = re.compile(r"data:([^;,]*)[^,]*?(;base64)?,", re.IGNORECASE)


def unfit_type(image: Image, wire: str) -> str | None:
    """The media type of an image that the wire format does not take; ``None`` where it is taken, or only an address is known.

    >>> unfit_type(Image("R0lG", "image/gif"), "gemini_generate"), unfit_type(Image("R0lG", "image/gif"), "responses")
    ('image/gif', None)
    """
    inside = _DATA_URL.match(image.url or "")
    if image.url and not inside:
        return None
    media = (inside[1] or "text/plain").lower() if inside else image.media_type
    fits = media in _TAKEN[wire].images and (inside is None or inside[2] is not None)
    return None if fits else media


def taken(wire: str) -> str:
    """The types of image that a wire format takes, in words.

    >>> taken("responses")
    'JPEG, PNG, GIF and WebP'
    """
    *most, last = ("WebP" if media.endswith("webp") else media.removeprefix("image/").upper() for media in _TAKEN[wire].images)
    return f"{', '.join(most)} and {last}"


def stand_in(media_type: str) -> str:
    """What a model reads in the place of an image that it cannot get."""
    return f"(an image of type {media_type}, which cannot be shown here)"
