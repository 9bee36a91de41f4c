"""Matched sets: the four configurations side by side, and what keeps the other runs out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.tradeoffs.controls import LABELS, PHASES, SYSTEM, WIDE, differences, in_words, spoiling
from nvdash.tradeoffs.effects import SPEED, Cell, effects_between, interactions_in, obstacles
from nvdash.tradeoffs.groups import MEASURES, Group, Stat

NARROW = "nvfp4"
CELLS = ("wide", "weights", "cache", "both")
CELL_LABELS = {
    "wide": "Wide weights, wide cache",
    "weights": "Weights only",
    "cache": "Cache only",
    "both": "Both",
}
UNKNOWN_AXES = {"weights": "weight_format", "cache": "kv_cache_dtype"}


@dataclass(frozen=True, slots=True)
class MatchedSet:
    """Runs of one system and one workload, phase by phase."""

    system: Mapping[str, Any]
    workload: str | None
    plan: str | None
    cells: Mapping[str, Mapping[tuple[str, str], Cell]]
    """Per phase, the cell of each pair of weight and cache format."""

    def four(self, phase: str) -> dict[str, Cell]:
        """The 2x2 of wide against NVFP4 as far as it was measured: wide, weights, cache, both."""
        cells = self.cells.get(phase, {})
        wide_weights, wide_cache = _wide(key[0] for key in cells), _wide(key[1] for key in cells)
        places = {
            "wide": (wide_weights, wide_cache),
            "weights": (NARROW, wide_cache),
            "cache": (wide_weights, NARROW),
            "both": (NARROW, NARROW),
        }
        return {name: cells[place] for name, place in places.items() if place in cells}

    def run_ids(self, phases: Sequence[str] = PHASES) -> set[str]:
        """Every run that stands in a cell of these phases."""
        cells = (cell for phase in phases for cell in self.cells.get(phase, {}).values())
        return {run for cell in cells for run in cell.run_ids}


def _wide(names: Iterable[str]) -> str:
    """The wide format among those measured; bf16 where none was."""
    return next((name for name in sorted(set(names)) if name in WIDE), "bf16")


def matched_sets(groups: Sequence[Group]) -> list[MatchedSet]:
    """Every set with at least two configurations, the fullest first."""
    systems: dict[tuple[Any, ...], list[Group]] = defaultdict(list)
    for item in groups:
        if not why_out(item):
            systems[tuple(item.controls[name] for name in SYSTEM)].append(item)
    sets = [found for members in systems.values() for found in _sets_of_system(members)]
    return sorted(sets, key=lambda found: (-_fullness(found), str(sorted(found.system.items())), str(found.workload)))


def why_out(item: Group) -> list[str]:
    """What must be known before a run can stand in any set, and is not."""
    unknown = [name for name in SYSTEM if item.controls.get(name) is None]
    return unknown + [UNKNOWN_AXES[axis] for axis in UNKNOWN_AXES if getattr(item.axes, axis) is None]


def _fullness(found: MatchedSet) -> int:
    return max(len(found.four(phase)) * 10 + len(cells) for phase, cells in found.cells.items())


def _sets_of_system(members: Sequence[Group]) -> list[MatchedSet]:
    """One set per workload and plan that two configurations ran; where none is, one of capacities and quality."""
    speeds = {(item.controls["workload"], item.plan) for item in members if _has_speed(item)}
    system = {name: members[0].controls[name] for name in SYSTEM}
    sets = [MatchedSet(system, *key, _phases(members, *key)) for key in sorted(speeds, key=str)]
    kept = [found for found in sets if any(len(found.cells.get(phase, ())) > 1 for phase in SPEED)]
    if kept:
        return kept
    rest = MatchedSet(system, None, None, _phases([item for item in members if not item.plan], None, None))
    return [rest] if any(len(cells) > 1 for cells in rest.cells.values()) else []


def _has_speed(item: Group) -> bool:
    return any(item.has(phase) for phase in SPEED)


def _phases(members: Sequence[Group], workload: str | None, plan: str | None) -> dict[str, dict[tuple[str, str], Cell]]:
    """The cells of each phase: speeds of this workload, capacity and quality of any."""
    phases = {}
    for phase in (*MEASURES, "quality"):
        of_plan = [item for item in members if item.plan in (plan, None)]
        if phase in SPEED:
            of_plan = [item for item in of_plan if item.controls["workload"] == workload and item.plan == plan]
        chosen = of_plan if phase == "quality" else [item for item in of_plan if item.has(phase)]
        cells = _cells(chosen, phase)
        if cells:
            phases[phase] = cells
    return phases


def _cells(groups: Sequence[Group], phase: str) -> dict[tuple[str, str], Cell]:
    """One cell per pair of formats: the variant of the controls that most cells share, else the nearest one."""
    relevant = spoiling(phase)
    variants: dict[tuple[Any, ...], dict[tuple[str, str], list[Group]]] = defaultdict(lambda: defaultdict(list))
    for item in groups:
        key = tuple(_known_or_alone(item, name) for name in relevant)
        variants[key][(str(item.axes.weights), str(item.axes.cache))].append(item)
    if not variants:
        return {}

    def rank(key: tuple[Any, ...]) -> tuple[Any, ...]:
        runs = sum(len(item.run_ids) for members in variants[key].values() for item in members)
        return (sum(isinstance(value, tuple) for value in key), -len(variants[key]), -runs, str(key))

    best = min(variants, key=rank)
    cells: dict[tuple[str, str], Cell] = {}
    for key in sorted(variants, key=lambda key: (sum(a != b for a, b in zip(key, best, strict=True)), *rank(key))):
        for pair, members in variants[key].items():
            cells.setdefault(pair, Cell(*pair, tuple(members)))
    return cells


def _known_or_alone(item: Group, name: str) -> Any:
    """A control's value; runs that do not know it are never pooled as repeats of each other."""
    value = item.controls[name]
    return ("unknown", *item.run_ids) if value is None else value


def effects(found: MatchedSet) -> list[dict[str, Any]]:
    """The effect of the cache at each weight format and of the weights at each cache, measure by measure."""
    return [
        row
        for phase in MEASURES
        for first, second in _steps(found.cells.get(phase, {}))
        for row in effects_between(found.cells[phase][first], found.cells[phase][second], phase)
    ]


def _steps(cells: Iterable[tuple[str, str]]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of cells that differ in one format only, from the wider to the narrower."""
    ordered = sorted(cells, key=lambda cell: (_width(cell[0]), _width(cell[1]), cell))
    return [
        (one, other)
        for index, one in enumerate(ordered)
        for other in ordered[index + 1 :]
        if (one[0] == other[0]) != (one[1] == other[1])
    ]


def _width(name: str) -> int:
    """Wide formats first, NVFP4 last."""
    return 0 if name in WIDE else 2 if name.startswith(NARROW) else 1


def interactions(found: MatchedSet) -> list[dict[str, Any]]:
    """For every measure of the full 2x2: does one change depend on the other."""
    return [row for phase in MEASURES for row in interactions_in(found.four(phase), phase)]


def table(found: MatchedSet) -> list[dict[str, Any]]:
    """The four configurations as rows: every value, and its ratio to wide/wide or why there is none."""
    fours = {phase: found.four(phase) for phase in found.cells}
    rows = []
    for name in CELLS:
        runs = sorted({run for cells in fours.values() if name in cells for run in cells[name].run_ids})
        values = {k: v for phase in MEASURES for k, v in _values(fours.get(phase, {}), name, phase).items()}
        rows.append({"cell": name, "label": CELL_LABELS[name], "run_ids": runs, "values": values})
    return rows


def _values(cells: Mapping[str, Cell], name: str, phase: str) -> dict[str, dict[str, Any]]:
    """The measures of one phase that a cell took, each with its ratio to wide/wide where that is allowed."""
    cell, base = cells.get(name), cells.get("wide")
    if cell is None:
        return {}
    apart = in_words(obstacles(base, cell, phase)) if base and cell is not base else ""
    stats = {measure: stat for measure in MEASURES[phase] if (stat := cell.stat(measure)) is not None}
    return {
        measure: {**stat.as_dict(), **_ratio(stat, base.stat(measure) if base else None, apart)}
        for measure, stat in stats.items()
    }


def _ratio(stat: Stat, base: Stat | None, apart: str) -> dict[str, Any]:
    """The ratio to wide/wide, or why there is none."""
    if base is None or not base.mean:
        return {"ratio": None, "because": "not comparable: wide/wide was not run"}
    if apart:
        return {"ratio": None, "because": f"not comparable: {apart}"}
    return {"ratio": stat.mean / base.mean, "because": ""}


def unmatched(groups: Sequence[Group], sets: Sequence[MatchedSet]) -> list[dict[str, Any]]:
    """Runs that stand in no set, each with the control that keeps it out."""
    inside = {run for found in sets for run in found.run_ids()}
    timed = {run for found in sets for run in found.run_ids(SPEED)}
    rows = []
    for item in groups:
        if (timed if _has_speed(item) else inside).issuperset(item.run_ids):
            continue
        out = why_out(item)
        if out:
            why = "; ".join(f"{LABELS[name]}: unknown" for name in out)
            rows.append({"run_ids": list(item.run_ids), "controls": out, "because": why, "nearest": None})
        else:
            rows.append(_nearest(item, [other for other in groups if other is not item and not why_out(other)]))
    return rows


def _nearest(item: Group, others: Sequence[Group]) -> dict[str, Any]:
    """The nearest other group and the controls in which it differs."""
    names = (*SYSTEM, "workload", *(name for name in spoiling("decode") if name != "workload"))
    ranked = sorted(
        ((differences(item.controls, other.controls, names), other) for other in others),
        key=lambda pair: (len(pair[0]), pair[1].run_ids),
    )
    if not ranked:
        alone = "no other run to compare with"
        return {"run_ids": list(item.run_ids), "controls": [], "because": alone, "nearest": None}
    found, other = ranked[0]
    because = in_words(found) or "both precisions are the same as in the nearest run"
    controls = [row["control"] for row in found]
    return {"run_ids": list(item.run_ids), "controls": controls, "because": because, "nearest": other.run_ids[0]}
