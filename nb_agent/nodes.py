"""The tokens of any node of a request's JSON: what each key, text and branch of it costs, and what a prompt cache could reuse.

Counted is the text of the node: its keys and its values, without brackets and commas, so that a node costs what its children cost.
That is what stands in the JSON; what a provider makes of it, and charges, is `tokens.breakdown`'s matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from nb_agent import vocabulary
from nb_agent.deltas import delta
from nb_agent.errors import SettingError
from nb_agent.messages import Request
from nb_agent.tokens import IMAGE, encoding_for
from nb_agent.values import JSON, dumps, encode

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Node", "Shared", "XRay", "shared", "total", "weighed", "xray"]

#: The tokens of a leaf; of a branch a list: its own tokens first, then its children in their order.
Weight: TypeAlias = "int | list[Weight]"

Path: TypeAlias = tuple[str | int, ...]


class Node(NamedTuple):
    """One node.

    Attributes:
        path: the keys and places that lead to it, as in ``("messages", 0, "content")``.
        kind: ``object``, ``array``, ``string``, ``number``, ``boolean`` or ``null``.
        tokens: of its text and all that is in it.
        share: of the tokens of the whole body, 0 to 1.
        bytes: of its compact JSON.
    """

    path: Path
    kind: str
    tokens: int
    share: float
    bytes: int

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer (RFC 6901)."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.path)


class Shared(NamedTuple):
    """What a request begins with just as the one before did, so that a prompt cache could reuse it.

    Attributes:
        tokens: of the entries that are the same, definitions of tools included where they are.
        share: of the tokens of the whole body, 0 to 1.
        entries: how many entries of the list of messages.
    """

    tokens: int
    share: float
    entries: int


@dataclass(frozen=True, slots=True, repr=False)
class XRay:
    """A body with the tokens of all its nodes.

    Attributes:
        body: the JSON.
        weight: its tokens (see `weighed`).
        encoding: the vocabulary that they were counted with.
        exact: whether that is the model's own vocabulary.
    """

    body: JSON
    weight: Weight
    encoding: str
    exact: bool

    def __repr__(self) -> str:
        return f"<X-ray of a request: {self.tokens:,} tokens in {sum(1 for _ in self):,} nodes>"

    @property
    def tokens(self) -> int:
        """Of the whole body."""
        return total(self.weight)

    def at(self, *path: str | int) -> Node:
        """The node at a path, such as ``at("messages", 0, "content")``.

        Raises:
            SettingError: there is none.
        """
        value: Any = self.body
        weight = self.weight
        for step in path:
            steps = list(_children(value, weight))
            found = next(((part, its) for key, part, its in steps if key == step), None)
            if found is None:
                raise SettingError(f"no {step!r} at {list(path)}; there are: {', '.join(repr(key) for key, *_ in steps) or 'none'}")
            value, weight = found
        return self._node(path, value, weight)

    def __iter__(self) -> Iterator[Node]:
        """All nodes, each before its children."""
        return self._below((), self.body, self.weight)

    def frame(self, depth: int | None = None) -> pd.DataFrame:
        """A row for each node, down to so many steps from the top.

        Columns:
            pointer: JSON Pointer (RFC 6901).
            kind: of JSON.
            tokens: of the node and all in it.
            share: of the whole, 0 to 1.
            bytes: of its compact JSON.
        """
        import pandas as pd  # noqa: PLC0415  0.6 s, so only when a table is wanted

        nodes = [node for node in self if depth is None or len(node.path) <= depth]
        rows = [(node.pointer, node.kind, node.tokens, node.share, node.bytes) for node in nodes]
        return pd.DataFrame(rows, columns=["pointer", "kind", "tokens", "share", "bytes"])

    def _below(self, path: Path, value: Any, weight: Weight) -> Iterator[Node]:
        yield self._node(path, value, weight)
        for step, part, its in _children(value, weight):
            yield from self._below((*path, step), part, its)

    def _node(self, path: Path, value: Any, weight: Weight) -> Node:
        number = total(weight)
        return Node(
            tuple(path),
            _KINDS.get(type(value), "object"),
            number,
            number / (self.tokens or 1),
            len(encode(value)),
        )


_KINDS: Final = {list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


def xray(request: Request | JSON, model: str | None = None) -> XRay:
    """The tokens of every node of a request.

    Args:
        request: a request of a run, or the JSON of a body.
        model: whose vocabulary counts; without one, the model that the body names.

    >>> xray({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello world"}]}).at("messages", 0, "content").tokens
    2
    """
    body = request.body if isinstance(request, Request) else request
    encoding = encoding_for(model or body.get("model"))
    return XRay(body, weighed(body, encoding.name), encoding.name, encoding.exact)


def weighed(value: Any, encoding: str) -> Weight:
    """The tokens of a JSON value, in its own shape.

    >>> weighed({"a": "hello world", "b": [1, 2]}, "o200k_base")
    [6, 2, [2, 1, 1]]
    """
    if isinstance(value, dict):
        parts = [weighed(part, encoding) for part in value.values()]
        return [sum(map(total, parts)) + sum(_tokens(key, encoding) for key in value), *parts]
    if isinstance(value, list):
        parts = [weighed(part, encoding) for part in value]
        return [sum(map(total, parts)), *parts]
    if isinstance(value, str) and len(value) > _LONG and _PICTURE.match(value):
        return IMAGE  # no model reads base64
    return _tokens(value if isinstance(value, str) else dumps(value), encoding)


def total(weight: Weight) -> int:
    """The tokens of a node, whatever it is."""
    if isinstance(weight, int):
        return weight
    first = weight[0]
    return first if isinstance(first, int) else 0


def shared(before: XRay, after: XRay) -> Shared:
    """What two requests, one after the other, have in common at their start.

    Providers' caches read from the front, tools and system text first, and give whole stretches only (OpenAI: 1,024 tokens at the
    least, in steps of 128; Anthropic: up to a mark that the request sets). So this is the most that one could give: nothing, where
    anything ahead of the messages has changed.
    """
    ours, key = after.body, next((name for name in _LISTS if isinstance(after.body.get(name), list)), None)
    if key is None or any(before.body.get(name) != ours.get(name) for name in _AHEAD):
        return Shared(0, 0.0, 0)
    entries = len(ours[key]) if before.body.get(key) == ours[key] else delta(before.body, ours).get("same", {}).get(key, 0)
    ahead = sum(after.at(name).tokens for name in _AHEAD if name in ours and name != "model")
    tokens = ahead + sum(total(weight) for _, _, weight in [*_children(ours[key], _at(after, key))][:entries])
    return Shared(tokens, tokens / (after.tokens or 1), entries)


#: A picture in a body: a data URL, or base64 without any white space.
_PICTURE: Final = re.compile(r"data:image/|[A-Za-z0-9+/]{1000}")
_LONG: Final = 1000

#: Under which names the wire formats keep the conversation, and what a provider reads before it.
_LISTS: Final = ("messages", "input", "contents")
_AHEAD: Final = ("model", "tools", "system", "instructions", "systemInstruction", "system_instruction")


def _at(ray: XRay, key: str) -> Weight:
    return next(weight for name, _, weight in _children(ray.body, ray.weight) if name == key)


def _children(value: Any, weight: Weight) -> Iterator[tuple[str | int, Any, Weight]]:
    """The steps, values and weights of what is in a node."""
    if isinstance(weight, list):
        steps: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for (step, part), its in zip(steps, weight[1:], strict=True):
            yield step, part, its


def _tokens(text: str, encoding: str) -> int:
    return vocabulary.measure(text, encoding).tokens
