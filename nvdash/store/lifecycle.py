"""What happens to a run after it was stored: revised, withdrawn, reinstated, purged; each leaves a trace."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.errors import UsageError
from nvdash.store.adding import SIDE_TABLES, extra_row, reinstate_row
from nvdash.store.columns import BY_NAME, VALUE_NAMES
from nvdash.store.connection import reading, rewrite, store_path, writing
from nvdash.store.identity import SHOWN_DIGITS
from nvdash.store.migrations import utc_now
from nvdash.store.runs import as_dicts, resolve
from nvdash.store.values import stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def revise(
    run_ids: Sequence[str], values: Mapping[str, Any], origin: str, *, path: Path | None = None
) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Record later knowledge about runs as their next revision; says per run what changed, before and after.

    A measured value that a run already has is never replaced: its file outranks what is said about it.
    """
    with writing(path) as connection:
        return {run_id: _revise(connection, resolve(connection, run_id), values, origin) for run_id in run_ids}


def complete(
    missing: Mapping[str, Mapping[str, Any]], origin: str, path: Path | None = None
) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Fill what stored runs did not know, from later files of the same runs; what they know stays."""
    done = {}
    with writing(path) as connection:
        for run_id, values in missing.items():
            run = _row(connection, run_id)
            open_values = {name: value for name, value in values.items() if name in VALUE_NAMES and name not in run}
            done[run_id] = _revise(connection, run_id, open_values, origin)
    return done


def attach(run_id: str, samples: Sequence[Mapping[str, Any]], path: Path | None = None) -> bool:
    """Give a stored run the scores of its single samples, unless it has some; says whether it did."""
    with writing(path) as connection:
        query = "SELECT count(*) FROM samples WHERE run_id = ?"
        if not samples or connection.execute(query, [run_id]).fetchall()[0][0]:
            return False
        values = [[run_id, *(row.get(name) for name in list(SIDE_TABLES["samples"])[1:])] for row in samples]
        connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?)", values)
        return True


def _row(connection: "DuckDBPyConnection", run_id: str) -> dict[str, Any]:
    return as_dicts(connection, "SELECT * FROM runs WHERE run_id = ?", [run_id])[0]


def _revise(
    connection: "DuckDBPyConnection", run_id: str, values: Mapping[str, Any], origin: str
) -> dict[str, tuple[Any, Any]]:
    run = _row(connection, run_id)
    changes = {}
    for name, value in values.items():
        before, after = run.get(name), None if value is None else stored(name, value)
        if after is None or after == before:
            continue
        if before is not None and BY_NAME[name].role == "metric":
            raise measured(name, before)
        changes[name] = (before, after)
    if changes:
        _write_revision(connection, run_id, run.get("provenance", {}), changes, origin)
    return changes


def measured(name: str, before: Any) -> UsageError:
    """The refusal to type over what a file measured."""
    hint = "submit the file that holds the other value as a run of its own"
    return UsageError(f"--set {name}", f"the measured value {before}", "found another one", hint)


def _write_revision(
    connection: "DuckDBPyConnection",
    run_id: str,
    provenance: dict[str, str],
    changes: Mapping[str, tuple[Any, Any]],
    origin: str,
) -> None:
    """Write the revision rows and the new current values."""
    rows = connection.execute("SELECT coalesce(max(number), 0) FROM revisions WHERE run_id = ?", [run_id]).fetchall()
    number, now = rows[0][0] + 1, utc_now()
    for name, (before, after) in changes.items():
        old, new = (None if value is None else json.dumps(value) for value in (before, after))
        connection.execute("INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?)", [run_id, number, now, name, old, new])
        if name in VALUE_NAMES:
            connection.execute(f"UPDATE runs SET {name} = ? WHERE run_id = ?", [after, run_id])
        else:
            connection.execute("DELETE FROM extras WHERE run_id = ? AND name = ?", [run_id, name])
            row = extra_row(run_id, name, after)
            values = [run_id, name, row.get("number"), row.get("text")]
            connection.execute("INSERT INTO extras VALUES (?, ?, ?, ?)", values)
    marked = provenance | dict.fromkeys(changes, origin)
    connection.execute("UPDATE runs SET provenance = ? WHERE run_id = ?", [json.dumps(marked), run_id])


def withdraw(run_id: str, reason: str, path: Path | None = None) -> str:
    """Take a run out of every question; it stays stored and can come back. Returns the whole id."""
    with writing(path) as connection:
        full = resolve(connection, run_id)
        if _is_withdrawn(connection, full):
            raise UsageError(f"run {run_id}", "a run that counts", "found it withdrawn already", "nvdash reinstate RUN")
        connection.execute("UPDATE runs SET withdrawn_at = ? WHERE run_id = ?", [utc_now(), full])
        connection.execute("INSERT INTO audit VALUES (?, 'withdraw', ?, ?)", [utc_now(), full, reason])
        return full


def reinstate(run_id: str, reason: str, path: Path | None = None) -> str:
    """Bring a withdrawn run back. Returns the whole id."""
    with writing(path) as connection:
        full = resolve(connection, run_id)
        if not _is_withdrawn(connection, full):
            raise UsageError(f"run {run_id}", "a withdrawn run", "found it counting", "nothing to do")
        reinstate_row(connection, full, reason)
        return full


def purge(run_id: str, reason: str, path: Path | None = None) -> str:
    """Remove a run or a smoke report for good; only the audit row remains. Returns the whole id.

    The file is written anew, because a database keeps the bytes of a deleted row until it needs the space.
    """
    if not reason.strip():
        raise UsageError("--reason", "why this run must not be kept", "found nothing", "the audit row keeps the reason")
    with writing(path) as connection:
        full = _smoke_report(connection, run_id) or resolve(connection, run_id)
        for table in ("runs", "revisions", *SIDE_TABLES):
            connection.execute(f"DELETE FROM {table} WHERE run_id = ?", [full])
        connection.execute("DELETE FROM smoke WHERE smoke_id = ?", [full])
        connection.execute("INSERT INTO audit VALUES (?, 'purge', ?, ?)", [utc_now(), full, reason])
    rewrite(path or store_path())
    return full


def _smoke_report(connection: "DuckDBPyConnection", smoke_id: str) -> str | None:
    """The one smoke report whose id begins so, if there is exactly one."""
    query = "SELECT smoke_id FROM smoke WHERE starts_with(smoke_id, ?)"
    found = connection.execute(query, [smoke_id.strip().lower()]).fetchall() if len(smoke_id) >= SHOWN_DIGITS else []
    return str(found[0][0]) if len(found) == 1 else None


def _is_withdrawn(connection: "DuckDBPyConnection", run_id: str) -> bool:
    rows = connection.execute("SELECT withdrawn_at IS NOT NULL FROM runs WHERE run_id = ?", [run_id]).fetchall()
    return bool(rows[0][0])


def note(action: str, about: str, path: Path | None = None) -> None:
    """Keep in the audit log that something was done to the store as a whole."""
    with writing(path) as connection:
        connection.execute("INSERT INTO audit VALUES (?, ?, NULL, ?)", [utc_now(), action, about])


def was_done(action: str, about: str, path: Path | None = None) -> bool:
    """Whether the audit log says that it was done."""
    with reading(path) as connection:
        query = "SELECT count(*) FROM audit WHERE action = ? AND reason = ?"
        return bool(connection.execute(query, [action, about]).fetchall()[0][0])


def purged(path: Path | None = None) -> set[str]:
    """The runs that were removed for good."""
    with reading(path) as connection:
        return {row[0] for row in connection.execute("SELECT run_id FROM audit WHERE action = 'purge'").fetchall()}
