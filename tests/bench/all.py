"""Everything that has a speed target, as one JSON object.

    python tests/bench/all.py [--only PART ...] [--runs N] [--repetitions N]

Each row has a name, value, unit and target, and the ratio to a baseline where one was measured in the same run. Other
tools stand beside us where their interpreters are named: NVDASH_PYTHON_AICONFIGURATOR, NVDASH_PYTHON_HF_MEM, and
NVDASH_PYTHON_CODEC for one that holds torch with torchao and nvidia-modelopt (default: this one).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Rows = list[dict[str, Any]]


def part(script: str, *words: object, python: str = sys.executable) -> Rows:
    """The rows that one benchmark prints; each runs in a process of its own, so that none warms another."""
    command = [python, str(HERE / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [{"name": script, "value": None, "not_measured": reason}]
    rows: Rows = json.loads(done.stdout[done.stdout.index("[") :])
    return rows


def parts(runs: int, repetitions: int) -> dict[str, Callable[[], Rows]]:
    """Every benchmark by its name."""
    repeated = ("--repetitions", repetitions)
    codec = os.environ.get("NVDASH_PYTHON_CODEC") or sys.executable
    return {
        "cold": lambda: part("cold.py", *repeated),
        "matrix": lambda: part("matrix.py", *repeated),
        "store": lambda: part("store/bench_store.py", runs),
        "pages": lambda: part("pages.py", "--runs", runs, *repeated),
        "grid": lambda: part("grid.py", *repeated),
        "clients": lambda: part("clients.py"),
        "codec": lambda: part("codec.py", *repeated, python=codec),
    }


def main() -> None:
    """Print the chosen parts, all by default."""
    names = list(parts(0, 0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names))
    parser.add_argument("--runs", type=int, default=100_000, help="runs in the store")
    parser.add_argument("--repetitions", type=int, default=7, help="turns; the best one counts")
    options = parser.parse_args()
    chosen = parts(options.runs, options.repetitions)
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load": list(os.getloadavg())}
    rows = [{"part": name, **found} for name in options.only for found in chosen[name]()]
    print(json.dumps({"machine": machine, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
