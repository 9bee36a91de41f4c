"""Runs in normal form for load tests: a fleet of models, GPUs, releases and precisions, reproducible by its seed."""

import random
from collections.abc import Iterator

from nvdash.store.adding import FileMark, NewRun
from nvdash.store.identity import run_id

MODELS = ["meta-llama/Llama-3.1-8B-Instruct", *(f"org/model-{number}" for number in range(19))]
GPUS = ["b200-hgx", "h200-sxm", "rtx-5090", "rtx-pro-6000-ws", "gb300", "l40s", "a100-80gb-sxm", "h100-sxm"]
RELEASES = ["0.30.0", "0.31.0", "0.32.0", "0.33.0"]
WEIGHTS, CACHES = ("bf16", "nvfp4"), ("bf16", "fp8", "nvfp4")
FILE = FileMark("bench.json", "vllm-bench-serve", "0" * 64, 4096)


def runs(count: int, seed: int = 1) -> Iterator[NewRun]:
    """This many different runs; speeds follow the precisions so that comparisons have something to find."""
    draw = random.Random(seed)
    for number in range(count):
        values = _values(draw, number)
        yield NewRun(run_id(values), values, FILE)


def _values(draw: random.Random, number: int) -> dict[str, object]:
    weights, cache = draw.choice(WEIGHTS), draw.choice(CACHES)
    concurrency = draw.choice((1, 4, 16, 64))
    speed = 1000 * (1.6 if weights == "nvfp4" else 1.0) * {"bf16": 1.0, "fp8": 1.1, "nvfp4": 1.2}[cache]
    tpot = 1000 * concurrency**0.5 / speed * draw.uniform(0.97, 1.03) * 8
    ttft = 40 * concurrency**0.5 * draw.uniform(0.95, 1.05)
    spread = {
        f"{name}_{point}_ms": base * factor
        for name, base in (("ttft", ttft), ("tpot", tpot), ("itl", tpot))
        for point, factor in (("mean", 1.0), ("p50", 0.98), ("p99", 2.5))
    }
    model = draw.choice(MODELS)
    return {
        "kind": "serving",
        "model": model,
        "model_base": model,
        "gpu": draw.choice(GPUS),
        "gpu_count": 1,
        "tp": 1,
        "framework": "vllm",
        "version": draw.choice(RELEASES),
        "weight_format": weights,
        "run_number": number,
        "kv_cache_dtype_requested": cache,
        "kv_cache_dtype_resolved": cache,
        "attention_backend": "FLASHINFER",
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "enable_chunked_prefill": True,
        "prefix_cache_state": "off",
        "gpu_memory_utilization": 0.9,
        "spec_method": "none",
        "workload": "random-2048x256",
        "max_concurrency": concurrency,
        "request_rate_rps": "inf",
        "num_prompts": 200,
        "isl_mean": 2048.0,
        "osl_mean": 256.0,
        "running_avg": float(concurrency),
        "preemptions": 0,
        "prefix_hit_rate": 0.0,
        "requests_completed": 200,
        "requests_failed": 0,
        "output_tok_s": concurrency * 1000 / tpot,
        "duration_s": 60.0 + draw.random(),
        **spread,
        "kv_tokens": int(400_000 * {"bf16": 1.0, "fp8": 2.0, "nvfp4": 3.56}[cache]),
    }
