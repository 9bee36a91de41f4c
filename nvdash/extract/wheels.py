"""Gets the wheel of a release with pip and keeps its source files, or the wheel itself, in a scratch folder."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from nvdash.extract.source import ExtractError

KEPT = (".py", ".cuh", ".h", "METADATA")
LEFT_OUT = ("/data/cutlass/", "/data/csrc/", "/data/spdlog/", "/data/cccl/")
"""Third-party sources and launchers inside the FlashInfer wheel that no fact is read from."""
MAX_UNPACKED_BYTES = 2 * 2**30
TIMEOUT_S = 900


def fetch(distribution: str, release: str, scratch: Path, whole: bool = False) -> Path:
    """The unpacked sources of a release, or its wheel when `whole`; pip is asked once."""
    kept = scratch / f"{distribution}-{release}"
    work = scratch / f".fetch-{distribution}-{release}"
    if kept.exists():
        return _only_wheel(kept) if whole else kept
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        _download(distribution, release, work)
        if whole:
            work.rename(kept)
            return _only_wheel(kept)
        unpack(_only_wheel(work), work / "kept")
        (work / "kept").rename(kept)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return kept


def unpack(wheel: Path, folder: Path) -> None:
    """The sources of a wheel and its METADATA, which is put on top; names that leave the folder are refused."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            chosen = [
                item
                for item in archive.infolist()
                if item.filename.endswith(KEPT) and not any(part in item.filename for part in LEFT_OUT)
            ]
            if sum(item.file_size for item in chosen) > MAX_UNPACKED_BYTES:
                raise ExtractError(wheel.name, f"at most {MAX_UNPACKED_BYTES:,} bytes of sources", "more")
            for item in chosen:
                name = item.filename.partition(".dist-info/")[2] or item.filename
                target = (folder / name).resolve()
                if not target.is_relative_to(folder.resolve()):
                    raise ExtractError(wheel.name, "names inside the wheel's own folder", f"got {item.filename}")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(item))
    except (OSError, zipfile.BadZipFile) as exc:
        raise ExtractError(wheel.name, "a wheel", f"it cannot be read ({exc})", "fetch it again") from exc


def built_on(path: Path) -> str | None:
    """The day that a wheel's METADATA was written; None for an unpacked tree, which keeps no dates."""
    if path.suffix != ".whl":
        return None
    with zipfile.ZipFile(path) as archive:
        stamps = [item.date_time for item in archive.infolist() if item.filename.endswith(".dist-info/METADATA")]
    return "{:04}-{:02}-{:02}".format(*stamps[0]) if stamps else None


def _only_wheel(folder: Path) -> Path:
    found = sorted(folder.glob("*.whl"))
    if not found:
        raise ExtractError(
            folder.name, "a wheel on the package index", "pip found none", "--source takes an unpacked tree"
        )
    return found[0]


def _download(distribution: str, release: str, work: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--python-version",
        "3.12",
        "--dest",
        str(work),
        f"{distribution}=={release}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as exc:
        raise ExtractError(f"{distribution}=={release}", f"pip to answer within {TIMEOUT_S} s", "it did not") from exc
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ExtractError(
            f"{distribution}=={release}",
            "a wheel on the package index",
            errors[-1] if errors else "pip failed",
            "--source takes an unpacked tree",
        )
