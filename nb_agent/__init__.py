"""Run a model's tool-calling loop in a notebook, and see every request, response, tool call and token.

``%load_ext nb_agent`` gives a notebook ``%%agent`` and ``%agent``; `Agent` and `tool` are the same for scripts. Importing the
package imports nothing else: each name brings what it needs when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nb_agent.advising import advise
    from nb_agent.agent import Agent
    from nb_agent.budgeting import budget
    from nb_agent.clinic import compare_definitions, lint
    from nb_agent.comparison import compare
    from nb_agent.contents import compare_contents
    from nb_agent.errors import AgentError, ToolError
    from nb_agent.guards.masking import Masks
    from nb_agent.guards.policy import Policy
    from nb_agent.guards.repeats import idempotency_key
    from nb_agent.nodes import xray
    from nb_agent.run import Run
    from nb_agent.tools.pictures import image
    from nb_agent.tools.schema import tool

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AgentError",
    "Masks",
    "Policy",
    "Run",
    "ToolError",
    "advise",
    "budget",
    "compare",
    "compare_contents",
    "compare_definitions",
    "idempotency_key",
    "image",
    "lint",
    "load_ipython_extension",
    "tool",
    "unload_ipython_extension",
    "xray",
]

_HOMES = {
    "Agent": "nb_agent.agent",
    "advise": "nb_agent.advising",
    "budget": "nb_agent.budgeting",
    "compare": "nb_agent.comparison",
    "compare_contents": "nb_agent.contents",
    "compare_definitions": "nb_agent.clinic",
    "idempotency_key": "nb_agent.guards.repeats",
    "image": "nb_agent.tools.pictures",
    "lint": "nb_agent.clinic",
    "AgentError": "nb_agent.errors",
    "Masks": "nb_agent.guards.masking",
    "Policy": "nb_agent.guards.policy",
    "Run": "nb_agent.run",
    "ToolError": "nb_agent.errors",
    "tool": "nb_agent.tools.schema",
    "xray": "nb_agent.nodes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nb_agent' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%load_ext nb_agent`` calls; a second time it changes nothing."""
    importlib.import_module("nb_agent.magic").load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%unload_ext nb_agent`` calls: the magics go, and the connections to MCP servers are closed."""
    importlib.import_module("nb_agent.magic").unload(shell)
