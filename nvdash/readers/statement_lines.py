"""The line of a statement in every release of its run: one entry where it moved, none where it stayed.

`evidence: {release: "0.31.0", file: a.py, line: 501, lines: {"0.25.0": 430, "0.27.0": "b.py:447"}}` says: b.py:447 in
0.27.0 and in every later release before 0.31.0, a.py:430 in those before 0.27.0.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from nvdash.errors import NvdashError, did_you_mean
from nvdash.readers.yaml_rows import Row, YamlError, kind_of

Place = tuple[str, int]
"""File and line; 0 where a file has no line."""
Order = Mapping[str, int]
"""Releases by their number, oldest first."""


def lines_of(places: Mapping[str, Place]) -> dict[str, int | str]:
    """Where each of the places begins; `places` holds every release of a run, the newest last."""
    newest = list(places)[-1]
    before: Place | None = None
    lines: dict[str, int | str] = {}
    for release, place in places.items():
        if place != before and release != newest:
            lines[release] = _written(place, places[newest][0])
        before = place
    return lines if len(set(places.values())) > 1 else {}


def _written(place: Place, file: str) -> int | str:
    if place[0] == file and place[1]:
        return place[1]
    return f"{place[0]}:{place[1]}" if place[1] else place[0]


def place_in(evidence: Mapping[str, Any], release: str, order: Order) -> Place | None:
    """File and line in one release; None for a release after the one that the evidence names, or without a file."""
    newest, file = str(evidence.get("release")), evidence.get("file")
    if newest not in order or not file or order[release] > order[newest]:
        return None
    lines = evidence.get("lines", {})
    named = [name for name in lines if order[name] <= order[release]]
    if release == newest or not named:
        return file, evidence.get("line", 0)
    said = lines[named[-1]]
    if isinstance(said, int):
        return file, said
    path, _, number = said.rpartition(":")
    return (path, int(number)) if path and number.isdecimal() else (said, 0)


def located(row: Mapping[str, Any], release: str, order: Order) -> Mapping[str, Any]:
    """A compiled row as one release says it: its evidence names that release's own line where it is known."""
    evidence = row.get("evidence")
    if not evidence or ("lines" not in evidence and not row["generated"]):
        return row
    place = place_in(evidence, release, order)
    if place is None:
        return {**row, "evidence": {key: value for key, value in evidence.items() if key != "lines"}}
    line = {"line": place[1]} if place[1] else {}
    kept = {key: value for key, value in evidence.items() if key not in ("line", "lines")}
    return {**row, "evidence": {**kept, "release": release, "file": place[0], **line}}


def line_problems(evidence: Row, file: str, name: str) -> Iterator[NvdashError]:
    """Lines that are no lines, and those that stand beside no release and file."""
    lines = evidence["lines"]
    place = f"{file}:{evidence.lines['lines']} {name}.lines"
    if not isinstance(lines, Row) or not lines:
        yield YamlError(place, "a mapping of releases to lines", f"got {kind_of(lines)}")
        return
    for key in sorted({"release", "file"} - evidence.keys()):
        yield YamlError(place, f"evidence with {key}", "none")
    for release, said in lines.items():
        is_line = type(said) is int and said > 0
        if not is_line and not (isinstance(said, str) and said):
            yield YamlError(f"{place}.{release}", "a line number from 1, or file:line", f"got {kind_of(said)}")


def order_problems(row: Mapping[str, Any], order: Order) -> Iterator[NvdashError]:
    """Lines of releases that there are not, outside the run, or out of order."""
    evidence = row.get("evidence") or {}
    lines = list(evidence.get("lines", ()))
    place = f"{row['where']} {row['id']}.evidence.lines"
    named = [*lines, evidence["release"]] if lines else []
    for release in named:
        if release not in order:
            yield YamlError(place, "a release of releases.yaml", f"got {release!r}", did_you_mean(release, order))
            return
    if lines and lines[0] != row["since"]:
        yield YamlError(place, f"the first release of the run, {row['since']}, first", f"got {lines[0]!r}")
    for earlier, later in pairwise(named):
        if order[earlier] >= order[later]:
            expected = "releases in order, each before the one that the evidence names"
            yield YamlError(place, expected, f"{earlier} before {later}")
    if lines and "until" in row and order[named[-1]] >= order.get(row["until"], len(order)):
        yield YamlError(place, f"evidence from before {row['until']}", f"got {named[-1]!r}")
