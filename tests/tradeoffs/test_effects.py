"""The 2x2 on numbers that can be checked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.tradeoffs.groups import Stat, group_runs, merge
from nvdash.tradeoffs.matching import effects, interactions, matched_sets, table, unmatched
from tests.tradeoffs.rows import run

FOUR = [
    run("a", "bf16", "bf16", tpot_mean_ms=20.0, ttft_mean_ms=100.0, kv_tokens=100_000),
    run("b", "nvfp4", "bf16", tpot_mean_ms=10.0, ttft_mean_ms=50.0, kv_tokens=300_000),
    run("c", "bf16", "nvfp4", tpot_mean_ms=16.0, ttft_mean_ms=170.0, kv_tokens=356_000),
    run("d", "nvfp4", "nvfp4", tpot_mean_ms=9.0, ttft_mean_ms=85.0, kv_tokens=1_068_000),
]


def one_set(rows):
    (found,) = matched_sets(group_runs(rows))
    return found


def row(rows, measure, axis, **held):
    found = effects(one_set(rows))
    (only,) = [r for r in found if r["measure"] == measure and r["axis"] == axis and r["held"] == held]
    return only


def test_the_effect_of_the_cache_is_told_at_each_weight_format():
    assert row(FOUR, "tpot_mean_ms", "cache", weights="bf16")["ratio"] == pytest.approx(16 / 20)
    assert row(FOUR, "tpot_mean_ms", "cache", weights="nvfp4")["ratio"] == pytest.approx(9 / 10)


def test_the_effect_of_the_weights_is_told_at_each_cache():
    assert row(FOUR, "ttft_mean_ms", "weights", cache="bf16")["ratio"] == pytest.approx(0.5)
    assert row(FOUR, "ttft_mean_ms", "weights", cache="nvfp4")["ratio"] == pytest.approx(0.5)


def test_prefill_decode_and_capacity_are_told_apart():
    phases = {(r["measure"], r["phase"]) for r in effects(one_set(FOUR))}
    assert phases == {("ttft_mean_ms", "prefill"), ("tpot_mean_ms", "decode"), ("kv_tokens", "capacity")}


def test_the_interaction_is_the_ratio_of_the_two_cache_effects():
    found = {r["measure"]: r for r in interactions(one_set(FOUR))}
    assert found["tpot_mean_ms"]["value"] == pytest.approx((9 / 10) / (16 / 20))  # 1.125
    assert found["ttft_mean_ms"]["value"] == pytest.approx(1.0)
    assert "spread is unknown" in found["tpot_mean_ms"]["finding"]


def test_an_interaction_is_claimed_only_beyond_the_spread():
    def repeats(spread):
        return [
            {**r, "run_id": f"{r['run_id']}{n}", "tpot_mean_ms": r["tpot_mean_ms"] * (1 + n * spread)}
            for r in FOUR
            for n in (-1, 1)
        ]

    (tight,) = [r for r in interactions(one_set(repeats(0.001))) if r["measure"] == "tpot_mean_ms"]
    assert tight["finding"] == "Together the two changes give 1.12 × what they give apart."
    # per cell: sd = 0.2 * mean * sqrt(2), error of the mean = 0.2 * mean, four cells: sqrt(4) * 0.2 = 0.4 > ln 1.125
    (loose,) = [r for r in interactions(one_set(repeats(0.2))) if r["measure"] == "tpot_mean_ms"]
    assert loose["relative_error"] == pytest.approx(0.4)
    assert loose["finding"] == "Within one standard error: not shown to be real."


def test_the_spread_of_a_ratio_adds_in_squares():
    rows = [
        run("a", "bf16", "bf16", tpot_mean_ms=19.0),
        run("b", "bf16", "bf16", tpot_mean_ms=21.0),
        run("c", "bf16", "nvfp4", tpot_mean_ms=10.0),
        run("d", "bf16", "nvfp4", tpot_mean_ms=10.0),
    ]
    found = row(rows, "tpot_mean_ms", "cache", weights="bf16")
    assert found["ratio"] == pytest.approx(0.5)
    # sd = sqrt(2), error = sqrt(2)/sqrt(2) = 1, relative to 20: 0.05; the other side has no spread
    assert found["relative_error"] == pytest.approx(0.05)


def test_the_table_has_four_rows_with_ratios_to_wide_wide():
    rows = table(one_set(FOUR))
    assert [r["label"] for r in rows] == ["Wide weights, wide cache", "Weights only", "Cache only", "Both"]
    assert [r["values"]["kv_tokens"]["ratio"] for r in rows] == pytest.approx([1.0, 3.0, 3.56, 10.68])


def test_a_missing_configuration_is_an_empty_row_never_an_estimate():
    rows = table(one_set(FOUR[:3]))
    assert (rows[3]["run_ids"], rows[3]["values"]) == ([], {})
    assert interactions(one_set(FOUR[:3])) == []


def test_a_differing_utilisation_spoils_capacity_only():
    rows = [*FOUR[:3], {**FOUR[3], "gpu_memory_utilization": 0.85}]
    both = table(one_set(rows))[3]["values"]
    assert both["kv_tokens"]["mean"] == 1_068_000
    assert both["kv_tokens"]["ratio"] is None
    assert both["kv_tokens"]["because"] == "not comparable: GPU memory utilisation: 0.9 against 0.85"
    assert both["tpot_mean_ms"]["ratio"] == pytest.approx(9 / 20)


@pytest.mark.parametrize(
    ("change", "spoiled"),
    [
        ({"attention_backend": "TRITON_ATTN"}, {"ttft_mean_ms", "tpot_mean_ms", "kv_tokens"}),
        ({"max_num_seqs": 32}, {"ttft_mean_ms", "tpot_mean_ms", "kv_tokens"}),
        ({"prefix_cache_state": "on-warm"}, {"ttft_mean_ms", "tpot_mean_ms"}),
        ({"spec_method": "mtp", "num_speculative_tokens": 3}, {"ttft_mean_ms", "tpot_mean_ms", "kv_tokens"}),
        ({"osl_mean": 300.0}, {"ttft_mean_ms", "tpot_mean_ms"}),
        ({"gpu_memory_utilization": None}, {"kv_tokens"}),
        ({"max_model_len": 8192}, {"kv_tokens"}),
        ({"spec_method": None}, {"ttft_mean_ms", "tpot_mean_ms", "kv_tokens"}),
    ],
)
def test_a_control_that_differs_or_is_unknown_spoils_its_columns(change, spoiled):
    other = {name: value for name, value in {**FOUR[3], **change}.items() if value is not None}
    values = table(one_set([*FOUR[:3], other]))[3]["values"]
    assert {name for name, entry in values.items() if entry["ratio"] is None} == spoiled
    assert all(entry["because"].startswith("not comparable: ") for name, entry in values.items() if name in spoiled)


def test_two_unknown_controls_are_not_equal():
    rows = [{n: v for n, v in r.items() if n != "prefix_cache_state"} for r in FOUR]
    found = table(one_set(rows))
    assert found[3]["values"]["tpot_mean_ms"]["because"] == "not comparable: prefix-cache state: unknown in both"
    assert found[3]["values"]["kv_tokens"]["ratio"] == pytest.approx(10.68)


@pytest.mark.parametrize(
    "change", [{"preemptions": 6}, {"preemptions": None}, {"running_avg": 6.0}, {"prefix_hit_rate": 0.3}]
)
def test_observed_controls_that_differ_or_are_unknown_mix_precision_with_admission(change):
    other = {name: value for name, value in {**FOUR[2], **change}.items() if value is not None}
    found = row([FOUR[0], other], "tpot_mean_ms", "cache", weights="bf16")
    assert found["label"] == "precision and admission together"
    assert found["ratio"] == pytest.approx(0.8)
    assert row([FOUR[0], FOUR[2]], "tpot_mean_ms", "cache", weights="bf16")["label"] == "precision"


def test_capacity_needs_no_observed_control():
    rows = [{n: v for n, v in r.items() if n != "preemptions"} for r in (FOUR[0], FOUR[2])]
    assert row(rows, "kv_tokens", "cache", weights="bf16")["label"] == "precision"


@pytest.mark.parametrize(
    ("change", "control"),
    [
        ({"gpu": "b200-hgx"}, "gpu"),
        ({"version": "0.32.0"}, "version"),
        ({"framework": None}, "framework"),
        ({"weight_format": None}, "weight_format"),
        ({"kv_cache_dtype_resolved": "auto"}, "kv_cache_dtype"),
        ({"cache_verdict": "trap"}, "kv_cache_dtype"),
        ({"gpu_count": 2, "tp": 2, "ep": 1, "dcp": 1}, "gpu_count"),
        ({"gpu_count": 2, "tp": 2}, "parallelism"),
        ({"max_concurrency": 16}, "workload"),
    ],
)
def test_a_run_that_matches_nothing_names_the_control(change, control):
    other = {name: value for name, value in {**FOUR[1], **change}.items() if value is not None}
    groups = group_runs([FOUR[0], FOUR[2], other])
    (left,) = unmatched(groups, matched_sets(groups))
    assert left["run_ids"] == [FOUR[1]["run_id"]]
    assert control in left["controls"]


def test_runs_of_two_checkpoints_of_an_alias_are_never_matched():
    rows = [{n: v for n, v in r.items() if n != "model_base"} for r in FOUR]
    assert matched_sets(group_runs(rows)) == []


def test_a_phantom_cache_stands_in_no_comparison():
    rows = [FOUR[0], {**FOUR[2], "cache_verdict": "trap"}]
    assert matched_sets(group_runs(rows)) == []


def test_fp8_and_nvfp4_caches_are_compared_beside_the_2x2():
    rows = [*FOUR, run("e", "bf16", "fp8", tpot_mean_ms=12.0)]
    steps = {(r["from"], r["to"]): r["ratio"] for r in effects(one_set(rows)) if r["measure"] == "tpot_mean_ms"}
    assert steps["bf16", "fp8_e4m3"] == pytest.approx(0.6)
    assert steps["fp8_e4m3", "nvfp4"] == pytest.approx(16 / 12)


def test_the_two_plans_are_two_sets():
    blocks = [{**r, "run_id": r["run_id"][::-1] + "x", "plan": "equal-blocks"} for r in FOUR]
    sets = matched_sets(group_runs([*FOUR, *blocks]))
    assert [found.plan for found in sets].count("equal-blocks") == 1
    assert len(sets) == 2


FLOATS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@given(FLOATS, FLOATS)
def test_pooling_two_groups_is_the_spread_of_all_their_values(first, second):
    def stat(values):
        mean = math.fsum(values) / len(values)
        return Stat(len(values), mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)))

    pooled, whole = merge([stat(first), stat(second)]), stat([*first, *second])
    assert pooled.n == whole.n
    assert pooled.mean == pytest.approx(whole.mean, abs=1e-6)
    assert pooled.sd == pytest.approx(whole.sd, rel=1e-6, abs=1e-3)
