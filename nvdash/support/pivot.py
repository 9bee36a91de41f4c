"""A grid of verdicts over any two axes, everything else held fixed.

The statements of the release are narrowed once by what is fixed; every cell then reads few of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from nvdash.readers.matrix import Matrix, Release
from nvdash.support.axes import CACHE_AXIS, Values, axis_values
from nvdash.support.evaluate import Question, answer
from nvdash.support.observations import Observation
from nvdash.support.values import Verdict
from nvdash.support.view import View, view
from nvdash.targets import Combination, HeadLayout

PIVOT_AXES = ("arch", "kv_cache_dtype", "backend", "weights", "release", "heads", "dcp")
NEVER_NARROWED = ("backend", "prefill_backend", "decode_backend", CACHE_AXIS, "model_dtype")
"""The choice of backend and the resolution of the dtypes set these anew."""
HEAD_AXES = ("kind", "mla", "sparse", "query_heads", "kv_heads", "head_size", "value_head_size", "equal_head_sizes")
FREED_BY = {"heads": (*HEAD_AXES, "window", "sinks"), "weights": ("weights", "method", "checkpoint_kv")}


@dataclass(frozen=True, slots=True)
class Cell:
    """One verdict of a grid."""

    verdict: str
    layer: str | None
    backend: str | None
    reason: str | None
    evidence: Mapping[str, Any] | None
    since: str | None = None
    """The first release of the stretch that has this verdict, `≤` where it may have begun earlier."""

    def as_dict(self) -> dict[str, Any]:
        """As an answer shows it."""
        return {
            "verdict": self.verdict,
            "layer": self.layer,
            "backend": self.backend,
            "reason": self.reason,
            "evidence": dict(self.evidence) if self.evidence else None,
            "since": self.since,
        }


def pivot(
    matrix: Matrix,
    combination: Combination,
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    observations: Sequence[Observation] = (),
    stage: str | None = None,
    with_since: bool = False,
) -> list[list[Cell]]:
    """The grid: `rows` and `columns` are an axis and its values; `stage` asks for one stage."""
    cells = cube(matrix, combination, dict((rows, columns)), observations, stage, with_since)
    return [[cells[row, column] for column in columns[1]] for row in rows[1]]


def cube(
    matrix: Matrix,
    combination: Combination,
    axes: Mapping[str, Sequence[str]],
    observations: Sequence[Observation] = (),
    stage: str | None = None,
    with_since: bool = False,
) -> Mapping[tuple[str, ...], Cell]:
    """The verdict of every combination of these axes' values; remembered while the matrix stays the same."""
    asked = tuple((axis, tuple(names)) for axis, names in axes.items())
    return _cube(matrix, combination, asked, tuple(observations), stage, with_since)


@lru_cache(maxsize=64)
def _cube(
    matrix: Matrix,
    combination: Combination,
    asked: tuple[tuple[str, tuple[str, ...]], ...],
    observations: tuple[Observation, ...],
    stage: str | None,
    with_since: bool,
) -> dict[tuple[str, ...], Cell]:
    axes = dict(asked)
    views = _Views(matrix, combination, set(axes), observations)
    base = axis_values(combination)
    changes = [{value: _values_of(combination, axis, value) for value in names} for axis, names in axes.items()]
    cells = {}
    for names in product(*axes.values()):
        values = dict(base)
        for part, name in zip(changes, names, strict=True):
            values |= part[name]
        cell = _cell(views.verdict(values), stage)
        cells[names] = replace(cell, since=_since(views, values, cell, stage)) if with_since else cell
    return cells


def _values_of(combination: Combination, axis: str, value: str) -> Values:
    """What a value of a grid's axis fixes, beside what the combination fixes without it; None leaves an axis open."""
    before = axis_values(combination)
    after = axis_values(replace(combination, **change(axis, value)))
    return {name: after.get(name) for name in before.keys() | after.keys() if after.get(name) != before.get(name)}


def change(axis: str, value: str) -> dict[str, Any]:
    """What a value of a grid's axis sets in a combination."""
    if axis == "heads":
        return {"heads": HeadLayout.parse(value)}
    if axis == "weights":
        return {"weights": value, "method": None, "checkpoint_kv": "none" if value == "bf16" else None}
    if axis == "backend":
        return {"backend": None if value == "auto" else value, "prefill_backend": None, "decode_backend": None}
    return {axis: int(value) if axis == "dcp" else value}


class _Views:
    """Narrowed views per release, built when first needed."""

    def __init__(
        self, matrix: Matrix, combination: Combination, free: set[str], observations: Sequence[Observation]
    ) -> None:
        self._matrix, self._observations = matrix, observations
        self.rules = matrix.rules(combination.framework)
        freed = {axis for name in free for axis in FREED_BY.get(name, (name,))} | set(NEVER_NARROWED)
        self._fixed = {axis: value for axis, value in axis_values(combination).items() if axis not in freed}
        self._narrowed: dict[str, View] = {}

    def verdict(self, values: Values) -> Verdict | None:
        """The verdict, or None for a release that was not read."""
        release = self.rules.release(values["release"])
        if release is None or not release.is_read:
            return None
        return answer(Question(self._matrix, release, self._view(release), self._observations), values)

    def _view(self, release: Release) -> View:
        if release.name not in self._narrowed:
            self._narrowed[release.name] = view(self.rules, release.name).narrowed(self._fixed)
        return self._narrowed[release.name]


def _cell(found: Verdict | None, stage: str | None) -> Cell:
    if found is None:
        return Cell("unknown", None, None, "this release was not read", None)
    decides = found.stages[stage] if stage else found.deciding
    backend = found.backend if decides.verdict != "refused" else None
    return Cell(decides.verdict, decides.layer, backend, decides.reason, decides.evidence)


def _since(views: _Views, values: Values, cell: Cell, stage: str | None) -> str | None:
    """The first release of this verdict, walking back over releases nobody read; `≤` where it may be older."""
    releases = views.rules.releases
    here = next((number for number, release in enumerate(releases) if release.name == values["release"]), None)
    if here is None or not releases[here].is_read:
        return None
    first = here
    for number in range(here - 1, -1, -1):
        if not releases[number].is_read:
            continue
        before = views.verdict({**values, "release": releases[number].name})
        if _cell(before, stage).verdict != cell.verdict:
            break
        first = number
    may_be_older = first == 0 or not releases[first - 1].is_read
    return f"{'≤' if may_be_older else ''}{releases[first].name}"
