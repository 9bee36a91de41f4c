"""Can this release run these weights on this GPU, and with which kernel: the weights stage."""

from collections.abc import Iterable

from nvdash.readers.statements import PARTS
from nvdash.support.axes import Values
from nvdash.support.matching import Match, matches, outcome
from nvdash.support.stage import stage_of
from nvdash.support.values import RANK, StageVerdict
from nvdash.support.view import View

WIDE = ("bf16", "bfloat16", "fp16", "float16")
WEIGHTS_STAGE = "weights"


def weights_stage(view: View, values: Values) -> StageVerdict:
    """The worst of the layers that the model has; remembered for equal values of the axes that matter."""
    key = tuple(values.get(axis) for axis in view.weight_axes)
    if key not in view.weight_stages:
        view.weight_stages[key] = _stage(view, values)
    return view.weight_stages[key]


def _stage(view: View, values: Values) -> StageVerdict:
    """Both parts are shown where they are known apart."""
    fits = matches(view.quant, values)
    if not fits:
        return _without_rule(values)
    if not any(fit.statement.part for fit in fits):
        return _part(fits, values, view)
    has_experts = values.get("experts")
    shown = [part for part in PARTS if part == "linear" or has_experts is not False]
    parts = {part: _part(_about(fits, part), values, view) for part in shown}
    counted = [stage for part, stage in parts.items() if part == "linear" or has_experts]
    whole = min(counted, key=lambda stage: RANK[stage.verdict])
    return StageVerdict(**{name: getattr(whole, name) for name in _COPIED}, parts=parts)


_COPIED = (
    *("verdict", "kernel", "compute", "path", "layer", "reason", "evidence"),
    *("statement", "conditions", "assumes", "reports", "warnings"),
)


def _about(fits: Iterable[Match], part: str) -> list[Match]:
    return [fit for fit in fits if fit.statement.part in (None, part)]


def _part(fits: list[Match], values: Values, view: View) -> StageVerdict:
    tags = [fit.statement for fit in matches(view.tag, values) if not fit.open and WEIGHTS_STAGE in fit.statement.stage]
    return stage_of(outcome(fits, WEIGHTS_STAGE), [fit.statement for fit in fits if not fit.open], tags, None)


def _without_rule(values: Values) -> StageVerdict:
    weights = values.get("weights")
    if weights in WIDE:
        return StageVerdict(
            "expected", path="unquantised", reason="no quantisation method is involved", evidence={"level": "none"}
        )
    reason = "no weight format was named" if weights is None else f"no rule for {weights} weights on {values['arch']}"
    return StageVerdict("unknown", reason=reason)
