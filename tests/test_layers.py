"""The shape of the package: imports point down, and nothing heavy is imported before it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "nb_agent"

#: From the bottom up: a module may import from its own row and from the rows before it.
LAYERS = [
    ["errors", "growing", "values"],
    ["usage", "pricing"],
    ["messages"],
    ["events", "deltas", "vocabulary", "joining", "guards"],
    ["history", "turns", "tokens", "adapters", "windows", "compaction", "nodes"],
    ["endings", "resuming", "loop", "exchange", "ruling", "sampling"],
    ["background", "listening"],
    ["transport", "retrying", "network", "sockets", "rechunking", "recording", "tools"],
    ["mock", "mcp", "kit", "by_hand"],
    ["providers"],
    ["views"],
    ["run", "contents", "answering", "settings", "stepping", "budgeting"],
    ["assembly", "wishes"],
    ["steps"],
    ["agent"],
    ["comparison", "clinic", "advising"],
    ["options", "step_words", "mcp_words"],
    ["magic", "lessons"],
    ["cli"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


def imported(path):
    """The parts of nb_agent that a module imports at any depth of its code, type hints aside."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "nb_agent":
            rest = node.module.split(".")[1:]
            yield from ([".".join(rest)] if rest else [alias.name for alias in node.names if alias.name in RANK])
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("nb_agent.") for alias in node.names if alias.name.startswith("nb_agent."))


def test_every_module_has_its_place():
    assert {name.split(".")[0] for name, _ in modules() if name != "__init__"} == set(RANK)


@pytest.mark.parametrize(("name", "path"), [(name, path) for name, path in modules() if name != "__init__"])
def test_imports_point_down(name, path):
    up = [other for other in imported(path) if RANK[other.split(".")[0]] > RANK[name.split(".")[0]]]
    assert up == []


HEAVY = [
    "mcp",
    "pandas",
    "matplotlib",
    "tiktoken",
    "anywidget",
    "ipywidgets",
    "openai",
    "anthropic",
    "google.genai",
    "uvicorn",
    "starlette",
]


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import nb_agent", [*HEAVY, "httpx", "pydantic", "IPython", "jsonschema", "asyncio"]),
        ("import nb_agent; from nb_agent import Agent, tool; Agent()", [*HEAVY, "httpx"]),
        (
            "from IPython.core.interactiveshell import InteractiveShell as S; S.instance().run_line_magic('load_ext', 'nb_agent')",
            [*HEAVY, "httpx", "pydantic"],
        ),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code, absent):
    probe = f"{code}\nimport sys; print(*[name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
