"""What a page of each layer costs in vLLM: block sizes, enlargement for states, padding for skipped layers."""

from dataclasses import dataclass, replace
from math import lcm

from nvdash.footprint.caches import TOKEN_KINDS, Cache
from nvdash.footprint.formula import flag_of, token_bytes, wide_flag
from nvdash.footprint.vllm_setup import Setup

KERNEL_BLOCK = 16
"""Smallest block a kernel takes."""
LATENT_BLOCKS = {"CUTLASS_MLA": 128, "FLASHMLA": 64, "FLASHINFER_MLA": 32}
"""Smallest blocks of the MLA backends that take more than `KERNEL_BLOCK` tokens (get_supported_kernel_block_sizes)."""
PACKED_ALIGNMENT = 576
"""Bytes that FlashMLA aligns the pages of compressed attention to."""
UNKNOWN_CHUNK = 2048
"""Scan length where neither the config nor its class says one (ModelConfig.get_mamba_chunk_size)."""


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
    state_page: int = 0
    """The page every state is padded to: that of an attention block."""
    skip_page: int = 0
    """The page that windowed layers are padded to beside skipped ones."""


def block_sizes(setup: Setup) -> Blocks:
    """The attention block, enlarged until its page holds a state, and what pads to it."""
    attention = _first_attention(setup)
    if not setup.layout.has_state or setup.rules.flat or attention is None:
        return _skip_padded(setup, Blocks(setup.asked_block), attention)
    state = max(state_bytes(setup, cache) for cache in setup.layout.of_kind("state"))
    per_token = token_bytes(attention, setup.layout, setup.request)
    align = _alignment(setup, attention)
    block = max(align * -(-state // (align * per_token)), setup.request.block_size or 0)
    return _skip_padded(setup, Blocks(block, state_page=block * per_token), attention)


def _alignment(setup: Setup, attention: Cache) -> int:
    """Tokens the block is a multiple of: what the kernel takes, the asked block, the scan length."""
    align = _latent_alignment(setup) if attention.latent else KERNEL_BLOCK
    align = max(align, setup.asked_block) if setup.rules.user_block_aligns else align
    return lcm(setup.layout.chunk_size or UNKNOWN_CHUNK, align) if setup.state_mode == "all" else align


def _latent_alignment(setup: Setup) -> int:
    """What a latent block is a multiple of: from 0.20 what its backend takes, before that 128 for CUTLASS alone."""
    backend, least = setup.request.backend or "", setup.rules.latent_align
    if setup.rules.backend_aligns:
        return max(LATENT_BLOCKS.get(backend, KERNEL_BLOCK), least)
    return max(LATENT_BLOCKS[backend] if backend == "CUTLASS_MLA" else 0, least)


def _first_attention(setup: Setup) -> Cache | None:
    return next((cache for cache in setup.layout.caches if cache.kind not in ("state", "index", "cross")), None)


def state_bytes(setup: Setup, cache: Cache) -> int:
    """Bytes of one state on one rank."""
    if cache.state is None:
        return 0
    return cache.state.stored_bytes(setup.request.tp, setup.layout.dtype, setup.drafts)


def _skip_padded(setup: Setup, blocks: Blocks, first: Cache | None) -> Blocks:
    """Beside 16-bit layers the quantised block grows until its page covers their smallest one."""
    request = setup.request
    if setup.rules.skip_padding != "pad" or not request.skip_layers or first is None:
        return blocks
    primary = token_bytes(first, setup.layout, replace(request, skip_layers=()))
    wide = token_bytes(first, setup.layout, replace(request, skip_layers=(), kv_cache_dtype=wide_flag(setup.layout)))
    if wide == primary:
        return blocks
    required = max(wide * KERNEL_BLOCK, blocks.state_page)
    align = max(KERNEL_BLOCK, blocks.attention)
    block = max(blocks.attention, align * -(-required // (align * primary)))
    return Blocks(block, block * primary if blocks.state_page else 0, block * primary)


def specs(setup: Setup, caches: tuple[Cache, ...], blocks: Blocks) -> dict[Cache, Spec]:
    """One spec per cache, in layer order."""
    return {cache: _state_spec(setup, cache, blocks) or _spec(setup, cache, blocks) for cache in caches}


def _spec(setup: Setup, cache: Cache, blocks: Blocks) -> Spec:
    return (_packed_spec if setup.layout.compressed else _attention_spec)(setup, cache, blocks)


def _packed_spec(setup: Setup, cache: Cache, blocks: Blocks) -> Spec:
    """A cache of compressed attention: whole records per block, padded to what its kernels align."""
    block = cache.block or blocks.attention
    record = cache.fixed_bytes or token_bytes(cache, setup.layout, setup.request)
    used = record * (block // cache.ratio)
    packed = setup.request.kv_cache_dtype == "fp8_ds_mla" or (
        cache.kind == "index" and setup.rules.plain_alignment == 1
    )
    align = PACKED_ALIGNMENT if packed else setup.rules.plain_alignment
    return Spec(cache.kind, block, -(-used // align) * align, used, cache.window, (record, cache.ratio))


def _state_spec(setup: Setup, cache: Cache, blocks: Blocks) -> Spec | None:
    if cache.kind != "state":
        return None
    used = state_bytes(setup, cache)
    return Spec("state", blocks.attention, max(blocks.state_page, used), used, shape=(cache.state,))


def _attention_spec(setup: Setup, cache: Cache, blocks: Blocks) -> Spec:
    request, layout = setup.request, setup.layout
    local = cache.kind in ("sliding", "chunked") and not setup.promoted
    kind = cache.kind if local or cache.kind not in ("sliding", "chunked") else "full"
    per_token = token_bytes(cache, layout, request)
    block = blocks.attention
    if cache.kind == "sliding" and local and blocks.skip_page:
        block = max(KERNEL_BLOCK, blocks.skip_page // per_token // KERNEL_BLOCK * KERNEL_BLOCK)
    used = per_token * block
    page = max(used, blocks.skip_page) if cache.kind == "sliding" and local else used
    flag = "" if cache.fixed_bytes else flag_of(cache, layout, request)
    shape = (cache.rank_heads(request.tp), cache.key_size, cache.value_size, flag)
    return Spec(kind, block, page, used, cache.window if local else 0, shape)
