"""vLLM's cache allocator, replayed: groups, blocks of the poorest rank, requests, printed tokens."""

from dataclasses import dataclass, replace
from functools import lru_cache

from nvdash.errors import UnknownError
from nvdash.footprint.caches import Cache, Layout
from nvdash.footprint.formula import formula_text, terms
from nvdash.footprint.ranks import by_rank
from nvdash.footprint.request import Allocation, CacheRequest, Group, Precheck, Term, gib
from nvdash.footprint.vllm_groups import LayerGroup, group_layers
from nvdash.footprint.vllm_packed import PackedBytes, pack_layers, packed_bytes, packed_requests
from nvdash.footprint.vllm_pages import block_sizes, specs
from nvdash.footprint.vllm_requests import request_blocks
from nvdash.footprint.vllm_rules import NULL_BLOCK_SINCE, range_text
from nvdash.footprint.vllm_setup import Setup, settle


@dataclass(frozen=True, slots=True)
class Pool:
    """The groups of the whole model, what each pipeline rank holds of them, and what a full request needs."""

    groups: tuple[LayerGroup, ...]
    ranks: tuple[tuple[LayerGroup, ...], ...]
    needs: tuple[int | None, ...]
    bytes_per_block: tuple[int, ...]
    """Bytes of one block on every rank."""
    check_bytes: tuple[int, ...]
    """The same as the start-up check counts them."""
    per_request: int | None
    """Blocks of one full-length request over all groups."""

    @property
    def widest(self) -> int:
        """The rank whose block is largest."""
        return max(range(len(self.ranks)), key=self.bytes_per_block.__getitem__)


@dataclass(frozen=True, slots=True)
class Shape:
    """What does not depend on the memory: the settled question, its pool, the formula, the groups."""

    setup: Setup
    pool: Pool
    terms: tuple[Term, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """Blocks, concurrency and tokens as the engine prints them."""

    blocks: int | None
    rank: int | None
    concurrency: float | None
    tokens: int | None


def replay_vllm(layout: Layout, request: CacheRequest) -> Allocation:
    """What this release allocates for this layout in the memory it is given."""
    shape = _shape(layout, replace(request, available_bytes=()))
    setup, pool = shape.setup, shape.pool
    available = _available(request, len(pool.ranks))
    counts = _counts(setup, pool, available)
    per_token = sum(part.total for part in shape.terms)
    return Allocation(
        framework="vllm",
        rule=range_text(setup.rules, request.release),
        bytes_per_token=per_token,
        formula=shape.terms,
        formula_text=formula_text(shape.terms, request.tp),
        groups=shape.groups,
        block_size=_attention_block(pool),
        bytes_per_block=pool.bytes_per_block[pool.widest],
        num_blocks=counts.blocks,
        kv_tokens=counts.tokens,
        kv_tokens_rule="concurrency" if setup.rules.concurrency_tokens else "blocks",
        max_concurrency=counts.concurrency,
        blocks_per_request=pool.per_request,
        reserved_blocks=int(setup.rules.pool_null_block),
        predicted_tokens=_predicted(available, per_token, request, counts.rank),
        padding_bytes=sum(group.padding_bytes for group in shape.groups),
        limiting_rank=counts.rank,
        state_bytes=_state_bytes(pool),
        precheck=_precheck(setup, pool, available),
        assumed=setup.assumed,
        explain=_explain(setup, pool, counts),
    )


@lru_cache(maxsize=256)
def _shape(layout: Layout, request: CacheRequest) -> Shape:
    """Kept, because one answer asks for several memories: both ends of a range, and every step of a search."""
    setup = settle(layout, request)
    pool = _pool(setup)
    return Shape(setup, pool, terms(setup.layout, _held(setup)[pool.widest], setup.request), _groups(pool))


def _held(setup: Setup) -> list[tuple[Cache, ...]]:
    """The caches of every pipeline rank; the first engine kept states outside the pool of blocks."""
    ranks = by_rank(setup.layout, setup.request)
    if not setup.rules.flat:
        return ranks
    return [tuple(cache for cache in rank if cache.kind != "state") for rank in ranks]


def _pool(setup: Setup) -> Pool:
    held, blocks = _held(setup), block_sizes(setup)
    every = tuple(cache for rank in held for cache in rank)
    if not every:
        found = "found recurrent layers only, which this release keeps outside the pool"
        raise UnknownError("model", "at least one layer with a paged cache", found)
    form = pack_layers if setup.layout.compressed else group_layers
    groups = form(specs(setup, every, blocks), setup.rules)
    if setup.rules.global_groups or setup.request.pp == 1:
        ranks = tuple(tuple(group.on(frozenset(rank)) for group in groups) for rank in held)
    else:
        ranks = tuple(form(specs(setup, rank, blocks), setup.rules) for rank in held)
    needs = tuple(request_blocks(setup, group.spec) for group in groups)
    sizes = [_block_bytes(setup, rank) for rank in ranks]
    allocated, checked = tuple(size.block for size in sizes), tuple(size.check for size in sizes)
    return Pool(groups, ranks, needs, allocated, checked, _per_request(setup, groups, needs))


def _block_bytes(setup: Setup, rank: tuple[LayerGroup, ...]) -> PackedBytes:
    """One block holds a page of every layer of the widest group, unless pages of several sizes are packed."""
    if setup.layout.compressed and rank:
        return packed_bytes(rank, setup.rules)
    widest = max((group.bytes_per_block for group in rank), default=0)
    return PackedBytes(widest, widest)


def _per_request(setup: Setup, groups: tuple[LayerGroup, ...], needs: tuple[int | None, ...]) -> int | None:
    known = [need for need in needs if need is not None]
    if len(known) < len(needs):
        return None
    return packed_requests(groups, known, setup.rules) if setup.layout.compressed else sum(known)


def _available(request: CacheRequest, ranks: int) -> list[int]:
    """Memory per pipeline rank: the smallest of the tensor ranks that share it."""
    given = list(request.available_bytes)
    if len(given) <= 1:
        return given * ranks
    share = max(len(given) // ranks, 1)
    return [min(given[rank * share : (rank + 1) * share] or given) for rank in range(ranks)]


def _counts(setup: Setup, pool: Pool, available: list[int]) -> Counts:
    blocks, rank = _blocks(setup, pool, available)
    if blocks is None:
        return Counts(None, None, None, None)
    concurrency = _concurrency(setup, pool, blocks)
    return Counts(blocks, rank, concurrency, _tokens(setup, pool, blocks, concurrency))


def _blocks(setup: Setup, pool: Pool, available: list[int]) -> tuple[int | None, int | None]:
    """Blocks of the poorest rank, or the number that was asked for."""
    if setup.request.num_gpu_blocks_override is not None:
        return setup.request.num_gpu_blocks_override, None
    counts = [max(have // size, 0) for have, size in zip(available, pool.bytes_per_block, strict=False) if size]
    return (min(counts), counts.index(min(counts))) if counts else (None, None)


def _concurrency(setup: Setup, pool: Pool, blocks: int) -> float | None:
    if setup.length is None or not pool.per_request:
        return None
    if setup.rules.flat:
        return blocks * pool.groups[0].spec.block / setup.length
    return blocks / pool.per_request


def _tokens(setup: Setup, pool: Pool, blocks: int, concurrency: float | None) -> int | None:
    """The printed number: block slots up to 0.20, requests times length from 0.21."""
    if not setup.rules.concurrency_tokens:
        return blocks // len(pool.groups) * _smallest(pool) * setup.request.dcp
    return None if concurrency is None or setup.length is None else int(concurrency * setup.length)


def _smallest(pool: Pool) -> int:
    return min(group.spec.block for group in pool.groups)


def _attention_block(pool: Pool) -> int | None:
    """The smallest block of the attention layers, those aside whose block the model itself fixes."""
    members = [(cache, spec) for group in pool.groups for cache, spec in group.members if spec.kind != "state"]
    chosen = [spec.block for cache, spec in members if not cache.block] or [spec.block for _, spec in members]
    return min(chosen, default=None)


def _groups(pool: Pool) -> tuple[Group, ...]:
    whole = len(pool.ranks) == 1
    block = pool.bytes_per_block[0] if whole else max(group.bytes_per_block for group in pool.groups)
    return tuple(
        Group(
            kind=group.spec.kind,
            layers=len(group.members),
            page_bytes=group.bytes_per_block // len(group.members),
            block_size=group.spec.block,
            blocks_per_request=need,
            padding_layers=0 if group.mixed else group.size - len(group.members),
            padding_bytes=block - sum(spec.used for _, spec in group.members),
        )
        for group, need in zip(pool.groups, pool.needs, strict=True)
    )


def _predicted(available: list[int], per_token: int, request: CacheRequest, rank: int | None) -> int | None:
    if not available or not per_token:
        return None
    return max(available[rank or 0], 0) // per_token * request.dcp


def _state_bytes(pool: Pool) -> int:
    return sum(spec.used for group in pool.ranks[pool.widest] for _, spec in group.members if spec.kind == "state")


def _precheck(setup: Setup, pool: Pool, available: list[int]) -> Precheck | None:
    """The start-up check of one full-length request, rank by rank; the first refusal counts."""
    if not available or pool.per_request is None:
        return None
    checks = [_rank_check(setup, pool, rank, have) for rank, have in enumerate(available)]
    return next((check for check in checks if check.refused), checks[0])


def _rank_check(setup: Setup, pool: Pool, rank: int, available: int) -> Precheck:
    block = pool.bytes_per_block[rank]
    override = setup.request.num_gpu_blocks_override
    have = available if override is None else override * block
    needed = _needed(setup, pool, rank)
    reserved = block if setup.rules.null_block else 0
    refused = have <= 0 or needed > have - reserved
    since = NULL_BLOCK_SINCE if setup.rules.null_block else None
    return Precheck(refused, needed, have, reserved, since, _reason(needed, have, reserved) if refused else "")


def _needed(setup: Setup, pool: Pool, rank: int) -> int:
    """Bytes of one full-length request as the check counts them: bare layers, the first group, or all groups."""
    local, needs = pool.ranks[rank], [need or 0 for need in pool.needs]
    if setup.rules.flat or len(local) != len(needs):
        return (pool.per_request or 0) * pool.bytes_per_block[rank]
    if setup.rules.check == "layers" or (len(local) == 1 and not setup.layout.compressed):
        return sum(need * group.bytes_per_block for group, need in zip(local, needs, strict=True))
    return (needs[0] if setup.rules.check == "first" else sum(needs)) * pool.check_bytes[rank]


def _reason(needed: int, have: int, reserved: int) -> str:
    held = f" less one reserved block of {reserved} B" if reserved else ""
    return f"one request of full length needs {gib(needed)}, the cache has {gib(have)}{held}"


def _explain(setup: Setup, pool: Pool, counts: Counts) -> tuple[str, ...]:
    numbered = enumerate(zip(pool.groups, pool.needs, strict=True), 1)
    lines = [_group_line(number, group, need) for number, (group, need) in numbered]
    if setup.promoted:
        lines.append("windowed layers get blocks for the whole context: the hybrid manager is off")
    if counts.blocks is None:
        return tuple(lines)
    kept = ", one of them the pool's own null block" if setup.rules.pool_null_block else ""
    lines.append(f"{counts.blocks} blocks of {pool.bytes_per_block[pool.widest]} B{kept}")
    if counts.tokens is not None and setup.rules.concurrency_tokens:
        lines.append(f"{counts.tokens} tokens = {counts.blocks} / {pool.per_request} blocks × {setup.length}")
    elif counts.tokens is not None:
        dcp = f" × {setup.request.dcp} ranks of context" if setup.request.dcp > 1 else ""
        lines.append(f"{counts.tokens} tokens = {counts.blocks} // {len(pool.groups)} groups × {_smallest(pool)}{dcp}")
    return tuple(lines)


def _group_line(number: int, group: LayerGroup, need: int | None) -> str:
    request = f", {need} blocks per request" if need is not None else ""
    page = group.bytes_per_block // len(group.members)
    return (
        f"group {number}: {len(group.members)} {group.spec.kind}, page {page} B of {group.spec.block} tokens{request}"
    )
