"""One submission: counted once, stored whole or not at all, quick also for a sweep of a thousand runs."""

import json
import time
from pathlib import Path

import pytest

from nvdash.answers import submission, upload
from nvdash.errors import UsageError
from nvdash.store import identity, runs

FILES = Path(__file__).parents[1] / "readers" / "files"
BENCH, CONSOLE = FILES / "bench_serve_bf16.json", FILES / "own-vllm-console.txt"
LOG = Path(__file__).parents[2] / "data" / "seed" / "serve.log"


def sweep(folder, number):
    """A file of runs of one model, each with a duration of its own."""
    result, path = json.loads(BENCH.read_text()), folder / "sweep.jsonl"
    rows = (json.dumps({**result, "duration": result["duration"] + step}) for step in range(number))
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("files", [(BENCH, CONSOLE), (CONSOLE, BENCH)], ids=["result first", "console first"])
def test_the_console_output_of_a_result_is_no_second_run(files):
    shown = submission.preview(files)
    assert shown["num_runs"] == 1
    assert "rounded: not counted again" in shown["warnings"][0]
    stored = submission.submit(files)
    assert stored["run_ids"] == submission.submit([BENCH])["duplicates"]
    assert (
        runs.get(stored["added"][0])["ttft_mean_ms"] == 39.809045333318714
    )  # of the JSON; the console prints 2 decimals


def test_a_refusal_of_one_run_stores_nothing_of_the_others(tmp_path):
    submission.submit([BENCH, LOG])  # the log completes the run with its pool of tokens
    before = runs.count()
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**json.loads(BENCH.read_text()), "duration": 9.0}))
    with pytest.raises(UsageError, match="the measured value"):
        submission.submit([other, BENCH], {"kv_tokens": "7"})
    assert runs.count() == before


def test_a_thousand_runs_are_previewed_stored_and_undone_in_seconds(tmp_path):
    path, typed = sweep(tmp_path, 1_000), {"gpu": "rtx-5090", "model": "Qwen/Qwen3-8B"}
    start = time.process_time()
    shown = submission.preview([path], typed)
    assert (len(shown["runs"]), shown["num_runs"]) == (20, 1_000)
    added = submission.submit([path], typed)["added"]
    assert len(submission.submit([path], typed)["duplicates"]) == 1_000
    assert runs.count({"gpu": "rtx-5090", "model_base": "Qwen/Qwen3-8B"}) == 1_000
    assert len(submission.undo(added)) == 1_000
    assert runs.count() == 0
    assert time.process_time() - start < 30


def test_each_run_of_a_sweep_carries_its_own_remarks_only(tmp_path):
    added = submission.submit([sweep(tmp_path, 3)])["added"]
    stated = [runs.get(run).get("warnings", []) for run in added]
    counts = [[text for text in texts if "the counts give" in text] for texts in stated]
    assert [len(texts) for texts in counts] == [0, 1, 1]
    assert counts[1] != counts[2]


def test_a_file_stored_before_its_reader_learnt_more_is_no_second_run(tmp_path, monkeypatch):
    path = sweep(tmp_path, 3)
    first = submission.submit([path])["run_ids"]
    monkeypatch.setattr(upload, "run_id", lambda values, *rows: identity.run_id({**values, "newly_read": 1}, *rows))
    again = submission.submit([path])
    assert (again["run_ids"], again["added"]) == (first, [])
    assert runs.count() == 3
