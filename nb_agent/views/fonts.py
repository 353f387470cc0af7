"""Which of the fonts that are there can draw a text: matplotlib warns for each character that none of its fonts has.

Unlike a browser, matplotlib looks only in the fonts that it is told, and draws no colour fonts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

__all__ = ["drawable", "families_present"]

#: Fonts by name, in the order in which a character is looked for. DejaVu Sans comes with matplotlib.
_FONTS: Final = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
    "Noto Emoji",
    "Segoe UI Emoji",
    "Segoe UI Symbol",
    "Symbola",
)


def families_present() -> list[str]:
    """Those of `_FONTS` that are there; matplotlib warns for each character where one is not.

    matplotlib remembers the fonts that it once found. One that was installed later is added, one that has gone is left out.
    """
    from matplotlib import font_manager  # noqa: PLC0415  0.4 s, so only when a picture is wanted

    known = font_manager.fontManager.ttflist
    if not any("CJK" in entry.name for entry in known):
        _add_fonts(font_manager, {entry.fname for entry in known})
    there = {entry.name for entry in font_manager.fontManager.ttflist if entry.name in _FONTS and Path(entry.fname).exists()}
    return [name for name in _FONTS if name in there]


def _add_fonts(font_manager: Any, known: Collection[str]) -> None:
    for path in font_manager.findSystemFonts():
        if "CJK-Regular" in path and path not in known:
            font_manager.fontManager.addfont(path)


def drawable(text: str, families: list[str]) -> str:
    """The text without what none of the fonts can draw; a picture is told by its name.

    matplotlib draws no colour fonts, which is what emoji come in on most machines.
    """
    from matplotlib import font_manager  # noqa: PLC0415  0.4 s, so only when a picture is wanted

    fonts = [font_manager.get_font(font_manager.findfont(name)) for name in families]
    return "".join(char if char == "\n" or any(font.get_char_index(ord(char)) for font in fonts) else _told(char) for char in text)


def _told(char: str) -> str:
    if unicodedata.category(char) in {"Mn", "Me", "Cf", "Sk", "Cc"}:
        return ""  # joins or changes what is beside it
    name = unicodedata.name(char, "").lower()
    return f":{name}:" if unicodedata.category(char) == "So" and name else "□"
