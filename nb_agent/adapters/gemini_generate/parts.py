"""One part of a Gemini content, both ways: text, thoughts, images, calls and results, and what only Gemini understands.

A part that was read is written back as it came: what our own values have no place for (thought signatures, ids, kinds of part that
nobody else has) rides along in ``extra``, or is kept whole. Unlike ``gemini_generate`` this knows no message and no request.
"""

from __future__ import annotations

import json
from typing import Any, Final

from nb_agent.adapters.fitting import fitting_name, stand_in, unfit_type
from nb_agent.messages import Image, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from nb_agent.values import JSON, dumps

__all__ = ["NAME", "argument_object", "argument_text", "id_of", "is_foreign", "read", "read_call", "write", "write_result"]

NAME: Final = "gemini_generate"

#: Under this key goes back what a model wrote as arguments and is no JSON object.
RAW: Final = "_raw"
_FOLLOWS: Final = "(the image follows)"
#: Ending of an address -> media type, where a message names a picture by its address.
_MEDIA: Final = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}


# ------------------------------------------------------------------------------------------------------------- reading


def read(form: JSON) -> Part:
    """A part that is no call. What has more in it than our own values can hold is kept as it came."""
    thought = form.get("thought") is True
    rest = {key: value for key, value in form.items() if key != "text" and not (thought and key == "thought")}
    if isinstance(form.get("text"), str):
        if thought:
            return Thinking(form["text"], extra={"wire": NAME, **({"part": rest} if rest else {})})
        return Text(form["text"], extra={"wire": NAME, "part": rest} if rest else None)
    inline = form.get("inlineData")
    if len(form) == 1 and isinstance(inline, dict) and inline.keys() == {"mimeType", "data"}:
        kind, content = inline["mimeType"], inline["data"]
        if isinstance(kind, str) and kind.startswith("image/") and isinstance(content, str):
            return Image(content, kind)
    return Opaque(NAME, form)


def read_call(name: str, form: JSON) -> ToolCall:
    """A call under this id. All but its name and arguments rides along: the id that the API gave, and the thought signature."""
    call: JSON = form["functionCall"]
    extra: JSON = {
        "call": {key: value for key, value in call.items() if key not in ("name", "args")},
        "part": {key: value for key, value in form.items() if key != "functionCall"},
        "no_args": "args" not in call,
    }
    kept = {key: value for key, value in extra.items() if value}
    return ToolCall(
        name, str(call.get("name") or ""), argument_text(call.get("args")), extra={"wire": NAME, **kept} if kept else None
    )


def argument_text(given: Any) -> str:
    """The arguments of a call as text."""
    if given is None:
        return "{}"
    return given if isinstance(given, str) else dumps(given)


# ------------------------------------------------------------------------------------------------------------- writing


def is_foreign(part: Part) -> bool:
    """Whether only another wire format understands it."""
    if isinstance(part, Opaque):
        return part.wire != NAME
    return isinstance(part, Thinking) and (part.extra or {}).get("wire") != NAME


def write(part: Part) -> JSON | None:
    """A part of a message; ``None`` for what is left out: an empty text, and what is another format's."""
    if is_foreign(part) or isinstance(part, ToolResult):
        return None
    if isinstance(part, Opaque):
        return part.body
    if isinstance(part, Image):
        return _image(part)
    if isinstance(part, ToolCall):
        return _call(part)
    own = _own(part).get("part", {})
    if isinstance(part, Thinking):
        return {"text": part.text, "thought": True, **own}
    return {"text": part.text, **own} if part.text or own else None


def _own(part: Text | Thinking | ToolCall) -> JSON:
    """What of a part's ``extra`` is Gemini's."""
    extra = part.extra or {}
    return extra if extra.get("wire") == NAME else {}


def _image(image: Image) -> JSON:
    if (media := unfit_type(image, NAME)) is not None:
        return {"text": stand_in(media)}
    if image.url is None:
        return {"inlineData": {"mimeType": image.media_type, "data": image.data or ""}}
    head, comma, content = image.url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"inlineData": {"mimeType": head[5:-7] or image.media_type, "data": content}}
    ending = image.url.partition("?")[0].rpartition(".")[2].lower()
    return {"fileData": {"mimeType": _MEDIA.get(ending, image.media_type), "fileUri": image.url}}


def _call(call: ToolCall) -> JSON:
    own = _own(call)
    arguments = argument_object(call.arguments)
    if arguments is None:
        arguments = {RAW: call.arguments}
    args = {} if own.get("no_args") and not arguments else {"args": arguments}
    return {"functionCall": {**own.get("call", {}), "name": fitting_name(call.name, NAME), **args}, **own.get("part", {})}


def argument_object(arguments: str) -> JSON | None:
    """The arguments as the object that Gemini wants; ``None`` where the text is none.

    >>> argument_object('{"n":1}'), argument_object(""), argument_object("[1")
    ({'n': 1}, {}, None)
    """
    value: Any = arguments
    try:
        while isinstance(value, str):  # some models encode it twice; each time it gets shorter
            value = json.loads(value, parse_constant=_refused) if value.strip() else {}
    except (ValueError, RecursionError):
        return None
    return {} if value is None else value if isinstance(value, dict) else None


def _refused(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are no JSON: the server would refuse the whole request


def id_of(call: ToolCall | None) -> str | None:
    """The id that the API itself gave a call, ``None`` where it gave none: one that was made up is never sent."""
    given = None if call is None else _own(call).get("call", {}).get("id")
    return given if isinstance(given, str) and given else None


def write_result(result: ToolResult, call: ToolCall | None, *, nested: bool) -> list[JSON]:
    """The result of a call as parts: ``output`` where it was carried out, else ``error``.

    Its text stays text, JSON or not: as an object it would pass through protobuf's Struct, whose numbers are all doubles. Images
    stand inside the result (``nested``, since Gemini 3) or beside it.
    """
    images = [_image(part) for part in result.parts if isinstance(part, Image)]
    lost = [image.pop("text") for image in images if "text" in image]
    images = [image for image in images if image]
    hint = [*([_FOLLOWS] if images and not nested else []), *lost]
    given = id_of(call)
    form: JSON = {"id": given} if given else {}
    form |= {"name": fitting_name(call.name if call else result.name, NAME)}
    form |= {"response": {"error" if result.failed else "output": "\n".join([*([result.text] if result.text else []), *hint])}}
    if images and nested:
        form["parts"] = images
    return [{"functionResponse": form}, *([] if nested else images)]
