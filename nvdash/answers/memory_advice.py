"""Which pool binds, and what to do about it in words: quantise the pool that binds, and say what that cannot buy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nvdash.answers.memory_question import MemoryQuestion
from nvdash.answers.memory_weights import estimated
from nvdash.answers.words import FRAMEWORKS
from nvdash.answers.words import dtype as in_words
from nvdash.errors import NvdashError
from nvdash.footprint.request import Allocation
from nvdash.footprint.solve import longest_start, request_bytes, requests_that_fit
from nvdash.targets import GIB

STATE_THE_LOAD = "state your context and concurrency"
NARROWER = {"auto": ("fp8", "nvfp4"), "fp8": ("nvfp4",), "fp8_e4m3": ("nvfp4",), "fp8_e5m2": ("nvfp4",)}
"""Cache formats that are narrower than the one asked about."""
SMALL_SHARE = 0.1
"""Below this part of the weights, the cache in use matters little."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What runs out first for the asked load; None where the range leaves it open or nothing was asked."""

    pool: str | None
    reason: str
    fits: bool | None
    requests: dict[str, int | None] | None = None
    """Requests of the asked length that fit at once, at either end."""


def binding(asked: MemoryQuestion, spans: Sequence[Allocation], pools: Sequence[tuple[int, ...]]) -> Binding:
    """The pool that binds: weights, cache or none, where both ends of the range agree."""
    if not spans:
        return Binding(None, "the memory for the cache is not known", None)
    if min(pools[-1]) <= 0:
        return Binding("weights", "the weights and what is fixed beside them exceed the GPU's share", False)
    if min(pools[0]) <= 0:
        return Binding(None, "whether the weights fit lies inside the range of the estimate", None)
    refused = [bool(span.precheck and span.precheck.refused) for span in spans]
    if asked.context is None and asked.concurrency is None:
        return Binding(None, STATE_THE_LOAD, None if any(refused) and not all(refused) else not all(refused))
    return _for_load(asked, pools, refused)


def _for_load(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]], refused: Sequence[bool]) -> Binding:
    """Whether the asked requests of the asked length fit in the pool."""
    context, wanted = asked.context or asked.length, asked.concurrency or 1
    if context is None:
        return Binding(None, "the context is not known: state it", None)
    held = [requests_that_fit(asked.layout, replace(asked.request, available_bytes=pool), context) for pool in pools]
    requests = {"context": context, "asked": wanted, "low": held[0], "high": held[-1]}
    enough = {count is not None and count >= wanted for count in (held[0], held[-1])}
    if enough == {False}:
        return Binding("cache", f"{wanted} requests of {context:,} tokens exceed the pool", False, requests)
    if enough == {False, True}:
        return Binding(None, "whether the cache holds this load lies inside the range", None, requests)
    if all(refused):
        return Binding("none", "the load fits, but the release's own start-up check refuses", False, requests)
    return Binding("none", "weights and cache both fit", None if any(refused) else True, requests)


def gains(asked: MemoryQuestion) -> list[dict[str, Any]]:
    """What NVFP4 holds over FP8 and over the model's own type, for this layout and this length."""
    context = asked.context or asked.length
    if context is None:
        return []
    sizes = {dtype: _request_bytes(asked, dtype, context) for dtype in ("nvfp4", "fp8", "auto")}
    narrow = sizes["nvfp4"]
    if not narrow:
        return []
    names = {"fp8": "fp8", "auto": asked.layout.dtype}
    return [
        {"of": "nvfp4", "over": name, "context": context, "factor": round(size / narrow, 3)}
        for dtype, name in names.items()
        if (size := sizes[dtype])
    ]


def _request_bytes(asked: MemoryQuestion, dtype: str, context: int) -> int | None:
    """Bytes of one request in this cache format; None where the layout cannot have it."""
    try:
        return request_bytes(asked.layout, replace(asked.request, kv_cache_dtype=dtype), context)
    except NvdashError:
        return None


def advice(
    asked: MemoryQuestion,
    bound: Binding,
    won: Sequence[Mapping[str, Any]],
    support: Mapping[str, Any] | None,
    spans: Sequence[Allocation],
    pools: Sequence[tuple[int, ...]],
) -> list[str]:
    """At most a handful of sentences: what to quantise, what it buys here, what it does not."""
    starts = _until_it_starts(asked, spans, pools) if bound.pool != "weights" else []
    said = [*_verdict_first(asked, support), *starts]
    if not (starts and bound.pool == "none"):
        said += _for_pool(asked, bound)
    if bound.pool != "weights" and won:
        said.append(_gain_sentence(won))
    return said


def _until_it_starts(asked: MemoryQuestion, spans: Sequence[Allocation], pools: Sequence[tuple[int, ...]]) -> list[str]:
    """What lets the release start where its check of one full-length request refuses, surely or at the low end."""
    refused = [bool(span.precheck and span.precheck.refused) for span in spans]
    if not any(refused) or asked.length is None or min(pools[0]) <= 0:
        return []
    where = "refuses" if all(refused) else "may refuse (it does at the low end of the range)"
    said = f"The start-up check of one request of {asked.length:,} tokens {where}"
    longest = longest_start(asked.layout, replace(asked.request, available_bytes=pools[0]), asked.length)
    if not longest:
        return [f"{said}, at every length: give the cache more memory."]
    return [f"{said}: lower --max-model-len to {longest}, or give the cache more memory."]


def _verdict_first(asked: MemoryQuestion, support: Mapping[str, Any] | None) -> list[str]:
    """A dtype that is refused or a trap is never sized as if it ran."""
    if not support or support["verdict"] not in ("refused", "trap"):
        return []
    release = f"{FRAMEWORKS.get(asked.request.framework, asked.request.framework)} {asked.request.release}"
    word = "refuses this combination" if support["verdict"] == "refused" else "accepts it, then fails"
    return [f"{release} {word}: {support.get('reason') or 'see check'}. The sizes below would hold only if it ran."]


def _for_pool(asked: MemoryQuestion, bound: Binding) -> list[str]:
    if bound.pool == "weights":
        return ["The weights bind: quantise the weights. No cache format can help here.", *_smaller_weights(asked)]
    if bound.pool == "cache":
        return ["The cache binds: quantise the cache.", *_smaller_caches(asked)]
    if bound.pool == "none":
        return [_nothing_binds(asked)]
    if bound.reason == STATE_THE_LOAD:
        return ["State your context and concurrency: which pool binds depends on them."]
    return [f"Undecided: {bound.reason}."]


def _smaller_weights(asked: MemoryQuestion) -> list[str]:
    """The known checkpoints in narrower formats, by what a rank would load."""
    if asked.weights is None:
        return []
    said = []
    for row in asked.model.checkpoints:
        try:
            size = estimated(asked.config, row.weights, row, asked.request).rank_bytes
        except (NvdashError, KeyError):
            continue
        if size < asked.weights.rank_bytes:
            said.append(f"{row.repository} ({row.weights}) would load about {size / GIB:.1f} GiB per GPU.")
    none = f"No checkpoint of {asked.model.name} in a narrower format is known."
    return [*(said or [none]), "More GPUs: --solve gpus finds how many."]


def _smaller_caches(asked: MemoryQuestion) -> list[str]:
    context = asked.context or asked.length
    if context is None:
        return []
    said = []
    wide = _request_bytes(asked, asked.request.kv_cache_dtype, context)
    for dtype in NARROWER.get(asked.request.kv_cache_dtype, ()):
        size = _request_bytes(asked, dtype, context)
        if size and wide:
            said.append(f"{in_words(dtype)} would hold {wide / size:.2f} × as many requests of {context:,} tokens.")
    return said or ["No narrower cache format is known for this layout."]


def _nothing_binds(asked: MemoryQuestion) -> str:
    """Memory is not the limit; at short contexts and few requests its dtype matters little."""
    context, requests = asked.context or asked.length, asked.concurrency or 1
    used = request_bytes(asked.layout, asked.request, context) if context else None
    said = "Both pools fit: memory is not your limit. A smaller cache buys capacity that this load does not use"
    weights = asked.weights.rank_bytes if asked.weights else 0
    if used is None or used * requests >= SMALL_SHARE * weights:
        return f"{said}, and does not speed up prefill."
    return f"{said}: {used * requests / GIB:.2f} GiB of cache in use beside {weights / GIB:.1f} GiB of weights."


def _gain_sentence(won: Sequence[Mapping[str, Any]]) -> str:
    parts = [f"{row['factor']:.2f} × the requests of {in_words(row['over'])}" for row in won]
    return (
        f"For this layout at {won[0]['context']:,} tokens an NVFP4 cache holds {' and '.join(parts)}; "
        "it buys capacity, not prefill speed."
    )
