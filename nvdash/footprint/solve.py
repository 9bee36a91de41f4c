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


def longest_start(layout: Layout, request: CacheRequest, limit: int) -> int:
    """The longest length of a request that the release's own start-up check lets pass; 0 when none does."""
    return _longest(limit, lambda length: _starts(layout, replace(request, max_model_len=length)))


def _starts(layout: Layout, request: CacheRequest) -> bool:
    check = replay(layout, request).precheck
    return check is None or not check.refused


def longest_context(layout: Layout, request: CacheRequest, concurrency: int, limit: int | None) -> int | None:
    """The longest context of which so many requests fit at once, up to the model's own length; 0 when none does."""
    if requests_that_fit(layout, request, 1) is None:
        return None
    return _longest(limit or LONGEST, lambda length: (requests_that_fit(layout, request, length) or 0) >= concurrency)


def _longest(limit: int, fits: Callable[[int], bool]) -> int:
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
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
