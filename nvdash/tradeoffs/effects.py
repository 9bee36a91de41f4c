"""What one precision changed, and whether the two changes depend on each other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.tradeoffs.controls import differences, in_words, spoiling
from nvdash.tradeoffs.groups import Group, Stat, admission, agree, merge

PRECISION = "precision"
BOTH = "precision and admission together"
NOT_COMPARABLE = "not comparable"
OBSERVED_LABELS = {
    "running_avg": "running requests",
    "preemptions": "preemptions",
    "prefix_hit_rate": "prefix-cache hit rate",
    "isl_mean": "input tokens per request",
    "osl_mean": "output tokens per request",
}
SPEED = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class Cell:
    """One of the configurations in one phase: repeats with the same controls."""

    weights: str
    cache: str
    groups: tuple[Group, ...]

    @property
    def controls(self) -> Mapping[str, Any]:
        """The controls that all its groups share."""
        return self.groups[0].controls

    @property
    def run_ids(self) -> list[str]:
        """The runs behind the cell."""
        return [run for item in self.groups for run in item.run_ids]

    def stat(self, measure: str) -> Stat | None:
        """The measure over all repeats."""
        stats = [item.stats[measure] for item in self.groups if measure in item.stats]
        return merge(stats) if stats else None


def obstacles(first: Cell, second: Cell, phase: str) -> list[dict[str, Any]]:
    """Why the two cells cannot be compared in this phase: controls that differ or are unknown."""
    found = differences(first.controls, second.controls, spoiling(phase))
    if phase in SPEED:
        groups = [*first.groups, *second.groups]
        for name in ("isl_mean", "osl_mean"):
            if agree(groups, name) is False:
                found.append({"control": name, "label": OBSERVED_LABELS[name], "values": _ends(groups, name)})
    return found


def _ends(groups: Sequence[Group], name: str) -> list[float]:
    ranges = [item.ranges[name] for item in groups]
    return [min(low for low, _ in ranges), max(high for _, high in ranges)]


def effect(first: Cell, second: Cell, phase: str, measure: str) -> dict[str, Any] | None:
    """What going from the first cell to the second did to one measure; None where one was not measured."""
    before, after = first.stat(measure), second.stat(measure)
    if before is None or after is None:
        return None
    axis = "cache" if first.weights == second.weights else "weights"
    held = "weights" if axis == "cache" else "cache"
    row: dict[str, Any] = {
        "axis": axis,
        "from": getattr(first, axis),
        "to": getattr(second, axis),
        "held": {held: getattr(first, held)},
        "phase": phase,
        "measure": measure,
        "before": before.as_dict(),
        "after": after.as_dict(),
        "ratio": None,
        "relative_error": None,
        "label": NOT_COMPARABLE,
        "because": "",
    }
    stands_in_the_way = obstacles(first, second, phase)
    if stands_in_the_way or not before.mean:
        return row | {"because": in_words(stands_in_the_way) or "the first value is zero"}
    row["ratio"] = after.mean / before.mean
    row["relative_error"] = _together(before, after)
    mixed = admission([*first.groups, *second.groups]) if phase in SPEED else []
    if mixed:
        names = ", ".join(OBSERVED_LABELS[name] for name in mixed)
        return row | {"label": BOTH, "because": f"{names} differ or are unknown"}
    return row | {"label": PRECISION}


def _together(*stats: Stat) -> float | None:
    """The relative standard error of a ratio of means; None when one of them has no repeats."""
    errors = [stat.relative_error for stat in stats]
    if any(error is None for error in errors):
        return None
    return math.sqrt(math.fsum(error**2 for error in errors if error is not None))


def interaction(cells: Mapping[str, Cell], phase: str, measure: str) -> dict[str, Any] | None:
    """Whether the cache change does at narrow weights what it does at wide ones; 1 when it does.

    `cells` are `wide`, `weights`, `cache` and `both`; without all four, or where one is not comparable, there is none.
    """
    if set(cells) < {"wide", "weights", "cache", "both"}:
        return None
    stats = {name: cell.stat(measure) for name, cell in cells.items()}
    known = {name: stat for name, stat in stats.items() if stat is not None and stat.mean}
    if len(known) < 4 or any(obstacles(cells["wide"], cells[name], phase) for name in ("weights", "cache", "both")):
        return None
    alone = known["cache"].mean / known["wide"].mean
    joined = known["both"].mean / known["weights"].mean
    error = _together(*known.values())
    value = joined / alone
    return {
        "phase": phase,
        "measure": measure,
        "cache_effect_at_wide_weights": alone,
        "cache_effect_at_narrow_weights": joined,
        "value": value,
        "relative_error": error,
        "finding": _finding(value, error),
    }


def _finding(value: float, error: float | None) -> str:
    """The headline: an interaction is claimed only beyond the spread between repeats."""
    if error is None:
        return "One run in a cell, so the spread is unknown: not shown to be real."
    if abs(math.log(value)) <= error:
        return "Within one standard error: not shown to be real."
    return f"Together the two changes give {value:.2f} × what they give apart."
