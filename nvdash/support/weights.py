"""Can this release run these weights on this GPU, and with which kernel: the weights stage."""

from collections.abc import Iterable, Mapping

from nvdash.readers.statements import PARTS
from nvdash.support.axes import WIDE, Values
from nvdash.support.matching import Match, matches, outcome
from nvdash.support.stage import stage_of
from nvdash.support.values import RANK, StageVerdict
from nvdash.support.view import View

WEIGHTS_STAGE = "weights"


def weights_stage(view: View, values: Values, flags: Mapping[str, str | None]) -> StageVerdict:
    """The worst of the layers that the model has; remembered for equal values of the axes that matter.

    `flags` gives the format of every method's name, None where the checkpoint decides it.
    """
    key = tuple(values.get(axis) for axis in view.weight_axes)
    if key not in view.weight_stages:
        view.weight_stages[key] = _stage(view, values, flags)
    return view.weight_stages[key]


def _stage(view: View, values: Values, flags: Mapping[str, str | None]) -> StageVerdict:
    """Both parts are shown where they are known apart."""
    fits = [fit for fit in matches(view.quant, values) if _is_about(fit, values, flags)]
    if not fits:
        return _without_rule(values)
    if not any(fit.statement.part for fit in fits):
        return _part(fits, values, view)
    has_experts = values.get("experts")
    shown = [part for part in PARTS if part == "linear" or has_experts is not False]
    parts = {part: _known_part(fits, part, values, view) for part in shown}
    counted = [stage for part, stage in parts.items() if part == "linear" or has_experts]
    whole = min(counted, key=lambda stage: RANK[stage.verdict])
    return StageVerdict(**{name: getattr(whole, name) for name in _COPIED}, parts=parts)


def _is_about(fit: Match, values: Values, flags: Mapping[str, str | None]) -> bool:
    """Whether an open method can be one for these weights: a method of another format says nothing here."""
    methods = next((item.any_of for item in fit.open if item.axis == "method"), None)
    if methods is None:
        return True
    return any(flags.get(str(name), name) in (None, values.get("weights")) for name in methods)


_COPIED = (
    *("verdict", "kernel", "compute", "path", "layer", "reason", "evidence"),
    *("statement", "conditions", "assumes", "reports", "warnings"),
)


def _known_part(fits: list[Match], part: str, values: Values, view: View) -> StageVerdict:
    """One kind of layer; unknown where only the other kind's kernels were read and nothing refuses it."""
    about = _about(fits, part)
    stage = _part(about, values, view)
    if any(fit.statement.part for fit in about) or RANK[stage.verdict] < RANK["unknown"]:
        return stage
    return StageVerdict("unknown", reason=f"which kernel runs the {part} layers was not read")


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
