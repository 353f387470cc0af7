"""Answers of servers that do not quite fit the protocol, mended so that one odd part does not take the whole down.

The SDK refuses a whole list for one bad tool, and a whole result for one kind of content that it does not know. Pure: JSON in, JSON
out, with a sentence for what was left out. What becomes of a sound answer is the business of `mapping`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from nb_agent.mcp.mapping import block_text
from nb_agent.values import JSON, dumps

__all__ = ["MENDERS", "mend_listing", "mend_result"]


def mend_listing(result: JSON) -> tuple[JSON, list[str]]:
    """A page of ``tools/list`` with only tools that can be used, and a sentence for each part that was left out."""
    mended, notes = dict(result), []
    mended["tools"] = []
    for entry in _list(result.get("tools")):
        fault = _fault(entry)
        if fault:
            notes.append(fault)
        else:
            mended["tools"].append(_tool(entry))
    cursor = mended.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        notes.append(f"later pages of tools were not read: nextCursor is no text but {dumps(cursor)[:80]}")
        del mended["nextCursor"]
    return mended, notes


#: Parts of a tool that may be missing; one of another type is dropped.
_TOOL: Final = {"title": str, "description": str, "outputSchema": dict, "_meta": dict}


def _fault(entry: Any) -> str | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return f"a tool was left out because it has no name: {dumps(entry)[:120]}"
    schema = entry.get("inputSchema", {})
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return f"tool {entry['name']!r} was left out because its inputSchema is no schema of an object"
    return None


def _tool(entry: JSON) -> JSON:
    kept = {"name": entry["name"], **_typed(entry, _TOOL), "inputSchema": {"type": "object", **entry.get("inputSchema", {})}}
    if kept.get("outputSchema", {}).get("type", "object") != "object":  # other types came with 2026-07-28
        del kept["outputSchema"]
    hints = entry.get("annotations")
    if isinstance(hints, dict):
        kept["annotations"] = {key: hint for key, hint in hints.items() if isinstance(hint, str if key == "title" else bool)}
    return kept


def mend_result(result: JSON) -> tuple[JSON, list[str]]:
    """A result of ``tools/call`` whose content the SDK can read: what it could not is named in a text in its place."""
    if result.get("resultType", "complete") != "complete":
        return result, []  # the server asks for something first; the SDK knows how to answer
    mended = result | {"content": [_block(block) for block in _list(result.get("content"))]}
    mended["isError"] = bool(result.get("isError"))
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):  # before 2026-07-28 only objects are allowed
        del mended["structuredContent"]
        mended["content"] = mended["content"] or [{"type": "text", "text": dumps(structured)}]
    return mended, []


#: Kind of content -> what it must have (specification 2025-11-25, schema.ts).
_CONTENT: Final[Mapping[str, Mapping[str, type]]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource_link": {"uri": str, "name": str},
    "resource": {"resource": dict},
}
_SAID: Final = {"title": str, "description": str, "mimeType": str}


def _block(block: Any) -> JSON:
    kind = block.get("type") if isinstance(block, dict) else None
    needs = _CONTENT.get(kind) if isinstance(kind, str) else None
    if needs is None or len(kept := _typed(block, needs)) < len(needs):
        return {"type": "text", "text": block_text(block)}
    if kind == "resource":
        kept["resource"] = _typed(block["resource"], {"uri": str, "mimeType": str, "text": str, "blob": str})
        if "uri" not in kept["resource"] or len(kept["resource"].keys() & {"text", "blob"}) != 1:
            return {"type": "text", "text": block_text(block)}
    return {"type": kind, **_typed(block, _SAID), **kept}


def _typed(entry: JSON, types: Mapping[str, type]) -> JSON:
    return {key: entry[key] for key, kind in types.items() if isinstance(entry.get(key), kind)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


Mender: TypeAlias = Callable[[JSON], tuple[JSON, list[str]]]

#: Method of the request -> how its result is mended.
MENDERS: Final[dict[str, Mender]] = {"tools/list": mend_listing, "tools/call": mend_result}
