"""Which attention backend a release chooses: the first of its own list that its selector accepts.

A constructor or kernel that fails later does not make the selector skip a backend, so a trap wins
the choice and stays a trap. A backend nobody knows about hides everything behind it.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nvdash.readers.statements import ATTENTION_STAGES, Statement
from nvdash.support.axes import Values
from nvdash.support.matching import Match, Outcome, matches, outcome
from nvdash.support.stage import stage_of
from nvdash.support.values import RANK, Refusal, StageVerdict
from nvdash.support.view import View

SELECTOR_LAYERS = ("config", "selector", None)
OTHER_LAYERS = ("sparse not supported", "non-sparse not supported", "MLA not supported", "non-MLA not supported")
"""What a selector says of a backend that is not for this kind of layer at all."""
FOREIGN_FORMAT = "kv_cache_dtype not supported"


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen backend, those passed over, or the verdict when there is no choice."""

    backend: str | None
    skipped: tuple[Refusal, ...] = ()
    instead: StageVerdict | None = None
    """What every attention stage gets when no backend was chosen."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A backend that the selector passed over, by which statement, and how many different refusals it has."""

    refusal: Refusal
    statement: Statement
    reasons: int


def select(view: View, values: Values, stages: Sequence[str]) -> Selection:
    """The backend that the release chooses for these stages when none is named."""
    lists = [fit for fit in matches(view.priority, values) if set(stages) <= set(fit.statement.stage)]
    certain = [fit for fit in lists if not fit.open]
    if certain:
        chosen = max(certain, key=lambda fit: (not fit.statement.generated, len(fit.statement.when))).statement
        return first_accepted(view, values, chosen.order, stages) if chosen.order else _undecided(chosen)
    if not lists:
        return Selection(None, instead=_unlisted(view, values, stages))
    return _agreed(view, values, _general(lists), stages)


def _general(lists: Sequence[Match]) -> Sequence[Match]:
    """Without those that a person wrote for models of one kind, where the question names no model."""
    return [fit for fit in lists if fit.statement.generated] or lists


def _undecided(statement: Statement) -> Selection:
    """A choice that the release makes by what no axis names."""
    reason = f"the choice of backend is undecided: it needs {' and '.join(statement.needs)}"
    unknown = StageVerdict("unknown", reason=reason, evidence=statement.citation(), statement=statement.id)
    return Selection(None, instead=unknown)


def _unlisted(view: View, values: Values, stages: Sequence[str]) -> StageVerdict:
    """No list: what is said of every backend, or that nothing was read."""
    outcomes = [outcome(view.matches(None, values), stage) for stage in stages]
    spoken = next((item for item in outcomes if item.statement and item.verdict == item.statement.verdict), None)
    if spoken is None or RANK[spoken.verdict] > RANK["unknown"]:
        return StageVerdict("unknown", reason="which backend this release tries was not read")
    return stage_of(spoken, [], [], None)


def _agreed(view: View, values: Values, lists: Sequence[Match], stages: Sequence[str]) -> Selection:
    """The choice when several lists are possible: the common one, or none that can be named."""
    choices = [first_accepted(view, values, fit.statement.order, stages) for fit in lists]
    if len({choice.backend for choice in choices}) == 1 and choices[0].backend:
        return choices[0]
    conditions = tuple(dict.fromkeys(str(condition) for fit in lists for condition in fit.open))
    names = ", ".join(dict.fromkeys(choice.backend or "none" for choice in choices))
    verdicts = {choice.instead.verdict for choice in choices if choice.instead}
    if verdicts == {"refused"} and not any(choice.backend for choice in choices):
        return choices[0]
    reason = f"the choice of backend depends on what the question leaves open; candidates: {names}"
    verdict = "unknown" if "unknown" in verdicts else "conditional"
    return Selection(None, instead=StageVerdict(verdict, reason=reason, conditions=conditions))


def first_accepted(view: View, values: Values, order: Sequence[str], stages: Sequence[str]) -> Selection:
    """Walk a priority list as the selector does; a list of one is a fixed default and is not skipped."""
    if len(order) == 1:
        return Selection(order[0])
    skipped: list[Skipped] = []
    for backend in order:
        fits = view.matches(backend, values)
        outcomes = [outcome(fits, stage) for stage in stages]
        statement = _refusing(outcomes)
        if statement is None:
            return _accepted(backend, outcomes, skipped)
        refusal = Refusal(backend, statement.reason, statement.citation())
        skipped.append(Skipped(refusal, statement, _reasons(fits)))
    return _none_left(skipped)


def _refusing(outcomes: Sequence[Outcome]) -> Statement | None:
    """The statement by which the selector skips a backend."""
    refused = (item.statement for item in outcomes if item.verdict == "refused" and item.statement)
    return next((statement for statement in refused if statement.layer in SELECTOR_LAYERS), None)


def _reasons(fits: Iterable[Match]) -> int:
    """How many different refusals of the selector apply."""
    said = [fit.statement for fit in fits if not fit.open and fit.statement.verdict == "refused"]
    return len({statement.reason for statement in said if statement.layer in SELECTOR_LAYERS})


def _is_behind(item: Outcome) -> bool:
    """Whether what is undecided lies behind the selector, which accepts."""
    return item.statement is not None and item.statement.layer not in SELECTOR_LAYERS


def _accepted(backend: str, outcomes: Sequence[Outcome], skipped: Sequence[Skipped]) -> Selection:
    passed = tuple(item.refusal for item in skipped)
    undecided = next((item for item in outcomes if item.verdict == "unknown" and not _is_behind(item)), None)
    if undecided is not None:
        needs = undecided.statement.needs if undecided.statement else ()
        why = f"; deciding it needs {', '.join(needs)}" if needs else ""
        reason = f"{backend} is tried first and whether the selector accepts it is unknown{why}"
        statement = undecided.statement
        unknown = StageVerdict(
            "unknown",
            backend=backend,
            reason=reason,
            evidence=statement.citation() if statement else None,
            statement=statement.id if statement else None,
        )
        return Selection(None, passed, unknown)
    return Selection(backend, passed)


def _none_left(skipped: Sequence[Skipped]) -> Selection:
    """Every backend refuses: the one that is nearest to accepting gives the reason; all reasons are told."""
    refusals = tuple(item.refusal for item in skipped)
    telling = min(skipped, key=_distance).refusal
    reason = f"no backend of the release's list accepts it; {telling.backend}: {telling.reason or 'refused'}"
    refused = StageVerdict("refused", layer="selector", reason=reason, evidence=telling.evidence)
    return Selection(None, refusals, refused)


def _distance(item: Skipped) -> tuple[bool, int, bool, int, int]:
    """A backend for other layers is farthest; then by the refusals, and by whether the format is foreign to it."""
    reason = (item.refusal.reason or "").rpartition(": ")[2]
    return reason in OTHER_LAYERS, item.reasons, reason == FOREIGN_FORMAT, *_breadth(item.statement)


def _breadth(statement: Statement) -> tuple[int, int]:
    """How many cache dtypes a refusal names (none: all of them), then how few conditions it has."""
    limit = statement.limits.get("kv_cache_dtype")
    named = len(limit.any_of) if limit and limit.any_of else sys.maxsize
    return named, -len(statement.when)


def select_pair(view: View, values: Values) -> tuple[Selection, Selection]:
    """The choices for prefill and for decode; one choice serves both where the release makes only one."""
    if any(set(statement.stage) != set(ATTENTION_STAGES) for statement in view.priority):
        return select(view, values, ("prefill",)), select(view, values, ("decode",))
    both = select(view, values, ATTENTION_STAGES)
    return both, both
