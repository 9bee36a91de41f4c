"""An independently written FP32 path: raw page bytes by address arithmetic, then one dense softmax.

It shares no code with the engines or with the codec: values are built from bit fields, addresses from the page
formula. Agreement therefore speaks for both; a permuted scale or a swapped region shows as a difference.
"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from nvdash.smoke.attention import Shape
    from nvdash.smoke.pages import PageLayout


def e2m1(codes: "Tensor") -> "Tensor":
    """The value of E2M1 codes from their bit fields: sign, two exponent bits with bias 1, one mantissa bit."""
    import torch

    exponent, mantissa = (codes >> 1 & 3).double(), (codes & 1).double()
    size = torch.where(exponent == 0, mantissa / 2, (1 + mantissa / 2) * 2 ** (exponent - 1))
    return torch.where(codes >= 8, -size, size)


def e4m3(codes: "Tensor") -> "Tensor":
    """The value of E4M3 codes from their bit fields: four exponent bits with bias 7, three mantissa bits."""
    import torch

    exponent, mantissa = (codes >> 3 & 15).double(), (codes & 7).double()
    size = torch.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2 ** (exponent - 7))
    size = torch.where((codes & 127) == 127, torch.nan, size)
    return torch.where(codes >= 128, -size, size)


def words(data: "Tensor", size: int) -> "Tensor":
    """Little-endian unsigned integers of `size` bytes from the last axis."""
    import torch

    parts = data.long().unflatten(-1, (-1, size))
    return (parts << torch.arange(0, 8 * size, 8, device=data.device)).sum(dim=-1)


def float_bits(bits: "Tensor") -> "Tensor":
    """FP32 values of 32-bit patterns; a BF16 pattern is one shifted left by 16."""
    import torch

    return torch.where(bits >= 2**31, bits - 2**32, bits).int().view(torch.float32).double()


def decode_cells(name: str, data: "Tensor", scales: "Tensor", decode_scale: float) -> "Tensor":
    """Values [..., width] of data bytes and scale bytes, by the format's definition."""
    import torch

    data = data.long()
    if name == "bf16":
        return float_bits(words(data, 2) << 16)
    if name == "fp8_e4m3":
        return e4m3(data) * decode_scale
    if name == "fp8_per_token_head":
        return e4m3(data) * float_bits(words(scales, 4))
    if name == "int8_per_token_head":
        return torch.where(data > 127, data - 256, data).double() * float_bits(words(scales, 4))
    if name in ("nvfp4", "nvfp4_4over6"):
        return fp4_blocks(data, scales.long()) * decode_scale
    if name == "fp8_ds_mla":
        latent = e4m3(data[..., :512]).unflatten(-1, (4, 128)) * float_bits(words(scales, 4)).unsqueeze(-1)
        return torch.cat((latent.flatten(-2), float_bits(words(data[..., 512:], 2) << 16)), dim=-1)
    if name == "nvfp4_ds_mla":
        place = torch.arange(32, device=data.device)
        linear = scales.long()[..., 8 * (place & 3) + (place >> 2)]
        return torch.cat((fp4_blocks(data[..., :256], linear), e4m3(data[..., 256:])), dim=-1)
    raise ValueError(f"no definition of the format {name!r}")


def fp4_blocks(packed: "Tensor", scales: "Tensor") -> "Tensor":
    """E2M1 pairs, low nibble first, times one E4M3 scale per 16 values."""
    import torch

    values = torch.stack((e2m1(packed & 15), e2m1(packed >> 4)), dim=-1).flatten(-2)
    return values * e4m3(scales).repeat_interleave(16, dim=-1)


def gather(
    layout: "PageLayout", data: "Tensor", scales: "Tensor", blocks: "Tensor", length: int, scale: float, is_value: bool
) -> "Tensor":
    """The first `length` tokens [length, heads, width] of a sequence from two raw regions [blocks, bytes]."""
    import torch

    token = torch.arange(length, device=data.device)
    page, row = blocks[token // layout.block_size], token % layout.block_size
    head = torch.arange(layout.kv_heads, device=data.device)
    size = layout.record.data_bytes(layout.width)
    start = cell(layout, row.unsqueeze(1), head) * size
    at = start.unsqueeze(-1) + torch.arange(size, device=data.device)
    cells = data[page[:, None, None], at]
    count = layout.record.scale_bytes(layout.width)
    block = torch.arange(count, device=data.device)
    row, block = torch.broadcast_tensors(row[:, None, None], block)
    if is_value and layout.swizzled_v_scales:
        row, block = row // 4 * 4 + block // (count // 4), block % (count // 4) * 4 + row % 4
    at = cell(layout, row, head[:, None]) * count + block
    return decode_cells(layout.record.name, cells, scales[page[:, None, None], at], scale).float()


def cell(layout: "PageLayout", token: "Tensor", head: "Tensor") -> "Tensor":
    """The index of a record in its region."""
    return token * layout.kv_heads + head if layout.order == "NHD" else head * layout.block_size + token


def logits(shape: "Shape", queries: "Tensor", keys: "Tensor") -> "Tensor":
    """Masked attention logits [heads, queries, tokens] in float32 of the last positions of one sequence."""
    import torch

    count, heads, _ = queries.shape
    wide = keys.float().repeat_interleave(heads // keys.shape[1], dim=1)
    scores = torch.matmul(queries.float().transpose(0, 1), wide.permute(1, 2, 0)) / math.sqrt(shape.key_size)
    query = torch.arange(len(keys) - count, len(keys), device=keys.device).unsqueeze(1)
    token = torch.arange(len(keys), device=keys.device)
    seen = token <= query
    if shape.window is not None:
        seen &= token > query - shape.window
    return scores.masked_fill(~seen, -math.inf)


def attention(shape: "Shape", queries: "Tensor", keys: "Tensor", values: "Tensor") -> "Tensor":
    """Dense FP32 attention [queries, heads, value_size]."""
    import torch

    wide = values.float().repeat_interleave(queries.shape[1] // values.shape[1], dim=1)
    weights = torch.softmax(logits(shape, queries, keys), dim=-1)
    return torch.matmul(weights, wide.transpose(0, 1)).transpose(0, 1)
