"""Rows of runs with every control known, for tests to change one thing at a time."""

KNOWN = {
    "model_base": "Qwen/Qwen3-8B",
    "gpu": "rtx-5090",
    "gpu_count": 1,
    "tp": 1,
    "framework": "vllm",
    "version": "0.33.0",
    "attention_backend": "FLASHINFER",
    "max_num_seqs": 64,
    "max_num_batched_tokens": 8192,
    "enable_chunked_prefill": True,
    "prefix_cache_state": "off",
    "gpu_memory_utilization": 0.9,
    "max_model_len": 4096,
    "spec_method": "none",
    "workload": "random",
    "max_concurrency": 8,
    "request_rate_rps": "inf",
    "num_prompts": 100,
    "isl_mean": 1024.0,
    "osl_mean": 128.0,
    "running_avg": 8.0,
    "preemptions": 0,
    "prefix_hit_rate": 0.0,
}


def run(name, weights, cache, **changes):
    """One run with its two precisions and whatever differs from the known controls."""
    own = {"run_id": name * 8, "weight_format": weights, "kv_cache_dtype_resolved": cache}
    return {name: value for name, value in {**KNOWN, **own, **changes}.items() if value is not None}
