"""What one head of one token costs in each cache format, and how it is written and read back.

A record is `data` bytes and `scale` bytes; how records lie in a page is `pages.PageLayout`'s business.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nvdash.smoke import fp8_int8, nvfp4

if TYPE_CHECKING:
    from torch import Tensor

LATENT, ROPE = 512, 64
"""The two parts of an MLA record: the compressed latent and the rotated part."""


@dataclass(frozen=True, slots=True)
class Record:
    """One cache format as it is stored per token and head."""

    name: str
    data_bytes: Callable[[int], int]
    scale_bytes: Callable[[int], int]
    encode: "Callable[[Tensor, float], tuple[Tensor, Tensor]]"
    """[rows, d] values and the decode scale to data bytes and scale bytes, both uint8 [rows, bytes]."""
    decode: "Callable[[Tensor, Tensor, float], Tensor]"
    scale_of: "Callable[[Tensor], float]" = lambda values: 1.0
    """The per-tensor decode scale that suits some values; 1.0 where the format keeps its scales in the record."""

    def bytes(self, width: int) -> int:
        """Bytes of one head of one token, scales included."""
        return self.data_bytes(width) + self.scale_bytes(width)


def _no_scales(stored: "Tensor") -> "tuple[Tensor, Tensor]":
    return stored, stored.new_empty(len(stored), 0)


def _float_bytes(scales: "Tensor") -> "Tensor":
    import torch

    return scales.unsqueeze(1).contiguous().view(torch.uint8)


def _floats(scale_bytes: "Tensor") -> "Tensor":
    import torch

    return scale_bytes.contiguous().view(torch.float32)


def _encode_bf16(values: "Tensor", scale: float) -> "tuple[Tensor, Tensor]":
    import torch

    return _no_scales(values.bfloat16().contiguous().view(torch.uint8))


def _decode_bf16(data: "Tensor", scales: "Tensor", scale: float) -> "Tensor":
    import torch

    return data.contiguous().view(torch.bfloat16).float()


def _encode_fp8_rows(values: "Tensor", scale: float) -> "tuple[Tensor, Tensor]":
    stored, scales = fp8_int8.quantize_fp8_rows(values)
    return stored, _float_bytes(scales)


def _encode_int8_rows(values: "Tensor", scale: float) -> "tuple[Tensor, Tensor]":
    stored, scales = fp8_int8.quantize_int8_rows(values)
    return stored, _float_bytes(scales)


def _encode_fp8_latent(values: "Tensor", scale: float) -> "tuple[Tensor, Tensor]":
    """656 bytes: 512 E4M3, a power-of-two FP32 scale per 128 of them, 64 BF16 rotated values."""
    import torch

    quarters = values[:, :LATENT].float().reshape(-1, 128)
    scales = (quarters.abs().amax(dim=1) / fp8_int8.E4M3_MAX).clamp_(min=1e-4).log2().ceil().exp2()
    latent = (quarters / scales.unsqueeze(1)).to(torch.float8_e4m3fn).view(torch.uint8).view(len(values), LATENT)
    rope = values[:, LATENT:].bfloat16().contiguous().view(torch.uint8)
    return torch.cat((latent, rope), dim=1), _float_bytes(scales).view(len(values), -1)


def _decode_fp8_latent(data: "Tensor", scales: "Tensor", scale: float) -> "Tensor":
    import torch

    latent = fp8_int8.dequantize_fp8(data[:, :LATENT].contiguous(), 1.0).view(len(data), -1, 128)
    scaled = (latent * _floats(scales).unsqueeze(2)).view(len(data), LATENT)
    return torch.cat((scaled, data[:, LATENT:].contiguous().view(torch.bfloat16).float()), dim=1)


def _encode_nvfp4_latent(values: "Tensor", scale: float) -> "tuple[Tensor, Tensor]":
    """352 bytes: 512 E2M1, 64 unscaled E4M3 rotated values, 32 E4M3 scales interleaved by four."""
    import torch

    packed, scales = nvfp4.quantize(values[:, :LATENT].contiguous(), 1.0, least_block_scale=2.0**-9)
    rope = fp8_int8.quantize_fp8(values[:, LATENT:], 1.0)
    return torch.cat((packed, rope), dim=1), scales[:, latent_scale_order(scales.shape[1])]


def _decode_nvfp4_latent(data: "Tensor", scales: "Tensor", scale: float) -> "Tensor":
    import torch

    order = torch.tensor(latent_scale_order(scales.shape[1]), device=data.device)
    linear = torch.empty_like(scales)
    linear[:, order] = scales
    latent = nvfp4.dequantize(data[:, : LATENT // 2], linear, 1.0)
    return torch.cat((latent, fp8_int8.dequantize_fp8(data[:, LATENT // 2 :].contiguous(), 1.0)), dim=1)


def latent_scale_order(count: int) -> list[int]:
    """The block whose scale lies at each place of an NVFP4 MLA record: block s lies at 8*(s & 3) + (s >> 2)."""
    per_lane = count // 4
    return [4 * (place % per_lane) + place // per_lane for place in range(count)]


def _fp8_scale(values: "Tensor") -> float:
    return float(values.abs().max()) / fp8_int8.E4M3_MAX or 1.0


RECORDS = {
    record.name: record
    for record in (
        Record("bf16", lambda d: 2 * d, lambda d: 0, _encode_bf16, _decode_bf16),
        Record(
            "fp8_e4m3",
            lambda d: d,
            lambda d: 0,
            lambda values, scale: _no_scales(fp8_int8.quantize_fp8(values, scale)),
            lambda data, scales, scale: fp8_int8.dequantize_fp8(data.contiguous(), scale),
            _fp8_scale,
        ),
        Record(
            "fp8_per_token_head",
            lambda d: d,
            lambda d: 4,
            _encode_fp8_rows,
            lambda data, scales, scale: fp8_int8.dequantize_fp8_rows(data.contiguous(), _floats(scales).view(-1)),
        ),
        Record(
            "int8_per_token_head",
            lambda d: d,
            lambda d: 4,
            _encode_int8_rows,
            lambda data, scales, scale: fp8_int8.dequantize_int8_rows(data.contiguous(), _floats(scales).view(-1)),
        ),
        Record(
            "nvfp4",
            lambda d: d // 2,
            lambda d: d // nvfp4.BLOCK,
            nvfp4.quantize,
            nvfp4.dequantize,
            nvfp4.decode_scale,
        ),
        Record(
            "nvfp4_4over6",
            lambda d: d // 2,
            lambda d: d // nvfp4.BLOCK,
            lambda values, scale: nvfp4.quantize(values, scale, four_over_six=True),
            nvfp4.dequantize,
            nvfp4.decode_scale,
        ),
        Record("fp8_ds_mla", lambda d: LATENT + 2 * ROPE, lambda d: 16, _encode_fp8_latent, _decode_fp8_latent),
        Record("nvfp4_ds_mla", lambda d: LATENT // 2 + ROPE, lambda d: 32, _encode_nvfp4_latent, _decode_nvfp4_latent),
    )
}
ALIASES = {"auto": "bf16", "bfloat16": "bf16", "fp8": "fp8_e4m3"}


def record(kv_cache_dtype: str) -> Record | None:
    """The record of a cache dtype as frameworks spell it; None where the reference engine has none."""
    return RECORDS.get(ALIASES.get(kv_cache_dtype, kv_cache_dtype))
