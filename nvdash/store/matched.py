"""Which runs match: repeats grouped by their controls, points of a frontier, and the history of a measure, in SQL."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.store.columns import names
from nvdash.store.connection import reading
from nvdash.store.runs import as_dicts, condition, scores_of
from nvdash.tradeoffs.groups import LENGTHS, MEASURES, OBSERVED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PLANS = ("equal-blocks", "equal-utilisation")
CONTROLS = names("control")
GROUPED = tuple(measure for measures in MEASURES.values() for measure in measures)
RANGED = (*OBSERVED, *LENGTHS)
POINT = (
    *("run_id", "model_base", "gpu", "version", "weight_format"),
    *("kv_cache_dtype_resolved", "kv_cache_dtype_requested", "cache_verdict"),
)


def groups(filters: Mapping[str, Any], path: Path | None = None) -> list[dict[str, Any]]:
    """Repeats with equal controls as one row: their runs, mean and spread per measure, range per observation."""
    with reading(path) as connection:
        return _groups(connection, filters)


def groups_and_scores(
    filters: Mapping[str, Any], path: Path | None = None
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """The groups, and the quality rows of those of their runs that have some."""
    with reading(path) as connection:
        rows = _groups(connection, filters)
        return rows, scores_of(connection, [run for row in rows for run in row["run_ids"]])


def _groups(connection: "DuckDBPyConnection", filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    where, parameters = condition(filters)
    plan = f"CASE WHEN tag IN {PLANS} THEN tag END AS plan"
    sums = [f"[count({name}), avg({name}), stddev_samp({name})] AS {name}" for name in GROUPED]
    ends = [f"[min({name}), max({name})] AS {name}" for name in RANGED]
    runs = "list(run_id ORDER BY run_id) AS run_ids"
    query = f"SELECT {', '.join([*CONTROLS, plan, runs, *sums, *ends])} FROM runs WHERE {where} GROUP BY ALL"
    return [_folded(row) for row in as_dicts(connection, query, parameters)]


def _folded(row: dict[str, Any]) -> dict[str, Any]:
    """Counts, means and spreads under `stats`, ranges under `ranges`; what nobody measured is left out."""
    stats = {name: row.pop(name) for name in GROUPED}
    ranges = {name: row.pop(name) for name in RANGED}
    return {
        **row,
        "stats": {name: (int(n), mean, sd) for name, (n, mean, sd) in stats.items() if n},
        "ranges": {name: tuple(ends) for name, ends in ranges.items() if ends[0] is not None},
    }


def points(filters: Mapping[str, Any], measures: tuple[str, ...], path: Path | None = None) -> list[dict[str, Any]]:
    """Single runs with what a scatter needs: who they are, how they were loaded, and the measures."""
    where, parameters = condition(filters)
    columns = ", ".join(dict.fromkeys((*POINT, "max_concurrency", "tpot_mean_ms", "output_tok_s_per_user", *measures)))
    with reading(path) as connection:
        return as_dicts(connection, f"SELECT {columns} FROM runs WHERE {where} ORDER BY run_id", parameters)


def history(filters: Mapping[str, Any], measure: str, path: Path | None = None) -> list[dict[str, Any]]:
    """One measure over framework releases: how many runs, their median and range, by precision."""
    where, parameters = condition({**filters})
    held = "framework, version, weight_format, coalesce(kv_cache_dtype_resolved, kv_cache_dtype_requested) AS cache"
    figures = f"count(*) AS n, median({measure}) AS median, min({measure}) AS lowest, max({measure}) AS highest"
    query = f"SELECT {held}, {figures} FROM runs WHERE {where} AND {measure} IS NOT NULL GROUP BY ALL ORDER BY ALL"
    with reading(path) as connection:
        return as_dicts(connection, query, parameters)


def systems(path: Path | None = None) -> list[dict[str, Any]]:
    """Which model and GPU pairs have runs, the most first; a model that no catalogue knows by the name it ran under."""
    columns = "coalesce(model_base, model) AS model, gpu, framework, count(*) AS runs"
    query = f"SELECT {columns} FROM runs WHERE withdrawn_at IS NULL GROUP BY ALL ORDER BY runs DESC, model, gpu"
    with reading(path) as connection:
        return as_dicts(connection, query)
