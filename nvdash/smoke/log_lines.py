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
    "observed": "observed",
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


ENDINGS: tuple[tuple[str, str, str | None], ...] = (
    (r"(Selected backend \w+ is not valid for this configuration.*)", "refused", "selector"),
    (r"(No valid attention backend found.*)", "refused", "selector"),
    (r"(Unknown attention backend: .*?)\. Valid options", "refused", "config"),
    (r"(Input should be '.*)", "refused", "config"),
    (r"(Missing TRTLLM-GEN kernel.*)", "refused", "kernel"),
    (r"(no kernel image is available.*)", "refused", "kernel"),
    (r"(KV Cache NVFP4 is not supported.*)", "refused", "kernel"),
    (r"(torch\.(?:cuda\.)?OutOfMemoryError.*|CUDA out of memory.*)", "oom", None),
    (
        r"(No available memory for the cache blocks.*|To serve at least one request with the model's max seq.*)",
        "oom",
        None,
    ),
    (r"(Could not find nvcc.*)", "environment", None),
    (r"(NotImplementedError: .*(?:kv|cache|attention|head).*)", "refused", "constructor"),
)
"""Last words of a worker, and whose refusal they are; the first that matches counts."""


def said_to_end(lines: Iterable[str]) -> tuple[str, str, str | None] | None:
    """Verdict, reason and layer by what the log says before an engine gave up."""
    text = "\n".join(lines)
    for pattern, verdict, layer in ENDINGS:
        if found := re.search(pattern, text):
            return verdict, found[1][:600], layer
    return None
