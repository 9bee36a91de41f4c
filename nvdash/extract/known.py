"""What the matrix already says: releases in order, and earlier readings rebuilt from the generated statements."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nvdash.extract.emit import MARK
from nvdash.extract.source import ExtractError
from nvdash.extract.statements import Atom, Evidence, Reading, frozen

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


def with_release(rows: Sequence[Mapping[str, Any]], release: str) -> list[dict[str, Any]]:
    """The rows with a release in its place; one that is listed without a source is now read."""
    kept = [dict(row) for row in rows if row["release"] != release]
    old = next((row for row in rows if row["release"] == release), {"date": None})
    kept.append({"release": release, "date": old.get("date"), "source": "sdist"})
    if not is_version(release):
        return kept
    return sorted(kept, key=lambda row: version_key(row["release"]) if is_version(row["release"]) else (10**9,))


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
    place = (evidence.get("file", ""), evidence.get("line", 0))
    known = Evidence(place, frozenset(row.get("assumes", ())), tuple(row.get("needs", ())))
    for atom in atoms_of(row, file):
        for release in order[first:last]:
            readings[release].atoms[atom] = known


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
