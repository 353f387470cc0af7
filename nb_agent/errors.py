"""Every exception that nb_agent raises, in one tree, split by who has to act.

::

    AgentError
    ├── UserError                 whoever wrote the cell or the script
    │   ├── SettingError          an option, a model name, a key or a file that cannot work
    │   └── HistoryError          messages that a provider would refuse
    ├── ToolDefinitionError       whoever wrote the tool: raised when it is made, not when it is called
    ├── ToolError                 raised *inside* a tool: its text and code go to the model as the result
    ├── ProviderError             the model server refused, failed, or broke the protocol
    │   └── TimeLimitError        the run's own time limit passed while the server was waited for
    └── ServerError               an MCP server did not start, did not answer, or has gone

A failing tool is no exception for the caller: it is a result for the model. In a notebook each of these prints one line.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "AgentError",
    "HistoryError",
    "ProviderError",
    "ServerError",
    "SettingError",
    "TimeLimitError",
    "ToolDefinitionError",
    "ToolError",
    "UserError",
]


class AgentError(Exception):
    """Base of all; its text says what happened, shows the value and names the next step."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback (IPython.core.interactiveshell.InteractiveShell.showtraceback)."""
        return [f"{type(self).__name__}: {self}"]


class UserError(AgentError):
    """Something in the cell or script has to change."""


class SettingError(UserError):
    """An option, a model name, a key or a file that cannot work."""


class HistoryError(UserError):
    """The messages would be refused by a provider; the text names the fault and its place."""


class ToolDefinitionError(AgentError):
    """A function cannot become a tool; the text names the function and the parameter."""


class ToolError(AgentError):
    """Raise it in a tool to tell the model what went wrong.

    Args:
        message: what the model should know to act on the failure.
        code: a short stable word for the kind of failure, such as ``"not_found"``.
    """

    def __init__(self, message: str, *, code: str = "tool_failed") -> None:
        super().__init__(message)
        self.code = code


#: Kind of provider error -> whether the same request may work a little later.
PROVIDER_KINDS: Final[dict[str, bool]] = {
    "authentication": False,
    "billing": False,  # no credit is left; waiting does not bring any
    "not_found": False,
    "bad_request": False,
    "context_length": False,
    "content_filter": False,
    "rate_limit": True,
    "overload": True,
    "server": True,
    "network": True,
    "timeout": True,
    "stream_interrupted": True,
    "protocol": False,
}

#: Kind of provider error -> what a person does next.
WHAT_TO_DO: Final[dict[str, str]] = {
    "authentication": "check the key, and that it belongs to this server",
    "billing": "add credit, or raise the limit, on the provider's own pages",
    "not_found": "check the model's name and base_url",
    "bad_request": "change what the server names",
    "context_length": "shorten what is sent: a new conversation, shorter tool results, fewer tools",
    "content_filter": "say it in other words",
    "rate_limit": "wait a little, then run the cell again",
    "overload": "wait a little, then run the cell again",
    "server": "run the cell again; the fault is the server's",
    "network": "check the address and whether the server runs",
    "timeout": "run the cell again, or allow more time",
    "stream_interrupted": "run the cell again",
    "protocol": "check that base_url and the wire format belong together",
}


class ProviderError(AgentError):
    """The model server refused, failed, or broke the protocol.

    Attributes:
        kind: one of ``PROVIDER_KINDS``.
        status: HTTP status code, or ``None`` where there was none.
        retryable: whether the same request may work a little later.
        retry_after: seconds after which the server asks to come back, where it does.
        request_id: how the provider's support finds the request.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        status: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retryable = PROVIDER_KINDS[kind] if retryable is None else retryable
        self.retry_after = retry_after
        self.request_id = request_id


class TimeLimitError(ProviderError):
    """The run's own time limit passed while the server was waited for; a run ends with it as with any other time limit."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="timeout", retryable=False)


class ServerError(AgentError):
    """An MCP server did not start, did not answer in time, or has gone.

    Attributes:
        kind: ``server_start_failed``, ``timeout`` or ``server_gone``.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
