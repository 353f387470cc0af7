"""A picture from whatever draws itself: matplotlib figures and axes, PIL images, anything with ``_repr_png_`` or ``_repr_jpeg_``.

matplotlib is never imported here: who gives back a figure has imported it.
"""

from __future__ import annotations

import base64
import io
import struct
import sys
from typing import Any, Final

from nb_agent.messages import Image, Text

__all__ = ["picture_of"]

_WAYS: Final = {"_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg"}
_PNG: Final = b"\x89PNG\r\n\x1a\n"


def picture_of(value: Any) -> tuple[Text, Image] | None:
    """The picture and a line that says what it is, for models and servers that cannot see it; ``None`` if it is no picture.

    Raises:
        Exception: whatever drawing it raises.
    """
    figure = _figure(value)
    if figure is not None:
        with io.BytesIO() as file:
            figure.savefig(file, format="png")
            return _parts(value, file.getvalue(), "image/png")
    for way, media_type in _WAYS.items():
        if callable(getattr(type(value), way, None)):
            drawn = getattr(value, way)()
            content = drawn[0] if isinstance(drawn, tuple) else drawn  # IPython allows (content, metadata)
            if content:
                return _parts(value, base64.b64decode(content) if isinstance(content, str) else bytes(content), media_type)
    return None


def _figure(value: Any) -> Any:
    matplotlib = sys.modules.get("matplotlib.figure"), sys.modules.get("matplotlib.axes")
    figure, axes = getattr(matplotlib[0], "Figure", ()), getattr(matplotlib[1], "Axes", ())
    if isinstance(value, figure):
        return value
    return value.get_figure() if isinstance(value, axes) else None


def _parts(value: Any, content: bytes, media_type: str) -> tuple[Text, Image]:
    size = ""
    if content.startswith(_PNG):  # PNG specification, 5.6 and 11.2.1: width and height stand right after the first chunk's name
        size = ", {} by {} pixels".format(*struct.unpack(">II", content[16:24]))
    return Text(f"({type(value).__name__}: a picture{size})"), Image(base64.b64encode(content).decode("ascii"), media_type)
