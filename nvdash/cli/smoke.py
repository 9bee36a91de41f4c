"""`./run smoke`: does it really run here, and which kernels ran."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nvdash.cli.check import support_flags
from nvdash.cli.output import Outcome, answers_json
from nvdash.errors import UsageError

ENGINES = ("reference", "flashinfer", "vllm", "sglang")


@click.command()
@support_flags
@click.option("--engine", type=click.Choice(ENGINES), help="reference by default; vllm and sglang build the --model.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the report to this file.")
@click.option("--preflight", is_flag=True, help="Say what is missing on this machine, with the lines that fix it.")
@click.option("--emit", type=click.Choice(["slurm", "k8s"]), help="Print a job for another machine instead.")
@click.option("--read", is_flag=True, help="Judge the FILEs of a vLLM run made elsewhere; nothing runs or is stored.")
@click.option("--layers", type=click.IntRange(1), help="With --read and --head-layout: attention layers of the model.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@answers_json
def command(
    engine: str | None,
    out: Path | None,
    preflight: bool,
    emit: str | None,
    read: bool,
    layers: int | None,
    files: tuple[Path, ...],
    **flags: Any,
) -> Outcome:
    """Run one case in a fresh process, or --read the files of a run: requested, resolved, observed, kernels."""
    from nvdash.answers import smoke

    if read or files or layers:
        return read_back(files, read, layers, flags)
    question = {**{name: value for name, value in flags.items() if value is not None}, "engine": engine or "reference"}
    if preflight:
        answer = smoke.preflight()
        return answer, 0 if answer["devices"] else 1, preflight_lines
    if emit:
        return smoke.emitted(question, emit), 0, lambda answer: [answer["text"]]
    ran = smoke.run(question, told, out=out) or {}
    return ran, smoke.exit_code(ran), lines


def read_back(files: tuple[Path, ...], read: bool, layers: int | None, flags: Mapping[str, Any]) -> Outcome:
    """The verdict on the files of a run made elsewhere."""
    from nvdash.answers import smoke

    if not (read and files):
        raise UsageError("smoke", "--read FILE... together", "only one of them", "for example --read server.log")
    words = ("model", "head_layout", "kv_cache_dtype", "backend")
    question = {**{name: flags[name] for name in words}, "layers": layers}
    answer = smoke.read_back_files(question, files)
    return answer, smoke.exit_code(answer), read_back_lines


def read_back_lines(answer: Mapping[str, Any]) -> Iterable[Any]:
    """As for a case, with what the files contradict each other in."""
    yield from lines(answer)
    yield from (f"! {warning}" for warning in answer["warnings"])
    yield "Read from files: nothing was run here and nothing was stored."


def told(state: Any) -> None:
    """One line per printed line of the case, on stderr."""
    for line in state.lines:
        click.echo(f"{state.phase:9} {line}", err=True)
    sys.stderr.flush()


def preflight_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """What was looked for, found, and how to fix what is missing."""
    for item in answer["items"]:
        sign = {True: "●", False: "✕", None: "?"}[item["ok"]]
        yield f"{sign} {item['item']}: {item['found']}"
        if item["fix"]:
            yield f"    {item['fix']}"
    for engine, why_not in answer["engines"].items():
        yield f"{engine}: {'can run here' if why_not is None else f'not here ({why_not})'}"


def lines(answer: Mapping[str, Any]) -> Iterable[Any]:
    """The verdict, the three columns, bytes, kernels, numbers, and what was not tested."""
    from nvdash.answers.words import SMOKE

    yield f"{SMOKE[answer['verdict']]}: {answer['reason']}"
    if answer["engine"] == "reference":
        yield "The reference engine proves the arithmetic of a format. It proves no kernel."
    yield three_columns(answer)
    cache = answer["cache"]
    if cache.get("bytes_per_token") is not None:
        formula = cache.get("formula_bytes_per_token")
        wanted = f"{formula:,}" if formula is not None else "unknown"
        yield f"Bytes per token: {cache['bytes_per_token']:,} allocated, {wanted} by the formula"
    if answer["kernels"]:
        yield kernel_table(answer["kernels"])
    if answer["numbers"]:
        yield number_table(answer["numbers"])
    for row in answer["launches"]:
        if row["ok"] is False:
            yield f"! {row['phase']}: {row['launches']} {row['what']} launches, {row['expected']} expected"
    yield f"Not tested: {', '.join(answer['not_tested'])}"


def three_columns(answer: Mapping[str, Any]) -> Any:
    """Requested, resolved, observed."""
    from rich.table import Table

    table = Table("", "Requested", "Resolved", "Observed")
    observed = answer["observed"]
    held = ", ".join(observed.get("kv_dtypes") or observed.get("same_bytes_as") or []) or "unknown"
    families = ", ".join(observed.get("families") or []) or "none seen"
    for name, seen in (("kv_cache_dtype", held), ("backend", families)):
        asked, became = answer["requested"].get(name), answer["resolved"].get(name)
        table.add_row(name, str(asked or "auto"), str(became or "unknown"), seen)
    return table


def kernel_table(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Kernels by family and phase; unknown ones are kept."""
    from rich.table import Table

    sums: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        entry = sums.setdefault((str(row.get("phase") or "outside a step"), str(row["family"])), [0, 0.0])
        entry[0] += row.get("calls") or 0
        entry[1] += row.get("time_us") or 0.0
    table = Table("Phase", "Family", "Launches", "µs")
    for (phase, family), (calls, time_us) in sorted(sums.items(), key=lambda item: (item[0][0], -item[1][1])):
        table.add_row(phase, family, f"{calls:,.0f}", f"{time_us:,.0f}")
    return table


def number_table(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Each check once per kind of data, with the worst of its values over layers and seeds."""
    from rich.table import Table

    worst: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in rows:
        key = (row["name"], row["phase"], row["data"])
        kept = worst.get(key)
        if kept is None or is_worse(row, kept):
            worst[key] = row
    table = Table("Check", "Phase", "Data", "Worst", "Bar", "")
    for (name, phase, data), row in worst.items():
        value = "not finite" if row["value"] is None else f"{row['value']:.4g}"
        bar = "" if row["bar"] is None else f"{row['bar']:g}"
        sign = {True: "●", False: "✕", None: "preview"}[row["passed"] if row["asserted"] else None]
        table.add_row(name, phase, data, value, bar, sign)
    return table


def is_worse(row: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """Whether a value is further on the wrong side than the one kept; one that is not finite is the worst."""
    if row["value"] is None or kept["value"] is None:
        return row["value"] is None
    return bool(row["value"] < kept["value"]) if row["higher_is_better"] else bool(row["value"] > kept["value"])
