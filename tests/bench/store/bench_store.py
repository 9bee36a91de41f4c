"""Ingest and question times of the store, as JSON rows: `python tests/bench/store/bench_store.py 100000`."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent), str(HERE)]

import generate  # noqa: E402
from timing import Timing, in_turns, row  # noqa: E402

from nvdash.answers import comparison as answers  # noqa: E402
from nvdash.store import adding, matched  # noqa: E402
from nvdash.store.connection import reading  # noqa: E402

ASKED = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "rtx-5090"}
CHUNK = 50_000
QUESTION_MS = {100_000: "<= 100", 1_000_000: "<= 300"}


def ingest(count: int) -> tuple[float, float]:
    """Store this many runs in normal form; the seconds it took and its processor seconds, without making the runs."""
    source, wall, cpu = generate.runs(count), 0.0, 0.0
    while chunk := list(islice(source, CHUNK)):
        spent = in_turns({"add": partial(adding.add, chunk)}, 1)["add"]
        wall, cpu = wall + spent.wall_s, cpu + spent.cpu_s
    return wall, cpu


def comparison() -> object:
    """The matched sets of one model and GPU, with every effect and interaction, as the page and the CLI get them."""
    return answers.compare(ASKED)


def pareto() -> object:
    """Throughput against interactivity of one model and GPU."""
    return answers.pareto(ASKED)


def history() -> object:
    """The decode time of one model and GPU over releases."""
    return answers.history(ASKED, "tpot_mean_ms")


def raw(columns: tuple[str, ...]) -> Callable[[], object]:
    """A plain scan of the same columns over the same file, opened the same way."""

    def scan() -> object:
        with reading() as connection:
            parts = ", ".join(f"max({name})" for name in columns)
            return connection.execute(f"SELECT {parts} FROM runs").fetchall()

    return scan


QUESTIONS = {"comparison": comparison, "pareto": pareto, "history": history}
HELD = ("model_base", "gpu")
SCANS = {
    "comparison": (*matched.CONTROLS, "run_id", *matched.GROUPED, *matched.RANGED),
    "pareto": (*matched.POINT, "max_concurrency", "tpot_mean_ms", "output_tok_s_per_user", "output_tok_s"),
    "history": (*HELD, "framework", "version", "weight_format", "kv_cache_dtype_resolved", "tpot_mean_ms"),
}


def rows(count: int, repetitions: int = 7) -> list[dict[str, Any]]:
    """Every figure for a store of this many runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NVDASH_STORE"] = str(Path(folder) / "bench.duckdb")
        wall, cpu = ingest(count)
        scans = {f"scan {name}": raw(columns) for name, columns in SCANS.items()}
        times = in_turns({**QUESTIONS, **scans}, repetitions)
        found = [row(f"store ingest, {count} runs", count / wall, "runs/s", ">= 20000", per_cpu_s=count / cpu)]
        return found + [question_row(name, count, times[name], times[f"scan {name}"]) for name in QUESTIONS]


def question_row(name: str, count: int, ours: Timing, scan: Timing) -> dict[str, Any]:
    """One question, beside a raw scan of the same columns of every run."""
    target, more = QUESTION_MS.get(count, ""), {"baseline": "raw scan", "baseline_ms": scan.wall_s * 1000}
    more |= {"ratio": ours.wall_s / scan.wall_s, "ratio_cpu": ours.cpu_s / scan.cpu_s}
    return row(f"store {name}, {count} runs", ours.wall_s * 1000, "ms", target, cpu=ours.cpu_s * 1000, **more)


if __name__ == "__main__":
    print(json.dumps(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000), indent=1))
