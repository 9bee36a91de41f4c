"""Bytes of stored formats, by hand and against the released sources' own numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.errors import UnknownError
from nvdash.formats import (
    CACHE_FORMATS,
    WEIGHT_ENCODINGS,
    Encoding,
    cache_format,
    latent_record,
)

# K and V of one head and token; vLLM 0.33.0 (vllm-support section 5), each by hand:
# nvfp4 128: 2 x (64 + 8); int8_per_token_head 128: 2 x (128 + 4); turboquant_k8v4 128: even(128 + 64 + 4).
PAIRS = {
    "bfloat16": {64: 256, 128: 512, 256: 1024},
    "fp8": {64: 128, 128: 256, 256: 512},
    "nvfp4": {64: 72, 128: 144, 256: 288},
    "nvfp4_4over6": {64: 72, 128: 144, 256: 288},
    "int8_per_token_head": {64: 136, 128: 264, 256: 520},
    "fp8_per_token_head": {64: 136, 128: 264, 256: 520},
    "int4_per_token_head": {64: 72, 128: 136, 256: 264},
    "ultraquant_4bit": {64: 68, 128: 136, 256: 272},
    "turboquant_k8v4": {64: 100, 128: 196, 256: 388},
    "turboquant_4bit_nc": {64: 70, 128: 134, 256: 262},
    "turboquant_k3v4_nc": {64: 62, 128: 118, 256: 230},
    "turboquant_3bit_nc": {64: 54, 128: 102, 256: 198},
}


@pytest.mark.parametrize(
    ("flag", "size", "expected"), [(flag, size, cost) for flag, row in PAIRS.items() for size, cost in row.items()]
)
def test_a_key_and_a_value_of_one_head_cost(flag, size, expected):
    assert cache_format(flag).token_bytes(size, size) == expected


@pytest.mark.parametrize(("flag", "expected"), [("mxfp8", 264), ("fp4_mx_block16", 144), ("fp4_e2m1", 144)])
def test_sglangs_own_formats_cost(flag, expected):
    # 128 values: mxfp8 2 x (128 + 4 scales of 32), fp4_mx_block16 2 x (64 + 8).
    assert cache_format(flag).token_bytes(128, 128) == expected


def test_equal_bytes_do_not_make_two_formats_one():
    assert cache_format("fp4_e2m1").name == "fp4_mx_block16"
    assert cache_format("nvfp4").name == "nvfp4"


def test_keys_and_values_of_unequal_size_are_added_apart():
    assert cache_format("bfloat16").token_bytes(192, 128) == 384 + 256
    assert cache_format("nvfp4").token_bytes(192, 128) == (96 + 12) + (64 + 8)


@pytest.mark.parametrize(
    ("framework", "flag", "family", "expected"),
    [
        ("vllm", "bfloat16", "mla", 1152),
        ("vllm", "fp8", "mla", 576),
        ("tensorrt-llm", "fp8", "mla", 576),
        ("sglang", "fp8_e4m3", "mla", 576),
        ("vllm", "fp8_ds_mla", "mla_sparse", 656),
        ("sglang", "fp8_e4m3", "mla_sparse", 656),
        ("vllm", "nvfp4_ds_mla", "mla_sparse", 352),
        ("sglang", "fp4_mx_block16", "mla", 324),
        ("vllm", "fp8_per_token_head", "mla", 584),
        ("vllm", "int4_per_token_head", "mla", 296),
    ],
)
def test_a_latent_record_of_512_and_64_values_costs(framework, flag, family, expected):
    assert latent_record(framework, flag, family).token_bytes(512, 64) == expected


def test_the_v4_record_of_448_and_64_values_has_584_bytes_under_the_same_flag():
    # 448 E4M3 + 7 scales + 1 pad + 64 x 2 rotary bytes.
    assert latent_record("vllm", "fp8_ds_mla", "deepseek_v4").token_bytes(448, 64) == 584


@pytest.mark.parametrize(("flag", "family"), [("nvfp4", "mla"), ("nvfp4_ds_mla", "mla"), ("turboquant_k8v4", "mla")])
def test_a_record_nobody_knows_is_refused_with_the_known_ones(flag, family):
    with pytest.raises(UnknownError) as refusal:
        latent_record("vllm", flag, family)
    assert flag in str(refusal.value)
    assert "bfloat16" in refusal.value.hint


@pytest.mark.parametrize("flag", ["octave_k3v4", "fp8_inc", "fp8_ds_mla", "nvfp5", ""])
def test_a_flag_without_known_bytes_is_refused_by_name(flag):
    with pytest.raises(UnknownError) as refusal:
        cache_format(flag)
    assert refusal.value.exit_code == 3


def test_a_misspelt_flag_gets_the_nearest_ones():
    with pytest.raises(UnknownError, match="did you mean nvfp4"):
        cache_format("nvpf4")


def test_70e9_parameters_in_nvfp4_are_39_375_gb():
    assert WEIGHT_ENCODINGS["nvfp4"].stored_bytes(70_000_000_000) == 39_375_000_000


@pytest.mark.parametrize(("name", "bits"), [("bf16", 16), ("fp8", 8), ("nvfp4", 4.5), ("mxfp4", 4.25), ("int4", 4.125)])
def test_a_weight_costs_this_many_bits_with_its_scales(name, bits):
    assert WEIGHT_ENCODINGS[name].bits_per_value == bits


@given(st.sampled_from(sorted(CACHE_FORMATS)), st.integers(1, 64), st.integers(1, 64))
def test_more_values_never_cost_less(name, blocks, more):
    stored = CACHE_FORMATS[name]
    assert stored.token_bytes(32 * blocks, 32 * blocks) <= stored.token_bytes(32 * (blocks + more), 32 * blocks)


@given(st.integers(0, 2**40))
def test_a_half_byte_is_never_lost(values):
    assert Encoding(4).stored_bytes(values) == (values + 1) // 2
