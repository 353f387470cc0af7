"""What all values have in common: a JSON form that comes back equal, and bytes that are encoded once.

`messages`, `usage` and `events` hold the values themselves.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Final, TypeAlias

__all__ = ["JSON", "Encoded", "Value", "dumps", "encode", "from_json", "to_json"]

JSON: TypeAlias = dict[str, Any]

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` would make one each time


def dumps(value: Any) -> str:
    """JSON as it goes over the wire: compact, and other scripts as themselves.

    >>> dumps({"town": "京都", "n": 1})
    '{"town":"京都","n":1}'
    """
    return _ENCODER.encode(value)


class Value:
    """Base of all values. ``AS_IS`` names the fields that hold somebody else's JSON, which is never looked into."""

    __slots__ = ()
    AS_IS: ClassVar[frozenset[str]] = frozenset()


def to_json(value: Any) -> Any:
    """The JSON form of a value; fields that hold their default are left out.

    >>> from nb_agent.messages import Text
    >>> to_json(Text("hi"))
    {'type': 'Text', 'text': 'hi'}
    """
    if isinstance(value, Value):
        form: JSON = {"type": type(value).__name__}
        for entry in fields(value):  # type: ignore[arg-type]  # every Value is a dataclass
            part = getattr(value, entry.name)
            default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
            if entry.init and (default is MISSING or part != default):
                form[entry.name] = part if entry.name in value.AS_IS else to_json(part)
        return form
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return value


def from_json(form: Any) -> Any:
    """The value that `to_json` was given.

    >>> from nb_agent.messages import Text
    >>> from_json({"type": "Text", "text": "hi"})
    Text(text='hi', extra=None)

    Raises:
        KeyError: ``type`` names no value of this version.
    """
    if isinstance(form, list):
        return tuple(from_json(part) for part in form)
    if isinstance(form, dict):
        cls = _classes(Value)[form["type"]]
        return cls(**{key: part if key in cls.AS_IS else from_json(part) for key, part in form.items() if key != "type"})
    return form


def _classes(base: type[Value]) -> dict[str, type[Value]]:
    found = {base.__name__: base}
    for cls in base.__subclasses__():  # dataclass(slots=True) makes each class twice; the one in use comes later
        found |= _classes(cls)
    return found


class Encoded(dict[str, Any]):
    """A JSON object together with its bytes, so that a history is not encoded anew in every round. Never changed.

    Attributes:
        content: the object as compact UTF-8 JSON.
    """

    __slots__ = ("content",)
    content: bytes

    def __init__(self, *parts: Any, **entries: Any) -> None:
        super().__init__(*parts, **entries)
        self.content = _utf8(dumps(self))


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON, taking the bytes of whatever is `Encoded` at any depth of lists and dicts.

    >>> encode({"messages": [Encoded(role="user", content="hi")], "stream": True})
    b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'
    """
    return b"".join(_fragments(value))  # once: a long history is not copied anew for each bracket around it


def _fragments(value: Any) -> list[bytes]:
    if isinstance(value, Encoded):
        return [value.content]
    if isinstance(value, list) and value:
        try:
            parts = [part.content for part in value]  # a long history: no call for each message
        except AttributeError:
            parts = [encode(part) for part in value]
        fragments = [b","] * (2 * len(parts) + 1)
        fragments[1::2] = parts
        fragments[0], fragments[-1] = b"[", b"]"
        return fragments
    if isinstance(value, dict) and value:
        fragments = []
        for key, part in value.items():
            fragments += [b"," if fragments else b"{", _utf8(dumps(key)), b":", *_fragments(part)]
        return [*fragments, b"}"]
    return [_utf8(dumps(value))]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # half of a surrogate pair has no UTF-8 form: it becomes a question mark
