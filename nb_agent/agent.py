"""An agent: settings and the conversation so far. `Agent.run` puts the parts together and pulls one run through them.

What it does not do is in the modules it names: the loop decides, the transport sends, the views show.
"""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from nb_agent import loop, providers
from nb_agent.errors import SettingError
from nb_agent.events import Answer, Event, RunEnded
from nb_agent.mcp import Hub
from nb_agent.messages import Message
from nb_agent.run import Run, counted
from nb_agent.tools.calling import Caller
from nb_agent.tools.results import MOST_CHARACTERS
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.transport import Secret
from nb_agent.values import JSON
from nb_agent.views import notebook

__all__ = ["SETTINGS", "Agent"]

#: The request fields that may be set on an agent, sent as they are and only when set. Anything else goes into ``extra_body``.
SETTINGS: Final = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "user",
    }
)

_NAMED: Final = ("model", "tools", "system", "base_url", "api_key", "wire", "stream", "max_rounds", "time_limit")


class Agent:
    """A model, tools and a conversation that each run goes on with.

    Args:
        model: ``"mock"`` (the local mock model), ``"openai:NAME"`` and the like (see `providers.PROVIDERS`), or a bare name
            together with ``base_url``.
        tools: functions, or tools made of them with ``@tool``.
        system: the system prompt.
        base_url: address of an OpenAI-compatible server.
        api_key: its key; without it the environment's is used.
        wire: the wire format, where it is not the server's usual one (see `adapters.WIRES`).
        stream: whether answers are asked for piece by piece.
        max_rounds: requests after which a run stops.
        time_limit: seconds after which a run stops, ``None`` for never.
        extra_body: further fields of the request body, sent as they are.
        settings: standard request fields, such as ``temperature``.

    Raises:
        SettingError: a setting is not known, or cannot work.
        ToolDefinitionError: a function cannot become a tool, or two tools have one name.
    """

    def __init__(
        self,
        model: str = "mock",
        tools: Iterable[AnyTool | Callable[..., Any]] = (),
        system: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        wire: str | None = None,
        stream: bool = True,
        max_rounds: int = 10,
        time_limit: float | None = 30.0,
        extra_body: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.model = model
        self.tools: Sequence[AnyTool | Callable[..., Any]] = tuple(Toolbox(tools))
        self.system = system
        self.base_url = base_url
        self.wire = wire
        self.stream = stream
        self.max_rounds = max_rounds
        self.time_limit = time_limit
        self.settings: JSON = _known(settings) | dict(extra_body or {})
        self.hub = Hub()
        self.last_run: Run | None = None
        self._key = None if api_key is None else Secret(api_key)
        self._history: tuple[Message, ...] = ()

    def __repr__(self) -> str:
        return f"<Agent {self.model}: {len(self.tools)} tools, {len(self.history)} messages>"

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far, the system prompt first."""
        first = (Message.of("system", self.system),) if self.system else ()
        return (*first, *self._history)

    def reset(self) -> None:
        """Forget the conversation; settings, tools and MCP servers stay."""
        self._history = ()

    def mcp(
        self,
        name: str,
        *,
        command: Sequence[str] | None = None,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        start_limit: float = 20.0,
    ) -> list[str]:
        """Connect an MCP server, whose tools then belong to every run as ``NAME__TOOL``; their names are returned.

        The connection is kept over cells until `close`. The server is a program (``command``; a leading ``python`` means the Python
        that runs this) or an address (``url``).

        Raises:
            ServerError: it does not start, or does not answer within ``start_limit`` seconds.
            SettingError: the name or the command cannot work.
        """
        self.hub.connect(name, command=command, url=url, env=env, cwd=cwd, start_limit=start_limit)
        return [tool.name for tool in self.hub.tools() if tool.connection.name == name]

    def close(self) -> None:
        """End the connections to MCP servers."""
        self.hub.close_all()

    def toolbox(self) -> Toolbox:
        """All its tools: functions first, then those that MCP servers offer now.

        Raises:
            ToolDefinitionError: two tools have one name.
        """
        self.hub.refresh()
        return Toolbox([*self.tools, *self.hub.tools()])

    def run(
        self,
        prompt: str,
        *,
        tools: Iterable[AnyTool | Callable[..., Any]] | None = None,
        stream: bool | None = None,
        max_rounds: int | None = None,
        time_limit: float | None = None,
        view: bool = True,
        on_event: Callable[[Event], None] | None = None,
        answer: Callable[[Event], Answer] = lambda _: None,
    ) -> Run:
        """Send ``prompt``, carry out what the model asks for, and come back when it has answered.

        Works where an event loop is running too. In a notebook the run is shown while it goes on, unless ``view`` is false.

        Args:
            prompt: what the user says, sent exactly as it is.
            tools: these and no others for this run.
            stream: another setting for this run only.
            max_rounds: another limit for this run only.
            time_limit: another limit for this run only, in seconds.
            view: whether a notebook or a terminal shows it.
            on_event: is called with every event.
            answer: may change a request or a call before it goes on (see `events`).

        Raises:
            SettingError: a setting cannot work; nothing was sent.
            HistoryError: the conversation cannot be sent; nothing was.
            ProviderError: the model server failed; `last_run` holds what had come.
            KeyboardInterrupt: it was interrupted; `last_run` holds what had come, and the next run goes on from there.
        """
        if not prompt.strip():
            raise SettingError("the prompt is empty; write what the model should do")
        toolbox = self.toolbox() if tools is None else Toolbox(tools)
        target, send = providers.resolve(self.model, base_url=self.base_url, key=self._key, environ=os.environ, wire=self.wire)
        seconds = self.time_limit if time_limit is None else time_limit
        until = None if seconds is None else time.monotonic() + seconds
        run = self.last_run = Run()
        running = loop.run(
            prompt,
            self.history,
            target=target,
            send=lambda request: send(request, until),
            calls=Caller(toolbox, most_characters=_longest_result(target.window)),
            definitions=toolbox.definitions,
            settings=self.settings,
            stream=self.stream if stream is None else stream,
            limits=loop.Limits(self.max_rounds if max_rounds is None else max_rounds, seconds),
        )
        observers = [run.events.append, self._remember, *([on_event] if on_event else [])]
        if view:
            notebook.pull_shown(running, *observers, count=counted, run=run, answer=answer)
        else:
            loop.pull(running, *observers, answer=answer)
        return run

    def _remember(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self._history = tuple(message for message in event.history if message.role != "system" or message.text != self.system)


def _longest_result(window: int | None) -> int:
    """Characters of a tool's result that are sent: none may fill half of a small window, even where a token is two characters."""
    return MOST_CHARACTERS if window is None else min(MOST_CHARACTERS, 3 * window // 4)


def _known(settings: JSON) -> JSON:
    for name in settings:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, [*SETTINGS, *_NAMED], 1, cutoff=0.7)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SettingError(f"no setting named {name!r}; {hint}what only one server knows goes into extra_body={{…}}")
    return settings
