"""What a support question is answered with: a verdict per stage, and for the whole.

Verdicts are ordered worst first; the whole is the worst of its stages.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nvdash.readers.statements import VERDICTS

RANK = {verdict: number for number, verdict in enumerate(VERDICTS)}


def worst(verdicts: Iterable[str]) -> str:
    """The worst of these verdicts; of none, unknown."""
    return min(verdicts, key=RANK.__getitem__, default="unknown")


@dataclass(frozen=True, slots=True)
class StageVerdict:
    """What is known of one stage, and who says so."""

    verdict: str
    backend: str | None = None
    kernel: str | None = None
    compute: Mapping[str, str] | None = None
    path: str | None = None
    layer: str | None = None
    reason: str | None = None
    evidence: Mapping[str, Any] | None = None
    """Where it is written: `release`, `file`, `line`, and `level`; for a run its id."""
    statement: str | None = None
    conditions: tuple[str, ...] = ()
    """What the question would have to fix, for a conditional verdict."""
    assumes: tuple[str, ...] = ()
    reports: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    note: str | None = None
    """Where else it ran, when it did not run here."""
    conflict: str | None = None
    parts: Mapping[str, "StageVerdict"] = field(default_factory=dict)
    """Weights: linear and expert layers, where they differ or are known apart."""

    def as_dict(self) -> dict[str, Any]:
        """The stage as an answer shows it; the named keys are always there."""
        row: dict[str, Any] = {
            "verdict": self.verdict,
            "kernel": self.kernel,
            "compute": dict(self.compute) if self.compute else None,
            "path": self.path,
            "layer": self.layer,
            "reason": self.reason,
            "evidence": dict(self.evidence) if self.evidence else None,
        }
        more = {
            "backend": self.backend,
            "statement": self.statement,
            "conditions": list(self.conditions),
            "warnings": list(self.warnings),
            "note": self.note,
            "conflict": self.conflict,
            **{name: part.as_dict() for name, part in self.parts.items()},
        }
        return row | {key: value for key, value in more.items() if value}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the release makes of a requested value; None where that is not known."""

    requested: str | None
    resolved: str | None
    reason: str | None = None
    evidence: Mapping[str, Any] | None = None
    kv_format: str | None = None
    silent: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Requested beside resolved, with the reason where they differ or cannot be told."""
        row: dict[str, Any] = {"requested": self.requested, "resolved": self.resolved}
        more = {
            "kv_format": self.kv_format,
            "reason": self.reason,
            "evidence": dict(self.evidence) if self.evidence else None,
            "silent": self.silent,
        }
        return row | {key: value for key, value in more.items() if value}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One backend that the selector of a release skipped, and why."""

    backend: str
    reason: str | None
    evidence: Mapping[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """As an answer shows it."""
        return {
            "backend": self.backend,
            "reason": self.reason,
            "evidence": dict(self.evidence) if self.evidence else None,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one support question."""

    verdict: str
    stages: Mapping[str, StageVerdict]
    resolved: Mapping[str, Resolved]
    skipped: tuple[Refusal, ...] = ()
    """Backends that an automatic choice passed over."""
    nearest_release: str | None = None
    """Set when nothing of the asked release was read."""
    reason: str | None = None

    @property
    def deciding(self) -> StageVerdict:
        """The stage that makes the whole what it is: the worst one, attention before weights."""
        order = ("prefill", "decode", "kv_write", "weights")
        stages = [self.stages[name] for name in order if name in self.stages]
        return min(stages, key=lambda stage: RANK[stage.verdict])

    @property
    def layer(self) -> str | None:
        """The layer that refuses or traps."""
        return self.deciding.layer

    @property
    def backend(self) -> str | None:
        """The attention backend, or both of a pair."""
        return self.resolved["backend"].resolved

    def assumes(self) -> list[str]:
        """The environment that was taken for granted, each once."""
        return sorted({item for stage in self.stages.values() for item in stage.assumes})

    def conditions(self) -> list[str]:
        """What the question left open and a statement limits, each once."""
        return list(dict.fromkeys(item for stage in self.stages.values() for item in stage.conditions))

    def conflicts(self) -> list[str]:
        """Where source and observation disagree."""
        return list(dict.fromkeys(stage.conflict for stage in self.stages.values() if stage.conflict))

    def reports(self) -> list[Mapping[str, Any]]:
        """Third-party findings on this combination, each once."""
        by_url = {str(report["url"]): report for stage in self.stages.values() for report in stage.reports}
        return list(by_url.values())
