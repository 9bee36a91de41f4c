"""Remarks on runs: each rule with a value that earns it and one that does not."""

import pytest

from nvdash.readers.plausibility import RUN_CHECKS, remarks
from nvdash.readers.record import QualityRow, make_run

CASES = [
    (
        "saturated",
        {"request_rate_rps": 1.0, "request_throughput_rps": 0.38},
        {"request_rate_rps": 1.0, "request_throughput_rps": 0.97},
    ),
    (
        "saturated",
        {"request_rate_rps": 10, "request_throughput_rps": 1},
        {"request_rate_rps": "inf", "request_throughput_rps": 1},
    ),
    ("output_length", {"osl_mean": 653, "osl_target": 128}, {"osl_mean": 127, "osl_target": 128}),
    ("prefix_cache", {"isl_mean": 16_384, "ttft_p50_ms": 87}, {"isl_mean": 16_384, "ttft_p50_ms": 900}),
    ("draft_acceptance", {"spec_decode_acceptance_rate_pct": 10.7}, {"spec_decode_acceptance_rate_pct": 72.5}),
    (
        "lost_requests",
        {"num_prompts": 2000, "requests_completed": 1015},
        {"num_prompts": 2000, "requests_completed": 1990, "requests_failed": 10},
    ),
    (
        "failed_requests",
        {"requests_completed": 90, "requests_failed": 10},
        {"requests_completed": 1000, "requests_failed": 1},
    ),
    ("chunked_gaps", {"itl_mean_ms": 146, "tpot_mean_ms": 57.6}, {"itl_mean_ms": 57.7, "tpot_mean_ms": 57.6}),
    (
        "time_sum",
        {"ttft_mean_ms": 0.1, "tpot_mean_ms": 0.01, "e2e_mean_ms": 3000, "osl_mean": 128},
        {"ttft_mean_ms": 100, "tpot_mean_ms": 10, "e2e_mean_ms": 1370, "osl_mean": 128},
    ),
    (
        "rate_sum",
        {"output_tokens_total": 1000, "duration_s": 10, "output_tok_s": 500},
        {"output_tokens_total": 1000, "duration_s": 10, "output_tok_s": 100},
    ),
    (
        "few_requests",
        {"kind": "serving", "requests_completed": 8, "max_concurrency": 2},
        {"kind": "serving", "requests_completed": 64, "max_concurrency": 4},
    ),
]


@pytest.mark.parametrize(("code", "odd", "sound"), CASES)
def test_a_value_that_is_rarely_true_is_marked_and_a_common_one_is_not(code, odd, sound):
    assert RUN_CHECKS[code](make_run("x", **odd)) is not None
    assert RUN_CHECKS[code](make_run("x", **sound)) is None


def test_every_rule_has_a_case():
    assert {case[0] for case in CASES} == set(RUN_CHECKS)


def test_a_remark_names_its_run_and_changes_nothing():
    runs = [make_run("x", requests_completed=100), make_run("x", request_rate_rps=9, request_throughput_rps=1)]
    found = list(remarks(runs, ()))
    assert [(warning.code, warning.run) for warning in found] == [("saturated", 1)]
    assert runs[1].get("request_throughput_rps") == 1


def test_a_partial_evaluation_and_a_coarse_one_are_named():
    partial = QualityRow("gsm8k", "exact_match", "strict-match", 0.97, 0.017, n_effective=100, n_original=1319)
    coarse = QualityRow("aime25", "acc", None, 0.64, 0.04, n_effective=30, n_original=30)
    assert [warning.code for warning in remarks((), [partial, coarse])] == ["partial_task", "few_samples"]
