"""Pictures from whatever is or draws one, in a form and of a size that every provider takes.

Figures and axes of matplotlib, PIL images, the bytes of an image file, anything with ``_repr_png_``, ``_repr_jpeg_`` or
``_repr_mimebundle_``. matplotlib is never imported here, since who gives back a figure has imported it; PIL only where a picture
has to be measured or changed. A picture that no model could read is refused: a provider would refuse the whole conversation.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import struct
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nb_agent.errors import SettingError
from nb_agent.messages import Image

__all__ = [
    "MOST_BYTES",
    "MOST_SIDE",
    "UnreadableError",
    "figure_of",
    "fitting",
    "image",
    "picture_in",
    "picture_of",
    "pixels",
    "release",
    "size_of",
]

#: Bytes of a picture; 5 MB in base64, the least of the providers' bounds (Anthropic).
MOST_BYTES: Final = 3_750_000
#: Pixels of the longer side (Anthropic).
MOST_SIDE: Final = 8_000
#: Pixels of the longer side of a picture that had to be scaled down; what is larger, providers scale down themselves.
_SCALED: Final = 2_048
#: Pixels that are worth reading at all: as many take half a gigabyte.
_MOST_PIXELS: Final = 150_000_000

#: How the files begin that all providers take.
_SIGNATURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_WAYS: Final = {"_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg"}
_DATA_URL: Final = re.compile(r"data:([\w.+/-]*)[^,]*;base64,(.*)", re.DOTALL | re.IGNORECASE)


class UnreadableError(ValueError):
    """Something is no picture that a model could read; the text says why."""


# ------------------------------------------------------------------------------------------------- finding pictures


def picture_of(value: Any) -> Image | None:
    """The picture that a value is or draws, as large as it is; ``None`` if it is none.

    Raises:
        Exception: whatever drawing it raises.
    """
    if isinstance(value, io.BytesIO):
        value = value.getvalue()
    if isinstance(value, (bytes, bytearray)):
        media = _media(bytes(value[:16]))
        return _image(bytes(value), media) if media else None
    figure = figure_of(value)
    if figure is not None:
        return _drawn(figure)
    pil = getattr(sys.modules.get("PIL.Image"), "Image", ())
    if isinstance(value, pil):
        return _image(_saved(value), "image/png")
    for way, media in _WAYS.items():
        if callable(getattr(type(value), way, None)) and (drawn := _first(getattr(value, way)())):
            return _image(drawn, media)
    if callable(getattr(type(value), "_repr_mimebundle_", None)):
        bundle = _first(value._repr_mimebundle_(include=None, exclude=None))
        return picture_in(bundle) if isinstance(bundle, Mapping) else None
    return None


def picture_in(bundle: Mapping[str, Any]) -> Image | None:
    """The picture among the forms of something displayed, which are named by media type."""
    return next((_image(bundle[media], media) for _, media in _SIGNATURES if bundle.get(media)), None)


def figure_of(value: Any) -> Any:
    """The matplotlib figure that a value is, or is a piece of (axes, a line, an array of axes, a grid of seaborn's)."""
    kind: Any = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
    if kind is None:
        return None
    numpy: Any = sys.modules.get("numpy")  # matplotlib has imported it
    if isinstance(value, numpy.ndarray):
        value = value.flat[0] if value.dtype == object and value.size else None
    for _ in range(3):  # axes, a figure inside a figure, the figure
        if isinstance(value, kind):
            return value
        value = None if value is None or isinstance(value, type) else getattr(value, "figure", None)
    return None


def _drawn(figure: Any) -> Image:
    with io.BytesIO() as file:
        figure.savefig(file, format="png")
        return _image(file.getvalue(), "image/png")


def release(figure: Any) -> None:
    """Close a figure that was shown, where the kernel would show all open ones once more at the end of the cell."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and "inline" in str(sys.modules["matplotlib"].get_backend(auto_select=False)):
        pyplot.close(figure)


def _first(drawn: Any) -> Any:
    return drawn[0] if isinstance(drawn, tuple) else drawn  # IPython allows (content, metadata)


def _image(content: Any, media: str) -> Image:
    return Image(content if isinstance(content, str) else base64.b64encode(bytes(content)).decode("ascii"), media)


# ------------------------------------------------------------------------------------------------- making them fit


def fitting(picture: Image) -> tuple[Image, str]:
    """The picture as providers take it, and what had to be changed in words; an empty text where it was right as it is.

    The media type follows the content. What is larger than `MOST_BYTES` or `MOST_SIDE` is scaled down, other formats become PNG.

    Raises:
        UnreadableError: it is no picture, or none that can be scaled down.
    """
    inline = _DATA_URL.fullmatch(picture.url or "")
    if picture.url and not inline:
        if picture.url[:5].lower() == "data:":
            raise UnreadableError("its data: address is not in base64")
        return picture, ""
    content = _decoded(inline[2] if inline else picture.data or "")
    media = _media(content[:16])
    width, height = size_of(content) or (0, 0)
    if media and len(content) <= MOST_BYTES and max(width, height) <= MOST_SIDE:
        if inline is None and picture.media_type == media:
            return picture, ""
        return _image(content, media), ""
    small = _shrunk(content)
    size = "{:,} by {:,}".format(*(size_of(small) or (0, 0)))
    was = f"a picture of {width:,} by {height:,} pixels and {len(content):,} bytes"
    return _image(small, _media(small[:16]) or "image/png"), f"{was} became one of {size} pixels and {len(small):,} bytes"


def pixels(picture: Image) -> tuple[int, int] | None:
    """Width and height of a picture; ``None`` where that cannot be told."""
    try:
        return size_of(_decoded(picture.data or ""))
    except UnreadableError:
        return None


def size_of(content: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; ``None`` where that cannot be told."""
    if _media(content[:16]) == "image/png" and len(content) >= 24:
        # PNG specification, 5.6 and 11.2.1: width and height stand right after the first chunk's name
        width, height = struct.unpack(">II", content[16:24])
        return width, height
    try:
        with _opened(content) as opened:
            size: tuple[int, int] = opened.size
            return size
    except UnreadableError:
        return None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError) as error:
        raise UnreadableError("its base64 is broken") from error


def _media(start: bytes) -> str | None:
    return next((media for signature, media in _SIGNATURES if signature.match(start)), None)


def _opened(content: bytes) -> Any:
    try:
        import PIL.Image  # noqa: PLC0415  most runs have no picture

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)  # we have a bound of our own
            return PIL.Image.open(io.BytesIO(content))
    except Exception as error:
        raise UnreadableError(f"{len(content):,} bytes that are no picture of a known format") from error


def _shrunk(content: bytes) -> bytes:
    """The picture as PNG, as JPEG where that would be too large."""
    with _opened(content) as opened:
        if opened.width * opened.height > _MOST_PIXELS:
            raise UnreadableError(f"{opened.width:,} by {opened.height:,} pixels are too many to be scaled down")
        try:
            from PIL import ImageOps  # noqa: PLC0415  a photo may lie on its side, which only its own file says

            upright = ImageOps.exif_transpose(opened)
            saved = _saved(upright, most=_SCALED)
            return saved if len(saved) <= MOST_BYTES else _saved(upright, most=_SCALED, form="JPEG")
        except Exception as error:
            raise UnreadableError(f"it cannot be read to its end ({type(error).__name__})") from error


def _saved(pil: Any, *, most: int = MOST_SIDE, form: str = "PNG") -> bytes:
    """A PIL image as a file, scaled down where a side has more than ``most`` pixels."""
    modes = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16") if form == "PNG" else ("L", "RGB")
    if max(pil.size) > most:
        pil = pil.copy()
        pil.thumbnail((_SCALED, _SCALED))
    if pil.mode not in modes:
        pil = pil.convert("RGBA" if "A" in pil.getbands() and form == "PNG" else "RGB")
    with io.BytesIO() as file:
        pil.save(file, format=form)
        return file.getvalue()


# ------------------------------------------------------------------------------------------------- pictures for a prompt


def image(source: Any) -> Image:
    """A picture for a prompt. One that is too large for a model is scaled down.

    Args:
        source: a path, the address of a picture (``https://…``), the bytes of an image file, a PIL image, a matplotlib figure or
            axes, or anything else that draws itself in a notebook.

    Raises:
        SettingError: there is no file, or it is no picture.
    """
    try:
        return fitting(_given(source))[0]
    except UnreadableError as error:
        raise SettingError(f"{_named(source)} is no picture for a model: {error}; give a PNG, JPEG, GIF or WebP file") from error


def _given(source: Any) -> Image:
    if isinstance(source, Image):
        return source
    if isinstance(source, str) and re.match(r"https?://|data:", source, re.IGNORECASE):
        return Image(url=source)
    if isinstance(source, (str, Path)):
        try:
            source = Path(source).expanduser().read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SettingError(f"no picture at {str(source)[:200]!r}: {reason}; give the path of an image file") from error
    if isinstance(source, io.BytesIO):
        source = source.getvalue()
    if isinstance(source, (bytes, bytearray)):
        return _image(source, "image/png")  # the content will tell
    try:
        found = picture_of(source)
    except Exception as error:
        raise UnreadableError(f"drawing it failed ({type(error).__name__}: {error})") from error
    if found is None:
        raise UnreadableError("it does not draw itself")
    return found


def _named(source: Any) -> str:
    if isinstance(source, (str, Path)):
        return repr(str(source)[:80])
    return f"a value of type {type(source).__name__}"
