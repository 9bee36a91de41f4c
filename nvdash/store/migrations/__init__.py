"""Numbered forward steps from any older store to this one, each in one transaction.

A step is `NNNN_words.sql` in this folder; its position is the schema version it leads to.
A store that is newer than the newest step is refused.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nvdash.store.failure import StoreError

if TYPE_CHECKING:
    import duckdb

FOLDER = Path(__file__).parent


def steps() -> list[Path]:
    """The SQL files in order."""
    return sorted(FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))


def is_current(connection: "duckdb.DuckDBPyConnection", place: Path) -> bool:
    """Whether the store has this program's schema; a newer one is refused."""
    newest, found = len(steps()), version(connection, place)
    if found > newest:
        hint = "update nvdash, or point NVDASH_STORE at another file"
        raise StoreError(str(place), f"a store of schema {newest} or older", f"found schema {found}", hint)
    return found == newest


def bring_up(connection: "duckdb.DuckDBPyConnection", place: Path) -> dict[str, object]:
    """Apply the missing steps, after a backup of what was there."""
    before, todo = version(connection, place), steps()
    backup = None
    if not is_current(connection, place):
        backup = back_up(connection, place) if before else None
        for number, step in enumerate(todo[before:], before + 1):
            _apply(connection, number, step)
    return {"from": before, "to": len(todo), "backup": backup.name if backup else None}


def back_up(connection: "duckdb.DuckDBPyConnection", place: Path, target: Path | None = None) -> Path:
    """Copy the whole database into one dated file beside it (or into `target`, which must not exist)."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    copy = target or place.with_name(f"{place.name}.backup-{stamp}")
    if copy.exists():
        raise StoreError(str(copy), "a file that does not exist yet", "found one", "name another file")
    (name,) = connection.execute("SELECT current_database()").fetchall()[0]
    connection.execute(f"ATTACH {quoted(copy)} AS nvdash_copy (STORAGE_VERSION 'v1.5.0')")
    try:
        connection.execute(f'COPY FROM DATABASE "{name}" TO nvdash_copy')
    finally:
        connection.execute("DETACH nvdash_copy")
    return copy


def quoted(path: Path) -> str:
    """A path as an SQL string, where SQL takes no parameter."""
    return "'" + str(path).replace("'", "''") + "'"


def version(connection: "duckdb.DuckDBPyConnection", place: Path) -> int:
    """The schema a store has; 0 when it is empty, and a database of something else is refused."""
    import duckdb

    try:
        rows = connection.execute("SELECT schema_version FROM meta").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException) as exc:
        tables = sorted(name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall())
        if tables:
            hint, found = "point NVDASH_STORE at a file of its own", ", ".join(tables[:3])
            raise StoreError(str(place), "an empty or a nvdash database", f"found the tables {found}", hint) from exc
        return 0
    return int(rows[0][0]) if rows else 0


def _apply(connection: "duckdb.DuckDBPyConnection", number: int, step: Path) -> None:
    """One step in one transaction, then a checkpoint: DuckDB 1.5.5 cannot replay a schema change from its log."""
    import duckdb

    connection.execute("BEGIN")
    try:
        connection.execute(step.read_text(encoding="utf-8"))
        connection.execute("UPDATE meta SET schema_version = ?, migrated_at = ?", [number, utc_now()])
    except duckdb.Error as exc:
        connection.execute("ROLLBACK")
        hint = "the store is as it was; report this with the output of nvdash store status"
        reason = str(exc).splitlines()[0][:200]
        raise StoreError(f"migration {step.stem}", "a step that applies", f"found: {reason}", hint) from exc
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT")


def utc_now() -> datetime:
    """The moment in UTC, without a zone: how every time is stored."""
    return datetime.now(UTC).replace(tzinfo=None)
