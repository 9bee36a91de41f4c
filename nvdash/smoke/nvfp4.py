"""The NVFP4 codec: E2M1 values, one E4M3 scale per 16 of them, one FP32 decode scale per tensor.

`value = e2m1 * e4m3(scale) * decode_global_scale`. The arithmetic is that of FlashInfer's cache writer (exact FP32
divisions); `decode_global_scale` is amax/2688, never its reciprocal, which other libraries call by a similar name.
Rows are worked on in cache-sized blocks: eager torch is bound by memory traffic between its operations.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 16
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E2M1_MAX, E4M3_MAX = 6.0, 448.0
AMAX_PER_DECODE_SCALE = E2M1_MAX * E4M3_MAX
"""2688: the decode scale of a tensor is its largest magnitude divided by this."""

CACHED_VALUES = 64 * 1024


def decode_scale(values: "Tensor") -> float:
    """The decode scale that uses the whole range of a tensor; 1.0 for one that holds only zeros."""
    return float(values.abs().max()) / AMAX_PER_DECODE_SCALE or 1.0


def quantize(
    values: "Tensor", decode_global_scale: float, four_over_six: bool = False, least_block_scale: float = 0.0
) -> "tuple[Tensor, Tensor]":
    """Pack [rows, d] into E2M1 pairs [rows, d/2], low nibble first, and E4M3 scale bytes [rows, d/16].

    With `four_over_six` a block takes amax/4 for its scale where that lowers its squared error. MLA records keep a
    `least_block_scale` of 2^-9; the plain format lets a block of tiny values vanish.
    """
    import torch

    rows, width = values.shape
    if width % BLOCK:
        raise ValueError(f"rows of {width} values do not divide into blocks of {BLOCK}")
    packed = torch.empty(rows, width // 2, dtype=torch.uint8, device=values.device)
    scales = torch.empty(rows, width // BLOCK, dtype=torch.uint8, device=values.device)
    step = max(1, CACHED_VALUES // max(width, 1))
    for start in range(0, rows, step):
        blocks = values[start : start + step].reshape(-1, BLOCK).float()
        codes, block_scales = _quantize_blocks(blocks, decode_global_scale, four_over_six, least_block_scale)
        pairs = codes.view(torch.int16)
        packed[start : start + step] = (pairs | (pairs >> 4)).to(torch.uint8).view(-1, width // 2)
        scales[start : start + step] = block_scales.view(-1, width // BLOCK)
    return packed, scales


def dequantize(packed: "Tensor", scales: "Tensor", decode_global_scale: float) -> "Tensor":
    """The float32 values [rows, d] that packed bytes and linear scale bytes stand for."""
    import torch

    rows, half = packed.shape
    pairs, decoded = _pair_table(packed.device), _e4m3_table(packed.device) * decode_global_scale
    out = torch.empty(rows, half * 2, dtype=torch.float32, device=packed.device)
    step = max(1, CACHED_VALUES // max(2 * half, 1))
    for start in range(0, rows, step):
        codes = packed[start : start + step].reshape(-1).int()
        values = pairs.index_select(0, codes).view(torch.float32).view(-1, BLOCK)
        factors = decoded.index_select(0, scales[start : start + step].reshape(-1).int())
        out[start : start + step] = (values * factors.unsqueeze(1)).view(-1, half * 2)
    return out


def _quantize_blocks(
    blocks: "Tensor", decode_global_scale: float, four_over_six: bool, least: float
) -> "tuple[Tensor, Tensor]":
    """Codes (int8, one per value) and scale bytes of [blocks, 16] float32 values."""
    import torch

    amax = torch.nn.functional.max_pool1d(blocks.abs().view(1, 1, -1), BLOCK, BLOCK).view(-1)
    if bool(torch.isnan(amax).any()):  # a NaN is stored as zero and leaves its neighbours alone
        blocks = torch.nan_to_num(blocks, nan=0.0, posinf=torch.inf, neginf=-torch.inf)
        amax = blocks.abs().amax(dim=1)
    codes, scales = _codes(blocks, amax, E2M1_MAX, decode_global_scale, least)
    if four_over_six:
        other_codes, other_scales = _codes(blocks, amax, 4.0, decode_global_scale, least)
        error = _squared_error(blocks, codes, scales, decode_global_scale)
        better = _squared_error(blocks, other_codes, other_scales, decode_global_scale) < error
        codes = torch.where(better.unsqueeze(1), other_codes, codes)
        scales = torch.where(better, other_scales, scales)
    return codes, scales


def _codes(
    blocks: "Tensor", amax: "Tensor", top: float, decode_global_scale: float, least: float
) -> "tuple[Tensor, Tensor]":
    """Codes and scale bytes when a block's largest magnitude is to land on `top`."""
    import torch

    divisor = torch.tensor(top, dtype=torch.float32) * torch.tensor(decode_global_scale, dtype=torch.float32)
    stored = (amax / divisor.to(amax.device)).clamp(least, E4M3_MAX).to(torch.float8_e4m3fn)
    factor = stored.float() * decode_global_scale
    inverse = torch.where(factor > 0, 1.0 / factor, 0.0)
    return _e2m1_codes(blocks * inverse.unsqueeze(1)), stored.view(torch.uint8)


def _e2m1_codes(scaled: "Tensor") -> "Tensor":
    """The nearest E2M1 code of each value, ties to the even code, saturating, sign in bit 3.

    The grid is linear in three stretches (steps of 0.5, 1 and 2), so the code is the smallest of three roundings.
    """
    import torch

    magnitude = scaled.abs()
    code = torch.minimum((magnitude * 2).round_(), magnitude.round().add_(2))
    code = torch.minimum(code, magnitude.mul_(0.5).round_().add_(4)).clamp_(max=7)
    sign = (scaled.view(torch.int32) >> 28).to(torch.int8) & 8
    return code.to(torch.int8) | sign


def _squared_error(blocks: "Tensor", codes: "Tensor", scales: "Tensor", decode_global_scale: float) -> "Tensor":
    """The summed squared error of each block once decoded."""
    import torch

    values = _value_table(blocks.device).index_select(0, codes.view(-1).int()).view(-1, BLOCK)
    factors = scales.view(torch.float8_e4m3fn).float() * decode_global_scale
    return (values * factors.unsqueeze(1) - blocks).square_().sum(dim=1)


@lru_cache(maxsize=8)
def _value_table(device: object) -> "Tensor":
    """The value of each of the 16 codes."""
    import torch

    return torch.tensor([*E2M1, *(-value for value in E2M1)], dtype=torch.float32, device=str(device))


@lru_cache(maxsize=8)
def _pair_table(device: object) -> "Tensor":
    """Both values of each possible byte as one 64-bit word, so that one look-up yields two values."""
    import torch

    byte = torch.arange(256, device=str(device))
    values = _value_table(device)
    return torch.stack((values[byte & 15], values[byte >> 4]), dim=1).view(torch.int64).view(-1)


@lru_cache(maxsize=8)
def _e4m3_table(device: object) -> "Tensor":
    """The value of each E4M3 byte."""
    import torch

    return torch.arange(256, dtype=torch.uint8, device=str(device)).view(torch.float8_e4m3fn).float()
