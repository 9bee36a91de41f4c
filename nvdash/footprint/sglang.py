"""SGLang's token pools: slots of one cell each, with a pool of their own for windows and for states.

Read in SGLang 0.4.9 to 0.5.23 (model_runner.py, later mem_cache/pool_configurator.py). A pool is allocated one page
larger than it is counted: the first page takes the writes of padded tokens. Windowed layers get `swa_full_tokens_ratio`
slots for every full one, states take `mamba_full_memory_ratio` parts of the memory beside one part for tokens.
"""

from nvdash.footprint.caches import WINDOW_KINDS, Cache, Layout
from nvdash.footprint.formula import formula_text, refuse_compressed, terms, token_bytes
from nvdash.footprint.ranks import by_rank
from nvdash.footprint.request import Allocation, CacheRequest, Group

SLIDING_FIFTHS = 4
"""Windowed slots for every five full ones (`swa_full_tokens_ratio` 0.8)."""
STATE_TENTHS = 9
"""Parts of the memory for states beside ten for tokens (`mamba_full_memory_ratio` 0.9)."""
UNSET_STATE_TYPE = "float32"
SPARSE_PAGE = 64
"""Page of the sparse-MLA backends and of NVFP4; every other default is one token."""


def replay_sglang(layout: Layout, request: CacheRequest) -> Allocation:
    """Slots of the full-attention pool of the poorest rank, without its spare page."""
    refuse_compressed(layout)
    layout = layout.with_state_type(UNSET_STATE_TYPE)
    ranks = by_rank(layout, request)
    page = request.block_size or _default_page(layout, request)
    rank = max(range(len(ranks)), key=lambda index: _cell(ranks[index], layout, request))
    caches = ranks[rank]
    parts = terms(layout, caches, request)
    have = min(request.available_bytes, default=None)
    sliding, full, state = _cells(caches, layout, request)
    slots = None if have is None else _state_slots(have, state)
    tokens = None if have is None else _tokens(have - (slots or 0) * state, full, sliding, page)
    assumed = _assumed(sliding, state, request)
    return Allocation(
        framework="sglang",
        rule="SGLang 0.4.9 to 0.5.23: token slots and one spare page",
        bytes_per_token=sum(part.total for part in parts),
        formula=parts,
        formula_text=formula_text(parts, request.tp),
        groups=_groups(caches, layout, request, page),
        block_size=page,
        bytes_per_block=page * (full + sliding),
        num_blocks=None if tokens is None else tokens // page,
        kv_tokens=tokens,
        kv_tokens_rule="blocks",
        max_concurrency=_concurrency(tokens, layout, request),
        predicted_tokens=None if have is None or full + sliding == 0 else have // (full + sliding),
        limiting_rank=None if have is None else rank,
        state_bytes=state,
        pools=_pools(tokens, sliding, slots),
        assumed=assumed,
        explain=_explain(full, sliding, state, tokens, slots, page),
    )


def _default_page(layout: Layout, request: CacheRequest) -> int:
    return SPARSE_PAGE if layout.family == "mla_sparse" or request.kv_cache_dtype == "nvfp4" else 1


def _cell(caches: tuple[Cache, ...], layout: Layout, request: CacheRequest) -> int:
    return sum(token_bytes(cache, layout, request) for cache in caches)


def _cells(caches: tuple[Cache, ...], layout: Layout, request: CacheRequest) -> tuple[int, int, int]:
    """Bytes per token of the windowed and of the full layers, and bytes of one request's states."""
    sliding = _cell(tuple(cache for cache in caches if cache.kind in WINDOW_KINDS), layout, request)
    full = _cell(tuple(cache for cache in caches if cache.kind not in WINDOW_KINDS), layout, request)
    states = sum(cache.state.stored_bytes(request.tp, layout.dtype) for cache in caches if cache.state)
    return (sliding, full, states) if full else (0, sliding, states)


def _state_slots(have: int, state: int) -> int | None:
    return have * STATE_TENTHS // (10 + STATE_TENTHS) // state if state else None


def _tokens(have: int, full: int, sliding: int, page: int) -> int | None:
    fifths = 5 * full + SLIDING_FIFTHS * sliding
    return max(5 * have // fifths // page * page - page, 0) if fifths else None


def _pools(tokens: int | None, sliding: int, slots: int | None) -> dict[str, int]:
    pools = {} if tokens is None else {"full": tokens}
    if tokens is not None and sliding:
        pools["sliding"] = tokens * SLIDING_FIFTHS // 5
    return {**pools, "state": slots} if slots is not None else pools


def _groups(caches: tuple[Cache, ...], layout: Layout, request: CacheRequest, page: int) -> tuple[Group, ...]:
    kinds = dict.fromkeys(cache.kind for cache in caches)
    found = []
    for kind in kinds:
        members = tuple(cache for cache in caches if cache.kind == kind)
        size = _cell(members, layout, request) * page // len(members)
        found.append(Group(kind, len(members), size, page if kind != "state" else 1))
    return tuple(found)


def _concurrency(tokens: int | None, layout: Layout, request: CacheRequest) -> float | None:
    length = request.max_model_len or layout.max_position
    return None if tokens is None or length is None else tokens / length


def _assumed(sliding: int, state: int, request: CacheRequest) -> tuple[str, ...]:
    ratios = (("swa_full_tokens_ratio 0.8", sliding), ("mamba_full_memory_ratio 0.9", state))
    native = ("NVFP4 read natively (SM100); SM120 adds one layer of FP8 workspace",)
    return tuple(text for text, used in ratios if used) + (native if request.kv_cache_dtype == "nvfp4" else ())


def _explain(full: int, sliding: int, state: int, tokens: int | None, slots: int | None, page: int) -> tuple[str, ...]:
    lines = [f"one slot costs {full} B in the full-attention pool"]
    if sliding:
        lines.append(f"windowed layers cost {sliding} B per slot and have 4 slots for every 5 full ones")
    if state:
        lines.append(f"states cost {state} B per request{'' if slots is None else f', {slots} slots'}")
    if tokens is not None:
        lines.append(f"{tokens} slots after one spare page of {page}")
    return tuple(lines)
