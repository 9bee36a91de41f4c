"""`./run submit`: store the runs of result files, logs, scrapes, traces and smoke reports."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.figures import figure
from nvdash.cli.mapping import mapped, mapping_flag
from nvdash.cli.output import Outcome, answers_json
from nvdash.errors import UsageError


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """`key=value` texts as a mapping."""
    split = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {text}", "key=value", f"found {text!r}", 'for example --set gpu="RTX 5090"')
        split[name.strip()] = value
    return split


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--set", "typed", multiple=True, metavar="KEY=VALUE", help="What no file states; unknown is an answer.")
@click.option("--sibling", type=click.Path(path_type=Path), help="Same model with a 16-bit cache, or its config.json.")
@mapping_flag
@click.option("--dry-run", is_flag=True, help="Show what would be stored, beside the nearest run; store nothing.")
@answers_json
def command(
    files: tuple[Path, ...], typed: tuple[str, ...], sibling: Path | None, mapping: tuple[str, ...], dry_run: bool
) -> Outcome:
    """Store the runs of these files, all of one run or server; submitting twice adds nothing.

    Prompts, generated texts, keys, host names and absolute paths are never stored.
    """
    from nvdash.answers import submission

    columns = mapped(mapping)
    if dry_run:
        answer = submission.preview(files, pairs(typed), sibling=sibling, mapping=columns)
        return answer, 0, preview_lines
    return submission.submit(files, pairs(typed), sibling=sibling, mapping=columns), 0, lines


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """What was stored, what was there before, what is still open."""
    yield from (f"✓ Stored as run {run}." for run in answer["added"])
    yield from (f"This run is already stored as {run}." for run in answer["duplicates"])
    yield from (f"Run {run} was withdrawn and counts again." for run in answer["reinstated"])
    yield from (f"✓ Stored as smoke report {row}." for row in answer["smoke"]["added"])
    yield from (f"This smoke report is already stored as {row}." for row in answer["smoke"]["duplicates"])
    for run, fields in answer["revised"].items():
        if fields:
            yield f"Run {run} now says: {', '.join(fields)}."
    yield from (f"▲ {text}" for text in answer["warnings"])
    yield from missing_lines(answer["missing"])
    if answer["added"]:
        yield f"Take it back: ./run withdraw {answer['added'][0]}"


def missing_lines(missing: Iterable[Mapping[str, str]]) -> Iterable[str]:
    """The open questions, as flags to answer them with."""
    names = [row["field"] for row in missing]
    if names:
        yield f"Not in any file: {', '.join(names)}."
        yield f"Add what you know: ./run submit … --set {names[0]}=…   (unknown stays unknown)"


def preview_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """The files as they were recognised, and every run beside the nearest stored one."""
    for row in answer["files"]:
        told = ", ".join(row["gives"]) or (row["error"]["found"] if "error" in row else "nothing to store")
        yield f"{row['file']}: {row['result']}, {row['format'] or 'no known format'}: {told}"
    for run in answer["runs"]:
        yield from _run_lines(run)
    if answer["num_runs"] > len(answer["runs"]):
        yield f"... {answer['num_runs'] - len(answer['runs'])} more runs"
    yield from (f"▲ {text}" for text in answer["warnings"])
    yield from missing_lines(answer["missing"])
    yield "Nothing was stored."


def _run_lines(run: Mapping[str, Any]) -> Iterable[str]:
    near = run["nearest"]
    closest = near["run_id"] if near else "none of this model and GPU"
    yield f"Run {run['run_id']} ({run['in_store']}), nearest {closest}:"
    for row in run["rows"]:
        beside = "" if row["nearest"] is None else f"   nearest {figure(row['nearest'])} ({row['ratio']:.2f} ×)"
        yield f"  {row['label']}: {figure(row['this'])}{beside}"
    if near and near["differs_in"]:
        yield f"  differs in: {', '.join(near['differs_in'])}"
