"""Gets the sdist of a release with pip and leaves its unpacked tree in a scratch folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from nvdash.extract.source import ExtractError

KEPT = ("vllm", "csrc", "cmake", "docs", "requirements", "CMakeLists.txt", "PKG-INFO")
TIMEOUT_S = 900


def fetch(release: str, scratch: Path) -> Path:
    """The unpacked tree of `vllm==release` below `scratch`; pip is asked once, then the tree is reused."""
    tree = scratch / f"vllm-{release}"
    if tree.is_dir():
        return tree
    work = scratch / f".fetch-{release}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        said = _download(release, work)
        found = sorted(path.parent for path in work.glob("**/PKG-INFO") if (path.parent / "vllm").is_dir())
        if not found:
            raise ExtractError(
                f"vllm=={release}",
                "a source distribution on the package index",
                _last_line(said),
                "releases without a sdist cannot be read; --source takes an unpacked tree",
            )
        kept = work / "kept"
        kept.mkdir()
        for name in KEPT:
            if (found[0] / name).exists():
                shutil.move(str(found[0] / name), str(kept / name))
        kept.rename(tree)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return tree


def _download(release: str, work: Path) -> str:
    """Run pip; it unpacks the sdist and then fails at its metadata, which would import torch."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        "vllm",
        "--no-build-isolation",
        "--no-clean",
        "--dest",
        str(work / "download"),
        f"vllm=={release}",
    ]
    environment = {**os.environ, "TMPDIR": str(work)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as exc:
        raise ExtractError(f"vllm=={release}", f"pip to answer within {TIMEOUT_S} s", "it did not") from exc
    return done.stderr


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.startswith("ERROR")]
    return lines[-1] if lines else "pip unpacked none"
