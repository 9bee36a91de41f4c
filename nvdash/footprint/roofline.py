"""The least time a decode step can take: bytes it must read over peak bandwidth. A bound, never a prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nvdash.footprint.allocator import replay
from nvdash.footprint.caches import Layout
from nvdash.footprint.formula import token_bytes
from nvdash.footprint.ranks import by_rank
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.weights import Weights

NOT_READ = ("embedding", "vision", "drafter")
"""Components a decode step does not read in full."""


@dataclass(frozen=True, slots=True)
class DecodeBound:
    """Bytes one decode step reads on a rank, and the time peak bandwidth needs for them."""

    weights_bytes: int
    cache_bytes: int
    bandwidth_gbs: float

    @property
    def step_ms(self) -> float:
        """Milliseconds at peak bandwidth."""
        return (self.weights_bytes + self.cache_bytes) / (self.bandwidth_gbs * 1e6)

    def as_dict(self, requests: int) -> dict[str, Any]:
        """The bound as an answer shows it."""
        return {
            "label": "bound: bytes read once at peak bandwidth, not a prediction",
            "weights_bytes": self.weights_bytes,
            "cache_bytes": self.cache_bytes,
            "bandwidth_gbs": self.bandwidth_gbs,
            "step_ms_at_least": round(self.step_ms, 4),
            "tokens_per_s_at_most": round(requests * 1000 / self.step_ms, 1) if self.step_ms else None,
        }


def weights_read(weights: Weights, config: Mapping[str, Any]) -> int:
    """Weight bytes that any decode step reads: everything, but of the experts only those one token must choose."""
    tower = config.get("text_config") or config
    chosen, known = tower.get("num_experts_per_tok"), _experts(tower)
    share = chosen / known if isinstance(chosen, int) and known and chosen <= known else 1.0
    read = {name: size for name, size in weights.by_component.items() if name not in NOT_READ}
    if "lm_head" not in read and "embedding" in weights.by_component:
        read["embedding"] = weights.by_component["embedding"]
    return round(sum(size * (share if name == "experts" else 1) for name, size in read.items()))


def _experts(tower: Mapping[str, Any]) -> int | None:
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    return next((tower[name] for name in names if isinstance(tower.get(name), int) and tower[name] > 0), None)


def cache_read(layout: Layout, request: CacheRequest, config: Mapping[str, Any], context: int) -> int:
    """Cache bytes that a decode step of one request reads on a rank: windows and sparse layers read only their part."""
    tower = config.get("text_config") or config
    chosen = tower.get("index_topk") if layout.family == "mla_sparse" else None
    ranks = []
    for caches in by_rank(layout, request):
        tokens = 0
        for cache in caches:
            limit = cache.window or (chosen if cache.latent and isinstance(chosen, int) else context)
            tokens += min(context, limit) // cache.ratio * token_bytes(cache, layout, request)
        ranks.append(tokens)
    return max(ranks) + replay(layout, request).state_bytes
