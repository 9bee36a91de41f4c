"""What a config's own keys say of its layers, and the refusals that name a key."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.footprint.caches import Layout, LayoutRefused
from nvdash.footprint.layers import layout
from nvdash.targets import HeadLayout

PLAIN = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 1024}
MLA = {**PLAIN, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
GDN = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}
MAMBA2 = {
    "mamba_n_heads": 48,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
}
KDA = {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}


def kinds(config: dict) -> list[str]:
    return [cache.kind for cache in layout(config).caches]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ["full"] * 4),
        ({"sliding_window": 128}, ["sliding"] * 4),
        ({"sliding_window": 128, "use_sliding_window": False}, ["full"] * 4),
        (
            {"sliding_window": 128, "use_sliding_window": True, "max_window_layers": 1},
            ["full", "sliding", "sliding", "sliding"],
        ),
        (
            {"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 2},
            ["sliding", "full"] * 2,
        ),
        ({"sliding_window": 128, "sliding_window_pattern": 2}, ["sliding", "full"] * 2),
        ({"sliding_window": 128, "sliding_window_pattern": "LLLG"}, ["sliding", "sliding", "sliding", "full"]),
        ({"sliding_window": 128, "global_attn_every_n_layers": 2}, ["sliding", "full"] * 2),
        ({"sliding_window": 128, "hybrid_layer_pattern": [0, 1, 1, 0]}, ["full", "sliding", "sliding", "full"]),
        ({"attention_chunk_size": 8192, "no_rope_layers": [1, 1, 1, 0]}, ["chunked"] * 3 + ["full"]),
        ({"attention_chunk_size": 8192, "no_rope_layer_interval": 2}, ["chunked", "full"] * 2),
        ({**GDN, "full_attention_interval": 4}, ["state"] * 3 + ["full"]),
        ({**MAMBA2, "layer_types": ["mamba", "attention", "mamba", "mamba"]}, ["state", "full", "state", "state"]),
        ({**MAMBA2, "layers_block_type": ["mamba", "moe", "attention", "mlp"]}, ["state", "full"]),
        ({**MAMBA2, "hybrid_override_pattern": "M*-E"}, ["state", "full"]),
        ({**MAMBA2, "attn_layer_indices": [2]}, ["state", "state", "full", "state"]),
        ({**MAMBA2, "block_types": ["hybrid"]}, ["state", "full"] * 4),
        ({"attn_type_list": [0, 0, 0, 1], "head_dim": 128}, ["state"] * 3 + ["full"]),
        ({"conv_L_cache": 3, "full_attn_idxs": [1]}, ["state", "full", "state", "state"]),
        ({**MLA, "linear_attn_config": KDA}, ["state"] * 3 + ["mla"]),
        ({**MLA}, ["mla"] * 4),
        ({**MLA, "index_topk": 2048, "index_head_dim": 128}, ["mla", "index"] * 4),
        (
            {**MLA, "index_topk": 2048, "index_head_dim": 128, "indexer_types": ["full", "shared", "shared", "full"]},
            ["mla", "index", "mla", "mla", "mla", "index"],
        ),
        (
            {**MLA, "index_topk": 8, "index_head_dim": 128, "index_topk_freq": 2, "index_skip_topk_offset": 2},
            ["mla", "index", "mla", "index", "mla", "mla", "index"],
        ),
        ({"cross_attention_layers": [1, 3]}, ["full", "cross"] * 2),
        ({"sliding_window": 9, "num_kv_shared_layers": 1, "sliding_window_pattern": 4}, ["sliding"] * 3),
    ],
)
def test_the_fields_own_keys_decide_the_kind_of_each_layer(keys, expected):
    assert kinds({**PLAIN, **keys}) == expected


def test_gemma_4_gives_its_global_layers_a_head_size_and_number_of_their_own():
    config = {
        **PLAIN,
        "head_dim": 256,
        "global_head_dim": 512,
        "num_key_value_heads": 16,
        "num_global_key_value_heads": 4,
        "sliding_window": 1024,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
    }
    shapes = [(cache.kind, cache.kv_heads, cache.key_size, cache.value_size) for cache in layout(config).caches]
    assert shapes == [("sliding", 16, 256, 256)] * 3 + [("full", 4, 512, 512)]


def test_mimo_v2_gives_its_windowed_layers_heads_and_unequal_sizes_of_their_own():
    config = {
        **PLAIN,
        "head_dim": 192,
        "v_head_dim": 128,
        "hybrid_layer_pattern": [0, 1, 1, 1],
        "sliding_window": 128,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 192,
        "swa_v_head_dim": 128,
        "swa_num_attention_heads": 16,
        "add_swa_attention_sink_bias": True,
    }
    found = layout(config)
    assert Counter((cache.kind, cache.kv_heads, cache.key_size, cache.value_size) for cache in found.caches) == {
        ("full", 2, 192, 128): 1,
        ("sliding", 8, 192, 128): 3,
    }
    assert str(found.heads()) == "hybrid_swa:8/2x192/128,window=128,sinks"


def test_blocks_of_a_pruned_model_state_their_own_heads_or_none():
    blocks = [
        {"attention": {"n_heads_in_group": 4}},
        {"attention": {"no_op": True}},
        {"attention": {"n_heads_in_group": 8}},
    ]
    config = {"num_attention_heads": 8, "hidden_size": 1024, "num_hidden_layers": 3, "block_configs": blocks}
    assert [(cache.layer, cache.kv_heads) for cache in layout(config).caches] == [(0, 2), (2, 1)]


def test_heads_listed_per_layer_are_taken_per_layer():
    config = {**PLAIN, "num_key_value_heads": None, "num_key_value_heads_per_layer": [4, 4, 2, 1]}
    assert [cache.kv_heads for cache in layout(config).caches] == [4, 4, 2, 1]


def test_an_encoder_decoder_keeps_two_caches_in_every_layer():
    found = layout(
        {
            "model_type": "whisper",
            "decoder_layers": 32,
            "decoder_attention_heads": 20,
            "d_model": 1280,
            "max_source_positions": 1500,
        }
    )
    assert Counter(cache.kind for cache in found.caches) == {"full": 32, "cross": 32}
    assert (found.encoder_tokens, found.caches[0].kv_heads, found.caches[0].key_size) == (1500, 20, 64)


def test_the_language_tower_is_found_inside_the_whole():
    outer = {"model_type": "x", "vision_config": {"num_hidden_layers": 27}, "text_config": PLAIN}
    assert len(layout(outer).caches) == 4
    assert len(layout({"thinker_config": {"text_config": PLAIN}}).caches) == 4


def test_a_gdn_state_is_three_inputs_per_channel_and_a_matrix_per_head():
    state = layout({**PLAIN, **GDN, "full_attention_interval": 4, "mamba_ssm_dtype": "float32"}).caches[0].state
    # channels 2 x 16 x 128 + 32 x 128 = 8,192; 3 x 8,192 x 2 B + 32 x 128 x 128 x 4 B.
    assert state.stored_bytes(1, "bfloat16") == 49_152 + 2_097_152
    assert state.stored_bytes(2, "bfloat16") == (49_152 + 2_097_152) // 2
    assert state.stored_bytes(1, "bfloat16", draft_tokens=2) == 81_920 + 2_097_152


def test_groups_of_a_mamba_state_are_repeated_when_the_ranks_do_not_divide_them():
    state = layout({**PLAIN, **MAMBA2, "layer_types": ["mamba"] * 3 + ["attention"]}).caches[0].state
    # one rank: (3,072 + 2 x 128) x 3 x 2 B + 48 x 64 x 128 x 2 B; two: (3,072 + 2 groups x 256) / 2 channels.
    assert state.stored_bytes(1, "bfloat16") == 19_968 + 786_432
    assert state.stored_bytes(2, "bfloat16") == 10_752 + 393_216


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        ({"num_nextn_predict_layers": 1}, 1),
        ({"mtp_num_hidden_layers": 1}, 1),
        ({"num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"}, 1),
        ({"num_nextn_predict_layers": 2, "mtp_layers_block_type": ["attention", "moe"]}, 2),
        ({"num_nextn_predict_layers": 0}, None),
        ({}, None),
    ],
)
def test_multi_token_prediction_layers_are_counted_from_the_config(keys, count):
    found = layout({**PLAIN, **keys}).mtp
    assert (None if found is None else len(found)) == count


def test_a_sparse_mla_drafter_layer_keeps_an_index_key_too():
    found = layout({**MLA, "index_topk": 2048, "index_head_dim": 128, "num_nextn_predict_layers": 1})
    assert [cache.kind for cache in found.mtp] == ["mla", "index"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_hidden_layers": "4"}, "num_hidden_layers"),
        ({"num_key_value_heads": 0}, "num_key_value_heads"),
        ({"num_key_value_heads": True}, "num_key_value_heads"),
        ({"hidden_size": 1023}, "head_dim"),
        ({"torch_dtype": "float7"}, "torch_dtype"),
        ({"layer_types": ["full_attention"] * 3}, "num_hidden_layers"),
        ({"layer_types": ["full_attention"] * 3 + ["telepathy"]}, "layer_types"),
        ({"layer_types": ["sliding_attention"] * 4}, "sliding_window"),
        ({"layer_types": "full_attention"}, "layer_types"),
        ({"layer_types": ["full_attention"] * 4, "hybrid_override_pattern": "M***"}, "layer_types"),
        ({"layer_types": ["mamba"] * 4}, "layer_types"),
        ({"hybrid_override_pattern": "M*Q-"}, "hybrid_override_pattern"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim"),
        ({"attn_layer_indices": [9], **MAMBA2}, "attn_layer_indices"),
        ({"linear_attn_config": {**KDA, "kda_layers": [1, 2]}}, "linear_attn_config.kda_layers"),
        ({"use_cla": True}, "use_cla"),
        ({"layer_group_size": 8}, "layer_group_size"),
        ({"ssm_cfg": {"d_state": 16}}, "ssm_cfg"),
        ({"n_sliding": 3}, "n_sliding"),
        ({"model_type": "bert"}, "model_type"),
    ],
)
def test_a_missing_or_odd_key_is_refused_by_its_name(change, key):
    config = {name: value for name, value in {**PLAIN, **change}.items() if value is not None}
    with pytest.raises(LayoutRefused) as refusal:
        layout(config)
    assert refusal.value.key == key
    assert key in str(refusal.value)


def test_a_class_default_is_used_only_where_the_class_documents_it():
    bare = {key: value for key, value in PLAIN.items() if key != "num_key_value_heads"}
    assert layout({**bare, "model_type": "llama"}).caches[0].kv_heads == 8
    assert layout({**bare, "model_type": "mistral"}).caches[0].kv_heads == 8
    assert layout({**bare, "model_type": "opt"}).caches[0].kv_heads == 8
    with pytest.raises(LayoutRefused, match="num_key_value_heads"):
        layout({**bare, "model_type": "somebody-new"})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({**PLAIN, "num_key_value_heads": 8}, "mha:8/8x128"),
        (PLAIN, "gqa:8/2x128"),
        ({**PLAIN, "multi_query": True}, "mqa:8/1x128"),
        (MLA, "mla:8/1x576/512"),
        ({**MLA, "index_topk": 8, "index_head_dim": 128}, "mla_sparse:8/1x576/512"),
        ({**PLAIN, **GDN, "full_attention_interval": 2}, "hybrid_ssm:8/2x128"),
        ({**PLAIN, "attention_chunk_size": 8192, "no_rope_layer_interval": 2}, "hybrid_chunked:8/2x128,window=8192"),
    ],
)
def test_a_layout_sums_itself_up_as_one_head_layout(config, expected):
    heads = layout(config).heads()
    assert str(heads) == expected
    assert HeadLayout.parse(expected) == heads


def test_unknown_query_heads_leave_the_head_layout_unknown():
    bare = {key: value for key, value in PLAIN.items() if key != "num_attention_heads"}
    assert layout({**bare, "head_dim": 64}).heads() is None


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 300),
    st.floats(),
    st.text(max_size=6),
    st.lists(st.integers(0, 2), max_size=5),
)
ODD = {
    **PLAIN,
    **MLA,
    **GDN,
    **MAMBA2,
    "sliding_window": 128,
    "layer_types": ["full_attention"] * 4,
    "linear_attn_config": KDA,
}


def test_a_config_without_a_count_has_the_layers_of_its_list_cached_or_not():
    kinds = ["mamba", "attention", "moe"]
    listed = {**PLAIN, **MAMBA2, "layers_block_type": kinds}
    listed.pop("num_hidden_layers")
    assert layout(listed).num_layers == 3


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(ODD)), VALUES, max_size=5),
    st.sets(st.sampled_from(sorted(ODD)), max_size=12),
)
def test_a_hostile_config_yields_a_layout_or_a_refusal_that_names_a_key(changes, removed):
    config = {key: value for key, value in {**ODD, **changes}.items() if key not in removed}
    try:
        found = layout(json.loads(json.dumps(config)))
    except LayoutRefused as refusal:
        assert refusal.key
    else:
        assert isinstance(found, Layout)
        assert found.caches
