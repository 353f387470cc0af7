"""What several test files need."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def cases():
    """The cases taken from public bug reports, by id: group letter and number."""
    lines = (HERE / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}
