"""A question to vLLM's allocator with everything settled that the release decides by itself."""

from dataclasses import dataclass, replace

from nvdash.footprint.caches import Layout
from nvdash.footprint.ranks import EAGLE_METHODS
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.vllm_rules import VllmRules, rules_of, version
from nvdash.targets import GIB

SMALL_BATCH, LARGE_BATCH, LARGEST_BATCH = 2048, 8192, 16384
"""Default batches of the API server: below 70 GiB of device memory, from there, and from 160 GiB in later releases."""
SPARSE_BLOCK = 64
COMPRESSED_BLOCK = 256
CACHED_STATES = {"mamba1", "mamba2"}
"""State families that can keep a state per block (vLLM's SupportsMambaPrefixCaching classes)."""
PLAIN_SPARSE_BACKENDS = ("FLASHINFER_MLA_SPARSE",)
"""Sparse-MLA backends that store plain FP8 rows; the others store the 656-byte record."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Layout, request and rules, with the defaults of the release filled in and named."""

    layout: Layout
    request: CacheRequest
    rules: VllmRules
    length: int | None
    """Longest request in tokens."""
    batched: int
    drafts: int
    """Tokens a drafter proposes."""
    state_mode: str
    """How states are kept: none (one per request), align (two), all (one per block)."""
    promoted: bool
    """Windowed layers are given blocks for the whole context, because the hybrid manager is off."""
    asked_block: int
    assumed: tuple[str, ...]

    @property
    def drafted_states(self) -> int:
        """States that drafted tokens keep beside the request's own."""
        if not self.rules.draft_states or (self.state_mode == "all" and not self.rules.draft_cached_states):
            return 0
        return self.drafts


def settle(layout: Layout, request: CacheRequest) -> Setup:
    """Fill in what the release decides: formats, lengths, blocks, caching and drafting modes."""
    rules = rules_of(request.release)
    assumed: list[str] = []
    request = _stored(layout, _with_boundary_layers(layout, request), assumed)
    length = request.max_model_len or layout.max_position
    return Setup(
        layout=layout.with_state_type(rules.unset_state_type),
        request=request,
        rules=rules,
        length=length,
        batched=_batched_tokens(layout, request, rules, length, assumed),
        drafts=_draft_tokens(layout, request, assumed),
        state_mode=_state_mode(layout, request, rules, assumed),
        promoted=_promoted(layout, request, rules),
        asked_block=_asked_block(layout, request, rules, assumed),
        assumed=tuple(assumed),
    )


def _with_boundary_layers(layout: Layout, request: CacheRequest) -> CacheRequest:
    """TurboQuant keeps the first and last two layers of a model without states at 16 bits."""
    if not request.kv_cache_dtype.startswith("turboquant_") or layout.has_state:
        return request
    edge = min(2, layout.num_layers // 2)
    edges = [*range(edge), *range(layout.num_layers - edge, layout.num_layers)]
    return replace(request, skip_layers=(*request.skip_layers, *(str(layer) for layer in edges)))


def _stored(layout: Layout, request: CacheRequest, assumed: list[str]) -> CacheRequest:
    """Sparse MLA stores FP8 as a packed record, unless the backend keeps plain rows; 0.11 and V4 also on `auto`."""
    asked = request.kv_cache_dtype
    by_default = asked == "auto" and request.release is not None and version(request.release)[:2] == (0, 11)
    by_default = by_default or (asked == "auto" and layout.compressed)
    packed = layout.family in ("mla_sparse", "deepseek_v4")
    if not packed or not (asked in ("fp8", "fp8_e4m3", "fp8_e5m2") or by_default):
        return request
    if request.backend in PLAIN_SPARSE_BACKENDS:
        return request
    assumed.append(f"{asked} stored as fp8_ds_mla; FLASHINFER_MLA_SPARSE would keep plain rows")
    return replace(request, kv_cache_dtype="fp8_ds_mla")


def _batched_tokens(
    layout: Layout, request: CacheRequest, rules: VllmRules, length: int | None, assumed: list[str]
) -> int:
    """As asked, else the API server's default for the device; it only matters to windows and encoders."""
    if request.max_num_batched_tokens:
        return request.max_num_batched_tokens
    batch = _default_batch(request, rules)
    windows = [cache.window for cache in layout.caches if cache.window]
    if layout.encoder_tokens or any(length is None or window + SMALL_BATCH < length for window in windows):
        assumed.append(f"max_num_batched_tokens {batch}")
    return batch


def _default_batch(request: CacheRequest, rules: VllmRules) -> int:
    """By device memory, A100 excepted (vLLM engine/arg_utils.py); that of large devices where none is named."""
    if request.device_bytes is None:
        return LARGE_BATCH
    if rules.largest_batch and request.device_bytes >= 160 * GIB:
        return LARGEST_BATCH
    small = request.device_bytes < 70 * GIB or "a100" in request.device_name.lower()
    return SMALL_BATCH if small else LARGE_BATCH


def _draft_tokens(layout: Layout, request: CacheRequest, assumed: list[str]) -> int:
    """As asked, else one token per multi-token-prediction layer."""
    if request.draft is None:
        return 0
    if request.draft.tokens:
        return request.draft.tokens
    tokens = len({cache.layer for cache in layout.mtp or ()}) or 1
    if layout.has_state:
        assumed.append(f"{tokens} drafted token{'s' * (tokens > 1)}")
    return tokens


def _state_mode(layout: Layout, request: CacheRequest, rules: VllmRules, assumed: list[str]) -> str:
    if not layout.has_state or rules.mode_states == "one":
        return "none"
    caching = request.prefix_caching
    if caching is None:
        caching = bool(rules.hybrid_prefix_caching)
        assumed.append(f"prefix caching {'on' if caching else 'off'}, this release's default for recurrent layers")
    kinds = {cache.state.kind for cache in layout.caches if cache.state}
    if not caching:
        return "none"
    if rules.all_mode and kinds <= CACHED_STATES:
        return "align" if rules.drafts_align and request.draft else "all"
    return "align" if rules.mode_states == "mode" else "none"


def _promoted(layout: Layout, request: CacheRequest, rules: VllmRules) -> bool:
    """Whether a chunked model's local layers count as full: before 0.14, and always beside an EAGLE-like drafter."""
    if layout.attention_chunk is None:
        return False
    drafting = request.draft is not None and request.draft.method in EAGLE_METHODS
    return drafting or not rules.chunked_groups


def _asked_block(layout: Layout, request: CacheRequest, rules: VllmRules, assumed: list[str]) -> int:
    if request.block_size:
        return request.block_size
    if layout.compressed:
        return COMPRESSED_BLOCK
    if layout.family and not rules.flat and not layout.has_state:
        if layout.family == "mla":
            assumed.append(f"block size {SPARSE_BLOCK}, as most MLA backends choose")
        return SPARSE_BLOCK
    return 16
