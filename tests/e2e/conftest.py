"""A real server and a real Chromium on loopback."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-default-apps"
).split()
SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A fresh dashboard with a store of its own; ended by pid at the end."""
    port, log = free_port(), tmp_path_factory.mktemp("server") / "server.log"
    environment = {**os.environ, "NVDASH_STORE": str(log.parent / "nvdash.duckdb")}
    command = [sys.executable, "-m", "nvdash.ui.serve", "--server.port", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/_stcore/health", server, log)
        yield url
    finally:
        server.terminate()
        server.wait(20)


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if urllib.request.urlopen(url, timeout=2).status == 200:
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield found
        found.close()


class Visitor:
    """One browser page and what its console complained about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.errors: list[str] = []
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: self.errors.append(str(e)))

    def open(self, path: str = "/") -> Page:
        """Go to a path and wait until the script has finished."""
        self.page.goto(self.url + path)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page shows its title and no script is running."""
        self.page.get_by_role("heading", level=1).first.wait_for(timeout=60_000)
        self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=60_000)


@pytest.fixture
def visitor(browser: Browser, app_url: str, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """A visitor; parametrise indirectly with (size, theme) for phones and the dark theme."""
    size, theme = getattr(request, "param", ("desktop", "light"))
    context = browser.new_context(viewport=SIZES[size], color_scheme=theme)
    yield Visitor(context.new_page(), app_url)
    context.close()
