"""An agent: settings and the conversation so far. `Agent.run` puts the parts together and pulls one run through them.

What it does not do is in the modules it names: the loop decides, the transport sends, the views show.
"""

from __future__ import annotations

import difflib
import functools
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from nb_agent import loop, providers
from nb_agent.errors import SettingError
from nb_agent.events import Answer, Event, RequestReady, RunEnded, Stop
from nb_agent.guards.masking import Masks, secrets_of
from nb_agent.guards.policy import Policy, PolicyLike
from nb_agent.guards.repeats import Repeats
from nb_agent.mcp import Hub
from nb_agent.messages import Image, Message, Text
from nb_agent.run import Run, counted
from nb_agent.tools.calling import Caller
from nb_agent.tools.capture import captured
from nb_agent.tools.pictures import image
from nb_agent.tools.results import MOST_TOKENS
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.transport import Secret
from nb_agent.values import JSON
from nb_agent.views import notebook, outputs
from nb_agent.views.asking import Ask, Leave, by_input

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

_NAMED: Final = (
    *("model", "tools", "system", "base_url", "api_key", "wire", "stream"),
    *("max_rounds", "time_limit", "tool_time_limit", "max_parallel", "policy", "ask", "masks"),
)


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
        time_limit: seconds after which a run stops, ``None`` for never. The time in which a person is asked does not count.
        tool_time_limit: seconds after which a call of a tool is left behind, where the tool has no limit of its own.
        max_parallel: calls of one reply that run at the same time.
        policy: which calls run, which need leave and which are refused (see `guards.policy.Policy.of`).
        ask: asks a person for leave; without one, `views.asking.by_input`.
        masks: what is masked in results before a model or a view gets them: names of sets, or `guards.masking.Masks`.
        extra_body: further fields of the request body, sent as they are.
        settings: standard request fields, such as ``temperature``.

    Raises:
        SettingError: a setting is not known, or cannot work.
        ToolDefinitionError: a function cannot become a tool, or two tools have one name.
    """

    def __init__(  # noqa: PLR0913  each is a setting that people write by its name
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
        tool_time_limit: float | None = None,
        max_parallel: int = 32,
        policy: PolicyLike = None,
        ask: Ask = by_input,
        masks: Masks | Iterable[str] = ("keys",),
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
        self.tool_time_limit = tool_time_limit
        self.max_parallel = max_parallel
        self.policy = Policy.of(policy)
        self.ask = ask
        self.masks = masks if isinstance(masks, Masks) else Masks.of(*masks)
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
        trusted: bool = False,
    ) -> list[str]:
        """Connect an MCP server, whose tools then belong to every run as ``NAME__TOOL``; their names are returned.

        The connection is kept over cells until `close`. The server is a program (``command``; a leading ``python`` means the Python
        that runs this) or an address (``url``).

        Raises:
            ServerError: it does not start, or does not answer within ``start_limit`` seconds.
            SettingError: the name or the command cannot work.
        """
        self.hub.connect(name, command=command, url=url, env=env, cwd=cwd, start_limit=start_limit, trusted=trusted)
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
        prompt: str | Sequence[Any],
        *,
        tools: Iterable[AnyTool | Callable[..., Any]] | None = None,
        stream: bool | None = None,
        max_rounds: int | None = None,
        time_limit: float | None = None,
        policy: PolicyLike = None,
        view: bool = True,
        on_event: Callable[[Event], None] | None = None,
        answer: Callable[[Event], Answer] = lambda _: None,
    ) -> Run:
        """Send ``prompt``, carry out what the model asks for, and come back when it has answered.

        Works where an event loop is running too. In a notebook the run is shown while it goes on, unless ``view`` is false.

        Args:
            prompt: what the user says, sent exactly as it is; or a list of texts and pictures (see `tools.pictures.image`).
            tools: these and no others for this run.
            stream: another setting for this run only.
            max_rounds: another limit for this run only.
            time_limit: another limit for this run only, in seconds.
            policy: another policy for this run only.
            view: whether a notebook or a terminal shows it.
            on_event: is called with every event.
            answer: may change a request or a call before it goes on (see `events`). Where it says nothing, the policy asks.

        Raises:
            SettingError: a setting cannot work; nothing was sent.
            HistoryError: the conversation cannot be sent; nothing was.
            ProviderError: the model server failed; `last_run` holds what had come.
            KeyboardInterrupt: it was interrupted; `last_run` holds what had come, and the next run goes on from there.
        """
        said = _said(prompt)
        toolbox = self.toolbox() if tools is None else Toolbox(tools)
        target, send = providers.resolve(self.model, base_url=self.base_url, key=self._key, environ=os.environ, wire=self.wire)
        seconds = self.time_limit if time_limit is None else time_limit
        repeats = Repeats(secrets.token_hex(8))
        answers = _Answers(answer, Leave(self.ask).answer, repeats)
        run = self.last_run = Run()
        caller = Caller(
            toolbox,
            policy=self.policy if policy is None else Policy.of(policy),
            masks=self.masks.with_secrets(self._secrets()),
            repeats=repeats,
            capture=functools.partial(captured, outputs.shown_by_tool),
            most_at_once=self.max_parallel,
            most_seconds=self.tool_time_limit,
            most_tokens=_longest_result(target.window),
            model=target.model,
        )
        began = answers.clock()
        running = loop.run(
            said,
            self.history,
            target=target,
            send=lambda request: send(request, None if seconds is None else began + seconds + answers.held),
            calls=caller,
            definitions=toolbox.definitions,
            settings=self.settings,
            stream=self.stream if stream is None else stream,
            limits=loop.Limits(self.max_rounds if max_rounds is None else max_rounds, seconds),
            clock=answers.clock,
        )
        observers = [run.events.append, self._remember, *([on_event] if on_event else [])]
        if view:
            notebook.pull_shown(running, *observers, count=counted, run=run, answer=answers)
        else:
            loop.pull(running, *observers, answer=answers)
        return run

    def _secrets(self) -> tuple[str, ...]:
        """What no result may hold, whatever it looks like."""
        return (*secrets_of(os.environ), *(() if self._key is None else (self._key.reveal(),)))

    def _remember(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self._history = tuple(message for message in event.history if message.role != "system" or message.text != self.system)


class _Answers:
    """What a run is answered with: by the caller first, then by a person where leave is needed; a run in circles is stopped.

    Attributes:
        held: seconds in which the run waited for an answer. They are not its own.
    """

    def __init__(self, first: Callable[[Event], Answer], leave: Callable[[Event], Answer], repeats: Repeats) -> None:
        self.held = 0.0
        self._first = first
        self._leave = leave
        self._repeats = repeats

    def clock(self) -> float:
        """Seconds, without those in which somebody thought about an answer."""
        return time.monotonic() - self.held

    def __call__(self, event: Event) -> Answer:
        """The answer to one event."""
        began = time.monotonic()
        try:
            if isinstance(event, RequestReady) and (words := self._repeats.stopped):
                return Stop("repeated_calls", words)
            given = self._first(event)
            return self._leave(event) if given is None else given
        finally:
            self.held += time.monotonic() - began


def _said(prompt: str | Sequence[Any]) -> Message:
    if isinstance(prompt, str):
        parts: list[Text | Image] = [Text(prompt)]
    else:
        parts = [Text(part) if isinstance(part, str) else part if isinstance(part, Text) else image(part) for part in prompt]
    if not any(isinstance(part, Image) or part.text.strip() for part in parts):
        raise SettingError("the prompt is empty; write what the model should do")
    return Message("user", tuple(parts))


def _longest_result(window: int | None) -> int:
    """Tokens of a tool's result that are sent: none may fill half of a small window."""
    return MOST_TOKENS if window is None else min(MOST_TOKENS, window // 3)


def _known(settings: JSON) -> JSON:
    for name in settings:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, [*SETTINGS, *_NAMED], 1, cutoff=0.7)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SettingError(f"no setting named {name!r}; {hint}what only one server knows goes into extra_body={{…}}")
    return settings
