"""How fast the support matrix answers, printed as JSON beside the targets of DESIGN section 11.

    python tests/bench/matrix.py [--repetitions N]

A cold verdict is a whole process. `aiconfigurator` is timed beside it where it is installed (on the PATH, or named by
NVDASH_AICONFIGURATOR); a tool that is not there gives null.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from nvdash.readers.matrix import Matrix
from nvdash.support.evaluate import verdict
from nvdash.support.names import archs, cache_dtypes
from nvdash.support.pivot import cube
from nvdash.support.view import view
from nvdash.targets import Combination, HeadLayout

CHECK = (
    *(sys.executable, "-m", "nvdash", "check", "--gpu", "RTX 5090", "--model", "meta-llama/Llama-3.1-8B-Instruct"),
    *("--weights", "bf16", "--kv-cache-dtype", "nvfp4", "--json"),
)
RIVAL = ("cli", "support", "--model-path", "Qwen/Qwen3-32B-FP8", "--system", "h200_sxm")
TARGETS_S = {"cold_check": 0.3, "pivot_first": 0.25, "pivot_cached": 0.05, "warm_verdict": 0.001}


def best(function: Callable[[], object], repetitions: int) -> float:
    """The best of several runs: the machine may be busy, it cannot be too fast."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def process(command: Sequence[str], accepted: tuple[int, ...] = (0,)) -> Callable[[], None]:
    """Runs a command whose exit code must be one of these."""

    def run() -> None:
        code = subprocess.run(command, capture_output=True, check=False).returncode
        if code not in accepted:
            raise SystemExit(f"{command[0]} ended with {code}")

    return run


def rival() -> float | None:
    """Cold seconds of aiconfigurator's own support question; None where it is not installed or fails."""
    program = os.environ.get("NVDASH_AICONFIGURATOR") or shutil.which("aiconfigurator")
    if not program:
        return None
    try:
        return best(process([program, *RIVAL]), 2)
    except SystemExit:
        return None


def measure(repetitions: int) -> dict[str, float | None]:
    """Seconds of each row."""
    item = Combination(
        "vllm", "0.33.0", "sm120", "bf16", None, "nvfp4", HeadLayout.parse("gqa:32/8x128"), checkpoint_kv="none"
    )
    matrix = Matrix()
    rules = matrix.rules("vllm")
    axes = {
        "arch": archs(matrix, "vllm", item.release),
        "backend": view(rules, item.release).backends,
        "kv_cache_dtype": cache_dtypes(matrix, "vllm", item.release),
    }
    cold = best(process(CHECK, (0, 1, 3)), repetitions)
    other = rival()
    return {
        "cold_check": cold,
        "cold_aiconfigurator": other,
        "cold_ratio": other / cold if other else None,
        "pivot_cells": float(len(cube(matrix, item, axes))),
        "pivot_first": best(lambda: cube(Matrix(), item, axes), repetitions),
        "pivot_cached": best(lambda: cube(matrix, item, axes), repetitions),
        "warm_verdict": best(lambda: verdict(matrix, item), 50),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    seconds = measure(parser.parse_args().repetitions)
    met = {name: seconds[name] <= target for name, target in TARGETS_S.items()}
    print(json.dumps({"seconds": seconds, "targets": TARGETS_S, "met": met}, indent=1))


if __name__ == "__main__":
    main()
