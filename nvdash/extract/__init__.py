"""What a framework's released source declares (a maintainer's tool).

`extract` reads source trees of vLLM without importing them and writes the generated part of the matrix.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MATRIX = Path(__file__).resolve().parents[2] / "matrix" / "vllm"


def extract(
    requirements: Sequence[str] = (),
    sources: Mapping[str, Path] | None = None,
    out: Path | None = None,
    scratch: Path | None = None,
) -> dict[str, Any]:
    """Read `vllm==X` requirements (fetched with pip) and unpacked trees by release, and write `out`.

    Releases that `out` already holds are kept: their runs are continued or ended by what is newly read. Returns
    what was read and written; raises `ExtractError` before anything is written.
    """
    from nvdash.extract import frameworks

    other = frameworks.framework_of(requirements, sources or {})
    if other is not None:
        return frameworks.extract(other, requirements, sources or {}, out or MATRIX.with_name(other.name), scratch)
    from nvdash.extract.generate import files_of, read_all, store
    from nvdash.extract.known import merged_readings, release_rows, wanted

    folder = out or MATRIX
    trees = wanted(requirements, sources or {}, scratch, shipped=folder.resolve() == MATRIX)
    rows = release_rows(folder, list(trees), shipped=folder.resolve() == MATRIX)
    fresh = read_all(trees)
    readings = merged_readings(folder, fresh, rows)
    written = store(folder, files_of(readings, rows, [reading.release for reading in fresh]))
    return {
        "out": str(folder),
        "written": len(written),
        "releases": [
            {"release": r.release, "atoms": len(r.atoms), "facts": len(r.facts), "undecided": r.undecided}
            for r in fresh
        ],
    }
