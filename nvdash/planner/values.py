"""What a plan is made of: the request, the four cells with what is known of them, the engine and the workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

CELLS = ("wide", "weights", "cache", "both")
DEPLOYED = "deployed"
LABELS = {
    "wide": "Wide weights, wide cache",
    "weights": "Weights only",
    "cache": "Cache only",
    "both": "Both",
    DEPLOYED: "As deployed",
}
SETS = {
    "equal-utilisation": "Equal GPU memory utilisation: what deploying the narrower format changes, capacity included.",
    "equal-blocks": "Equal KV cache tokens and sequences: what the precision alone changes.",
}
SIZES = ("tp", "pp", "dcp")


@dataclass(frozen=True, slots=True)
class Engine:
    """How one framework is served, loaded and read, as `data/plan/engines.yaml` says."""

    framework: str
    package: str
    serve: tuple[str, ...]
    flags: Mapping[str, str]
    fixed: tuple[str, ...]
    wide_cache: str
    memory_field: str
    memory: float
    scheduler: Mapping[str, int]
    settings: Mapping[str, str]
    blocks: str
    client: tuple[str, ...]
    pinned: tuple[str, ...]
    own: tuple[str, ...]
    metadata: str = ""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """Scheduler settings that this framework's runs carry under another name."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is sent: the user's own requests or the pinned ones, the loads, and the two tasks."""

    name: str
    isl: int
    osl: int
    concurrency: tuple[int, ...]
    repeats: int
    requests_per_slot: int
    reasoning: str
    long_context: str
    context: int
    requests: str = ""
    """Path of the user's own request file; empty for the pinned workload."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One cell as the support matrix, the catalogue and the memory rules know it, for one backend."""

    cell: str
    verdict: str
    reason: str = ""
    layer: str | None = None
    resolved_cache: str | None = None


@dataclass(frozen=True, slots=True)
class Formats:
    """The wide and the narrow side of both axes, with the checkpoints that carry the weights."""

    wide_weights: str
    narrow_weights: str
    narrow_cache: str
    wide_checkpoint: str | None
    narrow_checkpoint: str | None
    checkpoint_bytes: Mapping[str, int] = field(default_factory=dict)

    def of(self, cell: str) -> tuple[str, str, str | None]:
        """Weight format, cache side (`wide` or `narrow`) and checkpoint of a cell."""
        weights_narrow = cell in ("weights", "both", DEPLOYED)
        weights = self.narrow_weights if weights_narrow else self.wide_weights
        cache = "narrow" if cell in ("cache", "both", DEPLOYED) else "wide"
        return weights, cache, self.narrow_checkpoint if weights_narrow else self.wide_checkpoint


@dataclass(frozen=True, slots=True)
class Request:
    """What the plan is for."""

    framework: str
    release: str
    gpu: str
    model_base: str
    tp: int = 1
    pp: int = 1
    dcp: int = 1
    max_model_len: int | None = None

    @property
    def gpu_count(self) -> int:
        """GPUs of one server."""
        return self.tp * self.pp

    def plan_id(self, *parts: Any) -> str:
        """Eight hex digits that name the plan: equal questions make equal plans."""
        return sha256(repr((self, *parts)).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Job:
    """One cell of one set of a plan: what its script needs."""

    plan: str
    request: Request
    engine: Engine
    formats: Formats
    workload: Workload
    backend: str
    cell: str
    which: str

    @property
    def weights(self) -> str:
        """The weight format that is served."""
        return self.formats.of(self.cell)[0]

    @property
    def cache(self) -> str:
        """The cache flag."""
        return self.formats.narrow_cache if self.formats.of(self.cell)[1] == "narrow" else self.engine.wide_cache

    @property
    def checkpoint(self) -> str:
        """The repository that carries the weights."""
        return str(self.formats.of(self.cell)[2])

    @property
    def is_deployed(self) -> bool:
        """Whether the engine's own choices stand, as in production."""
        return self.cell == DEPLOYED

    @property
    def words(self) -> dict[str, object]:
        """What the braces of the engine's words stand for."""
        load = self.workload
        return {"checkpoint": self.checkpoint, "isl": load.isl, "osl": load.osl, "requests": load.requests}
