"""Writes the pictures of the README: `python docs/make_screenshots.py`.

The dashboard is started on loopback with a fresh, seeded store, so that a picture shows what a fresh clone shows.
"""

import http.client
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "screenshots"
LLAMA_70B = "model=meta-llama/Llama-3.1-70B-Instruct&gpu=h200-sxm&count=4&tp=4&weights=fp8&requests=32"
PAGES = {
    "overview": f"/?{LLAMA_70B}",
    "matrix": "/matrix?cell=sm120~nvfp4",
    "memory": f"/memory?{LLAMA_70B}",
    "tradeoffs": "/tradeoffs?tradeoffs_source=Published&published_scope=This GPU",
    "smoke": "/smoke?smoke_view=Last result",
    "submit": "/submit",
}
ON_A_PHONE = ("overview", "matrix")
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
COLOURS = 256
"""Enough for flat fills and smooth letters; a picture stays below a tenth of a megabyte."""


@contextmanager
def served() -> Iterator[str]:
    """The dashboard over a store of its own, ended by its process."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = {**os.environ, "NVDASH_STORE": f"{folder}/nvdash.duckdb", "NVDASH_SEED": "on"}
        command = [sys.executable, "-m", "nvdash.ui.serve", "--server.port", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        try:
            yield wait_for(port)
        finally:
            server.terminate()
            server.wait(20)


def wait_for(port: int, seconds: float = 90) -> str:
    """The address once it answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=2).request("GET", "/_stcore/health")
            return f"http://127.0.0.1:{port}"
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def settled(page: Page, url: str) -> None:
    """Open a page and wait for its title, its script and its charts."""
    page.goto(url)
    page.get_by_role("heading", level=1).first.wait_for(timeout=90_000)
    for _ in range(3):
        page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=90_000)
        page.wait_for_timeout(1_000)


def take(browser: Browser, url: str, file: Path, size: dict[str, int], theme: str) -> None:
    """One picture as a small PNG with a palette."""
    context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    settled(page, url)
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
    context.close()
    print(f"{file.relative_to(ROOT)} {file.stat().st_size // 1024} KiB")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for theme in ("light", "dark"):
            for name, path in PAGES.items():
                take(browser, url + path, OUT / f"{name}-{theme}.png", DESKTOP, theme)
                if name in ON_A_PHONE:
                    take(browser, url + path, OUT / f"{name}-phone-{theme}.png", PHONE, theme)
        browser.close()


if __name__ == "__main__":
    main()
