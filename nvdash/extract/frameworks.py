"""The frameworks whose released source is read, each with how to read a tree and how to finish a series of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nvdash.extract import flashinfer, flashinfer_cubin, sglang
from nvdash.extract.findings import Fact
from nvdash.extract.generate import files_of
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


def _read_cubins(wheel: Path, release: str) -> Reading:
    return flashinfer_cubin.read_release(flashinfer_cubin.names_in(wheel), release)


FRAMEWORKS = {
    item.name: item for item in (
        Framework("sglang", "sglang", sglang.read_release, sglang.finish),
        Framework("flashinfer", "flashinfer-python", flashinfer.read_release, flashinfer.finish),
        Framework("flashinfer-cubin", "flashinfer-cubin", _read_cubins, lambda series: series),
    )
}


def read_all(framework: Framework, sources: Mapping[str, Path], workers: int = 2) -> list[Reading]:
    """The reading of every tree, in the order given."""
    if len(sources) == 1:
        return [framework.read(root, release) for release, root in sources.items()]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(framework.read, sources.values(), sources.keys()))


def generated(framework: Framework, readings: Sequence[Reading], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The text of every generated file of a framework, from all its releases together."""
    return files_of(finished(framework, readings), rows, [reading.release for reading in readings], framework.name)


def finished(framework: Framework, readings: Sequence[Reading]) -> list[Reading]:
    """The readings with the facts that only neighbouring releases decide."""
    series = {reading.release: [Fact(**row) for row in reading.facts] for reading in readings}
    said = framework.finish(series)
    return [replace(reading, facts=[fact.as_row() for fact in said[reading.release]]) for reading in readings]
