"""Adding runs: validated, deduplicated by what was measured, in one transaction."""

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nvdash.store.columns import COLUMNS, VALUE_NAMES
from nvdash.store.connection import writing
from nvdash.store.migrations import quoted, utc_now
from nvdash.store.values import stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def _table(columns: str) -> dict[str, str]:
    """Column names and types of a table from their SQL."""
    return dict(column.split() for column in columns.split(", "))


SIDE_TABLES = {
    "extras": _table("run_id VARCHAR, name VARCHAR, number DOUBLE, text VARCHAR"),
    "quality": _table(
        "run_id VARCHAR, task VARCHAR, metric VARCHAR, filter VARCHAR, value DOUBLE, stderr DOUBLE, n_shot BIGINT, "
        "n_effective BIGINT, n_original BIGINT, higher_is_better BOOLEAN, is_group BOOLEAN, task_version VARCHAR, "
        "chat_template_sha VARCHAR, fewshot_as_multiturn BOOLEAN, context BIGINT"
    ),
    "kernels": _table("run_id VARCHAR, name VARCHAR, calls BIGINT, time_us DOUBLE, share_pct DOUBLE"),
    "samples": _table("run_id VARCHAR, task VARCHAR, metric VARCHAR, filter VARCHAR, sample VARCHAR, score DOUBLE"),
    "submissions": _table(
        "submitted_at TIMESTAMP, run_id VARCHAR, file VARCHAR, format VARCHAR, sha256 VARCHAR, bytes BIGINT"
    ),
}
"""The tables beside the wide one, as the migrations create them."""


_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class FileMark:
    """The file a run came from, as a submission remembers it: its base name, never its place."""

    name: str
    format: str
    sha256: str = ""
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class NewRun:
    """One run in normal form, ready to be stored."""

    run_id: str
    values: Mapping[str, Any]
    file: FileMark
    quality: Sequence[Mapping[str, Any]] = ()
    kernels: Sequence[Mapping[str, Any]] = ()
    samples: Sequence[Mapping[str, Any]] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    source: str = "run"


@dataclass(frozen=True, slots=True)
class Added:
    """What a submission changed; a run that was there before is a duplicate, a withdrawn one comes back."""

    added: tuple[str, ...]
    duplicates: tuple[str, ...]
    reinstated: tuple[str, ...]


def add(runs: Iterable[NewRun], path: Path | None = None, *, bring_back: bool = True) -> Added:
    """Store runs in one transaction; what is already stored is left alone, what was withdrawn comes back."""
    with staging(runs) as staged:
        if not staged.order:
            return Added((), (), ())
        with writing(path) as connection:
            return add_staged(connection, staged, bring_back=bring_back)


@contextmanager
def staging(runs: Iterable[NewRun]) -> Iterator["Staged"]:
    """Runs checked and written out, so that the store is held only while they are moved in."""
    with TemporaryDirectory(prefix="nvdash-") as folder:
        yield _write_staged(runs, Path(folder))


def add_staged(connection: "DuckDBPyConnection", staged: "Staged", *, bring_back: bool = True) -> Added:
    """Move staged runs in, as a part of a transaction."""
    for name, columns in staged.columns.items():
        connection.execute(f"CREATE TEMP TABLE staged_{name} AS {_select(staged.folder, name, columns)}")
    return merge(connection, staged.columns, staged.order, staged.repeated, bring_back=bring_back)


@dataclass(slots=True)
class Staged:
    """The files of one submission on their way in: run ids in order, repeats, and per table the columns with values."""

    folder: Path
    order: dict[str, None]
    repeated: dict[str, None]
    columns: dict[str, set[str]]


def _write_staged(runs: Iterable[NewRun], folder: Path) -> Staged:
    """Write the rows of every table as JSON lines: the one bulk path DuckDB reads fast without another library."""
    staged = Staged(folder, {}, {}, defaultdict(set))
    files = {name: (folder / f"{name}.jsonl").open("w", encoding="utf-8") for name in ("runs", *SIDE_TABLES)}
    now = utc_now().isoformat()
    marks: dict[FileMark, str] = {}
    try:
        for run in runs:
            if run.run_id in staged.order:
                staged.repeated[run.run_id] = None
                continue
            staged.order[run.run_id] = None
            for name, row in _rows(run, now):
                files[name].write(_encode(row) + "\n")
                staged.columns[name].update(row)
            if run.file not in marks:
                marks[run.file] = _encode(_submission(run.file, now))[1:]  # all but the run's id is the same
            files["submissions"].write(f'{{"run_id":{_encode(run.run_id)},{marks[run.file]}\n')
        staged.columns["submissions"].update(SIDE_TABLES["submissions"])
    finally:
        for file in files.values():
            file.close()
    return staged


def _rows(run: NewRun, now: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """One run as rows of the wide table and of the side tables."""
    wide: dict[str, Any] = {"run_id": run.run_id, "submitted_at": now, "source": run.source}
    if run.warnings:
        wide["warnings"] = json.dumps(list(run.warnings))
    if run.provenance:
        wide["provenance"] = json.dumps(dict(run.provenance))
    for name, value in run.values.items():
        if value is None:
            continue
        if name in VALUE_NAMES:
            wide[name] = stored(name, value)
        else:
            yield "extras", extra_row(run.run_id, name, value)
    yield "runs", wide
    for table, rows in (("quality", run.quality), ("kernels", run.kernels), ("samples", run.samples)):
        known = SIDE_TABLES[table]
        for row in rows:
            yield table, {"run_id": run.run_id, **{k: v for k, v in row.items() if k in known and v is not None}}


def _submission(mark: FileMark, now: str) -> dict[str, Any]:
    """A row of the submissions but for the run's id."""
    return {"submitted_at": now, "file": mark.name, "format": mark.format, "sha256": mark.sha256, "bytes": mark.bytes}


def extra_row(run_id: str, name: str, value: Any) -> dict[str, Any]:
    """A value without a column of its own: a number, or text (a list or a dict as JSON)."""
    if isinstance(value, bool | list | dict | tuple):
        return {"run_id": run_id, "name": name, "text": json.dumps(value)[:10_000]}
    kind = "number" if isinstance(value, int | float) else "text"
    return {"run_id": run_id, "name": name, kind: stored(name, value)}


def merge(
    connection: "DuckDBPyConnection",
    tables: Iterable[str],
    order: Iterable[str],
    repeated: Container[str] = (),
    *,
    bring_back: bool = True,
) -> Added:
    """Move what is new from the staged tables into the store and say what was not new."""
    connection.execute(
        "CREATE TEMP TABLE known AS SELECT run_id, withdrawn_at FROM runs SEMI JOIN staged_runs USING (run_id)"
    )
    known = connection.execute("SELECT run_id, withdrawn_at IS NOT NULL FROM known").fetchall()
    for name in tables:
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM staged_{name} ANTI JOIN known USING (run_id)")
    back = tuple(run_id for run_id, withdrawn in known if withdrawn and bring_back)
    for run_id in back:
        reinstate_row(connection, run_id, "submitted again")
    old = {run_id for run_id, _ in known}
    new = tuple(run_id for run_id in order if run_id not in old)
    return Added(new, tuple(run_id for run_id in order if run_id in old or run_id in repeated), back)


def _select(folder: Path, name: str, columns: Container[str]) -> str:
    """The staged rows of a table in these columns, typed."""
    types = SIDE_TABLES.get(name) or {column.name: column.type for column in COLUMNS}
    typed = ", ".join(f"{column}: '{kind}'" for column, kind in types.items() if column in columns)
    file = quoted(folder / f"{name}.jsonl")
    return f"SELECT * FROM read_json({file}, format='newline_delimited', columns={{{typed}}})"


def reinstate_row(connection: "DuckDBPyConnection", run_id: str, reason: str) -> None:
    """Bring a withdrawn run back, with an audit row."""
    connection.execute("UPDATE runs SET withdrawn_at = NULL WHERE run_id = ?", [run_id])
    connection.execute("INSERT INTO audit VALUES (?, 'reinstate', ?, ?)", [utc_now(), run_id, reason])
