"""The budget of one rank, written out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.footprint.budget import Measured, Setting, budget, fraction_of, weights_item
from nvdash.footprint.weights import Weights
from nvdash.readers.budget_rules import budget_rules
from nvdash.targets import GIB, Gpu

CARD = Gpu("card", "Card", "nvidia", "sm120", "12.0", 100 * GIB, 100 * GIB, "user")
RULES = {
    "fractions": [
        {"framework": "vllm", "until": "0.20.0", "default": 0.9, "of": "total", "source": "a"},
        {"framework": "vllm", "since": "0.20.0", "default": 0.92, "of": "total", "source": "b"},
        {"framework": "sglang", "default": [0.8, 0.9], "of": "static", "source": "c"},
        {"framework": "tensorrt-llm", "default": 0.9, "of": "free", "source": "d"},
    ],
    "items": [
        {"item": "activation_peak", "typical": 4, "low": 1, "high": 6, "source": "e"},
        {"item": "activation_peak", "when": {"experts": True}, "typical": 5, "low": 2, "high": 8, "source": "f"},
        {"item": "non_torch", "typical": 1, "low": 1, "high": 1, "source": "g"},
        {"item": "non_torch", "when": {"tp_at_least": 2}, "typical": 2, "low": 2, "high": 2, "source": "h"},
        {
            "item": "cuda_graphs",
            "when": {"framework": "vllm", "since": "0.20.0"},
            "typical": 1,
            "low": 0,
            "high": 3,
            "source": "i",
        },
    ],
    "weights": {"error_pct": {"wide": [0, 0], "narrow": [-10, 10]}, "checkpoints": 2},
}


def weights(gib, source="estimated", narrow=False, stages=()):
    size = gib * GIB
    by_stage = tuple(stage * GIB for stage in stages) or (size,)
    return Weights(size, size, size, size, source, size // 2, {}, by_stage, narrow=narrow)


def test_vllm_takes_a_fraction_of_the_total_and_everything_fixed_comes_off():
    left = budget(CARD, weights(30), Setting("vllm", "0.19.0"), RULES)
    # 0.9 x 100 - 30 = 60; less 4 + 1 typical, 1 + 1 at least, 6 + 1 at most; graphs stay outside
    assert [end[0] / GIB for end in (left.low, left.typical, left.high)] == pytest.approx([53, 55, 58])


def test_cuda_graphs_lie_inside_the_budget_from_0_20_on():
    left = budget(CARD, weights(30), Setting("vllm", "0.20.0"), RULES)
    # 0.92 x 100 - 30 = 62; less 4 + 1 + 1, 1 + 1 + 0, 6 + 1 + 3
    assert [end[0] / GIB for end in (left.low, left.typical, left.high)] == pytest.approx([52, 56, 60])


def test_a_stated_fraction_replaces_the_default():
    left = budget(CARD, weights(30), Setting("vllm", "0.20.0", utilisation=0.5), RULES)
    assert left.typical[0] / GIB == pytest.approx(50 - 30 - 6)
    share = next(item for item in left.items if item.name == "utilisation")
    assert (share.source, share.typical_bytes) == ("user", 50 * GIB)


def test_tensorrt_llm_takes_a_fraction_of_what_is_free_after_loading():
    left = budget(CARD, weights(30), Setting("tensorrt-llm", None), RULES)
    assert left.typical[0] / GIB == pytest.approx(0.9 * (100 - 30 - 4 - 1))


def test_sglang_keeps_activations_outside_of_its_static_fraction():
    left = budget(CARD, weights(30), Setting("sglang", None), RULES)
    # (0.8 to 0.9) x 100 - 30 - 1
    assert [end[0] / GIB for end in (left.low, left.high)] == pytest.approx([49, 59])


@pytest.mark.parametrize(("setting", "typical"), [({"experts": True}, 5), ({"tp": 2}, 4)])
def test_the_last_row_that_holds_wins(setting, typical):
    left = budget(CARD, weights(30), Setting("vllm", "0.19.0", **setting), RULES)
    assert next(item for item in left.items if item.name == "activation_peak").typical_bytes == typical * GIB


def test_every_stage_has_its_own_weights():
    left = budget(CARD, weights(30, stages=(30, 20)), Setting("vllm", "0.19.0"), RULES)
    assert left.typical[1] - left.typical[0] == 10 * GIB


def test_an_estimate_of_narrow_weights_is_wider_than_one_of_wide_ones():
    assert weights_item(weights(10, narrow=True), RULES).high_bytes == 11 * GIB
    assert weights_item(weights(10), RULES).high_bytes == 10 * GIB
    listed = weights_item(weights(10, source="checkpoint", narrow=True), RULES)
    assert (listed.source, listed.low_bytes, listed.high_bytes) == ("checkpoint", 10 * GIB, 10 * GIB)


def test_a_gpu_without_a_known_total_has_no_budget():
    assert budget(Gpu("sm120", "sm120", "nvidia", "sm120"), weights(1), Setting("vllm", "0.33.0"), RULES) is None


@given(st.integers(1, 90), st.floats(0.1, 1.0), st.sampled_from(["vllm", "sglang", "tensorrt-llm"]))
def test_low_is_never_above_typical_nor_typical_above_high(gib, utilisation, framework):
    left = budget(CARD, weights(gib), Setting(framework, "0.33.0", utilisation=utilisation), budget_rules())
    assert left.low[0] <= left.typical[0] <= left.high[0]


@pytest.mark.parametrize(
    ("framework", "release", "fraction"),
    [("vllm", "0.9.2", 0.9), ("vllm", "0.19.1", 0.9), ("vllm", "0.20.0", 0.92), ("vllm", "0.33.0", 0.92)],
)
def test_the_shipped_default_fraction_of_a_release(framework, release, fraction):
    # vLLM 0.9.2 vllm/config.py:1494, 0.20.0 vllm/config/cache.py:66
    assert fraction_of(Setting(framework, release), budget_rules())[0] == (fraction, fraction)


def test_the_shipped_items_meet_the_start_up_log_of_llama_8b_on_h100():
    # vLLM 0.11, H100: 0.9 x 79.18 = 71.26 of total, weights 14.99, activation 4.76, non-torch 0.13: 51.38 GiB printed
    h100 = Gpu("h100", "H100", "nvidia", "sm90", "9.0", 81_082 * 2**20, 81_106 * 2**20, "torch")
    left = budget(h100, weights(14.99), Setting("vllm", "0.11.0"), budget_rules())
    assert left.low[0] <= 51.38 * GIB <= left.high[0]
    assert left.typical[0] / GIB == pytest.approx(51.38, abs=0.05)


def test_a_measured_item_stands_in_the_place_of_its_estimate_and_narrows_the_range():
    seen = [Measured("activation_peak", 3 * GIB, 3 * GIB, "run a"), Measured("weights", 28 * GIB, 30 * GIB, "run b")]
    left = budget(CARD, weights(30), Setting("vllm", "0.20.0"), RULES, seen)
    # 0.92 x 100 = 92; weights 28 to 30, activations 3, non-torch 1, graphs 0 to 3 with 1 as the usual case
    assert [end[0] / GIB for end in (left.low, left.typical, left.high)] == pytest.approx([55, 58, 60])
    sources = {item.name: (item.source, item.detail) for item in left.items}
    assert (sources["activation_peak"], sources["weights"]) == (("measured", "run a"), ("measured", "run b"))
    assert sources["non_torch"] == ("estimated", "g")
    assert left.source == "estimated"


def test_a_printed_pool_is_the_pool_whatever_the_items_say():
    left = budget(CARD, weights(30), Setting("vllm", "0.20.0"), RULES, [Measured("kv_cache", 40, 44, "run a")])
    assert (left.low, left.typical, left.high) == ((40,), (42,), (44,))
    assert (left.source, left.detail) == ("measured", "run a")


def test_graphs_that_lie_outside_the_budget_stay_outside_though_measured():
    seen = [Measured("cuda_graphs", 2 * GIB, 2 * GIB, "run a")]
    plain, left = (budget(CARD, weights(30), Setting("vllm", "0.19.0"), RULES, found) for found in ((), seen))
    assert left.typical == plain.typical


def test_tensors_listed_from_headers_outrank_what_a_log_rounded():
    seen = [Measured("weights", 28 * GIB, 30 * GIB, "run b")]
    left = budget(CARD, weights(30, source="checkpoint"), Setting("vllm", "0.20.0"), RULES, seen)
    assert next(item for item in left.items if item.name == "weights").source == "checkpoint"
