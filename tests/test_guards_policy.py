"""Policies: tiers, rules, and servers that nobody vouches for."""

from dataclasses import dataclass

import pytest

from nb_agent.errors import SettingError
from nb_agent.guards.policy import Policy


@dataclass
class Thing:
    name: str = "delete_row"
    tier: str | None = None
    vouched: bool = True


def verdict(policy, arguments=None, **thing):
    return Policy.of(policy).ruling(Thing(**thing), arguments or {}).verdict


@pytest.mark.parametrize(("tier", "expected"), [("read", "go"), ("write", "go"), (None, "go"), ("danger", "ask")])
def test_without_a_word_only_danger_needs_leave(tier, expected):
    assert verdict(None, tier=tier) == expected


def test_each_tier_has_its_verdict_and_what_is_not_named_keeps_the_usual_one():
    policy = {"read": "ask", "danger": "refuse"}
    assert [verdict(policy, tier=tier) for tier in ("read", "write", "danger")] == ["ask", "go", "refuse"]


def test_a_tool_of_which_nobody_said_what_it_does_counts_as_one_that_writes():
    assert verdict("write=ask") == "ask"
    assert "nobody said" in Policy.of("write=ask").ruling(Thing(), {}).why


def test_rules_go_before_tiers_and_the_first_that_says_something_decides():
    policy = Policy.of({"delete_*": "refuse", "delete_draft": "go", "danger": "go"})
    assert policy.ruling(Thing("delete_draft", "danger"), {}).verdict == "refuse"
    assert policy.ruling(Thing("send", "danger"), {}).verdict == "go"


def test_a_policy_is_written_as_a_text_too():
    assert Policy.of("write=ask, delete_*=refuse danger=go") == Policy.of({"write": "ask", "delete_*": "refuse", "danger": "go"})


def test_a_function_rules_by_the_arguments():
    def large(name, arguments):
        return "ask" if arguments.get("amount", 0) > 100 else None

    policy = Policy.of([large])
    assert [policy.ruling(Thing("pay", "write"), {"amount": amount}).verdict for amount in (5, 500)] == ["go", "ask"]
    assert policy.ruling(Thing("pay"), {"amount": 500}).why == "rule large"


@pytest.mark.parametrize("broken", [lambda name, arguments: arguments["absent"], lambda name, arguments: "perhaps"])
def test_a_rule_that_fails_lets_nothing_through(broken):
    ruling = Policy.of([broken]).ruling(Thing("get", "read"), {})
    assert (ruling.verdict, "a rule failed" in ruling.why) == ("refuse", True)


@pytest.mark.parametrize(("tier", "expected"), [("read", "ask"), ("write", "ask"), (None, "ask"), ("danger", "ask")])
def test_the_word_of_a_stranger_is_never_worth_more_than_a_question(tier, expected):
    assert verdict(None, tier=tier, vouched=False) == expected
    assert verdict("danger=refuse", tier="danger", vouched=False) == "refuse"


def test_a_rule_of_the_person_can_let_a_strangers_tool_go():
    assert verdict({"sales__*": "go"}, name="sales__query", vouched=False) == "go"


@pytest.mark.parametrize(
    ("given", "named"), [({"write": "maybe"}, "write='maybe'"), ("write", "'write' is no rule"), ("a=b", "a='b'")]
)
def test_a_verdict_that_is_none_is_named(given, named):
    with pytest.raises(SettingError, match=named):
        Policy.of(given)
