"""`./run import`: read an exported folder into this store."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json


@click.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@answers_json
def command(folder: Path) -> Outcome:
    """Read a folder that ./run export wrote; runs that are stored already are left alone."""
    from nvdash.answers import results

    return results.import_(folder), 0, lines


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """How much was new."""
    yield f"{len(answer['added'])} runs added, {len(answer['duplicates'])} were stored already."
