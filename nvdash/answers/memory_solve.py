"""Answers `--solve`: the largest context or concurrency, the fewest GPUs, the cache formats that fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nvdash.answers.memory_advice import binding
from nvdash.answers.memory_parts import REFUSING, as_stored, budget_of, pools_of, support_of
from nvdash.answers.memory_question import MemoryQuestion
from nvdash.answers.memory_weights import estimated
from nvdash.errors import NvdashError
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.solve import GPU_COUNTS, ends, fewest, longest_context, requests_that_fit

CACHE_FORMATS = ("auto", "fp8", "nvfp4")
"""The formats that are tried, widest first."""


def solved(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """The solution at either end of the range; null where it cannot be said."""
    solver = {"context": _context, "concurrency": _concurrency, "gpus": _gpus, "kv-cache-dtype": _dtype}
    return {"for": asked.solve, **solver[asked.solve or ""](asked, pools)}


def _context(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    wanted, limit = asked.concurrency or 1, asked.length
    found = [longest_context(asked.layout, _with(asked, pool), wanted, limit) for pool in _both(pools)]
    return {"concurrency": wanted, "context_low": found[0], "context_high": found[-1], "model_length": limit}


def _concurrency(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    context = asked.context or asked.length
    if context is None:
        return {"context": None, "concurrency_low": None, "concurrency_high": None}
    found = [requests_that_fit(asked.layout, _with(asked, pool), context) for pool in _both(pools)]
    return {"context": context, "concurrency_low": found[0], "concurrency_high": found[-1]}


def _gpus(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """The fewest GPUs, as tensor parallelism over the query heads, for which the load fits at both ends."""
    heads = asked.layout.query_heads
    counts = [count for count in GPU_COUNTS if heads is None or heads % count == 0]
    number, left_open = fewest(counts, lambda count: _fits_on(asked, count))
    return {"gpus": number, "parallelism": "tp", "undecided": left_open, "tried": counts}


def _fits_on(asked: MemoryQuestion, tp: int) -> bool | None:
    if asked.weights is None or asked.weights_word is None:
        return None
    try:
        request = replace(asked.request, tp=tp)
        weights = estimated(asked.config, asked.weights_word, asked.checkpoint, request)
        moved = replace(asked, request=request, weights=weights)
        pools = pools_of(moved, budget_of(moved))
        return binding(moved, ends(moved.layout, request, pools), pools).fits
    except NvdashError:
        return False


def _dtype(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """Every cache format with what it holds and the verdict on it; the widest that fits is the answer."""
    rows = [_dtype_row(asked, flag, pools) for flag in CACHE_FORMATS]
    chosen = next((row["kv_cache_dtype"] for row in rows if row["fits"]), None)
    return {"kv_cache_dtype": chosen, "formats": rows}


def _dtype_row(asked: MemoryQuestion, flag: str, pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    moved = replace(
        asked, request=replace(asked.request, kv_cache_dtype=flag), echo={**asked.echo, "kv_cache_dtype": flag}
    )
    support = support_of(moved)
    moved = as_stored(moved, support)
    verdict = support["verdict"] if support else None
    try:
        bound = binding(moved, ends(moved.layout, moved.request, pools), pools)
    except NvdashError as refusal:
        return {"kv_cache_dtype": flag, "fits": None, "requests": None, "verdict": verdict, "reason": refusal.found}
    runs = verdict not in REFUSING
    fits, reason = (bound.fits, bound.reason) if runs else (False, (support or {}).get("reason"))
    return {"kv_cache_dtype": flag, "fits": fits, "requests": bound.requests, "verdict": verdict, "reason": reason}


def _with(asked: MemoryQuestion, pool: tuple[int, ...]) -> CacheRequest:
    return replace(asked.request, available_bytes=pool)


def _both(pools: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Both ends of the range; an unknown pool stays empty."""
    return [pools[0], pools[-1]] if pools else [()]
