"""The values of a conversation, in words of our own that every wire format is translated to and from.

Frozen and compared by content. What only one provider understands rides in ``extra`` and goes back to the same wire format
untouched. Nothing here knows a provider, a tool's code or the network.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from nb_agent.usage import Usage
from nb_agent.values import JSON, Value, dumps, encode

__all__ = [
    "PARTS",
    "Definition",
    "Finish",
    "Image",
    "Message",
    "Opaque",
    "Part",
    "Piece",
    "Reply",
    "Request",
    "Role",
    "Segment",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
]

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "paused", "error", "cancelled"]

# ------------------------------------------------------------------------------------------------- the parts of a message


@dataclass(frozen=True, slots=True)
class Text(Value):
    """What a person, a model or a tool wrote."""

    AS_IS = frozenset({"extra"})
    text: str
    extra: JSON | None = None


@dataclass(frozen=True, slots=True)
class Image(Value):
    """A picture: base64 ``data`` of the given media type, or a ``url``."""

    data: str | None = None
    media_type: str = "image/png"
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Thinking(Value):
    """Reasoning that a model showed; ``extra`` holds what its provider wants to see again, such as a signature."""

    AS_IS = frozenset({"extra"})
    text: str
    extra: JSON | None = None


@dataclass(frozen=True, slots=True)
class Opaque(Value):
    """Something that only one wire format knows, such as encrypted reasoning: it goes back there untouched, and nowhere else."""

    AS_IS = frozenset({"body"})
    wire: str
    body: JSON


@dataclass(frozen=True, slots=True)
class ToolCall(Value):
    """What a model asks for. ``arguments`` is its own text, valid JSON or not; the host decides what becomes of it."""

    AS_IS = frozenset({"extra"})
    id: str
    name: str
    arguments: str = "{}"
    extra: JSON | None = None


@dataclass(frozen=True, slots=True)
class ToolResult(Value):
    """The one answer that every call gets: done, failed, refused, cancelled or timed out.

    ``code`` is ``None`` for a call that was carried out, else a stable word for what went wrong (``unknown_tool``,
    ``invalid_arguments``, ``truncated_arguments``, ``tool_failed``, ``refused``, ``cancelled``, ``tool_timeout`` …).
    """

    call_id: str
    name: str
    parts: tuple[Text | Image, ...] = ()
    code: str | None = None

    @classmethod
    def failure(cls, call: ToolCall, error: str, *, code: str) -> ToolResult:
        """The result of a call that was not carried out, or not to its end, in the form that models are told of it."""
        return cls(call.id, call.name, (Text(dumps({"success": False, "error": error, "code": code})),), code)

    @property
    def failed(self) -> bool:
        """Whether the call was not carried out, or not to its end."""
        return self.code is not None

    @property
    def text(self) -> str:
        """The text that the model reads; images are left out."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


Part: TypeAlias = Text | Image | Thinking | Opaque | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Message(Value):
    """One turn of one speaker. A ``tool`` message holds exactly one result."""

    AS_IS = frozenset({"extra"})
    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    extra: JSON | None = None
    #: What was worked out once for this message: its wire form, its tokens. Never part of its content.
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, role: Role, text: str) -> Message:
        """A message of plain text."""
        return cls(role, (Text(text),))

    @property
    def text(self) -> str:
        """Its text; thinking, calls and images are left out."""
        return "".join(part.text for part in self.parts if isinstance(part, (Text, ToolResult)))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that an assistant message asks for, in their order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_result(self) -> ToolResult | None:
        """The result that a tool message carries."""
        return next((part for part in self.parts if isinstance(part, ToolResult)), None)

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call that a tool message answers."""
        return None if self.tool_result is None else self.tool_result.call_id


# ------------------------------------------------------------------------------------------------- requests and replies


@dataclass(frozen=True, slots=True)
class Definition(Value):
    """A tool as a model sees it; ``parameters`` is a JSON Schema of type object."""

    AS_IS = frozenset({"parameters"})
    name: str
    description: str
    parameters: JSON
    strict: bool | None = None
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Request(Value):
    """One HTTP request to a model, without its address and without a key: what is shown is what is sent.

    Attributes:
        body: the JSON body. Entries of its lists may be `Encoded`, which is what makes a long history cheap to send.
        stream: whether the answer is asked for piece by piece.
        notices: what the wire format could not carry and was left out, a sentence each.
    """

    AS_IS = frozenset({"body"})
    wire: str
    path: str
    body: JSON
    stream: bool = False
    notices: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        """The body as it goes over the wire."""
        return encode(self.body)


#: The parts that the tokens of a request are split into (mission A2).
PARTS: Final = (
    "system",
    "developer",
    "history",  # what the user said before
    "assistant",  # text that the model wrote before
    "tool_calls",
    "tool_results",
    "user",  # the user message that this request answers
    "tools",  # the definitions
    "images",
    "overhead",  # what the protocol puts around them
)


@dataclass(frozen=True, slots=True)
class Segment(Value):
    """A stretch of a request's text that belongs to one part; ``message`` is its place in the history, ``tool`` a tool's name."""

    part: str
    text: str
    message: int | None = None
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Piece(Value):
    """A fragment of a reply as it came.

    ``kind`` is ``text``, ``thinking``, ``refusal``, ``call`` (``text`` is the tool's name) or ``arguments``; ``index`` says which
    call of the reply, ``choice`` which of several answers.
    """

    kind: Literal["text", "thinking", "refusal", "call", "arguments"]
    text: str
    index: int = 0
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Reply(Value):
    """One whole answer of a model.

    Attributes:
        finish: why it ended, in one vocabulary for all providers; ``raw_finish`` is the provider's own word.
        body: the answer as JSON of its wire format, put together from the pieces where it was streamed.
        others: the further choices of ``n > 1``; nothing in them is ever run.
        notices: what had to be mended or guessed while reading it, a sentence each.
    """

    AS_IS = frozenset({"body"})
    message: Message
    finish: Finish
    raw_finish: str | None = None
    usage: Usage | None = None
    id: str | None = None
    model: str | None = None
    body: JSON = field(default_factory=dict)
    others: tuple[Message, ...] = ()
    notices: tuple[str, ...] = ()
