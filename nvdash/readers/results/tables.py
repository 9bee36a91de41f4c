"""Tables that hold the keys of a JSON format as columns, and the summary a client prints on the console."""

import re
from typing import Any

from nvdash.readers.csv_rows import csv_records
from nvdash.readers.record import Reading
from nvdash.readers.results import vllm
from nvdash.readers.results.common import measured_runs, ratio
from nvdash.readers.source import Source


def sweep(source: Source) -> Reading:
    """summary.csv of `vllm bench sweep`: an unnamed index, then one column per key of a run."""
    return vllm.serve(list(csv_records(source)), source.name)


_PRINTED = {
    "Successful requests": "requests_completed",
    "Failed requests": "requests_failed",
    "Maximum request concurrency": "max_concurrency",
    "Max request concurrency": "max_concurrency",
    "Request rate configured (RPS)": "request_rate_rps",
    "Traffic request rate": "request_rate_rps",
    "Burstiness factor": "burstiness",
    "Benchmark duration (s)": "duration_s",
    "Total input tokens": "input_tokens_total",
    "Total generated tokens": "output_tokens_total",
    "Request throughput (req/s)": "request_throughput_rps",
    "Input token throughput (tok/s)": "input_tok_s",
    "Output token throughput (tok/s)": "output_tok_s",
    "Peak output token throughput (tok/s)": "peak_output_tok_s",
    "Peak concurrent requests": "peak_concurrent_requests",
    "Total Token throughput (tok/s)": "total_tok_s",
    "Total token throughput (tok/s)": "total_tok_s",
    "Total throughput (tok/s)": "total_tok_s",
    "Concurrency": "mean_concurrency",
    "Acceptance rate (%)": "spec_decode_acceptance_rate_pct",
    "Acceptance length": "spec_decode_acceptance_length",
    "Accept length": "spec_decode_acceptance_length",
}
MAX_TEXT = 200
_LATENCY = re.compile(r"^(Mean|Median|P90|P95|P99) (TTFT|TPOT|ITL|E2EL|E2E Latency) \(ms\)$")
_LATENCY_NAMES = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2EL": "e2e", "E2E Latency": "e2e"}
_LINE = re.compile(r"^\s*([A-Z][\w .()/%-]*?):\s+(\S+)\s*$")


_AHEAD = re.compile(r"^(Traffic request rate|Maximum request concurrency|Burstiness factor):\s+([\w.]+)")
"""What vLLM prints of the load before it starts, and older releases only there."""


def console(source: Source) -> Reading:
    """The block between the rules that `vllm bench serve` and SGLang's `bench_serving` print, two decimals each."""
    rows: list[dict[str, Any]] = []
    ahead: dict[str, str] = {}
    inside = False
    for raw in source.lines():
        text = raw[:MAX_TEXT].decode("utf-8", "replace")
        if "Serving Benchmark Result" in text:
            rows.append({"kind": "serving", **ahead})
            ahead, inside = {}, True
        elif not inside and (load := _AHEAD.match(text)):
            ahead |= _printed(load[1], load[2])
        elif inside and text.strip() and not text.strip().strip("="):
            inside = False
        elif inside and (match := _LINE.match(text)):
            rows[-1] |= _printed(match[1], match[2])
    for row in rows:
        row["isl_mean"] = ratio(row.get("input_tokens_total"), row.get("requests_completed"))
        row["osl_mean"] = ratio(row.get("output_tokens_total"), row.get("requests_completed"))
    runs, warnings = measured_runs(source.name, rows)
    return Reading(runs, warnings=warnings)


def _printed(label: str, text: str) -> dict[str, str]:
    if latency := _LATENCY.match(label):
        statistic = {"Mean": "mean", "Median": "p50"}.get(latency[1], latency[1].lower())
        return {f"{_LATENCY_NAMES[latency[2]]}_{statistic}_ms": text}
    if label == "Backend":
        return {"backend": text, **({"framework": "sglang"} if text.startswith("sglang") else {})}
    field = _PRINTED.get(label)
    return {field: text} if field and text not in ("None", "N/A") else {}
