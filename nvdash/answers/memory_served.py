"""What a log says of its server, put into the layout and the request that are replayed for it.

The config of the base model and the release's defaults give way to what this server printed: its pools, the type of its
states, its drafter, its backend and its device.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nvdash.answers.memory_question import MemoryQuestion
from nvdash.footprint.caches import DTYPE_BYTES, WINDOW_KINDS, Cache, Layout
from nvdash.footprint.from_log import Row
from nvdash.footprint.ranks import MTP_METHODS, NO_CACHE_METHODS
from nvdash.footprint.request import CacheRequest, Draft
from nvdash.targets import GIB

ASCEND_BLOCK = 128
UNREAD_PLATFORM = "pools of the Ascend backend, which were not read, may keep more than those of a GPU"
UNKNOWN_DRAFTER = "the drafter has layers of its own, and its config is not known"
DRAFT_WORDS = ("draft_method", "draft_tokens", "draft_model")


def as_served(
    asked: MemoryQuestion, server: Mapping[str, Any], words: Mapping[str, Any], notes: list[str]
) -> MemoryQuestion:
    """The question with the layers and the settings that this server printed."""
    layout = printed_layout(asked.layout, server, notes)
    request = with_device(asked.layout, with_bare_drafts(asked, words), server)
    return replace(asked, layout=layout, request=request)


def printed_layout(layout: Layout, server: Mapping[str, Any], notes: list[str]) -> Layout:
    """The layers whose pool the printed tokens count: SGLang prints one pool for each kind, or one for all."""
    layout = with_stated_type(layout, server)
    if on_ascend(server):
        layout = replace(layout, caches=tuple(_with_wide_index(cache) for cache in layout.caches))
    if server.get("framework") != "sglang":
        return layout
    windows = [cache for cache in layout.caches if cache.kind in WINDOW_KINDS]
    full = tuple(cache for cache in layout.caches if cache.kind not in (*WINDOW_KINDS, "state"))
    if len(server.get("pools", ())) > 1 and windows and full:
        notes.append("the pool of the full-attention layers is compared; windowed layers have their own")
        return replace(layout, caches=full)
    if windows:
        return replace(layout, caches=tuple(_as_full(cache) for cache in layout.caches))
    return replace(layout, caches=full) if layout.has_state and full else layout


def with_stated_type(layout: Layout, server: Mapping[str, Any]) -> Layout:
    """The layout with the type of recurrent states that the log states, whatever the config of the base model says."""
    stated = server.get("state_dtype")
    if stated not in DTYPE_BYTES or not layout.has_state:
        return layout
    typed = (
        replace(cache, state=replace(cache.state, head_dtype=stated)) if cache.state else cache
        for cache in layout.caches
    )
    return replace(layout, caches=tuple(typed))


def on_ascend(server: Mapping[str, Any]) -> bool:
    """Whether the log is of an Ascend device: its blocks hold 128 tokens, its index keys are 16 bits wide."""
    return server.get("platform") in ("ascend", "npu") or str(server.get("attention_backend", "")).startswith("ascend")


def _with_wide_index(cache: Cache) -> Cache:
    return replace(cache, fixed_bytes=2 * cache.key_size) if cache.kind == "index" else cache


def _as_full(cache: Cache) -> Cache:
    return replace(cache, kind="full", window=0) if cache.kind in ("sliding", "chunked") else cache


def with_drafter(words: Mapping[str, Any], own: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """The question with what is known of the log's drafter; one whose layers are unknown is left out and named."""
    from nvdash.readers import catalogue

    if "draft_model" in own or not any(word in words for word in DRAFT_WORDS):
        return dict(words)
    bare = {word: value for word, value in words.items() if word not in DRAFT_WORDS or word in own}
    if words.get("framework") == "sglang":
        return bare
    method, named = str(words.get("draft_method") or "mtp").lower(), words.get("draft_model")
    if method in MTP_METHODS or method in NO_CACHE_METHODS:
        if "draft_method" not in words:
            notes.append("the log names no drafter method: its own prediction layers (mtp) are taken")
        return {**{word: value for word, value in words.items() if word != "draft_model"}, "draft_method": method}
    row = catalogue.load().model_row(str(named)) if named else None
    if row is not None:
        return {**words, "draft_method": method}
    whose = f" ({named})" if named else ""
    notes.append(f"the layers of the {method} drafter{whose} are not known and left out: give --draft-model")
    return bare | {word: words[word] for word in ("draft_tokens",) if word in words}


def with_bare_drafts(asked: MemoryQuestion, words: Mapping[str, Any]) -> CacheRequest:
    """The request with the tokens of a drafter whose layers are unknown: states grow with them all the same.

    SGLang's drafter has a pool of its own, which is not the one that is compared.
    """
    if asked.request.framework == "sglang":
        return replace(asked.request, draft=None)
    if asked.request.draft is not None or "draft_tokens" not in words:
        return asked.request
    return replace(asked.request, draft=Draft(NO_CACHE_METHODS[0], words["draft_tokens"]))


def with_device(layout: Layout, request: CacheRequest, server: Mapping[str, Any]) -> CacheRequest:
    """The request with the log's backend and device: they decide block sizes, records and a step's default tokens."""
    if on_ascend(server):
        stored = layout.dtype if request.kv_cache_dtype == "auto" else request.kv_cache_dtype
        request = replace(request, block_size=request.block_size or ASCEND_BLOCK, kv_cache_dtype=stored)
    backend = server.get("attention_backend")
    if request.backend is None and isinstance(backend, str):
        request = replace(request, backend=backend)
    total = server.get("gpu_total_gib")
    if request.device_bytes is not None or not isinstance(total, float):
        return request
    return replace(request, device_bytes=int(total * GIB))


def unread_part(server: Mapping[str, Any], words: Mapping[str, Any]) -> str:
    """What of this server no rule here was read for, and may so be behind a difference that has no other cause."""
    if on_ascend(server):
        return UNREAD_PLATFORM
    return UNKNOWN_DRAFTER if "draft_tokens" in words and "draft_method" not in words else ""


def told(row: Row, unread: str) -> Row:
    return replace(row, cause=row.cause or unread) if row.consistent is False else row
