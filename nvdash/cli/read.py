"""`./run read`: what does this file say, in one vocabulary; nothing is stored."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.mapping import mapped, mapping_flag
from nvdash.cli.output import Outcome, answers_json


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--sibling", type=click.Path(path_type=Path), help="The same model with a known cache, or its config.json."
)
@mapping_flag
@answers_json
def command(files: tuple[Path, ...], sibling: Path | None, mapping: tuple[str, ...]) -> Outcome:
    """What do these files say: benchmark results, evaluations, server logs, scrapes, kernel traces."""
    from nvdash.answers.read import read

    answer = read(files, sibling, mapped(mapping))
    return answer, 2 if any("error" in item for item in answer) else 0, lines


def lines(answer: list[dict[str, Any]]) -> Iterable[str]:
    """The answer in words, one block per file."""
    for item in answer:
        yield f"{item['file']}: {item['format'] or 'refused'}"
        yield from _refusal(item["error"]) if "error" in item else _content(item)
        yield ""


def _refusal(error: Mapping[str, str]) -> Iterable[str]:
    yield f"  expected {error['expected']}, {error['found']}"
    if error["hint"]:
        yield f"  hint: {error['hint']}"


def _content(item: Mapping[str, Any]) -> Iterable[str]:
    from nvdash.readers.fields import FIELDS

    for number, run in enumerate(item["runs"][:MAX_ROWS], 1):
        yield f"  Run {number} of {len(item['runs'])}"
        for name, value in run.items():
            if value is not None and not isinstance(value, dict):
                known = FIELDS[name]
                yield f"    {known.label:<44} {_shown(value)} {known.unit}".rstrip()
        sides = [side for side in ("prefill", "decode") if isinstance(run.get(side), dict)]
        yield from (f"    {side}: {_facts(run[side])}" for side in sides)
    if len(item["runs"]) > MAX_ROWS:
        yield f"  ... {len(item['runs']) - MAX_ROWS} more runs; --json prints all"
    yield from _rows(item)
    yield from _server(item["server"])
    yield from (f"  Warning: {_place(warning)}{warning['text']}" for warning in item["warnings"])
    if item["missing"]:
        yield "  Not stated here (asked when you submit): " + "; ".join(gap["label"] for gap in item["missing"])


MAX_ROWS = 12
OF_THE_ENGINE = {"max_concurrency": "Requests of full length at once, as printed"}
"""Words that mean a client's setting in a run, and the engine's own figure in a server's facts."""


def _server(server: Mapping[str, Any]) -> Iterable[str]:
    """Facts about the server, the verdict on its cache first."""
    from nvdash.readers.fields import FIELDS

    if not server:
        return
    yield "  Server"
    if server.get("verdict"):
        layer = f", {server['layer']}" if server.get("layer") else ""
        yield f"    Verdict on the cache: {server['verdict']}{layer}. {server.get('reason') or ''}".rstrip()
    for name, value in server.items():
        if value is not None and name not in ("verdict", "layer", "reason"):
            known = None if name in OF_THE_ENGINE else FIELDS.get(name)
            label = known.label if known else OF_THE_ENGINE.get(name, name.replace("_", " "))
            unit = known.unit if known else ""
            yield f"    {label:<44} {_shown(value)} {unit}".rstrip()


def _rows(item: Mapping[str, Any]) -> Iterable[str]:
    if item["quality"]:
        yield "  Quality"
    for row in item["quality"]:
        spread = f" ± {row['stderr']:.4g}" if row["stderr"] is not None else ""
        samples = f", n = {row['n_effective']}" if row["n_effective"] else ""
        yield f"    {row['task']} {row['metric']} ({row['filter'] or 'no filter'}): {row['value']:.6g}{spread}{samples}"
    if item["kernels"]:
        yield f"  Kernels, longest first ({len(item['kernels'])} names)"
    for row in item["kernels"][:MAX_ROWS]:
        share = f"{row['share_pct']:5.1f} %" if row["share_pct"] is not None else "      ?"
        time = f"{row['time_us']:14,.1f} µs" if row["time_us"] is not None else f"{'?':>14} µs"
        yield f"    {share} {time} {row['calls']:>8,} calls  {row['name'][:90]}"


def _place(warning: Mapping[str, Any]) -> str:
    return f"run {warning['run'] + 1}, " if warning["run"] is not None else ""


def _facts(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in values.items() if value is not None)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, dict):
        return _facts(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
