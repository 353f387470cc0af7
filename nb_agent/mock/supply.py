"""A missing argument from the results so far: by the name of a key, by the noun of an id, or the whole of a plain result.

The host never guesses a dependent argument; the model does, and this is how the mock model does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from nb_agent.mock.params import Param, shortens
from nb_agent.mock.plans import Outcome
from nb_agent.mock.words import GENERIC, concepts, merged, pieces

__all__ = ["known", "supply"]

_MOST_VALUES: Final = 5  # calls that one list of results may lead to


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value in a result with the keys that lead to it."""

    keys: tuple[str, ...]
    value: Any
    tool: str


def supply(param: Param, done: tuple[Outcome, ...]) -> list[Any]:
    """The values for a parameter in what earlier calls returned; the best kind of match only, none where nothing matches."""
    leaves = [leaf for outcome in done if outcome.error is None for leaf in _leaves(outcome.value, (), outcome.call.name)]
    ranked = [(_match(param, leaf), leaf.value) for leaf in leaves if _fits(param, leaf.value)]
    best = max((rank for rank, _ in ranked), default=0)
    values: list[Any] = []
    for rank, value in ranked:
        converted = str(value) if param.type == "string" else value
        if rank == best > 0 and converted not in values:
            values.append(converted)
    return [values] if param.type == "array" and values else values[:_MOST_VALUES]


def known(done: tuple[Outcome, ...]) -> frozenset[str]:
    """The concepts that the results have a value for, by their keys."""
    leaves = (leaf for outcome in done if outcome.error is None for leaf in _leaves(outcome.value, (), ""))
    return merged(concepts(" ".join(leaf.keys).replace("_", " ")) for leaf in leaves)


def _leaves(value: Any, keys: tuple[str, ...], tool: str) -> Iterator[_Leaf]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, (*keys, str(key)), tool)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, keys, tool)
    elif value is not None and value != "":
        yield _Leaf(keys, value, tool)


def _match(param: Param, leaf: _Leaf) -> int:
    """How sure it is that a value is meant: 5 the same key … 1 the whole result of a tool that is named after it; 0 it is not."""
    wanted = _plain(param.name)
    if not leaf.keys:
        nouns = concepts(" ".join(param.nouns)) - GENERIC
        return 1 if nouns and nouns <= concepts(leaf.tool.rsplit("__", 1)[-1]) else 0
    if _plain(leaf.keys[-1]) == wanted:
        return 5
    if _plain("".join(leaf.keys[-2:])) == wanted or _plain("".join(leaf.keys[-2:])) == _plain(f"{wanted}s"):
        return 4
    if _plain(leaf.keys[-1]) == "id" and pieces(param.name)[-1:] == ["id"]:
        around = concepts(" ".join((*leaf.keys[:-1], leaf.tool.rsplit("__", 1)[-1])))
        return 3 if concepts(" ".join(param.nouns)) & around else 0
    return _by_words(param, leaf)


def _by_words(param: Param, leaf: _Leaf) -> int:
    """By the words of the last key: all of those of the parameter, or all of the key's in the parameter's description."""
    key = concepts(leaf.keys[-1].replace("_", " ")) - GENERIC
    own = param.words - GENERIC - {"id"}
    is_id = "id" in pieces(param.name)
    if is_id:
        nouns = [piece for piece in pieces(leaf.keys[-1]) if piece != "id"]
        alike = any(shortens(one, other) or shortens(other, one) for one in param.nouns for other in nouns)
        return 2 if "id" in pieces(leaf.keys[-1]) and alike else 0
    if own and own <= key:
        return 2
    return 1 if key and key <= own | param.hints else 0


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _fits(param: Param, value: Any) -> bool:
    if isinstance(param.schema.get("enum"), list):
        return value in param.schema["enum"]
    items = param.schema.get("items")
    kind = str(items.get("type", "string") if isinstance(items, dict) else "string") if param.type == "array" else param.type
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"integer": isinstance(value, int) and number, "number": number, "boolean": isinstance(value, bool)}.get(
        kind, kind == "string" and not isinstance(value, bool)
    )
