"""The history as it grows in a run: by whole turns only, so that it is one that a provider accepts whichever way the run ends.

`history` mends what comes from elsewhere; this never makes what would need mending.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from nb_agent.joining import joined
from nb_agent.messages import Message, Text, ToolCall, ToolResult

__all__ = ["Turns"]

_GO_ON: Final = "Your answer was cut off at the output limit. Go on exactly where it stopped, and repeat nothing."


@dataclass(slots=True)
class Turns:
    """The history of a run, and the turn that is not whole yet."""

    messages: list[Message]
    prompt: int  # how many messages there were before the prompt was added
    said: list[str] = field(default_factory=list)  # text that has come of a reply that is not whole
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)
    continuing: bool = False  # whether the last message asks the model to go on with the one before it

    def reply(self, message: Message) -> None:
        """Take a whole reply in, or what had come of one; its calls are open from here on."""
        self.said.clear()
        if self.continuing:
            message = self._continued(message)
        if message.parts:
            self.messages.append(message)
        self.calls, self.results = message.tool_calls, {}

    def ask_to_go_on(self) -> None:
        """A text was cut off: ask for the rest. The question leaves the history as soon as the rest is there."""
        self.messages.append(Message.of("user", _GO_ON))
        self.continuing = True

    def _continued(self, message: Message) -> Message:
        """The reply that was cut off and its rest as one message; both leave the history, to come back as this."""
        self.continuing = False
        del self.messages[-1]
        begun = self.messages.pop()
        whole = Text(joined(begun.text, message.text))
        kept = [part for part in begun.parts if not isinstance(part, Text)]
        return Message("assistant", (*kept, whole, *(part for part in message.parts if not isinstance(part, Text))))

    @property
    def text(self) -> str:
        """The last text that the model wrote in this run."""
        new = self.messages[self.prompt + 1 :]
        return next((message.text for message in reversed(new) if message.role == "assistant"), "")

    def close(self, code: str, words: str) -> None:
        """Make the turn whole: text that came is kept, calls without a result get one, an unanswered prompt is taken back."""
        if text := "".join(self.said):
            self.reply(Message.of("assistant", text))
        elif self.continuing:
            del self.messages[-1]
            self.continuing = False
        for call in self.calls:
            result = self.results.get(call.id) or ToolResult.failure(call, words, code=code)
            self.messages.append(Message("tool", (result,)))
        self.said, self.calls, self.results = [], (), {}
        if len(self.messages) == self.prompt + 1 and self.messages[-1].role == "user":
            self.messages.pop()
