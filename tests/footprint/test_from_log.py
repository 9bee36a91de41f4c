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
    rows, _ = compare(layers("meta-llama/Llama-3.1-8B-Instruct"), request, Printed(20.0, num_blocks=5003))
    blocks = rows[0]
    # 20 GiB hold 10,240 blocks of 2 MiB; 5003 need 9.77 GiB
    assert "another rank is the limit: about 9.77 GiB" in blocks.cause


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
