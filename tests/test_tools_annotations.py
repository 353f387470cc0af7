"""Annotations of every kind: the schema takes what the function takes, and refuses what it refuses."""

import contextlib
import copy
import json

import pytest
from annotation_samples import ANNOTATIONS, MORE_THAN_A_SCHEMA_SAYS
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from nb_agent.tools.schema import ArgumentsError, tool

drawn = settings(derandomize=True, max_examples=30, deadline=None, database=None)
leaves = st.sampled_from(
    [None, True, 0, -3, 2.5, "", "a", "3", "é b", "2031-02-03", [], {}, [1], ["a", "a"], {"a": 1}, {"x": None}]
)


def taking(name):
    """A tool with one parameter of the annotation, and its adapter."""

    def take(x):
        return x

    take.__annotations__["x"] = ANNOTATIONS[name][0]
    made = tool(take)
    return made, made._parameters[0].adapter


def inside(form):
    """Every place in a JSON value, as its container and key."""
    steps = list(form.items()) if isinstance(form, dict) else list(enumerate(form)) if isinstance(form, list) else []
    for key, value in steps:
        yield form, key
        yield from inside(value)


@st.composite
def near(draw, values, adapter):
    """JSON that is almost a value of the annotation: one place in it is replaced, taken out or put in."""
    form = {"x": copy.deepcopy(adapter.form(draw(values)))}
    holder, key = draw(st.sampled_from(list(inside(form))))
    change = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
    if change == "replace" or holder is form:
        holder[key] = draw(leaves)
    elif change == "remove":
        del holder[key]
    elif isinstance(holder, dict):
        holder[draw(st.sampled_from(["a", "1", "zz"]))] = draw(st.sampled_from(list(holder.values())) | leaves)
    else:
        holder.append(draw(leaves))
    return form


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_a_value_fits_the_schema_and_arrives_as_what_it_was(name):
    made, adapter = taking(name)
    schema = made.definition.parameters
    Draft202012Validator.check_schema(schema)
    judge = Draft202012Validator(schema)

    @drawn
    @given(ANNOTATIONS[name][1])
    def holds(value):
        form = json.loads(json.dumps({"x": adapter.form(value)}, allow_nan=False))
        assert judge.is_valid(form), form
        arrived = made.check(form)["x"]
        assert arrived == value
        assert isinstance(arrived, type(value)) or {type(arrived), type(value)} <= {int, float}

    holds()


@pytest.mark.parametrize("name", [name for name in ANNOTATIONS if name not in MORE_THAN_A_SCHEMA_SAYS])
def test_what_the_tool_refuses_the_schema_refuses_too(name):
    """The tool may take more: it reads "3" as 3, since models write that. It never takes less than it promised."""
    made, adapter = taking(name)
    judge = Draft202012Validator(made.definition.parameters, format_checker=Draft202012Validator.FORMAT_CHECKER)

    @drawn
    @given(near(ANNOTATIONS[name][1], adapter))
    def holds(form):
        if judge.is_valid(form):
            made.check(form)
        else:
            with contextlib.suppress(ArgumentsError):
                made.check(form)

    holds()


def test_there_are_at_least_sixty_annotations():
    assert len(ANNOTATIONS) >= 60
