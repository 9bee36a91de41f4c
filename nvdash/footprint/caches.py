"""What each layer of a model keeps while it serves: values only, the same for every engine.

A layer may keep keys and values per token (`full`), for a window (`sliding`, `chunked`), a latent record (`mla`),
an index of keys (`index`), encoder keys and values per request (`cross`), a state of fixed size (`state`), or the raw
inputs of a compressor's open group (`compressor`).
How an engine pages these is its own affair.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nvdash.errors import UnknownError, UsageError
from nvdash.targets import HeadLayout

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1}
TOKEN_KINDS = ("full", "mla", "index")
"""Kinds that keep something for every token of the context."""
WINDOW_KINDS = ("sliding", "chunked", "mla_sliding")


class LayoutRefused(UnknownError):
    """A config whose layers cannot be told from its keys; `key` names the one that is missing, odd or unread."""

    def __init__(self, key: str, expected: str, found: str, hint: str = "") -> None:
        super().__init__(f"config.json {key}", expected, found, hint)
        self.key = key


@dataclass(frozen=True, slots=True)
class State:
    """A recurrent layer's memory of one request: convolution windows and one matrix per head."""

    kind: str
    """gdn, kda, mamba1, mamba2, lightning, short_conv."""
    channels: int = 0
    """Convolution channels that tensor parallelism splits."""
    groups: int = 0
    group_channels: int = 0
    """Convolution channels of one group; groups are repeated when the ranks do not divide them."""
    steps: int = 0
    """Convolution kernel less one: the inputs that are kept."""
    heads: int = 0
    head_values: int = 0
    conv_dtype: str = "model"
    head_dtype: str = "model"
    """`model` is the model's own type, `unset` what the engine chooses for a class whose key is missing."""

    def stored_bytes(self, tp: int, model_dtype: str, draft_tokens: int = 0) -> int:
        """Bytes of one state on one rank; drafted tokens lengthen the convolution window."""
        groups = self.groups if self.groups % tp == 0 else tp
        channels = self.channels + groups * self.group_channels
        if channels % tp or self.heads % tp:
            raise UsageError(
                "tp", "a number that divides the state heads", f"{self.heads} heads, {channels} channels / {tp}"
            )
        conv = channels // tp * (self.steps + draft_tokens if self.steps else 0)
        conv_bytes = conv * DTYPE_BYTES[model_dtype if self.conv_dtype == "model" else self.conv_dtype]
        head_type = model_dtype if self.head_dtype == "model" else self.head_dtype
        return conv_bytes + self.heads // tp * self.head_values * DTYPE_BYTES[head_type]


@dataclass(frozen=True, slots=True)
class Cache:
    """One thing that one layer keeps."""

    layer: int
    """Position in the decoder; drafter layers follow the last one."""
    kind: str
    kv_heads: int = 0
    key_size: int = 0
    value_size: int = 0
    window: int = 0
    state: State | None = None
    ratio: int = 1
    """Tokens that share one stored record (compressed attention)."""
    block: int = 0
    """Tokens per block where the model itself fixes them (DeepSeek-V4's windowed and compressor caches)."""
    part: int = 0
    """Number among several equal caches of one layer."""
    draft: bool = False
    query_heads: int | None = None
    fixed_bytes: int = 0
    """Bytes per token that the model itself fixes, whatever the cache flag says (index keys)."""

    @property
    def latent(self) -> bool:
        """Whether the keys and values are one latent record (key_size: latent part, value_size: rotary part)."""
        return self.kind in ("mla", "mla_sliding")

    def with_state_type(self, chosen: str) -> "Cache":
        """The cache with the engine's choice where its state's type is left open."""
        if self.state is None or self.state.head_dtype != "unset":
            return self
        return replace(self, state=replace(self.state, head_dtype=chosen))

    def rank_heads(self, tp: int) -> int:
        """KV heads on one rank: split, and repeated once there are more ranks than heads."""
        return self.kv_heads if self.latent or self.kind == "index" else max(-(-self.kv_heads // tp), 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """A model's layers as caches, in layer order, and the drafter layers its own config offers."""

    caches: tuple[Cache, ...]
    num_layers: int
    dtype: str = "bfloat16"
    dtype_known: bool = True
    family: str = ""
    """Latent record family: mla, mla_sparse, deepseek_v4; empty for ordinary heads."""
    query_heads: int | None = None
    max_position: int | None = None
    sinks: bool = False
    model_type: str = ""
    mtp: tuple[Cache, ...] | None = None
    """Caches of the multi-token-prediction layers; () when they reuse the target's, None when the config has none."""
    encoder_tokens: int = 0
    """Encoder positions one request may fill; 0 without cross-attention."""
    chunk_size: int | None = None
    """Tokens a Mamba scan handles at once; it aligns blocks in one caching mode."""
    attention_chunk: int | None = None
    """`attention_chunk_size`, which switches vLLM's hybrid manager off in some releases."""

    def of_kind(self, *kinds: str) -> tuple[Cache, ...]:
        """The caches of these kinds, in layer order."""
        return tuple(cache for cache in self.caches if cache.kind in kinds)

    def with_state_type(self, chosen: str) -> "Layout":
        """The layout with the engine's choice for states whose type the config leaves open."""
        if not any(cache.state and cache.state.head_dtype == "unset" for cache in self.caches):
            return self
        return replace(self, caches=tuple(cache.with_state_type(chosen) for cache in self.caches))

    @property
    def compressed(self) -> bool:
        """Whether several tokens share a stored record, in pages of several sizes (DeepSeek-V4)."""
        return self.family == "deepseek_v4"

    @property
    def has_state(self) -> bool:
        """Whether any layer keeps a state of fixed size."""
        return any(cache.kind == "state" for cache in self.caches)

    def shapes(self) -> tuple[HeadLayout, ...]:
        """Every distinct attention shape of the layers, the full-attention ones first."""
        attention = [cache for cache in self.caches if cache.kind not in ("state", "index", "compressor")]
        ordered = sorted(attention, key=lambda cache: cache.kind in WINDOW_KINDS)
        found = [self._shape(cache) for cache in ordered]
        return tuple(dict.fromkeys(shape for shape in found if shape))

    def heads(self) -> HeadLayout | None:
        """The attention shape the support matrix is asked about; None where the query heads are not known."""
        shapes = self.shapes()
        if not shapes:
            return None
        windows = {shape.window for shape in shapes if shape.window}
        first = shapes[0]
        kind = self._hybrid_kind() or first.kind
        window = first.window or (max(windows) if windows else None)
        return HeadLayout(
            kind, first.query_heads, first.kv_heads, first.key_size, first.value_size, window, first.sinks
        )

    def _hybrid_kind(self) -> str | None:
        kinds = {cache.kind for cache in self.caches}
        if "state" in kinds:
            return "hybrid_ssm"
        if "chunked" in kinds:
            return "hybrid_chunked"
        return "hybrid_swa" if "sliding" in kinds and "full" in kinds else None

    def _shape(self, cache: Cache) -> HeadLayout | None:
        query_heads = cache.query_heads or self.query_heads
        if query_heads is None:
            return None
        window = cache.window or None
        if cache.latent:
            kind = "mla" if self.family == "mla" else "mla_sparse"
            size = cache.key_size + cache.value_size
            return HeadLayout(kind, query_heads, 1, size, cache.key_size, window, self.sinks)
        kind = "mqa" if cache.kv_heads == 1 else "mha" if cache.kv_heads == query_heads else "gqa"
        return HeadLayout(kind, query_heads, cache.kv_heads, cache.key_size, cache.value_size, window, self.sinks)


def as_drafter(caches: Iterable[Cache], first_layer: int) -> tuple[Cache, ...]:
    """The caches of a drafter, placed behind the target's last layer."""
    return tuple(replace(cache, layer=first_layer + cache.layer, draft=True) for cache in caches)
