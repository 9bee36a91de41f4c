"""vLLM's cache allocator, replayed: groups, blocks, blocks per request, printed tokens."""

from dataclasses import dataclass, replace

from nvdash.footprint.caches import Cache, Layout
from nvdash.footprint.formula import formula_text, terms
from nvdash.footprint.ranks import all_caches, by_rank
from nvdash.footprint.request import Allocation, CacheRequest, Group, Precheck, gib
from nvdash.footprint.vllm_groups import LayerGroup, group_layers
from nvdash.footprint.vllm_pages import Blocks, Spec, block_sizes, draft_tokens, specs
from nvdash.footprint.vllm_rules import VllmRules, range_text, rules_of

ASSUMED_BATCHED_TOKENS = 8192
"""The API server's own default on devices of 70 GiB and more."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Groups of the whole model and what one block costs on each pipeline rank."""

    groups: tuple[LayerGroup, ...]
    per_rank: tuple[tuple[LayerGroup, ...], ...]
    bytes_per_block: tuple[int, ...]


def replay_vllm(layout: Layout, request: CacheRequest) -> Allocation:
    """What this release allocates for this layout in the memory it is given."""
    rules = rules_of(request.release)
    request = _with_boundary_layers(layout, request)
    length = request.max_model_len or layout.max_position
    assumed: list[str] = []
    batched = _batched_tokens(layout, request, length, assumed)
    blocks = _flat_blocks(request) if rules.flat else block_sizes(layout, request, rules)
    pool = _pool(layout, request, blocks, rules)
    needs = tuple(_request_blocks(group.spec, layout, request, blocks, rules, length, batched) for group in pool.groups)
    return _answer(layout, request, rules, pool, needs, length, assumed)


def _with_boundary_layers(layout: Layout, request: CacheRequest) -> CacheRequest:
    """TurboQuant keeps the first and last two layers of a model without states at 16 bits."""
    if not request.kv_cache_dtype.startswith("turboquant_") or layout.has_state:
        return request
    edge = min(2, layout.num_layers // 2)
    edges = [*range(edge), *range(layout.num_layers - edge, layout.num_layers)]
    return replace(request, skip_layers=(*request.skip_layers, *(str(layer) for layer in edges)))


def _batched_tokens(layout: Layout, request: CacheRequest, length: int | None, assumed: list[str]) -> int:
    if request.max_num_batched_tokens:
        return request.max_num_batched_tokens
    windows = [cache.window for cache in layout.caches if cache.window]
    if layout.encoder_tokens or any(length is None or window + 2048 < length for window in windows):
        assumed.append(f"max_num_batched_tokens {ASSUMED_BATCHED_TOKENS}")
    return ASSUMED_BATCHED_TOKENS


def _flat_blocks(request: CacheRequest) -> Blocks:
    return Blocks(request.block_size or 16, 0, "none")


def _pool(layout: Layout, request: CacheRequest, blocks: Blocks, rules: VllmRules) -> Pool:
    ranks = by_rank(layout, request)
    if rules.flat:
        ranks = [tuple(cache for cache in rank if cache.kind != "state") for rank in ranks]
    every = tuple(cache for rank in ranks for cache in rank)
    groups = group_layers(specs(every, layout, request, blocks, rules), rules)
    if rules.global_groups or request.pp == 1:
        local = tuple(tuple(_local(group, frozenset(rank)) for group in groups) for rank in ranks)
    else:
        local = tuple(group_layers(specs(rank, layout, request, blocks, rules), rules) for rank in ranks)
    return Pool(groups, local, tuple(_bytes_per_block(rank) for rank in local))


def _local(group: LayerGroup, caches: frozenset[Cache]) -> LayerGroup:
    members = group.on(caches)
    return replace(group, members=members, size=len(members))


def _bytes_per_block(groups: tuple[LayerGroup, ...]) -> int:
    """One block holds a page of every layer of the widest group."""
    return max((sum(spec.page for _, spec in group.members) for group in groups), default=0)


def _request_blocks(
    spec: Spec, layout: Layout, request: CacheRequest, blocks: Blocks, rules: VllmRules, length: int | None, batched: int
) -> int | None:
    """Blocks one request of full length takes in a group of this kind."""
    if spec.kind == "state":
        return _state_blocks(layout, request, blocks, rules, length)
    if spec.kind == "cross":
        return -(-max(batched, layout.encoder_tokens) // spec.block)
    if length is None:
        return None
    if spec.window and not rules.flat:
        return _window_blocks(spec, request, rules, length, batched)
    return -(-(-(-length // request.dcp)) // spec.block)


def _window_blocks(spec: Spec, request: CacheRequest, rules: VllmRules, length: int, batched: int) -> int:
    flying = batched * (request.pp + 1 if rules.in_flight_batches else 1)
    if spec.kind == "chunked":
        return -(-min(spec.window + flying, length) // spec.block)
    return -(-min(spec.window - 1 + flying, length) // spec.block) + 1


def _state_blocks(
    layout: Layout, request: CacheRequest, blocks: Blocks, rules: VllmRules, length: int | None
) -> int | None:
    drafted = draft_tokens(layout, request) if rules.draft_states else 0
    if blocks.state_mode == "all":
        return None if length is None else -(-length // blocks.state) + (drafted if rules.since >= "0.22" else 0)
    return (2 if blocks.state_mode == "align" else 1) + drafted


def _answer(
    layout: Layout, request: CacheRequest, rules: VllmRules, pool: Pool, needs: tuple[int | None, ...],
    length: int | None, assumed: list[str],
) -> Allocation:  # fmt: skip
    parts = terms(layout, by_rank(layout, request)[_widest(pool)], request)
    per_token = sum(part.total for part in parts)
    per_request = None if any(need is None for need in needs) else sum(need or 0 for need in needs)
    num_blocks, rank = _num_blocks(request, pool)
    concurrency = _concurrency(rules, request, pool, num_blocks, per_request, length)
    tokens = _tokens(rules, request, pool, num_blocks, concurrency, length)
    widest = pool.bytes_per_block[_widest(pool)]
    available = _available(request, len(pool.per_rank))
    return Allocation(
        framework="vllm",
        rule=range_text(rules, request.release),
        bytes_per_token=per_token,
        formula=parts,
        formula_text=formula_text(parts, request.tp),
        groups=_groups(pool, needs),
        block_size=_attention_block(pool),
        bytes_per_block=widest,
        num_blocks=num_blocks,
        kv_tokens=tokens,
        kv_tokens_rule="concurrency" if rules.concurrency_tokens else "blocks",
        max_concurrency=concurrency,
        blocks_per_request=per_request,
        predicted_tokens=_predicted(available, per_token, request, rank),
        padding_bytes=sum(group.padding_bytes for group in _groups(pool, needs)),
        limiting_rank=rank,
        state_bytes=_states(layout, request, pool),
        precheck=_precheck(rules, pool, available, per_request, needs),
        assumed=tuple(assumed),
        explain=_explain(rules, pool, needs, num_blocks, per_request, length),
    )


def _widest(pool: Pool) -> int:
    return max(range(len(pool.bytes_per_block)), key=pool.bytes_per_block.__getitem__)


def _available(request: CacheRequest, ranks: int) -> list[int]:
    """Memory per pipeline rank: the smallest of the tensor ranks that share it."""
    given = list(request.available_bytes)
    if not given:
        return []
    if len(given) == 1:
        return given * ranks
    share = max(len(given) // ranks, 1)
    return [min(given[rank * share : (rank + 1) * share] or given) for rank in range(ranks)]


def _num_blocks(request: CacheRequest, pool: Pool) -> tuple[int | None, int | None]:
    """Blocks of the poorest rank, or the number that was asked for."""
    available = _available(request, len(pool.bytes_per_block))
    if request.num_gpu_blocks_override is not None:
        return request.num_gpu_blocks_override, None
    counts = [max(have // size, 0) for have, size in zip(available, pool.bytes_per_block, strict=False) if size]
    if not counts:
        return None, None
    return min(counts), counts.index(min(counts))


def _concurrency(
    rules: VllmRules, request: CacheRequest, pool: Pool, num_blocks: int | None, per_request: int | None,
    length: int | None,
) -> float | None:  # fmt: skip
    if num_blocks is None or length is None or not per_request:
        return None
    if rules.flat:
        return num_blocks * pool.groups[0].spec.block / length
    return num_blocks / per_request


def _tokens(
    rules: VllmRules, request: CacheRequest, pool: Pool, num_blocks: int | None, concurrency: float | None,
    length: int | None,
) -> int | None:  # fmt: skip
    if num_blocks is None:
        return None
    if rules.concurrency_tokens:
        return None if concurrency is None or length is None else int(concurrency * length)
    smallest = min(group.spec.block for group in pool.groups)
    return num_blocks // len(pool.groups) * smallest * request.dcp


def _attention_block(pool: Pool) -> int | None:
    return min((group.spec.block for group in pool.groups if group.spec.kind != "state"), default=None)


def _groups(pool: Pool, needs: tuple[int | None, ...]) -> tuple[Group, ...]:
    widest = _bytes_per_block(pool.groups)
    return tuple(
        Group(
            kind=group.spec.kind,
            layers=len(group.members),
            page_bytes=sum(spec.page for _, spec in group.members) // len(group.members),
            block_size=group.spec.block,
            blocks_per_request=need,
            padding_layers=0 if group.mixed else group.size - len(group.members),
            padding_bytes=widest - sum(spec.used for _, spec in group.members),
        )
        for group, need in zip(pool.groups, needs, strict=True)
    )


def _predicted(available: list[int], per_token: int, request: CacheRequest, rank: int | None) -> int | None:
    if not available or not per_token:
        return None
    return max(available[rank or 0], 0) // per_token * request.dcp


def _states(layout: Layout, request: CacheRequest, pool: Pool) -> int:
    return sum(spec.used for group in pool.per_rank[_widest(pool)] for _, spec in group.members if spec.kind == "state")


def _precheck(
    rules: VllmRules, pool: Pool, available: list[int], per_request: int | None, needs: tuple[int | None, ...]
) -> Precheck | None:
    """The start-up check of one full-length request, rank by rank; the first refusal counts."""
    if not available or per_request is None:
        return None
    checks = [_rank_check(rules, pool, rank, available[rank], per_request, needs) for rank in range(len(pool.per_rank))]
    return next((check for check in checks if check.refused), checks[0])


def _rank_check(
    rules: VllmRules, pool: Pool, rank: int, available: int, per_request: int, needs: tuple[int | None, ...]
) -> Precheck:
    block = pool.bytes_per_block[rank]
    needed = per_request * block
    if not rules.check_groups and not rules.flat and len(pool.per_rank[rank]) == len(needs):
        grouped = zip(pool.per_rank[rank], needs, strict=True)
        needed = sum((need or 0) * spec.page for group, need in grouped for _, spec in group.members)
    reserved = block if rules.null_block else 0
    refused = available <= 0 or needed > available - reserved
    since = "0.29.0" if rules.null_block else None
    return Precheck(refused, needed, available, reserved, since, _reason(refused, needed, available, reserved))


def _reason(refused: bool, needed: int, available: int, reserved: int) -> str:
    if not refused:
        return ""
    held = f" less one reserved block of {reserved} B" if reserved else ""
    return f"one request of full length needs {gib(needed)}, the cache has {gib(available)}{held}"


def _explain(
    rules: VllmRules, pool: Pool, needs: tuple[int | None, ...], num_blocks: int | None, per_request: int | None,
    length: int | None,
) -> tuple[str, ...]:  # fmt: skip
    lines = [
        f"group {number}: {len(group.members)} {group.spec.kind} layers, page {group.spec.page} B of "
        f"{group.spec.block} tokens{f', {need} blocks per request' if need is not None else ''}"
        for number, (group, need) in enumerate(zip(pool.groups, needs, strict=True), 1)
    ]
    if num_blocks is not None:
        lines.append(f"{num_blocks} blocks of {pool.bytes_per_block[_widest(pool)]} B")
    if rules.concurrency_tokens and num_blocks is not None and per_request and length:
        lines.append(f"tokens = {num_blocks} / {per_request} blocks per request × {length}")
    elif num_blocks is not None:
        lines.append(f"tokens = {num_blocks} // {len(pool.groups)} groups × {min(g.spec.block for g in pool.groups)}")
    return tuple(lines)


__all__ = ["all_caches", "replay_vllm"]
