"""`doctor`: what this installation has, and where."""

from collections.abc import Iterator
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json


@click.command()
@answers_json
def command() -> Outcome:
    """Paths, locks, matrix digest, newest releases and their age, torch, GPU, interpreters."""
    from nvdash.answers.doctor import doctor

    answer = doctor()
    return answer, 0 if answer["store"]["error"] is None else 2, lines


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """The answer as text, one thing a line."""
    yield f"nvdash {answer['nvdash_version']}, matrix {answer['matrix_digest']}"
    yield f"Python {answer['python']['version']} at {answer['python']['executable']}"
    yield "libraries: " + ", ".join(f"{name} {found or 'not installed'}" for name, found in answer["libraries"].items())
    store = answer["store"]
    yield f"store: {store['path']}, {store['state']}" + (f", {store['runs']} runs" if "runs" in store else "")
    for row in answer["matrix"]:
        age = f"{row['age_days']} days old" if row["age_days"] is not None else "date unknown"
        yield f"{row['framework']}: newest release read is {row['newest_release'] or 'none'} ({age})"
    devices = answer["gpus"]
    yield "GPUs: " + (", ".join(devices["devices"]) if devices["devices"] else f"none seen ({devices['reason']})")
    for name, found in answer["interpreters"].items():
        yield f"{name}: {found['path'] or ''} {found['state']}".replace(":  ", ": ")
    yield f"Chromium for browser tests: {answer['chromium'] or 'none'}"
