"""The NVFP4 codec against vectors and hand-worked cases."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.smoke import nvfp4
from tests.smoke.codec_vectors import bf16, cases, comparable, octets, single


def quantized(values: list[float], scale: float = 1.0, **more: bool) -> tuple[list[int], int]:
    """Codes and scale byte of one block, padded with zeros."""
    row = torch.tensor([values + [0.0] * (16 - len(values))])
    packed, scales = nvfp4.quantize(row, scale, **more)
    return torch.stack((packed & 15, packed >> 4), dim=-1).flatten().tolist()[: len(values)], int(scales)


@pytest.mark.parametrize("case", cases("nvfp4_edge.json"), ids=lambda case: case["name"])
def test_edge_vectors_are_met_bit_for_bit(case):
    check(case, four_over_six=False)


@pytest.mark.parametrize("case", cases("nvfp4_4over6.json"), ids=lambda case: case["name"])
def test_four_over_six_vectors_are_met_bit_for_bit(case):
    check(case, four_over_six=True)


def check(case, four_over_six):
    values, scale = bf16(case["input_bf16"], case["rows"], case["head_dim"]), single(case["decode_global_scale_f32"])
    want, want_scales = (octets(case["expected"][key], case["rows"]) for key in ("packed", "scales"))
    packed, scales = nvfp4.quantize(values, scale, four_over_six)
    assert torch.equal(scales, want_scales)
    assert torch.equal(comparable(packed, values), comparable(want, values))
    if "dequant_bf16" in case:
        decoded = nvfp4.dequantize(want, want_scales, scale).bfloat16()
        assert torch.equal(decoded, bf16(case["dequant_bf16"], *values.shape))


def test_ties_go_to_the_even_code():
    # amax 6 gives scale 1, so the values are the grid's own midpoints: 0.25 0.75 1.25 1.75 2.5 3.5 5
    codes, scale = quantized([6.0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    assert codes == [7, 0, 2, 2, 4, 4, 6, 6]
    assert scale == 0x38  # 1.0 in E4M3


def test_the_low_nibble_holds_the_even_element():
    packed, _ = nvfp4.quantize(torch.tensor([[6.0, -1.0] + [0.0] * 14]), 1.0)
    assert int(packed[0, 0]) == 0xA7


def test_a_nan_becomes_zero_and_its_neighbours_survive():
    codes, scale = quantized([float("nan"), 6.0, 3.0])
    assert [codes[0] & 7, *codes[1:]] == [0, 7, 5]
    assert scale == 0x38


def test_a_block_below_half_the_smallest_scale_is_stored_as_zero():
    assert quantized([6 * 2**-10, -1e-3]) == ([0, 8], 0)
    assert quantized([6 * 2**-9]) == ([7], 1)


def test_infinity_saturates_value_and_scale():
    assert quantized([float("inf"), float("-inf")]) == ([7, 15], 0x7E)


def test_four_over_six_keeps_six_on_a_tie():
    assert quantized([6.0], four_over_six=True) == quantized([6.0])
    # 4 and 3 exist exactly on the grid of amax/4 (scale 1), not on that of amax/6 (scale 0.6875): 4.5 -> 4, 3 kept
    assert quantized([4.0, 3.0], four_over_six=True) == ([6, 5], 0x38)


def test_the_decode_scale_of_a_tensor_is_amax_over_2688():
    assert nvfp4.decode_scale(torch.tensor([[-5376.0, 1.0]])) == 2.0
    assert nvfp4.decode_scale(torch.zeros(1, 16)) == 1.0


def test_a_width_that_is_no_multiple_of_a_block_is_refused():
    with pytest.raises(ValueError, match="24 values"):
        nvfp4.quantize(torch.zeros(2, 24), 1.0)


def test_no_rows_give_no_bytes():
    packed, scales = nvfp4.quantize(torch.zeros(0, 64), 1.0)
    assert (tuple(packed.shape), tuple(scales.shape)) == ((0, 32), (0, 4))
    assert tuple(nvfp4.dequantize(packed, scales, 1.0).shape) == (0, 64)


def test_rows_beyond_one_cache_block_are_encoded_like_the_first():
    row = torch.linspace(-3, 3, 64)
    packed, scales = nvfp4.quantize(row.repeat(2050, 1), 1.0)
    assert bool((packed == packed[0]).all() and (scales == scales[0]).all())


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=16, max_size=16))
@settings(max_examples=200, deadline=None)
def test_a_decoded_block_is_within_a_quarter_of_its_largest_value(values):
    row = torch.tensor([values])
    scale = nvfp4.decode_scale(row)
    decoded = nvfp4.dequantize(*nvfp4.quantize(row, scale), scale)
    # the widest gap of the grid (4 to 6) is 2 of 6; half of it, plus half an E4M3 step of the scale (1/16)
    assert float((decoded - row).abs().max()) <= float(row.abs().max()) * (1 / 6 + 1 / 16) + 1e-6


@given(st.lists(st.integers(0, 255), min_size=8, max_size=8), st.integers(1, 0x7E))
@settings(max_examples=200, deadline=None)
def test_stored_blocks_that_use_their_whole_range_survive_a_round_trip(packed, scale):
    codes = torch.tensor([packed], dtype=torch.uint8)
    codes[0, 0] = (codes[0, 0] & 0xF0) | 7  # one value of 6, so that the scale is found again
    decoded = nvfp4.dequantize(codes, torch.tensor([[scale]], dtype=torch.uint8), 1.0)
    again, scales = nvfp4.quantize(decoded, 1.0)
    assert int(scales) == scale
    assert torch.equal(comparable(again, decoded), comparable(codes, decoded))
