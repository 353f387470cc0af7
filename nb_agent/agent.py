"""An agent: settings and the conversation so far. `Agent.run` puts the parts together and pulls one run through them.

What it does not do is in the modules it names: the loop decides, the transport sends, the views show.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from nb_agent import compaction as compacting
from nb_agent import loop, providers
from nb_agent.assembly import Assembled, Wishes, assembled
from nb_agent.errors import AgentError
from nb_agent.events import Answer, Event, RunEnded
from nb_agent.guards.masking import Masks, secrets_of
from nb_agent.guards.policy import Policy, PolicyLike
from nb_agent.history import Finding, check
from nb_agent.mcp import Connection, Hub
from nb_agent.mcp.asking import attach
from nb_agent.mcp.inbox import Inbox
from nb_agent.messages import Message, Reply
from nb_agent.pricing import Prices
from nb_agent.run import Branch, Run
from nb_agent.sampling import sampled
from nb_agent.settings import SETTINGS, known
from nb_agent.stepping import Mode
from nb_agent.steps import Steps
from nb_agent.tools.sets import Route, ToolSets
from nb_agent.tools.toolbox import AnyTool, Toolbox
from nb_agent.transport import SHORTEST_KEY, Secret
from nb_agent.values import JSON
from nb_agent.views import notebook
from nb_agent.views.asking import Ask, Person
from nb_agent.wishes import AS_SET, Compaction, Tools, Wished, first, said_of

__all__ = ["SETTINGS", "Agent"]


class Agent:
    """A model, tools and a conversation that each run goes on with.

    Args:
        model: ``"mock"`` (the local mock model), ``"openai:NAME"`` and the like (see `providers.PROVIDERS`), or a bare name
            together with ``base_url``.
        tools: functions, or tools made of them with ``@tool``; or groups of them by name: ``{"files": [...], "shop": [...]}``.
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
        ask: asks for leave in place of the person who watches.
        ask_limit: seconds after which a question that nobody has answered by a button is taken for a no; ``None`` for never.
        masks: what is masked in results before a model or a view gets them: names of sets, or `guards.masking.Masks`.
        compaction: what is tried, in this order, where a request does not fit the model's window: names of `compaction.STRATEGIES`
            or functions like them. It changes what is sent and never the conversation; ``None`` switches it off.
        window: the model's context window in tokens, where the table of known models (`windows.table`) lacks it or is wrong.
        token_limit: tokens of all requests and answers of a run, before which it stops.
        cost_limit: what a run may cost, in the currency of ``prices``.
        prices: your own prices (see `pricing.cost`); without them those of genai-prices, where it is installed.
        route: chooses the groups that a prompt needs (see `tools.sets`); without one, a run offers all tools.
        extra_body: further fields of the request body, sent as they are.
        settings: standard request fields, such as ``temperature``.

    Raises:
        SettingError: a setting is not known, or cannot work.
        ToolDefinitionError: a function cannot become a tool, or two tools have one name.
    """

    def __init__(  # noqa: PLR0913  each is a setting that people write by its name
        self,
        model: str = "mock",
        tools: Tools | Mapping[str, Tools] = (),
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
        ask: Ask | None = None,
        ask_limit: float | None = None,
        masks: Masks | Iterable[str] = ("keys",),
        compaction: Compaction = compacting.DEFAULT,
        window: int | None = None,
        token_limit: int | None = None,
        cost_limit: float | None = None,
        prices: Prices | None = None,
        route: Route | None = None,
        extra_body: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.model = model
        self.groups = {name: tuple(Toolbox(group)) for name, group in tools.items()} if isinstance(tools, Mapping) else {}
        self.tools: Sequence[AnyTool | Callable[..., Any]] = () if isinstance(tools, Mapping) else tuple(Toolbox(tools))
        self.route = route
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
        self.ask_limit = ask_limit
        self.masks = masks if isinstance(masks, Masks) else Masks.of(*masks)
        self.compaction: Compaction = compaction
        self.window = window
        self.token_limit = token_limit
        self.cost_limit = cost_limit
        self.prices = prices
        self.settings: JSON = known(settings) | dict(extra_body or {})
        self.hub = Hub()
        self.hub.prepare = self._let_ask
        self._inbox = Inbox()
        self._serving = ExitStack()
        self.last_run: Run | None = None
        self._key = None if api_key is None else Secret(api_key)
        self._history: tuple[Message, ...] = ()
        self._memory = compacting.Memory()
        compacting.chosen(compaction)  # a name that is wrong is said now

    def __repr__(self) -> str:
        return f"<Agent {self.model}: {len(ToolSets(self.groups, self.tools).all)} tools, {len(self.history)} messages>"

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far, the system prompt first."""
        first = (Message.of("system", self.system),) if self.system else ()
        return (*first, *self._history)

    def reset(self) -> None:
        """Forget the conversation; settings, tools and MCP servers stay."""
        self._history = ()
        self._memory = compacting.Memory()

    def mcp(self, name: str, **how: Any) -> list[str]:
        """Connect an MCP server, whose tools then belong to every run as ``NAME__TOOL``; their names are returned.

        The connection is kept over cells until `close`.

        Args:
            name: of the server.
            how: ``command=[…]`` for a program (a leading ``python`` means the Python that runs this), or ``url=…`` for an address;
                and what else `mcp.Hub.connect` takes: ``env``, ``headers``, ``era``, ``trusted``, limits in seconds.

        Raises:
            ServerError: it does not start, or does not answer in time.
            SettingError: the name or the arguments cannot work.
        """
        self.hub.connect(name, **how)
        return [tool.name for tool in self.hub.tools() if tool.connection.name == name]

    def add(self, messages: Iterable[Message]) -> None:
        """Put messages at the end of the conversation, such as those of an MCP resource or prompt (see `mcp.contents`)."""
        self._history = (*self._history, *messages)

    def asking(self, act: Callable[[], Any]) -> Any:
        """What ``act`` gives; what an MCP server asks meanwhile is asked of the person here."""
        with self._inbox.open(notebook.opened(shown=False).ask):
            return self._inbox.during(act)

    def _let_ask(self, connection: Connection) -> None:
        """Let a server ask the person, where there is one: for words, and for answers of this agent's model."""

        def answer(messages: tuple[Message, ...], /, *, system: str | None, max_tokens: int) -> Reply:
            target, send = self._resolved()
            return sampled(target, send, messages, system=system, max_tokens=max_tokens)

        attach(connection, self._inbox.ask if notebook.somebody() else None, answer=answer, model=self.model)

    def _resolved(self) -> tuple[loop.Target, providers.Sender]:
        return providers.resolve(self.model, base_url=self.base_url, key=self._key, environ=os.environ, wire=self.wire)

    def serve(self, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> str:
        """Serve its tools over MCP (Streamable HTTP) to other programs, with its policy and its masks, until `close`; the address.

        Whoever calls has nobody to ask: calls that need leave are refused.

        Args:
            host: where it listens; another one than this machine's own needs a token.
            port: 0 for any that is free.
            token: that clients have to send.

        Raises:
            SettingError: it cannot be served there.
        """
        from nb_agent.mcp import serving  # noqa: PLC0415  the web server comes with it

        served = serving.Served(self.toolbox(), policy=self.policy, masks=self.masks.with_secrets(self._secrets()))
        address: str = self._serving.enter_context(serving.serving_http(served, host=host, port=port, token=token))
        return address

    def close(self) -> None:
        """End the connections to MCP servers, and what it serves itself."""
        self.hub.close_all()
        self._serving.close()

    def toolbox(self) -> Toolbox:
        """All its tools: functions first, then those that MCP servers offer now.

        Raises:
            ToolDefinitionError: two tools have one name.
        """
        return self.tool_sets().all

    def tool_sets(self) -> ToolSets:
        """Its groups of tools by name, the tools of each MCP server as one of them, and those that are in none.

        Raises:
            ToolDefinitionError: two tools have one name.
        """
        self.hub.refresh()
        served = {name: [tool for tool in self.hub.tools() if tool.connection.name == name] for name in self.hub.connections}
        return ToolSets({**self.groups, **served}, [*self.tools])

    def check(self, prompt: str | Sequence[Any] = "…") -> tuple[Finding, ...]:
        """What the provider would refuse of the conversation with this prompt, and what would be mended (see `history.check`)."""
        target, _ = self._resolved()
        return check((*self.history, said_of(prompt)), target.wire, model=target.model)

    def _offered(self, tools: Tools | str | None, prompt: Message) -> Toolbox:
        """The tools of one run: those that were named, else those that the route chooses, else all."""
        if tools is not None and not isinstance(tools, str):
            return Toolbox(tools)
        sets = self.tool_sets()
        if tools is not None:
            return sets.chosen(tools)
        return sets.all if self.route is None else sets.chosen(self.route(prompt.text, sets))

    def run(  # noqa: PLR0913  each is an option that people write by its name
        self,
        prompt: str | Sequence[Any],
        *,
        tools: Tools | str | None = None,
        stream: bool | None = None,
        max_rounds: int | None = None,
        time_limit: float | None = None,
        policy: PolicyLike = None,
        compaction: Compaction = AS_SET,
        token_limit: int | None = None,
        cost_limit: float | None = None,
        view: bool = True,
        on_event: Callable[[Event], None] | None = None,
        answer: Callable[[Event], Answer] = lambda _: None,
        step: bool = False,
    ) -> Run:
        """Send ``prompt``, carry out what the model asks for, and come back when it has answered.

        Works where an event loop is running too. In a notebook the run is shown while it goes on, unless ``view`` is false.

        Args:
            prompt: what the user says, sent exactly as it is; or a list of texts and pictures (see `tools.pictures.image`).
            tools: these and no others for this run: tools, or names of tools, of groups and of MCP servers in one text.
            stream: another setting for this run only.
            max_rounds: another limit for this run only.
            time_limit: another limit for this run only, in seconds.
            policy: another policy for this run only.
            compaction: another compaction for this run only; with ``None`` the whole conversation is sent again.
            token_limit: another limit for this run only.
            cost_limit: another limit for this run only.
            view: whether a notebook or a terminal shows it.
            on_event: is called with every event.
            answer: may change a request, a call or a result before it goes on (see `events`). Else a person is asked.
            step: stop before each request, before each call and after each result, and ask what to do (see `stepping`).

        Raises:
            SettingError: a setting cannot work; nothing was sent.
            HistoryError: the conversation cannot be sent; nothing was.
            ProviderError: the model server failed; `last_run` holds what had come.
            KeyboardInterrupt: it was interrupted; `last_run` holds what had come, and the next run goes on from there.
        """
        wished = Wished(tools, stream, max_rounds, time_limit, policy, compaction, token_limit, cost_limit, answer)
        mode: Mode = "step" if step else "run_on"
        line = self._assembled(said_of(prompt), wished, mode)
        return self._pulled(line, said_of(prompt), wished, view=view, on_event=on_event)

    def start(self, prompt: str | Sequence[Any], **wishes: Any) -> Run:
        """Begin a run and come back at once; it goes on in a thread, and is shown in this cell whatever other cells do meanwhile.

        What goes wrong is in the run (`Run.error`) and in its view. The conversation goes on when the run has ended, so wait for
        `Run.reason` before the next one.

        Args:
            prompt: as in `run`.
            wishes: other options of `run`.

        Raises:
            SettingError: as `run`.
        """
        said, wished = said_of(prompt), Wished(**wishes)
        line = self._assembled(said, wished, "run_on")
        shown = notebook.opened(most_seconds=self.ask_limit)
        shown.begin(line.run, line.fold())  # here, so that it stands in this cell

        def pull() -> None:
            with suppress(AgentError):  # the run has said it
                self._pulled_in(shown, line, said, wished)

        threading.Thread(target=copy_context().run, args=(pull,), name="nb_agent run", daemon=True).start()
        return line.run

    def step(self, prompt: str | Sequence[Any], *, view: bool = True, **wishes: Any) -> Steps:
        """A run that stops before each request, before each call and after each result, and goes on when it is told.

        Unlike ``run(prompt, step=True)``, which asks while the cell runs, this comes back at each stop; the next cell goes on.

        Args:
            prompt: as in `run`.
            view: as in `run`.
            wishes: ``tools``, ``stream``, ``max_rounds``, ``policy`` and the other options of `run`.

        Raises:
            SettingError: as `run`.
        """
        said = said_of(prompt)
        wished = Wished(**wishes)
        return Steps(functools.partial(self._assembled, said, wished, "step"), self._remember, view=view)

    def branch(self, run: Run, number: int, *, calls: bool = False, step: bool = False, view: bool = True, **wishes: Any) -> Run:
        """Go back to round ``number`` of a run and go on from there: a new run that begins as that one did.

        What is said in ``answer`` can change the first thing that happens then (see `events`), and so can a person with ``step``.
        The conversation of this agent goes on from the branch.

        Args:
            run: whose rounds before this one are kept. It is not changed.
            number: of the round, from 1.
            calls: go back to where the calls of this round were made, instead of to its request.
            step: stop at each event, as in ``run(prompt, step=True)``.
            view: as in `run`.
            wishes: other options of `run`.

        Raises:
            SettingError: the run has no such round.
        """
        said, wished = run.prompt, Wished(**wishes)
        line = self._assembled(said, wished, "step" if step else "run_on", Branch(number, run, calls=calls))
        return self._pulled(line, said, wished, view=view)

    def _assembled(self, said: Message, wished: Wished, mode: Mode, left: Branch | None = None) -> Assembled:
        """A run of these wishes, ready to be pulled; with ``left``, one that goes on from a round of another run."""
        target, send = self._resolved()
        wishes = Wishes(
            toolbox=self._offered(wished.tools, said),
            settings=self.settings,
            stream=first(wished.stream, self.stream),
            limits=loop.Limits(first(wished.max_rounds, self.max_rounds), first(wished.time_limit, self.time_limit)),
            policy=self.policy if wished.policy is None else Policy.of(wished.policy),
            masks=self.masks.with_secrets(self._secrets()),
            compaction=self.compaction if wished.compaction is AS_SET else wished.compaction,
            memory=self._memory,
            tool_time_limit=self.tool_time_limit,
            max_parallel=self.max_parallel,
            token_limit=first(wished.token_limit, self.token_limit),
            cost_limit=first(wished.cost_limit, self.cost_limit),
            prices=self.prices,
            answer=wished.answer,
            idle=self._inbox.serve,
            mode=mode,
        )
        target = replace(target, window=self.window or target.window)
        history = self.history if left is None else left.run.history
        line = assembled(said, history, target, send, wishes, left)
        self.last_run = line.run
        return line

    def _pulled(
        self,
        line: Assembled,
        said: Message,
        wished: Wished,
        *,
        view: bool,
        on_event: Callable[[Event], None] | None = None,
    ) -> Run:
        """Pull a run to its end; where the person goes back, go on with the branch."""
        shown = notebook.opened(shown=view, most_seconds=self.ask_limit)
        shown.begin(line.run, line.fold())
        return self._pulled_in(shown, line, said, wished, on_event)

    def _pulled_in(
        self,
        shown: notebook.View,
        line: Assembled,
        said: Message,
        wished: Wished,
        on_event: Callable[[Event], None] | None = None,
    ) -> Run:
        try:
            while True:
                line.asking = shown.ask
                person = Person(line.stepper, shown.ask, self.ask)
                observers = [line.run.events.append, self._remember, *([on_event] if on_event else []), shown.observe]
                with self._inbox.open(line.ask):
                    loop.pull(line.running, *observers, answer=functools.partial(line.answers, person=person.answer))
                if line.stepper.back is None:
                    return line.run
                line = self._assembled(said, wished, "step", Branch(line.stepper.back, line.run))
                shown.begin(line.run, line.fold())
        finally:
            shown.close()

    def _secrets(self) -> tuple[str, ...]:
        """What no result may hold, whatever it looks like. The short key of a local server may be any word."""
        key = "" if self._key is None else self._key.reveal()
        return (*secrets_of(os.environ), *([key] if len(key) >= SHORTEST_KEY else []))

    def _remember(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self._history = tuple(message for message in event.history if message.role != "system" or message.text != self.system)
