"""The pages that are written from the code say what the code does."""

import importlib.util
from pathlib import Path

import pytest

from nb_agent.agent import SETTINGS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_code_writes(tables):
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), "run make docs"


def test_every_setting_has_a_sample_and_a_row(tables):
    assert set(tables.SAMPLES) == SETTINGS
    assert len(tables.setting_rows()) == len(SETTINGS)


def test_every_command_of_the_readme_is_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("lab", "test", "demo"):
        assert f"make {target}" in readme
        assert f"\n{target}:" in makefile
    for name in (path.stem for path in (ROOT / "notebooks").glob("*.ipynb")):
        assert f"`{name}`" in readme
