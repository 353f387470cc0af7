"""The doors for a notebook: ``%%agent`` runs a prompt, ``%agent`` tells and changes how.

It finds the tools in the notebook and hands over to `Agent`; what stands on the lines of the magics is read in `options`. The
cell's text goes to the model exactly as it was typed: nothing in it is expanded. Loading the extension imports neither the agent
nor pydantic; the first cell that runs does.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from traitlets import Bool, Float, Int, TraitError, Unicode
from traitlets.config import Configurable

import nb_agent
from nb_agent import mcp_words, mock, options, step_words
from nb_agent.errors import SettingError
from nb_agent.guards.policy import Policy
from nb_agent.tools import pictures

if TYPE_CHECKING:
    from nb_agent.agent import Agent
    from nb_agent.run import Run
    from nb_agent.steps import Steps
    from nb_agent.tools.schema import Tool
    from nb_agent.tools.toolbox import Toolbox

__all__ = ["AgentMagics", "Interrupted", "NbAgent", "load", "unload"]

#: Options of a cell that are given on to the run as they are.
_WISHES: Final = ("stream", "max_rounds", "time_limit", "policy", "token_limit")


class Interrupted(KeyboardInterrupt):
    """A run was interrupted. Later cells of a Run All stop, and the notebook shows one line."""

    def _render_traceback_(self) -> list[str]:
        return ["Interrupted: the run ended here; the next %%agent cell goes on from what had come."]


class NbAgent(Configurable):
    """What holds for every ``%%agent`` cell until it is changed; an option of a cell goes before it."""

    model = Unicode("mock", help="the model: 'mock', 'openai:NAME', or a bare name together with base_url").tag(config=True)
    base_url = Unicode("", help="address of an OpenAI-compatible server").tag(config=True)
    system = Unicode("", help="the system prompt").tag(config=True)
    max_rounds = Int(10, min=1, help="requests after which a run stops").tag(config=True)
    time_limit = Float(30.0, min=0.1, help="seconds after which a run stops").tag(config=True)
    policy = Unicode("", help="what needs leave, such as 'write=ask, delete_*=refuse'").tag(config=True)
    stream = Bool(default_value=True, help="whether answers are asked for piece by piece").tag(config=True)


@magics_class
class AgentMagics(Magics):
    """``%%agent`` and ``%agent``, with one conversation for the notebook."""

    def __init__(self, shell: InteractiveShell, settings: NbAgent) -> None:
        super().__init__(shell)
        self.notebook = shell  # the same as self.shell, which may be None for the base class
        self.settings = settings
        self._system: str | None = None  # of this conversation, where a cell set it
        self._steps: Steps | None = None  # the run that was detached last

    @cached_property
    def agent(self) -> Agent:
        """The notebook's own agent, made when it is first asked for."""
        return nb_agent.Agent()

    def close(self) -> None:
        """Close the connections to MCP servers."""
        if "agent" in vars(self):
            self.agent.close()

    # ------------------------------------------------------------------------------------------------- %%agent

    @no_var_expand
    @cell_magic("agent")  # type: ignore[arg-type]  # IPython types the decorator for a name or a function, not for both
    def run_cell(self, line: str, cell: str) -> Run:
        """Run the text of the cell; the run object is the cell's result."""
        chosen = options.read(line)
        agent = self._named(chosen) if chosen.agent else self.agent
        tools = None if chosen.tools is None else self._named_tools(chosen.tools, agent)  # what may fail comes before what changes
        if not chosen.agent:
            self._set_up(chosen)
        if chosen.new:
            agent.reset()
        before = agent.last_run
        try:
            prompt = cell.removesuffix("\n")
            asked = [prompt, *map(pictures.image, chosen.image)] if chosen.image else prompt
            wishes = {name: getattr(chosen, name) for name in _WISHES}
            wishes |= {} if chosen.compaction is None else {"compaction": chosen.compaction}
            if chosen.detach:
                self._steps = agent.step(asked, tools=tools, **wishes)
                return self._steps.run
            return agent.run(asked, tools=tools, step=chosen.step, **wishes)
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            if chosen.out and agent.last_run is not before:
                self.notebook.user_ns[chosen.out] = agent.last_run

    def _set_up(self, chosen: argparse.Namespace) -> None:
        """Set the notebook's own agent as `NbAgent` and the cell say."""
        agent, settings = self.agent, self.settings
        if chosen.new:
            self._system = None
        if chosen.system is not None:
            self._system = chosen.system
        agent.model = chosen.model or settings.model
        agent.base_url = chosen.base_url or settings.base_url or None
        agent.wire = chosen.wire
        agent.system = (settings.system if self._system is None else self._system) or None
        agent.max_rounds, agent.time_limit, agent.stream = settings.max_rounds, settings.time_limit, settings.stream
        agent.policy = Policy.of(settings.policy)
        agent.tools = found_tools(self.notebook.user_ns)

    def _named(self, chosen: argparse.Namespace) -> Agent:
        agent = self.notebook.user_ns.get(chosen.agent)
        if not isinstance(agent, nb_agent.Agent):
            raise SettingError(f"%%agent: --agent {chosen.agent!r} is no Agent; make one with {chosen.agent} = Agent(…)")
        clash = next((name for name in ("model", "base_url", "wire", "system") if getattr(chosen, name) is not None), None)
        if clash:
            raise SettingError(f"%%agent: --{clash.replace('_', '-')} does not go with --agent; set {chosen.agent}.{clash} instead")
        return agent

    def _named_tools(self, names: str, agent: Agent) -> list[Any]:
        """The tools of ``--tools``: names of functions, of methods with their object, of lists, of MCP tools, or of MCP servers."""
        found: list[Any] = []
        for name in filter(None, re.split(r"[,\s]+", names.strip())):
            group = agent.groups.get(name) or [tool for tool in agent.hub.tools() if name in {tool.name, tool.connection.name}]
            found += group or self._functions(name)
        return found

    def _functions(self, name: str) -> list[Any]:
        """A function of the notebook, or those of a list."""
        first, *rest = name.split(".")
        try:
            thing = self.notebook.user_ns[first]
            for part in rest:
                thing = getattr(thing, part)
        except (KeyError, AttributeError):
            known = ", ".join(self._toolbox().names) or "none"
            raise SettingError(f"%%agent: no tool named {name!r} in this notebook; there are: {known}") from None
        found = list(thing) if isinstance(thing, (list, tuple)) else [thing]
        if not all(map(callable, found)):
            raise SettingError(f"%%agent: {name!r} is {type(thing).__name__}, not a function; --tools takes names of functions")
        return found

    # -------------------------------------------------------------------------------------------------- %agent

    @no_var_expand
    @line_magic("agent")  # type: ignore[arg-type]  # likewise
    def tell(self, line: str) -> None:
        """Carry out one of the words of ``%agent help``."""
        word, _, rest = line.strip().partition(" ")
        action = _WORDS.get(word or "status")
        if action is None and word not in step_words.WORDS:
            raise SettingError(f"%agent knows no {word!r}; it knows {', '.join([*_WORDS, *step_words.WORDS])}")
        print(action[0](self, rest.strip()) if action else self._go_on(word, rest.strip()))  # noqa: T201  a line magic answers by printing

    def status(self, _: str) -> str:
        """The model, the tools and the conversation of this notebook."""
        agent, settings = self.agent, self.settings
        lines = [
            f"model         {settings.model}{' (the local mock model)' if mock.is_known(settings.model) else ''}",
            f"server        {settings.base_url or 'as the model says'}",
            f"tools         {', '.join(tool.name for tool in self._toolbox()) or 'none; decorate a function with @tool'}",
            f"conversation  {len(agent.history)} messages",
            f"limits        {settings.max_rounds} rounds, {settings.time_limit:g} s",
        ]
        lines += [f"MCP server    {name}: {connection}" for name, connection in agent.hub.connections.items()]
        if agent.last_run is not None:
            lines.append(f"last run      {agent.last_run!r}")
        return "\n".join(lines)

    def list_tools(self, _: str) -> str:
        """The tools that the next cell offers to the model."""
        tools = list(self._toolbox())
        width = max((len(tool.name) for tool in tools), default=0)
        lines = [f"{tool.name:{width}}  {' '.join(tool.definition.description.split())}" for tool in tools]
        return "\n".join(lines) or "no tools; decorate a function with @tool, or connect a server with %agent mcp add"

    def _toolbox(self) -> Toolbox:
        self.agent.tools = found_tools(self.notebook.user_ns)
        return self.agent.toolbox()

    def reset(self, _: str) -> str:
        """Forget the conversation; settings, tools and MCP servers stay."""
        self.agent.reset()
        self._system = None
        return "the conversation is empty"

    def _go_on(self, word: str, rest: str) -> str:
        """Answer the run that waits."""
        if self._steps is None:
            raise SettingError("no run waits here; begin one with %%agent --detach")
        try:
            return step_words.WORDS[word](self._steps, rest)
        except KeyboardInterrupt:
            raise Interrupted from None

    def help(self, _: str) -> str:
        """This page."""
        told = {word: what for word, (_, what) in _WORDS.items()} | {word: f.__doc__ or "" for word, f in step_words.WORDS.items()}
        width = max(map(len, told))
        words = "\n".join(f"  %agent {word:{width}}  {what.splitlines()[0]}" for word, what in told.items())
        return f"{options.PARSER.format_help()}\n{words}\n\nWhat holds for all cells: %config NbAgent"

    def mcp(self, rest: str) -> str:
        """MCP servers: add, config, list, doctor, remove; alone it lists them."""
        word, *words = options.split(rest, "%agent mcp") or ["list"]
        if word not in mcp_words.WORDS:
            raise SettingError(f"%agent mcp knows no {word!r}; it knows {', '.join(mcp_words.WORDS)}")
        return mcp_words.WORDS[word](self.agent, words)


_Action = Callable[[AgentMagics, str], str]
_WORDS: Final[dict[str, tuple[_Action, str]]] = {
    word: (action, action.__doc__ or "")
    for word, action in {
        "status": AgentMagics.status,
        "tools": AgentMagics.list_tools,
        "mcp": AgentMagics.mcp,
        "reset": AgentMagics.reset,
        "help": AgentMagics.help,
    }.items()
}


_COMPLETE: Final = options.completer({"": (*_WORDS, *step_words.WORDS), "mcp": tuple(mcp_words.WORDS)})


def found_tools(namespace: dict[str, Any]) -> list[Tool]:
    """The tools that stand in variables of a notebook, each name once.

    Old outputs (``_``, ``_5``) are passed over, since they hold tools that were defined anew. A variable that is named like its
    tool goes before an alias.
    """
    schema = sys.modules.get("nb_agent.tools.schema")
    if schema is None:  # whoever made a tool has imported it
        return []
    tools: dict[str, Tool] = {}
    for variable, thing in namespace.items():
        if isinstance(thing, schema.Tool) and not variable.startswith("_") and (thing.name not in tools or variable == thing.name):
            tools[thing.name] = thing
    return list(tools.values())


# ---------------------------------------------------------------------------------------------------------- loading


def load(shell: InteractiveShell) -> None:
    """Add the magics, ``%config NbAgent`` and completion; a second time it changes nothing."""
    if _loaded(shell) is not None:
        return
    settings = _settings(shell)
    shell.configurables.append(settings)  # type: ignore[arg-type]  # typed for the shell alone; it holds every Configurable
    shell.register_magics(AgentMagics(shell, settings))
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(_COMPLETE)


def _settings(shell: InteractiveShell) -> NbAgent:
    try:
        return NbAgent(parent=shell)
    except TraitError:  # a value that %config refused stays in the shell's configuration and would come back here
        shell.config.pop("NbAgent", None)
        return NbAgent(parent=shell)


def unload(shell: InteractiveShell) -> None:
    """Take everything back that `load` added, and close the connections to MCP servers."""
    magics = _loaded(shell)
    if magics is None:
        return
    magics.close()
    for added in (magics.settings, magics):  # Magics adds itself when it is made
        shell.configurables.remove(added)  # type: ignore[arg-type]  # likewise
    for table in shell.magics_manager.magics.values():
        table.pop("agent", None)
    shell.magics_manager.registry.pop(AgentMagics.__name__, None)
    if shell.Completer is not None and _COMPLETE in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(_COMPLETE)


def _loaded(shell: InteractiveShell) -> AgentMagics | None:
    magics: AgentMagics | None = shell.magics_manager.registry.get(AgentMagics.__name__)
    return magics
