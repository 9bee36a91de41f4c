"""What each precision cost in task quality, with its standard error; never averaged over tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EQUAL = ("task_version", "filter", "n_shot", "n_effective", "chat_template_sha", "fewshot_as_multiturn")
"""What two rows of one task and metric must share; a missing value counts as unknown, so as unequal."""
MAY_BE_ABSENT = frozenset({"filter", "chat_template_sha", "fewshot_as_multiturn", "task_version"})
"""Absent in both rows is equal here: the tool writes these only where they apply."""
FRACTIONS = frozenset({"exact_match", "acc", "acc_norm", "pass@1", "f1", "mc1", "mc2", "prompt_level_strict_acc"})
"""Metrics that are fractions by definition and are told in points of 100."""
SIGNIFICANT = 2.0
STEPS = {"cache": (("wide", "cache"), ("weights", "both")), "weights": (("wide", "weights"), ("cache", "both"))}
"""The pairs of cells that differ in one precision: at wide formats of the other axis first."""
CELL_WORDS = {
    "wide": "wide weights with wide cache",
    "weights": "NVFP4 weights with wide cache",
    "cache": "wide weights with NVFP4 cache",
    "both": "NVFP4 weights with NVFP4 cache",
}


@dataclass(frozen=True, slots=True)
class Delta:
    """The difference of two scores; positive when the second is higher."""

    value: float
    stderr: float | None
    n: int | None
    paired: bool = False

    @property
    def shown_to_be_real(self) -> bool | None:
        """Whether it lies beyond two standard errors; None where no error is known."""
        return None if self.stderr is None else abs(self.value) > SIGNIFICANT * self.stderr


def delta(first: Mapping[str, Any], second: Mapping[str, Any]) -> Delta:
    """The difference of two independent scores, errors added in squares."""
    errors = [row.get("stderr") for row in (first, second)]
    known = [float(error) for error in errors if error is not None]
    stderr = math.hypot(*known) if len(known) == 2 else None
    return Delta(second["value"] - first["value"], stderr, second.get("n_effective"))


def paired_delta(first: Mapping[str, float], second: Mapping[str, float]) -> Delta:
    """The difference over the samples that both runs answered; the shared difficulty cancels out."""
    shared = sorted(set(first) & set(second))
    if len(shared) < 2:
        raise ValueError("a paired difference needs two shared samples")
    gaps = [second[name] - first[name] for name in shared]
    mean = math.fsum(gaps) / len(gaps)
    variance = math.fsum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    return Delta(mean, math.sqrt(variance / len(gaps)), len(gaps), paired=True)


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Delta:
    """Pair by pair where both rows bring their samples, else as independent scores."""
    one, other = first.get("samples") or {}, second.get("samples") or {}
    return paired_delta(one, other) if len(set(one) & set(other)) > 1 else delta(first, second)


def comparable(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """What keeps two rows of one task apart; empty when they may be compared."""
    found = []
    for name in EQUAL:
        one, other = first.get(name), second.get(name)
        if one != other or (one is None and name not in MAY_BE_ABSENT):
            found.append(name)
    return found


def by_task(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], apart: Mapping[tuple[str, str], str] | None = None
) -> list[dict[str, Any]]:
    """One entry per task, metric and filter: the scores, what each precision cost, and the sentence that says so.

    `rows` holds the quality rows of each of the four cells, `apart` why two cells cannot be compared at all.
    """
    keys = {_key(row) for cell in rows.values() for row in cell if not row.get("is_group")}
    return [_task(key, rows, apart or {}) for key in sorted(keys, key=str)]


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["task"], row["metric"], row.get("filter"))


def _task(
    key: tuple[Any, ...], rows: Mapping[str, Sequence[Mapping[str, Any]]], apart: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    known = {cell: pooled([row for row in found if _key(row) == key]) for cell, found in rows.items()}
    scores = {cell: row for cell, row in known.items() if row is not None}
    costs = {axis: _cost(axis, scores, apart) for axis in STEPS}
    shown = ("value", "stderr", "n_effective")
    return {
        "task": key[0],
        "metric": key[1],
        "filter": key[2],
        "costs": costs,
        "scores": {cell: {name: row.get(name) for name in shown} for cell, row in scores.items()},
        "sentence": attribution(key[1], scores, costs),
    }


def pooled(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Repeats of one score as one: the mean, with the error of a mean; unlike rows are not mixed, the first stands."""
    if not rows:
        return None
    alike = [row for row in rows if not comparable(rows[0], row)] or [rows[0]]
    errors = [row.get("stderr") for row in alike]
    known = [float(error) for error in errors if error is not None]
    stderr = math.hypot(*known) / len(alike) if len(known) == len(alike) else None
    if len(alike) == 1:
        return alike[0]
    value = math.fsum(row["value"] for row in alike) / len(alike)
    return {**rows[0], "samples": None, "value": value, "stderr": stderr}


def _cost(
    axis: str, rows: Mapping[str, Mapping[str, Any]], apart: Mapping[tuple[str, str], str]
) -> dict[str, Any] | None:
    """What one precision changed, at wide formats of the other axis or else at narrow ones; None without a pair."""
    because = ""
    for pair in STEPS[axis]:
        if not set(pair) <= set(rows):
            continue
        first, second = (rows[cell] for cell in pair)
        unlike = ", ".join(f"{name} differs or is unknown" for name in comparable(first, second))
        because = apart.get(pair) or unlike
        if not because:
            found = _difference(first, second)
            return {
                "from": pair[0],
                "to": pair[1],
                "delta": found.value,
                "stderr": found.stderr,
                "n": found.n,
                "paired": found.paired,
                "shown_to_be_real": found.shown_to_be_real,
            }
    return {"from": None, "to": None, "delta": None, "because": because} if because else None


def attribution(metric: str, rows: Mapping[str, Mapping[str, Any]], costs: Mapping[str, Any]) -> str:
    """One sentence: what the cache costs, what the weights cost, or which run is missing to tell."""
    told = {axis: cost for axis, cost in costs.items() if cost and cost["delta"] is not None}
    if len(told) < 2:
        return _untold(rows, costs, told)
    cache, weights = (_verb(metric, told[axis], rows) for axis in ("cache", "weights"))
    weights = weights.replace("costs", "cost").replace("gains", "gain").replace("changes", "change")
    return f"The cache {cache}, the weights {weights}.{_too_small(metric, told.values())}"


def _untold(rows: Mapping[str, Any], costs: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """Why the two costs cannot both be told."""
    apart = [f"the {axis}: {cost['because']}" for axis, cost in costs.items() if cost and axis not in told]
    if apart:
        return f"Cannot be told apart: {'; '.join(apart)}."
    missing = next(cell for cell in CELL_WORDS if cell not in rows)
    return f"Cannot be told apart: {CELL_WORDS[missing]} was not run."


def _verb(metric: str, cost: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """ "costs 2.1 ± 0.6 points", or the change where nobody said which way is better."""
    unit = " points" if metric in FRACTIONS else ""
    factor = 100.0 if metric in FRACTIONS else 1.0
    better = rows[cost["to"]].get("higher_is_better")
    error = "" if cost["stderr"] is None else f" ± {cost['stderr'] * factor:.2g}"
    if better is None:
        return f"changes it by {cost['delta'] * factor:+.3g}{error}{unit}".replace("-", "−")
    lost = -cost["delta"] if better else cost["delta"]
    verb = "costs" if lost >= 0 else "gains"
    how = f" (paired over {cost['n']} samples)" if cost["paired"] else ""
    return f"{verb} {abs(lost) * factor:.3g}{error}{unit}{how}"


def _too_small(metric: str, costs: Any) -> str:
    """Says so when the samples are too few to tell a difference of this size from chance."""
    weak = [cost for cost in costs if cost["shown_to_be_real"] is False]
    if not weak:
        return "" if all(cost["stderr"] is not None for cost in costs) else " The error is not known."
    factor, unit = (100.0, " points") if metric in FRACTIONS else (1.0, "")
    least = max(SIGNIFICANT * cost["stderr"] * factor for cost in weak)
    counts = {cost["n"] for cost in weak if cost["n"] is not None}
    of = f" with n = {min(counts)}" if counts else ""
    return f" n is too small:{of} only a difference beyond {least:.2g}{unit} can be told from chance."
