"""What each precision cost in quality, with errors, and never more than the runs can tell."""

import math

import pytest

from nvdash.tradeoffs import frontier, quality
from nvdash.tradeoffs.recorded import recorded


def score(value, stderr=0.006, **changes):
    row = {"task": "gsm8k", "metric": "exact_match", "filter": "strict-match", "value": value, "stderr": stderr}
    return {**row, "n_shot": 5, "n_effective": 1319, "higher_is_better": True, **changes}


def told(apart=None, **cells):
    (task,) = quality.by_task({name: [row] for name, row in cells.items()}, apart)
    return task


def test_one_sentence_says_what_the_cache_and_what_the_weights_cost():
    task = told(wide=score(0.900), weights=score(0.870), cache=score(0.850), both=score(0.83))
    # sqrt(0.006^2 + 0.006^2) = 0.0085
    assert task["costs"]["cache"]["stderr"] == pytest.approx(0.006 * math.sqrt(2))
    assert task["sentence"] == "The cache costs 5 ± 0.85 points, the weights cost 3 ± 0.85 points."


def test_three_runs_are_enough_when_two_pairs_differ_in_one_precision():
    task = told(wide=score(0.90), weights=score(0.88), both=score(0.80))
    assert (task["costs"]["cache"]["from"], task["costs"]["cache"]["to"]) == ("weights", "both")
    assert task["costs"]["cache"]["delta"] == pytest.approx(-0.08)


def test_the_missing_run_is_named_when_the_two_cannot_be_told_apart():
    task = told(wide=score(0.9), both=score(0.8))
    assert task["costs"] == {"cache": None, "weights": None}
    assert task["sentence"] == "Cannot be told apart: NVFP4 weights with wide cache was not run."


def test_too_few_samples_are_said():
    cells = {name: score(0.97, 0.017, n_effective=100) for name in ("weights", "cache", "both")}
    task = told(wide=score(0.98, 0.014, n_effective=100), **cells)
    # 2 * sqrt(0.014^2 + 0.017^2) = 0.044
    said = "n is too small: with n = 100 only a difference beyond 4.4 points can be told from chance."
    assert said in task["sentence"]
    assert task["costs"]["cache"]["shown_to_be_real"] is False


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"n_effective": 100}, "n_effective"),
        ({"n_shot": 0}, "n_shot"),
        ({"task_version": "3"}, "task_version"),
        ({"chat_template_sha": "abc"}, "chat_template_sha"),
        ({"n_shot": None}, "n_shot"),
    ],
)
def test_unlike_rows_of_a_task_are_not_compared(change, name):
    task = told(wide=score(0.9), cache=score(0.8, **change), weights=score(0.85))
    assert task["costs"]["cache"]["delta"] is None
    assert f"{name} differs or is unknown" in task["sentence"]
    assert task["scores"]["cache"]["value"] == 0.8


def test_cells_with_other_controls_are_not_compared():
    task = told({("wide", "cache"): "attention backend: a against b"}, wide=score(0.9), cache=score(0.8))
    assert task["sentence"] == "Cannot be told apart: the cache: attention backend: a against b."


def test_a_metric_where_less_is_better_is_told_in_its_own_unit():
    rows = {"metric": "word_perplexity", "higher_is_better": False, "stderr": None, "filter": "none"}
    cells = {"wide": 8.0, "weights": 8.5, "cache": 8.25, "both": 8.75}
    task = told(**{name: {**score(value), **rows} for name, value in cells.items()})
    assert task["sentence"] == "The cache costs 0.25, the weights cost 0.5. The error is not known."


def test_tasks_are_never_averaged():
    rows = {"wide": [score(0.9), {**score(0.5), "task": "mmlu"}], "cache": [score(0.8), {**score(0.6), "task": "mmlu"}]}
    tasks = quality.by_task(rows)
    costs = {task["task"]: round(task["costs"]["cache"]["delta"], 3) for task in tasks}
    assert costs == {"gsm8k": -0.1, "mmlu": 0.1}


def test_repeats_of_a_score_are_a_mean_with_the_error_of_a_mean():
    pooled = quality.pooled([score(0.90, 0.02), score(0.92, 0.02), score(0.94, 0.02)])
    assert pooled["value"] == pytest.approx(0.92)
    assert pooled["stderr"] == pytest.approx(0.02 / math.sqrt(3))


def test_a_paired_difference_loses_the_shared_difficulty():
    first = {"q1": 1.0, "q2": 0.0, "q3": 1.0, "q4": 1.0, "only": 1.0}
    second = {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": 1.0}
    found = quality.paired_delta(first, second)
    # gaps 0, 0, -1, 0: mean -0.25, variance 0.25, error sqrt(0.25 / 4)
    assert (found.value, found.stderr, found.n) == (-0.25, 0.25, 4)


def test_the_recording_tables_count_what_was_measured():
    tables = recorded({"weights_gib": 15.2, "output_tok_s": 900.0, "kv_tokens": 491_664, "preemptions": 0}, [])
    assert tables["weights"]["headline"] == "Weights: 2 of 5 recorded"
    assert tables["cache"]["headline"] == "Cache: 2 of 8 recorded"
    values = {row["label"]: row["value"] for row in tables["cache"]["rows"]}
    assert (values["preemptions"], values["hit rate"]) == (0, "not measured")


def test_long_context_quality_is_not_any_quality():
    rows = [{"task": name, "metric": "exact_match", "value": 0.9} for name in ("gsm8k", "ruler_qa")]
    tables = recorded({}, rows)
    assert tables["weights"]["headline"] == "Weights: 1 of 5 recorded"
    (long,) = [row for row in tables["cache"]["rows"] if row["label"] == "long-context quality"]
    assert [row["task"] for row in long["value"]] == ["ruler_qa"]
    short = recorded({}, [{**rows[1], "context": 4096}])
    assert short["cache"]["recorded"] == 0


def test_the_front_holds_the_points_that_no_other_beats():
    rows = [
        {"run_id": "a", "tpot_mean_ms": 10.0, "output_tok_s": 100.0},
        {"run_id": "b", "tpot_mean_ms": 20.0, "output_tok_s": 400.0},
        {"run_id": "c", "tpot_mean_ms": 25.0, "output_tok_s": 300.0},
        {"run_id": "d", "output_tok_s_per_user": 100.0, "output_tok_s": 90.0},
        {"run_id": "e", "output_tok_s": 900.0},
    ]
    points = {row["run_id"]: row for row in frontier.points(rows, "throughput_interactivity")}
    assert {name for name, row in points.items() if row["on_front"]} == {"a", "b"}
    assert (points["a"]["x"], points["b"]["x"], points["d"]["x"]) == (100.0, 50.0, 100.0)
    assert "e" not in points
