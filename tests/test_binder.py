"""Binder: what repo2docker would read, and what it would build, done by hand in a fresh environment."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from lab_server import free_port, wait_for

ROOT = Path(__file__).parent.parent
#: What repo2docker puts into an image before the repository's own requirements (release 2026.4.0, Python 3.11).
BASE = ["jupyterlab==4.4.9", "notebook==7.4.7", "ipykernel==7.0.1", "ipywidgets==8.1.7"]


def ran(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The files of the repository as a host would clone them, with what is not committed yet."""
    target = tmp_path_factory.mktemp("clone")
    listed = ran("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\n")
    for name in listed:
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def test_repo2docker_reads_the_files_of_the_binder_folder(clone):
    shown = ran(sys.executable, "-m", "repo2docker", "--no-build", "--debug", ".", cwd=clone)
    assert "python-3.11" in shown or "py-3.11" in shown or "py-2d3-2e11" in shown
    assert 'pip install --no-cache-dir -r "binder/requirements.txt"' in shown
    assert "fonts-noto-cjk" in shown
    assert "RUN ./binder/postBuild" in shown
    assert "binder/start" in shown
    assert shown.index("COPY --chown=0:0 src/ ") < shown.index(
        "pip install --no-cache-dir -r"
    )  # the requirement is the folder itself


def test_what_binder_builds_opens_on_the_tour_and_runs_it(clone, tmp_path):
    ran(sys.executable, "-m", "venv", tmp_path / "env", cwd=clone)
    python = tmp_path / "env" / "bin" / "python"
    ran(python, "-m", "pip", "install", "--no-compile", "--quiet", *BASE, "-r", "binder/requirements.txt", cwd=clone)
    ran("bash", "binder/postBuild", python, cwd=clone)
    settings = tmp_path / "env" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert json.loads(settings.read_text(encoding="utf-8")) == json.loads(
        (ROOT / "binder" / "overrides.json").read_text(encoding="utf-8")
    )
    assert landing(python, clone).endswith("/lab/tree/notebooks/00_tour.ipynb")
    ran(python, "-m", "nb_agent.lessons.execute", "notebooks/00_tour.ipynb", cwd=clone)


def landing(python, root):
    """Where a browser that opens the server's bare address ends up."""
    port = free_port()
    command = [
        "bash",
        "binder/start",
        python.with_name("jupyter"),
        "notebook",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
    ]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", f"--ServerApp.root_dir={root}"]
    environment = os.environ | {"JUPYTER_CONFIG_DIR": str(root / ".config")}
    log = root / ".server.log"
    with log.open("w", encoding="utf-8") as file:
        server = subprocess.Popen(command, cwd=root, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status", server, log)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return answer.geturl()
    finally:
        server.terminate()
        server.wait(20)
