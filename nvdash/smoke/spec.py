"""What one case is to do, as a value that travels to another interpreter as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

PHASES = ("import", "build", "allocate", "prefill", "decode", "compare")
LIMIT_S = {"import": 180.0, "build": 900.0, "allocate": 300.0, "prefill": 300.0, "decode": 300.0, "compare": 300.0}
"""Seconds per phase. Building kernels takes up to ten minutes without a line of output when nothing is cached."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One attention layer of the case: the engine gets one of each kind that the model has."""

    kind: str
    """`full`, `window` or `mla`."""
    query_heads: int
    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None

    @property
    def is_latent(self) -> bool:
        """Whether it stores one record per token instead of keys and values."""
        return self.kind == "mla"


@dataclass(frozen=True, slots=True)
class CaseSpec:
    """One engine, one combination, one run."""

    case_id: str
    engine: str
    kv_cache_dtype: str
    layers: tuple[Layer, ...]
    backend: str | None = None
    weights: str | None = None
    release: str | None = None
    """The release that was asked about; what ran is read from the engine."""
    arch: str | None = None
    whole: bool = True
    """Whether `layers` are all that keeps a cache; state layers and indexes have bytes no formula here counts."""
    kind: str | None = None
    """The head kind of the question, for the scope of what was seen (`hybrid_swa`, …)."""
    config: Mapping[str, Any] | None = None
    """The model's config.json for engines that build a model; they truncate it to one layer of each kind."""
    block_size: int = 16
    order: str = "HND"
    swizzled_v_scales: bool = False
    device: str = "auto"
    with_graphs: bool = True
    """Whether an engine that has CUDA graphs is run a second time with its defaults."""
    seed: int = 1
    pool_bytes: int = 256 * 2**20
    limits_s: Mapping[str, float] = field(default_factory=lambda: dict(LIMIT_S))
    question: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text that a case process reads."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "CaseSpec":
        """The spec in such a text."""
        parts = json.loads(text)
        return cls(**{**parts, "layers": tuple(Layer(**layer) for layer in parts["layers"])})
