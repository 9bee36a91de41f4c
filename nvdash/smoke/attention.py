"""The reference engine's attention over a paged cache: page by page, with a running softmax.

It is the path under test. `oracle` answers the same question by another route and shares no code with it.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nvdash.smoke.pages import PagedCache

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Shape:
    """The attention shape of one layer; value heads are the first `value_size` of a latent record."""

    query_heads: int
    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None
    latent: bool = False

    @property
    def softmax_scale(self) -> float:
        """1/sqrt of the key size."""
        return 1.0 / math.sqrt(self.key_size)


def attend(cache: PagedCache, shape: Shape, queries: "Tensor", blocks: "Tensor", length: int) -> "Tensor":
    """Causal attention of the last `len(queries)` positions of one sequence; BF16 [queries, heads, value_size]."""
    import torch

    count, heads, _ = queries.shape
    size, group = cache.layout.block_size, heads // shape.kv_heads
    positions = torch.arange(length - count, length, device=queries.device)
    grouped = queries.float().view(count, shape.kv_heads, group, -1) * shape.softmax_scale
    top = torch.full((count, shape.kv_heads, group), -math.inf, device=queries.device)
    weight, out = torch.zeros_like(top), torch.zeros(*top.shape, shape.value_size, device=queries.device)
    first = 0 if shape.window is None else max(0, length - count - shape.window + 1) // size
    for page in range(first, -(-length // size)):
        held = min(size, length - page * size)
        keys, values = cache.read(blocks[page : page + 1], held)
        values = keys[..., : shape.value_size] if values is None else values
        at = torch.arange(page * size, page * size + held, device=queries.device)
        hidden = at > positions.unsqueeze(1)
        if shape.window is not None:
            hidden |= at <= positions.unsqueeze(1) - shape.window
        logits = torch.einsum("qhgd,khd->qhgk", grouped, keys).masked_fill(hidden[:, None, None], -math.inf)
        higher = torch.maximum(top, logits.amax(dim=-1))
        base = higher.masked_fill(higher == -math.inf, 0.0)
        share, keep = (logits - base.unsqueeze(-1)).exp(), (top - base).exp()
        weight = weight * keep + share.sum(dim=-1)
        out = out * keep.unsqueeze(-1) + torch.einsum("qhgk,khd->qhgd", share, values)
        top = higher
    return (out / weight.unsqueeze(-1)).reshape(count, heads, -1).bfloat16()
