"""What `vllm bench` wrote: serve (every version step), sweep, latency, throughput, dashboard records.

Times of `serve` are milliseconds and say so in the key; `latency` and `throughput` are in seconds and do not.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from nvdash.readers.aliases import controls
from nvdash.readers.record import Reading, to_number
from nvdash.readers.results.common import MS_PER_S, Record, distribution, mapping, measured_runs, ratio, scaled
from nvdash.readers.source import FileRefused

_LATENCY_KEYS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_NOT_CONTROLS = frozenset({"backend", "max_concurrency", "request_rate", "rate", "model_id"})
"""Keys of the client that another tool uses for the server."""


def serve_controls(record: Record) -> dict[str, Any]:
    """Controls among the keys of a result: metadata that a user gave, overrides of a sweep."""
    return controls(record, _NOT_CONTROLS)


def serve(records: Sequence[Record], where: str) -> Reading:
    """`vllm bench serve`, and `vllm bench sweep serve`, which adds its overrides to the same keys."""
    runs, warnings = measured_runs(where, map(_serve_values, records))
    return Reading(runs, warnings=warnings)


def _serve_values(record: Record) -> dict[str, Any]:
    completed = record.get("completed")
    goodput = record.get("request_goodput", record.get("request_goodput:"))
    return {
        **serve_controls(record),
        "kind": "pooling" if "input_sequence_throughput" in record else "serving",
        "model": record.get("model_id"),
        "tokenizer": record.get("tokenizer_id"),
        "started_at": started(record.get("date")),
        "label": record.get("label"),
        "backend": record.get("endpoint_type", record.get("backend")),
        "run_number": record.get("run_number"),
        "num_prompts": record.get("num_prompts"),
        "request_rate_rps": record.get("request_rate"),
        "burstiness": record.get("burstiness"),
        "max_concurrency": record.get("max_concurrency"),
        "duration_s": record.get("duration"),
        "requests_completed": completed,
        "requests_failed": record.get("failed"),
        "input_tokens_total": record.get("total_input_tokens"),
        "output_tokens_total": record.get("total_output_tokens"),
        "isl_mean": ratio(record.get("total_input_tokens"), completed),
        "osl_mean": ratio(record.get("total_output_tokens"), completed),
        "request_throughput_rps": record.get("request_throughput"),
        "request_goodput_rps": goodput,
        "output_tok_s": record.get("output_throughput"),
        "total_tok_s": record.get("total_token_throughput"),
        "input_tok_s": _input_rate(record),
        "peak_output_tok_s": record.get("max_output_tokens_per_s"),
        "peak_concurrent_requests": record.get("max_concurrent_requests"),
        "spec_decode_acceptance_rate_pct": record.get("spec_decode_acceptance_rate"),
        "spec_decode_acceptance_length": record.get("spec_decode_acceptance_length"),
        **_latencies(record),
    }


def _input_rate(record: Record) -> float | None:
    """Prompt tokens per second: total less output; vLLM of 2024 wrote this one and no total."""
    stated = to_number(record.get("input_throughput"))
    if stated is not None:
        return stated
    total, output = to_number(record.get("total_token_throughput")), to_number(record.get("output_throughput"))
    return total - output if total is not None and output is not None and total >= output else None


def _latencies(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for latency, key in _LATENCY_KEYS.items():

        def value_of(name: str, key: str = key) -> Any:
            value = record.get(f"{name}_{key}_ms")
            return record.get(f"median_{key}_ms") if value is None and name == "p50" else value

        fields |= distribution(latency, value_of)
    return fields


def started(date: Any) -> str | None:
    """The local time that vLLM writes as YYYYMMDD-HHMMSS, as ISO text; its clients in other languages write that."""
    if _ISO_DATE.match(str(date)):
        return str(date)
    match = _DATE.match(str(date))
    return "{}-{}-{}T{}:{}:{}".format(*match.groups()) if match else None


def latency(records: Sequence[Record], where: str) -> Reading:
    """`vllm bench latency`: seconds of one batch from start to end, percentiles by number."""
    runs, warnings = measured_runs(where, map(_latency_values, records))
    return Reading(runs, warnings=warnings)


def _latency_values(record: Record) -> dict[str, Any]:
    percentiles = mapping(record.get("percentiles"))

    def value_of(name: str) -> Any:
        return record.get("avg_latency") if name == "mean" else percentiles.get(name.removeprefix("p"))

    return {
        **serve_controls(record),
        "kind": "latency",
        "model": record.get("model_id"),
        "latency_ms": scaled(record.get("avg_latency"), MS_PER_S),
        **distribution("e2e", value_of, MS_PER_S),
    }


def throughput(records: Sequence[Record], where: str) -> Reading:
    """`vllm bench throughput`: an offline batch; its tokens per second count prompt and output together."""
    runs, warnings = measured_runs(where, map(_throughput_values, records))
    return Reading(runs, warnings=warnings)


def _throughput_values(record: Record) -> dict[str, Any]:
    return {
        **serve_controls(record),
        "kind": "throughput",
        "model": record.get("model_id"),
        "duration_s": record.get("elapsed_time"),
        "requests_completed": record.get("num_requests"),
        "request_throughput_rps": record.get("requests_per_second"),
        "total_tok_s": record.get("tokens_per_second"),
        "request_rate_rps": "inf",
    }


_DASHBOARD_METRICS = {
    "latency": ("latency_ms", MS_PER_S),
    "avg_latency": ("latency_ms", MS_PER_S),
    "requests_per_second": ("request_throughput_rps", 1.0),
    "tokens_per_second": ("total_tok_s", 1.0),
    "request_throughput": ("request_throughput_rps", 1.0),
    "output_throughput": ("output_tok_s", 1.0),
    "total_token_throughput": ("total_tok_s", 1.0),
    "elapsed_time": ("duration_s", 1.0),
    "duration": ("duration_s", 1.0),
    "completed": ("requests_completed", 1.0),
    "num_requests": ("requests_completed", 1.0),
    "failed": ("requests_failed", 1.0),
}
"""Metrics of a dashboard record that are not latencies of requests, with the factor to our unit."""


def dashboard(records: Sequence[Record], where: str) -> Reading:
    """Records of the PyTorch benchmark dashboard: one per metric, gathered into one run per model and arguments."""
    gathered: dict[str, dict[str, Any]] = {}
    for record in records:
        benchmark, model = mapping(record.get("benchmark")), mapping(record.get("model"))
        arguments = mapping(mapping(benchmark.get("extra_info")).get("args"))
        metric = mapping(record.get("metric"))
        measured = dict(_dashboard_metric(metric))
        if measured:
            key = repr((model.get("name"), sorted(map(repr, arguments.items()))))
            values = gathered.setdefault(key, {**_dashboard_controls(record, arguments), "model": model.get("name")})
            beside = {name: value for name, value in _dashboard_extra(metric).items() if value is not None}
            values |= {**{name: value for name, value in beside.items() if values.get(name) is None}, **measured}
    if not gathered:
        raise FileRefused(where, "records of serving, latency or throughput", "found other metrics only")
    runs, warnings = measured_runs(where, gathered.values())
    return Reading(runs, warnings=warnings)


_DRAWN = ("random_input_len", "random_output_len")
"""Arguments with a default that only the random datasets heed."""


def _dashboard_controls(record: Record, arguments: Record) -> dict[str, Any]:
    benchmark, metric = mapping(record.get("benchmark")), mapping(record.get("metric")).get("name")
    is_serving = "request_rate" in arguments
    is_drawn = str(arguments.get("dataset_name")).startswith("random")
    found = controls(arguments, _NOT_CONTROLS if is_drawn else _NOT_CONTROLS | {*_DRAWN})
    found.pop("model", None)
    offline = "throughput" if metric in ("requests_per_second", "tokens_per_second") else "latency"
    return {
        "kind": "serving" if is_serving else offline,
        **found,
        "framework": None if is_serving or "vllm" not in str(benchmark.get("name")).lower() else "vllm",
        "gpu": _dashboard_gpu(record),
        "max_concurrency": arguments.get("max_concurrency"),
        "request_rate_rps": arguments.get("request_rate") if is_serving or offline == "latency" else "inf",
    }


def _dashboard_gpu(record: Record) -> Any:
    """The device that the uploading script found; the name of its runner is often only the platform."""
    runner = mapping(next(iter(record.get("runners") or []), None))
    extra = mapping(mapping(record.get("benchmark")).get("extra_info"))
    kind = runner.get("type") if runner.get("name") in ("cuda", "rocm") else None
    return runner.get("gpu_info") or kind or extra.get("device_name") or extra.get("gpu")


def _dashboard_extra(metric: Record) -> dict[str, Any]:
    """What a record states beside its metric: the rest of a result of `serve`, `latency` or `throughput`."""
    extra = mapping(metric.get("extra_info"))
    if "completed" in extra and "duration" in extra:
        return _serve_values(extra)
    if "percentiles" in extra:
        return {name: value for name, value in _latency_values(extra).items() if name.endswith("_ms")}
    return {"duration_s": extra.get("elapsed_time"), "requests_completed": extra.get("num_requests")}


def _dashboard_metric(metric: Record) -> Iterator[tuple[str, Any]]:
    name = str(metric.get("name", ""))
    numbers = [n for n in map(to_number, metric.get("benchmark_values") or []) if n is not None]
    if not numbers:
        return
    value = sum(numbers) / len(numbers)
    if name in _DASHBOARD_METRICS:
        field, factor = _DASHBOARD_METRICS[name]
        yield field, value * factor
        return
    for latency_name, key in _LATENCY_KEYS.items():
        match = re.fullmatch(rf"(mean|median|std|p90|p95|p99)_{key}_ms", name)
        if match:
            yield f"{latency_name}_{match[1].replace('median', 'p50')}_ms", value
