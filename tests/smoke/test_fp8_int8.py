"""The one-byte codecs against vectors and hand-worked cases."""

import pytest
import torch

from nvdash.smoke import fp8_int8
from tests.smoke.codec_vectors import bf16, cases, octets, single

PER_TENSOR, ROWS = cases("fp8_int8.json")[:2], cases("fp8_int8.json")[2:]


@pytest.mark.parametrize("case", PER_TENSOR, ids=lambda case: case["name"])
def test_fp8_under_one_scale_clamps_to_the_largest_finite_value(case):
    values = bf16(case["input_bf16"])
    assert torch.equal(fp8_int8.quantize_fp8(values, case["scale"]), octets(case["e4m3_clamped"])[0])
    assert torch.equal(fp8_int8.quantize_fp8(values, case["scale"], e5m2=True), octets(case["e5m2_clamped"])[0])


@pytest.mark.parametrize(
    ("case", "quantize", "key"),
    [(ROWS[0], fp8_int8.quantize_fp8_rows, "e4m3"), (ROWS[1], fp8_int8.quantize_int8_rows, "int8_half_away")],
)
def test_one_scale_per_token_and_head_meets_the_vectors(case, quantize, key):
    stored, scales = quantize(bf16(case["input_bf16"], case["rows"], case["head_dim"]))
    assert torch.equal(stored, octets(case[key], case["rows"]))
    assert scales.tolist() == [single(bits) for bits in case["scales_f32"]]


def test_int8_halves_round_away_from_zero():
    stored, scales = fp8_int8.quantize_int8_rows(torch.tensor([[127.0, 0.5, -0.5, 1.5, -2.5]]))
    assert stored.view(torch.int8).tolist() == [[127, 1, -1, 2, -3]]
    assert fp8_int8.dequantize_int8_rows(stored, scales).tolist() == [[127.0, 1.0, -1.0, 2.0, -3.0]]


def test_a_row_of_zeros_keeps_the_scale_floor():
    stored, scales = fp8_int8.quantize_fp8_rows(torch.zeros(1, 16))
    assert scales.tolist() == [pytest.approx(1e-6)]
    assert fp8_int8.dequantize_fp8_rows(stored, scales).abs().max() == 0


def test_fp8_bytes_decode_to_the_values_they_stand_for():
    # 0x38 = 1.0, 0xC0 = -2.0, 0x7E = 448, 0x01 = 2^-9 in E4M3; 0x3C = 1.0 in E5M2
    stored = torch.tensor([0x38, 0xC0, 0x7E, 0x01], dtype=torch.uint8)
    assert fp8_int8.dequantize_fp8(stored, 0.5).tolist() == [0.5, -1.0, 224.0, 2**-10]
    assert fp8_int8.dequantize_fp8(torch.tensor([0x3C], dtype=torch.uint8), 3.0, e5m2=True).tolist() == [3.0]
