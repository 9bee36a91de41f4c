"""Where an installed vLLM disagrees with the matrix about what its selector accepts.

The installed engine's own `validate_configuration` is asked under its own interpreter; its answers
are compared with the statements of the same release, cell by cell.
"""

import csv
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvdash.errors import UsageError
from nvdash.readers.matrix import Matrix
from nvdash.support.axes import axis_values
from nvdash.support.matching import outcome
from nvdash.support.selection import SELECTOR_LAYERS
from nvdash.support.view import View, view
from nvdash.targets import Combination, HeadLayout

INTERPRETER_VARIABLE = "NVDASH_PYTHON_VLLM"
PROBE = Path(__file__).with_name("drift_probe.py")
TIMEOUT_S = 600
LATENT_SIZE = 576
"""The head size that only MLA backends are asked with."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One cell with the engine's answer and the matrix's."""

    backend: str
    arch: str
    kv_cache_dtype: str
    head_size: int
    engine_accepts: bool
    matrix: str
    """accepts, refuses or unknown."""
    engine_reasons: str
    statement: str | None

    def as_dict(self) -> dict[str, Any]:
        """As an answer shows it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Cells that both judge, those judged differently, and those the matrix has no rule for, by backend."""

    compared: int
    drifts: tuple[Drift, ...]
    unknown: Mapping[str, int]


def compare(matrix: Matrix, release: str, rows: Iterable[Mapping[str, str]]) -> Comparison:
    """Every cell that the engine could judge, against the statements of the release."""
    known = view(matrix.rules("vllm"), release)
    compared, drifts = 0, []
    unknown: Counter[str] = Counter()
    for row in rows:
        if row["valid"] not in ("0", "1"):
            continue
        judged = _judged(known, release, row)
        if judged.matrix == "unknown":
            unknown[judged.backend] += 1
            continue
        compared += 1
        if judged.matrix != ("accepts" if judged.engine_accepts else "refuses"):
            drifts.append(judged)
    return Comparison(compared, tuple(drifts), dict(sorted(unknown.items())))


def _judged(known: View, release: str, row: Mapping[str, str]) -> Drift:
    """One cell with both answers."""
    backend, dtype, size = row["backend"], row["kv_cache_dtype"], int(row["head_size"])
    arch = f"sm{row['compute_capability'].replace('.', '')}"
    heads = _heads(backend, size)
    item = Combination("vllm", release, arch, None, backend, dtype, heads, checkpoint_kv="none")
    result = outcome(known.matches(backend, axis_values(item)), "prefill")
    statement = result.statement
    said = _says(result.verdict, statement.layer if statement else None)
    by = statement.id if statement else None
    return Drift(backend, arch, dtype, size, row["valid"] == "1", said, row["reasons"], by)


def _heads(backend: str, size: int) -> HeadLayout:
    if size != LATENT_SIZE:
        return HeadLayout("gqa", 32, 8, size, size)
    return HeadLayout("mla_sparse" if "SPARSE" in backend else "mla", 128, 1, size, 512)


def _says(verdict: str, layer: str | None) -> str:
    """What the matrix says of the selector alone: a trap behind it was accepted by it."""
    if verdict == "refused":
        return "refuses" if layer in SELECTOR_LAYERS else "accepts"
    return "unknown" if verdict == "unknown" else "accepts"


def read_cells(path: Path) -> Iterator[dict[str, str]]:
    """The cells of a CSV file that `drift_probe` wrote."""
    needed = {"backend", "compute_capability", "kv_cache_dtype", "head_size", "valid", "reasons"}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if missing := needed - set(reader.fieldnames or ()):
                raise UsageError(str(path), "the columns that drift_probe writes", f"no {sorted(missing)[0]}")
            yield from reader
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(str(path), "a readable CSV file", str(error)) from error


def ask_installed(interpreter: str | None = None) -> tuple[str, list[dict[str, str]]]:
    """The release of the vLLM under an interpreter, and what its own check says of every cell."""
    python = interpreter or os.environ.get(INTERPRETER_VARIABLE)
    if not python:
        raise UsageError(
            INTERPRETER_VARIABLE, "the Python that has vLLM", "it is not set", "NVDASH_PYTHON_VLLM=/path/python"
        )
    try:
        ran = subprocess.run([python, "-I", str(PROBE)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(INTERPRETER_VARIABLE, "a Python that starts and has vLLM", str(error)) from error
    if ran.returncode:
        last = ran.stderr.strip().splitlines()[-1:] or ["no message"]
        raise UsageError(INTERPRETER_VARIABLE, "a Python whose vLLM can be imported", last[0])
    reader = csv.DictReader(ran.stdout.splitlines())
    release = (reader.fieldnames or [""])[-1]
    return release.partition("+")[0], list(reader)
