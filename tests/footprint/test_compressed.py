"""DeepSeek-V4's caches: pages of several sizes in one block, against two start-up logs and by hand."""

import pytest

from nvdash.errors import UnknownError
from nvdash.footprint.allocator import CacheRequest, Draft, replay
from nvdash.footprint.layers import layout

GIB = 2**30
FLASH = {
    "num_hidden_layers": 43,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "index_topk": 512,
    "sliding_window": 128,
    "num_nextn_predict_layers": 1,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "max_position_embeddings": 1_048_576,
}
# Pages of 576-byte multiples: compressed by 4: 64 x 584 = 37,376 -> 37,440 (21 layers); by 128: 2 x 584 -> 1,728 (20);
# index keys: 64 x 132 -> 8,640 (21); windows: 64 x 584 -> 37,440 (43); raw inputs: 4 x 8,192 and 8 x 4,096 -> 32,832
# (21 and 20), of the indexer 4 x 2,048 -> 8,640 (21).
COMPRESSED = 21 * 37_440 + 20 * 1_728 + 21 * 8_640


def allocate(release, gib=32.0, **asked):
    request = CacheRequest(release=release, kv_cache_dtype="fp8", available_bytes=(int(gib * GIB),), **asked)
    return replay(layout(FLASH), request)


def test_a_log_of_0_24_with_a_drafter_is_reproduced_to_the_token():
    # samples/logs/vllm-0.24-dsv4-flash-tp2.log: 10.29 GiB, 1,993,100 tokens, 1.90x for 1,048,576 tokens, block 256.
    # max_num_batched_tokens 4,096 and the drafter are fitted: no other pair of integers gives the printed tokens.
    asked = {"max_num_batched_tokens": 4096, "tp": 2, "max_model_len": 1_048_576, "draft": Draft("mtp", 1)}
    found = allocate("0.24.0", 10.2938, **asked)
    assert (found.kv_tokens, f"{found.max_concurrency:.2f}") == (1_993_100, "1.90")
    assert (found.num_blocks, found.blocks_per_request) == (10_631, 5_593)
    assert (found.groups[0].block_size, found.block_size) == (256, 256)


def test_a_refusal_of_0_22_is_reproduced_with_its_estimate():
    # samples/logs/vllm-0.22-dsv4-gh200-pool-too-small.log: 30,000 tokens need 6.66 GiB, 5.44 GiB hold 13,528.
    def check(length):
        return allocate("0.22.0", 5.4405, max_model_len=length, max_num_batched_tokens=16_384).precheck

    assert f"{check(30_000).needed_bytes / GIB:.2f}" == "6.66"
    assert not check(13_528).refused
    assert check(14_000).refused


def test_the_windowed_and_raw_caches_are_split_to_repeat_like_the_compressed_ones():
    found = allocate("0.24.0", max_model_len=131_072)
    assert [(group.kind, group.layers) for group in found.groups] == [
        ("mla", 62),
        ("mla_sliding", 22),
        ("mla_sliding", 21),
        ("compressor", 42),
        ("compressor", 20),
    ]


@pytest.mark.parametrize(
    ("release", "block"),
    [
        ("0.20.0", 22 * (37_440 + 1_728 + 8_640)),  # a page of every size for the most layers of one size
        ("0.23.0", 22 * 37_440 + 20 * 1_728 + 21 * 8_640),  # the slots that each size needs
        ("0.27.0", COMPRESSED),  # the widest group
        ("0.33.0", COMPRESSED),
    ],
)
def test_a_block_holds_the_pages_as_the_release_packs_them(release, block):
    assert allocate(release, max_model_len=131_072).bytes_per_block == block


def test_compressed_caches_cost_a_share_of_a_record_per_token():
    # 43 x 584 + ceil(21 x 584 / 4) + ceil(21 x 132 / 4) + ceil(20 x 584 / 128).
    found = allocate("0.33.0")
    assert found.bytes_per_token == 43 * 584 + 3066 + 693 + 92
    assert "/ 128 tokens" in found.formula_text


def test_plain_rows_are_padded_to_512_bytes_from_0_26():
    asked = {"max_model_len": 131_072, "kv_cache_dtype": "bfloat16", "available_bytes": (GIB,)}
    request = CacheRequest(release="0.26.0", **asked)
    # by 4: 64 x 1,024; by 128: 2 x 1,024; index 64 x 132 = 8,448 -> 8,704; 22 windows of 65,536.
    assert replay(layout(FLASH), request).bytes_per_block == 22 * 65_536 + 20 * 2_048 + 21 * 8_704


def test_a_release_or_engine_that_was_not_read_is_unknown():
    with pytest.raises(UnknownError, match=r"0\.20 and later"):
        allocate("0.19.0")
    for framework in ("sglang", "tensorrt-llm"):
        with pytest.raises(UnknownError, match="compress_ratios"):
            replay(layout(FLASH), CacheRequest(framework=framework, kv_cache_dtype="fp8"))


def test_ratios_that_do_not_cover_every_layer_are_refused():
    with pytest.raises(UnknownError, match="compress_ratios"):
        layout({**FLASH, "compress_ratios": [0, 4]})
    with pytest.raises(UnknownError, match="compress_ratios"):
        layout({**FLASH, "compress_ratios": [8] * 43})
