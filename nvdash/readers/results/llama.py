"""llama-bench as JSON, JSON Lines, CSV or markdown.

A row without generated tokens is prefill, one without prompt tokens decode; `n_depth` is what the cache already held.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nvdash.readers.csv_rows import csv_records
from nvdash.readers.json_document import parse
from nvdash.readers.record import Reading, to_number
from nvdash.readers.results.common import Record, measured_runs
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
        **_devices(record.get("gpu_info"), record),
        "backend": record.get("backends") or record.get("backend"),
        "kv_dtype_k": key,
        "kv_dtype_v": value,
        "kv_cache_dtype_requested": key if key == value else None,
        "flash_attn": record.get("flash_attn"),
        "max_concurrency": 1,
        "n_batch": record.get("n_batch"),
        "n_ubatch": record.get("n_ubatch"),
        "n_prompt": record.get("n_prompt"),
        "n_gen": record.get("n_gen"),
        "n_depth": record.get("n_depth"),
        "started_at": record.get("test_time"),
        f"{phase}_tok_s": record.get("avg_ts"),
        "stddev": record.get("stddev_ts"),
    }


def _devices(info: Any, record: Record) -> dict[str, Any]:
    """The GPU and how many: equal ones are listed once each, and all of them are used unless nothing is split."""
    names = str(info or "").split(", ")
    if not names[0] or len(set(names)) > 1:
        return {"gpu": info or None}
    over_network = "RPC" in str(record.get("backends") or "")
    used = 1 if record.get("split_mode") == "none" else len(names)
    return {"gpu": names[0], "gpu_count": None if over_network else used}


def table(source: Source) -> Reading:
    """CSV with the names of the JSON keys."""
    return bench(list(csv_records(source)), source.name)


def lines(source: Source) -> Reading:
    """JSON Lines between what llama.cpp says of its devices on the other stream."""
    records = [parse(line, source.name) for line in source.lines() if line.startswith(b'{"build_commit"')]
    return bench(records, source.name)


_TEST = re.compile(r"^(?:pp(?P<prompt>\d+))?\+?(?:tg(?P<gen>\d+))?(?:\s*@\s*d(?P<depth>\d+))?$")
SPEED = re.compile(r"([\d.]+)(?:\s*±\s*([\d.]+))?")
_DEVICES = (
    re.compile(r"Device \d+: (.+?), (?:compute capability|gfx\d)"),
    re.compile(r"ggml_vulkan: \d+ = (.+?) \([^()]*\) \|"),
    re.compile(r"ggml_metal\w*: GPU name:\s+(\S.*)"),
)
"""How CUDA and ROCm, Vulkan and Metal name a device; Vulkan adds the driver in brackets."""
_BUILD = re.compile(r"build: (\w+) \((\d+)\)")
_SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_COUNTS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def markdown(source: Source) -> Reading:
    """The tables that llama-bench prints; the devices stand above each, the build below."""
    records: list[Record] = []
    for printed in _invocations(raw.decode("utf-8", "replace") for raw in source.lines()):
        common = {"gpu_info": ", ".join(printed.devices), "build_number": printed.build}
        records += [{**_printed(row), **common} for row in printed.rows]
    return bench(records, source.name)


@dataclass
class _Invocation:
    """One table with the devices named above it and the build named below it."""

    devices: list[str] = field(default_factory=list)
    rows: list[Mapping[str, str]] = field(default_factory=list)
    build: str | None = None


def _invocations(text: Iterable[str]) -> Iterator[_Invocation]:
    """Every table; what stands around one table says nothing of another."""
    printed, header = _Invocation(), list[str]()
    for line in text:
        cells = table_cells(line)
        device = next((found[1].strip() for regex in _DEVICES if (found := regex.search(line))), None)
        build = _BUILD.search(line)
        if printed.rows and (device or build or cells[:1] == ["model"]):
            printed.build = build[2] if build else None
            yield printed
            printed = _Invocation()
        if device:
            printed.devices.append(device)
        elif cells and cells[0] == "model":
            header = cells
        elif cells and header and not set(cells[0]) <= set("-: "):
            printed.rows.append(dict(zip(header, cells, strict=False)))
    yield printed


def table_cells(line: str) -> list[str]:
    """The cells of one line of a markdown table, none for any other line."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []


def _printed(row: Mapping[str, str]) -> dict[str, Any]:
    """One printed row under the names of the JSON keys."""
    test, speed = _TEST.match(row.get("test", "")), SPEED.match(row.get("t/s", ""))
    parts = test.groupdict() if test else {}
    return {
        "model_type": row.get("model"),
        "model_size": _counted(row.get("size"), _SIZES),
        "model_n_params": _counted(row.get("params"), _COUNTS),
        "backends": row.get("backend"),
        "type_k": row.get("type_k"),
        "type_v": row.get("type_v"),
        "flash_attn": row.get("fa"),
        "n_batch": row.get("n_batch"),
        "n_ubatch": row.get("n_ubatch"),
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
