"""Replays what a serving log states and holds it against what the log printed.

Printed memory is rounded, so a prediction is an interval: every value the allocator gives for memory inside the
rounding. A printed number outside it is explained by trying what the log may have left out, one thing at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from nvdash.errors import NvdashError
from nvdash.footprint.allocator import replay
from nvdash.footprint.caches import Layout
from nvdash.footprint.request import Allocation, CacheRequest, Draft
from nvdash.footprint.vllm_rules import RANGES, version
from nvdash.targets import GIB

ROUNDING_GIB = 0.005
"""Half a unit of the last decimal that memory is printed with."""
ROUNDING_CONCURRENCY = 0.00501
TOLERANCE = 0.01
"""Differences up to this part are within what other roundings explain; larger ones get a cause."""
NUMBERS = ("num_blocks", "kv_tokens", "max_concurrency", "block_size")
OTHER_RULES = ("0.8.0", "0.10.0", "0.11.0", "0.13.0", "0.17.0", "0.19.0", "0.20.0", "0.21.0", "0.24.0", "0.29.0")
"""One release of every range whose printed numbers differ."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The numbers of a log that an allocator decides, None where it does not print them."""

    available_gib: float | None
    num_blocks: int | None = None
    kv_tokens: int | None = None
    max_concurrency: float | None = None
    block_size: int | None = None
    exact_bytes: int | None = None
    """Memory printed in bytes, not rounded."""
    num_parts: float = 1
    """Rounded numbers that `available_gib` is the sum of: two where keys and values are printed apart."""

    def times(self, factor: float) -> "Printed":
        """The same numbers, were the pool so many times what its line says."""
        if self.available_gib is None:
            return self
        return replace(self, available_gib=self.available_gib * factor, num_parts=self.num_parts * factor)

    def pools(self) -> tuple[int, int] | None:
        """The smallest and largest memory that rounds to what was printed."""
        if self.exact_bytes is not None:
            return self.exact_bytes, self.exact_bytes
        if self.available_gib is None:
            return None
        slack = ROUNDING_GIB * self.num_parts
        return int((self.available_gib - slack) * GIB), int((self.available_gib + slack) * GIB)


@dataclass(frozen=True, slots=True)
class Row:
    """One number: the predicted interval, what was printed, whether they agree, and why not."""

    number: str
    low: float | None
    high: float | None
    printed: float | None
    consistent: bool | None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One thing the log may have left out, and what it changes in the request."""

    kind: str
    cause: str
    change: Mapping[str, Any]
    pool: float = 1
    """Parts of the printed memory that the pool really takes."""


def compare(layout: Layout, request: CacheRequest, printed: Printed) -> tuple[list[Row], CacheRequest]:
    """Predicted against printed for every number, and the request under which they agree best."""
    plain = rows_for(layout, request, printed)
    if _agree(plain):
        return plain, request
    for chosen in _choices(hypotheses(layout, request, printed)):
        changed, taken = request, printed
        for hypothesis in chosen:
            changed, taken = replace(changed, **hypothesis.change), taken.times(hypothesis.pool)
        try:
            rows = rows_for(layout, changed, taken)
        except NvdashError:
            continue
        if _agree(rows):
            cause = "; ".join(hypothesis.cause for hypothesis in chosen)
            pairs = zip(rows, plain, strict=True)
            return [replace(row, cause=cause if before.consistent is False else "") for row, before in pairs], changed
    ranks = request.tp * request.pp if request.framework == "vllm" else 1
    return [replace(row, cause=_unexplained(row, printed, ranks)) for row in plain], request


def _agree(rows: Sequence[Row]) -> bool:
    return all(row.consistent is not False for row in rows)


def _choices(found: Sequence[Hypothesis]) -> Iterator[tuple[Hypothesis, ...]]:
    """Each alone, then two of different kinds."""
    yield from ((one,) for one in found)
    yield from ((one, other) for one, other in combinations(found, 2) if one.kind != other.kind)


def rows_for(layout: Layout, request: CacheRequest, printed: Printed) -> list[Row]:
    """Every printed number beside the interval the allocator gives; without the memory, what blocks or tokens give."""
    pools = printed.pools()
    ends = [replay(layout, replace(request, available_bytes=(pool,))) for pool in pools or ()]
    if ends:
        return [_row(number, ends, getattr(printed, number)) for number in NUMBERS]
    basis, blocks = _blocks_of(layout, request, printed)
    ends = [replay(layout, replace(request, num_gpu_blocks_override=number)) for number in blocks]
    return [_row(number, ends if number not in basis else [], getattr(printed, number)) for number in NUMBERS]


def _blocks_of(layout: Layout, request: CacheRequest, printed: Printed) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Fewest and most blocks that a log without memory tells, and the numbers that they are told by."""
    if printed.num_blocks is not None:
        return ("num_blocks",), (printed.num_blocks,)
    shape = replay(layout, request)
    if printed.kv_tokens is None or shape.kv_tokens_rule != "blocks" or request.framework != "vllm":
        return (), ()
    groups, smallest = len(shape.groups), min(group.block_size for group in shape.groups)
    fewest = printed.kv_tokens // (smallest * request.dcp) * groups
    return ("num_blocks", "kv_tokens"), (fewest, fewest + groups - 1)


def _row(number: str, ends: list[Allocation], printed: float | None) -> Row:
    values = [value for end in ends if (value := getattr(end, number)) is not None]
    if not values:
        return Row(number, None, None, printed, None)
    low, high = min(values), max(values)
    if printed is None:
        return Row(number, low, high, None, None)
    slack = ROUNDING_CONCURRENCY if number == "max_concurrency" else 0
    return Row(number, low, high, printed, low - slack <= printed <= high + slack)


def hypotheses(layout: Layout, request: CacheRequest, printed: Printed) -> list[Hypothesis]:
    """What may have been left out, the likeliest first."""
    found = [*_of_a_build(request), *_without_scales(request)]
    if printed.block_size is not None and request.block_size is None:
        reason = "its states are not those of this config" if layout.has_state else "fixed by a flag or the backend"
        words = f"block size {printed.block_size}: {reason}"
        found.append(Hypothesis("block", words, {"block_size": printed.block_size}))
    if request.kv_cache_dtype == "auto":
        found.append(Hypothesis("dtype", "silent fp8: only one byte per value fits", {"kv_cache_dtype": "fp8"}))
    if request.prefix_caching is None:
        found += [
            Hypothesis("caching", f"prefix caching is {word}", {"prefix_caching": used})
            for word, used in (("on", True), ("off", False))
        ]
    found += [
        Hypothesis("dcp", f"DCP {group}: tokens are printed for the group", {"dcp": group})
        for group in (2, 4, 8)
        if request.dcp == 1 and request.tp % group == 0
    ]
    if request.draft is None and layout.mtp is not None:
        found += [
            Hypothesis(
                "draft",
                f"a drafter (MTP, {tokens} per step) adds layers and states",
                {"draft": Draft("mtp", tokens)},
            )
            for tokens in (1, 2, 3, 4)
        ]
    if request.framework == "vllm":
        found += [Hypothesis("rule", f"rule change: printed as {one} does", {"release": one}) for one in OTHER_RULES]
    return found


def _of_a_build(request: CacheRequest) -> list[Hypothesis]:
    """A development build is numbered after the last release, and often has the rules of the next one."""
    later = _next_range(request.release) if request.framework == "vllm" and request.release else None
    if later is None or ".dev" not in (request.release or ""):
        return []
    return [Hypothesis("rule", f"the development build has the rules of {later}", {"release": later})]


def _without_scales(request: CacheRequest) -> list[Hypothesis]:
    """SGLang's FP4 pool prints the bytes of its values; the scale of every 16 of them lies in a buffer apart."""
    if request.framework != "sglang" or request.kv_cache_dtype not in VALUES_ONLY:
        return []
    return [Hypothesis("pool", SCALES_APART, {}, pool=VALUES_ONLY[request.kv_cache_dtype])]


VALUES_ONLY = {"fp4_e2m1": 9 / 8, "fp4_mx_block16": 9 / 8}
"""Formats whose printed pool leaves out the scales, and how much larger it is with them."""
SCALES_APART = "the printed size leaves out the block scales"


def _next_range(release: str) -> str | None:
    return next((rules.since for rules in RANGES if version(rules.since) > version(release)), None)


def _unexplained(row: Row, printed: Printed, ranks: int) -> str:
    """The cause of a difference that no omission explains: a rounding, another rank, or none that is known."""
    if row.consistent is not False or row.printed is None or not row.low or row.high is None:
        return ""
    if row.low * (1 - TOLERANCE) <= row.printed <= row.high * (1 + TOLERANCE):
        return "within 1 %: rounding of another printed number"
    if ranks > 1 and row.number in ("num_blocks", "kv_tokens", "max_concurrency") and row.printed < row.low:
        share = row.printed / row.low
        have = (printed.available_gib or 0) * share
        return f"another rank is the limit: about {have:.2f} GiB there would give this, {share:.0%} of what was printed"
    return ""


def formula_cause(allocation: Allocation) -> str:
    """Why memory over printed tokens differs from the plain formula."""
    padding = sum(group.padding_layers for group in allocation.groups)
    kinds = {group.kind for group in allocation.groups}
    if "state" in kinds:
        return "states of fixed size share the blocks: a printed token pays for every group"
    if padding:
        return f"padding: {padding} padding layers"
    blocks = sorted({group.block_size for group in allocation.groups})
    if len(blocks) > 1 and allocation.kv_tokens_rule == "blocks":
        words = " and ".join(map(str, blocks))
        return f"blocks of {words} tokens: the printed tokens count the smallest in every group"
    if allocation.padding_bytes:
        return f"padding: {allocation.padding_bytes} B of every block hold nothing"
    if len(kinds) > 1 and allocation.kv_tokens_rule == "concurrency":
        return "rule: windowed layers stop growing, the printed tokens depend on max_model_len"
    return ""
