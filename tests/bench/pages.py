"""How long page scripts take over a store of many runs, and how soon a page stands in a browser, as JSON rows.

    python tests/bench/pages.py [--runs N] [--repetitions N]

A script is timed from its first line to its last, without what the browser does. A first render runs from the address
to the title on the page, in a fresh browser context, in turns with an empty app of five pages. Without Chromium it is
left out.
"""

import argparse
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE), str(HERE / "store")]

from bench_store import ingest  # noqa: E402
from timing import row  # noqa: E402

PAGES = ("explore/overview", "explore/matrix", "explore/memory", "explore/tradeoffs", "lab/smoke", "lab/submit")
EMPTY_APP = """
import streamlit as st

def page(number):
    def show():
        st.title(f"Page {number}")
    return st.Page(show, title=f"Page {number}", url_path=f"page{number}", default=number == 0)

st.navigation([page(number) for number in range(5)], position="top").run()
"""
FLAGS = ("--server.headless=true", "--server.address=127.0.0.1", "--browser.gatherUsageStats=false")


def script_rows(repetitions: int) -> list[dict[str, Any]]:
    """Every page with its default view: first in this process, then warm."""
    from streamlit.runtime.scriptrunner import script_runner
    from streamlit.testing.v1 import AppTest

    logging.disable(logging.WARNING)
    execute, taken = script_runner.exec_func_with_error_handling, []

    def timed(*arguments: Any, **named: Any) -> Any:
        start, spent = time.perf_counter(), time.thread_time()
        answer = execute(*arguments, **named)
        taken.append((time.perf_counter() - start, time.thread_time() - spent))
        return answer

    script_runner.exec_func_with_error_handling = timed
    rows = []
    for name in PAGES:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300).run()
        app.switch_page(f"pages/{name}.py")
        taken.clear()
        for _ in range(repetitions + 1):
            app.run()
        if app.exception:
            raise SystemExit(f"{name}: {app.exception[0].message}")
        (first, _), *warm = taken
        wall, cpu = (min(times) * 1000 for times in zip(*warm, strict=True))
        rows.append(row(f"page script {name}, warm", wall, "ms", "<= 50", cpu=cpu, first_ms=first * 1000))
    return rows


def render_rows(repetitions: int) -> list[dict[str, Any]]:
    """The default page against an empty app, on servers that have answered once."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        return [row("first render", None, "ms", "ratio <= 1.5", baseline="empty app of five pages", ratio=None)]
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        (Path(folder) / "empty.py").write_text(EMPTY_APP)
        with served(ROOT / "app.py", ROOT) as ours, served(Path(folder) / "empty.py", Path(folder)) as theirs:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            times: dict[str, list[float]] = {ours: [], theirs: []}
            for turn in range(repetitions + 1):
                for url, spent in times.items():
                    seconds = first_render_s(browser, url)
                    spent.extend([seconds] if turn else [])
            browser.close()
    own, empty = (min(spent) * 1000 for spent in times.values())
    more = {"ratio": own / empty, "baseline": "empty app of five pages", "baseline_ms": empty}
    return [row("first render", own, "ms", "ratio <= 1.5", **more)]


def first_render_s(browser: Any, url: str) -> float:
    """From the address to the page's title, nothing cached."""
    context = browser.new_context()
    page = context.new_page()
    start = time.perf_counter()
    page.goto(url)
    page.locator("h1").first.wait_for(timeout=120_000)
    spent = time.perf_counter() - start
    context.close()
    return spent


@contextmanager
def served(script: Path, folder: Path) -> Iterator[str]:
    """A Streamlit server on a free port of the loopback, ended with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *FLAGS, f"--server.port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}"
        await_health(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(20)


def await_health(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError):
            if urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).status == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"no server at {url}")


def rows(runs: int = 100_000, repetitions: int = 7) -> list[dict[str, Any]]:
    """Scripts and first render over a store of this many runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NVDASH_STORE"] = str(Path(folder) / "bench.duckdb")
        ingest(runs)
        return [*script_rows(repetitions), *render_rows(repetitions)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=7)
    options = parser.parse_args()
    print(json.dumps(rows(options.runs, options.repetitions), indent=1))
