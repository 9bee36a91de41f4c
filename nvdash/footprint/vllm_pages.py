"""What a page of each layer costs in vLLM: block sizes, enlargement for states, padding for skipped layers."""

from dataclasses import dataclass, replace
from math import lcm

from nvdash.errors import UnknownError
from nvdash.footprint.caches import DTYPE_BYTES, TOKEN_KINDS, Cache, Layout
from nvdash.footprint.formula import flag_of, token_bytes, wide_flag
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.vllm_rules import VllmRules

DEFAULT_BLOCK = 16
CACHED_STATES = ("mamba1", "mamba2")
"""State families that can keep a state per block (vLLM's SupportsMambaPrefixCaching classes)."""
ATTENTION = ("full", "mla", "index", "sliding", "chunked", "cross")


@dataclass(frozen=True, slots=True)
class Spec:
    """One layer's page as the engine describes it; equal specs may share a group."""

    kind: str
    block: int
    page: int
    used: int
    """Bytes of the page that hold something."""
    window: int = 0
    shape: tuple[object, ...] = ()

    @property
    def full_type(self) -> bool:
        """Whether the engine manages it as full attention."""
        return self.kind in TOKEN_KINDS

    def with_page(self, page: int) -> "Spec":
        """The same layer on a padded page."""
        return replace(self, page=page)

    def with_block(self, block: int) -> "Spec":
        """The same layer on a page of more tokens."""
        return replace(self, block=block, page=self.page * block // self.block, used=self.used * block // self.block)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Block sizes of one set-up, before pages are unified."""

    attention: int
    state: int
    """Tokens that one state stands for in a cached chain; 0 when a request has one."""
    state_mode: str
    state_page: int = 0
    skip_page: int = 0


def draft_tokens(layout: Layout, request: CacheRequest) -> int:
    """Tokens a drafter proposes: as asked, else one per multi-token-prediction layer."""
    if request.draft is None:
        return 0
    return request.draft.tokens or (len({cache.layer for cache in layout.mtp}) if layout.mtp else 0) or 1


def state_mode(layout: Layout, request: CacheRequest, rules: VllmRules) -> str:
    """How states are kept: none (one per request), align (two), all (one per block)."""
    caching = request.prefix_caching
    if caching is None:
        caching = bool(rules.hybrid_prefix_caching)
    if not caching or rules.mode_states == "one":
        return "none"
    kinds = {cache.state.kind for cache in layout.caches if cache.state}
    if rules.all_mode and kinds <= set(CACHED_STATES):
        return "all"
    return "align" if rules.mode_states == "mode" else "none"


def block_sizes(layout: Layout, request: CacheRequest, rules: VllmRules) -> Blocks:
    """The attention block, enlarged until its page holds a state, and what pads to it."""
    asked = request.block_size or DEFAULT_BLOCK
    if not layout.has_state:
        return _skip_padded(Blocks(asked, 0, "none"), layout, request, rules)
    mode = state_mode(layout, request, rules)
    state = max(_state_bytes(cache, layout, request) for cache in layout.of_kind("state"))
    attention = _first_attention(layout)
    if attention is None:
        return Blocks(asked, 0, mode, state)
    per_token = token_bytes(attention, layout, request)
    align = rules.latent_align if attention.latent else rules.state_align
    align = max(align, asked) if rules.user_block_aligns else align
    if mode == "all":
        align = lcm(layout.chunk_size or 1, align)
    block = align * -(-state // (align * per_token))
    block = max(block, request.block_size or 0)
    return _skip_padded(Blocks(block, block, mode, block * per_token), layout, request, rules)


def _first_attention(layout: Layout) -> Cache | None:
    return next((cache for cache in layout.caches if cache.kind in ("full", "mla", "sliding", "chunked")), None)


def _state_bytes(cache: Cache, layout: Layout, request: CacheRequest) -> int:
    assert cache.state is not None
    return cache.state.stored_bytes(request.tp, layout.dtype, draft_tokens(layout, request))


def _skip_padded(blocks: Blocks, layout: Layout, request: CacheRequest, rules: VllmRules) -> Blocks:
    """Beside 16-bit layers the quantised block grows until its page covers their smallest one."""
    first = _first_attention(layout)
    if rules.skip_padding != "pad" or not request.skip_layers or first is None:
        return blocks
    primary = token_bytes(first, layout, replace(request, skip_layers=()))
    wide = token_bytes(first, layout, replace(request, skip_layers=(), kv_cache_dtype=wide_flag(layout)))
    if wide == primary:
        return blocks
    required = max(wide * DEFAULT_BLOCK, blocks.state_page)
    align = max(DEFAULT_BLOCK, blocks.attention)
    block = max(blocks.attention, align * -(-required // (align * primary)))
    state_page = block * primary if blocks.state_page else 0
    return replace(blocks, attention=block, skip_page=block * primary, state_page=state_page)


def specs(
    caches: tuple[Cache, ...], layout: Layout, request: CacheRequest, blocks: Blocks, rules: VllmRules
) -> dict[Cache, Spec]:
    """One spec per cache, in layer order."""
    return {cache: _spec(cache, layout, request, blocks, rules) for cache in caches}


def _spec(cache: Cache, layout: Layout, request: CacheRequest, blocks: Blocks, rules: VllmRules) -> Spec:
    if cache.ratio > 1 or cache.kind == "mla_sliding":
        raise UnknownError(
            "model", "a layout whose pages were replayed", "found compressed attention (compress_ratios)",
            "vLLM packs its pages of several sizes side by side; those were recorded, not replayed",
        )  # fmt: skip
    if cache.kind == "state":
        used = _state_bytes(cache, layout, request)
        return Spec("state", blocks.state or 1, max(blocks.state_page, used), used, shape=(cache.state,))
    per_token = token_bytes(cache, layout, request)
    block = blocks.attention
    if cache.kind == "sliding" and blocks.skip_page:
        block = max(DEFAULT_BLOCK, blocks.skip_page // per_token // DEFAULT_BLOCK * DEFAULT_BLOCK)
    used = per_token * block
    page = max(used, blocks.skip_page) if cache.kind == "sliding" else used
    flag = "" if cache.fixed_bytes else flag_of(cache, layout, request)
    shape = (cache.rank_heads(request.tp), cache.key_size, cache.value_size, flag)
    return Spec(cache.kind, block, page, used, cache.window, shape)


def model_type_bytes(layout: Layout) -> int:
    """Bytes of one value in the model's own type."""
    return DTYPE_BYTES.get(layout.dtype, 2)
