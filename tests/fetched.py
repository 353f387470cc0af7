"""Programs that others wrote, fetched once for the tests that judge us by them: npm packages, and Python packages in venvs."""

import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

JS = Path(__file__).parent / "js"


def node_modules(place, wanted):
    """The folder of npm packages that a lock file names, fetched if need be; two test processes at a time do no harm."""
    there = JS / place / "node_modules"
    if not (there / wanted).exists():
        with tempfile.TemporaryDirectory(dir=JS / place, prefix="node_modules-") as made:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(JS / place / name, made)
            ran("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=made)
            with suppress(OSError):  # another process was quicker
                (Path(made) / "node_modules").rename(there)
    return there


def python_with(place, *requirements):
    """The Python of a venv that has these packages and nothing of ours."""
    home = JS / "mcp" / place
    done = home / "done.txt"
    if not done.exists() or done.read_text(encoding="utf-8") != "\n".join(requirements):
        shutil.rmtree(home, ignore_errors=True)
        ran(sys.executable, "-m", "venv", home)
        (home / ".gitignore").write_text("*\n", encoding="utf-8")
        ran(home / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements)
        done.write_text("\n".join(requirements), encoding="utf-8")
    return home / "bin" / "python"


def ran(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
