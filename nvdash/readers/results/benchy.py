"""llama-benchy, which drives an OpenAI endpoint in the manner of llama-bench: its report as JSON and as markdown.

Throughputs are those of all requests together, times are milliseconds. A prefill of the context alone is a run apart.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nvdash.readers.record import Reading
from nvdash.readers.results.common import Record, items, mapping, measured_runs
from nvdash.readers.results.llama import SPEED, table_cells
from nvdash.readers.source import Source


def report(records: Sequence[Record], where: str) -> Reading:
    """The JSON report: one run per test."""
    rows = [_values(record, test) for record in records for test in items(record.get("benchmarks"))]
    runs, warnings = measured_runs(where, rows)
    return Reading(runs, warnings=warnings)


def _values(record: Record, test: Record) -> dict[str, Any]:
    def mean(name: str) -> Any:
        return mapping(test.get(name)).get("mean")

    return {
        "kind": "serving",
        "phase": "prefill" if test.get("is_context_prefill_phase") else None,
        "model": record.get("model"),
        "started_at": record.get("timestamp"),
        "latency_mode": record.get("latency_mode"),
        "enable_prefix_caching": record.get("prefix_caching_enabled"),
        "max_concurrency": test.get("concurrency", record.get("max_concurrency")),
        "context": test.get("context_size"),
        "prompt": test.get("prompt_size"),
        "response": test.get("response_size"),
        "prefill_tok_s": mean("pp_throughput"),
        "decode_tok_s": mean("tg_throughput"),
        "stddev": mapping(test.get("tg_throughput")).get("std"),
        "peak_output_tok_s": mean("peak_throughput"),
        "ttft_ms": mean("e2e_ttft"),
    }


_TEST = re.compile(r"^(ctx_)?(pp|tg)(\d+)?(?: @ d(\d+))?(?: \(c(\d+)\))?$")
_FOOTER = re.compile(r"date: ([\d-]+ [\d:]+\S*) \| latency mode: (\w+)")


def markdown(source: Source) -> Reading:
    """The table it prints by default: a row for the prompt, then one for the answer; no concurrency means one."""
    text = [line.decode("utf-8", "replace") for line in source.lines()]
    footer = next((found for line in reversed(text) if (found := _FOOTER.search(line))), None)
    common = {"started_at": footer[1], "latency_mode": footer[2]} if footer else {}
    runs, warnings = measured_runs(source.name, ({**run, **common} for run in _printed_runs(text)))
    return Reading(runs, warnings=warnings)


def _printed_runs(text: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of the table, where the answer's row completes the prompt's."""
    header: list[str] = []
    run: dict[str, Any] = {}
    for line in text:
        cells = table_cells(line)
        if cells[:2] == ["model", "test"]:
            header = cells
        row = dict(zip(header, cells, strict=False))
        test = _TEST.match(row.get("test", ""))
        if test is None:
            continue
        place = _place(row, test)
        if test[2] == "pp" or "decode_tok_s" in run or any(run.get(name) != value for name, value in place.items()):
            yield from [run] if run else []
            run = place
        run |= _prompt(row, test) if test[2] == "pp" else _answer(row, test)
    yield from [run] if run else []


def _place(row: Mapping[str, str], test: re.Match[str]) -> dict[str, Any]:
    return {
        "kind": "serving",
        "phase": "prefill" if test[1] else None,
        "model": row.get("model"),
        "max_concurrency": int(test[5] or 1),
        "context": int(test[4] or 0),
    }


def _prompt(row: Mapping[str, str], test: re.Match[str]) -> dict[str, Any]:
    return {"prompt": test[3], "prefill_tok_s": _mean(row, "t/s"), "ttft_ms": _mean(row, "e2e_ttft (ms)")}


def _answer(row: Mapping[str, str], test: re.Match[str]) -> dict[str, Any]:
    speed = SPEED.match(row.get("t/s (total)") or row.get("t/s") or "")
    return {
        "response": test[3],
        "decode_tok_s": speed[1] if speed else None,
        "stddev": speed[2] if speed else None,
        "peak_output_tok_s": _mean(row, "peak t/s"),
    }


def _mean(row: Mapping[str, str], column: str) -> str | None:
    """The mean of a cell that holds mean and standard deviation."""
    cell = SPEED.match(row.get(f"{column} (total)") or row.get(column) or "")
    return cell[1] if cell else None
