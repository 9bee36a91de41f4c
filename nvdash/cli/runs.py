"""`./run runs`: which runs are stored, or everything about one of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from nvdash.cli.figures import figure
from nvdash.cli.output import Outcome, answers_json


@click.command()
@click.argument("run", required=False)
@click.option("--model", help="Catalogue name or checkpoint; every checkpoint of one base is meant.")
@click.option("--gpu", help="A product or its id.")
@click.option("--framework", help="vllm, sglang, tensorrt-llm.")
@click.option("--version", help="The framework's release.")
@click.option("--weights", "weight_format", help="Weight format, for example nvfp4.")
@click.option("--kv-cache-dtype", "kv_cache_dtype_resolved", help="Cache format in effect.")
@click.option("--withdrawn", is_flag=True, help="Show withdrawn runs too.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@answers_json
def command(run: str | None, limit: int, **filters: Any) -> Outcome:
    """List stored runs, newest first; with a run id, everything that is known of that run."""
    from nvdash.answers import results

    if run is not None:
        return results.run(run), 0, run_lines
    return results.runs(filters, limit=limit), 0, lines


NUMBERS = {"output_tok_s": "output {} tok/s", "ttft_mean_ms": "TTFT {} ms", "tpot_mean_ms": "TPOT {} ms"}
CAPACITY = {"kv_tokens": "{} KV cache tokens"}


def lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """One line per run; an unknown stays a question mark."""
    if not answer["runs"]:
        yield "No run matches. Submit one: ./run submit FILE…"
        return
    yield from (run_line(row) for row in answer["runs"])
    yield f"{len(answer['runs'])} of {answer['total']} runs"


def run_line(row: Mapping[str, Any]) -> str:
    """Who a run is, what it ran, and what it reached."""
    cache = row["kv_cache_dtype_resolved"] or row["kv_cache_dtype_requested"]
    marks = f"{' withdrawn' if row['withdrawn'] else ''}{' ▲' if row['warnings'] else ''}"
    system = f"{row['model'] or '?'} on {row['gpu'] or '?'}, {row['framework'] or '?'} {row['version'] or '?'}"
    formats = f"weights {row['weight_format'] or '?'}, cache {cache or '?'}"
    told = [text.format(figure(row[name])) for name, text in (NUMBERS | CAPACITY).items() if row[name] is not None]
    return f"{row['run_id']}{marks}  {system}, {formats}: {', '.join(told) or row['kind'] or 'no numbers'}"


def run_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """One run, field by field, with where a field came from when it was not its own file."""
    skipped = {"schema", "nvdash_version", "matrix_digest", "question", "provenance"}
    origin = answer.get("provenance", {})
    for name, value in answer.items():
        if name in skipped or value in ([], {}):
            continue
        if isinstance(value, list):
            yield f"{name}:"
            yield from (f"  {_flat(item)}" for item in value)
        else:
            yield f"{name}: {_flat(value)}{f'   ({origin[name]})' if name in origin else ''}"


def _flat(value: Any) -> str:
    """A row on one line."""
    return ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, Mapping) else str(value)
