"""What is asked of an engine's cache allocator, and what it answers: values only."""

from dataclasses import dataclass, field

from nvdash.footprint.caches import Layout
from nvdash.targets import GIB


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafter: its method, the tokens it proposes, and its own layers when it is a model apart."""

    method: str
    tokens: int | None = None
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """One serving set-up, as far as the cache is concerned. None is what the caller leaves open."""

    framework: str = "vllm"
    release: str | None = None
    kv_cache_dtype: str = "auto"
    """A resolved cache flag; `auto` is the model's own 16-bit type."""
    available_bytes: tuple[int, ...] = ()
    """Bytes for the cache, one for all ranks or one per rank; empty when only the shape is asked."""
    tp: int = 1
    pp: int = 1
    dcp: int = 1
    pp_layers: tuple[int, ...] | None = None
    block_size: int | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    prefix_caching: bool | None = None
    draft: Draft | None = None
    num_gpu_blocks_override: int | None = None
    skip_layers: tuple[str, ...] = ()
    """Layers that keep the 16-bit type: numbers, or `sliding_window`."""
    backend: str | None = None
    """The attention backend, where it decides what a flag stores."""
    device_bytes: int | None = None
    """Memory of the device; with its name it decides a server's default batch."""
    device_name: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share one block table."""

    kind: str
    layers: int
    page_bytes: int
    """Bytes of one layer's page; the mean where layers of one group differ."""
    block_size: int
    blocks_per_request: int | None = None
    padding_layers: int = 0
    padding_bytes: int = 0
    """Bytes of one block that no layer of the group uses."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the formula for bytes per token: equal caches of one kind."""

    kind: str
    caches: int
    text: str
    """The multiplication with the user's own numbers."""
    bytes_per_token: int
    """Bytes of one stored record: one token's, or that of `per_tokens` compressed ones."""
    per_tokens: int = 1

    @property
    def total(self) -> int:
        """Bytes per token of all caches of this term, rounded up."""
        return -(-self.caches * self.bytes_per_token // self.per_tokens)


@dataclass(frozen=True, slots=True)
class Precheck:
    """The release's own start-up check: whether it refuses, why, and since when it asks so much."""

    refused: bool
    needed_bytes: int
    available_bytes: int
    reserved_bytes: int = 0
    reserved_since: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What the engine makes of the memory: groups, blocks, tokens, and how each number came about."""

    framework: str
    rule: str
    """The range of releases whose rules were used, in words."""
    bytes_per_token: int
    """Formula: what one token adds over all token-keeping layers of one rank, no padding."""
    formula: tuple[Term, ...]
    formula_text: str
    groups: tuple[Group, ...]
    block_size: int | None
    bytes_per_block: int
    num_blocks: int | None = None
    kv_tokens: int | None = None
    kv_tokens_rule: str | None = None
    """`blocks` (a count of token slots), `concurrency` (requests times length), or None."""
    max_concurrency: float | None = None
    blocks_per_request: int | None = None
    reserved_blocks: int = 0
    """Blocks of the pool that no request ever gets."""
    predicted_tokens: int | None = None
    """Formula alone: memory over bytes per token, what a plain estimate would say."""
    padding_bytes: int = 0
    """Bytes of one block that no layer uses."""
    limiting_rank: int | None = None
    state_bytes: int = 0
    """Bytes of the fixed states of one request on one rank."""
    pools: dict[str, int] = field(default_factory=dict)
    """Tokens or slots of separate pools, where the engine has them."""
    precheck: Precheck | None = None
    assumed: tuple[str, ...] = ()
    explain: tuple[str, ...] = ()

    @property
    def allocated_bytes(self) -> int | None:
        """Bytes of the blocks on one rank."""
        return None if self.num_blocks is None else self.num_blocks * self.bytes_per_block


def gib(count: int) -> str:
    """Bytes as GiB, for an explanation."""
    return f"{count / GIB:.2f} GiB"
