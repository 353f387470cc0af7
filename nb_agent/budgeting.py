"""What may be put out for a request, before it is sent: one of `Run.requests`, or one that was written by hand.

The rule itself is in `windows.budgets`; this finds the limits of a model by its name.
"""

from __future__ import annotations

from nb_agent import mock, windows
from nb_agent.errors import SettingError
from nb_agent.messages import Request
from nb_agent.run import counted
from nb_agent.windows import Budget, budgeted, known

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
        SettingError: a number of tokens is none, or the model's window is not known; give it, or add the model
            with `nb_agent.windows.use`.
    """
    for said, tokens in {"window": window, "max_output": max_output, "longest": longest}.items():
        if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0):
            raise SettingError(f"{said}={tokens!r} must be a whole number of tokens above 0")
    name = model or str(request.body.get("model") or "")
    found = known(name)
    window = window or window_of(name)
    if window is None:
        raise SettingError(
            f"the context window of {name!r} is not known; pass window=TOKENS, or let the server's refusal of a long request say it"
        )
    longest = longest or (found.output if found else None)
    return budgeted(counted(request, name), request.body, model=name, window=window, longest=longest, asked=max_output)


def window_of(model: str) -> int | None:
    """The context window of a model in tokens: of the mock model, of the table, or learned from a refusal."""
    return mock.window(model) if mock.is_known(model) else windows.window_of(model)
