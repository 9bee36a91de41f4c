"""Which caches live on which pipeline rank, and the caches a drafter adds."""

from nvdash.errors import UsageError
from nvdash.footprint.caches import Cache, Layout, LayoutRefused, as_drafter
from nvdash.footprint.request import CacheRequest

MTP_METHODS = ("mtp", "nextn", "deepseek_mtp", "qwen3_next_mtp", "mimo_mtp", "glm4_moe_mtp", "eagle_mtp")
EAGLE_METHODS = (*MTP_METHODS, "eagle", "eagle3", "dflash")
"""Methods that read the target's hidden states."""
MODEL_METHODS = ("eagle", "eagle3", "dflash", "draft_model")
NO_CACHE_METHODS = ("ngram", "suffix", "medusa", "mlp_speculator", "lookahead")


def all_caches(layout: Layout, request: CacheRequest) -> tuple[Cache, ...]:
    """The target's caches and those of its drafter."""
    return layout.caches + _drafted(layout, request)


def _drafted(layout: Layout, request: CacheRequest) -> tuple[Cache, ...]:
    draft = request.draft
    if draft is None or draft.method in NO_CACHE_METHODS:
        return ()
    if draft.layout is not None:
        return as_drafter(draft.layout.caches, layout.num_layers)
    if draft.method in MTP_METHODS:
        if layout.mtp is None:
            found = "found no such layers, or a model whose drafter is a separate one"
            raise LayoutRefused("num_nextn_predict_layers", "multi-token-prediction layers", found)
        return as_drafter(layout.mtp, 0)
    known = ", ".join((*MTP_METHODS, *MODEL_METHODS, *NO_CACHE_METHODS))
    hint = "give the drafter's config with --draft-model"
    if draft.method in MODEL_METHODS:
        raise UsageError("draft-method", f"the config of the {draft.method} drafter", "found none", hint)
    raise UsageError("draft-method", f"one of {known}", f"found {draft.method}")


def pipeline(layout: Layout, request: CacheRequest) -> list[int]:
    """Layers per pipeline rank: as asked, else split evenly with the remainder before the last rank."""
    if request.pp_layers:
        if len(request.pp_layers) != request.pp or sum(request.pp_layers) != layout.num_layers:
            expected = f"{request.pp} numbers that add up to {layout.num_layers} layers"
            raise UsageError("pp-layers", expected, f"found {','.join(map(str, request.pp_layers))}")
        return list(request.pp_layers)
    base, rest = divmod(layout.num_layers, request.pp)
    parts = [base] * request.pp
    for rank in range(2, rest + 2):
        parts[-rank] += 1
    return parts


def by_rank(layout: Layout, request: CacheRequest) -> list[tuple[Cache, ...]]:
    """The caches on each pipeline rank; the drafter sits with the last layers."""
    caches, parts = all_caches(layout, request), pipeline(layout, request)
    ranks, start = [], 0
    for rank, number in enumerate(parts):
        end = start + number if rank < len(parts) - 1 else max(start + number, 10**9)
        ranks.append(tuple(cache for cache in caches if start <= cache.layer < end))
        start += number
    return ranks
