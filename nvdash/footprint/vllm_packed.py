"""Pages of several sizes side by side in one block: how vLLM groups DeepSeek-V4's caches.

One block holds the pages of a whole group. The compressed caches of all layers are one group; windowed and
compressor caches are split into groups that repeat about as often (0.20: one tuple of page sizes per repeat; 0.23: the
slots each size needs; 0.27: the widest group, nothing padded). Replayed against two logs of 0.22 and 0.24.
"""

from collections import Counter
from dataclasses import dataclass

from nvdash.errors import UnknownError
from nvdash.footprint.caches import Cache
from nvdash.footprint.vllm_groups import LayerGroup
from nvdash.footprint.vllm_pages import Spec
from nvdash.footprint.vllm_rules import VllmRules

Bucket = list[tuple[Cache, Spec]]


@dataclass(frozen=True, slots=True)
class PackedBytes:
    """Bytes of one block as allocated, and as the start-up check counts them."""

    block: int
    check: int


def pack_layers(layers: dict[Cache, Spec], rules: VllmRules) -> tuple[LayerGroup, ...]:
    """One group for the compressed caches, the others split into groups of about equal repeats."""
    if not rules.packing:
        found = f"found compressed attention (compress_ratios) under vLLM {rules.since}"
        raise UnknownError("release", "a release that serves compressed attention (0.20 and later)", found)
    buckets = _buckets(layers)
    repeats = _repeats(buckets, rules)
    groups = [group for index, bucket in enumerate(buckets) for group in _split(bucket, repeats, index, rules)]
    return tuple(LayerGroup(tuple(members), len(members), mixed=True) for members in groups)


def _buckets(layers: dict[Cache, Spec]) -> list[Bucket]:
    """Layers that need the same slots: all compressed ones first, then those of one block and window."""
    found: dict[tuple[int, int], Bucket] = {}
    for cache, spec in layers.items():
        found.setdefault((0, 0) if spec.full_type else (spec.block, spec.window), []).append((cache, spec))
    return sorted(found.values(), key=lambda bucket: not bucket[0][1].full_type)


def _layers_per_size(bucket: Bucket) -> Counter[int]:
    return Counter(spec.page for _, spec in bucket)


def _balanced(bucket: Bucket) -> bool:
    """Whether every page size has as many layers."""
    return len(set(_layers_per_size(bucket).values())) == 1


def _repeats(buckets: list[Bucket], rules: VllmRules) -> int:
    """Repeats per group that waste the least when every bucket is rounded up to them."""
    if not rules.packed_balanced:
        counts = [max(_layers_per_size(bucket).values()) for bucket in buckets]
        return _least_padding(counts, counts[0])
    balanced = [bucket for bucket in buckets if _balanced(bucket)]
    mixed = [max(sizes.values()) for bucket in balanced if len(sizes := _layers_per_size(bucket)) > 1]
    counts = [max(_layers_per_size(bucket).values()) for bucket in balanced]
    return _least_padding(counts, max(mixed)) if mixed else 0


def _least_padding(counts: list[int], low: int) -> int:
    """The size from `low` on that pads the counts least; the larger of equals."""
    return min(range(low, max(*counts, low) + 1), key=lambda size: (sum(-count % size for count in counts), -size))


def _split(bucket: Bucket, repeats: int, index: int, rules: VllmRules) -> list[Bucket]:
    whole = not repeats or (not _balanced(bucket) if rules.packed_balanced else index == 0)
    number = 1 if whole else -(-max(_layers_per_size(bucket).values()) // repeats)
    if number == 1:
        return [bucket]
    by_size = [[member for member in bucket if member[1].page == page] for page in _layers_per_size(bucket)]
    tuples = list(zip(*by_size, strict=True))
    return [[member for pattern in tuples[start::number] for member in pattern] for start in range(number)]


def packed_bytes(groups: tuple[LayerGroup, ...], rules: VllmRules) -> PackedBytes:
    """Bytes of one block on a rank that holds these groups."""
    sizes = sorted({spec.page for _, spec in groups[0].members}) or [0]
    slots = [Counter(_slot(spec.page, sizes, rules) for _, spec in group.members) for group in groups]
    most = {size: max(counter[size] for counter in slots) for size in {size for counter in slots for size in counter}}
    tuples = sum(sizes) * max(most.values(), default=0)
    if rules.packing == "widest":
        widest = max(group.bytes_per_block for group in groups)
        return PackedBytes(widest, widest if rules.packed_balanced else tuples)
    slotted = sum(size * number for size, number in most.items())
    return PackedBytes(tuples if rules.packing == "tuples" else slotted, tuples)


def _slot(page: int, sizes: list[int], rules: VllmRules) -> int:
    """The page of the compressed caches that another cache's page is padded to; none from 0.27 on."""
    if rules.packing == "widest":
        return page
    return next((size for size in sizes if size >= page), page)


def packed_requests(groups: tuple[LayerGroup, ...], needs: list[int], rules: VllmRules) -> int:
    """Blocks of one request: the pages of all groups, weighed by group size up to 0.26."""
    if not rules.packed_pages_weighed:
        return sum(needs)
    sizes = sorted({spec.page for _, spec in groups[0].members})
    weights = [sum(_slot(spec.page, sizes, rules) for _, spec in group.members) for group in groups]
    return -(-sum(need * weight for need, weight in zip(needs, weights, strict=True)) // weights[0])
