"""Looking after the file: status, backup, maintenance, migration."""

from pathlib import Path
from typing import Any

from nvdash.store.adding import SIDE_TABLES
from nvdash.store.connection import exclusive, reading, store_path, upgrade
from nvdash.store.migrations import back_up, bring_up

TABLES = ("runs", *SIDE_TABLES, "smoke", "revisions", "audit")


def status(path: Path | None = None) -> dict[str, Any]:
    """Where the store is, its schema, and how many rows each table has."""
    place = path or store_path()
    with reading(place) as connection:
        schema, revision = connection.execute("SELECT schema_version, revision FROM meta").fetchall()[0]
        rows = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in TABLES}
    size = place.stat().st_size
    return {"path": str(place), "bytes": size, "store_schema": schema, "revision": revision, "rows": rows}


def backup(target: Path | None = None, path: Path | None = None) -> Path:
    """Copy the whole store into one file that opens like the store itself."""
    place = path or store_path()
    with exclusive(place) as connection:
        bring_up(connection, place)
        return back_up(connection, place, target)


def backups(path: Path | None = None) -> list[str]:
    """The backup files beside the store, oldest first."""
    place = path or store_path()
    return sorted(file.name for file in place.parent.glob(f"{place.name}.backup-*"))


def maintain(path: Path | None = None) -> dict[str, Any]:
    """Fold the log into the file, refresh statistics, and count side rows that lost their run."""
    place = path or store_path()
    before = place.stat().st_size if place.exists() else 0
    with exclusive(place) as connection:
        bring_up(connection, place)
        connection.execute("CHECKPOINT")
        connection.execute("ANALYZE")
        orphans = {
            table: connection.execute(f"SELECT count(*) FROM {table} ANTI JOIN runs USING (run_id)").fetchall()[0][0]
            for table in ("revisions", *SIDE_TABLES)
        }
    return {"path": str(place), "bytes_before": before, "bytes_after": place.stat().st_size, "orphans": orphans}


def migrate(path: Path | None = None) -> dict[str, object]:
    """Bring the store to the newest schema; says from where, to where and which backup was made."""
    place = path or store_path()
    return {"path": str(place), **upgrade(place)}
