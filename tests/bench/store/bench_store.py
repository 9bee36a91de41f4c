"""Ingest and question times of the store, as one JSON object: `python tests/bench/store/bench_store.py 100000`."""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

import generate  # noqa: E402

from nvdash.answers import comparison as answers  # noqa: E402
from nvdash.store import adding, matched, runs  # noqa: E402
from nvdash.store.connection import reading  # noqa: E402

ASKED = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "rtx-5090"}
CHUNK = 50_000
TARGETS = {"ingest_runs_per_s": 20_000, "question_ms": {100_000: 100, 1_000_000: 300}, "ratio_to_raw_scan": 2.0}


def ingest(count: int) -> float:
    """Store this many runs in normal form; returns runs per second, without the time that makes them."""
    source, spent = generate.runs(count), 0.0
    while chunk := list(islice(source, CHUNK)):
        start = time.perf_counter()
        adding.add(chunk)
        spent += time.perf_counter() - start
    return count / spent


def medians_ms(work: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, tuple[float, float]]:
    """Median milliseconds of each by the clock and of processor time, taken in turns: a busy moment hits all alike."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, function in work.items():
            start, spent = time.perf_counter(), time.process_time()
            function()
            times[name].append(((time.perf_counter() - start) * 1000, (time.process_time() - spent) * 1000))
    return {
        name: (statistics.median(clock), statistics.median(processor))
        for name, (clock, processor) in ((name, zip(*pairs, strict=True)) for name, pairs in times.items())
    }


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


def measure(count: int) -> dict[str, object]:
    """Every figure for a store of this many runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NVDASH_STORE"] = str(Path(folder) / "bench.duckdb")
        speed = ingest(count)
        scans = {f"scan {name}": raw(columns) for name, columns in SCANS.items()}
        found = medians_ms({**QUESTIONS, **scans})
        return {
            "runs": runs.count(),
            "file_mb": round(Path(os.environ["NVDASH_STORE"]).stat().st_size / 1e6, 1),
            "ingest_runs_per_s": round(speed),
            "question_ms": {name: round(found[name][0], 1) for name in QUESTIONS},
            "question_cpu_ms": {name: round(found[name][1], 1) for name in QUESTIONS},
            "raw_scan_ms": {name: round(found[f"scan {name}"][0], 1) for name in QUESTIONS},
            "ratio_to_raw_scan": {name: round(found[name][0] / found[f"scan {name}"][0], 2) for name in QUESTIONS},
            "targets": {**TARGETS, "question_ms": TARGETS["question_ms"].get(count)},
        }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000), indent=1))
