"""What an image costs: its size from the first bytes of the file, and each provider's published rule.

All are estimates: none was compared with recorded usage. The base64 of an image is never counted, and only its beginning is read.
Sources: the vision guides of OpenAI (tiles of 512 pixels, or patches of 32), Anthropic (pixels / 750) and Google (258 a tile).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

__all__ = ["IMAGE", "described", "weigh"]

#: Tokens of an image of which nothing is known: what OpenAI takes for one in low detail.
IMAGE: Final = 85

_HEAD: Final = 262_144  # characters of base64 to read: a photograph may begin with a preview and notes about the camera

# ------------------------------------------------------------------------------------------------- size


def described(source: Any, detail: Any = None) -> str:
    """What of an image decides its tokens, such as ``640x480 high``; empty where nothing is known.

    Args:
        source: base64, a data URL, or the address of an image, which is not fetched.
        detail: what the request says of it: ``low``, ``high`` or ``auto``.
    """
    size = _size(source) if isinstance(source, str) else None
    words = [f"{size[0]}x{size[1]}"] if size else []
    return " ".join([*words, *([detail] if detail in ("low", "high", "original") else [])])


def _size(source: str) -> tuple[int, int] | None:
    start = source.find(",") + 1 if source.startswith("data:") else 0
    text = source[start : start + _HEAD]
    try:
        head = base64.b64decode(text[: len(text) // 4 * 4])
        return next((found for read in (_png, _gif, _webp, _jpeg) if (found := read(head))), None)
    except (binascii.Error, ValueError, struct.error, IndexError):  # an address, or a file that is cut off or of another kind
        return None


def _png(head: bytes) -> tuple[int, int] | None:
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        return None
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def _gif(head: bytes) -> tuple[int, int] | None:
    if head[:4] != b"GIF8":
        return None
    width, height = struct.unpack("<HH", head[6:10])
    return width, height


def _webp(head: bytes) -> tuple[int, int] | None:
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    if head[12:16] == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """The size stands in the first frame header: a marker from C0 to CF that is none of three others."""
    place = 2 if head[:2] == b"\xff\xd8" else len(head)
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker, length = head[place + 1], int.from_bytes(head[place + 2 : place + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[place + 5 : place + 9])
            return width, height
        place += 1 if marker == 0xFF else 2 + length
    return None


# ------------------------------------------------------------------------------------------------- tokens

_Rule: TypeAlias = Callable[[int, int, str], float]


def _tiles(base: int, each: int, width: int, height: int, detail: str) -> float:
    if detail == "low":
        return base
    shrunk = min(1, 2048 / max(width, height))
    shrunk *= min(1, 768 / (min(width, height) * shrunk))
    return base + each * math.ceil(width * shrunk / 512) * math.ceil(height * shrunk / 512)


def _patches(factor: float, width: int, height: int, _detail: str) -> float:
    patches = math.ceil(width / 32) * math.ceil(height / 32)
    return min(patches, 1536) * factor


def _pixels(width: int, height: int, _detail: str) -> float:
    """A larger image is scaled down to a long side of 1568 and to about 1600 tokens."""
    shrunk = min(1, 1568 / max(width, height))
    return min(width * height * shrunk * shrunk / 750, 1600)


def _crops(width: int, height: int, _detail: str) -> float:
    if max(width, height) <= 384:
        return 258
    unit = min(max(min(width, height) / 1.5, 256), 768)
    return 258 * math.ceil(width / unit) * math.ceil(height / unit)


#: Words in a model's name -> its rule, the first that fits. Where none does, an image costs `IMAGE`.
_RULES: Final[tuple[tuple[str, _Rule], ...]] = (
    (r"gpt-?4o-mini", partial(_tiles, 2833, 5667)),
    (r"gpt-?(?:4\.1|5)[.\d]*-mini", partial(_patches, 1.62)),
    (r"gpt-?(?:4\.1|5)[.\d]*-nano", partial(_patches, 2.46)),
    (r"o4-mini", partial(_patches, 1.72)),
    (r"gpt-?5", partial(_tiles, 70, 140)),
    (r"(?:^|[-_./@ :])o[13](?![a-z\d])", partial(_tiles, 75, 150)),
    (r"gpt-?4", partial(_tiles, 85, 170)),
    (r"claude", _pixels),
    (r"gemini", _crops),
)


def weigh(text: str, model: str | None) -> int:
    """The tokens of an image, from its `described` text.

    >>> weigh("1024x1024 high", "gpt-4o"), weigh("", "gpt-4o")
    (765, 85)
    """
    size = re.fullmatch(r"(\d{1,6})x(\d{1,6})(?: (\w+))?", text[:40])
    rule = next((rule for pattern, rule in _RULES if re.search(pattern, (model or "").lower())), None)
    if rule is None or size is None:
        return IMAGE
    return math.ceil(rule(max(int(size[1]), 1), max(int(size[2]), 1), size[3] or ""))
