"""What the matrix already says: releases in order, and earlier readings rebuilt from the generated statements."""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nvdash.extract.emit import MARK
from nvdash.extract.fetch import fetch
from nvdash.extract.source import ExtractError
from nvdash.extract.statements import Atom, Evidence, Reading, frozen
from nvdash.readers.statement_lines import place_in

DATA = Path(__file__).with_name("releases.yaml")
VERSION = re.compile(r"\d+(\.\d+)+(\.post\d+)?")
PLACE_KEYS = ("id", "kind", "when", "since", "until", "needs", "evidence", "assumes")


def is_version(release: str) -> bool:
    """Whether a release name can be put in order among the others."""
    return VERSION.fullmatch(release) is not None


def version_key(release: str) -> tuple[int, ...]:
    """Numbers to sort by; 0.5.5.post3 follows 0.5.5."""
    return tuple(int(part) for part in re.findall(r"\d+", release))


def known_releases() -> list[dict[str, Any]]:
    """The rows of releases.yaml beside this module."""
    from nvdash.readers.yaml_rows import read_rows

    return [dict(row) for row in read_rows(DATA)]


def wanted(
    requirements: Iterable[str], sources: Mapping[str, Path], scratch: Path | None, shipped: bool
) -> dict[str, Path]:
    """The trees to read by release, in release order; requirements are fetched."""
    names = [_release_of(requirement) for requirement in requirements]
    for release in (*names, *sources):
        if shipped and not is_version(release):
            raise ExtractError(
                f"release {release}",
                "a version such as 0.33.0 in the shipped matrix",
                "a name that has no place in the release order",
                "write a fork or a nightly to an overlay: --out FOLDER, and name it in NVDASH_MATRIX_PATH",
            )
    trees = {name: fetch(name, scratch or Path(tempfile.gettempdir()) / "nvdash-extract") for name in names}
    trees |= sources
    return {release: trees[release] for release in sorted(trees, key=version_key)}


def _release_of(requirement: str) -> str:
    name, _, release = requirement.partition("==")
    if name.strip() != "vllm" or not release.strip():
        raise ExtractError(requirement, "a requirement such as vllm==0.33.0", "another one")
    return release.strip()


def release_rows(folder: Path, releases: Sequence[str], shipped: bool) -> list[dict[str, Any]]:
    """The rows of the release file that `folder` gets: those known, and the releases that are read now."""
    from nvdash.readers.yaml_rows import read_rows

    path = folder / "releases.yaml"
    present = {row["release"]: dict(row) for row in read_rows(path)} if path.is_file() else {}
    rows = {row["release"]: dict(row) for row in known_releases()} if shipped else {}
    for release, row in present.items():
        rows[release] = {"date": row.get("date"), **rows.get(release, {}), "release": release, "source": row["source"]}
    for release in releases:
        rows[release] = {"date": None, **rows.get(release, {}), "release": release, "source": "sdist"}
    for release, row in rows.items():
        if release not in present and release not in releases:
            row["source"] = "none"
    return sorted(rows.values(), key=lambda row: (not is_version(row["release"]), version_key(row["release"])))


def merged_readings(folder: Path, fresh: Sequence[Reading], rows: Sequence[Mapping[str, Any]]) -> list[Reading]:
    """The fresh readings among those that the folder's statements stand for, in release order."""
    order = [row["release"] for row in rows]
    new = {reading.release: reading for reading in fresh}
    read = [row["release"] for row in rows if row["source"] != "none"]
    if set(new) == set(read):
        return [new[release] for release in read]
    earlier = {reading.release: reading for reading in earlier_readings(folder, order)}
    older = [release for release in new if earlier[release].atoms and release != read[-1]]
    if older:
        raise ExtractError(
            f"release {older[0]}",
            "a release that is not read yet, or the newest one",
            "one in the middle of runs; what its neighbours took for granted only the trees can tell",
            "pass the trees of all releases together (--source RELEASE=DIR for each)",
        )
    return [new.get(release, earlier[release]) for release in read]


def earlier_readings(folder: Path, order: Sequence[str]) -> list[Reading]:
    """The readings that the generated statements of a folder stand for."""
    from nvdash.readers.yaml_rows import read_rows

    readings = {release: Reading(release) for release in order}
    for path in sorted(folder.glob("*.yaml")):
        if path.name != "releases.yaml" and path.read_text(encoding="utf-8").startswith(MARK):
            for row in read_rows(path):
                _spread(row, path.stem, readings, order)
    _facts(folder, readings)
    return list(readings.values())


def _spread(row: Mapping[str, Any], file: str, readings: Mapping[str, Reading], order: Sequence[str]) -> None:
    if row["since"] not in readings:
        raise ExtractError(f"{file}.yaml {row['id']}", "a release of releases.yaml", f"since {row['since']}")
    first = order.index(row["since"])
    last = order.index(row["until"]) if "until" in row else _last_read(row, order)
    evidence = row.get("evidence") or {}
    numbers = {release: number for number, release in enumerate(order)}
    atoms = list(atoms_of(row, file))
    for release in order[first:last]:
        place = place_in(evidence, release, numbers) or ("", 0)
        known = Evidence(place, frozenset(row.get("assumes", ())), tuple(row.get("needs", ())))
        readings[release].atoms |= dict.fromkeys(atoms, known)


def _last_read(row: Mapping[str, Any], order: Sequence[str]) -> int:
    return order.index(row["evidence"]["release"]) + 1


def atoms_of(row: Mapping[str, Any], file: str) -> Iterable[Atom]:
    """The atoms that one statement joins."""
    when = dict(row["when"])
    archs = _listed(when.pop("arch", None))
    dtypes = when.pop("kv_cache_dtype", None)
    if isinstance(dtypes, Mapping):
        when["kv_cache_dtype"], dtypes = dtypes, None
    said = {key: value for key, value in row.items() if key not in PLACE_KEYS}
    for arch in archs:
        for dtype in _listed(dtypes):
            yield Atom(file, row.get("kind", "support"), frozen(said), frozen(when), arch, dtype)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _facts(folder: Path, readings: Mapping[str, Reading]) -> None:
    from nvdash.readers.yaml_rows import read_yaml

    for release, reading in readings.items():
        path = folder / "facts" / f"{release}.yaml"
        if path.is_file():
            reading.facts = [dict(fact) for fact in read_yaml(path)["facts"]]
    releases = folder / "releases.yaml"
    if releases.is_file():
        from nvdash.readers.yaml_rows import read_rows

        for row in read_rows(releases):
            if row["release"] in readings and row.get("flashinfer"):
                at = row["flashinfer_evidence"]
                readings[row["release"]].flashinfer = row["flashinfer"]
                readings[row["release"]].flashinfer_place = (at["file"], at["line"])
