"""The tool that calculates and never evaluates."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nb_agent import Agent
from nb_agent.errors import ToolError
from nb_agent.kit.calculator import calculate, calculator_tools


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 3 * 4", 14),
        ("(12.5 + 7) * 3", 58.5),
        ("0.1 + 0.2", 0.3),
        ("1 / 3 * 3", 1),
        ("10 / 4", 2.5),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 ** 100", 2**100),
        ("2 ** -2", 0.25),
        ("-2 ** 2", -4),
        ("2 ** 0.5", math.sqrt(2)),
        ("1 ** 99999999", 1),
        ("round(2.675, 2)", 2.68),
        ("round(1234, -2)", 1200),
        ("sqrt(16) + sqrt(2.25)", 5.5),
        ("max(1, 2.5, 2) - min([4, 2])", 0.5),
        ("sum(1, 2, 3) + mean([1, 2])", 7.5),
        ("sum()", 0),
        ("abs(-3) + floor(2.9) + ceil(2.1)", 8),
        ("sin(0) + cos(0) + log(1) + log10(1000)", 4),
        ("pi", math.pi),
        ("factorial(20)", math.factorial(20)),
        ("6 × 7 ÷ 2 − 1", 20),
        ("（３ + ４）", 7),
        ("1_000.50 * 2", 2001),
        ("1 +\n 2", 3),
        ("1e3 + 0x10", 1016),
        ("9" * 400, int("9" * 400)),
        (" + ".join(["1"] * 150), 150),
    ],
)
def test_an_expression_is_worked_out_exactly(expression, result):
    answer = calculate(expression)
    assert (answer["expression"], answer["result"]) == (expression, result)
    assert type(answer["result"]) is type(result)


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9",
        "-9**9**9",
        "2**-99999999",
        "(1/3)**1000000",
        "factorial(100000)",
        "factorial(factorial(20))",
        "1e999999999",
        "1e-999999999",
        "exp(100000)",
        "10**-400 / 1",
        "10**2900 + 0.5",
        "9999**700 * 9999**700 * 9999**700 * 9999**700",
        "1" + "*9" * 499 + "**9" * 2,
        "-" * 900 + "1",
        "1" + "+1" * 400,
        "1" * 2_000,
    ],
)
def test_what_would_take_long_ends_at_once_with_one_line(expression):
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"^it was not calculated: [^\n]{5,200}$") as refused:
        calculate(expression)
    assert refused.value.code == "too_large"
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 / 0", "it divides by zero"),
        ("0 ** -1", "it divides by zero"),
        ("7 % 0", "it divides by zero"),
        ("1,000 + 1", "a comma stands between two numbers; write thousands without one, and decimals with a point"),
        ("2 ^ 3", "^ is not for powers, write **"),
        ("sqroot(2)", "there is no 'sqroot'; did you mean sqrt?"),
        ("sqrt(-1)", "sqrt is not defined for -1"),
        ("log(0)", "log is not defined for 0"),
        ("(-8) ** (1/3)", "a root of a number below zero is not defined"),
        ("round(1, 2, 3)", "round does not take 3 numbers"),
        ("round(x=1)", "round takes its numbers without names"),
        ("max()", "max does not take 0 numbers"),
        ("True + 1", "True is no number that can be calculated with"),
        ("'a' * 9", "'a' is no number that can be calculated with"),
        ("1j", "1j is no number that can be calculated with"),
        ("~1", "there is no Invert"),
        ("sqrt 2", "'sqrt 2' is no expression (invalid syntax, at character 6)"),
    ],
)
def test_what_is_wrong_is_said(expression, text):
    with pytest.raises(ToolError) as refused:
        calculate(expression)
    assert (str(refused.value), refused.value.code) == (f"it was not calculated: {text}", "invalid_expression")


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('touch x')",
        "().__class__.__bases__[0]",
        "(1).real",
        "[1][0]",
        "lambda: 1",
        "(a := 1)",
        "[x for x in (1, 2)]",
        "open('x')",
        "f'{1}'",
        "max(*[1])",
        "1 if 1 else 2",
        "1; 2",
        "import os",
        "x\0",
        "\ud800",
        "(" * 400 + "1" + ")" * 400,
        "",
        "   ",
    ],
)
def test_nothing_but_arithmetic_is_done(expression):
    with pytest.raises(ToolError) as refused:
        calculate(expression)
    assert refused.value.code == "invalid_expression"


@given(st.text(alphabet="0123456789+-*/%().,e jabsqrtmxinpo[]'\n", max_size=40))
def test_any_text_gives_a_number_or_one_line(expression):
    try:
        outcome = calculate(expression)["result"]
    except ToolError as error:
        outcome = error.code
    assert outcome in {"invalid_expression", "too_large"} or isinstance(outcome, (int, float))


def test_the_mock_model_calculates():
    (made,) = calculator_tools()
    assert (made.tier, "e.g. (12.5 + 7)" in str(made.schema)) == ("read", True)
    run = Agent(tools=[made]).run("What is (12.5 + 7) * 3?", view=False)
    (result,) = run.tool_results
    assert '"result": 58.5' in result.text
