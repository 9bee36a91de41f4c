"""Ingest and question times of the store, as one JSON object: `python tests/bench/store/bench_store.py 100000`."""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

import generate  # noqa: E402

from nvdash.store import adding, matched, runs  # noqa: E402
from nvdash.store.connection import reading  # noqa: E402
from nvdash.tradeoffs import frontier, matching  # noqa: E402
from nvdash.tradeoffs.groups import group  # noqa: E402

FILTERS = {"model_base": "org/model-3", "gpu": "B200"}
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


def median_ms(question: Callable[[], object], repeats: int = 5) -> float:
    """The median of several askings, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        question()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def comparison() -> object:
    """The matched sets of one model and GPU, with every effect and interaction."""
    groups = [group(row) for row in matched.groups(FILTERS)]
    sets = matching.matched_sets(groups)
    return [(matching.table(found), matching.effects(found), matching.interactions(found)) for found in sets]


def pareto() -> object:
    """Throughput against interactivity of one model and GPU."""
    return frontier.points(matched.points(FILTERS, ("output_tok_s",)), "throughput_interactivity")


def history() -> object:
    """The decode time of one model and GPU over releases."""
    return matched.history(FILTERS, "tpot_mean_ms")


def raw(columns: tuple[str, ...]) -> Callable[[], object]:
    """A plain scan of the same columns over the same file, opened the same way."""

    def scan() -> object:
        with reading() as connection:
            parts = ", ".join(f"max({name})" for name in columns)
            return connection.execute(f"SELECT {parts} FROM runs").fetchall()

    return scan


SCANS = {
    "comparison": (*matched.CONTROLS, "run_id", *matched.GROUPED, *matched.RANGED),
    "pareto": (*matched.POINT, "max_concurrency", "tpot_mean_ms", "output_tok_s_per_user", "output_tok_s"),
    "history": (*FILTERS, "framework", "version", "weight_format", "kv_cache_dtype_resolved", "tpot_mean_ms"),
}


def measure(count: int) -> dict[str, object]:
    """Every figure for a store of this many runs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NVDASH_STORE"] = str(Path(folder) / "bench.duckdb")
        speed = ingest(count)
        answers = {"comparison": comparison, "pareto": pareto, "history": history}
        asked = {name: median_ms(question) for name, question in answers.items()}
        scans = {name: median_ms(raw(columns)) for name, columns in SCANS.items()}
        return {
            "runs": runs.count(),
            "file_mb": round(Path(os.environ["NVDASH_STORE"]).stat().st_size / 1e6, 1),
            "ingest_runs_per_s": round(speed),
            "question_ms": {name: round(value, 1) for name, value in asked.items()},
            "raw_scan_ms": {name: round(value, 1) for name, value in scans.items()},
            "ratio_to_raw_scan": {name: round(asked[name] / scans[name], 2) for name in asked},
            "targets": {**TARGETS, "question_ms": TARGETS["question_ms"].get(count)},
        }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000), indent=1))
