"""One verdict for a whole model: over its attention shapes, and for target and drafter together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nvdash.readers.matrix import Matrix
from nvdash.readers.statements import ATTENTION_STAGES
from nvdash.support.evaluate import verdict
from nvdash.support.observations import Observation
from nvdash.support.values import RANK, StageVerdict, Verdict, worst
from nvdash.targets import Combination


def verdict_of_all(
    matrix: Matrix, combinations: Sequence[Combination], observations: Sequence[Observation] = ()
) -> Verdict:
    """The verdict for a model whose layers have these shapes: per stage the worst of them."""
    return over_shapes([verdict(matrix, item, observations) for item in combinations], combinations)


def over_shapes(verdicts: Sequence[Verdict], combinations: Sequence[Combination]) -> Verdict:
    """One verdict for a model with several attention shapes: per stage the worst of its layers."""
    if len(verdicts) == 1:
        return verdicts[0]
    stages = {
        name: _worst_shape([(found.stages[name], item) for found, item in zip(verdicts, combinations, strict=True)])
        for name in verdicts[0].stages
    }
    whole = min(verdicts, key=lambda found: RANK[found.verdict])
    backends = list(dict.fromkeys(found.backend for found in verdicts if found.backend))
    resolved = dict(whole.resolved)
    resolved["backend"] = replace(resolved["backend"], resolved=" + ".join(backends) or None)
    return replace(whole, verdict=worst(stage.verdict for stage in stages.values()), stages=stages, resolved=resolved)


def _worst_shape(pairs: Iterable[tuple[StageVerdict, Combination]]) -> StageVerdict:
    stages = list(pairs)
    stage, item = min(stages, key=lambda pair: RANK[pair[0].verdict])
    if all(other == stage for other, _ in stages):
        return stage
    note = f"decided by the {item.heads} layers"
    return replace(stage, note="; ".join(filter(None, (stage.note, note))))


def without_assumptions(found: Verdict, broken: Mapping[str, str]) -> Verdict:
    """What was expected on an assumption that does not hold is conditional; `broken` says why, by assumption."""
    stages = {name: _without(stage, broken) for name, stage in found.stages.items()}
    return replace(found, verdict=worst(stage.verdict for stage in stages.values()), stages=stages)


def _without(stage: StageVerdict, broken: Mapping[str, str]) -> StageVerdict:
    told = tuple(broken[name] for name in stage.assumes if name in broken)
    if not told or stage.verdict not in ("expected", "conditional"):
        return stage
    return replace(stage, verdict="conditional", reason="; ".join(told), conditions=(*stage.conditions, *told))


NAME_IT = "the drafter's own attention shape allows it: name the drafter (--draft-model)"


def unnamed(drafter: Verdict) -> Verdict:
    """The verdict on a drafter of unknown shape, where all that is open is one condition: to name it."""
    stages = {
        name: replace(stage, reason=NAME_IT, conditions=(NAME_IT,)) if stage.conditions else stage
        for name, stage in drafter.stages.items()
    }
    return replace(drafter, stages=stages)


def with_drafter(target: Verdict, drafter: Verdict) -> Verdict:
    """Target and drafter choose backends apart; a stage is the worse of the two."""
    stages = {"weights": target.stages["weights"]}
    for name in ATTENTION_STAGES:
        parts = {"target": target.stages[name], "drafter": drafter.stages[name]}
        decides = min(parts.values(), key=lambda stage: RANK[stage.verdict])
        stages[name] = replace(decides, parts=parts)
    return replace(target, verdict=worst(stage.verdict for stage in stages.values()), stages=stages)
