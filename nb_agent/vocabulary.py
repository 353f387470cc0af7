"""tiktoken's own encodings from files in the package: what a text costs, offline and without an exception.

Unlike `tokens` it knows neither models nor requests. It never downloads: where a vocabulary cannot be loaded, or the encoder fails,
the count is an estimate and says so. Each vocabulary is built once in a process, when the first text is counted (0.3 to 0.6 s).
"""

from __future__ import annotations

import binascii
import hashlib
import itertools
import pkgutil
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import tiktoken

__all__ = ["VOCABULARIES", "Count", "Vocabulary", "available", "estimate", "last_piece", "measure", "pieces"]


class Count(NamedTuple):
    """Tokens of a text; ``exact`` is false where they were estimated, or where a run without a gap had to be cut."""

    tokens: int
    exact: bool


class Vocabulary(NamedTuple):
    """What makes an encoding. ``sha256`` is the one that tiktoken demands of the file."""

    sha256: str
    pattern: str
    specials: dict[str, int]


#: Copied from tiktoken_ext.openai_public (0.14), whose own functions would start a download.
VOCABULARIES: Final[dict[str, Vocabulary]] = {
    "o200k_base": Vocabulary(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(  # noqa: FLY002  tiktoken's own seven lines, easier to compare
            [
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "cl100k_base": Vocabulary(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
}

# ------------------------------------------------------------------------------------------------- building an encoding

_building = threading.Lock()
#: What was built, and ``None`` for what could not be: a missing file is not looked for at every count.
_built: dict[str, tiktoken.Encoding | None] = {}


def available(name: str) -> bool:
    """Whether an encoding could be built; tries it if nothing was counted yet."""
    return _encoding(name) is not None


def _encoding(name: str) -> tiktoken.Encoding | None:
    if name not in _built:
        with _building:
            if name not in _built:
                try:
                    _built[name] = _build(name)
                except (ImportError, OSError, ValueError):
                    _built[name] = None
    return _built[name]


def _build(name: str) -> tiktoken.Encoding:
    """The encoding from the package's file.

    Raises:
        ImportError: tiktoken is not installed.
        OSError: the file is not there.
        ValueError: the file is not the one that tiktoken demands.
    """
    import tiktoken  # noqa: PLC0415  not on the way of `import nb_agent`

    vocabulary = VOCABULARIES[name]
    content = _read(name)
    if (found := hashlib.sha256(content).hexdigest()) != vocabulary.sha256:
        raise ValueError(f"{name}.tiktoken has the SHA-256 {found}; tiktoken demands {vocabulary.sha256}. Install nb_agent again.")
    return tiktoken.Encoding(
        name, pat_str=vocabulary.pattern, mergeable_ranks=_ranks(content), special_tokens=dict(vocabulary.specials)
    )


def _read(name: str) -> bytes:
    content = pkgutil.get_data("nb_agent", f"data/{name}.tiktoken")
    if content is None:
        raise FileNotFoundError(f"the package holds no file data/{name}.tiktoken")
    return content


def _ranks(content: bytes) -> dict[bytes, int]:
    """A line is a token in base64 and its rank, which is the number of the line: taking that is faster than reading it."""
    return dict(zip(map(binascii.a2b_base64, content.split()[::2]), itertools.count(), strict=False))


# ------------------------------------------------------------------------------------------------- counting a text

#: Characters whose counts are remembered, at most; an entry weighs its text and a little for itself.
_MOST_REMEMBERED = 8_000_000
_ENTRY = 100

_lock = threading.Lock()
_memo: OrderedDict[tuple[str, str], Count] = OrderedDict()
_remembered = 0


def measure(text: str, encoding: str) -> Count:
    """The tokens of a text as ordinary text: spellings of special tokens are plain characters. Counted once and remembered.

    Args:
        text: any string; half a surrogate pair counts as the question mark that is sent in its place.
        encoding: a key of `VOCABULARIES`.
    """
    key = (encoding, text)
    with _lock:
        known = _memo.get(key)
        if known is not None:
            _memo.move_to_end(key)
            return known
    count = _count(text, encoding)
    _remember(key, count)
    return count


def _remember(key: tuple[str, str], count: Count) -> None:
    global _remembered  # noqa: PLW0603  the weight of the memo beside it
    with _lock:
        if key in _memo or len(key[1]) + _ENTRY > _MOST_REMEMBERED:
            return
        _memo[key] = count
        _remembered += len(key[1]) + _ENTRY
        while _remembered > _MOST_REMEMBERED:
            (_, oldest), _ = _memo.popitem(last=False)
            _remembered -= len(oldest) + _ENTRY


def _count(text: str, name: str) -> Count:
    encoding = _encoding(name)
    if encoding is None:
        return Count(estimate(text), exact=False)
    try:
        counts = [Count(_encode(encoding, piece), whole) for piece, whole in pieces(_sendable(text))]
    except BaseException as fault:
        # Rust panics stand outside the Exception hierarchy; an interrupt does too, and must get through.
        if isinstance(fault, Exception) or type(fault).__module__ == "pyo3_runtime":
            return Count(estimate(text), exact=False)
        raise
    return Count(sum(count.tokens for count in counts), all(count.exact for count in counts))


def _encode(encoding: tiktoken.Encoding, text: str) -> int:
    return len(encoding.encode_ordinary(text))


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()  # what `values.encode` puts on the wire
    return text


# ------------------------------------------------------------------------------------------------- cutting long texts

_compiled = lru_cache(re.compile)  # milliseconds that most first counts do not need

#: Characters encoded at a time. Some versions of tiktoken take time with the square of a run of one kind, or panic on it.
_LONGEST = 8192

_LAST: Final = 256  # characters at the end of a text that are searched for a gap

#: Where both patterns end a match whatever follows, so that a cut changes no token: after a letter or digit before a space or
#: punctuation (but an apostrophe, which may begin a contraction), between an ASCII letter and a digit, and after a line's end.
_GAP: Final = (
    r"(?<=[^\W_])(?=[ \n!-&(-/:-@\[-`{-~，。、；：！？「」（）])"
    r"|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=\n)(?=[^\s/])"
)


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Cut a long text; with each piece goes whether the cut after it changes no token.

    >>> [piece for piece, _ in pieces("short")]
    ['short']
    """
    start = 0
    while len(text) - start > _LONGEST:
        gap = _compiled(_GAP).search(text, start + _LONGEST // 2, start + _LONGEST)
        end = gap.start() if gap else start + _LONGEST
        yield text[start:end], gap is not None
        start = end
    yield text[start:], True


def last_piece(text: str) -> str:
    """The end of a text, from the last place where a cut changes no token whatever is put behind it.

    >>> last_piece("Answer in one word, please.")
    '.'
    """
    gaps = [gap.start() for gap in _compiled(_GAP).finditer(text, max(len(text) - _LAST, 0))]
    return text[gaps[-1] :] if gaps else text[-_LONGEST:]


# ------------------------------------------------------------------------------------------------- estimating

#: Kinds of characters: their pattern, and characters of a run to a token. Set by the counts of prose, code and JSON: o200k_base
#: for Europe, between the two vocabularies elsewhere (cl100k_base needs up to twice as many tokens there).
_KINDS: Final = {
    "word": (r"[A-Z]*[a-z]+|[A-Z]+", 7.0),
    "digits": (r"[0-9]{1,3}", 3.0),
    "blank": (r"\s*\n|\s{2,}", 16.0),
    "signs": (r"[!-/:-@\[-`{-~]+", 2.0),
    "europe": (r"[\u0080-\u058f]+", 2.5),
    "east": (r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+", 1.0),
    "picture": (r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001ffff]+", 0.5),
    "rare": (r"[\U00010000-\U0010ffff]+", 0.33),
    "other": (r"[\u0590-\u2e7f\ua000-\uffff]+", 1.5),
    "rest": (r"[^ ]", 1.0),
}
_RUN: Final = "|".join(f"(?P<{kind}>{pattern})" for kind, (pattern, _) in _KINDS.items())


def estimate(text: str) -> int:
    """Tokens by kinds of characters, for want of a vocabulary: no count, but not low by a factor in any script.

    >>> estimate("The cat sat on the mat."), estimate("你好世界")
    (7, 4)
    """
    tokens = 0.0
    for run in _compiled(_RUN).finditer(text):
        tokens += max(1.0, (run.end() - run.start()) / _KINDS[str(run.lastgroup)][1])
    return max(round(tokens), 1 if text else 0)
