"""Logs whose numbers are known: predicted intervals, and the one thing a log left out."""

from dataclasses import replace

import pytest

from nvdash.footprint.allocator import CacheRequest, replay
from nvdash.footprint.from_log import Printed, compare, formula_cause, hypotheses, rows_for
from nvdash.footprint.layers import layout
from nvdash.readers import catalogue


def layers(name):
    return layout(catalogue.load().model(name).config)


def test_printed_memory_is_the_interval_that_rounds_to_it():
    # 5.01 GiB +- 0.005 GiB
    assert Printed(5.01).pools() == (5_374_077_829, 5_384_815_247)
    assert Printed(None, exact_bytes=9_786_143_744).pools() == (9_786_143_744, 9_786_143_744)
    assert Printed(None).pools() is None


def test_a_plain_log_is_consistent_to_the_block():
    # vLLM 0.10.1.1, Qwen2-7B: 5.01 GiB, 5867 blocks, 93,872 tokens, 5.73x (truth qwen2-7b-a100-tp1-u25)
    request = CacheRequest(release="0.10.1.1", max_model_len=16_384)
    printed = Printed(5.01, num_blocks=5867, kv_tokens=93_872, max_concurrency=5.73)
    rows, used = compare(layers("Qwen/Qwen2-7B-Instruct"), request, printed)
    assert used == request
    assert {row.number: row.consistent for row in rows} == {
        "num_blocks": True,
        "kv_tokens": True,
        "max_concurrency": True,
        "block_size": None,
    }
    assert rows[0].low <= 5867 <= rows[0].high


def test_a_number_outside_the_rounding_is_not_consistent():
    request = CacheRequest(release="0.10.1.1", max_model_len=16_384)
    rows = rows_for(layers("Qwen/Qwen2-7B-Instruct"), request, Printed(5.01, num_blocks=5869))
    assert rows[0].consistent is False


def test_blocks_alone_give_the_rest():
    # vLLM 0.6.3 prints no memory: 2987 blocks of 16 are 47,792 tokens, 1.46 times 32,768
    request = CacheRequest(release="0.6.3.post1", tp=4, max_model_len=32_768)
    printed = Printed(None, num_blocks=2987, max_concurrency=1.46)
    rows, _ = compare(layers("Qwen/Qwen2.5-32B-Instruct"), request, printed)
    assert [(row.low, row.consistent) for row in rows] == [
        (None, None),
        (47_792, None),
        (pytest.approx(1.4585, abs=1e-4), True),
        (16, None),
    ]


def test_tokens_alone_give_the_requests():
    # vLLM 0.8.3 prints neither memory nor blocks: 127,664 tokens are 249.34 times 512
    request = CacheRequest(release="0.8.3", max_model_len=512)
    rows, _ = compare(layers("TinyLlama/TinyLlama-1.1B-Chat-v1.0"), request, Printed(None, None, 127_664, 249.34))
    assert [(row.low, row.consistent) for row in rows[:3]] == [(None, None), (None, None), (249.34375, True)]


def test_silent_fp8_is_found():
    # half the bytes per token: twice the blocks of the 16-bit cache
    request = CacheRequest(release="0.13.0", max_model_len=8192)
    stored = replace(request, kv_cache_dtype="fp8", available_bytes=(20 * 2**30,))
    tokens = replay(layers("meta-llama/Llama-3.1-8B-Instruct"), stored).kv_tokens
    rows, used = compare(layers("meta-llama/Llama-3.1-8B-Instruct"), request, Printed(20.0, kv_tokens=tokens))
    assert used.kv_cache_dtype == "fp8"
    assert next(row for row in rows if row.number == "kv_tokens").cause.startswith("silent fp8")


def test_two_omissions_together_are_found():
    # vLLM 0.19 wording, Qwen3.6-35B NVFP4: block 2096, 75,456 tokens, 3.87x on 2.95 GiB (memory-rules 3.1 and 3.12)
    request = CacheRequest(release="0.19.0", max_model_len=65_536)
    printed = Printed(2.95, kv_tokens=75_456, max_concurrency=3.87, block_size=2096)
    rows, used = compare(layers("Qwen/Qwen3.6-35B-A3B"), request, printed)
    assert (used.kv_cache_dtype, used.prefix_caching) == ("fp8", True)
    assert all(row.consistent is not False for row in rows)


def test_a_poorer_rank_is_named_when_fewer_tokens_were_printed():
    request = CacheRequest(release="0.13.0", max_model_len=8192)
    model, printed = layers("meta-llama/Llama-3.1-8B-Instruct"), Printed(20.0, num_blocks=5003)
    rows, _ = compare(model, replace(request, tp=2), printed)
    # 20 GiB hold 20,480 blocks of 1 MiB; 5003 need 4.89 GiB
    assert "another rank is the limit: about 4.89 GiB" in rows[0].cause
    alone, _ = compare(model, request, printed)
    assert (alone[0].consistent, alone[0].cause) == (False, "")


def test_keys_and_values_printed_apart_are_rounded_twice():
    # 20.79 + 20.79 GiB: 3,113,713 slots of 14,336 B and a spare one are 41.573 GiB
    request = CacheRequest(framework="sglang", kv_cache_dtype="fp8")
    model = layers("Qwen/Qwen2.5-1.5B-Instruct")
    alone, _ = compare(model, request, Printed(41.58, kv_tokens=3_113_713))
    apart, _ = compare(model, request, Printed(41.58, kv_tokens=3_113_713, num_parts=2))
    assert [row.consistent for row in (alone[1], apart[1])] == [False, True]


def test_a_pool_that_prints_no_scales_is_known():
    # 18.47 + 18.47 GiB are 5,534,509 slots of 7,168 B of values; each has 896 B of scales beside them
    request = CacheRequest(framework="sglang", kv_cache_dtype="fp4_e2m1")
    printed = Printed(36.94, kv_tokens=5_534_509, num_parts=2)
    rows, _ = compare(layers("Qwen/Qwen2.5-1.5B-Instruct"), request, printed)
    assert (rows[1].consistent, rows[1].cause) == (True, "the printed size leaves out the block scales")


def test_a_development_build_may_have_the_rules_of_the_next_release():
    # 0.19.2rc1.dev counts states as 0.20 does: Nemotron-H states without a stated type grow to float32
    model = layers("nvidia/NVIDIA-Nemotron-3-Nano-4B")
    states = tuple(
        replace(cache, state=replace(cache.state, head_dtype="unset")) if cache.state else cache
        for cache in model.caches
    )
    request = CacheRequest(release="0.19.2rc1.dev134+gfe9c3d6c5", kv_cache_dtype="fp8", max_model_len=49_152)
    printed = Printed(103.39, kv_tokens=1_934_432, max_concurrency=216.94, block_size=1952)
    rows, used = compare(replace(model, caches=states), request, printed)
    assert (used.release, used.block_size) == ("0.20.0", None)
    assert {row.cause for row in rows if row.cause} == {"the development build has the rules of 0.20.0"}


def test_a_printed_block_of_a_hybrid_tells_of_its_states():
    model = layers("nvidia/NVIDIA-Nemotron-3-Nano-4B")
    request = CacheRequest(release="0.19.0", kv_cache_dtype="fp8", max_model_len=49_152)
    rows, _ = compare(model, request, Printed(103.39, kv_tokens=1_934_432, max_concurrency=216.94, block_size=1952))
    assert {row.cause for row in rows if row.cause} == {"block size 1952: its states are not those of this config"}


def test_blocks_of_two_sizes_are_a_cause():
    # 25 windowed layers of 8 x 256 and 5 global ones of 2 x 512: their pages are one size, their blocks 16 and 32
    found = replay(layers("google/gemma-4-26B-A4B"), CacheRequest(release="0.20.0", max_model_len=8192))
    assert formula_cause(found).startswith("blocks of 16 and 32 tokens")


def test_a_difference_from_the_plain_formula_has_a_cause():
    gemma = replay(layers("google/gemma-3-1b-it"), CacheRequest(release="0.13.0", max_model_len=2048))
    qwen = replay(layers("Qwen/Qwen3.5-35B-A3B"), CacheRequest(release="0.19.0", max_model_len=2048))
    plain = replay(layers("Qwen/Qwen3-8B"), CacheRequest(release="0.19.0", max_model_len=2048))
    assert formula_cause(gemma) == "padding: 2 padding layers"
    assert formula_cause(qwen).startswith("states of fixed size")
    assert formula_cause(plain) == ""


@pytest.mark.parametrize("tp", [1, 3])
def test_dcp_is_tried_only_where_the_ranks_divide(tp):
    found = hypotheses(layers("moonshotai/Kimi-K2.5"), CacheRequest(release="0.19.0", tp=tp), Printed(20.0))
    assert not [one for one in found if one.kind == "dcp"]
