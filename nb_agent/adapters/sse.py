"""Bytes of a response body -> the payloads in it: server-sent events, or one JSON document where the server did not stream.

The rules are those of the HTML standard, "Parsing an event stream" (section 9.2.6): lines end in LF, CR or CRLF, several data lines
are joined, a line that begins with a colon is a comment. Reads may end anywhere, inside a character too. It knows no wire format.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from nb_agent.errors import ProviderError

__all__ = ["parsed", "payloads"]

_value_of: Final = json.JSONDecoder().decode  # what `json.loads` does, without its questions: this is run for each token
#: Brackets inside brackets. No model server nests deeper, and Python cannot walk through much more.
_DEEPEST: Final = 100
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def payloads(chunks: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    r"""Each payload with whether it is the whole document (``True``) or one event of a stream (``False``).

    >>> list(payloads([b": hello\n\nda", b"ta: {}\n\n"]))
    [('{}', False)]
    """
    text = _decoded(chunks)
    begun = ""
    for piece in text:
        begun += piece
        if begun.strip():
            break
    if begun.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        yield begun + "".join(text), True
        return
    for payload in _events(_lines(chain((begun.removeprefix("\ufeff"),), text))):
        yield payload, False


def _decoded(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        if piece := decoder.decode(chunk):
            yield piece
    if rest := decoder.decode(b"", final=True):
        yield rest


def _lines(text: Iterable[str]) -> Iterator[list[str]]:
    """The lines that each read ends, without their ends; a last line that nothing ends counts too, since some servers forget it."""
    waiting: list[str] = []
    after_cr = False
    for read in text:
        piece = read.removeprefix("\n") if after_cr else read  # two reads may tear a CRLF apart
        after_cr = read.endswith("\r")
        if "\r" in piece:
            piece = piece.replace("\r\n", "\n").replace("\r", "\n")
        *whole, rest = piece.split("\n")
        if whole:
            whole[0] = "".join([*waiting, whole[0]])
            waiting.clear()
            yield whole
        waiting.append(rest)
    if any(waiting):
        yield ["".join(waiting)]


def _events(lines: Iterator[list[str]]) -> Iterator[str]:
    held: list[str] = []
    for line in chain.from_iterable(lines):
        if line.startswith("data:"):
            held.append(line[5:].removeprefix(" "))
        elif not line and held:
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)


def parsed(payload: str) -> Any:
    """The JSON value of a payload.

    Raises:
        ProviderError: it is no JSON, such as an event that a broken connection cut in two, or nested without measure.
    """
    try:
        value = _value_of(payload)
    except (ValueError, RecursionError):
        words = f"the model server sent broken JSON: {payload[:200]!r}"
        raise ProviderError(words, kind="stream_interrupted") from None
    if payload.count("[") + payload.count("{") > _DEEPEST and _is_deep(payload):
        raise ProviderError(f"the model server sent JSON that is nested more than {_DEEPEST} deep", kind="protocol")
    return value


def _is_deep(payload: str) -> bool:
    """Whether brackets stand in brackets beyond measure."""
    depth = most = 0
    for bracket in re.findall(r"[\[\]{}]", _STRINGS.sub("", payload)):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most > _DEEPEST
