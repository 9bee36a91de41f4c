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


Changes = dict[str, tuple[Any, Any]]
"""What a revision changed: field to the values before and after."""


def revise(
    run_ids: Sequence[str], values: Mapping[str, Any], origin: str, *, path: Path | None = None
) -> dict[str, Changes]:
    """Record later knowledge about runs as their next revision; says per run what changed, before and after.

    A measured value that a run already has is never replaced: its file outranks what is said about it.
    """
    with writing(path) as connection:
        return revise_in(connection, {resolve(connection, run_id): values for run_id in run_ids}, origin)


def complete(missing: Mapping[str, Mapping[str, Any]], origin: str, path: Path | None = None) -> dict[str, Changes]:
    """Fill what stored runs did not know, from later files of the same runs; what they know stays."""
    with writing(path) as connection:
        return revise_in(connection, missing, origin, only_open=True)


def revise_in(
    connection: "DuckDBPyConnection",
    wanted: Mapping[str, Mapping[str, Any]],
    origin: str,
    *,
    only_open: bool = False,
) -> dict[str, Changes]:
    """Revise runs by their whole ids, as a part of a transaction; `only_open` leaves alone what a run knows."""
    query = "SELECT * FROM runs SEMI JOIN (SELECT unnest(?::VARCHAR[]) AS run_id) USING (run_id)"
    rows = {row["run_id"]: row for row in as_dicts(connection, query, [list(wanted)])}
    if only_open:
        wanted = {run_id: _open_values(rows[run_id], values) for run_id, values in wanted.items()}
    done = {run_id: _changes(rows[run_id], values) for run_id, values in wanted.items()}
    changed = {run_id: changes for run_id, changes in done.items() if changes}
    if changed:
        _write_revisions(connection, changed)
        told = {run_id: rows[run_id].get("provenance", {}) for run_id in changed}
        marks = {run_id: json.dumps(told[run_id] | dict.fromkeys(changed[run_id], origin)) for run_id in changed}
        _set(connection, "provenance", marks)
    return done


def _open_values(run: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of columns that the run does not know."""
    return {name: value for name, value in values.items() if name in VALUE_NAMES and name not in run}


def _changes(run: Mapping[str, Any], values: Mapping[str, Any]) -> Changes:
    """What these values change in a run; a measured value is not replaced."""
    changes: Changes = {}
    for name, value in values.items():
        before, after = run.get(name), None if value is None else stored(name, value)
        if after is None or after == before:
            continue
        if before is not None and BY_NAME[name].role == "metric":
            raise measured(name, before)
        changes[name] = (before, after)
    return changes


def attach(connection: "DuckDBPyConnection", run_id: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Give a stored run the scores of its single samples, unless it has some; says whether it did."""
    query = "SELECT count(*) FROM samples WHERE run_id = ?"
    if not samples or connection.execute(query, [run_id]).fetchall()[0][0]:
        return False
    values = [[run_id, *(row.get(name) for name in list(SIDE_TABLES["samples"])[1:])] for row in samples]
    connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?)", values)
    return True


def measured(name: str, before: Any) -> UsageError:
    """The refusal to type over what a file measured."""
    hint = "submit the file that holds the other value as a run of its own"
    return UsageError(f"--set {name}", f"the measured value {before}", "found another one", hint)


def _write_revisions(connection: "DuckDBPyConnection", changed: Mapping[str, Changes]) -> None:
    """Write the revision rows and the new current values, column by column for all runs at once."""
    ids = list(changed)
    query = "SELECT run_id, max(number) FROM revisions WHERE run_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY run_id"
    numbers = dict(connection.execute(query, [ids]).fetchall())
    rows = [
        (run_id, numbers.get(run_id, 0) + 1, name, *(None if value is None else json.dumps(value) for value in pair))
        for run_id, changes in changed.items()
        for name, pair in changes.items()
    ]
    listed = [list(column) for column in zip(*rows, strict=True)]
    unnested = "SELECT unnest(?::VARCHAR[]), unnest(?::INTEGER[]), ?, unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
    connection.execute(f"INSERT INTO revisions {unnested} unnest(?::VARCHAR[])", [*listed[:2], utc_now(), *listed[2:]])
    by_name: dict[str, dict[str, Any]] = {}
    for run_id, changes in changed.items():
        for name, (_, after) in changes.items():
            by_name.setdefault(name, {})[run_id] = after
    for name, values in by_name.items():
        (_set if name in VALUE_NAMES else _set_extra)(connection, name, values)


def _set(connection: "DuckDBPyConnection", name: str, values: Mapping[str, Any]) -> None:
    """Set one column of the wide row, by run."""
    new = f"SELECT unnest(?::VARCHAR[]) AS run_id, unnest(?::{BY_NAME[name].type}[]) AS value"
    query = f"UPDATE runs SET {name} = new.value FROM ({new}) AS new WHERE runs.run_id = new.run_id"
    connection.execute(query, [list(values), list(values.values())])


def _set_extra(connection: "DuckDBPyConnection", name: str, values: Mapping[str, Any]) -> None:
    """Set a value without a column of its own, by run."""
    connection.execute(
        "DELETE FROM extras WHERE name = ? AND list_contains(?::VARCHAR[], run_id)", [name, list(values)]
    )
    rows = [extra_row(run_id, name, after) for run_id, after in values.items()]
    columns = [[row.get(part) for row in rows] for part in ("run_id", "number", "text")]
    query = "INSERT INTO extras SELECT unnest(?::VARCHAR[]), ?, unnest(?::DOUBLE[]), unnest(?::VARCHAR[])"
    connection.execute(query, [columns[0], name, *columns[1:]])


def withdraw(run_id: str, reason: str, path: Path | None = None) -> str:
    """Take a run out of every question; it stays stored and can come back. Returns the whole id."""
    return withdraw_all([run_id], reason, path)[0]


def withdraw_all(run_ids: Sequence[str], reason: str, path: Path | None = None) -> list[str]:
    """Take all of these runs out, or none. Returns the whole ids."""
    with writing(path) as connection:
        return [_withdraw(connection, run_id, reason) for run_id in run_ids]


def _withdraw(connection: "DuckDBPyConnection", run_id: str, reason: str) -> str:
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
