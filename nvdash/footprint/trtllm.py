"""TensorRT-LLM's paged cache: whole blocks in the memory of the poorest rank.

The engine takes a fraction of the free memory, the least over all ranks, and floors it to blocks (start-up logs of 0.8
to 1.x). Its releases cannot be told apart by source, so one rule stands for all of them; windows are counted in full.
"""

from nvdash.footprint.caches import Layout
from nvdash.footprint.formula import formula_text, refuse_compressed, terms, token_bytes
from nvdash.footprint.ranks import by_rank
from nvdash.footprint.request import Allocation, CacheRequest, Group
from nvdash.footprint.vllm_rules import version

OLD_BLOCK, BLOCK = 64, 32
"""Tokens per block before and from 1.0."""


def replay_trtllm(layout: Layout, request: CacheRequest) -> Allocation:
    """Blocks and tokens on every rank, decided by the one with the least memory."""
    refuse_compressed(layout)
    ranks = by_rank(layout, request)
    sizes = [sum(token_bytes(cache, layout, request) for cache in rank) for rank in ranks]
    widest = max(range(len(sizes)), key=sizes.__getitem__)
    parts = terms(layout, ranks[widest], request)
    block, assumed = _block(layout, request)
    have = min(request.available_bytes, default=None)
    blocks = None if have is None or not sizes[widest] else max(have // (sizes[widest] * block), 0)
    blocks = request.num_gpu_blocks_override or blocks
    tokens = None if blocks is None else blocks * block
    length = request.max_model_len or layout.max_position
    kinds = dict.fromkeys(cache.kind for cache in ranks[widest])
    return Allocation(
        framework="tensorrt-llm",
        rule="TensorRT-LLM 0.8 to 1.x: whole blocks, least rank",
        bytes_per_token=sizes[widest],
        formula=parts,
        formula_text=formula_text(parts, request.tp),
        groups=tuple(_group(kind, layout, request, block, widest) for kind in kinds),
        block_size=block,
        bytes_per_block=sizes[widest] * block,
        num_blocks=blocks,
        kv_tokens=tokens,
        kv_tokens_rule="blocks",
        max_concurrency=None if blocks is None or length is None else blocks / -(-length // block),
        blocks_per_request=None if length is None else -(-length // block),
        predicted_tokens=None if have is None or not sizes[widest] else have // sizes[widest],
        limiting_rank=None if blocks is None else widest,
        assumed=assumed,
        explain=() if blocks is None else (f"{blocks} blocks of {sizes[widest] * block} B, {block} tokens each",),
    )


def _block(layout: Layout, request: CacheRequest) -> tuple[int, tuple[str, ...]]:
    notes = [] if not layout.of_kind("sliding", "chunked") else ["windowed layers keep the whole context"]
    if layout.has_state:
        notes.append("states of recurrent layers lie outside the paged cache")
    if request.block_size:
        return request.block_size, tuple(notes)
    old = request.release is not None and version(request.release) < version("1.0")
    block = OLD_BLOCK if old else BLOCK
    return block, (*notes, f"tokens_per_block {block}")


def _group(kind: str, layout: Layout, request: CacheRequest, block: int, rank: int) -> Group:
    members = [cache for cache in by_rank(layout, request)[rank] if cache.kind == kind]
    size = sum(token_bytes(cache, layout, request) for cache in members) * block
    return Group(kind, len(members), size // len(members), block if kind != "state" else 1)
