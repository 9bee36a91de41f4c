"""Reads source trees, two at a time, and writes the generated part of the matrix in one go."""

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from nvdash.extract.compact import statements
from nvdash.extract.emit import facts_text, rows_text, stale, write
from nvdash.extract.read import read_release
from nvdash.extract.statements import Reading

WORKERS = 2


def read_all(sources: Mapping[str, Path], workers: int = WORKERS) -> list[Reading]:
    """The reading of every tree, in the order given; progress goes to stderr."""
    started = time.monotonic()
    if len(sources) == 1:
        readings = [_read(item) for item in sources.items()]
    else:
        with ProcessPoolExecutor(workers) as pool:
            readings = []
            for number, reading in enumerate(pool.map(_read, sources.items()), 1):
                readings.append(reading)
                _progress(reading, number, len(sources), started)
    return readings


def _read(item: tuple[str, Path]) -> Reading:
    release, root = item
    return read_release(root, release)


def _progress(reading: Reading, number: int, total: int, started: float) -> None:
    seconds = time.monotonic() - started
    print(
        f"{number}/{total} vllm {reading.release}: {len(reading.atoms)} atoms, {len(reading.facts)} facts, "
        f"{reading.undecided} undecided, {seconds:.0f} s",
        file=sys.stderr,
    )


def files_of(
    readings: Sequence[Reading], rows: Sequence[Mapping[str, Any]], facts: Iterable[str], framework: str = "vllm"
) -> dict[str, str]:
    """The text of every generated file by its name below the framework's folder."""
    order = [row["release"] for row in rows]
    by_release = {reading.release: reading for reading in readings}
    files = {f"{name}.yaml": rows_text(said) for name, said in statements(readings, order, framework).items()}
    files["releases.yaml"] = rows_text([_release_row(row, by_release.get(row["release"])) for row in rows])
    for release in facts:
        name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in release)
        files[f"facts/{name}.yaml"] = facts_text(release, by_release[release].facts)
    return files


def _release_row(row: Mapping[str, Any], reading: Reading | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"release": row["release"], "date": row.get("date"), "source": row.get("source", "sdist")}
    if reading and reading.flashinfer and reading.flashinfer_place:
        file, line = reading.flashinfer_place
        shown |= {"flashinfer": reading.flashinfer, "flashinfer_evidence": {"file": file, "line": line}}
    return shown


def store(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files and remove statement files that this generation no longer has."""
    old = stale(folder, files) if folder.is_dir() else []
    written = write(folder, files)
    for path in old:
        path.unlink()
    return written
