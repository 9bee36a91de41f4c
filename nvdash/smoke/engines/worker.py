"""Asked inside a vLLM worker process: which backends its layers got, and what the cache tensors really are."""

from typing import Any


def describe(worker: Any) -> dict[str, Any]:
    """Backends, and bytes per token over the layers' own tensors with their types and shapes."""
    runner = getattr(worker, "model_runner", None) or worker.worker.model_runner
    tensors = [held for held in runner.kv_caches if hasattr(held, "untyped_storage")]
    config = worker.vllm_config.cache_config
    tokens = config.num_gpu_blocks * config.block_size
    sizes = [held.numel() * held.element_size() for held in tensors]
    whole = sizes and all(size % tokens == 0 for size in sizes)
    return {
        "resolved": {"backend": ", ".join(backends(runner)) or None},
        "cache": {
            "bytes_per_token": sum(size // tokens for size in sizes) if whole else None,
            "tensor_dtype": ", ".join(sorted({str(held.dtype).removeprefix("torch.") for held in tensors})) or None,
            "tensor_shape": [list(held.shape) for held in tensors[:8]],
        },
    }


def backends(runner: Any) -> list[str]:
    """Names of the attention backends, each once, in the order of the layers."""
    groups = [group for per_kind in getattr(runner, "attn_groups", []) for group in per_kind]
    return list(dict.fromkeys(group.backend.get_name() for group in groups))
