"""Which GPU, model shape and combination do we mean.

Values only: names are looked up in `readers.catalogue`, layouts are built in `footprint.layers`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from nvdash.errors import UsageError

HEAD_KINDS = (
    *("mha", "gqa", "mqa", "mla", "mla_sparse"),
    *("hybrid_swa", "hybrid_chunked", "hybrid_ssm", "cross", "encoder"),
)
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device as an engine sees it; a product without a known figure keeps None."""

    id: str
    name: str
    vendor: str
    arch: str
    """`sm120`, `gfx942`, `xe2`: compare together with the vendor, capability numbers collide."""
    compute_capability: str | None = None
    """NVIDIA's number, `12.0`; None for every other vendor."""
    memory_low_bytes: int | None = None
    memory_high_bytes: int | None = None
    """The total that engines multiply by their utilisation; a range where the device's own figure was not seen."""
    memory_source: str = "unknown"
    bandwidth_gbs: float | None = None
    """Peak, 10^9 bytes per second."""
    unified_memory: bool = False
    confidence: str = "unknown"
    unverified: tuple[str, ...] = ()
    """Fields that rest on recall only."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class HeadLayout:
    """The attention shape that decides kernels: kind, heads, widths, window, sinks."""

    kind: str
    query_heads: int
    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None
    sinks: bool = False

    @classmethod
    def parse(cls, text: str) -> "HeadLayout":
        """Read `gqa:64/8x128`, `mla:128/1x576/512` or `gqa:64/8x64,window=128,sinks`."""
        shape, *marks = [part.strip() for part in text.split(",")]
        found = re.fullmatch(r"([a-z_]+):(\d{1,6})/(\d{1,6})x(\d{1,6})(?:/(\d{1,6}))?", shape)
        if not found or found[1] not in HEAD_KINDS or "0" in found.groups():
            raise layout_error(text, f"found {shape!r}")
        query, kv, key = int(found[2]), int(found[3]), int(found[4])
        if query % kv:
            raise layout_error(text, f"found {kv} KV heads, which do not divide {query} query heads")
        window, sinks = None, False
        for mark in marks:
            if mark == "sinks":
                sinks = True
            elif re.fullmatch(r"window=[1-9]\d{0,8}", mark):
                window = int(mark.removeprefix("window="))
            else:
                raise layout_error(text, f"found the mark {mark!r}")
        return cls(found[1], query, kv, key, int(found[5] or key), window, sinks)

    def __str__(self) -> str:
        value = f"/{self.value_size}" if self.value_size != self.key_size else ""
        window = f",window={self.window}" if self.window else ""
        return f"{self.kind}:{self.query_heads}/{self.kv_heads}x{self.key_size}{value}{window}{',sinks' * self.sinks}"


def layout_error(text: str, found: str) -> UsageError:
    """The refusal of a head layout that does not read, with the grammar."""
    expected = "KIND:QUERY_HEADS/KV_HEADSxKEY_SIZE[/VALUE_SIZE][,window=N][,sinks]"
    hint = f"kinds: {', '.join(HEAD_KINDS)}; example: gqa:64/8x128"
    return UsageError(f"head layout {text!r}", expected, found, hint)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Published weights of a model in one format, and what its config makes of the cache."""

    weights: str
    """The weight format: bf16, fp8, nvfp4, mxfp4, awq, gptq, int8, …"""
    repository: str = ""
    method: str = ""
    """Who wrote the quantised layers: modelopt, compressed-tensors, fp8, awq, gptq, mxfp4; empty for a wide one."""
    activations: str = ""
    """W4A4, W4A16, W8A8, …; empty where the config does not say."""
    kv_cache_scheme: str | None = None
    """What the config asks of `auto`: fp8, nvfp4; None when it asks nothing or was not read."""
    kv_cache_scheme_known: bool = False
    """False where the stored config has no quantisation part: what `auto` becomes is then unknown."""
    wide_layers: tuple[str, ...] = ()
    """Module name patterns that stay in the model's 16-bit type."""
    stored_bytes: int | None = None
    source: str = ""
    group_size: int | None = None
    """Weights that share one scale; None where the method fixes it or the config does not say."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model by name: its geometry as config.json keys, and the checkpoints that are known."""

    name: str
    base: str
    """Runs of one base are compared; a quantised copy has the base of its original."""
    config: Mapping[str, Any] = field(hash=False)
    checkpoints: tuple[Checkpoint, ...] = ()
    parameters: int | None = None
    parameters_source: str = ""
    source: str = ""
    """Where the geometry was read: catalogue, a path's base name, a Hugging Face id."""
    asked: Checkpoint | None = None
    """The checkpoint that the given name stood for, when it named one."""
    note: str = ""
    """What is uncertain about the geometry: keys that are recalled, orders that are inferred."""

    def checkpoint(self, weights: str) -> Checkpoint | None:
        """The known checkpoint in this weight format: the one asked for by name first."""
        known = ((self.asked,) if self.asked else ()) + self.checkpoints
        return next((row for row in known if row.weights == weights or row.method == weights), None)


@dataclass(frozen=True, slots=True)
class Combination:
    """One cell of the support question; a None is something the question leaves open."""

    framework: str
    release: str
    arch: str
    weights: str | None = None
    backend: str | None = None
    kv_cache_dtype: str = "auto"
    heads: HeadLayout | None = None
    dcp: int = 1
    drafter: str | None = None
    sinks: bool | None = None
    causal: bool = True
    graphs: bool | None = None
    checkpoint_kv: str | None = None
    """What the checkpoint's `kv_cache_scheme` asks; `none` when it asks nothing, None when it was not read."""
    model_base: str | None = None
    model_class: str | None = None
    """The class that config.json names first under `architectures`, by which a framework finds its model file."""
    method: str | None = None
    """The framework's quantisation method: modelopt_fp4, compressed-tensors, …"""
    prefill_backend: str | None = None
    decode_backend: str | None = None
    """A pair, where the framework chooses backends per phase; `backend` names both at once."""
    experts: bool | None = None
    """Whether the model has expert layers."""
    model_dtype: str | None = None
    """The model's own 16-bit type, which a cache dtype of `auto` usually means."""
    tp: int = 1
    """Tensor parallel size: a selector is asked with the heads of one rank."""

    def as_dict(self) -> dict[str, Any]:
        """The combination with its head layout as text, for an answer."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**values, "heads": str(self.heads) if self.heads else None}


def refuse_uneven_heads(query_heads: int | None, tp: int) -> None:
    """Refuse a tensor parallel size that does not divide the query heads, as every engine does."""
    if query_heads and query_heads % tp:
        raise UsageError("--tp", f"a number that divides the {query_heads} query heads", f"got {tp}")
