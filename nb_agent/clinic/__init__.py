"""A clinic for tool definitions: `lint` says what a model would get wrong, `compare_definitions` measures what it does get wrong.

Rules are rows of a table (`rules.RULES`), each with its reason and its source. Nothing here changes a tool.
"""

from nb_agent.clinic.findings import Finding, Findings, lint
from nb_agent.clinic.rules import RULES, Rule
from nb_agent.clinic.trials import Comparison, Trial, compare_definitions

__all__ = ["RULES", "Comparison", "Finding", "Findings", "Rule", "Trial", "compare_definitions", "lint"]
