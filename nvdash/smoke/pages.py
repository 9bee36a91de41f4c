"""A paged KV cache that is really allocated: one page is [K data | K scales | V data | V scales].

Each region is dense, by token and head (NHD) or by head and token (HND). Where a kernel wants it, V scales are
interleaved over groups of four tokens. An MLA cache keeps one record per token and no V half.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nvdash.smoke.records import Record

if TYPE_CHECKING:
    from torch import Tensor

POISON = 0x7F
"""Unused bytes: NaN in BF16 and E4M3, so that a read beyond what was written shows."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Where each record of a page lies."""

    record: Record
    block_size: int
    kv_heads: int
    width: int
    order: str = "NHD"
    swizzled_v_scales: bool = False
    latent: bool = False

    @property
    def region_bytes(self) -> tuple[int, ...]:
        """Sizes of K data, K scales, and, unless the cache is latent, V data and V scales."""
        cells = self.block_size * self.kv_heads
        half = (cells * self.record.data_bytes(self.width), cells * self.record.scale_bytes(self.width))
        return half if self.latent else half * 2

    @property
    def page_bytes(self) -> int:
        """Bytes of one page."""
        return sum(self.region_bytes)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one token adds in this layer."""
        return self.page_bytes // self.block_size


def v_scale_order(block_size: int, blocks: int) -> list[int]:
    """For each place of a page's V scales, token-major, the linear index of the scale stored there.

    (t, s) moves to (4*(t/4) + s/(S/4), 4*(s % (S/4)) + t % 4) with S scales per token.
    """
    if block_size % 4 or blocks % 4:
        raise ValueError(f"V scales interleave over four tokens and four blocks, not over {block_size} x {blocks}")
    quarter, order = blocks // 4, [0] * (block_size * blocks)
    for token in range(block_size):
        for block in range(blocks):
            row = token // 4 * 4 + block // quarter
            order[row * blocks + block % quarter * 4 + token % 4] = token * blocks + block
    return order


class PagedCache:
    """One layer's pages in one tensor, written by slot and read back by block."""

    def __init__(self, layout: PageLayout, num_blocks: int, device: str = "cpu") -> None:
        import torch

        self.layout = layout
        self.memory = torch.full((num_blocks, layout.page_bytes), POISON, dtype=torch.uint8, device=device)
        self.k_scale = self.v_scale = 1.0

    def regions(self) -> "tuple[Tensor, ...]":
        """Views of K data, K scales, V data and V scales, each [blocks, bytes]."""
        return tuple(self.memory.split(list(self.layout.region_bytes), dim=1))

    def append(self, keys: "Tensor", values: "Tensor | None", slots: "Tensor") -> None:
        """Store [tokens, heads, width] at flat slots; a latent cache takes keys only."""
        regions = self.regions()
        self._write(regions[0], regions[1], keys, slots, self.k_scale, swizzled=False)
        if values is not None:
            self._write(regions[2], regions[3], values, slots, self.v_scale, self.layout.swizzled_v_scales)

    def read(self, blocks: "Tensor", length: int) -> "tuple[Tensor, Tensor | None]":
        """Keys and values [length, heads, width] in float32 of the tokens that these blocks hold."""
        regions = [region[blocks] for region in self.regions()]
        keys = self._decode(regions[0], regions[1], self.k_scale, swizzled=False)[:length]
        if self.layout.latent:
            return keys, None
        return keys, self._decode(regions[2], regions[3], self.v_scale, self.layout.swizzled_v_scales)[:length]

    def _write(
        self, data: "Tensor", scales: "Tensor", rows: "Tensor", slots: "Tensor", scale: float, swizzled: bool
    ) -> None:
        tokens, heads, width = rows.shape
        stored, stored_scales = self.layout.record.encode(rows.reshape(-1, width), scale)
        block, token = slots // self.layout.block_size, slots % self.layout.block_size
        self._cells(data)[block, token] = stored.view(tokens, heads, -1)
        if not stored_scales.shape[1]:
            return
        cells = self._cells(scales)
        if not swizzled:
            cells[block, token] = stored_scales.view(tokens, heads, -1)
            return
        touched, where = block.unique(return_inverse=True)
        pages = self._unswizzle(cells[touched])
        pages[where, token] = stored_scales.view(tokens, heads, -1)
        cells[touched] = self._swizzle(pages)

    def _decode(self, data: "Tensor", scales: "Tensor", scale: float, swizzled: bool) -> "Tensor":
        cells, scale_cells = self._cells(data), self._cells(scales)
        scale_cells = self._unswizzle(scale_cells) if swizzled else scale_cells
        rows = cells.reshape(-1, cells.shape[-1])
        decoded = self.layout.record.decode(rows, scale_cells.reshape(len(rows), scale_cells.shape[-1]), scale)
        return decoded.view(-1, self.layout.kv_heads, self.layout.width)

    def _cells(self, region: "Tensor") -> "Tensor":
        """A region as [blocks, tokens, heads, bytes], whatever the order in memory."""
        size, heads = self.layout.block_size, self.layout.kv_heads
        per_cell = region.shape[1] // (size * heads)
        if self.layout.order == "NHD":
            return region.unflatten(1, (size, heads, per_cell))
        return region.unflatten(1, (heads, size, per_cell)).transpose(1, 2)

    def _swizzle(self, pages: "Tensor") -> "Tensor":
        """Interleave the scales [blocks, tokens, heads, scales] of whole pages."""
        blocks, tokens, heads, count = pages.shape
        flat = pages.permute(0, 2, 1, 3).reshape(blocks, heads, tokens * count)
        return flat[..., v_scale_order(tokens, count)].view(blocks, heads, tokens, count).permute(0, 2, 1, 3)

    def _unswizzle(self, pages: "Tensor") -> "Tensor":
        import torch

        blocks, tokens, heads, count = pages.shape
        flat = pages.permute(0, 2, 1, 3).reshape(blocks, heads, tokens * count)
        linear = torch.empty_like(flat)
        linear[..., v_scale_order(tokens, count)] = flat
        return linear.view(blocks, heads, tokens, count).permute(0, 2, 1, 3)
