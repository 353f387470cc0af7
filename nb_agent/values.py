"""What all values have in common: a JSON form that comes back equal, and bytes that are encoded once.

`messages`, `usage` and `events` hold the values themselves.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Final, TypeAlias

from nb_agent.growing import begun, keep

__all__ = ["JSON", "Encoded", "Value", "chunks", "dumps", "encode", "from_json", "to_json"]

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
    """A JSON object together with its bytes, so that a history is not encoded anew in every round.

    Never changed; a copy of it is a plain object that may be.

    Attributes:
        content: the object as compact UTF-8 JSON.
        memo: what was worked out for lists that begin with it (see `growing`).
    """

    __slots__ = ("content", "memo")
    content: bytes
    memo: dict[Any, Any]

    def __init__(self, *parts: Any, **entries: Any) -> None:
        super().__init__(*parts, **entries)
        self.content = _utf8(dumps(self))
        self.memo = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # what `copy` and `pickle` make of it


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON, taking the bytes of whatever is `Encoded` at any depth of lists and dicts.

    >>> encode({"messages": [Encoded(role="user", content="hi")], "stream": True})
    b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'
    """
    return b"".join(chunks(value))


#: Bytes from which on a stretch that is joined already is sent as it is: copying it costs more than one chunk more.
_LARGE: Final = 65_536
#: Stretches of one list that are not yet joined with each other.
_MOST_STRETCHES: Final = 32


def chunks(value: Any) -> list[bytes]:
    """The bytes of `encode` in as few chunks as go without copying a long history, which was joined in an earlier round.

    >>> chunks({"stream": True})
    [b'{"stream":true}']
    """
    found: list[bytes] = []
    small: list[bytes] = []
    for fragment in _fragments(value):
        if len(fragment) < _LARGE:
            small.append(fragment)
        else:
            found += [b"".join(small), fragment]
            small = []
    return [*found, b"".join(small)]


def _fragments(value: Any) -> list[bytes]:
    if isinstance(value, Encoded):
        return [value.content]
    if isinstance(value, list) and value:
        if isinstance(value[0], Encoded) and (stretches := _stretches(value)):
            return [b"[", *stretches, b"]"]
        fragments = [fragment for part in value for fragment in (b",", *_fragments(part))]
        return [b"[", *fragments[1:], b"]"]
    if isinstance(value, dict) and value:
        fragments = []
        for key, part in value.items():
            fragments += [b"," if fragments else b"{", _utf8(dumps(key)), b":", *_fragments(part)]
        return [*fragments, b"}"]
    return [_utf8(dumps(value))]


def _stretches(entries: list[Any]) -> list[bytes] | None:
    """The bytes of a list of `Encoded`, of which only the new ones are joined; ``None`` where something else is among them."""
    known: list[bytes]
    size, known = begun(_JOINED, entries)
    if size == len(entries):
        return known
    try:
        new = b",".join([entry.content for entry in entries[size:]])
    except AttributeError:
        return None
    stretches = [*known, b"," + new] if size else [new]
    if len(stretches) > _MOST_STRETCHES:
        stretches = [b"".join(stretches)]
    keep(_JOINED, entries, stretches)
    return stretches


_JOINED: Final = "joined"


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # half of a surrogate pair has no UTF-8 form: it becomes a question mark
