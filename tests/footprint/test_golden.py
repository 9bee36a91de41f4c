"""The golden numbers of an 80-layer model with 8 KV heads of 128, and the plain allocator around them."""

import pytest

from nvdash.footprint.allocator import CacheRequest, replay
from nvdash.footprint.layers import layout

LLAMA_70B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(("flag", "expected"), [("bfloat16", 327_680), ("fp8", 163_840), ("nvfp4", 92_160)])
def test_one_token_of_80_layers_with_8_heads_of_128_costs(flag, expected):
    assert replay(layout(LLAMA_70B), CacheRequest(kv_cache_dtype=flag)).bytes_per_token == expected


@pytest.mark.parametrize(("flag", "gib"), [("bfloat16", 10.0), ("fp8", 5.0), ("nvfp4", 2.8125)])
def test_32768_tokens_fill_exactly_this_much_memory(flag, gib):
    request = CacheRequest(kv_cache_dtype=flag, available_bytes=(int(gib * 2**30),), max_model_len=32_768)
    assert replay(layout(LLAMA_70B), request).kv_tokens == 32_768


@pytest.mark.parametrize(("tp", "expected"), [(1, 327_680), (4, 81_920), (8, 40_960), (16, 40_960)])
def test_more_ranks_than_heads_repeat_the_heads(tp, expected):
    assert replay(layout(LLAMA_70B), CacheRequest(tp=tp)).bytes_per_token == expected


def test_the_formula_is_written_with_the_models_own_numbers():
    allocation = replay(layout(LLAMA_70B), CacheRequest(kv_cache_dtype="nvfp4", tp=2))
    assert allocation.formula_text == (
        "80 full × 4 KV heads × 144 B (nvfp4, 2 × 128 values) = 46080 B per token on one of 2 ranks"
    )
