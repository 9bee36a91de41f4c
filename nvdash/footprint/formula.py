"""The plain formula: what one token adds, written with the model's own numbers, before any engine pages it."""

from collections import Counter

from nvdash.errors import UnknownError
from nvdash.footprint.caches import DTYPE_BYTES, Cache, Layout
from nvdash.footprint.request import CacheRequest, Term
from nvdash.formats import CacheFormat, cache_format, latent_record

REQUEST_KINDS = ("state", "compressor")
"""Kinds whose size does not grow with the context."""
WIDE = {2: "bfloat16", 4: "float32"}


def refuse_compressed(layout: Layout) -> None:
    """Refuse compressed attention for an engine whose pools for it nobody read."""
    if layout.compressed:
        found = "found compressed attention (compress_ratios), whose pools of this engine were not read"
        raise UnknownError("model", "a layout whose pools are known", found)


def wide_flag(layout: Layout) -> str:
    """The cache flag that stores the model's own type."""
    return WIDE.get(DTYPE_BYTES.get(layout.dtype, 2), "bfloat16")


def flag_of(cache: Cache, layout: Layout, request: CacheRequest) -> str:
    """The flag under which this cache is stored: the asked one, or the wide one where the layer is skipped."""
    asked = wide_flag(layout) if request.kv_cache_dtype == "auto" else request.kv_cache_dtype
    skipped = str(cache.layer) in request.skip_layers
    skipped = skipped or (cache.kind == "sliding" and "sliding_window" in request.skip_layers)
    return wide_flag(layout) if skipped and not cache.draft else asked


def token_bytes(cache: Cache, layout: Layout, request: CacheRequest) -> int:
    """Bytes of one stored record of this cache on one rank: a token's, or that of `ratio` tokens; a state has none."""
    if cache.kind in REQUEST_KINDS:
        return 0
    if cache.fixed_bytes:
        return cache.fixed_bytes
    flag = flag_of(cache, layout, request)
    if cache.latent:
        record = latent_record(request.framework, flag, layout.family)
        return record.token_bytes(cache.key_size, cache.value_size)
    return cache.rank_heads(request.tp) * cache_format(flag).token_bytes(cache.key_size, cache.value_size)


def terms(layout: Layout, caches: tuple[Cache, ...], request: CacheRequest) -> tuple[Term, ...]:
    """Equal caches as one term each, in layer order."""
    counted = Counter(
        (cache.kind, _text(cache, layout, request), token_bytes(cache, layout, request), cache.ratio)
        for cache in caches
        if cache.kind not in REQUEST_KINDS
    )
    return tuple(Term(kind, number, text, size, ratio) for (kind, text, size, ratio), number in counted.items())


def _text(cache: Cache, layout: Layout, request: CacheRequest) -> str:
    size, shared = token_bytes(cache, layout, request), f" / {cache.ratio} tokens" if cache.ratio > 1 else ""
    if cache.fixed_bytes:
        return f"{size} B index key of {cache.key_size} values{shared}"
    flag = flag_of(cache, layout, request)
    if cache.latent:
        return f"{size} B {flag} record of {cache.key_size} latent + {cache.value_size} rotary values{shared}"
    stored = cache_format(flag)
    heads = f"{cache.rank_heads(request.tp)} KV head{'s' * (cache.rank_heads(request.tp) != 1)}"
    return f"{heads} × {_head_text(cache, stored)}"


def _head_text(cache: Cache, stored: CacheFormat) -> str:
    pair = stored.token_bytes(cache.key_size, cache.value_size)
    if cache.key_size == cache.value_size:
        return f"{pair} B ({stored.name}, 2 × {cache.key_size} values)"
    return f"{pair} B ({stored.name}, {cache.key_size} + {cache.value_size} values)"


def formula_text(parts: tuple[Term, ...], tp: int) -> str:
    """The whole formula on one line."""
    rank = f" on one of {tp} ranks" if tp > 1 else ""
    body = " + ".join(f"{part.caches} {part.kind} × {part.text}" for part in parts)
    return f"{body} = {sum(part.total for part in parts)} B per token{rank}"
