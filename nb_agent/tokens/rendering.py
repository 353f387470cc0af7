"""Tool definitions as OpenAI's models read them: a text like TypeScript, written in one way by each generation of models.

The services do not publish it. What is here was found by comparing counts with recorded ``usage``; it is for counting and is never
sent. Unlike `protocols`, which adds up what a request costs, this only writes text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from nb_agent.values import JSON, dumps

__all__ = ["written"]

#: JSON Schema's words for types that are called otherwise.
_TYPES: Final = {"integer": "number", **{name: name for name in ("string", "number", "boolean", "null", "object")}}
_MOST: Final = 5_000  # schemas in one definition, with what its references point to; what is beyond goes on as `any`
_COMMENTED: Final = 2  # levels on which the first generation keeps descriptions


def written(form: JSON, *, terse: bool) -> str:
    """One function.

    Args:
        form: its ``name``, ``description`` and ``parameters`` as they are sent.
        terse: as the newer generations have it: not indented, titles and all descriptions kept, and an object without any on one
            line. The first generation indents, and keeps the descriptions of the two outer levels.

    >>> written({"name": "roll", "parameters": {"properties": {"sides": {"type": "integer"}}}}, terse=True)
    'type roll = (_: { sides?: number }) => any;'
    """
    schema = _Inlining(form.get("parameters")).schema(form.get("parameters"))
    writer = _Writer(terse)
    lines = [*writer.comments(form.get("description"), 0)]
    if not schema.get("properties"):
        return "\n".join([*lines, f"type {form.get('name')} = () => any;"])
    about = [*writer.about(schema, 0)] if terse else []
    opening = [f"type {form.get('name')} = (", *about, "_: "] if about else [f"type {form.get('name')} = (_: "]
    return "\n".join([*lines, *opening]) + writer.object(schema, 0) + ") => any;"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes schemas without references; ``depth`` counts the objects around a place."""

    terse: bool

    def comments(self, text: Any, depth: int) -> Iterator[str]:
        if isinstance(text, str) and text:
            for line in text.split("\n"):
                yield f"// {line.strip()}".rstrip() if self.terse else f"{'  ' * depth}// {line}"

    def about(self, schema: JSON, depth: int) -> Iterator[str]:
        if self.terse:
            yield from self.comments(schema.get("title"), depth)
        if self.terse or depth < _COMMENTED:
            yield from self.comments(schema.get("description"), depth)

    def object(self, schema: JSON, depth: int) -> str:
        required = schema.get("required") or ()
        properties = {f"{key}{'' if key in required else '?'}": part for key, part in schema["properties"].items()}
        if self.terse and not any(_speaks(part) for part in properties.values()):
            return f"{{ {', '.join(f'{key}: {self.type(part, depth + 1)}' for key, part in properties.items())} }}"
        lines = ["{"]
        indent = "" if self.terse else "  " * depth
        for key, entry in properties.items():
            lines += self.about(entry, depth)
            lines.append(f"{indent}{key}: {self.type(entry, depth + 1)},{self.default(entry)}")
        return "\n".join([*lines, indent[2:] + "}"])

    def default(self, schema: JSON) -> str:
        if "default" not in schema:
            return ""
        value = schema["default"]
        return f" // default: {value if isinstance(value, str) and 'enum' in schema else dumps(value)}"

    def type(self, schema: JSON, depth: int) -> str:
        kind = schema.get("type")
        if alternatives := self.alternatives(schema, depth):
            return " | ".join(alternatives)
        if kind == "array":
            return f"{self.type(schema['items'], depth)}[]"
        if kind == "object" and schema["properties"]:
            return self.object(schema, depth)
        return dumps(schema["const"]) if "const" in schema and kind is None else _TYPES.get(str(kind), "any")

    def alternatives(self, schema: JSON, depth: int) -> list[str]:
        if isinstance(schema.get("enum"), list):
            return [*map(dumps, schema["enum"])]
        kind = schema.get("type")
        kinds = [{**schema, "type": one} for one in kind] if isinstance(kind, list) else []
        return [self.type(part, depth) for part in _variants(schema) or kinds]


class _Inlining:
    """Puts what references point to in their place; a ring of them ends in a schema that says nothing."""

    def __init__(self, root: Any) -> None:
        self.root, self.left = root, _MOST

    def schema(self, form: Any, path: tuple[str, ...] = ()) -> JSON:
        self.left -= 1
        if not isinstance(form, dict) or self.left < 0:
            return {}
        reference = form.get("$ref")
        if isinstance(reference, str):
            beside = {key: part for key, part in form.items() if key != "$ref"}
            target = {} if reference in path else self.target(reference)
            return self.schema({**target, **beside}, (*path, reference))
        made = dict(form)
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(form.get(key), list):
                made[key] = [self.schema(part, path) for part in form[key]]
        made["items"] = self.schema(form.get("items"), path)
        properties = form.get("properties")
        made["properties"] = {k: self.schema(part, path) for k, part in properties.items()} if isinstance(properties, dict) else {}
        return made

    def target(self, reference: str) -> JSON:
        found: Any = self.root
        for step in reference.lstrip("#/").split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def _speaks(schema: JSON) -> bool:
    """Whether there is a comment or a default anywhere inside."""
    if any(schema.get(key) for key in ("title", "description")) or "default" in schema:
        return True
    inner = [*schema.get("properties", {}).values(), *_variants(schema), schema.get("items")]
    return any(_speaks(part) for part in inner if part)


def _variants(schema: JSON) -> list[Any]:
    return next((schema[key] for key in ("anyOf", "oneOf", "allOf") if isinstance(schema.get(key), list)), [])
