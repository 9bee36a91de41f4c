"""What does one stored value cost, scales included.

Everything is exact integer arithmetic: a number of values or a head size goes in, bytes come out.
A cache flag is not a format: `fp8_ds_mla` has several record sizes, and equal bytes do not make
two formats equal, so records are keyed on framework, flag and model family.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nvdash.errors import UnknownError, did_you_mean

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a run of values is stored: bits per value, scales per block, bytes per row."""

    bits: int
    block: int = 0
    """Values that share one scale; 0 when the format has none."""
    block_bytes: int = 0
    row_bytes: int = 0
    """Bytes kept once per row (a per-token-head scale, a norm, a zero point)."""

    def stored_bytes(self, values: int) -> int:
        """Bytes for one row of this many values, before any padding by a backend."""
        scales = values // self.block * self.block_bytes if self.block else 0
        return -(-values * self.bits // 8) + scales + self.row_bytes

    @property
    def bits_per_value(self) -> "Fraction":
        """Bits of a long row, scales included."""
        from fractions import Fraction

        return self.bits + Fraction(8 * self.block_bytes, self.block or 1)


@dataclass(frozen=True, slots=True)
class CacheFormat:
    """A KV-cache format of one head: how a key row and a value row are stored."""

    name: str
    key: Encoding
    value: Encoding
    slot_multiple: int = 1
    """The key and value rows of a token are rounded up together to this many bytes."""

    def token_bytes(self, key_size: int, value_size: int) -> int:
        """Bytes one token adds to one KV head; a size of 0 stores nothing on that side."""
        key = self.key.stored_bytes(key_size) if key_size else 0
        value = self.value.stored_bytes(value_size) if value_size else 0
        return -(-(key + value) // self.slot_multiple) * self.slot_multiple


def _both(name: str, encoding: Encoding) -> CacheFormat:
    return CacheFormat(name, encoding, encoding)


def _turbo(name: str, key: Encoding, value_bits: int) -> CacheFormat:
    """TurboQuant: rotated keys with a norm (or FP8), uniform values with scale and zero, an even slot."""
    return CacheFormat(name, key, Encoding(value_bits, row_bytes=4), slot_multiple=2)


_WIDE = Encoding(16)
_E4M3 = Encoding(8)
_E2M1_BLOCK16 = Encoding(4, block=16, block_bytes=1)

# Read in vLLM 0.33.0: utils/torch_utils.py:542, v1/attention/backends/triton_attn.py:308, turboquant/config.py:128;
# mxfp8 and fp4_mx_block16 in SGLang 0.5.23 compute_cell_size.
CACHE_FORMATS: dict[str, CacheFormat] = {
    entry.name: entry
    for entry in (
        _both("float32", Encoding(32)),
        _both("bfloat16", _WIDE),
        _both("float16", _WIDE),
        _both("fp8_e4m3", _E4M3),
        _both("fp8_e5m2", _E4M3),
        _both("int8", _E4M3),
        _both("nvfp4", _E2M1_BLOCK16),
        _both("nvfp4_4over6", _E2M1_BLOCK16),
        _both("fp4_mx_block16", _E2M1_BLOCK16),
        _both("mxfp8", Encoding(8, block=32, block_bytes=1)),
        _both("fp8_per_token_head", Encoding(8, row_bytes=4)),
        _both("int8_per_token_head", Encoding(8, row_bytes=4)),
        _both("int4_per_token_head", Encoding(4, row_bytes=4)),
        _both("ultraquant_4bit", Encoding(4, block=32, block_bytes=1)),
        _turbo("turboquant_k8v4", _E4M3, 4),
        _turbo("turboquant_4bit_nc", Encoding(4, row_bytes=2), 4),
        _turbo("turboquant_k3v4_nc", Encoding(3, row_bytes=2), 4),
        _turbo("turboquant_3bit_nc", Encoding(3, row_bytes=2), 3),
    )
}

CACHE_ALIASES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
    "fp8": "fp8_e4m3",
    "fp4_e2m1": "fp4_mx_block16",
}
"""Flags that name a stored format by another word; `fp4_e2m1` is SGLang's, and is not NVFP4."""

RECORD_FLAGS = ("fp8_ds_mla", "nvfp4_ds_mla")
"""Flags that name a record of a latent (MLA) cache and store nothing for ordinary heads."""

UNSIZED_FLAGS = {
    "fp8_inc": "no CUDA backend stores it, so its page was never read",
    "octave_k3v4": "its slot depends on the rope width that a ROCm backend registers",
    "octave_k3v3": "its slot depends on the rope width that a ROCm backend registers",
    "octave_k3v3_compact": "its slot depends on the rope width that a ROCm backend registers",
}
"""Known flags whose bytes nobody has derived; they are unknown, not guessed."""


def cache_format(flag: str) -> CacheFormat:
    """The stored format a cache flag names for ordinary heads; `auto` must be resolved before."""
    name = CACHE_ALIASES.get(flag, flag)
    if name in CACHE_FORMATS:
        return CACHE_FORMATS[name]
    if flag in UNSIZED_FLAGS:
        raise UnknownError("kv_cache_dtype", "a format with known bytes", f"found {flag}: {UNSIZED_FLAGS[flag]}")
    if flag in RECORD_FLAGS:
        raise UnknownError("kv_cache_dtype", "a format for key and value heads", f"found {flag}, a latent (MLA) record")
    raise UnknownError("kv_cache_dtype", "a known cache format", f"found {flag}", did_you_mean(flag, cache_flags()))


def cache_flags() -> list[str]:
    """Every flag this module knows, formats, aliases and records."""
    return [*CACHE_FORMATS, *CACHE_ALIASES, *RECORD_FLAGS, *UNSIZED_FLAGS]


@dataclass(frozen=True, slots=True)
class LatentRecord:
    """One token of a latent (MLA) cache: encodings of the latent part and of the rotary part."""

    latent: Encoding
    rope: Encoding
    padding: int = 0
    source: str = ""

    def token_bytes(self, rank: int, rope_size: int) -> int:
        """Bytes of one token in one layer; a latent cache is not split by tensor parallelism."""
        return self.latent.stored_bytes(rank) + self.rope.stored_bytes(rope_size) + self.padding


_SAME = "same encoding as any row"
_DS_MLA_656 = LatentRecord(
    Encoding(8, block=128, block_bytes=4), _WIDE, source="vLLM 0.33.0 layers/attention/mla_attention.py:1386"
)
# 448 latent E4M3 values + 7 UE8M0 scales and 1 pad byte + 64 BF16 rotary values.
_V4_584 = LatentRecord(
    Encoding(8, block=64, block_bytes=1), _WIDE, padding=1, source="vLLM 0.33.0 models/deepseek_v4/attention.py:882"
)
# vLLM packs key and value scales inline behind the whole row, although a latent row has no value.
_ROW_SCALED = LatentRecord(_E4M3, _E4M3, padding=8, source="vLLM 0.33.0 layers/attention/mla_attention.py:1600")
_ROW_SCALED_INT4 = LatentRecord(Encoding(4), Encoding(4), padding=8, source=_ROW_SCALED.source)
_NVFP4_352 = LatentRecord(_E2M1_BLOCK16, _E4M3, source="vLLM 0.33.0 layers/attention/mla_attention.py:1386")

# (framework, flag, family): families are mla (V2, V3), mla_sparse (V3.2, GLM-5), deepseek_v4.
LATENT_RECORDS: dict[tuple[str, str, str], LatentRecord] = {
    ("vllm", "fp8_ds_mla", "mla"): _DS_MLA_656,
    ("vllm", "fp8_ds_mla", "mla_sparse"): _DS_MLA_656,
    ("vllm", "fp8_ds_mla", "deepseek_v4"): _V4_584,
    ("vllm", "nvfp4_ds_mla", "mla_sparse"): _NVFP4_352,
    ("vllm", "fp8_per_token_head", "mla"): _ROW_SCALED,
    ("vllm", "int8_per_token_head", "mla"): _ROW_SCALED,
    ("vllm", "int4_per_token_head", "mla"): _ROW_SCALED_INT4,
    ("sglang", "fp8_e4m3", "mla_sparse"): _DS_MLA_656,
    ("sglang", "fp8_e5m2", "mla_sparse"): _DS_MLA_656,
}

_PLAIN_LATENT = frozenset({"float32", "bfloat16", "float16", "fp8_e4m3", "fp8_e5m2"})
_PACKED_LATENT = {"sglang": frozenset({"fp4_mx_block16"})}


def latent_record(framework: str, flag: str, family: str) -> LatentRecord:
    """The record a framework stores per token for a cache flag and a model family."""
    name = CACHE_ALIASES.get(flag, flag)
    if (framework, name, family) in LATENT_RECORDS:
        return LATENT_RECORDS[framework, name, family]
    if name in _PLAIN_LATENT or name in _PACKED_LATENT.get(framework, ()):
        encoding = CACHE_FORMATS[name].key
        return LatentRecord(encoding, encoding, source=_SAME)
    sized = sorted({dtype for owner, dtype, kind in LATENT_RECORDS if (owner, kind) == (framework, family)})
    raise UnknownError(
        "kv_cache_dtype",
        f"a latent (MLA) record of {framework} for {family}",
        f"found {flag}, for which no record is known",
        f"known: {', '.join(['bfloat16', 'fp8', *sized])}",
    )


WEIGHT_ENCODINGS: dict[str, Encoding] = {
    "fp32": Encoding(32),
    "bf16": _WIDE,
    "fp16": _WIDE,
    "fp8": _E4M3,
    "int8": _E4M3,
    "mxfp8": Encoding(8, block=32, block_bytes=1),
    "nvfp4": _E2M1_BLOCK16,
    "mxfp4": Encoding(4, block=32, block_bytes=1),
    "int4": Encoding(4, block=128, block_bytes=2),
}
"""Weights by format, block scales included (int4: one 16-bit scale per group of 128)."""
