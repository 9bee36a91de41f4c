"""The frameworks beside vLLM whose releases are read, each with how to read a wheel and how to finish a series."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nvdash.extract import flashinfer, flashinfer_cubin, sglang, wheels
from nvdash.extract.findings import Fact
from nvdash.extract.generate import files_of, store
from nvdash.extract.history import reopened
from nvdash.extract.known import is_version, merged_readings, version_key
from nvdash.extract.source import ExtractError
from nvdash.extract.statements import Reading

Series = dict[str, list[Fact]]


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework besides vLLM: its wheel and its reader."""

    name: str
    distribution: str
    """The name on PyPI."""
    read: Callable[[Path, str], Reading]
    """Reads an unpacked wheel; flashinfer-cubin is read from the wheel itself."""
    finish: Callable[[Series], Series]
    whole: bool = False
    """The wheel's list of files is read, not its contents."""


def _read_cubins(wheel: Path, release: str) -> Reading:
    return flashinfer_cubin.read_release(flashinfer_cubin.names_in(wheel), release)


FRAMEWORKS = {
    item.name: item
    for item in (
        Framework("sglang", "sglang", sglang.read_release, sglang.finish),
        Framework("flashinfer", "flashinfer-python", flashinfer.read_release, flashinfer.finish),
        Framework("flashinfer-cubin", "flashinfer-cubin", _read_cubins, dict, whole=True),
    )
}


def framework_of(requirements: Sequence[str], sources: Mapping[str, Path]) -> Framework | None:
    """The framework that requirements or trees are about; None for vLLM."""
    names = {requirement.partition("==")[0].strip() for requirement in requirements}
    for root in sources.values():
        held = [item.name for item in FRAMEWORKS.values() if (root / item.name).is_dir()]
        names |= {"flashinfer-cubin"} if root.suffix == ".whl" else set(held) or {"vllm"}
    if len(names) > 1:
        raise ExtractError("matrix extract", "releases of one framework at a time", f"got {', '.join(sorted(names))}")
    by_any_name = {name: item for item in FRAMEWORKS.values() for name in (item.name, item.distribution)}
    return by_any_name.get(next(iter(names), "vllm"))


def extract(
    framework: Framework, requirements: Sequence[str], sources: Mapping[str, Path], folder: Path, scratch: Path | None
) -> dict[str, Any]:
    """Read releases (fetched with pip, or unpacked trees by release) and write the framework's part of the matrix."""
    releases = [requirement.partition("==")[2].strip() for requirement in requirements]
    for release in (*releases, *sources):
        if not is_version(release):
            raise ExtractError(
                f"release {release or 'left out'}",
                f"a version such as {framework.name}==1.2.3",
                "a name that has no place in the release order",
                "write --source RELEASE=DIR",
            )
    kept = scratch or Path(tempfile.gettempdir()) / "nvdash-extract"
    trees = {name: wheels.fetch(framework.distribution, name, kept, framework.whole) for name in releases}
    trees |= sources
    rows = _rows(folder, trees)
    fresh = read_all(framework, {name: trees[name] for name in sorted(trees, key=version_key)})
    readings = finished(framework, merged_readings(folder, fresh, rows))
    written = store(folder, files_of(readings, rows, [reading.release for reading in readings], framework.name))
    return {
        "out": str(folder),
        "written": len(written),
        "releases": [
            {"release": r.release, "atoms": len(r.atoms), "facts": len(r.facts), "undecided": r.undecided}
            for r in fresh
        ],
    }


def _rows(folder: Path, trees: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The rows of the release file: those it has, and the releases that are read now."""
    from nvdash.readers.yaml_rows import read_rows

    path = folder / "releases.yaml"
    rows = {
        row["release"]: {key: row[key] for key in ("release", "date", "source") if key in row}
        for row in (read_rows(path) if path.is_file() else [])
    }
    for release, root in trees.items():
        known = rows.get(release, {}).get("date")
        rows[release] = {"release": release, "date": known or wheels.built_on(root), "source": "wheel"}
    return sorted(rows.values(), key=lambda row: version_key(row["release"]))


def read_all(framework: Framework, sources: Mapping[str, Path], workers: int = 2) -> list[Reading]:
    """The reading of every tree, in the order given."""
    if len(sources) == 1:
        return [framework.read(root, release) for release, root in sources.items()]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(framework.read, sources.values(), sources.keys()))


def finished(framework: Framework, readings: Sequence[Reading]) -> list[Reading]:
    """The readings with the facts that only neighbouring releases decide."""
    series = {reading.release: [Fact(**row) for row in reading.facts] for reading in readings}
    said = framework.finish(reopened(series))
    return [replace(reading, facts=[fact.as_row() for fact in said[reading.release]]) for reading in readings]
