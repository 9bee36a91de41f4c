"""SGLang: dummy weights from a config.json, profiled by stage.

Its profiler separates prefill (extend) and decode by itself; the pool's bytes are read from its log by the starting
process. Not run by us on a GPU yet.
"""

import contextlib
import dataclasses
import json
import tempfile
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from nvdash.smoke import steps
from nvdash.smoke.case import Phases
from nvdash.smoke.engines import gpu_facts
from nvdash.smoke.outcomes import NotHere
from nvdash.smoke.spec import CaseSpec

PROMPTS, NEW_TOKENS, CONTEXT = (193, 70), 9, 1024
STAGES = {"EXTEND": ("prefill", 1), "DECODE": ("decode", NEW_TOKENS - 1)}
"""The mark in a trace's file name, its phase, and the steps that are profiled of it."""


def run(spec: CaseSpec, phases: Phases) -> dict[str, Any]:
    """Build the engine eager, generate once to warm up, and again under the profiler."""
    if spec.config is None:
        raise NotHere("the SGLang engine builds a model from a config.json", "name a --model")
    import sglang

    with tempfile.TemporaryDirectory(prefix="nvdash-sglang-") as folder:
        traces = Path(folder) / "traces"
        (Path(folder) / "config.json").write_text(json.dumps(spec.config), encoding="utf-8")
        phases.enter("allocate")
        engine = sglang.Engine(**known(wanted(spec, folder)))
        try:
            phases.enter("build")
            generate(engine, 2)
            phases.enter("prefill")
            began = time.perf_counter()
            generate(engine, 1)
            prefill = time.perf_counter() - began
            phases.enter("decode")
            engine.start_profile(
                output_dir=str(traces), num_steps=NEW_TOKENS - 1, profile_by_stage=True, record_shapes=True
            )
            generate(engine, NEW_TOKENS)
            phases.enter("compare")
            info = engine.get_server_info()
            trace = steps.merged(staged(traces.rglob("*.trace.json*")))
        finally:
            with contextlib.suppress(Exception):
                engine.shutdown()
    return {
        "environment": environment(),
        "resolved": {"kv_cache_dtype": info.get("kv_cache_dtype"), "backend": info.get("attention_backend")},
        "cache": {"kv_tokens": info.get("max_total_num_tokens"), "block_size": info.get("page_size")},
        "trace": trace,
        "layers": len(spec.layers),
        "exercised": ["kv_write", "prefill", "decode"],
        "timings": {"prefill_s": round(prefill, 4)},
        "graphs": ["eager"],
    }


def wanted(spec: CaseSpec, folder: str) -> dict[str, Any]:
    """The engine's options."""
    return {
        "model_path": folder,
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "disable_cuda_graph": True,
        "disable_radix_cache": True,
        "kv_cache_dtype": "auto" if spec.kv_cache_dtype in ("bf16", "fp16") else spec.kv_cache_dtype,
        "attention_backend": spec.backend,
        "context_length": CONTEXT,
        "max_total_tokens": 16 * CONTEXT,
        "mem_fraction_static": 0.5,
        "random_seed": spec.seed,
        "log_level": "info",
    }


def known(options: dict[str, Any]) -> dict[str, Any]:
    """The options that this release has; unset ones are left to it."""
    from sglang.srt.server_args import ServerArgs

    names = {field.name for field in dataclasses.fields(ServerArgs)}
    return {name: value for name, value in options.items() if name in names and value is not None}


def generate(engine: Any, count: int) -> Any:
    """Greedy tokens for both prompts."""
    prompts = [[3 + place % 97 for place in range(length)] for length in PROMPTS]
    return engine.generate(
        input_ids=prompts, sampling_params={"max_new_tokens": count, "temperature": 0, "ignore_eos": True}
    )


def staged(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Each trace with the phase that its name states."""
    found = []
    for path in sorted(files):
        stage = next((STAGES[mark] for mark in STAGES if mark in path.name.upper()), None)
        trace = steps.kernels(steps.read_events(path))
        if stage:
            phase, count = stage
            trace["rows"] = [{**row, "phase": phase} for row in trace["rows"]]
            trace["steps"] = {phase: count}
        found.append(trace)
    return found


def environment() -> dict[str, Any]:
    """Versions and device."""
    return {**gpu_facts(), "release": version("sglang"), "flashinfer": version("flashinfer-python")}


def version(package: str) -> str | None:
    """The installed version of a package, without its local part."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package).partition("+")[0]
    return None
