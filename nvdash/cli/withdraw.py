"""`./run withdraw`: take a run out of every question; it can come back."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json


@click.command()
@click.argument("run")
@click.option("--reason", default="", help="Kept in the audit log.")
@answers_json
def command(run: str, reason: str) -> Outcome:
    """Take a run out of every question; it stays stored and can be reinstated."""
    from nvdash.answers import results

    return results.withdraw(run, reason), 0, lines


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """What happened, and which comparisons lose a configuration."""
    yield f"Run {answer['run_ids'][0]} no longer counts. Bring it back: ./run reinstate {answer['run_ids'][0]}"
    for row in answer["comparisons_lost"]:
        system = row["system"]
        where = f"{system['model_base']} on {system['gpu']}, {system['framework']} {system['version']}"
        yield f"▲ {where}: {row['phase']} loses “{row['loses']}” ({row['workload'] or 'no workload'})."
