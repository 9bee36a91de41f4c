"""`./run plan`: the four configurations as scripts that make comparable runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.check import support_flags
from nvdash.cli.output import Outcome, answers_json
from nvdash.errors import UsageError


@click.command()
@support_flags
@click.option("--max-model-len", type=click.IntRange(1), help="Longest request; the model's own by default.")
@click.option("--requests", type=click.Path(path_type=Path), help='Your own requests, JSON lines with "prompt".')
@click.option("--out", type=click.Path(path_type=Path), help="Write the scripts into this new folder.")
@answers_json
def command(out: Path | None, **flags: Any) -> Outcome:
    """Plan wide/wide, weights only, cache only and both on one backend, with as deployed as a fifth."""
    from nvdash.answers import plan as answers

    answer = answers.plan(flags)
    if out is not None:
        write(answer, out)
    return answer, answers.exit_code(answer), lines


def write(answer: Mapping[str, Any], out: Path) -> None:
    """Write the scripts of a plan into a new folder."""
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"--out {out}", "an empty or a new folder", "found files in it", "name another folder")
    for row in answer["scripts"]:
        if row["script"]:
            path = out / row["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(row["script"], encoding="utf-8")
            path.chmod(0o755)


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """The backend, the cells, what to run in which order, and how far the plan has come."""
    yield answer["sentence"]
    yield ""
    for cell in answer["cells"]:
        seen = cell["verdict"] if cell["known_to_run"] else f"unknown: {cell['reason'] or 'nobody has read or run it'}"
        place = f"{cell['checkpoint'] or 'no checkpoint'}, {cell['cache']} cache"
        yield f"{cell['label']}: {place}. {cell['empty_because'] or seen}"
    yield ""
    for row in answer["sets"]:
        files = [script["file"] for script in answer["scripts"] if script["set"] == row["set"] and script["file"]]
        yield f"{row['set']}: {row['means']}"
        yield from (f"  bash {file}" for file in files)
    yield ""
    load = answer["workload"]
    loads = ", ".join(map(str, load["concurrency"]))
    tasks = ", ".join(load["tasks"].values())
    yield f"Workload {load['name']} at concurrency {loads}, {load['repeats']} repeats each; tasks: {tasks}"
    for row in answer["checklist"]:
        mark = "✓" if row["complete"] else "·"
        yield f"{mark} {row['set']}, {row['label']}, concurrency {row['concurrency']}: {row['done']}"
    yield from (f"Note: {note}" for note in answer["notes"])
