"""GuideLLM reports: the unversioned form (0.3) and version 2 as JSON or YAML, and the CSV with three header rows.

`request_latency` is in seconds, the other times carry `_ms`. `time_per_output_token_ms` changed its meaning between
the forms and is not read; `inter_token_latency_ms` is the time per output token after the first in both. The total of
tokens per second counts prompts twice in some unversioned reports, and is read from those that name their version.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nvdash.readers.csv_rows import csv_rows
from nvdash.readers.record import Reading, to_number
from nvdash.readers.results.common import MS_PER_S, Record, distribution, epoch, items, mapping, measured_runs
from nvdash.readers.source import FileRefused, Source

_LATENCIES = {
    "ttft": ("time_to_first_token_ms", 1.0),
    "tpot": ("inter_token_latency_ms", 1.0),
    "e2e": ("request_latency", MS_PER_S),
}
_TARGETS = {
    "isl_target": re.compile(r"prompt_tokens['\"\\]*\s*[=:]\s*(\d+)"),
    "osl_target": re.compile(r"output_tokens['\"\\]*\s*[=:]\s*(\d+)"),
}
MAX_YAML_BYTES = 4 * 2**20


def report(records: Sequence[Record], where: str) -> Reading:
    """A report: one run per strategy."""
    rows = (
        _values(record, number, run) for record in records for number, run in enumerate(items(record.get("benchmarks")))
    )
    runs, warnings = measured_runs(where, rows)
    return Reading(runs, warnings=warnings)


def _values(report_: Record, number: int, run: Record) -> dict[str, Any]:
    config = mapping(run.get("config")) or mapping(run.get("args"))
    metrics = mapping(run.get("metrics"))
    totals = mapping(run.get("request_totals")) or mapping(metrics.get("request_totals"))
    data = _data(report_, run)
    return {
        "kind": "serving",
        "run_index": number,
        "model": _model(report_, run),
        "tokenizer": mapping(run.get("request_loader")).get("processor"),
        "data": data,
        **{name: match[1] for name, regex in _TARGETS.items() if (match := regex.search(data or ""))},
        **_load(mapping(config.get("strategy"))),
        "started_at": epoch(run.get("start_time")),
        "duration_s": run.get("duration"),
        "requests_completed": totals.get("successful"),
        "requests_failed": totals.get("errored"),
        "requests_incomplete": totals.get("incomplete"),
        "request_throughput_rps": _successful(metrics, "requests_per_second").get("mean"),
        "mean_concurrency": _successful(metrics, "request_concurrency").get("mean"),
        "output_tok_s": _successful(metrics, "output_tokens_per_second").get("mean"),
        **(_totals(metrics) if mapping(report_.get("metadata")).get("guidellm_version") else {}),
        "isl_mean": _successful(metrics, "prompt_token_count").get("mean"),
        "osl_mean": _successful(metrics, "output_token_count").get("mean"),
        **_latencies(metrics),
    }


def _totals(metrics: Record) -> dict[str, Any]:
    return {
        "input_tok_s": _successful(metrics, "prompt_tokens_per_second").get("mean"),
        "total_tok_s": _successful(metrics, "tokens_per_second").get("mean"),
    }


def _successful(metrics: Record, name: str) -> Record:
    """The distribution over successful requests; the total mixes in what was cut off."""
    return mapping(mapping(metrics.get(name)).get("successful"))


def _latencies(metrics: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for latency, (key, factor) in _LATENCIES.items():
        block = _successful(metrics, key)
        percentiles = mapping(block.get("percentiles"))

        def value_of(name: str, block: Record = block, percentiles: Record = percentiles) -> Any:
            if name in ("mean", "std"):
                return block.get("std_dev" if name == "std" else name)
            return percentiles.get(name, block.get("median") if name == "p50" else None)

        fields |= distribution(latency, value_of, factor) if to_number(block.get("count")) != 0 else {}
    return fields


def _load(strategy: Record) -> dict[str, Any]:
    """The load: synchronous is one request at a time, throughput has no rate."""
    kind = strategy.get("type_") or strategy.get("kind")
    limit = strategy.get("streams") or strategy.get("max_concurrency")
    return {
        "strategy": kind,
        "request_rate_rps": "inf" if kind == "throughput" else strategy.get("rate"),
        "max_concurrency": 1 if kind == "synchronous" else limit,
    }


def _places(report_: Record, run: Record) -> tuple[Record, ...]:
    """Where the forms keep what was asked for: per run, then for the report."""
    config, arguments = mapping(run.get("config")), mapping(report_.get("args"))
    spec = mapping(mapping(report_.get("config")).get("spec"))
    inner = (spec.get("backend"), arguments.get("backend"), run.get("worker"), config.get("backend"))
    return (*map(mapping, (*inner, run.get("request_loader"), config.get("requests"))), config, arguments, spec)


def _model(report_: Record, run: Record) -> Any:
    named = (place.get(key) for place in _places(report_, run) for key in ("backend_model", "model"))
    return next((name for name in named if isinstance(name, str) and name), None)


def _data(report_: Record, run: Record) -> str | None:
    """The workload as written; a list is written out, so that its token counts can be read."""
    found = next((data for place in _places(report_, run) if (data := place.get("data"))), None)
    return None if found is None else found if isinstance(found, str) else json.dumps(found)


def yaml_report(source: Source) -> Reading:
    """The same report as YAML; lists of requests are cut out line by line before it is parsed."""
    from nvdash.readers.yaml_rows import parse_yaml

    kept = b"\n".join(_without_requests(source))
    if len(kept) > MAX_YAML_BYTES:
        raise FileRefused(
            source.name, f"at most {MAX_YAML_BYTES:,} bytes beside the requests", "more", "save it as JSON"
        )
    value = parse_yaml(kept, source.name)
    if not isinstance(value, Mapping) or not items(value.get("benchmarks")):
        raise FileRefused(source.name, "a GuideLLM report", "found no benchmarks")
    return report([value], source.name)


_REQUESTS = re.compile(rb"^(\s*)(?:- )?(?:successful|errored|incomplete|request_samples|samples):\s*$")


def _without_requests(source: Source) -> Iterator[bytes]:
    """The lines, with every list under a key of per-request records emptied."""
    held, depth, cutting = b"", -1, False
    for line in source.lines():
        indent = len(line) - len(line.lstrip(b" "))
        is_item = line.lstrip(b" ").startswith(b"- ")
        if cutting and (not line.strip() or indent > depth or (indent == depth and is_item)):
            continue
        cutting = False
        if held:
            cutting = is_item and indent >= depth
            yield held + b" []" if cutting else held
            held = b""
            if cutting:
                continue
        match = _REQUESTS.match(line)
        if match:
            held, depth = line, len(match[1])
        else:
            yield line
    if held:
        yield held


_COLUMNS = {
    ("Request Counts", "Successful"): "requests_completed",
    ("Request Counts", "Incomplete"): "requests_incomplete",
    ("Request Counts", "Errored"): "requests_failed",
    ("Timings", "Duration"): "duration_s",
    ("Benchmark", "Strategy"): "strategy",
    ("Run Info", "Run Index"): "run_index",
    ("Server Throughput", "Successful Requests/Sec"): "request_throughput_rps",
    ("Server Throughput", "Successful Concurrency"): "mean_concurrency",
    ("Token Throughput", "Successful Output Tokens/Sec"): "output_tok_s",
    ("Token Throughput", "Successful Input Tokens/Sec"): "input_tok_s",
    ("Token Throughput", "Successful Total Tokens/Sec"): "total_tok_s",
    ("Token Metrics", "Successful Input Tokens"): "isl_mean",
    ("Token Metrics", "Successful Output Tokens"): "osl_mean",
}
"""Columns that become one value: for distributions the mean."""
_COLUMN_LATENCIES = {"Time to First Token": "ttft", "Inter Token Latency": "tpot", "Request Latency": "e2e"}
_PERCENTILES = {"p90": 7, "p95": 8, "p99": 9}
"""Places in the bracketed list: minimum, then 0.1, 1, 5, 10, 25, 75, 90, 95 and 99 percent, then maximum."""


def table(source: Source) -> Reading:
    """The CSV: group, name and unit in three header rows, one row per run, percentiles as one bracketed text."""
    rows = list(csv_rows(source))
    if len(rows) < 4:
        raise FileRefused(source.name, "three header rows and a row per run", f"found {len(rows)} rows")
    headers = list(zip(*(_padded(row, len(rows[0])) for row in rows[:3]), strict=True))
    if any(len(row) != len(headers) for row in rows[3:] if any(row)):
        found = "found a row of another width, whose columns cannot be told"
        raise FileRefused(source.name, f"{len(headers)} columns in every row", found, "give the JSON report")
    written = [dict(zip(headers, row, strict=True)) for row in rows[3:] if any(row)]
    if _may_be_shifted(written):
        found = "found runs with other kinds of requests under the columns of the first"
        raise FileRefused(source.name, "columns that hold for every row", found, "give the JSON report")
    runs, warnings = measured_runs(source.name, map(_row_values, written))
    return Reading(runs, warnings=warnings)


def _may_be_shifted(rows: list[dict[tuple[str, ...], str]]) -> bool:
    """Whether rows may not stand under their columns.

    Releases of early 2026 wrote the header of the first run and for every run only the kinds of requests it had; later
    ones leave the cells of an absent kind empty.
    """
    kinds = {
        tuple(to_number(row.get(("Request Counts", kind, ""))) != 0 for kind in ("Successful", "Incomplete", "Errored"))
        for row in rows
    }
    has_gaps = any(not text for row in rows for (_, _, statistic), text in row.items() if statistic == "Mean")
    return len(kinds) > 1 and not has_gaps


def _padded(row: list[str], length: int) -> list[str]:
    return (row + [""] * length)[:length]


def _row_values(row: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    values: dict[str, Any] = {"kind": "serving"}
    for (group, name, unit), text in row.items():
        field = _COLUMNS.get((group, name))
        if field and text and (field not in ("isl_mean", "osl_mean", *_RATES) or "mean" in unit.lower()):
            values.setdefault(field, text)
        values |= _latency_cell(group, name, unit, text)
        if group in ("Run Info", "Runtime Info") and name in ("Backend", "Requests", "Profile", "Arguments"):
            values |= {key: stated for key, stated in _info_cell(name, text).items() if stated is not None}
    profile, place = values.pop("profile", {}), to_number(values.get("run_index"))
    asked = {name: _of_this_run(listed, place) for name, listed in profile.items()}
    return {**values, **_load({**asked, "type_": values.get("strategy")})}


def _of_this_run(listed: Any, place: float | None) -> Any:
    """What a profile asks of one of its runs: it lists a value for each, or has one for all."""
    if not isinstance(listed, list):
        return listed
    return listed[int(place)] if place is not None and 0 <= place < len(listed) else None


_RATES = ("request_throughput_rps", "mean_concurrency", "output_tok_s", "input_tok_s", "total_tok_s")


def _latency_cell(group: str, name: str, unit: str, text: str) -> dict[str, Any]:
    latency = _COLUMN_LATENCIES.get(group)
    if latency is None or not name.startswith("Successful"):
        return {}
    factor = MS_PER_S if "sec" in name.lower() else 1.0
    words = unit.lower()
    if "percentile" in words:
        numbers = [to_number(part) for part in text.strip("[] ").split(",")]
        by_name = {stat: numbers[place] for stat, place in _PERCENTILES.items() if len(numbers) == 11}
        return {f"{latency}_{stat}_ms": n * factor for stat, n in by_name.items() if n is not None}
    stat = {"mean": "mean", "median": "p50", "std dev": "std", "std": "std"}.get(words)
    number = to_number(text)
    return {f"{latency}_{stat}_ms": number * factor} if stat and number is not None else {}


def _info_cell(name: str, text: str) -> dict[str, Any]:
    try:
        stated = mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}
    if name == "Backend":
        return {"model": stated.get("model") or stated.get("backend_model")}
    if name == "Profile":
        names = ("streams", "max_concurrency", *(["rate"] if isinstance(stated.get("rate"), list) else []))
        return {"profile": {key: stated.get(key) for key in names}}
    data = (mapping(stated.get("spec")) or stated).get("data")
    text = data if isinstance(data, str) else json.dumps(data) if data else ""
    return {"data": text or None, **{n: m[1] for n, regex in _TARGETS.items() if (m := regex.search(text))}}
