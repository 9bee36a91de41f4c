"""Turns the allocator's answer around: how many requests, how long a context, how many GPUs, which cache dtype.

Every search asks the replay itself; no closed formula stands in for an engine's blocks.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from nvdash.footprint.allocator import replay
from nvdash.footprint.caches import Layout
from nvdash.footprint.request import Allocation, CacheRequest

LONGEST = 2**24
"""No context is searched beyond this many tokens."""
GPU_COUNTS = (1, 2, 4, 8, 16, 32, 64)


def requests_that_fit(layout: Layout, request: CacheRequest, context: int) -> int | None:
    """Whole requests of this length that the pool holds at once; None where the pool is not known."""
    found = replay(layout, replace(request, max_model_len=context))
    if found.reserved_blocks and found.num_blocks is not None and found.blocks_per_request:
        return max(found.num_blocks - found.reserved_blocks, 0) // found.blocks_per_request
    return None if found.max_concurrency is None else int(found.max_concurrency)


def longest_context(layout: Layout, request: CacheRequest, concurrency: int, limit: int | None) -> int | None:
    """The longest context of which so many requests fit at once, up to the model's own length; 0 when none does."""
    if requests_that_fit(layout, request, 1) is None:
        return None
    low, high = 0, limit or LONGEST
    while low < high:
        middle = (low + high + 1) // 2
        fits = (requests_that_fit(layout, request, middle) or 0) >= concurrency
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def request_bytes(layout: Layout, request: CacheRequest, context: int) -> int:
    """Bytes that one request of this length takes on a rank, in the engine's own blocks."""
    shape = replay(layout, replace(request, max_model_len=context))
    if shape.blocks_per_request is not None:
        return shape.blocks_per_request * shape.bytes_per_block
    return shape.bytes_per_token * context + shape.state_bytes


def fewest(counts: Iterable[int], fits: Callable[[int], bool | None]) -> tuple[int | None, list[int]]:
    """The first count that fits, and those before it for which the answer is open."""
    open_counts: list[int] = []
    for count in counts:
        answer = fits(count)
        if answer:
            return count, open_counts
        if answer is None:
            open_counts.append(count)
    return None, open_counts


def ends(layout: Layout, request: CacheRequest, pools: Iterable[tuple[int, ...]]) -> list[Allocation]:
    """The allocator's answer for each of these pools."""
    return [replay(layout, replace(request, available_bytes=pool)) for pool in pools]
