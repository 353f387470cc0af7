"""One tool that works out an expression. It is read with Python's grammar and walked; nothing is ever run with ``eval``.

All numbers are fractions, so that 0.1 + 0.2 is 0.3 and large whole numbers are exact. What would take long or fill the memory, such
as ``9**9**9``, is refused before it is tried.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from nb_agent.errors import ToolError
from nb_agent.tools.schema import Tool, tool
from nb_agent.values import JSON

__all__ = ["calculate", "calculator_tools"]

#: Characters of an expression, operations inside each other, and binary digits of a number: about 3,000 decimal ones.
MOST_LETTERS: Final = 1_000
MOST_DEPTH: Final = 200
MOST_BITS: Final = 10_000

#: Signs that people type -> those of the grammar.
_SIGNS: Final = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-"})


def calculator_tools() -> list[Tool]:
    """The tool ``calculate``."""
    return [calculate]


@tool(tier="read")
def calculate(expression: str) -> JSON:
    """Work out an arithmetic expression exactly. Use it for every calculation instead of doing sums in your head.

    Args:
        expression: numbers with + - * / // % ** and parentheses, pi, e, and the functions abs, round, floor, ceil, min, max, sum,
            mean, sqrt, exp, log, log10, log2, sin, cos, tan, factorial; e.g. (12.5 + 7) * 3 or round(19.99 * 1.19, 2)
    """
    return {"expression": expression, "result": _shown(_value(_parsed(expression), 0))}


def _refused(text: str, *, code: str = "invalid_expression") -> ToolError:
    return ToolError(f"it was not calculated: {text}", code=code)


def _parsed(expression: str) -> ast.expr:
    if len(expression) > MOST_LETTERS:
        raise _refused(f"an expression of {len(expression):,} characters is too long; calculate it in parts", code="too_large")
    text = " ".join(unicodedata.normalize("NFKC", expression).translate(_SIGNS).split())  # NFKC: full-width digits
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise _refused(f"{text!r} is no expression ({error.msg}, at character {error.offset})") from None
    except (ValueError, MemoryError, RecursionError):  # a null byte, half a surrogate pair; too many signs in a row
        raise _refused(f"{text[:50]!r} cannot be read") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            node.value = _exact(ast.get_source_segment(text, node) or "")  # type: ignore[assignment]  # in place of the float
    return tree


def _exact(digits: str) -> Fraction:
    number = Decimal(digits.replace("_", ""))
    if number and abs(number.adjusted()) > MOST_BITS // 4:  # before a fraction writes out all its zeros
        raise _refused(f"{digits} is too large or too small", code="too_large")
    return Fraction(number)


def _value(node: ast.expr, depth: int) -> Fraction:
    if depth > MOST_DEPTH:
        raise _refused(f"there are more than {MOST_DEPTH} operations inside each other", code="too_large")
    work_out = _NODES.get(type(node))
    if work_out is None:
        raise _refused(f"{type(node).__name__} is not arithmetic; use numbers, + - * / // % **, parentheses and the functions")
    try:
        value = Fraction(work_out(node, depth + 1))
    except ZeroDivisionError:
        raise _refused("it divides by zero") from None
    except OverflowError:
        raise _refused("a number gets too large", code="too_large") from None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise _refused(f"a number has more than {MOST_BITS * 3 // 10:,} digits", code="too_large")
    return value


def _constant(node: Any, _: int) -> Fraction:
    if type(node.value) not in {int, Fraction}:  # not bool, which is an int
        raise _refused(f"{node.value!r} is no number that can be calculated with")
    return Fraction(node.value)


def _name(node: Any, _: int) -> Fraction:
    if node.id not in _NAMES:
        raise _unknown(node.id)
    return _NAMES[node.id]


def _unknown(name: str) -> ToolError:
    names = [*_NAMES, *_FUNCTIONS]
    near = difflib.get_close_matches(name.lower(), names, n=1)
    return _refused(f"there is no {name!r}; " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"))


def _binary(node: Any, depth: int) -> Fraction:
    work_out = _OPERATORS.get(type(node.op))
    if work_out is None:
        raise _refused(
            "^ is not for powers, write **" if isinstance(node.op, ast.BitXor) else f"there is no {type(node.op).__name__}"
        )
    value: Fraction = work_out(_value(node.left, depth), _value(node.right, depth))
    return value


def _unary(node: Any, depth: int) -> Fraction:
    if not isinstance(node.op, (ast.UAdd, ast.USub)):
        raise _refused(f"there is no {type(node.op).__name__}")
    value = _value(node.operand, depth)
    return -value if isinstance(node.op, ast.USub) else value


def _tuple(*_: Any) -> Fraction:
    raise _refused("a comma stands between two numbers; write thousands without one, and decimals with a point")


def _call(node: Any, depth: int) -> Fraction:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in _FUNCTIONS:
        raise _unknown(name)
    if node.keywords:
        raise _refused(f"{name} takes its numbers without names")
    given = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)) else node.args
    values = [_value(part, depth) for part in given]
    try:
        value: Fraction = _FUNCTIONS[name](*values)
    except TypeError:
        raise _refused(f"{name} does not take {len(values)} numbers") from None
    except ValueError:
        raise _refused(f"{name} is not defined for {', '.join(str(_shown(value)) for value in values) or 'nothing'}") from None
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        if base < 0:
            raise _refused("a root of a number below zero is not defined")
        return _real(math.pow)(base, exponent)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if bits * abs(exponent) > MOST_BITS:
        raise _refused(f"a power would have more than {MOST_BITS * 3 // 10:,} digits; take smaller numbers", code="too_large")
    return Fraction(base**exponent.numerator)


def _root(value: Fraction) -> Fraction:
    whole = [math.isqrt(part) for part in (value.numerator, value.denominator)]  # a ValueError below zero
    exact = Fraction(*whole)
    return exact if exact**2 == value else _real(math.sqrt)(value)


def _real(function: Callable[..., float]) -> Callable[..., Fraction]:
    """A function of floats, taking and giving fractions: what it gives is as near as a float comes."""
    return lambda *values: Fraction(repr(function(*map(float, values))))


def _round(value: Fraction, places: Fraction = Fraction(0)) -> Fraction:
    if places.denominator != 1 or abs(places) > 100:
        raise ValueError
    return Fraction(round(value, int(places)))


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise ValueError
    if value > 1_000:
        raise OverflowError
    return Fraction(math.factorial(int(value)))


def _shown(value: Fraction) -> int | float:
    if value.denominator == 1:
        return value.numerator
    try:
        number = float(value)
    except OverflowError:
        number = 0.0
    if not number:
        raise _refused("the result is too large or too small to be written with a point; round it", code="too_large")
    return number


_NODES: Final[dict[type, Callable[[Any, int], Fraction]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Call: _call,
    ast.Tuple: _tuple,
}
_OPERATORS: Final[dict[type, Callable[[Fraction, Fraction], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_NAMES: Final = {"pi": Fraction(repr(math.pi)), "e": Fraction(repr(math.e))}
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": abs,
    "round": _round,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": lambda first, *others: min(first, *others, first),
    "max": lambda first, *others: max(first, *others, first),
    "sum": lambda *values: sum(values),
    "mean": lambda first, *others: (first + sum(others)) / (1 + len(others)),
    "sqrt": _root,
    "exp": _real(math.exp),
    "log": _real(math.log),
    "log10": _real(math.log10),
    "log2": _real(math.log2),
    "sin": _real(math.sin),
    "cos": _real(math.cos),
    "tan": _real(math.tan),
    "factorial": _factorial,
}
