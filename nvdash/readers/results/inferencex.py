"""InferenceX (InferenceMAX): aggregated rows, rows of its API, and results of its experiments.

Their keys look like vLLM's without `_ms`, and their times are seconds. Throughput is per GPU; output is divided by the
decoding GPUs only. A row of one node divides by tensor x pipeline x prefill-context parallelism.
"""

from collections.abc import Sequence
from typing import Any

from nvdash.readers.record import Reading, flag, to_number
from nvdash.readers.results.common import MS_PER_S, Record, distribution, mapping, measured_runs, ratio
from nvdash.readers.results.vllm import serve_controls, started

_LATENCY_KEYS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
_FRAMEWORKS = {"trt": "tensorrt-llm", "trtllm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm"}


def agg(records: Sequence[Record], where: str) -> Reading:
    """Aggregated rows, everything on one level."""
    runs, warnings = measured_runs(where, (_values(record, record) for record in records))
    return Reading(runs, warnings=warnings)


def api(records: Sequence[Record], where: str) -> Reading:
    """Rows of the public API: metrics one level down."""
    runs, warnings = measured_runs(where, (_values(record, mapping(record.get("metrics"))) for record in records))
    return Reading(runs, warnings=warnings)


def _values(record: Record, metrics: Record) -> dict[str, Any]:
    gpus, decoding = _gpus(record)
    per_gpu, output = to_number(metrics.get("tput_per_gpu")), to_number(metrics.get("output_tput_per_gpu"))
    framework = str(record.get("framework") or "").lower()
    return {
        "kind": "serving",
        "model": record.get("model"),
        "framework": _FRAMEWORKS.get(framework, framework) or None,
        "version": _tag(record["image"]) if record.get("image") else record.get("version"),
        "gpu": record.get("hw", record.get("hardware")),
        "gpu_count": gpus,
        "weight_format": record.get("precision"),
        "tp": _width(record, "tp"),
        "pp": _width(record, "pp"),
        "ep": _width(record, "ep"),
        "dcp": _width(record, "dcp_size"),
        "dp_attention": _width(record, "dp_attention"),
        "tp_prefill": record.get("prefill_tp"),
        "tp_decode": record.get("decode_tp"),
        **_sides(record),
        "disaggregated": record.get("disagg"),
        "spec_method": _drafter(record),
        "workload": record.get("benchmark_type"),
        "isl": record.get("isl"),
        "osl": record.get("osl"),
        "isl_target": record.get("isl"),
        "osl_target": record.get("osl"),
        "max_concurrency": record.get("conc"),
        "started_at": record.get("run_started_at") or record.get("date"),
        "total_tok_s_per_gpu": per_gpu,
        "output_tok_s_per_gpu": output,
        "total_tok_s": per_gpu * gpus if per_gpu is not None and gpus else None,
        "output_tok_s": output * decoding if output is not None and decoding else None,
        "interactivity_p50_tok_s": metrics.get("median_intvty"),
        **_latencies(metrics),
    }


def _sides(record: Record) -> dict[str, Any]:
    """GPUs of each side, where there are two."""
    if not (flag(record.get("is_multinode")) or flag(record.get("disagg"))):
        return {}
    return {"num_prefill_gpus": record.get("num_prefill_gpu"), "num_decode_gpus": record.get("num_decode_gpu")}


def _gpus(record: Record) -> tuple[int | None, int | None]:
    """GPUs of the deployment and those that decode.

    The counts of the two sides hold where there are several nodes. On one node the API writes tensor times expert
    parallelism there, which are the same GPUs twice; such a row is as wide as what it was divided by.
    """
    prefill, decode = _count(record.get("num_prefill_gpu")), _count(record.get("num_decode_gpu"))
    nodes, apart = flag(record.get("is_multinode")), flag(record.get("disagg"))
    if nodes or (nodes is None and apart):
        total = (prefill or 0) + (decode or 0) or None
        return total, decode or total
    if apart:
        return None, None
    parts = [_count(_width(record, name)) or 1 for name in ("pp", "pcp_size")]
    tp = _count(_width(record, "tp"))
    width = tp * parts[0] * parts[1] if tp else decode or prefill
    return width, width


def _width(record: Record, name: str) -> Any:
    """A setting of the whole deployment: stated as such, or alike for both sides of one that is not disaggregated."""
    if record.get(name) is not None or flag(record.get("disagg")):
        return record.get(name)
    prefill, decode = record.get(f"prefill_{name}"), record.get(f"decode_{name}")
    return decode if prefill in (decode, None) else None


def _count(value: Any) -> int | None:
    number = to_number(value)
    return int(number) if number is not None and 0 < number < 2**31 else None


def _tag(image: Any) -> str | None:
    """The tag of a container image; an image without one, or pinned by its digest alone, names no version."""
    name = str(image).rsplit("/", 1)[-1].partition("@")[0]
    return name.partition(":")[2] or None


def _drafter(record: Record) -> Any:
    stated = record.get("spec_method") or record.get("spec_decoding") or record.get("mtp")
    return {"on": "mtp", "true": "mtp"}.get(str(stated).lower(), None if str(stated).lower() in _NO_DRAFTER else stated)


_NO_DRAFTER = ("off", "false", "none", "")


def _latencies(metrics: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for latency, key in _LATENCY_KEYS.items():

        def value_of(name: str, key: str = key) -> Any:
            value = metrics.get(f"{name}_{key}")
            return metrics.get(f"median_{key}") if value is None and name == "p50" else value

        fields |= distribution(latency, value_of, MS_PER_S)
    return fields


def experimental(records: Sequence[Record], where: str) -> Reading:
    """Results of the experiments folder: the shape of `vllm bench serve`, in seconds."""
    runs, warnings = measured_runs(where, map(_experimental_values, records))
    return Reading(runs, warnings=warnings)


def _experimental_values(record: Record) -> dict[str, Any]:
    completed = record.get("completed")
    return {
        **serve_controls(record),
        "kind": "serving",
        "model": record.get("model_id"),
        "tokenizer": record.get("tokenizer_id"),
        "started_at": started(record.get("date")),
        "num_prompts": record.get("num_prompts"),
        "request_rate_rps": record.get("request_rate"),
        "burstiness": record.get("burstiness"),
        "max_concurrency": record.get("max_concurrency"),
        "duration_s": record.get("duration"),
        "requests_completed": completed,
        "input_tokens_total": record.get("total_input_tokens"),
        "output_tokens_total": record.get("total_output_tokens"),
        "isl_mean": ratio(record.get("total_input_tokens"), completed),
        "osl_mean": ratio(record.get("total_output_tokens"), completed),
        "request_throughput_rps": record.get("request_throughput"),
        "request_goodput_rps": record.get("request_goodput"),
        "input_tok_s": record.get("input_throughput"),
        "output_tok_s": record.get("output_throughput"),
        "total_tok_s": record.get("total_token_throughput"),
        **_latencies(record),
    }
