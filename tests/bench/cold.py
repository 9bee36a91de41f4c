"""How long a cold answer takes, a whole process each, with other tools beside it where they are installed.

    python tests/bench/cold.py [--repetitions N]

NVDASH_PYTHON_AICONFIGURATOR and NVDASH_PYTHON_HF_MEM name the interpreters that hold aiconfigurator and hf-mem.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from accuracy import write_model  # noqa: E402
from timing import in_turns, process, row  # noqa: E402

ASKED = ("--model", "meta-llama/Llama-3.1-8B-Instruct", "--weights", "bf16", "--kv-cache-dtype", "nvfp4", "--json")
CHECK = (sys.executable, "-m", "nvdash", "check", "--gpu", "RTX 5090", *ASKED)
SUPPORT = ("cli", "support", "--model-path", "Qwen/Qwen3-32B-FP8", "--system", "h200_sxm")
MEMORY = ("--release", "0.33.0", "--max-model-len", "32768", "--available-kv-gib", "40", "--json")


def check_rows(repetitions: int) -> list[dict[str, Any]]:
    """One verdict; aiconfigurator answers its own support question."""
    work = {"nvdash": process(CHECK, (0, 1, 3))}
    python = os.environ.get("NVDASH_PYTHON_AICONFIGURATOR")
    if python:
        work["aiconfigurator cli support"] = process([str(Path(python).with_name("aiconfigurator")), *SUPPORT])
    return compared("cold check", work, repetitions, "ratio <= 0.2", "<= 0.3")


def memory_rows(repetitions: int) -> list[dict[str, Any]]:
    """The memory of one request over a local folder; hf-mem offline over the same folder."""
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), {"model": "meta-llama/Llama-3.1-70B-Instruct"})
        work = {"nvdash": process((sys.executable, "-m", "nvdash", "memory", "--model", folder, *MEMORY))}
        python = os.environ.get("NVDASH_PYTHON_HF_MEM")
        if python:
            asked = json.dumps({"folder": folder, "length": 32_768, "kv_cache_dtype": "bfloat16"})
            work["hf-mem"] = process((python, str(HERE / "drivers" / "hf_mem_offline.py")), words=asked)
        return compared("cold memory", work, repetitions, "ratio <= 1.1")


def compared(
    name: str, work: dict[str, Callable[[], None]], repetitions: int, ratio: str, seconds: str = ""
) -> list[dict[str, Any]]:
    """Our seconds, and their ratio to the other tool's in the same turns; null where there is none."""
    times = in_turns(work, repetitions)
    ours = times.pop("nvdash")
    rows = [row(name, ours.wall_s, "s", seconds, cpu=ours.cpu_s)]
    for other, theirs in times.items():
        more = {"ratio": ours.wall_s / theirs.wall_s, "ratio_cpu": ours.cpu_s / theirs.cpu_s}
        rows.append(row(f"{name} against {other}", theirs.wall_s, "s", ratio, **more, baseline=other))
    return rows


def rows(repetitions: int = 7) -> list[dict[str, Any]]:
    """Both answers."""
    return [*check_rows(repetitions), *memory_rows(repetitions)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    print(json.dumps(rows(parser.parse_args().repetitions), indent=1))
