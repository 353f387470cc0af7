"""What the mock model answers: calls of the tools that a prompt asks for, then sentences from their results.

A function of the request alone: the same request gets the same answer. It works with any tools, since all it goes by is their
definitions. Unlike `scenarios` it follows no script. It invents nothing unless a call is demanded (``tool_choice``), or a
definition leaves it no choice (`inventing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from nb_agent.messages import Definition, Message
from nb_agent.mock import faults, scenarios
from nb_agent.mock.answers import ask_for, introduce, report
from nb_agent.mock.choosing import Pick, about, choose, makes, tells
from nb_agent.mock.filling import fill
from nb_agent.mock.inventing import guessed, mended
from nb_agent.mock.params import Param, of_schema, params
from nb_agent.mock.phrases import invented
from nb_agent.mock.plans import NOT_RUN, Ask, Call, Outcome, Plan, outcomes, turn_of
from nb_agent.mock.prompts import Prompt, read
from nb_agent.mock.supply import known, supply
from nb_agent.mock.words import merged
from nb_agent.values import JSON, dumps

__all__ = ["plan"]

_MOST_FAILURES: Final = 3  # calls that could not be run at all, in one turn
_FOLLOW_UP: Final = re.compile(
    r"^\s*(?:and|what about|how about|also|now|same|then)\b|^\s*(?:那|还有|再|换成)|[?？]?\s*呢\s*[?？]?\s*$",
    re.IGNORECASE,
)
_GO_ON: Final = re.compile(r"\b(?:go on|continue|carry on)\b|继续|接着", re.IGNORECASE)
_ASKED: Final = re.compile(r"^To call `[^`]+` I need |^要调用 `[^`]+`，我还需要 ")


@dataclass(frozen=True, slots=True)
class _Goal:
    """A tool that is to be called, with the calls that can be made now and what is still missing for more."""

    tool: Definition
    calls: tuple[Call, ...] = ()
    missing: tuple[Param, ...] = ()


def plan(ask: Ask) -> Plan:
    """The answer to a request; the rest of it, where the one before was cut off and it is asked to go on."""
    if begun := _begun(ask.messages):
        whole = plan(replace(ask, messages=ask.messages[:-2])).text
        return Plan(whole.removeprefix(begun) if whole.startswith(begun) else whole)
    turn = turn_of(ask.messages)
    done = outcomes(turn)
    prompt = faults.without_word(turn[0].text) if turn else ""
    tools = ask.tools if ask.choice != "none" else ()
    script = scenarios.find(prompt, tools, required=ask.choice == "required")
    answer = script.plan(prompt, tools, done) if script else _planned(ask, prompt, tools, done)
    calls = _new(answer.calls, done) if script else answer.calls
    if calls:
        return Plan(calls=calls if ask.parallel else calls[:1])
    if answer.text:
        return Plan(_formed(answer.text, ask.form, prompt))
    return Plan(_formed(report(done, prompt) if done else introduce(prompt, tools), ask.form, prompt))


def _begun(messages: tuple[Message, ...]) -> str:
    """The answer that was cut off, where the last message asks for its rest."""
    if len(messages) < 3 or messages[-1].role != "user" or messages[-2].role != "assistant":
        return ""
    return messages[-2].text if _GO_ON.search(messages[-1].text) and not messages[-2].tool_calls else ""


def _planned(ask: Ask, text: str, tools: tuple[Definition, ...], done: tuple[Outcome, ...]) -> Plan:
    forced = ask.choice == "required" and not done and bool(tools)
    prompt, goals = _goals(ask, text, tools, done, forced=forced)
    if not goals:
        return Plan(report(done, text) if done else introduce(text, tools))
    if sum(outcome.code in NOT_RUN for outcome in done) >= _MOST_FAILURES:
        return Plan(report(done, text))
    calls = _new([guessed(call, tools, text) for goal in goals for call in goal.calls], done) or mended(done, text)
    if not calls:
        calls = _new(_supplying(goals, prompt, tools, done), done)
    if not calls and forced:
        calls = (_demanded(goals[0], prompt),)
    return Plan(calls=calls) if calls else Plan(_closing(goals, done, text))


def _closing(goals: list[_Goal], done: tuple[Outcome, ...], prompt: str) -> str:
    """The results, and a question for what is missing unless a failure explains that it is."""
    failed = any(outcome.error is not None for outcome in done)
    questions = [ask_for(goal.tool, goal.missing, prompt) for goal in goals if goal.missing and not goal.calls and not failed]
    said = [report(done, prompt)] if done else []
    return "\n".join([*said, *questions]) or introduce(prompt, tuple(goal.tool for goal in goals))


# --------------------------------------------------------------------------------------------------------- what to call


def _goals(
    ask: Ask, text: str, tools: tuple[Definition, ...], done: tuple[Outcome, ...], *, forced: bool
) -> tuple[Prompt, list[_Goal]]:
    """The tools to call. A prompt that goes on from the turn before is read together with it."""
    prompt = read(text, tools)
    picks = choose(prompt, tools, least=int(forced))
    before = ask.messages[: len(ask.messages) - len(turn_of(ask.messages))]
    if before and (not picks or forced):
        last = turn_of(before)
        if _ASKED.search(last[-1].text):
            prompt = read(f"{last[0].text}\n{text}", tools)
            picks = choose(prompt, tools)
        elif not forced and (goals := _again(last, prompt, tools)):
            return prompt, goals
    said = known(done)  # half is enough: an "email address" stands under the key "email"
    picks = [pick for pick in picks if not (pick.filled.missing and pick.told and 2 * len(pick.told & said) >= len(pick.told))]
    return prompt, [_goal(pick, picks, prompt, done) for pick in picks]


def _again(last: tuple[Message, ...], prompt: Prompt, tools: tuple[Definition, ...]) -> list[_Goal]:
    """The calls of the turn before with what the prompt gives in place of their arguments: "And in London?"."""
    if not _FOLLOW_UP.search(prompt.text):
        return []
    goals: list[_Goal] = []
    for outcome in outcomes(last):
        tool = next((tool for tool in tools if tool.name == outcome.call.name), None)
        if tool is not None and all(goal.tool is not tool for goal in goals):
            rows = [row for row in fill(tool, prompt, about=about(tool)).rows if row]
            if rows:
                goals.append(_Goal(tool, tuple(Call(tool.name, {**outcome.call.arguments, **row}) for row in rows)))
    return goals


def _goal(pick: Pick, picks: list[Pick], prompt: Prompt, done: tuple[Outcome, ...]) -> _Goal:
    """A pick with its missing arguments from the results so far, or else from the words around them."""
    others = [other for other in picks if other is not pick]
    filled = pick.filled
    values = {param.name: supply(param, done) for param in filled.missing}
    waiting = {param.name for param in filled.missing if "body" in param.likes and not tells(pick.tool) and (others or done)}
    ready = done and all(any(o.call.name == other.tool.name for o in done) for other in others)
    if ready:
        values |= {name: [_written(done, prompt.text)] for name in waiting}
    if any(not found for name, found in values.items() if name not in waiting):
        guess = fill(pick.tool, prompt, about=merged(about(other.tool) for other in picks))
        for param in filled.missing:
            if not values[param.name] and param.name not in waiting and param.name in guess.rows[0]:
                values[param.name] = list({dumps(row[param.name]): row[param.name] for row in guess.rows}.values())
    missing = tuple(param for param in filled.missing if not values[param.name])
    if missing:
        return _Goal(pick.tool, (), missing)
    supplied = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    rows = [_ordered(pick.tool, {**row, **more}) for row in filled.rows for more in supplied]
    return _Goal(pick.tool, tuple(Call(pick.tool.name, row) for row in rows))


def _ordered(tool: Definition, row: JSON) -> JSON:
    return {param.name: row[param.name] for param in params(tool) if param.name in row}


def _written(done: tuple[Outcome, ...], prompt: str) -> str:
    """The results as a text that a tool can write or send; a single text as it is."""
    if len(done) == 1 and isinstance(done[0].value, str):
        return done[0].value
    return report(tuple(outcome for outcome in done if outcome.error is None) or done, prompt)


def _new(calls: Iterable[Call], done: tuple[Outcome, ...]) -> tuple[Call, ...]:
    """The calls that have no result in this turn.

    A result of the same tool with other arguments, as after somebody changed them, stands for one of its calls; one that could not
    be run at all does not.
    """
    fresh: list[Call] = []
    settled: dict[str, int] = {}
    wanted = list(calls)
    for outcome in done:
        if outcome.code not in NOT_RUN and not any(outcome.call.same(call) for call in wanted):
            settled[outcome.call.name] = settled.get(outcome.call.name, 0) + 1
    for call in wanted:
        if any(outcome.call.same(call) for outcome in done) or any(call.same(other) for other in fresh):
            continue
        if settled.get(call.name, 0) > 0:
            settled[call.name] -= 1
        else:
            fresh.append(call)
    return tuple(fresh)


# ------------------------------------------------------------------------------------------------------ what is missing


def _supplying(goals: list[_Goal], prompt: Prompt, tools: tuple[Definition, ...], done: tuple[Outcome, ...]) -> list[Call]:
    """Calls of tools that nobody asked for by name but whose results may hold a missing argument."""
    for goal in goals:
        for param in goal.missing:
            if goal.calls or "body" in param.likes:
                continue
            calls = _producing(param, goal.tool, prompt, tools, done, depth=3)
            if calls:
                return calls
    return []


def _producing(
    param: Param, taker: Definition, prompt: Prompt, tools: tuple[Definition, ...], done: tuple[Outcome, ...], *, depth: int
) -> list[Call]:
    """The calls that lead to a value for ``param``: of a tool that returns it, or that leads to such a tool's arguments."""
    called = {outcome.call.name for outcome in done}
    makers = [tool for tool in tools if tool is not taker and tool.name not in called and makes(tool, param)]
    for tool in makers if depth else ():
        filled = fill(tool, prompt, about=about(tool), guess=False)
        if not filled.missing and (filled.used or prompt.places.keys() & about(tool)):
            return [Call(tool.name, row) for row in filled.rows]
        for lacking in filled.missing:
            if values := supply(lacking, done):
                return [Call(tool.name, _ordered(tool, {**filled.rows[0], lacking.name: value})) for value in values]
            if calls := _producing(lacking, tool, prompt, tools, done, depth=depth - 1):
                return calls
    return []


def _demanded(goal: _Goal, prompt: Prompt) -> Call:
    """A call that has to be made though the prompt does not give all of its arguments."""
    row = fill(goal.tool, prompt, about=about(goal.tool)).rows[0]
    lacking = {param.name: invented(param.schema) for param in params(goal.tool) if param.required and param.name not in row}
    return Call(goal.tool.name, _ordered(goal.tool, {**row, **lacking}))


def _formed(text: str, form: JSON | None, prompt: str) -> str:
    """The text in the form that was asked for: as it is, as ``{"answer": …}``, or filled into a JSON Schema."""
    if form is None:
        return text
    wanted = of_schema(form, form)
    if not wanted:
        return dumps({"answer": text})
    row = fill(Definition("answer", "", form), read(prompt)).rows[0]
    return dumps({param.name: row.get(param.name, _default(param, text)) for param in wanted})


def _default(param: Param, text: str) -> Any:
    return text if param.type == "string" and not param.schema.get("enum") else invented(param.schema)
