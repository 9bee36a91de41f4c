"""vLLM: dummy weights from a config.json, the chosen backend and cache dtype, profiled eager and run again as shipped.

The log is read back by the starting process; here the cache tensors and the profiler's traces are asked.
"""

import contextlib
import dataclasses
import gc
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nvdash.smoke import steps
from nvdash.smoke.case import Phases
from nvdash.smoke.engines import gpu_facts, worker
from nvdash.smoke.outcomes import NotHere
from nvdash.smoke.spec import CaseSpec

PROMPTS, NEW_TOKENS, MAX_MODEL_LEN = (193, 70), 9, 1024
WIDE = (None, "bf16", "fp16", "auto")
SETTLED_TOKENS = 2
"""Tokens per prompt that both graphs modes must agree on; later ones may follow a rounding difference."""


def run(spec: CaseSpec, phases: Phases) -> dict[str, Any]:
    """Build the engine twice: eager with the profiler for the kernels, then with the release's own graphs."""
    if spec.config is None:
        raise NotHere("the vLLM engine builds a model from a config.json", "name a --model")
    if spec.weights not in WIDE and not spec.config.get("quantization_config"):
        raise NotHere(
            f"the config.json carries no quantization_config for {spec.weights} weights", "name a --checkpoint"
        )
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")  # lets the workers be asked for their tensors
    with tempfile.TemporaryDirectory(prefix="nvdash-vllm-") as folder:
        traces = Path(folder) / "traces"
        (Path(folder) / "config.json").write_text(json.dumps(spec.config), encoding="utf-8")
        with engine(spec, Path(folder), traces, eager=True, phases=phases) as llm:
            facts = eager_facts(llm, spec, phases, traces)
        eager = facts.pop("tokens")
        if spec.with_graphs and facts["environment"]["device"] == "cuda":
            phases.enter("build")
            with engine(spec, Path(folder), None, eager=False, phases=phases) as llm:
                facts["numbers"] = [agreement(eager, tokens(llm, NEW_TOKENS))]
            facts["graphs"] = ["eager", "default"]
    return facts


@contextlib.contextmanager
def engine(spec: CaseSpec, folder: Path, traces: Path | None, eager: bool, phases: Phases) -> Iterator[Any]:
    """One LLM, and the end of its processes."""
    from vllm import LLM, EngineArgs

    phases.enter("allocate")
    options = wanted(spec, folder, traces, eager)
    known = {field.name for field in dataclasses.fields(EngineArgs)}
    if spec.backend and "attention_config" not in known:
        os.environ["VLLM_ATTENTION_BACKEND"] = spec.backend
    if traces and "profiler_config" not in known:
        os.environ["VLLM_TORCH_PROFILER_DIR"] = str(traces)
    llm = LLM(**{name: value for name, value in options.items() if name in known})
    try:
        yield llm
    finally:
        with contextlib.suppress(Exception):
            llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()


def wanted(spec: CaseSpec, folder: Path, traces: Path | None, eager: bool) -> dict[str, Any]:
    """The engine's options; those that a release does not know are left out, or told through its environment."""
    options: dict[str, Any] = {
        "model": str(folder),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "enforce_eager": eager,
        "kv_cache_dtype": "auto" if spec.kv_cache_dtype in ("bf16", "fp16") else spec.kv_cache_dtype,
        "dtype": "bfloat16",
        "max_model_len": MAX_MODEL_LEN,
        "max_num_seqs": 4,
        "enable_prefix_caching": False,
        "kv_cache_memory_bytes": spec.pool_bytes,
        "disable_log_stats": True,
        "seed": spec.seed,
    }
    if spec.backend:
        options["attention_config"] = {"backend": spec.backend}
    if traces:
        profiler = {"profiler": "torch", "torch_profiler_dir": str(traces), "torch_profiler_record_shapes": True}
        options["profiler_config"] = {**profiler, "torch_profiler_with_stack": False}
    return options


def tokens(llm: Any, count: int) -> list[list[int]]:
    """Greedy tokens for both prompts."""
    from vllm import SamplingParams

    sampling = SamplingParams(max_tokens=count, temperature=0, detokenize=False, ignore_eos=True)
    prompts = [{"prompt_token_ids": [3 + place % 97 for place in range(length)]} for length in PROMPTS]
    outputs = llm.generate(prompts, sampling, use_tqdm=False)
    return [list(output.outputs[0].token_ids) for output in outputs]


def eager_facts(llm: Any, spec: CaseSpec, phases: Phases, traces: Path) -> dict[str, Any]:
    """Cache, kernels, times and tokens of the eager engine; the first pass warms up and builds kernels."""
    phases.enter("build")
    tokens(llm, 2)
    phases.enter("prefill")
    began = time.perf_counter()
    tokens(llm, 1)
    prefill = time.perf_counter() - began
    phases.enter("decode")
    llm.start_profile()
    generated = tokens(llm, NEW_TOKENS)
    llm.stop_profile()
    began = time.perf_counter()
    tokens(llm, NEW_TOKENS)
    decode = (time.perf_counter() - began - prefill) / (NEW_TOKENS - 1)
    phases.enter("compare")
    asked = worker_facts(llm)
    files = sorted(path for path in traces.rglob("*.pt.trace.json*") if "async_llm" not in path.name)
    return {
        "environment": environment(),
        "resolved": {**asked.pop("resolved"), "kv_cache_dtype": resolved_dtype(llm, spec)},
        "cache": {**cache_facts(llm), **asked.pop("cache")},
        "trace": steps.merged([steps.kernels(steps.read_events(path)) for path in files]),
        "layers": len(spec.layers),
        "exercised": ["kv_write", "prefill", "decode"],
        "timings": {"prefill_s": round(prefill, 4), "decode_step_s": round(decode, 5)},
        "tokens": generated,
        "not_tested": ["values of the cache against an FP32 path"],
        "graphs": ["eager"],
    }


def resolved_dtype(llm: Any, spec: CaseSpec) -> str | None:
    """What the configuration says the cache dtype became; `auto` is the model's own type unless a checkpoint says."""
    config = llm.llm_engine.vllm_config
    said = str(config.cache_config.cache_dtype)
    return str(config.model_config.dtype).removeprefix("torch.") if said == "auto" else said


def cache_facts(llm: Any) -> dict[str, Any]:
    """Pool, blocks and tokens as the configuration holds them."""
    config = llm.llm_engine.vllm_config.cache_config
    names = {"pool_bytes": "kv_cache_memory_bytes", "num_blocks": "num_gpu_blocks", "block_size": "block_size"}
    facts = {name: getattr(config, key, None) for name, key in names.items()}
    return {**facts, "kv_tokens": getattr(config, "kv_cache_size_tokens", None)}


def worker_facts(llm: Any) -> dict[str, Any]:
    """Backends and cache tensors as the first worker holds them; nothing where a release does not let us ask."""
    try:
        (first, *_) = llm.collective_rpc(worker.describe)
    except Exception as error:  # every release may refuse in its own way; the bytes then come from the pool
        print(f"nvdash: the workers were not asked: {type(error).__name__}: {error}", flush=True)
        return {"resolved": {}, "cache": {"bytes_per_token": pool_bytes_per_token(cache_facts(llm))}}
    return dict(first)


def pool_bytes_per_token(cache: Mapping[str, Any]) -> int | None:
    """Bytes of the pool over its tokens, where the pool is a whole number of them."""
    pool, blocks, size = (cache.get(name) for name in ("pool_bytes", "num_blocks", "block_size"))
    return pool // (blocks * size) if pool and blocks and size and pool % (blocks * size) == 0 else None


def agreement(eager: list[list[int]], graphs: list[list[int]]) -> dict[str, Any]:
    """Whether both graphs modes decode the same first tokens."""
    from nvdash.smoke.numbers import Check

    pairs = zip(eager, graphs, strict=True)
    same = sum(one[:SETTLED_TOKENS] == other[:SETTLED_TOKENS] for one, other in pairs) / len(eager)
    return Check("first tokens equal, eager and default graphs", "decode", same, 1.0, higher_is_better=True).as_dict()


def environment() -> dict[str, Any]:
    """Versions and device."""
    import vllm

    flashinfer = None
    with contextlib.suppress(metadata.PackageNotFoundError):
        flashinfer = metadata.version("flashinfer-python")
    release = str(vllm.__version__).partition("+")[0]
    return {"release": release, "engine_version": str(vllm.__version__), "flashinfer": flashinfer, **gpu_facts()}
