"""What an engine's own log says it resolved the request to."""

import re
from collections.abc import Iterable
from typing import Any

from nvdash.readers.logs import sglang, vllm

CPU_REFUSES = re.compile(r"Cannot use (?:AttentionBackendEnum\.)?(\w+) backend on CPU")
REQUESTED_BACKEND = re.compile(r"AttentionConfig\(backend=<AttentionBackendEnum\.(\w+)")
KEPT = {
    "attention_backend": "backend",
    "kv_cache_dtype_resolved": "kv_cache_dtype_log",
    "q_dtype_prefill": "q_dtype_prefill",
    "q_dtype_decode": "q_dtype_decode",
    "decode_path": "decode_path",
    "weights_gib": "weights_gib",
}


def read_lines(lines: Iterable[str]) -> dict[str, Any]:
    """Backend, query dtypes and decode path as printed; a backend that the CPU platform turns down became CPU_ATTN."""
    listed = list(lines)
    said: dict[str, Any] = {}
    for reader in (vllm.read, sglang.read):
        facts = reader(listed)
        said |= {name: facts[key] for key, name in KEPT.items() if facts.get(key) is not None and name not in said}
    if any(CPU_REFUSES.search(line) for line in listed):
        said["backend"] = "CPU_ATTN"
    return said


def requested_backend(lines: Iterable[str]) -> str | None:
    """The backend a vLLM log says was asked for."""
    return next((found[1] for line in lines if (found := REQUESTED_BACKEND.search(line))), None)
