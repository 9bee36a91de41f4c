"""`./run reinstate`: bring a withdrawn run back."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json


@click.command()
@click.argument("run")
@click.option("--reason", default="", help="Kept in the audit log.")
@answers_json
def command(run: str, reason: str) -> Outcome:
    """Bring a withdrawn run back into every question."""
    from nvdash.answers import results

    return results.reinstate(run, reason), 0, lines


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """What happened."""
    yield f"Run {answer['run_ids'][0]} counts again."
