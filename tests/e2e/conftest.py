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
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.visitor import Visitor

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


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard as a fresh clone shows it, with a store of its own; ended by pid at the end."""
    port, log = free_port(), tmp_path_factory.mktemp("server") / "server.log"
    environment = {**os.environ, "NVDASH_STORE": str(log.parent / "nvdash.duckdb"), "NVDASH_SEED": "on"}
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


@pytest.fixture
def visitor(browser: Browser, app_url: str, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """A visitor whose console must stay clean; parametrise indirectly with (size, theme)."""
    size, theme = getattr(request, "param", ("desktop", "light"))
    context = browser.new_context(viewport=SIZES[size], color_scheme=theme)
    context.set_default_timeout(25_000)
    found = Visitor(context.new_page(), app_url)
    yield found
    context.close()
    assert not found.errors, f"the console complained: {found.errors}"
