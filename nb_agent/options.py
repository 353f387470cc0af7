"""What can stand on the lines of ``%%agent`` and ``%agent``: read, and completed with Tab. It runs nothing; `magic` does."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from nb_agent import mock, providers
from nb_agent.adapters import WIRES
from nb_agent.errors import SettingError

__all__ = ["PARSER", "Parser", "completer", "read", "split"]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and never ends the kernel."""

    def error(self, message: str) -> NoReturn:
        """What argparse calls with what is wrong."""
        raise SettingError(f"{self.prog.replace('%%%%', '%%')}: {message}; see %agent help")


def _options() -> Parser:
    parser = Parser(prog="%%agent", add_help=False, allow_abbrev=False, usage="%%%%agent [options]\nwhat the model should do")
    add = parser.add_argument
    add("-m", "--model", help="'mock', 'openai:NAME' and the like, or a bare name with --base-url")
    add("--base-url", help="address of an OpenAI-compatible server")
    add("--wire", help="wire format, where it is not the server's usual one: %(choices)s", choices=list(WIRES), metavar="FORMAT")
    add("-t", "--tools", metavar="NAMES", help="only these tools, separated by commas; without it all tools of the notebook")
    add("-s", "--system", help="the system prompt of this conversation from here on")
    add("--new", action="store_true", help="begin a new conversation")
    add("--max-rounds", type=int, metavar="N", help="requests after which the run stops")
    add("--time-limit", type=float, metavar="SECONDS", help="seconds after which the run stops")
    add("--token-limit", type=int, metavar="N", help="tokens of all requests and answers, before which the run stops")
    add("--compaction", metavar="NAMES", help="what is tried where the window is full, such as stub_results,summarise; or off")
    add("--stream", action=argparse.BooleanOptionalAction, default=None, help="ask for the answer piece by piece, or whole")
    add("-p", "--policy", metavar="RULES", help="what needs leave in this cell, such as write=ask,delete_*=refuse")
    add(
        "-i",
        "--image",
        metavar="PATH",
        action="append",
        default=[],
        help="a picture for the model, a file or an address; may be repeated",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--step", action="store_true", help="stop before each request and call and after each result, and ask")
    how.add_argument("--detach", action="store_true", help="the same, but the cell ends at each stop; %%agent next goes on")
    add("-o", "--out", metavar="NAME", help="also put the run object into this variable")
    add("-a", "--agent", metavar="NAME", help="use the Agent in this variable, its model and its conversation")
    return parser


PARSER: Final = _options()


def read(line: str) -> argparse.Namespace:
    """The options of a ``%%agent`` line.

    Raises:
        SettingError: they are not right; one line says why.
    """
    options, rest = PARSER.parse_known_args(split(line, "%%agent"))
    if rest:
        what = f"no option named {rest[0]!r}" if rest[0].startswith("-") else f"{' '.join(rest)!r} is no option"
        raise SettingError(f"%%agent: {what}; the prompt goes into the lines below, and %agent help lists the options")
    for name in ("max_rounds", "time_limit", "token_limit"):
        number = getattr(options, name)
        if number is not None and number <= 0:
            raise SettingError(f"%%agent: --{name.replace('_', '-')} {number} must be above 0")
    if options.out is not None and not options.out.isidentifier():
        raise SettingError(f"%%agent: --out {options.out!r} is no variable name")
    return options


def split(line: str, door: str) -> list[str]:
    """The words of a line as a shell splits them.

    Raises:
        SettingError: a quote is not closed; ``door`` says in which magic.
    """
    try:
        return shlex.split(line)
    except ValueError as error:
        raise SettingError(f"{door}: {error} in {line!r}; write a quote inside the other kind of quotes") from None


def completer(words: Mapping[str, Iterable[str]]) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Completes options, models and words on the lines of the magics, and nothing in the text of a cell.

    Args:
        words: what may follow each word of ``%agent``; under the empty one, what may stand first.
    """

    @context_matcher(priority=200)  # type: ignore[untyped-decorator]  # IPython leaves it untyped
    def complete(context: CompletionContext) -> SimpleMatcherResult:
        line = context.line_with_cursor[: context.cursor_position]
        lead = re.match(r"\s*(%%?)agent\s", line)
        if lead is None or (lead[1] == "%%" and context.cursor_line != _first_line(context.full_text)):
            return {"completions": []}
        *before, fragment = re.split(r"\s+", line.lstrip())
        offered = words.get(" ".join(before[1:]), ()) if lead[1] == "%" else _after(before[-1])
        found = [SimpleCompletion(word, type="param") for word in offered if word.startswith(fragment)]
        return {"completions": found, "suppress": bool(found), "matched_fragment": fragment}

    return complete  # type: ignore[no-any-return]  # likewise


def _after(word: str) -> Iterable[str]:
    if word in {"-m", "--model"}:
        return (*mock.MODELS, *(f"{prefix}:" for prefix in providers.PROVIDERS))
    return [option for action in PARSER._actions for option in action.option_strings]  # noqa: SLF001  argparse has no public list


def _first_line(text: str) -> int:
    """The number of the first line that is not blank."""
    return next((number for number, line in enumerate(text.splitlines()) if line.strip()), 0)
