"""`./run export`: everything that is stored, as files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json


@click.command()
@click.option("--format", "form", type=click.Choice(["csv", "json", "parquet"]), default="csv", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("nvdash-export"), show_default=True)
@answers_json
def command(form: str, out: Path) -> Outcome:
    """Write every table into a new folder, units in the headers; ./run import reads it back."""
    from nvdash.answers import results

    return results.export(form, out), 0, lines


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """The files with their number of rows."""
    yield f"Wrote {len(answer['run_ids'])} runs to {answer['folder']}:"
    yield from (f"  {file}: {count:,} rows" for file, count in answer["rows"].items())
    yield f"Read it into another store: NVDASH_STORE=… ./run import {answer['folder']}"
