"""trtllm-bench: the report as JSON and the summary it prints; the nearest to complete of all result formats.

An offline issue rate says nothing and is not read. "Token Throughput" of the older summary counts output tokens.
"""

import re
from collections.abc import Sequence
from typing import Any

from nvdash.readers.logs import trtllm as log
from nvdash.readers.logs.lines import log_lines
from nvdash.readers.record import Reading, to_number
from nvdash.readers.results.common import MS_PER_S, Record, distribution, mapping, measured_runs, scaled
from nvdash.readers.source import Source

_PERCENTILES = {"mean": "average", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}


def report(records: Sequence[Record], where: str) -> Reading:
    """The `--report_json` file: one run per document."""
    runs, warnings = measured_runs(where, map(_values, records))
    return Reading(runs, warnings=warnings)


def _values(record: Record) -> dict[str, Any]:
    engine, world = mapping(record.get("engine")), mapping(record.get("world_info"))
    requests, performance = mapping(record.get("request_info")), mapping(record.get("performance"))
    streamed, machine = mapping(record.get("streaming_metrics")), mapping(record.get("machine"))
    share = to_number(world.get("kv_cache_percentage"))
    return {
        "kind": "throughput",
        **_engine(engine),
        "gpu": machine.get("name"),
        "gpu_memory_gib": machine.get("memory.total"),
        "gpu_count": world.get("world_size"),
        "tp": world.get("tp_size"),
        "pp": world.get("pp_size"),
        "ep": world.get("ep_size"),
        "max_batch_size": world.get("max_batch_size"),
        "max_num_tokens": world.get("max_num_tokens"),
        "scheduling_policy": world.get("scheduling_policy"),
        "kv_memory_percent": share * 100 if share is not None else None,
        "streaming": bool(streamed),
        "requests_completed": requests.get("num_requests"),
        "mean_concurrency": requests.get("avg_num_concurrent_requests"),
        "isl_mean": requests.get("avg_input_length"),
        "osl_mean": requests.get("avg_output_length"),
        "duration_s": scaled(performance.get("total_latency_ms"), 1 / MS_PER_S),
        "request_throughput_rps": performance.get("request_throughput_req_s"),
        "output_tok_s": performance.get("system_output_throughput_tok_s"),
        "total_tok_s": performance.get("system_total_throughput_tok_s"),
        "output_tok_s_per_user": performance.get("output_throughput_per_user_tok_s"),
        "output_tok_s_per_gpu": performance.get("output_throughput_per_gpu_tok_s"),
        **_drafts(mapping(record.get("decoding_stats"))),
        **_distribution(
            "e2e", performance.get("request_latency_percentiles_ms"), performance.get("avg_request_latency_ms")
        ),
        **_distribution("ttft", streamed.get("ttft_percentiles"), streamed.get("avg_ttft_ms")),
        **_distribution("tpot", streamed.get("tpot_percentiles"), streamed.get("avg_tpot_ms")),
    }


def _engine(engine: Record) -> dict[str, Any]:
    """Model and formats; the cache dtype is that of the engine, and null means that it keeps the model's own type."""
    cache, weights, dtype = engine.get("kv_cache_dtype"), engine.get("quantization"), engine.get("dtype")
    unquantised = "kv_cache_dtype" in engine and cache is None
    return {
        "framework": "tensorrt-llm",
        "version": engine.get("version"),
        "model": engine.get("model"),
        "backend": engine.get("backend"),
        "weight_format": _weights(weights, dtype) if "quantization" in engine else None,
        "kv_cache_dtype_requested": str(cache).lower() if cache else None,
        "kv_cache_dtype_resolved": dtype if unquantised else str(cache).lower() if cache else None,
        "max_model_len": engine.get("max_sequence_length"),
    }


def _weights(algorithm: Any, dtype: Any) -> str | None:
    return str(algorithm).lower() if algorithm else log.SHORT.get(str(dtype), dtype)


def _distribution(latency: str, percentiles: Any, mean: Any) -> dict[str, Any]:
    block = mapping(percentiles)

    def value_of(name: str) -> Any:
        stated = block.get(_PERCENTILES.get(name, ""))
        return mean if stated is None and name == "mean" else stated

    return distribution(latency, value_of)


def _drafts(stats: Record) -> dict[str, Any]:
    rate = to_number(mapping(stats.get("draft_acceptance_rate_percentiles")).get("average"))
    return {
        "spec_method": stats.get("mode"),
        "spec_decode_acceptance_rate_pct": rate * 100 if rate is not None else None,
        "spec_decode_acceptance_length": mapping(stats.get("acceptance_length_percentiles")).get("average"),
    }


_SUMMARY = {
    "Number of requests": "requests_completed",
    "Number of concurrent requests": "mean_concurrency",
    "Average Input Length (tokens)": "isl_mean",
    "Average Output Length (tokens)": "osl_mean",
    "Token Throughput (tokens/sec)": "output_tok_s",
    "Total Output Throughput (tokens/sec)": "output_tok_s",
    "Total Token Throughput (tokens/sec)": "total_tok_s",
    "Request Throughput (req/sec)": "request_throughput_rps",
    "Per User Output Throughput [w/ ctx] (tps/user)": "output_tok_s_per_user",
    "Per GPU Output Throughput (tps/gpu)": "output_tok_s_per_gpu",
    "Average request latency (ms)": "e2e_mean_ms",
    "Average time-to-first-token [TTFT] (ms)": "ttft_mean_ms",
    "Average time-per-output-token [TPOT] (ms)": "tpot_mean_ms",
    "Total Latency (ms)": "total_latency_ms",
}
_BREAKDOWN = re.compile(r"^\s*\[(TTFT|TPOT|Latency)\]\s+(P50|P90|P95|P99|AVERAGE)\s*:\s+([\d.]+)")
_DRAFTING = re.compile(r"^= DECODING STATISTICS \((.+)\)")
_DRAFTED = re.compile(r"^\s*\[(DAR|AL)\]\s+AVERAGE\s*:\s+([\d.]+)")
_BREAKDOWN_NAMES = {"TTFT": "ttft", "TPOT": "tpot", "Latency": "e2e"}
_CONTROLS = (
    "framework version model gpu gpu_memory_gib weight_format kv_cache_dtype_requested kv_cache_dtype_resolved tp pp ep"
    " max_batch_size max_num_tokens scheduling_policy kv_memory_percent max_model_len"
).split()


def stdout(source: Source) -> Reading:
    """What `trtllm-bench` prints: engine, world and performance, between the log lines of every rank."""
    engine = log.Log()
    values: dict[str, Any] = {}
    for line in log_lines(source):
        engine.take(line.text)
        values |= _summary(line.text)
    server = engine.facts()
    total = values.pop("total_latency_ms", None)
    values |= {
        "kind": "throughput",
        "duration_s": scaled(total, 1 / MS_PER_S),
        "gpu_count": server.get("world_size") or (server["tp"] * (server.get("pp") or 1) if "tp" in server else None),
        **{name: server.get(name) for name in _CONTROLS},
        "kv_cache_dtype_resolved": server.get("kv_cache_dtype_resolved") or server.get("kv_cache_dtype_requested"),
    }
    runs, warnings = measured_runs(source.name, [values])
    return Reading(runs, server=server, warnings=warnings)


def _summary(text: str) -> dict[str, Any]:
    """What one line of the performance overview states."""
    if stated := log.SUMMARY.match(text.rstrip()):
        field = _SUMMARY.get(stated[1])
        return {field: to_number(stated[2])} if field else {}
    if part := _BREAKDOWN.match(text):
        statistic = "mean" if part[2] == "AVERAGE" else part[2].lower()
        return {f"{_BREAKDOWN_NAMES[part[1]]}_{statistic}_ms": float(part[3])}
    if drafting := _DRAFTING.match(text):
        return {"spec_method": drafting[1]}
    if drafted := _DRAFTED.match(text):
        rate = drafted[1] == "DAR"
        name = "spec_decode_acceptance_rate_pct" if rate else "spec_decode_acceptance_length"
        return {name: float(drafted[2]) * (100 if rate else 1)}
    return {}
