"""One submission: its runs, what it adds to stored ones, what was typed and its smoke reports, whole or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.store.adding import Added, NewRun, add_staged, staging
from nvdash.store.connection import writing
from nvdash.store.lifecycle import attach, revise_in
from nvdash.store.smoke import SmokeRow, add_smoke_in

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Change:
    """What storing a submission did: runs, the fields that became revisions, smoke reports that are new and known."""

    runs: Added
    revised: Mapping[str, set[str]]
    smoke: tuple[list[str], list[str]]


def store_submission(
    new: Sequence[NewRun],
    typed: Mapping[str, Any],
    smoke: Iterable[SmokeRow] = (),
    *,
    bring_back: bool = True,
    path: Path | None = None,
) -> Change:
    """Store everything in one transaction; typed fields become the next revision of every run."""
    with staging(new) as staged, writing(path) as connection:
        added = add_staged(connection, staged, bring_back=bring_back) if new else Added((), (), ())
        revised = _revised(connection, new, typed, added.duplicates) if new else {}
        return Change(added, revised, add_smoke_in(connection, smoke))


def _revised(
    connection: "DuckDBPyConnection", new: Sequence[NewRun], typed: Mapping[str, Any], stored_before: Sequence[str]
) -> dict[str, set[str]]:
    """What later files add to runs that were stored before, then what was typed, then single scores."""
    before = set(stored_before)
    values = {run.run_id: run.values for run in new if run.run_id in before}
    completed = revise_in(connection, values, "later files", only_open=True) if values else {}
    said = revise_in(connection, {run.run_id: typed for run in new}, "typed") if typed else {}
    scored = {run.run_id for run in new if run.run_id in before and attach(connection, run.run_id, run.samples)}
    found: dict[str, set[str]] = {}
    for run_id, fields in (*completed.items(), *said.items(), *((run_id, ("samples",)) for run_id in scored)):
        found.setdefault(run_id, set()).update(fields)
    return found
