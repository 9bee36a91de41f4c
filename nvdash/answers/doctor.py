"""What this installation has, and where: paths, locks, matrix, torch, GPU, interpreters."""

import os
import platform
import shutil
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nvdash.answers.envelope import envelope
from nvdash.errors import NvdashError
from nvdash.readers.matrix import Matrix, framework_names

LIBRARIES = ("streamlit", "duckdb", "altair", "click", "torch")
INTERPRETERS = ("NVDASH_PYTHON_VLLM", "NVDASH_PYTHON_SGLANG", "NVDASH_PYTHON_FLASHINFER")


def doctor(today: date | None = None) -> dict[str, Any]:
    """Everything a person would be asked for in a bug report; unknown stays null."""
    return envelope(
        "doctor",
        {},
        python={"version": platform.python_version(), "executable": sys.executable},
        libraries={name: installed(name) for name in LIBRARIES},
        store=store_state(),
        matrix=[newest(name, today or date.today()) for name in framework_names()],
        gpus=gpus(),
        interpreters={name: interpreter(os.environ.get(name)) for name in INTERPRETERS},
        chromium=shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"),
        overlay=os.environ.get("NVDASH_MATRIX_PATH"),
    )


def installed(name: str) -> str | None:
    """The version of a library that is installed here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def store_state() -> dict[str, Any]:
    """Where the store is, whether it opens, and what stands in the way."""
    from nvdash.store.connection import store_path

    path = store_path()
    state: dict[str, Any] = {"path": str(path), "exists": path.exists(), "state": "not created yet", "error": None}
    if path.exists():
        from nvdash.store.runs import count

        try:
            state |= {"state": "ok", "runs": count()}
        except NvdashError as error:
            state |= {"state": "does not open", "error": error.as_dict()}
    return state


def newest(framework: str, today: date) -> dict[str, Any]:
    """The newest release that was read and its age in days, where its date is known."""
    release = Matrix().rules(framework).newest
    dated = date.fromisoformat(release.date) if release and release.date else None
    return {
        "framework": framework,
        "newest_release": release.name if release else None,
        "date": release.date if release else None,
        "age_days": (today - dated).days if dated else None,
    }


def gpus() -> dict[str, Any]:
    """The devices that the NVIDIA driver names; a missing driver is a reason, not zero GPUs."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return {"devices": [pynvml.nvmlDeviceGetName(handle) for handle in handles], "reason": None}
    except Exception as error:  # NVML raises many kinds; each of them means that we cannot tell
        return {"devices": None, "reason": f"{type(error).__name__}: {error}"}


def interpreter(path: str | None) -> dict[str, Any]:
    """An engine's interpreter, and whether it can be started."""
    if path is None:
        return {"path": None, "state": "not set"}
    return {"path": path, "state": "ok" if os.access(Path(path), os.X_OK) else "cannot be executed"}
