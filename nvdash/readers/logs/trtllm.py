"""What a TensorRT-LLM log says of engine, memory and pool; every rank prints its own lines, without a tag."""

import re
from typing import Any

from nvdash.readers.logs.facts import Facts, patterns
from nvdash.readers.record import clean_model, to_number

_PATTERNS = patterns(
    (
        "max tokens in paged KV cache",
        r"Allocated (?P<kv_allocated_gib>[\d.]+) GiB for max tokens in paged KV cache \((?P<kv_tokens>\d+)\)",
    ),
    ("bytes for k/v cache", r"Allocate (?P<kv_allocated_bytes>\d+) bytes for k/v cache"),
    ("Number of blocks in KV cache primary pool", r"primary pool: (?P<num_blocks>\d+)"),
    ("tokens per block", r"tokens per block: (?P<block_size>\d+)"),
    (
        "Memory usage when calculating max tokens",
        r"total: (?P<gpu_total_gib>[\d.]+) GiB, available: (?P<free_min_gib>[\d.]+) GiB",
    ),
    ("for runtime buffers", r"Allocated (?P<runtime_buffers_gb>[\d.]+) G\w+ GPU memory for runtime buffers"),
    ("for decoder", r"Allocated (?P<decoder_gb>[\d.]+) G\w+ GPU memory for decoder"),
    ("version:", r"TensorRT[- ]LLM version: (?P<version>\d+\.\d+\.\d+(?:\.?(?:dev|rc|post)\d+)?)"),
    ("tokens in paged KV cache", r"Using (?P<kv_tokens>\d+) (?:total )?tokens in paged KV cache"),
    ("Engine version", r"Engine version (?P<version_engine>\d\S*) found in the config file"),
    ("MPI size:", r"MPI size: (?P<world_size>\d+),"),
    ("maxNumTokens:", r"maxNumTokens: (?P<max_num_tokens>\d+)"),
    ("maxBatchSize:", r"maxBatchSize: (?P<max_batch_size>\d+)"),
    ("maxSequenceLen:", r"maxSequenceLen: (?P<max_model_len>\d+)"),
    ("Capacity Scheduler Policy:", r"Capacity Scheduler Policy: (?P<scheduling_policy>\w+)"),
    ("Max KV cache pages per sequence", r"pages per sequence: (?P<pages_per_sequence>\d+)"),
    ("Prefetching ", r"Prefetching (?P<model_folder>\S+)/[^/\s]+\.safetensors to memory"),
)
SUMMARY = re.compile(r"^\s*([A-Z][\w +/()\[\].%-]*?):\s+(\S.*)$")
_SUMMARY_FIELDS = {
    "Model": "model",
    "TensorRT-LLM Version": "version",
    "TensorRT LLM Version": "version",
    "KV Cache Dtype": "kv_cache_dtype_requested",
    "Quantization": "weight_format",
    "Dtype": "dtype",
    "Max Sequence Length": "max_model_len",
    "TP Size": "tp",
    "PP Size": "pp",
    "EP Size": "ep",
    "Max Runtime Batch Size": "max_batch_size",
    "Max Runtime Tokens": "max_num_tokens",
    "Scheduling Policy": "scheduling_policy",
    "KV Memory Percentage": "kv_memory_percent",
}
_POOL_FACTS = ("kv_allocated_gib", "kv_tokens", "num_blocks")
_MACHINE = re.compile(r"^(?P<gpu>[^,]+), memory (?P<gib>[\d.]+) GB")


class Log:
    """One log's messages, taken one by one."""

    def __init__(self) -> None:
        self._said = Facts()
        self._in_machine = False

    def take(self, text: str) -> None:
        """Take one message in; the pool in which the engine profiles its memory gives way to the real one."""
        if "in memory usage profiling" in text:
            for name in _POOL_FACTS:
                self._said.values.pop(name, None)
        self._said.match(_PATTERNS, text)
        if summary := SUMMARY.match(text.rstrip()):
            field = _SUMMARY_FIELDS.get(summary[1])
            if field and summary[2] == "None":
                self._said.collect("unquantised", field)
            elif field:
                self._said.latest(field, summary_value(field, summary[2]))
        if self._in_machine and (match := _MACHINE.match(text)):
            self._said.add("gpu", match["gpu"].strip())
            self._said.add("gpu_memory_gib", float(match["gib"]))
            self._in_machine = False
        self._in_machine |= "MACHINE DETAILS" in text

    def facts(self) -> dict[str, Any]:
        """The facts of the log, each by its normal name."""
        return _settled(self._said.values)


def summary_value(field: str, text: str) -> Any:
    """A value of the closing summary."""
    if text == "N/A":
        return None
    if field == "model":
        return clean_model(text)
    if field in ("weight_format", "kv_cache_dtype_requested"):
        return text.lower()
    number = to_number(text.rstrip("%"))
    return text if number is None or field == "version" else number


def _unquantised(names: list[str], dtype: Any) -> dict[str, Any]:
    """What the word None means in the summary: cache and weights keep the model's own type."""
    found = {"kv_cache_dtype_resolved": dtype} if "kv_cache_dtype_requested" in names else {}
    return {**found, **({"weight_format": SHORT.get(dtype, dtype)} if "weight_format" in names else {})}


SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
"""Weight formats by the dtype word of a summary."""


def _settled(said: dict[str, Any]) -> dict[str, Any]:
    facts = {**said, "framework": "tensorrt-llm"}
    facts.setdefault("version", facts.pop("version_engine", None))
    facts.pop("version_engine", None)
    folder = facts.pop("model_folder", None)
    facts.setdefault("model", clean_model(folder) if folder else None)
    facts |= _unquantised(facts.pop("unquantised", []), facts.get("dtype"))
    if "kv_allocated_bytes" in facts:
        facts.setdefault("kv_allocated_gib", facts["kv_allocated_bytes"] / 2**30)
    gib, tokens = facts.get("kv_allocated_gib"), facts.get("kv_tokens")
    if gib and tokens:
        facts["observed"] = {
            "kv_bytes_per_token": round(gib * 2**30 / tokens, 3),
            "pool_bytes": int(gib * 2**30),
            "pool_source": "pool printed with two decimals",
            "kv_tokens": tokens,
        }
    if gib or tokens:
        facts["status"] = "ok"
    return {name: value for name, value in facts.items() if value is not None}
