"""A patch a person can commit: what an observation would change in the curated facts."""

import json
from collections.abc import Iterable
from typing import Any

from nvdash.readers.matrix import Matrix
from nvdash.support.observations import Observation

ATTENTION_AXES = ("backend", "arch", "kv_cache_dtype", "kind", "head_size", "value_head_size", "graphs")
WEIGHTS_AXES = ("arch", "weights")


def proposal(matrix: Matrix, observations: Iterable[Observation]) -> str:
    """Statements in the form of `curated.yaml`, one per observation; they hold for the release that ran."""
    return "\n".join(_statement(matrix, item) for item in observations)


def _statement(matrix: Matrix, item: Observation) -> str:
    attention = [stage for stage in item.stages if stage != "weights"]
    axes = ATTENTION_AXES if attention else WEIGHTS_AXES
    when = {axis: value for axis in axes if (value := getattr(item, axis)) is not None}
    row: dict[str, Any] = {"id": f"observed-{item.framework}-{item.run[:8]}-{item.head_size or 0}-{item.graphs}"}
    row |= {"when": when, "since": item.release}
    until = _next_release(matrix, item)
    row |= {"until": until} if until else {}
    row |= {"stage": attention} if attention else {"kind": "quant"}
    row |= {"verdict": "expected" if item.verdict == "validated" else item.verdict}
    row |= {"layer": item.layer, "reason": item.reason or f"run {item.run[:8]} showed it"} if item.layer else {}
    row |= {"evidence": {"run": item.run, "release": item.release}, "evidence_level": item.level}
    row |= {"why": f"observed in run {item.run}", "source": f"run {item.run}"}
    return _yaml(row)


def _next_release(matrix: Matrix, item: Observation) -> str | None:
    rules = matrix.find_rules(item.framework)
    names = [release.name for release in rules.releases] if rules else []
    here = names.index(item.release) + 1 if item.release in names else len(names)
    return names[here] if here < len(names) else None


def _yaml(row: dict[str, Any]) -> str:
    """One row; JSON values are YAML, and quote every version."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in row.items()]
    return "- " + "\n  ".join(lines) + "\n"
