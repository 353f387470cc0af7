"""What a notebook would show of a value, as words for a model: Markdown, HTML without its tags, formulas, drawings as their source.

Unlike `pictures`, which takes what can be seen, this takes what can be read. A bundle maps media types to forms of one value, as
``display`` sends them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["bundle_of", "says_nothing", "words_in"]

#: What an object says of itself whose class says nothing: ``<module.Name object at 0x7f…>``.
_NOTHING: Final = re.compile(r"<[\w.<>]+ object(?: at 0x[0-9a-fA-F]+)?>")

_WAYS: Final = {
    "_repr_markdown_": "text/markdown",
    "_repr_html_": "text/html",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_svg_": "image/svg+xml",
}
#: Media types in the order in which they are read.
_ORDER: Final = ("text/plain", *_WAYS.values())

_HIDDEN: Final = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_CELL: Final = re.compile(r"</t[dh]\s*>\s*", re.IGNORECASE)
_BLOCK: Final = re.compile(r"\s*</?(?:p|div|tr|li|ul|ol|h[1-6]|table|thead|tbody|br|hr|pre|section)\b[^>]*>\s*", re.IGNORECASE)
_TAG: Final = re.compile(r"<[^>]*>")


def says_nothing(text: str) -> bool:
    """Whether a text is only the name of a class.

    >>> says_nothing("<IPython.core.display.HTML object>"), says_nothing("<Response [200]>")
    (True, False)
    """
    return _NOTHING.fullmatch(text.strip()) is not None


def bundle_of(value: Any) -> dict[str, Any]:
    """The forms in which a value shows itself in a notebook, without pictures; empty where it knows none.

    Raises:
        Exception: whatever the value's own code raises.
    """
    kind = type(value)
    found: dict[str, Any] = {}
    if callable(getattr(kind, "_repr_mimebundle_", None)):
        bundle = value._repr_mimebundle_(include=None, exclude=None)
        bundle = bundle[0] if isinstance(bundle, tuple) else bundle
        found.update(bundle if isinstance(bundle, Mapping) else {})
    for way, media in _WAYS.items():
        if media not in found and callable(getattr(kind, way, None)) and (drawn := getattr(value, way)()):
            found[media] = drawn[0] if isinstance(drawn, tuple) else drawn
    return found


def words_in(bundle: Mapping[str, Any]) -> str:
    r"""The first form that says something; empty where none does.

    >>> words_in({"text/plain": "<a.B object>", "text/html": "<p>3 &lt; 4<p>yes"})
    '3 < 4\nyes'
    """
    for media in _ORDER:
        form = bundle.get(media)
        if not form:
            continue
        text = form if isinstance(form, str) else json.dumps(form, ensure_ascii=False, default=str)
        text = _untagged(text) if media == "text/html" else text
        if text and not says_nothing(text):
            return text
    return ""


def _untagged(text: str) -> str:
    text = _BLOCK.sub("\n", _CELL.sub("\t", _HIDDEN.sub("", text)))
    lines = html.unescape(_TAG.sub("", text)).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())
