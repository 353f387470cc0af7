"""What a callable says about itself, whatever kind it is: name, docstring, signature, the names around it, whether it is a method.

Functions, partials, methods, classes, callable objects and what decorators make of them all answer differently; `schema` need not
know. Nothing here knows pydantic or a model.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, Final

from nb_agent.errors import ToolDefinitionError
from nb_agent.tools.annotations import Names

__all__ = ["docstrings_of", "is_in_class", "name_of", "names_of", "signature_of", "starts_with_self"]

_ARGS, _KWARGS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
_ANYTHING: Final = [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]


def name_of(function: Any) -> str:
    """Its own name; that of the wrapped function for a partial, and of its class for an object.

    >>> name_of(functools.partial(print, end=""))
    'print'
    """
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def docstrings_of(function: Any) -> list[str]:
    """Its docstrings, the one that says most about the call first."""
    if isinstance(function, functools.partial):
        return docstrings_of(function.func)
    if isinstance(function, type):
        made = f"{function.__name__}("  # the docstring that dataclasses write: Point(x: int, y: int)
        found = [function.__doc__, getattr(vars(function)["__init__"], "__doc__", None) if "__init__" in vars(function) else None]
        return [text for text in found if text and not text.startswith(made)]
    if hasattr(function, "__name__"):
        return [inspect.getdoc(function) or ""]
    return [text for text in (type(function).__call__.__doc__, type(function).__doc__) if text]


def signature_of(function: Any, owner: str) -> inspect.Signature:
    """Its parameters without those that are bound already: what a partial holds is settled, and often a secret.

    Raises:
        ToolDefinitionError: Python does not know them, as with some functions written in C, or a decorator hides them.
    """
    try:
        signature = _signature(function)
    except (ValueError, TypeError, NameError) as error:
        raise ToolDefinitionError(
            f"{owner}: its parameters cannot be read ({error}); write a function with annotations that calls it"
        ) from error
    if lost := _lost(function, signature):
        raise ToolDefinitionError(
            f"{owner}: a decorator hides the parameters of {lost.__qualname__}, which it was put around; write "
            f"@functools.wraps(…) above the inner function of the decorator"
        )
    settled = function.keywords if isinstance(function, functools.partial) else {}
    if not settled:
        return signature
    return signature.replace(parameters=[entry for name, entry in signature.parameters.items() if name not in settled])


def _signature(function: Any) -> inspect.Signature:
    """What it takes, which is not what it is put around where a decorator gives some of the arguments itself."""
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    outer = inspect.unwrap(plain, stop=_settles) if hasattr(plain, "__wrapped__") else plain
    if not (_settles(outer) and hasattr(outer, "__wrapped__")):
        return inspect.signature(function)
    if plain is not function:
        outer = types.MethodType(outer, function.__self__)
    return inspect.signature(outer, follow_wrapped=False)


def _settles(function: Any) -> bool:
    """Whether its own parameters are all that can be given, since it passes nothing on that it does not name."""
    code = getattr(function, "__code__", None)
    return code is not None and not code.co_flags & (_ARGS | _KWARGS) and not hasattr(function, "__signature__")


def _lost(function: Any, signature: inspect.Signature) -> Any:
    """What is behind a decorator that takes anything and does not say what it is put around."""
    if [entry.kind for entry in signature.parameters.values()] != _ANYTHING:
        return None
    around = [held for held in _closure(function).values() if isinstance(held, types.FunctionType)]
    return next((held for held in around if held.__code__.co_argcount or held.__code__.co_kwonlyargcount), None)


def names_of(function: Any) -> Names:
    """Where the annotations of its parameters are looked up."""
    written = _written(function)
    scope = getattr(written, "__globals__", None)
    if scope is None:
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        scope = vars(module) if module else {}
    return Names(scope, _closure(written), lambda: _around(scope))


def is_in_class(function: Any) -> bool:
    """Whether it was written in the body of a class, and so may become a method."""
    if not isinstance(function, types.FunctionType):
        return False
    outside = function.__qualname__.rpartition(".")[0]
    return bool(outside) and not outside.endswith("<locals>")


def starts_with_self(signature: inspect.Signature) -> bool:
    """Whether the first parameter has one of the names that are kept for what a method belongs to."""
    return next(iter(signature.parameters), None) in {"self", "cls"}


def _written(function: Any) -> Callable[..., Any]:
    """The function that somebody wrote, inside all that was put around it."""
    if isinstance(function, functools.partial):
        return _written(function.func)
    if isinstance(function, types.MethodType):
        return _written(function.__func__)
    if hasattr(function, "__wrapped__"):
        inner = inspect.unwrap(function, stop=_settles)
        return inner if inner is function else _written(inner)
    if isinstance(function, type):
        return function.__init__  # type: ignore[misc,no-any-return]  # only its globals are read
    if not hasattr(function, "__globals__") and hasattr(type(function).__call__, "__globals__"):
        return _written(type(function).__call__)
    return function  # type: ignore[no-any-return]


def _closure(function: Any) -> dict[str, Any]:
    """What it knows beside its globals: names of outer functions, and its own type parameters, ``def f[T](x: T)``."""
    names = {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())}
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for name, cell in zip(code.co_freevars, cells, strict=True) if code and cells else ():
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return names


def _around(scope: dict[str, Any]) -> dict[str, Any]:
    """The local names of the functions of the same module that are running now: classes are often made in one."""
    frames = []
    frame: types.FrameType | None = sys._getframe()  # noqa: SLF001  there is no public way to the callers' names
    while frame is not None:
        if frame.f_globals is scope and frame.f_locals is not scope:
            frames.append(frame.f_locals)
        frame = frame.f_back
    return {name: value for names in reversed(frames) for name, value in names.items()}
