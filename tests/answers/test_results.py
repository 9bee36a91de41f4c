"""From a file to a stored run and out again, the way a person does it."""

import json
from pathlib import Path

import pytest

from nvdash.answers import comparison, results, submission
from nvdash.errors import NvdashError, UsageError

SEED = Path(__file__).parents[2] / "data" / "seed"
BENCH, LOG, SCRAPE = SEED / "bench_serve_bf16.json", SEED / "serve.log", SEED / "metrics_after_bench.txt"
PHANTOM = SEED / "llm_kv_nvfp4_phantom.log"
SERVED = {
    "gpu": "RTX 5090",
    "gpu_count": "1",
    "tp": "1",
    "framework": "vllm",
    "version": "0.33.0",
    "model": "Qwen/Qwen3-8B",
    "attention_backend": "FLASHINFER",
    "max_num_seqs": "64",
    "max_num_batched_tokens": "8192",
    "enable_chunked_prefill": "on",
    "prefix_cache_state": "off",
    "gpu_memory_utilization": "0.9",
    "spec_method": "none",
    "workload": "random",
}


def bench(folder, name, **changes):
    """A result file of `vllm bench serve` that differs from ours where told."""
    path = folder / f"{name}.json"
    own = {
        name: value for name, value in json.loads(BENCH.read_text()).items() if name not in ("gpu", "kv_cache_dtype")
    }
    path.write_text(json.dumps({**own, **changes}))
    return path


def submit_cell(folder, name, weights, cache, tpot, **typed):
    path = bench(folder, name, mean_tpot_ms=tpot)
    own = {"weight_format": weights, "kv_cache_dtype_resolved": cache}
    return submission.submit([path], {**SERVED, **own, **typed})["added"][0]


@pytest.fixture
def four(tmp_path):
    """The four configurations, stored."""
    cells = {"a": ("bf16", "bf16", 20.0), "b": ("nvfp4", "bf16", 10.0), "c": ("bf16", "nvfp4", 16.0)}
    cells["d"] = ("nvfp4", "nvfp4", 9.0)
    return {name: submit_cell(tmp_path, name, *cell) for name, cell in cells.items()}


def test_a_file_becomes_a_run_that_is_listed_and_undone():
    answer = submission.submit([BENCH])
    assert (answer["run_ids"], answer["duplicates"]) == (answer["added"], [])
    assert len(answer["added"][0]) == 8
    (row,) = results.runs()["runs"]
    assert row["run_id"] == answer["added"][0]
    assert row["output_tok_s"] == 826.7641983740446
    assert submission.undo(answer["added"]) == answer["added"]
    assert results.runs()["runs"] == []
    assert results.runs({"withdrawn": True})["total"] == 1


def test_submitting_twice_adds_nothing_and_says_so():
    submission.submit([BENCH])
    again = submission.submit([BENCH])
    assert (again["added"], len(again["duplicates"])) == ([], 1)


def test_the_same_run_in_another_file_is_a_duplicate(tmp_path):
    submission.submit([BENCH])
    copy = tmp_path / "other-name.json"
    copy.write_text(json.dumps(json.loads(BENCH.read_text()), indent=2))
    assert submission.submit([copy])["added"] == []


def test_a_log_submitted_later_completes_the_run_it_belongs_to():
    first = submission.submit([BENCH])
    later = submission.submit([BENCH, LOG])
    assert later["duplicates"] == first["added"]
    assert {"version", "kv_tokens"} <= set(later["revised"][first["added"][0]])
    run = results.run(first["added"][0])
    assert (run["version"], run["kv_tokens"], run["output_tok_s"]) == ("0.32.0", 524288, 826.7641983740446)
    assert {row["field"] for row in run["revisions"]} >= {"version", "kv_tokens"}


def test_a_phantom_cache_is_marked_by_its_sibling():
    (run_id,) = submission.submit([PHANTOM], sibling=SCRAPE)["added"]
    run = results.run(run_id)
    assert (run["cache_verdict"], run["kv_bytes_per_token"], run["kind"]) == ("trap", 1024, "server")
    assert "nvfp4 was accepted and would take 576 bytes per token" in run["warnings"][0]


def test_typed_fields_name_the_model_base_and_the_gpu():
    (run_id,) = submission.submit([BENCH], {"model": "nvidia/Qwen3-8B-NVFP4", "gpu": "RTX 5090"})["added"]
    run = results.run(run_id)
    assert run["gpu"] == "rtx-5090"
    assert run["provenance"]["gpu"] == "typed"
    assert run["model_base"] in ("Qwen/Qwen3-8B", "nvidia/Qwen3-8B-NVFP4")


def test_an_alias_has_no_base():
    (run_id,) = submission.submit([BENCH])["added"]
    assert "model_base" not in results.run(run_id)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"output_tok_s": "1"}, "measured value"),
        ({"gpuu": "B200"}, "name of a field"),
        ({"tp": "-1"}, "not negative"),
    ],
)
def test_a_wrong_typed_field_is_refused_and_nothing_is_stored(typed, says):
    with pytest.raises(UsageError, match=says):
        submission.submit([BENCH], typed)
    assert results.runs()["total"] == 0


def test_i_do_not_know_stays_unknown():
    (run_id,) = submission.submit([BENCH], {"attention_backend": "I do not know"})["added"]
    assert "attention_backend" not in results.run(run_id)


@pytest.mark.parametrize("content", ["", "{", "not a result", '{"a": 1}', '{"duration": NaN, "a": 1}', "\x00\xff"])
def test_a_file_that_is_no_result_is_refused_and_nothing_is_stored(tmp_path, content):
    bad = tmp_path / "bad.json"
    bad.write_text(content, encoding="latin-1")
    with pytest.raises(NvdashError) as refusal:
        submission.submit([BENCH, bad])
    assert "bad.json" in str(refusal.value)
    assert results.runs()["total"] == 0


def test_a_page_may_leave_a_refused_file_out(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    answer = submission.submit([BENCH, bad], leave_out_refused=True)
    assert len(answer["added"]) == 1
    assert [row["file"] for row in answer["left_out"]] == ["bad.json"]


def test_a_preview_stores_nothing_and_shows_the_nearest_run(tmp_path, four):
    path = bench(tmp_path, "new", mean_tpot_ms=8.0)
    shown = submission.preview([path], {**SERVED, "weight_format": "nvfp4", "kv_cache_dtype_resolved": "fp8"})
    (run,) = shown["runs"]
    assert run["nearest"]["differs_in"] == ["kv_cache_dtype_resolved"]
    (tpot,) = [row for row in run["rows"] if row["metric"] == "tpot_mean_ms"]
    assert tpot["this"] == 8.0
    assert tpot["ratio"] == pytest.approx(8.0 / tpot["nearest"])
    assert run["in_store"] == "new"
    assert "gpu" not in {row["field"] for row in shown["missing"]}
    assert "weights_gib" in {row["field"] for row in shown["missing"]}
    assert results.runs()["total"] == 4


def test_what_you_say_against_a_file_is_a_warning_and_both_are_kept():
    answer = submission.submit([BENCH, LOG], {"version": "0.33.0"})
    assert "version: the files say 0.32.0, you say 0.33.0; yours counts, both are kept" in answer["warnings"]
    run = results.run(answer["added"][0])
    assert run["version"] == "0.33.0"
    assert [row["before"] for row in run["revisions"] if row["field"] == "version"] == ['"0.32.0"']


def test_compare_finds_the_four_configurations(four):
    answer = comparison.compare({"model": "Qwen/Qwen3-8B", "gpu": "RTX 5090"})
    (found,) = answer["matched_sets"]
    assert comparison.exit_code(answer) == 0
    assert [row["run_ids"] for row in found["rows"]] == [[four[name]] for name in "abcd"]
    ratios = {
        (row["axis"], *row["held"].values()): row["ratio"]
        for row in found["effects"]
        if row["measure"] == "tpot_mean_ms"
    }
    assert ratios["cache", "bf16"] == pytest.approx(0.8)
    assert ratios["cache", "nvfp4"] == pytest.approx(0.9)
    assert ratios["weights", "bf16"] == pytest.approx(0.5)
    assert {row["label"] for row in found["effects"]} == {"precision and admission together"}
    assert found["sentences"][-1].endswith("long-context quality: not measured")
    assert found["recorded"]["wide"]["weights"]["headline"] == "Weights: 1 of 5 recorded"


def test_withdrawing_a_control_names_the_comparison_that_loses_it(four):
    lost = results.withdraw(four["a"], "wrong driver")["comparisons_lost"]
    assert {(row["phase"], row["loses"]) for row in lost} >= {("decode", "Wide weights, wide cache")}
    (found,) = comparison.compare({"model": "Qwen/Qwen3-8B"})["matched_sets"]
    assert found["rows"][0]["run_ids"] == []
    assert found["missing"] == ["Wide weights, wide cache"]
    results.reinstate(four["a"], "it was right")
    (found,) = comparison.compare({"model": "Qwen/Qwen3-8B"})["matched_sets"]
    assert found["missing"] == []


def test_two_runs_that_match_have_a_ratio(four):
    answer = comparison.compare_runs(four["a"], four["c"])
    assert answer["matched"]
    (tpot,) = [row for row in answer["effects"] if row["measure"] == "tpot_mean_ms"]
    assert (tpot["axis"], tpot["ratio"]) == ("cache", pytest.approx(0.8))


def test_two_runs_that_differ_in_both_precisions_are_not_compared(four):
    answer = comparison.compare_runs(four["a"], four["d"])
    assert (answer["matched"], answer["effects"], comparison.exit_code(answer)) == (False, [], 1)
    assert "both differ" in answer["because"]


def test_two_runs_on_two_gpus_are_not_compared(tmp_path, four):
    other = submit_cell(tmp_path, "e", "bf16", "nvfp4", 12.0, gpu="B200")
    answer = comparison.compare_runs(four["a"], other)
    assert [row["control"] for row in answer["unmatched"]] == ["gpu"]
    assert answer["effects"] == []
    assert answer["because"] == "GPU: rtx-5090 against b200-hgx"


def test_a_comparison_of_nothing_says_so():
    answer = comparison.compare({"model": "Qwen/Qwen3-8B"})
    assert (answer["matched_sets"], comparison.exit_code(answer)) == ([], 1)
    with pytest.raises(UsageError, match="--model"):
        comparison.compare({})


def test_the_front_and_the_history_are_of_the_runs_asked_for(tmp_path, four):
    points = comparison.pareto({"model": "Qwen/Qwen3-8B", "gpu": "RTX 5090"})["points"]
    assert {row["run_id"] for row in points} == set(four.values())
    assert [row["run_id"] for row in points if row["on_front"]] == [four["d"]]
    (row,) = [r for r in comparison.history({"gpu": "RTX 5090"}, "tpot_mean_ms")["rows"] if r["cache"] == "fp8"] or [
        None
    ]
    assert row is None
    rows = comparison.history({"gpu": "RTX 5090"}, "tpot_mean_ms")["rows"]
    assert sorted(row["median"] for row in rows) == [9.0, 10.0, 16.0, 20.0]


def test_published_numbers_are_apart_and_need_model_and_gpu():
    found = results.published({"report": "seed-sm120"})
    (report,) = found["reports"]
    assert set(report["parts"]) == {"prefill", "decode", "append", "whole batch"}
    assert report["provenance"] == "report"
    assert results.published_for({"model": "Qwen/Qwen3-8B", "gpu": "RTX 5090"}) == []
    numbers = results.published_for({"model": "Qwen/Qwen3-8B", "gpu": "B200"})
    assert [row["value"] for row in numbers if row["metric"] == "aime25_accuracy"] == [66.67, 64.12, 64.71]
    (blog,) = results.published({"report": "nvidia-blog"})["reports"]
    assert [row["id"] for row in blog["beside"]] == ["vllm-45187"]


def test_what_is_measured_for_a_question_matches_model_and_gpu(four):
    found = results.measured({"model": "Qwen/Qwen3-8B", "gpu": "RTX 5090"})
    assert {row["run_id"] for row in found["runs"]} == set(four.values())
    assert results.measured({"model": "Qwen/Qwen3-8B", "gpu": "B200"})["runs"] == []
    assert found["smoke"] == []


def test_a_smoke_report_is_stored_beside_the_runs(tmp_path):
    from tests.readers.test_smoke_report import report

    path = tmp_path / "report.json"
    path.write_text(json.dumps(report()))
    answer = submission.submit([path])
    assert (answer["run_ids"], len(answer["smoke"]["added"])) == ([], 1)
    assert submission.submit([path])["smoke"]["added"] == []
    (stored,) = results.smoke_list()
    assert (stored["verdict"], stored["cuda"]) == ("fallback", False)


def test_the_seed_is_stored_once_and_stays_withdrawn(monkeypatch):
    monkeypatch.setenv("NVDASH_SEED", "on")
    from nvdash.answers import seed

    seed._load.cache_clear()
    rows = results.runs()["runs"]
    assert {row["gpu"] for row in rows} == {"cpu"}
    assert len(rows) == 5
    results.withdraw(rows[0]["run_id"], "not mine")
    seed._load.cache_clear()
    assert results.runs()["total"] == 4


def quality_files(folder, name, scores):
    """Results and samples of lm-evaluation-harness for three questions."""
    mean = sum(scores) / len(scores)
    row = {"exact_match,strict-match": mean, "exact_match_stderr,strict-match": 0.3}
    results = {
        "results": {"gsm8k": row},
        "configs": {"gsm8k": {}},
        "versions": {"gsm8k": 3.0},
        "n-shot": {"gsm8k": 5},
        "n-samples": {"gsm8k": {"original": 3, "effective": 3}},
        "model_name": name,
        "higher_is_better": {"gsm8k": {"exact_match": True}},
    }
    folder.mkdir()
    (folder / "results_1.json").write_text(json.dumps(results))
    lines = [
        {"doc_id": n, "doc_hash": f"h{n}", "filter": "strict-match", "metrics": ["exact_match"], "exact_match": score}
        | {"doc": {"question": "SECRET"}, "filtered_resps": ["x"], "resps": [["SECRET"]]}
        for n, score in enumerate(scores)
    ]
    samples = folder / "samples_gsm8k_2026-06-07T20-15-51.136059.jsonl"
    samples.write_text("\n".join(map(json.dumps, lines)))
    return folder / "results_1.json", samples


def test_samples_make_a_quality_difference_paired(tmp_path):
    for name, cache, scores in (("wide", "bf16", [1.0, 1.0, 0.0]), ("cache", "nvfp4", [1.0, 0.0, 0.0])):
        typed = {**SERVED, "weight_format": "bf16", "kv_cache_dtype_resolved": cache}
        submission.submit(quality_files(tmp_path / name, name, scores), typed)
    (found,) = comparison.compare({"model": "Qwen/Qwen3-8B"})["matched_sets"]
    (task,) = found["quality"]
    cost = task["costs"]["cache"]
    # gaps 0, -1, 0: mean -1/3, sample variance 1/3, error sqrt(1/9)
    assert (cost["paired"], cost["n"]) == (True, 3)
    assert cost["delta"] == pytest.approx(-1 / 3)
    assert cost["stderr"] == pytest.approx(1 / 3)


def test_samples_handed_in_later_join_their_run_and_hold_no_text(tmp_path):
    result, samples = quality_files(tmp_path / "q", "q", [1.0, 0.0, 1.0])
    first = submission.submit([result])
    later = submission.submit([result, samples])
    assert later["duplicates"] == first["added"]
    assert later["revised"] == {first["added"][0]: ["samples"]}
    assert results.export("csv", tmp_path / "out")["rows"]["samples.csv"] == 3
    assert not any("SECRET" in path.read_text() for path in (tmp_path / "out").iterdir())


def test_what_follows_by_definition_says_so(tmp_path):
    (run_id,) = submission.submit([bench(tmp_path, "x", mean_tpot_ms=20.0)])["added"]
    run = results.run(run_id)
    assert run["output_tok_s_per_user"] == 50.0
    assert run["provenance"]["output_tok_s_per_user"] == "derived: 1000 / tpot_mean_ms"
    assert "prefill_tok_s" not in run
    prefill = bench(tmp_path, "y", total_output_tokens=24, mean_tpot_ms=0.0, output_throughput=25.8)
    run = results.run(submission.submit([prefill])["added"][0])
    assert run["prefill_tok_s"] == run["input_tok_s"]
    assert "output_tok_s_per_user" not in run


def test_a_reading_of_nothing_to_store_is_refused(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    with pytest.raises(UsageError, match="at least one result"):
        submission.submit([config])


def test_a_preview_tells_a_stored_run_from_a_withdrawn_one(tmp_path):
    path = bench(tmp_path, "one")
    (run,) = submission.submit([path], SERVED)["run_ids"]
    assert submission.preview([path])["runs"][0]["in_store"] == "already stored"
    submission.undo([run])
    assert submission.preview([path])["runs"][0]["in_store"] == "withdrawn"
