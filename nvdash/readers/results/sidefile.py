"""Files beside a result: a manifest that an uploader's script wrote, sums of a scrape, a model's config.json.

They hold facts about the server, never a benchmark run. A manifest is read by the names of its keys, wherever they
stand; a file with too few known names is no manifest.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nvdash.readers import smoke_report
from nvdash.readers.aliases import FIELD_OF, FRAMEWORK_OF, controls, spelled
from nvdash.readers.record import KernelRow, Reading, Remark, Value, checked, clean_model, clean_text, to_number
from nvdash.readers.results.common import Record
from nvdash.readers.source import Source

_SUMS = {
    "hits": "prefix_cache_hits_tokens",
    "prefix_cache_hits": "prefix_cache_hits_tokens",
    "queries": "prefix_cache_queries_tokens",
    "prefix_cache_queries": "prefix_cache_queries_tokens",
    "kv_usage_avg": "kv_usage_avg",
    "kv_usage_max": "kv_usage_max",
    "waiting_avg": "waiting_avg",
    "waiting_max": "waiting_max",
    "running_avg": "running_avg",
    "running_max": "running_max",
    "gen_tok_s": "generation_tok_s",
    "prompt_tok_s": "prompt_tok_s",
    "window_s": "window_s",
}
_TEXTS = {
    "torch": "torch",
    "torch_version": "torch",
    "cuda": "cuda",
    "cuda_version": "cuda",
    "compute_capability": "compute_capability",
    "served_model": "served_model",
    "linear_backend": "linear_backend",
    "model_revision": "model_revision",
}
_ANYBODY_S = frozenset({"version"})
"""Keys that may be those of the script that wrote the file."""


def manifest(records: Sequence[Record], where: str) -> Reading:
    """The facts of one side file under their normal names."""
    stated = dict(_flattened(records[0]))
    facts: dict[str, Value] = {}
    for name, value in controls(stated, _ANYBODY_S).items():
        facts[name] = checked(where, name, value)
    for key, value in stated.items():
        word = spelled(key)
        if word in _SUMS:
            facts.setdefault(_SUMS[word], to_number(value))
        elif word in _TEXTS and value is not None:
            facts.setdefault(_TEXTS[word], clean_text(value))
    return Reading(server={name: value for name, value in facts.items() if value is not None})


def is_manifest(record: Mapping[str, Any]) -> bool:
    """Whether enough keys are known words: five of them, or at least two and half of all."""
    words = [spelled(key) for key, value in _flattened(record) if value is not None]
    known = sum(word in FIELD_OF or word in FRAMEWORK_OF or word in _SUMS or word in _TEXTS for word in words)
    return known >= 5 or (known >= 2 and 2 * known >= len(words))


def _flattened(record: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Keys with single values on every level, outer levels first, so that an outer one wins."""
    if depth < 4:
        yield from ((key, value) for key, value in record.items() if not isinstance(value, Mapping | list))
        for value in record.values():
            if isinstance(value, Mapping):
                yield from _flattened(value, depth + 1)


_SMI_ROW = re.compile(
    r"^\|\s+(\d+)\s+((?:NVIDIA|Tesla|Quadro|GeForce)[\w .()-]*?)(?:\.\.\.)?\s{2,}(?:On|Off|N/A)?\s*\|"
)
_SMI_LIST = re.compile(r"^GPU (\d+): (.+?) \(UUID: ")
_SMI_DRIVER = re.compile(r"Driver Version: (\d[\d.]*)")


def nvidia_smi(source: Source) -> Reading:
    """The table of `nvidia-smi` or the list of `nvidia-smi -L`: GPU, how many, driver; no process and no UUID."""
    gpus: dict[str, str] = {}
    facts: dict[str, Value] = {}
    for raw in source.lines():
        text = raw[:200].decode("utf-8", "replace")
        if match := _SMI_ROW.match(text) or _SMI_LIST.match(text):
            gpus.setdefault(match[1], match[2].strip())
        if match := _SMI_DRIVER.search(text):
            facts["driver"] = match[1]
    names = sorted(set(gpus.values()))
    if len(names) == 1:
        facts |= {"gpu": clean_text(names[0]), "gpus_visible": len(gpus)}
    warnings = [Remark("mixed_gpus", f"several GPU models: {', '.join(names)}")] if len(names) > 1 else []
    return Reading(server=facts, warnings=tuple(warnings))


def smoke(records: Sequence[Record], where: str) -> Reading:
    """A smoke report: its case, its verdict, and the kernels that it saw."""
    report = smoke_report.from_dict(records[0], where)
    facts: dict[str, Value] = {
        "engine": report.engine,
        "framework": report.framework,
        "version": report.release,
        "gpu": report.gpu,
        "arch": report.arch,
        "case": report.case_id,
        "verdict": report.verdict,
        "layer": report.layer,
        "reason": report.reason or None,
        "requested": report.requested,
        "resolved": report.resolved,
        "observed": report.observed,
    }
    rows = (kernel_row(kernel) for kernel in report.kernels)
    kernels = sorted((row for row in rows if row), key=lambda row: row.order)
    return Reading(kernels=tuple(kernels), server={key: value for key, value in facts.items() if value is not None})


def kernel_row(kernel: Record) -> KernelRow | None:
    """One kernel of a report; a report made without a profiler states no times."""
    name, calls, time_us = kernel.get("name"), to_number(kernel.get("calls")), to_number(kernel.get("time_us"))
    if not isinstance(name, str) or calls is None:
        return None
    return KernelRow(name, int(calls), time_us, to_number(kernel.get("share_pct")))


def config(records: Sequence[Record], where: str) -> Reading:
    """A model's config.json: what it says of itself; its layers are read elsewhere."""
    name = records[0].get("_name_or_path")
    architectures = records[0].get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    facts: dict[str, Value] = {
        "model": clean_model(name) if name else None,
        "architecture": clean_text(first) if first else None,
        "model_type": clean_text(records[0].get("model_type") or "") or None,
    }
    return Reading(server={key: value for key, value in facts.items() if value is not None})
