"""What did each precision cost or gain: matched sets, two runs side by side, frontiers, history."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvdash.answers.envelope import envelope
from nvdash.answers.results import filters_of
from nvdash.answers.seed import load_once
from nvdash.errors import UsageError
from nvdash.store import matched
from nvdash.store import runs as stored
from nvdash.store.columns import BY_NAME, names
from nvdash.store.identity import shown
from nvdash.tradeoffs import frontier, quality
from nvdash.tradeoffs.controls import LABELS, PHASES, SYSTEM, axes, differences, in_words, spoiling
from nvdash.tradeoffs.effects import Cell, effects_between, obstacles
from nvdash.tradeoffs.groups import MEASURES, Group, group, group_runs
from nvdash.tradeoffs.matching import (
    CELL_LABELS,
    CELLS,
    MatchedSet,
    effects,
    interactions,
    matched_sets,
    table,
    unmatched,
    why_out,
)
from nvdash.tradeoffs.recorded import is_long_context, recorded

YES, NO = 0, 1
SAME = "same precisions: the ratio is the spread between repeats"
NO_LONG_CONTEXT = "The verdict on the cache is open, long-context quality: not measured"


def compare(question: Mapping[str, Any]) -> dict[str, Any]:
    """The matched sets of a model and GPU, every effect, and the runs that match nothing with the control at fault."""
    asked = {name: value for name, value in question.items() if value is not None}
    if not asked:
        raise UsageError("compare", "a model and a GPU, or two run ids", "found neither", "--model NAME --gpu NAME")
    load_once()
    rows, scores = matched.groups_and_scores(filters_of(asked))
    groups = [group(row) for row in rows]
    sets = matched_sets(groups)
    return envelope(
        "compare",
        asked,
        matched_sets=[_set(found, scores) for found in sets],
        unmatched=[_short(row) for row in unmatched(groups, sets)],
        sentence=_headline(sets, groups),
    )


def exit_code(answer: Mapping[str, Any]) -> int:
    """0 when something is matched, 1 when not."""
    return YES if answer.get("matched_sets") or answer.get("matched") else NO


Scores = Mapping[str, Sequence[Mapping[str, Any]]]
"""The quality rows of each run that has some."""


def _set(found: MatchedSet, scores: Scores) -> dict[str, Any]:
    """One matched set as JSON."""
    tasks = _quality(found, scores)
    return {
        "system": dict(found.system),
        "workload": found.workload,
        "plan": found.plan,
        "controls": _controls(found),
        "rows": [{**row, "run_ids": [shown(run) for run in row["run_ids"]]} for row in table(found)],
        "missing": [CELL_LABELS[name] for name in CELLS if not any(name in found.four(phase) for phase in MEASURES)],
        "effects": effects(found),
        "interactions": interactions(found),
        "quality": tasks,
        "sentences": [f"{row['task']} ({row['metric']}): {row['sentence']}" for row in tasks] + _long_context(tasks),
        "recorded": _recorded(found, scores),
    }


def _controls(found: MatchedSet) -> dict[str, Any]:
    """Per phase, the controls of the set, and for each cell in which it differs from wide/wide or is unknown."""
    answer = {}
    for phase in PHASES:
        cells = found.four(phase)
        base = cells.get("wide") or next(iter(cells.values()), None)
        if base is not None:
            held = {name: base.controls[name] for name in spoiling(phase)}
            apart = {name: obstacles(base, cell, phase) for name, cell in cells.items() if cell is not base}
            answer[phase] = {"held": held, "differs": {name: rows for name, rows in apart.items() if rows}}
    return answer


def _quality(found: MatchedSet, scores: Scores) -> list[dict[str, Any]]:
    """Per task what the cache and the weights cost, or which run is missing to tell."""
    cells = found.four("quality")
    rows = {name: [row for run in cell.run_ids for row in scores.get(run, ())] for name, cell in cells.items()}
    apart = {}
    for pairs in quality.STEPS.values():
        for pair in pairs:
            if set(pair) <= set(cells):
                apart[pair] = in_words(obstacles(cells[pair[0]], cells[pair[1]], "quality"))
    tasks = quality.by_task(rows, apart)
    long = {row["task"] for found_rows in rows.values() for row in found_rows if is_long_context(row)}
    return [{**task, "long_context": task["task"] in long} for task in tasks]


def _long_context(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What must be said of a cache that no long context was tried on."""
    tried = any(task["long_context"] and task["costs"]["cache"] for task in tasks)
    return [] if tried else [NO_LONG_CONTEXT]


def _recorded(found: MatchedSet, scores: Scores) -> dict[str, Any]:
    """The two recording tables of each configuration: what was measured, n of how many."""
    answer, fours = {}, [found.four(phase) for phase in PHASES]
    for name in CELLS:
        cells = [four[name] for four in fours if name in four]
        run_ids = sorted({run for cell in cells for run in cell.run_ids})
        if run_ids:
            values = {m: s.mean for cell in cells for m in _all_measures() if (s := cell.stat(m))}
            rows = [row for run in run_ids for row in scores.get(run, ())]
            answer[name] = recorded({**_observed(cells), **values}, rows)
    return answer


def _all_measures() -> Iterable[str]:
    return (measure for measures in MEASURES.values() for measure in measures)


def _observed(cells: Iterable[Cell]) -> dict[str, float]:
    """Observations as the highest that any run of the cell saw."""
    found: dict[str, float] = {}
    for item in (item for cell in cells for item in cell.groups):
        for name, (_, high) in item.ranges.items():
            found[name] = max(high, found.get(name, high))
    return found


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    near = row["nearest"]
    return {**row, "run_ids": [shown(run) for run in row["run_ids"]], "nearest": shown(near) if near else None}


def _headline(sets: Sequence[MatchedSet], groups: Sequence[Group]) -> str:
    """The answer in one sentence."""
    count = sum(len(item.run_ids) for item in groups)
    if not sets:
        out = sum(len(item.run_ids) for item in groups if why_out(item))
        why = f" {out} of them do not say enough of themselves." if out else ""
        return f"No two of {count} runs match, so nothing can be compared.{why}" if count else "No such run is stored."
    full = sum(any(len(found.four(phase)) == len(CELLS) for phase in MEASURES) for found in sets)
    return f"{len(sets)} matched sets out of {count} runs; {full} of them have all four configurations."


def compare_runs(first: str, second: str) -> dict[str, Any]:
    """Two runs side by side: a ratio for every measure that their controls allow, else the control in the way."""
    one, other = stored.get(first), stored.get(second)
    left, right = group_runs([one, other])
    apart = differences(left.controls, right.controls, (*SYSTEM, *_soft(left, right)))
    system = [row for row in apart if row["control"] in SYSTEM]
    changed = [axis for axis in ("weights", "cache") if getattr(left.axes, axis) != getattr(right.axes, axis)]
    unknown = [axis for axis in ("weights", "cache") if None in (getattr(left.axes, axis), getattr(right.axes, axis))]
    blocked = _blocked(system, changed, unknown)
    return envelope(
        "compare",
        {"runs": [first, second]},
        matched=not blocked and not apart,
        run_ids=[shown(one["run_id"]), shown(other["run_id"])],
        axes=[{"weights": item.axes.weights, "cache": item.axes.cache} for item in (left, right)],
        effects=[] if blocked else _pair_effects(left, right),
        unmatched=apart,
        because=blocked or in_words(apart),
        values=_side_by_side(one, other),
    )


def _soft(left: Group, right: Group) -> tuple[str, ...]:
    """The controls of what both runs measured."""
    phases = [phase for phase in MEASURES if left.has(phase) and right.has(phase)]
    return tuple(dict.fromkeys(name for phase in phases or PHASES for name in spoiling(phase)))


def _blocked(system: Sequence[Mapping[str, Any]], changed: Sequence[str], unknown: Sequence[str]) -> str:
    """Why no measure at all may be compared; empty when some may."""
    if system:
        return in_words(system)
    if unknown:
        words = {"weights": LABELS["weight_format"], "cache": LABELS["kv_cache_dtype"]}
        return "; ".join(f"{words[axis]}: unknown" for axis in unknown)
    return "weights and cache both differ, so no effect can be told apart" if len(changed) > 1 else ""


def _pair_effects(left: Group, right: Group) -> list[dict[str, Any]]:
    """The effect of the one precision that differs; of none, the spread between repeats shows in the ratio."""
    one, other = (Cell(str(item.axes.weights), str(item.axes.cache), (item,)) for item in (left, right))
    found = [row for phase in MEASURES for row in effects_between(one, other, phase)]
    return [row | {"axis": None, "label": SAME} for row in found] if left.axes == right.axes else found


def _side_by_side(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every measured value of the two runs, without a ratio."""
    known = [name for name in (*names("metric"), *names("observed")) if name in one or name in other]
    return [{"name": n, "label": BY_NAME[n].label, "values": [one.get(n), other.get(n)]} for n in known]


def pareto(question: Mapping[str, Any], view: str = "throughput_interactivity") -> dict[str, Any]:
    """The runs of a model and GPU as points of a view, and which of them no other beats."""
    if view not in frontier.VIEWS:
        raise UsageError("view", " or ".join(frontier.VIEWS), f"found {view!r}")
    asked = {name: value for name, value in question.items() if value is not None}
    across, up = frontier.VIEWS[view]
    points = frontier.points(matched.points(filters_of(asked), (across, up)), view)
    named = [_point(row) for row in points]
    return envelope("pareto", {**asked, "view": view}, x=across, y=up, points=named)


def _point(row: Mapping[str, Any]) -> dict[str, Any]:
    both = axes(row)
    name = f"{both.weights or 'unknown'} weights, {both.cache or 'unknown'} cache"
    keys = ("x", "y", "on_front", "max_concurrency", "version")
    return {"run_id": shown(row["run_id"]), "name": name, **{key: row.get(key) for key in keys}}


def history(question: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """One measure of a model and GPU over framework releases."""
    if measure not in names("metric"):
        raise UsageError("measure", "a measured value", f"found {measure!r}", "nvdash runs --json names them")
    asked = {name: value for name, value in question.items() if value is not None}
    rows = matched.history(filters_of(asked), measure)
    return envelope("history", {**asked, "measure": measure}, unit=BY_NAME[measure].unit, rows=rows)


def losing(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The comparisons that lose a configuration when this run is withdrawn."""
    if run.get("model_base") is None or run.get("gpu") is None:
        return []
    rows = matched.groups({"model_base": run["model_base"], "gpu": run["gpu"]})
    sets = matched_sets([group(row) for row in rows])
    return [
        {"system": dict(found.system), "workload": found.workload, "phase": phase, "loses": CELL_LABELS[name]}
        for found in sets
        for phase in PHASES
        for name, cell in found.four(phase).items()
        if cell.run_ids == [run["run_id"]]
    ]
