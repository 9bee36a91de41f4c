"""Repeats of one configuration, with their mean and spread per measure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.tradeoffs.controls import Axes, axes, controls

MEASURES: dict[str, tuple[str, ...]] = {
    "prefill": ("prefill_tok_s", "ttft_mean_ms", "ttft_p50_ms"),
    "decode": ("decode_tok_s", "output_tok_s_per_user", "output_tok_s", "tpot_mean_ms", "tpot_p50_ms", "itl_mean_ms"),
    "capacity": ("kv_tokens", "kv_bytes_per_token", "weights_gib", "model_bytes", "admitted_sequences"),
}
"""What is compared, phase by phase; prefill and decode are never one number."""
OBSERVED = ("running_avg", "preemptions", "prefix_hit_rate")
LENGTHS = ("isl_mean", "osl_mean")
TOLERANCE = {"running_avg": 0.05, "preemptions": 0.0, "prefix_hit_rate": 0.01, "isl_mean": 0.01, "osl_mean": 0.01}
"""How far two observations may lie apart, relative to the larger one, and still count as equal."""


@dataclass(frozen=True, slots=True)
class Stat:
    """Repeats of one measure."""

    n: int
    mean: float
    sd: float | None = None
    """Sample standard deviation; None for a single run."""

    @property
    def relative_error(self) -> float | None:
        """The standard error of the mean, relative to the mean."""
        if self.sd is None or self.n < 2 or not self.mean:
            return None
        return self.sd / math.sqrt(self.n) / abs(self.mean)

    def as_dict(self) -> dict[str, Any]:
        """The measure as JSON."""
        return {"n": self.n, "mean": self.mean, "sd": self.sd}


@dataclass(frozen=True, slots=True)
class Group:
    """Runs with equal controls and equal precisions."""

    run_ids: tuple[str, ...]
    axes: Axes
    controls: Mapping[str, Any]
    stats: Mapping[str, Stat]
    ranges: Mapping[str, tuple[float, float]]
    """Lowest and highest of what only the run can tell: observed controls and token lengths."""
    plan: str | None = None
    """`equal-blocks` or `equal-utilisation` where the planner's scripts made the run."""

    def has(self, phase: str) -> bool:
        """Whether a measure of the phase was taken."""
        return any(name in self.stats for name in MEASURES.get(phase, ()))


def group(row: Mapping[str, Any]) -> Group:
    """A group out of a row of controls with `run_ids`, `stats` {measure: (n, mean, sd)} and `ranges`."""
    stats = {name: Stat(*values) for name, values in row["stats"].items()}
    return Group(tuple(row["run_ids"]), axes(row), controls(row), stats, row["ranges"], row.get("plan"))


def group_runs(rows: Iterable[Mapping[str, Any]]) -> list[Group]:
    """Groups out of single runs, each its own."""
    measures = [name for names in MEASURES.values() for name in names]
    return [
        group(
            {
                **row,
                "run_ids": [row["run_id"]],
                "stats": {name: (1, float(row[name])) for name in measures if row.get(name) is not None},
                "ranges": {n: (float(row[n]), float(row[n])) for n in (*OBSERVED, *LENGTHS) if row.get(n) is not None},
            }
        )
        for row in rows
    ]


def merge(stats: Sequence[Stat]) -> Stat:
    """Repeats of several groups as one: the pooled mean and the spread around it."""
    if len(stats) == 1:
        return stats[0]
    n = sum(stat.n for stat in stats)
    mean = math.fsum(stat.n * stat.mean for stat in stats) / n
    if n < 2:
        return Stat(n, mean)
    inside = math.fsum((stat.n - 1) * (stat.sd or 0.0) ** 2 for stat in stats)
    between = math.fsum(stat.n * (stat.mean - mean) ** 2 for stat in stats)
    return Stat(n, mean, math.sqrt((inside + between) / (n - 1)))


def agree(groups: Iterable[Group], name: str) -> bool | None:
    """Whether an observation lies together in all groups; None when one of them does not know it."""
    found = [item.ranges.get(name) for item in groups]
    known = [item for item in found if item is not None]
    if len(known) < len(found):
        return None
    low, high = min(item[0] for item in known), max(item[1] for item in known)
    return high - low <= TOLERANCE[name] * abs(high)


def admission(groups: Sequence[Group]) -> list[str]:
    """The observed controls that differ between groups or are unknown: the effect is then of two causes."""
    return [name for name in OBSERVED if not agree(groups, name)]
