"""Joins the atoms of many releases into statements over runs, and equal runs into lists of arch and dtype."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nvdash.extract.context import ARCHITECTURES
from nvdash.extract.statements import Atom, Evidence, Reading, thawed
from nvdash.readers.statement_lines import lines_of

ARCH_ORDER = ("sm70", "sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")


@dataclass(frozen=True, slots=True)
class Run:
    """One atom over neighbouring releases; `last` is where its evidence stands, `lines` where it stood before."""

    since: str
    until: str | None
    last: str
    evidence: Evidence
    lines: tuple[tuple[str, int | str], ...]
    assumes: frozenset[str]


def statements(
    readings: Sequence[Reading], order: Sequence[str], framework: str = "vllm"
) -> dict[str, list[dict[str, Any]]]:
    """The statements of every generated file, in a fixed order; `order` lists all releases, unread ones too."""
    by_release = {reading.release: joined(reading.atoms) for reading in readings}
    grouped: dict[tuple[Any, ...], list[tuple[Atom, Run]]] = {}
    for atom in {atom for atoms in by_release.values() for atom in atoms}:
        for run in runs(atom, by_release, order):
            key = (
                atom.file,
                atom.kind,
                atom.said,
                atom.when,
                run.since,
                run.until,
                run.evidence.place,
                run.lines,
                run.evidence.needs,
            )
            grouped.setdefault(key, []).append((atom, run))
    files: dict[str, list[dict[str, Any]]] = {}
    for members in grouped.values():
        for archs, dtypes in rectangles([atom for atom, _ in members], dtype_order(readings)):
            files.setdefault(members[0][0].file, []).append(_statement(members, archs, dtypes))
    position = {release: number for number, release in enumerate(order)}
    return {
        file: _named(sorted(rows, key=lambda row: _sort_key(row, position)), framework)
        for file, rows in sorted(files.items())
    }


def joined(atoms: Mapping[Atom, Evidence]) -> dict[Atom, Evidence]:
    """The atoms of one release, those that one line says of every architecture as one."""
    groups: dict[tuple[Atom, Any, Any], list[Atom]] = {}
    for atom, evidence in atoms.items():
        groups.setdefault((replace(atom, arch=None), evidence.place, evidence.needs), []).append(atom)
    whole: dict[Atom, Evidence] = {}
    for (anywhere, place, needs), members in groups.items():
        if len(members) == len(ARCHITECTURES):
            assumes = frozenset().union(*(atoms[member].assumes for member in members))
            whole[anywhere] = Evidence(place, assumes, needs)
        else:
            whole |= {member: atoms[member] for member in members}
    return whole


def runs(atom: Atom, by_release: Mapping[str, Mapping[Atom, Evidence]], order: Sequence[str]) -> Iterable[Run]:
    """The maximal runs of releases that say an atom; an unread release ends one."""
    current: list[str] = []
    for release in [*order, None]:
        atoms = by_release.get(release, {}) if release else {}
        if release and atom in atoms:
            current.append(release)
        elif current:
            said = [by_release[r][atom] for r in current]
            assumes = frozenset().union(*(e.assumes for e in said))
            lines = lines_of({r: e.place for r, e in zip(current, said, strict=True)})
            yield Run(current[0], release, current[-1], said[-1], tuple(lines.items()), assumes)
            current = []


def dtype_order(readings: Sequence[Reading]) -> list[str]:
    """Cache dtypes in the order in which releases list them, the newest release first."""
    names: dict[str, None] = {}
    for reading in reversed(readings):
        values: list[str] = next((f["value"] for f in reading.facts if f["fact"] == "kv_cache_dtype.values"), [])
        names |= dict.fromkeys(values)
    return list(names)


def rectangles(atoms: Sequence[Atom], dtypes: Sequence[str]) -> list[tuple[list[str] | None, list[str] | None]]:
    """Cover (arch, dtype) pairs by lists: architectures with the same dtypes go together."""
    by_arch: dict[str | None, set[str | None]] = {}
    for atom in atoms:
        by_arch.setdefault(atom.arch, set()).add(atom.kv_cache_dtype)
    by_dtypes: dict[frozenset[str | None], list[str | None]] = {}
    for arch, values in by_arch.items():
        by_dtypes.setdefault(frozenset(values), []).append(arch)
    position = {name: number for number, name in enumerate(dtypes)}
    covers: list[tuple[list[str] | None, list[str] | None]] = []
    for listed, archs in by_dtypes.items():
        names = sorted((v for v in listed if v is not None), key=lambda v: (position.get(v, len(position)), v))
        known = sorted((a for a in archs if a is not None), key=ARCH_ORDER.index)
        covers.append((None if None in archs else known, None if None in listed else names))
    return covers


def _statement(
    members: Sequence[tuple[Atom, Run]], archs: list[str] | None, dtypes: list[str] | None
) -> dict[str, Any]:
    atom, run = members[0]
    when = thawed(atom.when)
    cards = {"arch": _single(archs), "kv_cache_dtype": _single(dtypes)}
    where = {"backend": when.pop("backend", None), **cards, **when}
    said = thawed(atom.said)
    inside = [
        (a, r)
        for a, r in members
        if (archs is None or a.arch is None or a.arch in archs) and (dtypes is None or a.kv_cache_dtype in dtypes)
    ]
    assumes = sorted({name for _, r in inside for name in r.assumes})
    return {
        "id": "",
        "kind": atom.kind if atom.kind != "support" else None,
        "when": {axis: value for axis, value in where.items() if value is not None},
        "since": run.since,
        "until": run.until,
        **said,
        "needs": list(run.evidence.needs) or None,
        "evidence": _evidence(run),
        "assumes": assumes or None,
    }


def _evidence(run: Run) -> dict[str, Any] | None:
    path, line = run.evidence.place
    if not path:
        return None
    known = {"line": line or None, "lines": dict(run.lines) or None}
    return {"release": run.last, "file": path, **{key: value for key, value in known.items() if value}}


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _sort_key(row: Mapping[str, Any], position: Mapping[str, int]) -> tuple[Any, ...]:
    return (position[row["since"]], row.get("kind") or "", row.get("verdict") or "", slug(row), repr(row))


def slug(row: Mapping[str, Any]) -> str:
    """The words of an id: what is said of which dtype, architecture and shape."""
    when, words = row["when"], []
    words.append(str(when.get("backend") or row.get("name") or row["kind"] or "cache").lower())
    words += [_axis_words(axis, value) for axis, value in when.items() if axis not in ("backend",)]
    words.append(str(row.get("verdict") or ""))
    if row.get("verdict") == "refused" and len(when) <= 3:
        words.append(str(row.get("reason", "")).rpartition(": ")[2][:40])
    text = "-".join(word for word in words if word)
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def _axis_words(axis: str, value: Any) -> str:
    if axis in ("mla", "sparse", "causal", "sinks"):
        return axis if value is True else f"no-{axis}" if axis in ("causal", "sinks") else ""
    if isinstance(value, dict):
        return f"{_short(axis)}-" + "-".join(f"{k}-{_values(v)}" for k, v in value.items())
    return f"{_short(axis) if axis in ('head_size', 'dcp', 'window') else ''}{_values(value)}"


def _short(axis: str) -> str:
    return {"head_size": "head", "kv_cache_dtype": "dtype"}.get(axis, axis)


def _values(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return "-".join(map(str, value)) if len(value) <= 3 else f"{value[0]}-and-{len(value) - 1}-more"


def _named(rows: list[dict[str, Any]], framework: str) -> list[dict[str, Any]]:
    """Give every row an id that reads well and is unique in its file."""
    seen: dict[str, int] = {}
    for row in rows:
        name = f"{framework}-{slug(row)}-since-{row['since']}"
        seen[name] = seen.get(name, 0) + 1
        row["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    return rows
