"""The three-round file task in a folder of its own, against the mock model, with the run printed as text.

``make demo`` and ``nb-agent demo`` call `run`. It never overwrites what a person has put into a folder: one that holds anything
else is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from nb_agent.agent import Agent
from nb_agent.errors import AgentError, SettingError
from nb_agent.kit.files import file_tools
from nb_agent.lessons.checks import written_history
from nb_agent.run import Run

__all__ = ["FILES", "PROMPT", "SYSTEM", "make_folder", "run"]

SYSTEM: Final = "You work in one folder of files. Use the tools, and say in the end what you did."
PROMPT: Final = "Read config.yaml and list the Markdown files. Then write a summary to report.md, and tell me when it is done."
REPORT: Final = "report.md"

#: The files of the task. The names in two scripts are on purpose: file names are not all ASCII.
FILES: Final[dict[str, str]] = {
    "config.yaml": """\
# Settings of a small web shop, invented for this lesson
name: corner-shop
port: 8080
languages: [en, zh]
database:
  path: shop.db
  backup: daily
""",
    "README.md": "# Corner shop\n\nA small web shop, invented for this lesson.\n",
    "CHANGELOG.md": "# Changes\n\n- 1.1: prices in two currencies\n- 1.0: the first version\n",
    "docs/部署说明.md": "# 部署说明\n\n先复制 config.yaml 再启动服务\n",
}

#: Says that a folder was made here, whatever has become of its files.
_MARK: Final = ".nb-agent-demo"


def run(folder: Path) -> Run:
    """Make the folder, run the task in it, and print the run, the history and what became of the report.

    Raises:
        SettingError: the folder holds other things, or cannot be written.
        AgentError: the run ended without the report.
    """
    make_folder(folder)
    tools = file_tools(folder)[:3]  # to read, to search, to write: the task needs no more
    finished = Agent("mock", tools=tools, system=SYSTEM).run(PROMPT, view=False)
    _say(str(finished))
    _say("\nHistory\n" + written_history(finished.messages))
    report = folder / REPORT
    wrote = [result for result in finished.tool_results if result.name == "write_file" and not result.failed]
    if not wrote or not report.is_file():
        raise AgentError(f"the run ended ({finished.reason}) and {report} was not written; the text above says why")
    _say(f"\n{report} is there, {report.stat().st_size:,} bytes:\n\n{report.read_text(encoding='utf-8')}")
    return finished


def make_folder(folder: Path) -> None:
    """Make the folder of the task with its files; files that are there already stay as they are.

    Raises:
        SettingError: it is no folder, it holds something else than an earlier demo, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / _MARK
        if not mark.exists():
            if any(folder.iterdir()):
                raise SettingError(
                    f"{str(folder)!r} holds other files, and the demo would add its own; name another folder with --dir"
                )
            mark.write_text("This folder was made by nb-agent demo.\n", encoding="utf-8")
        for name, text in FILES.items():
            place = folder / name
            place.parent.mkdir(exist_ok=True)
            if not place.exists():
                place.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise SettingError(f"{str(folder)!r} cannot hold the demo: {error.strerror}; name another folder with --dir") from None


def _say(text: str) -> None:
    """Print, also where the terminal knows fewer characters than the text."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
