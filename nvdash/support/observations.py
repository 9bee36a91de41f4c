"""What was seen to run raises a verdict or contradicts it, for exactly the scope that ran.

Elsewhere the verdict stays what the source says, with a note where it did run.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from nvdash.support.axes import Values
from nvdash.support.values import StageVerdict, worst


@dataclass(frozen=True, slots=True)
class Observation:
    """One run of one combination: what it showed for which stages."""

    run: str
    """How the store calls it."""
    framework: str
    release: str
    arch: str
    verdict: str
    """validated, trap or refused: DESIGN section 8 maps case verdicts to these."""
    stages: tuple[str, ...]
    level: str
    """traced or served."""
    layer: str | None = None
    reason: str | None = None
    flashinfer: str | None = None
    weights: str | None = None
    backend: str | None = None
    kv_cache_dtype: str | None = None
    kind: str | None = None
    head_size: int | None = None
    value_head_size: int | None = None
    graphs: str = "eager"
    kernel: str | None = None
    path: str | None = None


ATTENTION_SCOPE = ("arch", "backend", "kv_cache_dtype", "kind", "head_size", "value_head_size", "graphs")
WEIGHTS_SCOPE = ("arch", "weights")


def observed(
    stage: StageVerdict, name: str, values: Values, flashinfer: str | None, observations: Iterable[Observation]
) -> StageVerdict:
    """The stage with what was observed of it: exact runs change it, near ones are named."""
    near: list[Observation] = []
    for item in observations:
        if name not in item.stages or item.framework != values["framework"]:
            continue
        if _is_exact(item, name, values, flashinfer):
            stage = _with_exact(stage, item)
        elif item.verdict == "validated" and _same_cell(item, values):
            near.append(item)
    if stage.verdict in ("expected", "conditional") and near:
        releases = ", ".join(dict.fromkeys(item.release for item in near))
        return replace(stage, note=f"ran on {releases}")
    return stage


def _scope(name: str) -> tuple[str, ...]:
    return WEIGHTS_SCOPE if name == "weights" else ATTENTION_SCOPE


def _is_exact(item: Observation, name: str, values: Values, flashinfer: str | None) -> bool:
    same = all(getattr(item, axis) is not None and getattr(item, axis) == values.get(axis) for axis in _scope(name))
    return same and item.release == values["release"] and item.flashinfer in (None, flashinfer)


def _same_cell(item: Observation, values: Values) -> bool:
    axes = ("arch", "backend", "kv_cache_dtype")
    return all(getattr(item, axis) == values.get(axis) for axis in axes)


def _with_exact(stage: StageVerdict, item: Observation) -> StageVerdict:
    evidence: dict[str, Any] = {"run": item.run, "release": item.release, "level": item.level}
    if item.verdict == "validated" and stage.verdict in ("refused", "trap"):
        return replace(stage, conflict=f"source says {stage.verdict}, run {item.run} worked as requested")
    if item.verdict == "validated":
        return replace(
            stage,
            verdict="validated",
            evidence=evidence,
            conditions=(),
            kernel=item.kernel or stage.kernel,
            path=item.path or stage.path,
        )
    if stage.verdict in ("refused", "trap"):
        return stage
    verdict = worst((stage.verdict, item.verdict))
    said = None if stage.verdict == "unknown" else f"source says {stage.verdict}, run {item.run} showed {item.verdict}"
    return replace(stage, verdict=verdict, layer=item.layer, reason=item.reason, evidence=evidence, conflict=said)
