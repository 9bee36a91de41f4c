"""SGLang's token pools and TensorRT-LLM's blocks, calculated by hand."""

import pytest

from nvdash.errors import UnknownError, UsageError
from nvdash.footprint.allocator import CacheRequest, replay
from nvdash.footprint.layers import layout

GIB = 2**30
# 8 layers x 8 KV heads x 128 x 2 x 2 B = 32,768 B per token.
PLAIN = {"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128}
LLAMA_70B = {**PLAIN, "num_hidden_layers": 80, "num_attention_heads": 64}
SLIDING = {**PLAIN, "sliding_window": 1024, "sliding_window_pattern": 2}
GDN = {
    **PLAIN,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "mamba_ssm_dtype": "float32",
}
SPARSE = {**PLAIN, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 2048, "index_head_dim": 128}


def sglang(config, memory=GIB, **asked):
    return replay(layout(config), CacheRequest(framework="sglang", available_bytes=(memory,), **asked))


def trtllm(config, memory=GIB, **asked):
    return replay(layout(config), CacheRequest(framework="tensorrt-llm", available_bytes=(memory,), **asked))


def test_sglang_counts_slots_of_one_token_and_spares_one_page():
    assert sglang(PLAIN).kv_tokens == 32_768 - 1
    assert sglang(PLAIN, block_size=64).kv_tokens == 32_768 - 64


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("bfloat16", 327_680), ("fp8_e4m3", 163_840), ("mxfp8", 168_960), ("fp4_e2m1", 92_160), ("nvfp4", 92_160)],
)
def test_sglangs_cells_of_80_layers_with_8_heads_of_128(flag, expected):
    # compute_cell_size of SGLang 0.5.23, run cut out of its file (other-frameworks section 1.5).
    assert sglang(LLAMA_70B, kv_cache_dtype=flag).bytes_per_token == expected


def test_sglang_gives_windowed_layers_four_slots_for_every_five():
    # 4 full and 4 windowed layers of 4,096 B: 16,384 x (1 + 0.8) B per full slot.
    found = sglang(SLIDING)
    assert found.kv_tokens == int(GIB / (16_384 * 1.8)) - 1
    assert found.pools == {"full": found.kv_tokens, "sliding": int(found.kv_tokens * 0.8)}


def test_sglang_counts_a_model_of_windows_only_as_one_pool():
    assert sglang({**PLAIN, "sliding_window": 1024}).pools == {"full": 32_767}


def test_sglang_takes_nine_tenths_of_a_part_for_states():
    # 0.9 / 1.9 of the memory for 6 states of 2,146,304 B each per request, the rest for 2 layers x 4,096 B.
    found = sglang(GDN)
    slots = int(GIB * 9 / 19) // (6 * 2_146_304)
    assert found.pools["state"] == slots
    assert found.kv_tokens == (GIB - slots * 6 * 2_146_304) // 8192 - 1


def test_sglang_pages_sparse_mla_by_64_and_stores_fp8_as_the_656_byte_record():
    found = sglang(SPARSE, kv_cache_dtype="fp8_e4m3")
    assert (found.block_size, found.bytes_per_token) == (64, 8 * (656 + 132))
    assert found.kv_tokens % 64 == 0


def test_sglang_says_which_ratios_it_took_for_granted():
    assert sglang(SLIDING).assumed == ("swa_full_tokens_ratio 0.8",)
    assert sglang(GDN).assumed == ("mamba_full_memory_ratio 0.9",)
    assert sglang(PLAIN).assumed == ()


def test_trtllm_floors_the_poorest_rank_to_blocks():
    request = CacheRequest(
        framework="tensorrt-llm",
        release="0.16.0",
        kv_cache_dtype="fp8",
        tp=8,
        block_size=64,
        available_bytes=(57 * GIB, 52 * GIB, 61 * GIB),
    )
    found = replay(layout(LLAMA_70B), request)
    # one of 8 ranks: 80 layers x 1 head x 256 B = 20,480 B per token, 1,310,720 B per block.
    assert (found.bytes_per_token, found.num_blocks) == (20_480, 52 * GIB // 1_310_720)
    assert found.kv_tokens == found.num_blocks * 64


@pytest.mark.parametrize(("release", "block"), [("0.16.0", 64), ("1.0.0", 32), (None, 32)])
def test_trtllms_default_block_became_smaller_with_1_0(release, block):
    found = trtllm(PLAIN, release=release)
    assert found.block_size == block
    assert f"tokens_per_block {block}" in found.assumed


@pytest.mark.parametrize("engine", [sglang, trtllm])
def test_an_answer_without_memory_still_gives_the_bytes_per_token(engine):
    found = replay(layout(PLAIN), CacheRequest(framework=engine(PLAIN).framework))
    assert (found.bytes_per_token, found.num_blocks, found.kv_tokens) == (32_768, None, None)


def test_an_engine_nobody_replayed_is_unknown():
    with pytest.raises(UnknownError, match=r"llama\.cpp"):
        replay(layout(PLAIN), CacheRequest(framework="llama.cpp"))


@pytest.mark.parametrize("name", ["tp", "pp", "dcp"])
def test_a_parallel_size_below_one_is_a_wrong_use(name):
    with pytest.raises(UsageError, match=name):
        replay(layout(PLAIN), CacheRequest(**{name: 0}))
