"""Smoke reports: stored whole, found by what they ran on."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.store.connection import reading, writing
from nvdash.store.migrations import utc_now
from nvdash.store.runs import as_dicts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEYS = ("ran_at", "engine", "framework", "release", "arch", "gpu", "verdict")
"""What questions filter reports by; the reader of smoke reports names them."""


SmokeRow = tuple[Mapping[str, Any], Mapping[str, str | None]]
"""A report and its keys."""


def add_smoke(reports: Iterable[SmokeRow], path: Path | None = None) -> tuple[list[str], list[str]]:
    """Store reports, each with its keys; returns the ids that are new and those that were there before."""
    with writing(path) as connection:
        return add_smoke_in(connection, reports)


def add_smoke_in(connection: "DuckDBPyConnection", reports: Iterable[SmokeRow]) -> tuple[list[str], list[str]]:
    """Store reports as a part of a transaction."""
    rows = {_smoke_id(report): (report, keys) for report, keys in reports}
    query = "SELECT smoke_id FROM smoke WHERE smoke_id IN (SELECT unnest(?::VARCHAR[]))"
    known = {row[0] for row in connection.execute(query, [list(rows)]).fetchall()}
    for smoke_id, (report, keys) in rows.items():
        if smoke_id not in known:
            values = [smoke_id, utc_now(), *(keys.get(name) for name in KEYS), json.dumps(report)]
            connection.execute(f"INSERT INTO smoke VALUES ({', '.join('?' * len(values))})", values)
    return [row for row in rows if row not in known], [row for row in rows if row in known]


def _smoke_id(report: Mapping[str, Any]) -> str:
    return sha256(json.dumps(report, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def smoke_reports(path: Path | None = None, **filters: str) -> list[dict[str, Any]]:
    """Stored reports, newest first: the report itself with its `smoke_id` and when it was submitted."""
    where = " AND ".join(["TRUE", *(f"{name} = ?" for name in KEYS if name in filters)])
    parameters = [filters[name] for name in KEYS if name in filters]
    with reading(path) as connection:
        query = f"SELECT smoke_id, submitted_at, report FROM smoke WHERE {where} ORDER BY submitted_at DESC, smoke_id"
        rows = as_dicts(connection, query, parameters)
    return [{**json.loads(row.pop("report")), **row} for row in rows]
