"""Each step of vLLM's allocator from release to release, calculated by hand."""

from itertools import pairwise

import pytest

from nvdash.errors import UnknownError, UsageError
from nvdash.footprint.allocator import CacheRequest, Draft, replay
from nvdash.footprint.layers import layout
from nvdash.footprint.vllm_rules import RANGES, STEPS, rules_of, version

GIB = 2**30
# One full layer: 8 KV heads x 128 x 2 x 2 B = 4,096 B per token, 65,536 B per block of 16.
PLAIN = {"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128}
FULL_6_SLIDING_7 = {
    **PLAIN,
    "num_hidden_layers": 13,
    "sliding_window": 1024,
    "layer_types": ["full_attention"] * 6 + ["sliding_attention"] * 7,
}
SLIDING_3_TO_1 = {**PLAIN, "sliding_window": 1024, "sliding_window_pattern": 4}
CHUNKED = {**PLAIN, "attention_chunk_size": 8192, "no_rope_layer_interval": 4}
# Two widths: full 4 heads x 512, sliding 16 heads x 256 (Gemma 4): 8,192 and 16,384 B per token.
TWO_WIDTHS = {
    **PLAIN,
    "head_dim": 256,
    "num_key_value_heads": 16,
    "global_head_dim": 512,
    "num_global_key_value_heads": 4,
    "sliding_window": 1024,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 2,
}
# Qwen3.5: state 3 x 8,192 x 2 + 32 x 128 x 128 x 4 = 2,146,304 B; one bf16 attention token 2 x 2 x 256 x 2 = 2,048 B.
GDN = {
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "full_attention_interval": 4,
    "mamba_ssm_dtype": "float32",
    "mtp_num_hidden_layers": 1,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}
MAMBA2 = {
    **PLAIN,
    "layer_types": ["mamba"] * 6 + ["attention"] * 2,
    "mamba_n_heads": 48,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
    "mamba_chunk_size": 256,
}


def allocate(config, release, memory=8 * GIB, **asked):
    asked = {"max_model_len": 8192, "max_num_batched_tokens": 2048, **asked}
    return replay(layout(config), CacheRequest(release=release, available_bytes=(memory,), **asked))


@pytest.mark.parametrize(
    ("release", "blocks", "tokens", "concurrency"),
    [
        ("0.6.4", 16_384, 262_144, 32.0),
        ("0.9.2", 16_384, 262_144, 32.0),
        ("0.20.0", 16_384, 262_144, 32.0),
        ("0.21.0", 16_384, 262_144, 32.0),
        ("0.33.0", 16_384, 262_144, 32.0),
    ],
)
def test_one_kind_of_layer_gives_the_same_number_in_every_release(release, blocks, tokens, concurrency):
    # 8 GiB / (8 layers x 65,536 B) = 16,384 blocks; one request of 8,192 tokens takes 512.
    found = allocate(PLAIN, release)
    assert (found.num_blocks, found.kv_tokens, found.max_concurrency) == (blocks, tokens, concurrency)
    assert (found.block_size, found.blocks_per_request) == (16, 512)


def test_the_length_is_counted_in_whole_blocks_from_0_9():
    # 1,000 tokens are 63 blocks of 16; the first engine divided slots by the length.
    assert allocate(PLAIN, "0.8.5", max_model_len=1000).max_concurrency == 262_144 / 1000
    assert allocate(PLAIN, "0.9.0", max_model_len=1000).max_concurrency == 16_384 / 63


@pytest.mark.parametrize(
    ("release", "sizes", "group_size"),
    [
        ("0.11.0", [6, 4, 3], 6),  # smallest bucket: 6 full; 7 sliding in two groups, padded to 6 each
        ("0.12.0", [6, 7], 7),  # 7 < 1.25 x 6
        ("0.18.0", [6, 7], 7),
    ],
)
def test_the_group_size_is_the_largest_bucket_once_it_is_near_the_smallest(release, sizes, group_size):
    found = allocate(FULL_6_SLIDING_7, release)
    assert [group.layers for group in found.groups] == sizes
    assert found.bytes_per_block == group_size * 65_536


def test_the_limit_of_the_larger_group_size_moved_from_1_25_to_1_5_in_0_18():
    config = {
        **FULL_6_SLIDING_7,
        "num_hidden_layers": 14,
        "layer_types": ["full_attention"] * 6 + ["sliding_attention"] * 8,
    }
    assert len(allocate(config, "0.17.0").groups) == 3  # 8 >= 7.5: groups of 6, 8 sliding in two
    assert len(allocate(config, "0.18.0").groups) == 2  # 8 < 9: groups of 8


def test_a_sliding_group_takes_its_window_the_batch_and_one_block():
    # (1,024 - 1 + 2,048) tokens are 192 blocks, and one more; three such groups and 512 for the full one.
    found = allocate(SLIDING_3_TO_1, "0.24.0")
    assert [group.blocks_per_request for group in found.groups] == [193, 193, 193, 512]
    assert found.blocks_per_request == 1091


@pytest.mark.parametrize(
    ("release", "device", "gib", "batch"),
    [
        ("0.24.0", "RTX 5090", 32, 2048),
        ("0.24.0", "H100", 80, 8192),
        ("0.24.0", "A100-SXM4-80GB", 80, 2048),
        ("0.27.0", "B200", 180, 8192),
        ("0.28.0", "B200", 180, 16_384),
    ],
)
def test_an_unnamed_batch_is_the_servers_default_for_the_device(release, device, gib, batch):
    asked = {"max_num_batched_tokens": None, "max_model_len": 131_072}
    found = allocate(SLIDING_3_TO_1, release, device_bytes=gib * GIB, device_name=device, **asked)
    flying = batch * (1 if release == "0.24.0" else 2)
    assert found.groups[0].blocks_per_request == -(-(1023 + flying) // 16) + 1
    assert f"max_num_batched_tokens {batch}" in found.assumed


def test_from_0_26_the_tokens_of_two_batches_are_in_flight():
    # 1,023 + 2 x 2,048 = 5,119 tokens: 320 blocks and one more.
    found = allocate(SLIDING_3_TO_1, "0.26.0")
    assert found.groups[0].blocks_per_request == 321


def test_the_printed_number_changes_its_meaning_in_0_21():
    # 8 GiB / (2 layers x 65,536 B) = 65,536 blocks; old: // 4 groups x 16; new: 65,536 / 1,091 requests x 8,192.
    old, new = allocate(SLIDING_3_TO_1, "0.20.2"), allocate(SLIDING_3_TO_1, "0.21.0")
    assert old.num_blocks == new.num_blocks == 65_536
    assert (old.kv_tokens, old.kv_tokens_rule) == (262_144, "blocks")
    assert (new.kv_tokens, new.kv_tokens_rule) == (int(65_536 / 1091 * 8192), "concurrency")


def test_without_a_length_only_the_old_number_is_known():
    old, new = (allocate(PLAIN, release, max_model_len=None) for release in ("0.20.0", "0.21.0"))
    assert (old.kv_tokens, old.max_concurrency) == (262_144, None)
    assert (new.kv_tokens, new.max_concurrency, new.num_blocks) == (None, None, 16_384)


def test_chunked_layers_count_in_full_before_0_14_and_beside_an_eagle_drafter():
    assert [group.kind for group in allocate(CHUNKED, "0.13.0").groups] == ["full"]
    apart = allocate(CHUNKED, "0.14.0", max_model_len=131_072)
    # (8,192 + 2,048) / 16 = 640 blocks, without the extra one of a sliding window.
    assert {group.kind: group.blocks_per_request for group in apart.groups} == {"chunked": 640, "full": 8192}
    drafter = Draft("eagle", 2, layout({**PLAIN, "num_hidden_layers": 1}))
    assert [group.kind for group in allocate(CHUNKED, "0.33.0", draft=drafter).groups] == ["full"]


def test_unequal_pages_are_refused_before_0_12_and_unified_by_block_ratio_after():
    with pytest.raises(UnknownError, match="refuses to start"):
        allocate(TWO_WIDTHS, "0.11.0")
    found = allocate(TWO_WIDTHS, "0.12.0")
    assert {group.kind: (group.page_bytes, group.block_size) for group in found.groups} == {
        "sliding": (262_144, 16),
        "full": (262_144, 32),
    }
    assert found.block_size == 16


def test_pages_that_do_not_divide_are_padded_from_0_24():
    # int8 per head: sliding 16 x (512 + 8) = 8,320 B, full 4 x (1,024 + 8) = 4,128 B per token: 133,120 and 66,048 B.
    asked = {"kv_cache_dtype": "int8_per_token_head"}
    with pytest.raises(UnknownError, match="refuses to start"):
        allocate(TWO_WIDTHS, "0.23.0", **asked)
    full = next(group for group in allocate(TWO_WIDTHS, "0.24.0", **asked).groups if group.kind == "full")
    assert (full.page_bytes, full.block_size, full.padding_bytes) == (133_120, 16, 2 * (133_120 - 66_048))


@pytest.mark.parametrize(("flag", "block", "page"), [("bfloat16", 1056, 2_162_688), ("fp8", 2096, 2_146_304)])
def test_the_attention_block_grows_until_its_page_holds_a_state(flag, block, page):
    # 2,146,304 / 2,048 = 1,048 -> 66 x 16 = 1,056; / 1,024 = 2,096 exactly.
    found = allocate(GDN, "0.24.0", kv_cache_dtype=flag)
    assert (found.block_size, found.groups[0].page_bytes, found.state_bytes) == (block, page, 6 * 2_146_304)


@pytest.mark.parametrize(("drafted", "block"), [(1, 2112), (2, 2128), (3, 2144)])
def test_a_drafter_lengthens_the_state_and_so_the_block(drafted, block):
    # every drafted token adds 8,192 channels x 2 B = 16,384 B = 16 tokens of 1,024 B.
    assert allocate(GDN, "0.24.0", kv_cache_dtype="fp8", draft=Draft("mtp", drafted)).block_size == block


@pytest.mark.parametrize(("caching", "drafted", "states"), [(False, 0, 1), (True, 0, 2), (False, 2, 3), (True, 2, 4)])
def test_a_state_takes_one_block_two_with_prefix_caching_and_one_per_drafted_token(caching, drafted, states):
    draft = Draft("mtp", drafted) if drafted else None
    found = allocate(GDN, "0.24.0", prefix_caching=caching, draft=draft)
    assert {group.blocks_per_request for group in found.groups if group.kind == "state"} == {states}


def test_prefix_caching_of_recurrent_models_is_the_default_from_0_26():
    states = [next(g for g in allocate(GDN, release).groups if g.kind == "state") for release in ("0.25.0", "0.26.0")]
    assert [group.blocks_per_request for group in states] == [1, 2]


@pytest.mark.parametrize(
    ("release", "block", "states"),
    [("0.11.0", 208, 1), ("0.16.0", 256, 32), ("0.27.0", 256, 32), ("0.28.0", 208, 2)],
)
def test_mamba_layers_kept_a_state_per_block_while_that_mode_was_the_default(release, block, states):
    # state 806,400 B / 4,096 = 196.9 -> 13 x 16 = 208; per block: a multiple of the scan of 256; 8,192 / 256 = 32.
    found = allocate(MAMBA2, release, prefix_caching=True)
    group = next(group for group in found.groups if group.kind == "state")
    assert (found.block_size, group.blocks_per_request) == (block, states)


def test_a_recurrent_type_left_open_by_the_class_follows_the_release():
    config = {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "MMM*",
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "mamba_num_heads": 48,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 1,
        "conv_kernel": 4,
    }
    assert allocate(config, "0.19.0").state_bytes == 3 * (19_968 + 786_432)
    assert allocate(config, "0.20.0").state_bytes == 3 * (19_968 + 2 * 786_432)


def test_the_start_up_check_holds_one_block_back_from_0_29():
    # exactly one request of 8,192 tokens: 512 blocks of 524,288 B.
    exact = 512 * 8 * 65_536
    before, after = allocate(PLAIN, "0.28.0", exact).precheck, allocate(PLAIN, "0.29.0", exact).precheck
    assert not before.refused
    assert after.refused
    assert (after.reserved_bytes, after.reserved_since) == (524_288, "0.29.0")
    assert not allocate(PLAIN, "0.29.0", exact + 524_288).precheck.refused


def test_the_start_up_check_counts_bare_layers_then_one_group_then_all_groups():
    # 13 layers bare: 6 x 512 x 65,536 + 7 x 193 x 65,536; blocks of 7 pages: the full group's 512, from 0.19 also 193.
    releases = ("0.13.0", "0.18.0", "0.19.0")
    needed = {release: allocate(FULL_6_SLIDING_7, release).precheck.needed_bytes for release in releases}
    assert needed == {
        "0.13.0": (6 * 512 + 7 * 193) * 65_536,
        "0.18.0": 512 * 7 * 65_536,
        "0.19.0": (512 + 193) * 7 * 65_536,
    }


def test_an_override_sets_the_number_of_blocks():
    found = allocate(PLAIN, "0.24.0", num_gpu_blocks_override=100)
    assert (found.num_blocks, found.kv_tokens) == (100, int(100 / 512 * 8192))


def test_context_parallelism_multiplies_the_tokens_of_a_group_of_ranks():
    old, new = (allocate(PLAIN, release, dcp=2) for release in ("0.20.0", "0.24.0"))
    assert old.kv_tokens == new.kv_tokens == 2 * 262_144
    assert new.blocks_per_request == 256


def test_pipeline_ranks_share_the_smallest_number_of_blocks():
    # 8 layers on 3 ranks: 2, 3, 3 (the remainder goes before the last rank): 3 x 65,536 B per block decide.
    found = allocate(PLAIN, "0.24.0", pp=3)
    assert (found.bytes_per_block, found.num_blocks) == (3 * 65_536, 8 * GIB // (3 * 65_536))
    uneven = allocate(PLAIN, "0.24.0", pp=2, pp_layers=(2, 6))
    assert (uneven.bytes_per_block, uneven.limiting_rank) == (6 * 65_536, 1)


def test_the_poorest_rank_decides():
    request = CacheRequest(
        release="0.24.0", available_bytes=(8 * GIB, 2 * GIB, 8 * GIB, 8 * GIB), tp=4, max_model_len=8192
    )
    assert replay(layout(PLAIN), request).num_blocks == 2 * GIB // (8 * 16_384)


def test_layers_that_do_not_add_up_are_a_wrong_use():
    with pytest.raises(UsageError, match="pp-layers"):
        allocate(PLAIN, "0.24.0", pp=2, pp_layers=(4, 5))


def test_an_eagle_layer_of_another_width_splits_every_group_into_single_layers():
    # Gemma-4-26B beside its EAGLE-3 head: 25 sliding, 5 full, 1 drafter layer, each its own bucket: 31 groups.
    config = {
        "num_hidden_layers": 30,
        "num_attention_heads": 16,
        "head_dim": 256,
        "num_key_value_heads": 8,
        "global_head_dim": 512,
        "num_global_key_value_heads": 2,
        "sliding_window": 1024,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
    }
    drafter = layout({"num_hidden_layers": 1, "num_key_value_heads": 8, "head_dim": 256})
    found = allocate(config, "0.22.0", draft=Draft("eagle3", 3, drafter))
    assert len(found.groups) == 31


def test_a_drafter_without_layers_of_its_own_is_refused_or_adds_nothing():
    assert allocate(PLAIN, "0.24.0", draft=Draft("ngram", 3)).bytes_per_token == 8 * 4096
    with pytest.raises(UnknownError, match="num_nextn_predict_layers"):
        allocate(PLAIN, "0.24.0", draft=Draft("mtp", 1))
    with pytest.raises(UsageError, match="draft-model"):
        allocate(PLAIN, "0.24.0", draft=Draft("eagle3", 1))
    with pytest.raises(UsageError, match="draft-method"):
        allocate(PLAIN, "0.24.0", draft=Draft("oracle", 1))


def test_sparse_mla_stores_fp8_as_the_656_byte_record_unless_the_backend_keeps_plain_rows():
    config = {**PLAIN, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 2048, "index_head_dim": 128}
    assert allocate(config, "0.24.0", kv_cache_dtype="fp8").bytes_per_token == 8 * (656 + 132)
    plain = allocate(config, "0.24.0", kv_cache_dtype="fp8", backend="FLASHINFER_MLA_SPARSE")
    assert plain.bytes_per_token == 8 * (576 + 132)
    assert allocate(config, "0.24.0", kv_cache_dtype="bfloat16").bytes_per_token == 8 * (1152 + 132)


def test_turboquant_keeps_the_first_and_last_two_layers_of_a_plain_model_at_16_bits():
    # 4 x 4,096 + 4 x 8 heads x 196 B.
    assert allocate(PLAIN, "0.24.0", kv_cache_dtype="turboquant_k8v4").bytes_per_token == 4 * 4096 + 4 * 8 * 196
    assert allocate(GDN, "0.24.0", kv_cache_dtype="turboquant_k8v4").bytes_per_token == 2 * 2 * 388


def test_skipped_layers_keep_16_bits_and_their_pages_share_one_size():
    # nvfp4 144 x 8 = 1,152 B; wide 4,096 x 16 = 65,536 B: the block grows to 64 (73,728 B); sliding pads to it.
    asked = {"kv_cache_dtype": "nvfp4", "skip_layers": ("sliding_window",)}
    found = allocate(SLIDING_3_TO_1, "0.33.0", **asked)
    pages = {group.kind: (group.page_bytes, group.block_size) for group in found.groups}
    assert pages == {"full": (73_728, 64), "sliding": (73_728, 16)}
    assert found.bytes_per_token == 2 * 1152 + 6 * 4096


def test_every_answer_names_the_range_of_releases_whose_rules_it_used():
    assert allocate(PLAIN, "0.17.1").rule == "vLLM 0.16.0 and later, before 0.18.0"
    assert allocate(PLAIN, None).rule == "vLLM 0.29.0 and later, up to 0.33.0"
    assert allocate(PLAIN, "0.34.0").rule.endswith("0.34.0 was not read")


def test_a_release_before_the_first_known_one_is_refused():
    with pytest.raises(UsageError, match=r"0\.2\.5"):
        allocate(PLAIN, "0.1.0")
    with pytest.raises(UsageError, match="release"):
        allocate(PLAIN, "latest")


def test_the_ranges_follow_each_other_without_a_gap():
    assert [row.since for row in RANGES] == ["0.2.5", *(since for since, _ in STEPS)]
    assert all(earlier.until == later.since for earlier, later in pairwise(RANGES))
    assert [version(row.since) for row in RANGES] == sorted(version(row.since) for row in RANGES)


@pytest.mark.parametrize(
    ("release", "since"),
    [("0.24.1.dev0", "0.24.0"), ("0.8.5.post1", "0.2.5"), ("v0.33.0", "0.29.0"), ("0.20.2rc1", "0.20.0")],
)
def test_a_build_between_releases_follows_the_release_it_grew_from(release, since):
    assert rules_of(release).since == since


# Kimi-Linear: 3 inputs of 3 x 4,096 channels at 16 bits and 32 matrices of 128 x 128 in float32, halved by two ranks:
# 36,864 + 1,048,576 = 1,085,440 B beside latent tokens of 1,152 B, which every rank keeps whole: 942.3 tokens.
KIMI_LINEAR = {
    "model_type": "kimi_linear",
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "linear_attn_config": {
        "full_attn_layers": [4],
        "kda_layers": [1, 2, 3],
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
    },
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    ("release", "backend", "block"),
    [
        ("0.19.0", "FLASH_ATTN_MLA", 960),
        ("0.19.0", "CUTLASS_MLA", 1024),
        ("0.20.0", None, 944),
        ("0.24.0", "FLASH_ATTN_MLA", 944),
        ("0.24.0", "FLASHINFER_MLA", 960),
        ("0.24.0", "CUTLASS_MLA", 1024),
        ("0.27.0", "FLASH_ATTN_MLA", 1024),
    ],
)
def test_the_backend_aligns_the_block_of_a_latent_hybrid(release, backend, block):
    request = CacheRequest(release=release, tp=2, backend=backend, max_model_len=8192)
    assert replay(layout(KIMI_LINEAR), request).block_size == block
