"""What may be put out for a request, before it is sent: one of `Run.requests`, or one that was written by hand.

The rule itself is in `windows.budgets`; this finds the limits of a model by its name.
"""

from __future__ import annotations

from nb_agent import mock
from nb_agent.errors import SettingError
from nb_agent.messages import Request
from nb_agent.run import counted
from nb_agent.windows import Budget, budgeted, known, remembered

__all__ = ["budget", "window_of"]


def budget(
    request: Request,
    model: str | None = None,
    *,
    window: int | None = None,
    max_output: int | None = None,
    longest: int | None = None,
) -> Budget:
    """What the answer to a request may have, and which limit says so.

    Args:
        request: in any wire format.
        model: whose limits; without it the one that the request names.
        window: the model's context window in tokens, where the table of known models does not have it, or is wrong.
        max_output: the longest answer that is wanted, in tokens, in place of what the request says.
        longest: the longest answer that the model can write, likewise.

    Raises:
        SettingError: the model's window is not known; give it, or add the model with `nb_agent.windows.use`.
    """
    name = model or str(request.body.get("model") or "")
    found = known(name)
    window = window or window_of(name)
    if window is None:
        raise SettingError(
            f"the context window of {name!r} is not known; pass window=TOKENS, or let the server's refusal of a long request say it"
        )
    if window <= 0 or (max_output is not None and max_output <= 0):
        raise SettingError(f"window={window!r} and max_output={max_output!r} are tokens, and above 0")
    longest = longest or (found.output if found else None)
    return budgeted(counted(request, name), request.body, model=name, window=window, longest=longest, asked=max_output)


def window_of(model: str) -> int | None:
    """The context window of a model in tokens: of the mock model, of the table, or learned from a refusal."""
    if mock.is_known(model):
        return mock.window(model)
    found = known(model)
    return found.window if found else remembered(model)
