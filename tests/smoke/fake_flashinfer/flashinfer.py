"""FlashInfer's calls as the adapter uses them, answered on a CPU by our own arithmetic, for the plan's sibling test.

It reads only what the real library is given: tensors, page starts, page numbers, last page lengths.
"""

import os

import torch

from nvdash.smoke import nvfp4, oracle
from nvdash.smoke.attention import Shape

BROKEN = os.environ.get("FAKE_FLASHINFER_BUG")


def _cells(cache, order):
    return cache if order == "NHD" else cache.transpose(1, 2)


def append_paged_kv_cache(keys, values, batch, positions, cache, pages, starts, last, kv_layout):
    assert starts.tolist() == list(range(len(keys) + 1)) and batch.tolist() == starts.tolist()[:-1]
    for side, rows in zip(cache, (keys, values), strict=True):
        cells = _cells(side.view(torch.uint8), kv_layout)
        cells[pages.long(), positions.long()] = rows.contiguous().view(torch.uint8)
    assert last.tolist() == (positions + 1).tolist()


def nvfp4_quantize_append_paged_kv_cache_with_slot_mapping(
    keys, values, slots, cache, scales, k_scale, v_scale, kv_layout
):
    size = _cells(cache[0], kv_layout).shape[1]
    for side, side_scales, rows, scale in zip(cache, scales, (keys, values), (k_scale, v_scale), strict=True):
        packed, blocks = nvfp4.quantize(rows.flatten(0, 1), scale)
        shape = (len(rows), rows.shape[1], -1)
        _cells(side, kv_layout)[slots // size, slots % size] = packed.view(shape)
        _cells(side_scales.view(torch.uint8), kv_layout)[slots // size, slots % size] = blocks.view(shape)


class _Wrapper:
    def __init__(self, workspace, order, use_tensor_cores=True, backend="auto"):
        assert use_tensor_cores and workspace.numel() == 128 * 2**20
        self.order = order

    def _plan(self, query_starts, starts, pages, last, heads, kv_heads, width, size, window_left):
        self.queries, self.starts, self.pages, self.last, self.size = query_starts, starts, pages, last, size
        self.shape = Shape(heads, kv_heads, width, width, None if window_left < 0 else window_left + 1)

    def run(self, queries, cache, k_scale=1.0, v_scale=1.0, kv_cache_sf=(None, None)):
        outputs = []
        for place in range(len(self.last)):
            pages = self.pages[self.starts[place] : self.starts[place + 1]].long()
            length = (len(pages) - 1) * self.size + int(self.last[place])
            sides = [
                self._decoded(side, sf, pages, scale)[:length]
                for side, sf, scale in zip(cache, kv_cache_sf, (k_scale, v_scale), strict=True)
            ]
            mine = queries[self.queries[place] : self.queries[place + 1]]
            outputs.append(oracle.attention(self.shape, mine, *sides))
        return torch.cat(outputs).bfloat16()

    def _decoded(self, side, scales, pages, scale):
        cells = _cells(side, self.order)[pages].flatten(0, 1)
        if scales is None:
            return cells.float() * scale
        blocks = _cells(scales, self.order)[pages].flatten(0, 1).float()
        if BROKEN == "scales":
            blocks = blocks.roll(1, dims=-1)
        codes = torch.stack((cells & 15, cells >> 4), dim=-1).flatten(-2).long()
        return oracle.e2m1(codes).float() * blocks.repeat_interleave(16, dim=-1) * scale


class BatchPrefillWithPagedKVCacheWrapper(_Wrapper):
    def plan(
        self,
        query_starts,
        starts,
        pages,
        last,
        heads,
        kv_heads,
        width,
        size,
        causal,
        q_data_type,
        kv_data_type,
        window_left,
    ):
        assert causal and q_data_type == torch.bfloat16
        self._plan(query_starts, starts, pages, last, heads, kv_heads, width, size, window_left)


class BatchDecodeWithPagedKVCacheWrapper(_Wrapper):
    def plan(self, starts, pages, last, heads, kv_heads, width, size, q_data_type, kv_data_type, window_left):
        self._plan(torch.arange(len(last) + 1), starts, pages, last, heads, kv_heads, width, size, window_left)
