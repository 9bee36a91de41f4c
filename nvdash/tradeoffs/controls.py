"""What must be equal, and known, before a ratio means anything; and which columns each control spoils.

A control that is unknown is equal to nothing, not even to another unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SYSTEM = ("model_base", "gpu", "gpu_count", "parallelism", "framework", "version")
"""Runs that differ here are of different machines or models and never meet in one set."""
PHASES = ("prefill", "decode", "capacity", "quality")
SPOILS: dict[str, tuple[str, ...]] = {
    "workload": ("prefill", "decode"),
    "attention_backend": PHASES,
    "scheduler": ("prefill", "decode", "capacity"),
    "prefix_cache": ("prefill", "decode"),
    "gpu_memory_utilization": ("capacity",),
    "max_model_len": ("capacity",),
    "speculative": ("prefill", "decode", "capacity"),
}
"""The controls that may differ inside a set, with the phases that lose their ratio when they do."""
LABELS = {
    "model_base": "model",
    "gpu": "GPU",
    "gpu_count": "number of GPUs",
    "parallelism": "parallelism",
    "framework": "framework",
    "version": "framework release",
    "workload": "workload",
    "attention_backend": "attention backend",
    "scheduler": "scheduler settings",
    "prefix_cache": "prefix-cache state",
    "gpu_memory_utilization": "GPU memory utilisation",
    "max_model_len": "maximum model length",
    "speculative": "speculative decoding",
    "weight_format": "weight format",
    "kv_cache_dtype": "KV-cache dtype",
}
SCHEDULERS = {
    "vllm": ("max_num_seqs", "max_num_batched_tokens", "enable_chunked_prefill"),
    "sglang": ("max_running_requests", "chunked_prefill_size", "max_prefill_tokens", "scheduling_policy"),
    "tensorrt-llm": ("max_batch_size", "max_num_tokens", "scheduling_policy"),
}
UTILISATION = {"vllm": "gpu_memory_utilization", "sglang": "mem_fraction_static", "tensorrt-llm": "kv_memory_percent"}
ONE_NAME = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float": "fp32",
    "float32": "fp32",
    "fp8": "fp8_e4m3",
    "none": None,
    "auto": None,
    "unknown": None,
    "": None,
}
"""Spellings of one format; a word that says nothing is unknown."""
WIDE = frozenset({"bf16", "fp16", "fp32"})
NO_DRAFTS = frozenset({"none", "off", "no"})


@dataclass(frozen=True, slots=True)
class Axes:
    """The two precisions of a run, None where nobody knows: the two axes never collapse."""

    weights: str | None
    cache: str | None


def axes(row: Mapping[str, Any]) -> Axes:
    """Weight and cache format of a row; a cache that was seen to be another one than asked for is unknown."""
    weights = format_name(row.get("weight_format"))
    if row.get("cache_verdict") == "trap":
        return Axes(weights, None)
    resolved = format_name(row.get("kv_cache_dtype_resolved"))
    return Axes(weights, resolved or format_name(row.get("kv_cache_dtype_requested")) or _two_sided(row))


def _two_sided(row: Mapping[str, Any]) -> str | None:
    """The cache of an engine that names keys and values apart."""
    key, value = format_name(row.get("kv_dtype_k")), format_name(row.get("kv_dtype_v"))
    if key is None or value is None:
        return None
    return key if key == value else f"{key}/{value}"


def format_name(word: Any) -> str | None:
    """One spelling for a number format."""
    if word is None:
        return None
    plain = str(word).strip().lower().removeprefix("torch.")
    return ONE_NAME.get(plain, plain)


def controls(row: Mapping[str, Any]) -> dict[str, Any]:
    """The controls of a row, as values that can be compared; None is unknown."""
    framework = row.get("framework")
    return {
        **{name: row.get(name) for name in ("model_base", "gpu", "gpu_count", "framework", "version")},
        "parallelism": _parallelism(row),
        "workload": _workload(row),
        "attention_backend": _backend(row),
        "scheduler": _all_known(row, SCHEDULERS.get(str(framework), ())),
        "prefix_cache": _prefix_cache(row),
        "gpu_memory_utilization": row.get(UTILISATION.get(str(framework), "gpu_memory_utilization")),
        "max_model_len": row.get("max_model_len"),
        "speculative": _speculative(row),
    }


def _all_known(row: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The settings as one text, or None while one of them is unknown."""
    values = [(name, row.get(name)) for name in names]
    if not values or any(value is None for _, value in values):
        return None
    return ", ".join(f"{name} {_number(value)}" for name, value in values)


def _parallelism(row: Mapping[str, Any]) -> str | None:
    """Tensor, pipeline, data, expert and decode-context parallel sizes; on one GPU each of them is 1."""
    sizes = {name: row.get(name) for name in ("tp", "pp", "dp", "ep", "dcp")}
    if row.get("gpu_count") == 1:
        sizes = {name: 1 if size is None else size for name, size in sizes.items()}
    elif sizes["tp"] is not None and sizes["tp"] == row.get("gpu_count"):
        sizes |= {name: sizes[name] or 1 for name in ("pp", "dp")}
    return _all_known(sizes, sizes)


def _workload(row: Mapping[str, Any]) -> str | None:
    """What was sent and how: the data, its lengths, the load and the number of requests."""
    if row.get("n_prompt") is not None or row.get("n_gen") is not None:
        parts = [f"{name} {_number(row.get(name) or 0)}" for name in ("n_prompt", "n_gen", "n_depth")]
        return ", ".join(parts)
    data = row.get("workload") or row.get("dataset")
    load = row.get("max_concurrency") or row.get("batch_size")
    rate = row.get("request_rate_rps")
    if data is None or (load is None and rate is None) or row.get("num_prompts") is None:
        return None
    lengths = [f"{name.split('_')[0]} {_number(row[name])}" for name in ("isl_target", "osl_target") if row.get(name)]
    at = f"concurrency {_number(load)}" if load is not None else "concurrency unlimited"
    return ", ".join([str(data), *lengths, at, f"rate {_number(rate)}", f"{_number(row['num_prompts'])} requests"])


def _backend(row: Mapping[str, Any]) -> str | None:
    prefill, decode = row.get("attention_backend_prefill"), row.get("attention_backend_decode")
    if prefill and decode and str(prefill).lower() != str(decode).lower():
        return f"{prefill} + {decode}".lower()
    stated = row.get("attention_backend") or (prefill if prefill and decode else None)
    return None if stated is None or str(stated).lower() == "auto" else str(stated).lower()


def _prefix_cache(row: Mapping[str, Any]) -> str | None:
    """off, on-cold or on-warm; "enabled" alone does not say whether it was warm."""
    if row.get("enable_prefix_caching") is False or row.get("radix_cache_enabled") is False:
        return "off"
    state = row.get("prefix_cache_state")
    return None if state in (None, "unknown") else str(state)


def _speculative(row: Mapping[str, Any]) -> str | None:
    method, tokens = row.get("spec_method"), row.get("num_speculative_tokens")
    if method is None:
        return None
    if str(method).lower() in NO_DRAFTS:
        return "none"
    return None if tokens is None else f"{method}, {tokens} tokens"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def differences(first: Mapping[str, Any], second: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """The named controls that are not equal and known on both sides."""
    found = []
    for name in names:
        one, other = first.get(name), second.get(name)
        if one is None or other is None or one != other:
            found.append({"control": name, "label": LABELS[name], "values": [one, other]})
    return found


def spoiling(phase: str) -> tuple[str, ...]:
    """The controls that spoil a phase."""
    return tuple(name for name, phases in SPOILS.items() if phase in phases)


def in_words(found: Iterable[Mapping[str, Any]]) -> str:
    """Differences as a reader wants them: what differs, and what nobody knows."""
    words = []
    for item in found:
        one, other = item["values"]
        if one is None and other is None:
            words.append(f"{item['label']}: unknown in both")
        elif one is None or other is None:
            words.append(f"{item['label']}: unknown in one, {other if one is None else one} in the other")
        else:
            words.append(f"{item['label']}: {one} against {other}")
    return "; ".join(words)
