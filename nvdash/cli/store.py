"""`./run store`: look after the database file."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json


@click.group()
def command() -> None:
    """Look after the store: where it is, its backup, its upkeep, and what must not be kept."""


@command.command()
@answers_json
def status() -> Outcome:
    """Where the store is, its schema, and how many rows each table has."""
    from nvdash.answers import results

    return results.store_status(), 0, lines


@command.command()
@answers_json
def migrate() -> Outcome:
    """Bring an older store to this schema; a backup is made first."""
    from nvdash.answers import results

    return results.store_migrate(), 0, lines


@command.command()
@click.option("--out", type=click.Path(path_type=Path), help="A new file; beside the store by default.")
@answers_json
def backup(out: Path | None) -> Outcome:
    """Copy the whole store into one file that opens like the store itself."""
    from nvdash.answers import results

    return results.store_backup(out), 0, lines


@command.command()
@answers_json
def maintain() -> Outcome:
    """Fold the log into the file, refresh statistics, and count side rows without a run."""
    from nvdash.answers import results

    return results.store_maintain(), 0, lines


@command.command()
@click.argument("run")
@click.option("--reason", required=True, help="Why it must not be kept; stays in the audit log.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@answers_json
def purge(run: str, reason: str, yes: bool) -> Outcome:
    """Remove one run for good, with everything beside it. This cannot be undone."""
    from nvdash.answers import results

    if not yes:
        click.confirm(f"Remove run {run} for good?", abort=True, err=True)
    return results.purge(run, reason), 0, purged


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Every part of the answer on its line."""
    for name, value in answer.items():
        if name in ("schema", "nvdash_version", "matrix_digest", "question"):
            continue
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} {count:,}" for key, count in value.items())
        yield f"{name}: {value}"


def purged(answer: Mapping[str, Any]) -> Iterable[str]:
    """What happened, and where copies may be left."""
    yield from (f"▲ {text}" for text in answer["warnings"])
    yield f"Run {answer['run_ids'][0]} was removed for good; the audit log keeps that and why."
