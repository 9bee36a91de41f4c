"""What `data/plan/` says of engines and workloads, as plain rows."""

from pathlib import Path
from typing import Any

from nvdash.errors import UnknownError, did_you_mean
from nvdash.readers.yaml_rows import read_rows

PLAN = Path(__file__).resolve().parents[2] / "data" / "plan"


def _engine_rows() -> dict[str, dict[str, Any]]:
    return {str(row["framework"]): dict(row) for row in read_rows(PLAN / "engines.yaml")}


def planned_frameworks() -> tuple[str, ...]:
    """The frameworks that plans are written for."""
    return tuple(_engine_rows())


def engine_row(framework: str) -> dict[str, Any]:
    """The row of one framework; one that no plan is written for is unknown."""
    rows = _engine_rows()
    if framework not in rows:
        hint = did_you_mean(framework, rows)
        raise UnknownError(f"framework {framework!r}", f"one of {', '.join(rows)}", "no plan is written for it", hint)
    return rows[framework]


def workload_rows() -> dict[str, dict[str, Any]]:
    """The pinned workload and the two tasks, by kind."""
    return {str(row["kind"]): dict(row) for row in read_rows(PLAN / "workloads.yaml")}
