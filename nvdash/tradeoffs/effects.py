"""What one precision changed, and whether the two changes depend on each other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.tradeoffs.controls import differences, in_words, spoiling
from nvdash.tradeoffs.groups import MEASURES, Group, Stat, admission, agree, merge

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


def effects_between(first: Cell, second: Cell, phase: str) -> list[dict[str, Any]]:
    """What going from the first cell to the second did to every measure of a phase that both took."""
    pairs = [(name, first.stat(name), second.stat(name)) for name in MEASURES[phase]]
    taken = [(name, before, after) for name, before, after in pairs if before is not None and after is not None]
    if not taken:
        return []
    in_the_way = in_words(obstacles(first, second, phase))
    mixed = admission([*first.groups, *second.groups]) if phase in SPEED else []
    axis, held = ("cache", "weights") if first.weights == second.weights else ("weights", "cache")
    what = {
        "axis": axis,
        "from": getattr(first, axis),
        "to": getattr(second, axis),
        "held": {held: getattr(first, held)},
        "phase": phase,
    }
    return [{**what, "measure": name, **_change(before, after, in_the_way, mixed)} for name, before, after in taken]


def _change(before: Stat, after: Stat, in_the_way: str, mixed: Sequence[str]) -> dict[str, Any]:
    """One measure before and after: the ratio and what it is due to, or why there is none."""
    row = {"before": before.as_dict(), "after": after.as_dict(), "ratio": None, "relative_error": None}
    if in_the_way or not before.mean:
        return {**row, "label": NOT_COMPARABLE, "because": in_the_way or "the first value is zero"}
    names = ", ".join(OBSERVED_LABELS[name] for name in mixed)
    return {
        **row,
        "ratio": after.mean / before.mean,
        "relative_error": _together(before, after),
        "label": BOTH if mixed else PRECISION,
        "because": f"{names} differ or are unknown" if mixed else "",
    }


def _together(*stats: Stat) -> float | None:
    """The relative standard error of a ratio of means; None when one of them has no repeats."""
    errors = [stat.relative_error for stat in stats]
    if any(error is None for error in errors):
        return None
    return math.sqrt(math.fsum(error**2 for error in errors if error is not None))


def interactions_in(cells: Mapping[str, Cell], phase: str) -> list[dict[str, Any]]:
    """Whether the cache change does at narrow weights what it does at wide ones, measure by measure; 1 when it does.

    `cells` are `wide`, `weights`, `cache` and `both`; without all four, or where one is not comparable, there is none.
    """
    if set(cells) < {"wide", "weights", "cache", "both"}:
        return []
    if any(obstacles(cells["wide"], cells[name], phase) for name in ("weights", "cache", "both")):
        return []
    rows = []
    for measure in MEASURES[phase]:
        stats = {name: cell.stat(measure) for name, cell in cells.items()}
        known = {name: stat for name, stat in stats.items() if stat is not None and stat.mean}
        if len(known) == 4:
            rows.append({"phase": phase, "measure": measure, **_interaction(known)})
    return rows


def _interaction(stats: Mapping[str, Stat]) -> dict[str, Any]:
    """The cache's effect at narrow weights over its effect at wide ones."""
    alone = stats["cache"].mean / stats["wide"].mean
    joined = stats["both"].mean / stats["weights"].mean
    error = _together(*stats.values())
    value = joined / alone
    return {
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
