"""The one-byte codecs: FP8 with one scale per tensor, FP8 and INT8 with one scale per token and head.

A decode scale multiplies the stored value: `value = stored * scale`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

E4M3_MAX, E5M2_MAX, INT8_MAX = 448.0, 57344.0, 127.0
SCALE_FLOOR = 1e-6


def quantize_fp8(values: "Tensor", scale: float, e5m2: bool = False) -> "Tensor":
    """FP8 bytes (uint8) of values under one scale, clamped to the largest finite value; E4M3 unless `e5m2`."""
    import torch

    top, dtype = (E5M2_MAX, torch.float8_e5m2) if e5m2 else (E4M3_MAX, torch.float8_e4m3fn)
    return (values.float() / scale).clamp_(-top, top).to(dtype).view(torch.uint8)


def dequantize_fp8(stored: "Tensor", scale: float, e5m2: bool = False) -> "Tensor":
    """The float32 values of FP8 bytes under one scale."""
    import torch

    return stored.view(torch.float8_e5m2 if e5m2 else torch.float8_e4m3fn).float() * scale


def row_scales(values: "Tensor", largest: float) -> "Tensor":
    """One FP32 decode scale per row: its largest magnitude over the format's, with a floor."""
    import torch

    return (torch.nan_to_num(values.float()).abs().amax(dim=1) / largest).clamp_(min=SCALE_FLOOR)


def quantize_fp8_rows(values: "Tensor") -> "tuple[Tensor, Tensor]":
    """E4M3 bytes [rows, d] and FP32 scales [rows]; a row is one head of one token."""
    import torch

    scales = row_scales(values, E4M3_MAX)
    scaled = (values.float() / scales.unsqueeze(1)).clamp_(-E4M3_MAX, E4M3_MAX)
    return scaled.to(torch.float8_e4m3fn).view(torch.uint8), scales


def quantize_int8_rows(values: "Tensor") -> "tuple[Tensor, Tensor]":
    """INT8 bytes (as uint8) [rows, d] and FP32 scales [rows]; halves round away from zero."""
    import torch

    scales = row_scales(values, INT8_MAX)
    scaled = torch.nan_to_num(values.float() / scales.unsqueeze(1))
    rounded = torch.copysign((scaled.abs() + 0.5).floor_(), scaled).clamp_(-INT8_MAX - 1, INT8_MAX)
    return rounded.to(torch.int8).view(torch.uint8), scales


def dequantize_fp8_rows(stored: "Tensor", scales: "Tensor") -> "Tensor":
    """The float32 values of E4M3 bytes with one scale per row."""
    import torch

    return stored.view(torch.float8_e4m3fn).float() * scales.unsqueeze(1)


def dequantize_int8_rows(stored: "Tensor", scales: "Tensor") -> "Tensor":
    """The float32 values of INT8 bytes with one scale per row."""
    import torch

    return stored.view(torch.int8).float() * scales.unsqueeze(1)
