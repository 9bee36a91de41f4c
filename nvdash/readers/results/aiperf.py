"""aiperf and genai-perf: the same metrics as JSON (a unit beside every number) and as CSV (the unit in the label).

`inter_token_latency` is a mean per request, vLLM's TPOT; `inter_chunk_latency` is the gap between chunks. The first
genai-perf releases wrote the gaps as `inter_token_latency`; their token counts have other names. Without streaming the
first token arrives with the last, so its time is none.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvdash.readers.csv_rows import csv_rows
from nvdash.readers.record import Reading, Remark, clean_text, flag, to_number
from nvdash.readers.results.common import Record, distribution, items, mapping, measured_runs
from nvdash.readers.source import Source

_TO_MS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "nanoseconds": 1e-6}
_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2e": "request_latency",
}
_FIRST_RELEASES = "num_output_token"
_FIRST_LATENCIES = {"ttft": "time_to_first_token", "itl": "inter_token_latency", "e2e": "request_latency"}
_SCALARS = {
    "requests_completed": ("request_count",),
    "requests_failed": ("error_request_count",),
    "request_throughput_rps": ("request_throughput",),
    "request_goodput_rps": ("goodput", "request_goodput"),
    "output_tok_s": ("output_token_throughput",),
    "total_tok_s": ("total_token_throughput",),
    "output_tok_s_per_user": ("output_token_throughput_per_user", "output_token_throughput_per_request"),
    "isl_mean": ("input_sequence_length", "num_input_token"),
    "osl_mean": ("output_sequence_length", _FIRST_RELEASES),
    "input_tokens_total": ("total_isl", "total_input_sequence_length"),
    "output_tokens_total": ("total_osl", "total_output_sequence_length"),
}
_FRAMEWORKS = {
    "tensorrtllm": "tensorrt-llm",
    "tensorrtllm_engine": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "vllm": "vllm",
    "sglang": "sglang",
}


def export(records: Sequence[Record], where: str) -> Reading:
    """`profile_export_aiperf.json` or `profile_export_genai_perf.json`: one run."""
    record = records[0]
    config = mapping(record.get("input_config"))
    gpus, remarks = _telemetry(record)
    streaming = _streaming(config)
    values = {**_configuration(config), **_metrics(record, streaming), "started_at": record.get("start_time"), **gpus}
    runs, warnings = measured_runs(where, [values])
    return Reading(runs, warnings=(*warnings, *_remarks(record, values, streaming), *remarks))


def _block(record: Record, names: Iterable[str]) -> Record:
    """The first of these metrics that the file has."""
    return next((block for name in names if (block := mapping(record.get(name)))), {})


def _metrics(record: Record, streaming: bool | None) -> dict[str, Any]:
    values: dict[str, Any] = {name: _block(record, keys).get("avg") for name, keys in _SCALARS.items()}
    values["duration_s"] = _milliseconds(_block(record, ("benchmark_duration",)), "avg", 1e-3)
    for latency, key in (_FIRST_LATENCIES if _FIRST_RELEASES in record else _LATENCIES).items():
        if latency == "e2e" or _streamed(record, streaming):
            values |= _latency(latency, _block(record, (key,)))
    return values


def _latency(latency: str, block: Record) -> dict[str, Any]:
    def value_of(name: str) -> float | None:
        return _milliseconds(block, "avg" if name == "mean" else name)

    return distribution(latency, value_of)


def _milliseconds(block: Record, name: str, factor: float = 1.0) -> float | None:
    """A statistic of a time in milliseconds, by the unit that stands beside it; without a known unit, none."""
    number, unit = to_number(block.get(name)), _TO_MS.get(str(block.get("unit")).lower())
    if number is None or unit is None:
        return None
    return number if unit * factor == 1 else number * unit * factor


def _streamed(record: Record, streaming: bool | None) -> bool:
    """Whether a first token was seen before the last: as configured, else by comparing the two times."""
    if streaming is not None:
        return streaming
    first, whole = _block(record, ("time_to_first_token",)), _block(record, ("request_latency",))
    return bool(first) and first.get("avg") != whole.get("avg")


def _streaming(config: Record) -> bool | None:
    stated = config.get("streaming", mapping(config.get("endpoint")).get("streaming"))
    return flag(stated) if stated is not None else None


def _configuration(config: Record) -> dict[str, Any]:
    endpoint = mapping(config.get("endpoint"))
    isl_target, osl_target = _targets(config)
    load = _load(config)
    return {
        "kind": "serving",
        "model": _model(config, endpoint),
        "tokenizer": _tokenizer(config),
        "framework": _framework(config, endpoint),
        "backend": config.get("endpoint_type") or endpoint.get("type"),
        "streaming": _streaming(config),
        "max_concurrency": load.get("concurrency"),
        "request_rate_rps": load.get("request_rate") or load.get("rate"),
        "num_prompts": _requests(config, load),
        "isl_target": isl_target,
        "osl_target": osl_target,
        "dataset": _dataset(config),
    }


def _framework(config: Record, endpoint: Record) -> str | None:
    """What Triton or the engine itself ran; behind an OpenAI endpoint, and in a template, `backend` is a default."""
    kind = config.get("service_kind") or endpoint.get("service_kind")
    if kind == "triton" and "template" not in (config.get("endpoint_type"), endpoint.get("type")):
        kind = endpoint.get("output_format") or config.get("backend")
    return _FRAMEWORKS.get(str(kind))


def _requests(config: Record, load: Record) -> Any:
    """Requests asked for; genai-perf counts a measurement in requests or in milliseconds, as its mode says."""
    measurement = mapping(mapping(config.get("perf_analyzer")).get("measurement"))
    counted = measurement.get("num") if measurement.get("mode") == "request_count" else None
    loadgen = mapping(config.get("loadgen"))
    return load.get("requests") or load.get("request_count") or loadgen.get("request_count") or counted or None


def _targets(config: Record) -> tuple[float | None, float | None]:
    """Lengths asked for; prompts from a file have their own, whatever stands beside as a default."""
    inputs = mapping(config.get("input"))
    prompt = mapping(inputs.get("prompt"))
    source = config.get("prompt_source") or inputs.get("prompt_source") or ("file" if _file(config) else "synthetic")
    isl = (config.get("synthetic_input_tokens_mean"), inputs.get("synthetic_tokens"), prompt.get("input_tokens"))
    osl = (config.get("output_tokens_mean"), inputs.get("output_tokens"), prompt.get("output_tokens"))
    return _target(*isl) if source == "synthetic" else None, _target(*osl)


def _load(config: Record) -> Record:
    """The load settings wherever this version keeps them; warm-up phases are none of the run."""
    phases = [phase for phase in items(config.get("phases")) if not phase.get("exclude_from_results")]
    stimulus = mapping(mapping(config.get("perf_analyzer")).get("stimulus"))
    places = (mapping(config.get("loadgen")), *phases[:1], stimulus, config)
    return next((place for place in places if "concurrency" in place or "request_rate" in place or "rate" in place), {})


def _model(config: Record, endpoint: Record) -> Any:
    names = endpoint.get("model_names") or config.get("model") or config.get("model_names")
    if not names:
        names = [model.get("name") for model in items(mapping(config.get("models")).get("items"))]
    return (names[0] if len(names) == 1 else None) if isinstance(names, list) else names


def _tokenizer(config: Record) -> Any:
    stated = config.get("tokenizer")
    return stated.get("name") if isinstance(stated, Mapping) else stated


def _target(*stated: Any) -> float | None:
    numbers = (to_number(mapping(value).get("mean") if isinstance(value, Mapping) else value) for value in stated)
    return next((number for number in numbers if number is not None and number >= 0 and number == int(number)), None)


def _dataset(config: Record) -> Any:
    named = items(config.get("datasets"))
    source = config.get("prompt_source") or mapping(config.get("input")).get("prompt_source")
    return (named[0].get("path") or named[0].get("name")) if named else _file(config) or source


def _file(config: Record) -> Any:
    return mapping(config.get("input")).get("file") or config.get("input_file")


def _telemetry(record: Record) -> tuple[dict[str, Any], list[Remark]]:
    """GPUs of every telemetry endpoint; which of them served is not stated when there are several."""
    endpoints = mapping(mapping(record.get("telemetry_data")).get("endpoints"))
    gpus = [gpu for place in endpoints.values() for gpu in mapping(mapping(place).get("gpus")).values()]
    names = [clean_text(name) for gpu in gpus if (name := mapping(gpu).get("gpu_name"))]
    return _gpus(names, len(endpoints))


def _gpus(names: Sequence[str | None], endpoints: int) -> tuple[dict[str, Any], list[Remark]]:
    if not names:
        return {}, []
    if len(set(names)) > 1:
        return {}, [
            Remark("telemetry", f"telemetry lists several GPU models: {', '.join(sorted(filter(None, set(names))))}")
        ]
    found = {"gpu": names[0], "gpu_count": len(names)}
    places = f"{endpoints} endpoints" if endpoints != 1 else "1 endpoint"
    text = f"telemetry lists {len(names)} GPUs on {places}; which of them served is not stated"
    return found, [Remark("telemetry", text)] if len(names) > 1 else []


def _remarks(record: Record, values: Mapping[str, Any], streaming: bool | None) -> list[Remark]:
    found = []
    if not _streamed(record, streaming) and _block(record, ("time_to_first_token",)):
        found.append(Remark("not_streaming", "no streaming: the time to first token is the whole latency, not kept", 0))
    if record.get("was_cancelled") is True or record.get("is_complete") is False:
        found.append(Remark("incomplete", "the run was cancelled or did not finish", 0))
    return found


_LABEL = re.compile(r"^(.*?)\s*(?:\(([^()]*)\))?$")
MAX_LABEL = 200
_UNIT_WORDS = {"per sec": "1/s", "tokens/sec": "1/s", "requests/sec": "1/s"}


def table(source: Source) -> Reading:
    """The CSV export: tables of distributions, of single values and of GPU telemetry, apart by blank lines."""
    header: list[str] = []
    record: dict[str, Any] = {}
    gpus: dict[tuple[str, str], str] = {}
    for row in csv_rows(source):
        if not any(row):
            header = []
        elif not header:
            header = [name.strip() for name in row]
        elif header[0] == "Metric":
            name, block = _labelled(header, row)
            record.setdefault(name, block)
        elif "GPU_Name" in header:
            cells = dict(zip(header, row, strict=False))
            gpus[cells.get("Endpoint", ""), cells.get("GPU_Index", "")] = cells["GPU_Name"]
    found, remarks = _gpus([clean_text(name) for name in gpus.values()], len({place for place, _ in gpus}))
    values = {"kind": "serving", **_metrics(record, None), **found}
    runs, warnings = measured_runs(source.name, [values])
    return Reading(runs, warnings=(*warnings, *_remarks(record, values, None), *remarks))


def _labelled(header: Sequence[str], row: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A metric's key and its block, from a label that ends with the unit in brackets."""
    match = _LABEL.match(row[0].strip()[:MAX_LABEL])
    label, unit = (match[1], match[2] or "") if match else (row[0], "")
    block: dict[str, Any] = {"unit": _UNIT_WORDS.get(unit.lower(), unit)}
    for name, text in zip(header[1:], row[1:], strict=False):
        block["avg" if name == "Value" else name] = text
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_"), block
