"""How far a plan has come: which of its runs are stored, which are still to be made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvdash.planner.values import CELLS, LABELS, SETS, Engine, Formats, Request, Workload
from nvdash.tradeoffs.controls import axes, format_name


def checklist(
    request: Request,
    engine: Engine,
    formats: Formats,
    workload: Workload,
    backend: str | None,
    runs: Iterable[Mapping[str, Any]],
    ready: Sequence[str],
) -> list[dict[str, Any]]:
    """One row per set, cell and load: how many repeats are stored, of how many."""
    stored = [run for run in runs if _of_plan(run, request, workload, backend)]
    return [
        _row(which, cell, load, engine, formats, workload, stored)
        for which in SETS
        for cell in CELLS
        if cell in ready
        for load in workload.concurrency
    ]


def _of_plan(run: Mapping[str, Any], request: Request, workload: Workload, backend: str | None) -> bool:
    """Whether a stored run was made as the plan says."""
    wanted = {"framework": request.framework, "version": request.release, "tp": request.tp, "workload": workload.name}
    same = all(run.get(name) == value for name, value in wanted.items())
    return same and str(run.get("attention_backend", "")).lower() == str(backend or "").lower()


def _row(
    which: str,
    cell: str,
    load: int,
    engine: Engine,
    formats: Formats,
    workload: Workload,
    stored: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    weights, side, _ = formats.of(cell)
    cache = formats.narrow_cache if side == "narrow" else engine.wide_cache
    found = [
        run["run_id"]
        for run in stored
        if run.get("tag") == which
        and run.get("max_concurrency") == load
        and (axes(run).weights, axes(run).cache) == (format_name(weights), format_name(cache))
    ]
    done = f"{min(len(found), workload.repeats)} of {workload.repeats} repeats"
    return {
        "set": which,
        "cell": cell,
        "label": LABELS[cell],
        "concurrency": load,
        "done": done,
        "complete": len(found) >= workload.repeats,
        "run_ids": found,
    }
