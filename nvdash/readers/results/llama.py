"""llama-bench as JSON, JSON Lines, CSV or markdown, and llama-benchy, which drives an OpenAI endpoint in its manner.

A row without generated tokens is prefill, one without prompt tokens decode; `n_depth` is what the cache already held.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nvdash.readers.csv_rows import csv_records
from nvdash.readers.record import Reading, to_number
from nvdash.readers.results.common import Record, items, mapping, measured_runs
from nvdash.readers.source import Source


def bench(records: Sequence[Record], where: str) -> Reading:
    """JSON and JSON Lines: one run per test."""
    runs, warnings = measured_runs(where, map(_values, records))
    return Reading(runs, warnings=warnings)


def _values(record: Record) -> dict[str, Any]:
    prompt, generated = to_number(record.get("n_prompt")) or 0, to_number(record.get("n_gen")) or 0
    phase = "mixed" if prompt and generated else "decode" if generated else "prefill"
    key, value = record.get("type_k"), record.get("type_v")
    return {
        "kind": "micro",
        "phase": phase,
        "framework": "llama.cpp",
        "version": str(record["build_number"]) if record.get("build_number") else None,
        "model": record.get("model_filename"),
        "model_type": record.get("model_type"),
        "model_bytes": record.get("model_size"),
        "num_parameters": record.get("model_n_params"),
        "gpu": record.get("gpu_info") or None,
        "backend": record.get("backends") or record.get("backend"),
        "kv_dtype_k": key,
        "kv_dtype_v": value,
        "kv_cache_dtype_requested": key if key == value else None,
        "flash_attn": record.get("flash_attn"),
        "max_concurrency": 1,
        "n_prompt": record.get("n_prompt"),
        "n_gen": record.get("n_gen"),
        "n_depth": record.get("n_depth"),
        "started_at": record.get("test_time"),
        f"{phase}_tok_s": record.get("avg_ts"),
        "stddev": record.get("stddev_ts"),
    }


def table(source: Source) -> Reading:
    """CSV with the names of the JSON keys."""
    return bench(list(csv_records(source)), source.name)


_TEST = re.compile(r"^(?:pp(?P<prompt>\d+))?\+?(?:tg(?P<gen>\d+))?(?:\s*@\s*d(?P<depth>\d+))?$")
_SPEED = re.compile(r"([\d.]+)(?:\s*±\s*([\d.]+))?")
_DEVICE = re.compile(r"Device \d+: ([^,\n]+), compute capability")
_BUILD = re.compile(r"build: (\w+) \((\d+)\)")
_SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_COUNTS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def markdown(source: Source) -> Reading:
    """The table that llama-bench prints; the device stands above it, the build below."""
    text = "\n".join(line.decode("utf-8", "replace") for line in source.lines())
    device, build = _DEVICE.search(text), _BUILD.search(text)
    common = {
        "gpu_info": device[1].strip() if device else None,
        "build_commit": build[1] if build else None,
        "build_number": build[2] if build else None,
    }
    return bench([{**_printed(row), **common} for row in _table_rows(text)], source.name)


def _table_rows(text: str) -> Iterator[Mapping[str, str]]:
    header: list[str] = []
    for line in text.splitlines():
        if not line.lstrip().startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "model":
            header = cells
        elif header and not set(cells[0]) <= set("-: "):
            yield dict(zip(header, cells, strict=False))


def _printed(row: Mapping[str, str]) -> dict[str, Any]:
    """One printed row under the names of the JSON keys."""
    test, speed = _TEST.match(row.get("test", "")), _SPEED.match(row.get("t/s", ""))
    parts = test.groupdict() if test else {}
    return {
        "model_type": row.get("model"),
        "model_size": _counted(row.get("size"), _SIZES),
        "model_n_params": _counted(row.get("params"), _COUNTS),
        "backends": row.get("backend"),
        "type_k": row.get("type_k"),
        "type_v": row.get("type_v"),
        "flash_attn": row.get("fa"),
        "n_prompt": parts.get("prompt") or 0,
        "n_gen": parts.get("gen") or 0,
        "n_depth": parts.get("depth") or 0,
        "avg_ts": speed[1] if speed and test else None,
        "stddev_ts": speed[2] if speed and test else None,
    }


def _counted(text: str | None, units: Mapping[str, int]) -> int | None:
    """A printed size such as "3.56 GiB"; two decimals, so only near."""
    number, _, unit = (text or "").partition(" ")
    value = to_number(number)
    return round(value * units[unit]) if value is not None and unit in units else None


def benchy(records: Sequence[Record], where: str) -> Reading:
    """llama-benchy: tokens per second of prompt and generation, times in milliseconds."""
    rows = [_benchy_values(record, test) for record in records for test in items(record.get("benchmarks"))]
    runs, warnings = measured_runs(where, rows)
    return Reading(runs, warnings=warnings)


def _benchy_values(record: Record, test: Record) -> dict[str, Any]:
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
