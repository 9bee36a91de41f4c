"""Everything out of the store and into another one: Parquet, CSV or JSON, one file per table, units in the headers.

A text that a spreadsheet would run as a formula gets an apostrophe in front, and loses it again on the way in.
"""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.errors import UsageError, did_you_mean
from nvdash.store.adding import SIDE_TABLES, Added, merge
from nvdash.store.columns import BY_NAME
from nvdash.store.connection import reading, writing
from nvdash.store.failure import StoreError
from nvdash.store.migrations import quoted, steps, utc_now
from nvdash.store.upkeep import TABLES
from nvdash.store.values import MAY_BE_NEGATIVE, MAY_BE_UNLIMITED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WRITERS = {
    "parquet": "(FORMAT parquet, COMPRESSION zstd)",
    "csv": "(FORMAT csv, HEADER, NULL '')",
    "json": "(FORMAT json, ARRAY true)",
}
FORMULA = r"'^\s*[=+@''-]|^[\t\r\n]'"
LIMIT_BYTES = 2 * 2**30
MANIFEST = "manifest.json"


def export(folder: Path, form: str, path: Path | None = None) -> dict[str, Any]:
    """Write every table into a folder; says which files and how many rows each has."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(str(folder), "an empty or a new folder", "found files in it", "name another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    with reading(path) as connection:
        for table in TABLES:
            columns = ", ".join(_outgoing(name, kind, form) for name, kind in types(connection, table).items())
            query = f"COPY (SELECT {columns} FROM {table}) TO {quoted(folder / f'{table}.{form}')} {WRITERS[form]}"
            rows[f"{table}.{form}"] = int(connection.execute(query).fetchall()[0][0])
        ids = [row for (row,) in connection.execute("SELECT run_id FROM runs ORDER BY submitted_at, run_id").fetchall()]
    manifest = {"schema": len(steps()), "format": form, "exported_at": f"{utc_now().isoformat()}Z", "rows": rows}
    units = {c.name: {"unit": c.unit, "label": c.label, "role": c.role} for c in BY_NAME.values()}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "columns": units}, indent=1), encoding="utf-8")
    return {"run_ids": ids, "folder": str(folder), **manifest}


def types(connection: "DuckDBPyConnection", table: str) -> dict[str, str]:
    """The columns of a table as the store has them."""
    query = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index"
    return dict(connection.execute(query, [table]).fetchall())


def _outgoing(name: str, kind: str, form: str) -> str:
    """One column of an export: its value, made safe for a spreadsheet in CSV, under its header."""
    value = name
    if form == "csv" and kind == "VARCHAR":
        value = f"CASE WHEN regexp_matches({name}, {FORMULA}) THEN '''' || {name} ELSE {name} END"
    if form == "json" and name in MAY_BE_UNLIMITED:
        value = f"CASE WHEN isinf({name}) THEN 'inf' ELSE {name}::VARCHAR END"
    return f'{value} AS "{_header(name)}"'


def import_(folder: Path, path: Path | None = None) -> Added:
    """Read an exported folder into the store, in one transaction; runs that are there already are left alone."""
    manifest = _manifest(folder)
    with writing(path) as connection:
        for table in TABLES:
            _stage(connection, folder, table, manifest["format"])
        _check(connection)
        order = [row for (row,) in connection.execute("SELECT run_id FROM staged_runs").fetchall()]
        added = merge(connection, ("runs", "revisions", *SIDE_TABLES), dict.fromkeys(order), bring_back=False)
        connection.execute("INSERT INTO smoke SELECT * FROM staged_smoke ON CONFLICT DO NOTHING")
        connection.execute("INSERT INTO audit SELECT * FROM staged_audit EXCEPT SELECT * FROM audit")
        return added


def _manifest(folder: Path) -> dict[str, Any]:
    """What an export says of itself; a folder that is none, or of a newer schema, is refused."""
    hint = "name the folder that nvdash export --out wrote"
    try:
        with (folder / MANIFEST).open(encoding="utf-8") as file:
            manifest = json.loads(file.read(1_000_000))
        form, schema = manifest["format"], int(manifest["schema"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as exc:
        raise UsageError(str(folder), f"an exported folder with {MANIFEST}", "found none that reads", hint) from exc
    if form not in WRITERS or schema > len(steps()):
        found = f"found {str(form)[:20]!r} of schema {schema}"
        raise StoreError(str(folder), f"an export of schema {len(steps())} or older", found, "update nvdash")
    return {"format": form}


def _stage(connection: "DuckDBPyConnection", folder: Path, table: str, form: str) -> None:
    """Read one file of an export into a temporary table that has the columns of the store's own."""
    import duckdb

    file, known = folder / f"{table}.{form}", types(connection, table)
    if not file.is_file() or file.stat().st_size > LIMIT_BYTES:
        raise UsageError(str(file), f"a file of at most {LIMIT_BYTES >> 30} GiB", "found none", "export again")
    try:
        source = _source(file, form, known)
        connection.execute(f"CREATE TEMP TABLE staged_{table} AS {_incoming(connection, file, source, known, form)}")
    except (duckdb.Error, UnicodeDecodeError) as exc:
        found = f"found: {str(exc).splitlines()[0][:160]}"
        raise UsageError(str(file), f"the table {table} as nvdash export writes it", found, "export again") from exc


def _header(name: str) -> str:
    """The name of a column in an exported file."""
    return BY_NAME[name].header if name in BY_NAME else name


def _source(file: Path, form: str, known: dict[str, str]) -> str:
    """The table function that reads one exported file; CSV as text, JSON by the store's own types."""
    if form == "csv":
        with file.open(encoding="utf-8", newline="") as opened:
            headers = next(csv.reader([opened.readline(100_000)]), [])
        dialect = "delim=',', quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false"
        return f"read_csv({quoted(file)}, header=true, auto_detect=false, {dialect}, columns={_struct(headers, {})})"
    if form == "json":
        headers = [_header(name) for name in known]
        return f"read_json({quoted(file)}, format='array', columns={_struct(headers, known)})"
    return f"read_parquet({quoted(file)})"


def _struct(headers: Iterable[str], known: dict[str, str]) -> str:
    """Column names and types as DuckDB's readers take them."""
    named = ((header.replace("'", "''"), known.get(header.split(" [")[0], "VARCHAR")) for header in headers)
    return "{" + ", ".join(f"'{header}': '{kind}'" for header, kind in named) + "}"


def _incoming(connection: "DuckDBPyConnection", file: Path, source: str, known: dict[str, str], form: str) -> str:
    """The query that turns headers into columns; a header that is no column is refused."""
    taken = {}
    for header, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall():
        name = header.split(" [")[0]
        if name not in known:
            raise UsageError(str(file), "columns of the store", f"found {header[:60]!r}", did_you_mean(name, known))
        value = '"' + header.replace('"', '""') + '"'
        if form == "csv" and known[name] == "VARCHAR":
            value = f"CASE WHEN starts_with({value}, '''') THEN {value}[2:] ELSE {value} END"
        taken[name] = f"({value})::{known[name]} AS {name}"
    columns = ", ".join(taken.get(name, f"NULL::{kind} AS {name}") for name, kind in known.items())
    return f"SELECT {columns} FROM {source}"


def _check(connection: "DuckDBPyConnection") -> None:
    """Refuse a run without an id of ours, a number that is none, and a negative measurement."""
    tests = ["run_id IS NULL OR NOT regexp_full_match(run_id, '[0-9a-f]{64}')"]
    for column in BY_NAME.values():
        if column.type == "DOUBLE":
            tests.append(f"isnan({column.name})")
            if column.name not in MAY_BE_UNLIMITED:
                tests.append(f"isinf({column.name})")
        if column.type in ("DOUBLE", "BIGINT") and column.name not in MAY_BE_NEGATIVE:
            tests.append(f"{column.name} < 0")
    query = f"SELECT run_id FROM staged_runs WHERE {' OR '.join(f'({test})' for test in tests)} LIMIT 1"
    bad = connection.execute(query).fetchall()
    if bad:
        found = f"found run {str(bad[0][0])[:16]!r} with another value"
        raise UsageError("runs", "64 hex digits as the id and finite numbers from 0", found, "export again")
