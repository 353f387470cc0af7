"""MCP's tools and results in our own words: names that providers take, parameters, content. Pure, and knows no connection.

Unlike `mending`, which repairs what breaks the protocol, this is about sound answers. Nothing is dropped without a word: what a
model cannot read is named, with its type and address, where it stood.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from nb_agent.messages import Image, Text
from nb_agent.values import JSON, dumps

__all__ = ["Origin", "block_text", "parameters", "result_parts", "wire_names"]

#: The name of a connection, and the name of a tool as its server knows it.
Origin: TypeAlias = tuple[str, str]

#: The longest name that all providers take, and the characters of the hash that tells two like names apart.
_LONGEST: Final = 64
_HASH: Final = 6

#: Characters of one text that are kept.
_MOST_TEXT: Final = 2_000_000

#: The kinds of picture that every provider with images takes.
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


# ------------------------------------------------------------------------------------------------- names


def wire_names(origins: Iterable[Origin]) -> dict[Origin, str]:
    """A name for each tool that fits ``^[a-zA-Z0-9_-]{1,64}$``, begins with a letter or underscore, and belongs to it alone.

    A name depends on the tools that are there and not on their order, so it is the same in the next run. A name that fits as it
    is stays as it is; where several tools would get one name, those that had to be changed for it get a hash of their own name.

    >>> wire_names([("s", "list"), ("s", "get.item")])
    {('s', 'list'): 's__list', ('s', 'get.item'): 's__get_item'}
    """
    origins = list(dict.fromkeys(origins))
    groups: dict[str, list[Origin]] = defaultdict(list)
    for origin in origins:
        groups[_fitted(origin)].append(origin)
    names = {}
    for fitted, group in groups.items():
        exact = [origin for origin in group if _joined(origin) == fitted]
        for origin in group:
            alone = len(group) == 1 or exact == [origin]
            names[origin] = fitted if alone and len(fitted) <= _LONGEST else _hashed(fitted, origin)
    return {origin: names[origin] for origin in origins}


def _joined(origin: Origin) -> str:
    return "__".join(origin)


def _fitted(origin: Origin) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", _joined(origin))
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"  # Gemini takes no digit or dash in front


def _hashed(fitted: str, origin: Origin) -> str:
    mark = hashlib.sha256("\0".join(origin).encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{fitted[: _LONGEST - _HASH - 1]}_{mark}"


# ------------------------------------------------------------------------------------------------- parameters


def parameters(schema: JSON) -> JSON:
    """A copy of an ``inputSchema`` that every provider reads: an object with properties, and no ``true`` or ``false`` for a schema.

    ``true`` takes anything, which is ``{}``; a property that is ``false`` can never be given, so it is left out. All other
    keywords stay; what one provider does not know is that provider's adapter's business.

    >>> parameters({"properties": {"a": True, "b": False}})
    {'properties': {'a': {}}, 'type': 'object'}
    """
    copy: JSON = _plain(schema)
    copy.setdefault("type", "object")
    if not isinstance(copy.get("properties"), dict):
        copy["properties"] = {}
    return copy


#: Where schemas stand inside a schema: as a value, in a list, or by name.
_ONE: Final = frozenset({"items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems"})
_MANY: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def _plain(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return {} if schema is True else {"not": {}} if schema is False else schema
    copy: JSON = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            kept = {name: part for name, part in value.items() if part is not False or key != "properties"}
            copy[key] = {name: _plain(part) for name, part in kept.items()}
        elif key in _MANY and isinstance(value, list):
            copy[key] = [_plain(part) for part in value]
        elif key in _ONE or (key == "additionalProperties" and isinstance(value, dict)):
            copy[key] = [_plain(part) for part in value] if isinstance(value, list) else _plain(value)
        else:
            copy[key] = value
    return copy


# ------------------------------------------------------------------------------------------------- results


def result_parts(result: JSON) -> tuple[Text | Image, ...]:
    """The parts of a ``tools/call`` result in their order; the structured content only where no text says the same.

    >>> result_parts({"content": [], "structuredContent": {"rows": [1]}})
    (Text(text='{"rows":[1]}', extra=None),)
    """
    blocks = result.get("content") or []
    parts = [part for part in map(_part, blocks) if not isinstance(part, Text) or part.text]
    structured = result.get("structuredContent")
    if structured is not None and not any(_says(block) for block in blocks):
        parts.append(Text(dumps(structured)))
    return tuple(parts) or (Text("(no output)"),)


def _part(block: JSON) -> Text | Image:
    if block.get("type") == "image" and block.get("mimeType") in _PICTURES and block.get("data"):
        return Image(block["data"], block["mimeType"])
    text = block_text(block)
    if len(text) > _MOST_TEXT:  # what fits a window is cut later and finer; this only keeps the memory
        text = f"{text[:_MOST_TEXT]}\n[cut: {len(text):,} characters came, {_MOST_TEXT:,} are kept]"
    return Text(text)


def _says(block: JSON) -> bool:
    """Whether the server put something into words."""
    return bool(str(block.get("text") or "").strip() or (block.get("resource") or {}).get("text"))


def block_text(block: Any) -> str:
    """What a model is told of a block of content: its text, or a line in brackets that names what it cannot read.

    >>> block_text({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})
    '[audio: audio/wav, 4 bytes]'
    """
    if not isinstance(block, dict):
        return f"[content that is no JSON object: {dumps(block)[:80]}]"
    kind = str(block.get("type") or "content without a type")
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    inner = block.get("resource")
    resource: JSON = inner if isinstance(inner, dict) else block
    said = [str(resource[key]) for key in ("uri", "name", "title", "mimeType", "description") if resource.get(key)]
    if isinstance(data := resource.get("data") or resource.get("blob"), str):
        said.append(f"{len(data.rstrip('=')) * 3 // 4:,} bytes")
    if kind not in _KINDS:
        said.append("a kind of content that nb_agent does not know")
    line = f"[{_KINDS.get(kind, kind)}: {', '.join(said)}]" if said else f"[{_KINDS.get(kind, kind)}, with nothing in it]"
    return f"{line}\n{resource['text']}" if kind == "resource" and isinstance(resource.get("text"), str) else line


_KINDS: Final = {
    "text": "text",
    "image": "image",
    "audio": "audio",
    "resource_link": "link to a resource",
    "resource": "resource",
}
