"""Seven questions that a newcomer answers by the browser alone (the words of the product's own goal)."""

import re

import pytest

from tests.pages.reading import start_log

pytestmark = [pytest.mark.browser, pytest.mark.full]


def test_1_does_nvfp4_cache_run_on_a_5090_since_when_with_which_kernels_and_what_refused_it_before(visitor):
    visitor.open()
    assert visitor.answer().startswith("It fits and should run.")
    decode = visitor.row("Decode")
    assert "Expected" in decode
    assert "stored narrow, computed wider" in decode
    assert "flashinfer.py:" in decode
    visitor.go("Support matrix")
    visitor.view("Timeline")
    assert "Expected" in visitor.row("SM120", "0.32.0 to 0.33.0")
    before = visitor.row("SM120", "to 0.31.0")
    assert "Refused" in before
    assert "selector" in before


def test_2_how_many_32k_sequences_of_llama_70b_fit_on_four_h200_under_three_caches(visitor):
    visitor.open()
    for label, option in (
        ("Model", "meta-llama/Llama-3.1-70B-Instruct"),
        ("GPU", "h200-sxm"),
        ("GPU count", "4"),
        ("TP", "4"),
        ("Weights", "fp8"),
    ):
        visitor.choose(label, option)
    visitor.go("Memory")
    visitor.unfold("The same as a table")
    counts = [
        [int(number) for number in re.findall(r"\b(\d+) to (\d+)\b", visitor.row(f"fp8 / {cache}", "32K"))[0]]
        for cache in ("16-bit", "FP8", "NVFP4")
    ]
    wide, fp8, nvfp4 = (low for low, _ in counts)
    # 10 GiB per sequence over four ranks: 2.5 GiB each; 92 to 111 GiB are left of an H200 beside 17 GiB of weights
    assert 36 <= wide <= 44
    assert fp8 // 2 == wide
    assert 3.4 < nvfp4 / wide < 3.7


def test_3_which_checkpoint_holds_nvfp4_weights_and_what_auto_does_with_its_cache(visitor):
    visitor.open()
    visitor.choose("Model", "moonshotai/Kimi-K2.5")
    visitor.choose("GPU", "b200-hgx")
    visitor.choose("GPU count", "8")
    visitor.choose("TP", "8")
    visitor.choose("Weights", "nvfp4")
    visitor.choose("KV cache", "auto")
    visitor.reads(re.compile("The nvfp4 weights are those of nvidia/Kimi-K2.5-NVFP4"))
    visitor.reads("Auto becomes FP8 e4m3.")


def test_4_what_changed_for_sm120_between_vllm_0_24_and_0_33(visitor):
    visitor.open("/matrix")
    visitor.view("Changes")
    visitor.choose("From", "0.24.0")
    assert "flashinfer.py:" in visitor.row("SM120", "NVFP4", "Accepted, then fails", "Expected")
    assert "no E5M2 cache" in visitor.row("SM120", "FP8 e5m2", "Expected", "Accepted, then fails")


def test_5_what_was_measured_for_nvfp4_against_fp8_cache_on_sm120_and_is_it_matched(visitor):
    visitor.open("/tradeoffs")
    visitor.reads(re.compile("No four-way experiment yet for"))
    visitor.view("Published")
    visitor.choose("Show", "This GPU")
    visitor.reads(re.compile("None was measured here; no general conclusion follows"))
    visitor.unfold("◇")
    assert "NVFP4" in visitor.row("tokens", "NVFP4")


def test_6_which_four_runs_should_my_team_do_next(visitor):
    visitor.open()
    visitor.main.get_by_role("link", name=re.compile("Plan the experiment")).first.click()
    visitor.settle()
    for name in ("Wide weights, wide cache", "Weights only", "Cache only", "Both"):
        assert visitor.row(name)
    visitor.unfold("Scripts, equal utilisation")
    visitor.reads(re.compile("vllm bench serve"))


def test_7_why_does_my_log_say_another_number(visitor):
    visitor.open("/memory")
    visitor.upload(("server.log", start_log(327_680).encode()))
    visitor.press("Compare with this log")
    visitor.reads(re.compile("agree only with this explanation"))
    assert visitor.row("KV cache tokens", "327,680", "silent fp8")
