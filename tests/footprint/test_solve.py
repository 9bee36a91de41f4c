from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.footprint.allocator import CacheRequest, replay
from nvdash.footprint.layers import layout
from nvdash.footprint.roofline import DecodeBound, cache_read, weights_read
from nvdash.footprint.solve import fewest, longest_context, request_bytes, requests_that_fit
from nvdash.footprint.weights import estimate
from nvdash.readers import catalogue
from nvdash.targets import GIB

LLAMA_70B = catalogue.load().model("meta-llama/Llama-3.1-70B-Instruct").config
LAYERS = layout(LLAMA_70B)


def request(gib, flag="auto", **words):
    return CacheRequest(release="0.33.0", kv_cache_dtype=flag, available_bytes=(int(gib * GIB),), **words)


@pytest.mark.parametrize(("flag", "count"), [("auto", 9), ("fp8", 19), ("nvfp4", 35)])
def test_requests_of_32k_in_100_gib(flag, count):
    # 10, 5 and 2.8125 GiB a request; the null block takes the last of an exact tie
    assert requests_that_fit(LAYERS, request(100, flag), 32_768) == count


@pytest.mark.parametrize(("release", "count"), [("0.33.0", 39), ("0.9.2", 39), ("0.8.5", 40)])
def test_the_null_block_of_the_pool_takes_the_last_request_of_an_exact_tie(release, count):
    # 32 layers x 8 KV heads x 256 B x 16 tokens: 1 MiB a block, 20,480 in 20 GiB; 40 requests of 512 would take all
    llama_8b = layout(catalogue.load().model("meta-llama/Llama-3.1-8B-Instruct").config)
    asked = replace(request(20, "fp8"), release=release)
    assert replay(llama_8b, replace(asked, max_model_len=8192)).max_concurrency == 40.0
    assert requests_that_fit(llama_8b, asked, 8192) == count
    assert longest_context(llama_8b, asked, 40, 131_072) == (8192 if count == 40 else 8176)


def test_the_longest_context_is_found_to_the_block():
    # 4 requests in 100 GiB less the null block: 20,480 blocks of 16 tokens, 5,119 whole ones each
    assert longest_context(LAYERS, request(100), 4, 131_072) == 5_119 * 16
    assert longest_context(LAYERS, request(1000), 1, 131_072) == 131_072
    assert longest_context(LAYERS, request(0.001), 1, 131_072) == 0


def test_nothing_is_solved_without_memory():
    bare = CacheRequest(release="0.33.0")
    assert requests_that_fit(LAYERS, bare, 1024) is None
    assert longest_context(LAYERS, bare, 1, 1024) is None


def test_nvfp4_holds_16_ninths_of_fp8_in_pure_attention():
    sizes = [request_bytes(LAYERS, request(1, flag), 32_768) for flag in ("auto", "fp8", "nvfp4")]
    assert Fraction(sizes[1], sizes[2]) == Fraction(16, 9)
    assert Fraction(sizes[0], sizes[2]) == Fraction(32, 9)


def test_nvfp4_holds_only_1_6_times_fp8_in_a_hybrid_at_64k():
    # 48 against 30 blocks; the pages differ by 0.13 % (memory-rules section 3, club-3090)
    hybrid = layout(catalogue.load().model("Qwen/Qwen3.6-27B").config)
    fp8, nvfp4 = (CacheRequest(release="0.19.0", prefix_caching=True, kv_cache_dtype=flag) for flag in ("fp8", "nvfp4"))
    factor = request_bytes(hybrid, fp8, 65_536) / request_bytes(hybrid, nvfp4, 65_536)
    assert factor == pytest.approx(1.6, rel=0.002)


def test_a_request_is_its_blocks_times_their_bytes():
    assert request_bytes(LAYERS, request(1), 32_768) == 10 * GIB


def test_the_fewest_that_fit_and_those_left_open():
    assert fewest((1, 2, 4, 8), lambda count: {1: False, 2: None, 4: True}.get(count)) == (4, [2])
    assert fewest((1, 2), lambda count: False) == (None, [])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 131_072), st.integers(1, 200))
def test_more_memory_never_holds_fewer_requests(context, gib):
    assert requests_that_fit(LAYERS, request(gib), context) <= requests_that_fit(LAYERS, request(gib + 1), context)


@pytest.mark.parametrize(("gbs", "flag", "ms"), [(4800, "auto", 17.9), (4800, "nvfp4", 5.0), (1792, "fp8", 24.0)])
def test_reading_262144_live_tokens_takes_at_least(gbs, flag, ms):
    # numerics section 6, decode roofline
    live = cache_read(LAYERS, CacheRequest(kv_cache_dtype=flag), LLAMA_70B, 262_144)
    assert DecodeBound(0, live, gbs).step_ms == pytest.approx(ms, abs=0.05)


def test_windows_are_read_only_up_to_their_width():
    config = catalogue.load().model("google/gemma-3-1b-it").config
    # 4 full layers and 22 of window 512; 1 head of 256, keys and values, 2 bytes: 1024 B
    assert cache_read(layout(config), CacheRequest(), config, 4096) == (4 * 4096 + 22 * 512) * 1024


def test_recurrent_states_are_read_whole():
    config = catalogue.load().model("nvidia/Nemotron-H-56B-Base-8K").config
    layers, asked = layout(config), CacheRequest(release="0.33.0")
    state = replay(layers, asked).state_bytes
    assert state > 0
    # 10 attention layers of 8 heads x 128, keys and values, 2 bytes: 40,960 B a token
    assert cache_read(layers, asked, config, 100) == state + 100 * 40_960


def test_a_step_reads_only_the_experts_that_a_token_must_choose():
    config = catalogue.load().model("Qwen/Qwen3-30B-A3B").config
    weights = estimate(config, "bf16")
    parts = weights.by_component
    expected = parts["experts"] * 8 // 128 + sum(parts[name] for name in ("lm_head", "attention", "router", "norms"))
    assert weights_read(weights, config) == expected
