"""Reading runs back: one by its id, many by their values, their side rows and the store's revision."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.errors import UnknownError, UsageError
from nvdash.store.columns import BY_NAME
from nvdash.store.connection import look, reading, store_path
from nvdash.store.identity import SHOWN_DIGITS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE = 200
_revisions: dict[str, tuple[tuple[int, ...], int]] = {}
"""Per store: what its files looked like, and the revision they held."""


def revision(path: Path | None = None) -> int:
    """A number that grows with every write, for caches; the file is only opened when it changed."""
    place = path or store_path()
    cached = _revisions.get(str(place))
    if cached and cached[0] == look(place):
        return cached[1]
    with reading(place) as connection:
        number = int(connection.execute("SELECT revision FROM meta").fetchall()[0][0])
    _revisions[str(place)] = (look(place), number)
    return number


def find(
    filters: Mapping[str, Any] | None = None,
    *,
    withdrawn: bool = False,
    limit: int | None = PAGE,
    offset: int = 0,
    path: Path | None = None,
) -> list[dict[str, Any]]:
    """Runs whose columns equal the filters, newest first, as dicts without their unknown values."""
    with reading(path) as connection:
        return _page(connection, condition(filters or {}, withdrawn=withdrawn), limit, offset)


def of_files(digests: Sequence[str], path: Path | None = None) -> dict[str, list[str]]:
    """The ids of the runs that were stored from the files with these digests, by digest and in the file's order."""
    found: dict[str, list[str]] = {}
    with reading(path) as connection:
        query = "SELECT sha256, run_id FROM submissions WHERE sha256 IN (SELECT unnest(?)) ORDER BY rowid"
        for digest, run_id in connection.execute(query, [list(digests)]).fetchall():
            found.setdefault(digest, []).append(run_id)
    return found


def page(
    filters: Mapping[str, Any], *, withdrawn: bool = False, limit: int | None = PAGE, offset: int = 0
) -> tuple[list[dict[str, Any]], int]:
    """One page of `find`, and how many runs there are in all."""
    asked = condition(filters, withdrawn=withdrawn)
    with reading() as connection:
        return _page(connection, asked, limit, offset), _count(connection, asked)


def _page(
    connection: "DuckDBPyConnection", asked: tuple[str, list[Any]], limit: int | None, offset: int
) -> list[dict[str, Any]]:
    """The newest rows; which ones is decided on two columns before the wide rows are read."""
    where, parameters = asked
    newest = "ORDER BY submitted_at DESC, run_id"
    if limit is not None:
        chosen = f"SELECT rowid FROM runs WHERE {where} {newest} LIMIT {int(limit)} OFFSET {int(offset)}"
        where = f"rowid IN ({chosen})"
    return as_dicts(connection, f"SELECT * FROM runs WHERE {where} {newest}", parameters)


def _count(connection: "DuckDBPyConnection", asked: tuple[str, list[Any]]) -> int:
    return int(connection.execute(f"SELECT count(*) FROM runs WHERE {asked[0]}", asked[1]).fetchall()[0][0])


def count(filters: Mapping[str, Any] | None = None, *, withdrawn: bool = False, path: Path | None = None) -> int:
    """How many runs the filters leave."""
    with reading(path) as connection:
        return _count(connection, condition(filters or {}, withdrawn=withdrawn))


def get(run_id: str, path: Path | None = None) -> dict[str, Any]:
    """One run with everything beside it: rare values, quality rows, kernels, revisions, files, audit."""
    with reading(path) as connection:
        full = resolve(connection, run_id)
        run = as_dicts(connection, "SELECT * FROM runs WHERE run_id = ?", [full])[0]
        for table in ("quality", "kernels", "revisions", "submissions", "audit"):
            run[table] = as_dicts(connection, f"SELECT * EXCLUDE (run_id) FROM {table} WHERE run_id = ?", [full])
        rows = connection.execute("SELECT name, number, text FROM extras WHERE run_id = ?", [full]).fetchall()
    run["extras"] = {name: text if number is None else number for name, number, text in rows}
    return run


def scores_of(connection: "DuckDBPyConnection", run_ids: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """The quality rows of these runs that have some, with the scores of single samples where they were handed in."""
    among = "run_id IN (SELECT unnest(?::VARCHAR[]))"
    quality = f"SELECT * FROM quality WHERE {among} ORDER BY task, metric, filter"
    samples = f"SELECT run_id, task, metric, filter, sample, score FROM samples WHERE {among}"
    wanted = [list(run_ids)]
    scored: dict[tuple[str | None, ...], dict[str, float]] = {}
    for *what, sample, score in connection.execute(samples, wanted).fetchall():
        scored.setdefault(tuple(what), {})[sample] = score
    found: dict[str, list[dict[str, Any]]] = {}
    for row in as_dicts(connection, quality, wanted):
        run_id = row.pop("run_id")
        of_row = scored.get((run_id, row["task"], row["metric"], row.get("filter")))
        found.setdefault(run_id, []).append({**row, "samples": of_row})
    return found


def resolve(connection: "DuckDBPyConnection", run_id: str) -> str:
    """The whole id for its first digits; an unknown or ambiguous beginning is refused."""
    given = run_id.strip().lower()
    if len(given) < SHOWN_DIGITS or not all(digit in "0123456789abcdef" for digit in given):
        raise UsageError(f"run {run_id!r}", f"at least {SHOWN_DIGITS} hex digits", "found another text", "nvdash runs")
    found = connection.execute("SELECT run_id FROM runs WHERE starts_with(run_id, ?) LIMIT 2", [given]).fetchall()
    if not found:
        raise UnknownError(f"run {run_id}", "a stored run", "found none with this id", "nvdash runs lists them")
    if len(found) > 1:
        raise UsageError(f"run {run_id}", "one run", "found several that begin so", "give more digits")
    return str(found[0][0])


def condition(filters: Mapping[str, Any], *, withdrawn: bool = False) -> tuple[str, list[Any]]:
    """A WHERE clause with bound parameters; a list means any of, a None means unknown."""
    parts, parameters = (["TRUE"] if withdrawn else ["withdrawn_at IS NULL"]), []
    for name, value in filters.items():
        if name not in BY_NAME:
            raise UsageError(f"filter {name!r}", "a column of the store", "found another word", "nvdash runs --json")
        if value is None:
            parts.append(f"{name} IS NULL")
        elif isinstance(value, list | tuple):
            parts.append(f"list_contains(?::{BY_NAME[name].type}[], {name})")
            parameters.append(list(value))
        else:
            parts.append(f"{name} = ?")
            parameters.append(value)
    return " AND ".join(parts), parameters


def as_dicts(connection: "DuckDBPyConnection", query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Rows as dicts: unknown values left out, times as ISO text, JSON columns opened."""
    cursor = connection.execute(query, list(parameters))
    names = [column[0] for column in cursor.description]
    return [_as_dict(names, row) for row in cursor.fetchall()]


def _as_dict(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    opened: dict[str, Any] = {}
    for name, value in zip(names, row, strict=True):
        if value is None:
            continue
        if name in ("warnings", "provenance"):
            opened[name] = json.loads(value)
        elif value == math.inf:
            opened[name] = "inf"
        else:
            opened[name] = value.isoformat() if hasattr(value, "isoformat") else value
    return opened
