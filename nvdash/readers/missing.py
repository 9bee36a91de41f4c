"""What a bundle leaves open: the fields a submission form asks for, each with its question.

Nothing is asked that a file states; `auto` is a request, not an answer, so the dtype in effect stays open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.readers.record import QualityRow, Run


@dataclass(frozen=True, slots=True)
class Missing:
    """One open field: its name in the normal form and the question in words."""

    field: str
    label: str

    def as_dict(self) -> dict[str, str]:
        """The gap as JSON."""
        return {"field": self.field, "label": self.label}


QUESTIONS = {
    "model": "Model (Hugging Face id; a served alias does not say which)",
    "gpu": "GPU model",
    "gpu_count": "Number of GPUs",
    "framework": "Framework",
    "version": "Framework version, exact",
    "flashinfer_version": "FlashInfer version",
    "weight_format": "Weight format",
    "kv_cache_dtype_requested": "KV-cache dtype requested",
    "kv_cache_dtype_resolved": "KV-cache dtype in effect",
    "attention_backend": "Attention backend",
    "prefix_cache_state": "Prefix cache state (off, on-cold, on-warm)",
    "workload": "Workload name",
    "tp": "Tensor parallel size",
    "pp": "Pipeline parallel size",
    "ep": "Expert parallel size",
    "dp": "Data parallel size",
    "max_num_seqs": "Maximum number of sequences (scheduler)",
    "max_num_batched_tokens": "Maximum batched tokens (scheduler)",
    "enable_chunked_prefill": "Chunked prefill",
    "gpu_memory_utilization": "GPU memory utilisation",
    "max_model_len": "Maximum model length",
    "spec_method": "Speculative decoding method",
    "num_speculative_tokens": "Draft tokens",
    "dataset": "Dataset name",
    "isl_target": "Input length asked for (ISL target)",
    "osl_target": "Output length asked for (OSL target)",
    "max_concurrency": "Concurrency",
    "requests_completed": "Number of requests",
    "model_bytes": "Checkpoint bytes",
    "weights_gib": "Loaded weights memory, GiB",
    "kv_tokens": "KV cache tokens",
    "preemptions": "Preemptions",
    "prefix_hit_rate": "Prefix cache hit rate",
    "quality": "Task quality (lm-evaluation-harness results of the same server)",
}
"""Every question a form may ask, in its order."""

ASKED_FOR: dict[str, tuple[str, ...]] = {
    "serving": tuple(name for name in QUESTIONS if name != "flashinfer_version"),
    "quality": (*"model gpu gpu_count framework version weight_format kv_cache_dtype_requested".split(),
                *"kv_cache_dtype_resolved attention_backend tp max_model_len gpu_memory_utilization".split()),
    "kernel": ("gpu", "flashinfer_version"),
    "trace": ("gpu", "model", "framework", "version", "workload"),
    "server": ("gpu", *"gpu_count framework version model weight_format kv_cache_dtype_requested".split(),
               *"kv_cache_dtype_resolved attention_backend kv_tokens weights_gib".split()),
    "nothing": (),
}  # fmt: skip
"""Fields by what kind of file asks for them."""

_STATED_BY = {
    "kv_cache_dtype_requested": ("kv_dtype_k",),
    "kv_cache_dtype_resolved": ("kv_dtype_k",),
    "attention_backend": ("attention_backend_prefill", "attention_backend_decode", "flash_attn"),
    "weight_format": ("quantization", "model_type"),
    "max_num_seqs": ("max_running_requests", "max_batch_size"),
    "max_num_batched_tokens": ("max_num_tokens", "max_prefill_tokens", "n_batch"),
    "enable_chunked_prefill": ("chunked_prefill_size",),
    "gpu_memory_utilization": ("mem_fraction_static", "kv_memory_percent"),
    "prefix_cache_state": (),
    "max_concurrency": ("batch_size", "n_gen"),
    "tp": ("tp_prefill",),
    "dataset": ("data", "n_prompt"),
    "isl_target": ("prompt", "n_prompt", "isl"),
    "osl_target": ("response", "n_gen", "osl"),
    "num_speculative_tokens": (),
}
"""Other fields that answer the same question."""


def missing(
    asks: str, runs: Sequence[Run], quality: Sequence[QualityRow], server: Mapping[str, Any]
) -> tuple[Missing, ...]:
    """The questions that these files leave open."""
    return tuple(
        Missing(name, QUESTIONS[name])
        for name in ASKED_FOR[asks]
        if not (name == "quality" and quality) and not _stated(name, runs, server)
    )


def _stated(name: str, runs: Sequence[Run], server: Mapping[str, Any]) -> bool:
    names = (name, *_STATED_BY.get(name, ()))
    in_server = any(_says(n, server.get(n)) for n in names)
    return in_server or (bool(runs) and all(_run_states(names, run) for run in runs))


def _run_states(names: Sequence[str], run: Run) -> bool:
    """Whether a run states one of these, itself or on both sides of a disaggregated one."""
    sides = [side for name in ("prefill", "decode") if isinstance(side := run.values.get(name), Mapping)]
    return any(_says(n, run.get(n)) for n in names) or (
        bool(sides) and all(any(_says(n, side.get(n)) for n in names) for side in sides)
    )


def _says(name: str, value: Any) -> bool:
    if name == "model" and value is not None:
        return "/" in str(value)
    return value is not None
