"""`./run compare`: what each precision cost or gained, where the controls allow a ratio."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from nvdash.cli.figures import figure
from nvdash.cli.output import Outcome, answers_json


@click.command()
@click.argument("runs", nargs=-1)
@click.option("--model", help="Catalogue name or checkpoint.")
@click.option("--gpu", help="A product or its id.")
@click.option("--framework", help="vllm, sglang, tensorrt-llm.")
@click.option("--version", help="The framework's release.")
@answers_json
def command(runs: tuple[str, ...], **filters: Any) -> Outcome:
    """Matched sets of a model and GPU, or two runs side by side; nothing is compared that is not matched."""
    from nvdash.answers import comparison

    if len(runs) not in (0, 2):
        raise click.UsageError("give two run ids, or --model and --gpu")
    if runs:
        answer = comparison.compare_runs(*runs)
        return answer, comparison.exit_code(answer), pair_lines
    answer = comparison.compare(filters)
    return answer, comparison.exit_code(answer), lines


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Every set with its table, effects and sentences, then what matches nothing and why."""
    yield answer["sentence"]
    for found in answer["matched_sets"]:
        yield from _set_lines(found)
    if answer["unmatched"]:
        yield ""
        yield "Not matched:"
        for row in answer["unmatched"]:
            yield f"  {', '.join(row['run_ids'][:4])}: {row['because']}"


def _set_lines(found: Mapping[str, Any]) -> Iterable[str]:
    system = found["system"]
    yield ""
    place = f"{system['model_base']} on {system['gpu_count']} × {system['gpu']}"
    parts = (place, f"{system['framework']} {system['version']}", found["workload"] or "capacity only", found["plan"])
    yield ", ".join(part for part in parts if part)
    for row in found["rows"]:
        yield f"  {row['label']}: {', '.join(row['run_ids']) or 'not run'}"
        yield from (f"    {name}: {_value(entry)}" for name, entry in row["values"].items())
    yield from (f"  {effect_line(row)}" for row in found["effects"])
    for row in found["interactions"]:
        yield f"  {row['measure']}, does one change depend on the other: {row['finding']}"
    yield from (f"  {sentence}" for sentence in found["sentences"])
    for name, tables in found["recorded"].items():
        yield f"  {name}: {'; '.join(table['headline'] for table in tables.values())}"


def _value(entry: Mapping[str, Any]) -> str:
    """A value with its ratio to wide/wide, or why there is none."""
    told = entry["because"] if entry["ratio"] is None else f"{entry['ratio']:.2f} ×"
    return f"{figure(entry['mean'])} ({told})"


def effect_line(row: Mapping[str, Any]) -> str:
    """One effect in words: what changed, what was held, the ratio with its error and what it is due to."""
    held = ", ".join(f"{axis} {name}" for axis, name in row["held"].items())
    change = f"{row['axis'] or 'repeat'} {row['from']} → {row['to']} at {held}, {row['measure']}"
    if row["ratio"] is None:
        values = f"{figure(row['before']['mean'])} → {figure(row['after']['mean'])}"
        return f"{change}: {values}, not comparable ({row['because']})"
    error = "" if row["relative_error"] is None else f" ± {row['relative_error'] * row['ratio']:.2g}"
    because = f" ({row['because']})" if row["because"] else ""
    return f"{change}: {row['ratio']:.3f} ×{error}, {row['label']}{because}"


def pair_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Two runs: ratios where they are allowed, the control in the way, and all values."""
    yield "The two runs match." if answer["matched"] else f"Not matched: {answer['because']}"
    yield from (effect_line(row) for row in answer["effects"])
    for row in answer["values"]:
        one, other = (figure(value) for value in row["values"])
        yield f"  {row['label']}: {one} | {other}"
