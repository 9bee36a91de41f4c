"""The smallest change of one axis after which a combination is expected or validated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from nvdash.formats import CACHE_FORMATS
from nvdash.readers.matrix import Matrix
from nvdash.support.names import cache_dtypes
from nvdash.support.observations import Observation
from nvdash.support.values import RANK
from nvdash.support.view import view
from nvdash.support.whole import verdict_of_all
from nvdash.targets import Combination

GOOD = RANK["expected"]


@dataclass(frozen=True, slots=True)
class Change:
    """One axis, its value now, and the value that would run."""

    axis: str
    now: str | None
    then: str
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """As an answer shows it."""
        return {"axis": self.axis, "from": self.now, "to": self.then, "verdict": self.verdict}


def nearest(
    matrix: Matrix, combinations: Sequence[Combination], observations: Sequence[Observation] = ()
) -> list[Change]:
    """At most one change per axis, the one that changes least; every shape of the model must then run."""
    changes = []
    for axis in ("kv_cache_dtype", "backend", "release", "weights", "arch"):
        now = getattr(combinations[0], axis)
        for value in _candidates(axis, combinations[0], matrix):
            changed = [replace(item, **_change(axis, value)) for item in combinations]
            reached = verdict_of_all(matrix, changed, observations).verdict
            if RANK[reached] >= GOOD:
                changes.append(Change(axis, now, value, reached))
                break
    return changes


def _change(axis: str, value: str) -> dict[str, Any]:
    if axis == "backend":
        return {"backend": value, "prefill_backend": None, "decode_backend": None}
    if axis == "weights":
        return {"weights": value, "method": None}
    return {axis: value}


def _candidates(axis: str, item: Combination, matrix: Matrix) -> Iterator[str]:
    """The other values of an axis, nearest first."""
    now = getattr(item, axis)
    values = {
        "kv_cache_dtype": _dtypes,
        "backend": _backends,
        "release": _releases,
        "weights": _weights,
        "arch": _archs,
    }[axis](item, matrix)
    return (value for value in values if value != now)


def _dtypes(item: Combination, matrix: Matrix) -> list[str]:
    """Formats that keep at least as many bits first, each side by the difference."""
    formats = matrix.axes().get("kv_formats", {}).get(item.framework, {})
    names = cache_dtypes(matrix, item.framework, item.release)
    here = _bits(formats, item.kv_cache_dtype)
    order = {name: number for number, name in enumerate(names)}
    return sorted(names, key=lambda name: (_bits(formats, name) < here, abs(_bits(formats, name) - here), order[name]))


def _bits(formats: dict[str, str], word: str) -> Fraction:
    known = CACHE_FORMATS.get(formats.get(word, word))
    return known.key.bits_per_value if known else Fraction(64)


def _backends(item: Combination, matrix: Matrix) -> list[str]:
    release = matrix.rules(item.framework).release(item.release)
    return view(matrix.rules(item.framework), release.name).backends if release and release.is_read else []


def _releases(item: Combination, matrix: Matrix) -> Iterator[str]:
    """Newer ones first, then back in time."""
    names = [release.name for release in matrix.rules(item.framework).read_releases]
    here = names.index(item.release) if item.release in names else len(names)
    return chain(names[here + 1 :], reversed(names[:here]))


def _weights(item: Combination, matrix: Matrix) -> list[str]:
    return [name for name in ("fp8", "nvfp4", "bf16") if name in matrix.axes().get("weights", {})]


def _archs(item: Combination, matrix: Matrix) -> list[str]:
    """NVIDIA's capabilities by the distance of their numbers; no other vendor is proposed."""
    if not item.arch.startswith("sm"):
        return []
    here = int(item.arch[2:])
    names = [name for name in matrix.axes().get("arch", {}) if name.startswith("sm")]
    return sorted(names, key=lambda name: abs(int(name[2:]) - here))
