"""JupyterLab in a real browser, for the tests that need one. Loopback only, no token, a fresh settings folder."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: What a page says on its own account, with or without our extension and outputs; the last three are of Notebook 7.
HARMLESS = re.compile(
    r"favicon|workspaces|settings/|api/contents.*404|ResizeObserver|Could not determine jupyterlab build status|"
    r"Window name candidate|reading 'schema'|'filebrowser:open-path' not registered"
)
SHOTS = Path(__file__).parent.parent / "screenshots"


@contextlib.contextmanager
def browser():
    """A headless Chromium of the system."""
    found = shutil.which(CHROMIUM)
    assert found, f"no {CHROMIUM!r} on PATH: apt-get install chromium, or set CHROMIUM"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        try:
            yield chromium
        finally:
            chromium.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def lab(root, *, theme="JupyterLab Light"):
    """A JupyterLab server on ``root``; its address. It ends with the block."""
    root = Path(root)
    settings = root / ".settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}', encoding="utf-8")
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.password="]
    command += ["--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={root}"]
    environment = os.environ | {"JUPYTERLAB_SETTINGS_DIR": str(root / ".settings"), "IPYTHONDIR": str(root / ".ipython")}
    with (root / ".server.log").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status", server, root / ".server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(10)


def wait_for(url, server, log):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            assert server.poll() is None, log.read_text(encoding="utf-8")[-2000:]
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.1)
    raise TimeoutError(log.read_text(encoding="utf-8")[-2000:])


class Notebook:
    """One notebook in one page of JupyterLab, or of Notebook 7, which the same server has at another address."""

    def __init__(self, context, base, name, host="lab/tree"):
        self.base, self.name, self.host = base, name, host
        self.page = context.new_page()
        self.errors = []
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.open()

    def open(self):
        self.page.goto(f"{self.base}/{self.host}/{self.name}?reset")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)

    def api(self, path, method="GET"):
        request = urllib.request.Request(self.base + path, method=method, data=b"{}" if method == "POST" else None)
        with urllib.request.urlopen(request, timeout=10) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def kernel(self):
        return next((session["kernel"] for session in self.api("/api/sessions") if session["path"] == self.name), None)

    def wait_until_idle(self, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            kernel = self.kernel()
            waiting = self.page.locator(".jp-InputPrompt", has_text="[*]").count()
            if kernel and kernel["execution_state"] == "idle" and not waiting:
                return
            self.page.wait_for_timeout(100)
        raise TimeoutError(f"the kernel of {self.name} is not idle: {self.kernel()}")

    def cell(self, number):
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def run(self, number, *, wait=True):
        self.cell(number).scroll_into_view_if_needed()
        self.cell(number).locator(".jp-InputArea-editor .cm-content").click()
        self.page.keyboard.press("Control+Enter")
        if wait:
            self.wait_until_idle()

    def run_all(self):
        self.menu("Run", "Run All Cells")

    def use_dark(self):
        self.menu("Settings", "Theme", "JupyterLab Dark")
        self.page.wait_for_selector("body[data-jp-theme-light='false']", state="attached")

    def menu(self, *names):
        """Choose an entry of the menu bar, down through its submenus."""
        self.page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{names[0]}$")).click()
        for name in names[1:]:
            self.page.locator(".lm-Menu-item:visible", has_text=re.compile(f"^{name}")).first.click()

    def interrupt(self):
        self.api(f"/api/kernels/{self.kernel()['id']}/interrupt", "POST")

    def save(self):
        """Save, and wait until it is on the disk."""
        with self.page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url):
            self.menu("File", "Save Notebook")

    def shot(self, name):
        SHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")

    def shut_down(self):
        kernel = self.kernel()
        if kernel:
            self.api(f"/api/kernels/{kernel['id']}", "DELETE")
