"""Is this combination supported, stage by stage, and who says so: `verdict`.

The cache dtype is resolved first, then the backends are chosen as the release chooses them, then
every stage takes the worst of all statements that apply, is joined with the pinned FlashInfer, and
is raised or contradicted by what was observed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nvdash.readers.matrix import Matrix, Release
from nvdash.readers.statements import ATTENTION_STAGES, STAGES, Statement
from nvdash.support.axes import Values, axis_values
from nvdash.support.join import joined
from nvdash.support.matching import Match, matches, outcome
from nvdash.support.observations import Observation, observed
from nvdash.support.releases import nearest_read
from nvdash.support.resolve import CACHE_AXIS, resolve_cache
from nvdash.support.selection import Selection, select_pair
from nvdash.support.stage import flashinfer_path, stage_of
from nvdash.support.values import Resolved, StageVerdict, Verdict, worst
from nvdash.support.view import View, view
from nvdash.support.weights import weights_stage
from nvdash.targets import Combination

AUTO_BACKEND = "auto"


@dataclass(frozen=True, slots=True)
class Question:
    """One combination against one release that was read."""

    matrix: Matrix
    release: Release
    view: View
    combination: Combination
    observations: Sequence[Observation]


def verdict(matrix: Matrix, combination: Combination, observations: Sequence[Observation] = ()) -> Verdict:
    """The answer for one combination."""
    rules = matrix.rules(combination.framework)
    release = rules.release(combination.release)
    if release is None or not release.is_read:
        return _unread(combination, nearest_read(rules, combination.release))
    question = Question(matrix, release, view(rules, release.name), combination, observations)
    return answer(question)


def answer(question: Question) -> Verdict:
    """The answer of a prepared question; `pivot` and `timeline` prepare many on one view."""
    combination = question.combination
    values = axis_values(combination) | {"framework": combination.framework, "release": combination.release}
    model_dtype = combination.model_dtype or "the model's 16-bit type"
    cache, word = resolve_cache(question.view, values, model_dtype)
    chosen, attention = _attention(question, values, cache, word)
    weights = weights_stage(question.view, values, combination.experts)
    weights = observed(weights, "weights", values, question.release.flashinfer, question.observations)
    stages = {"weights": weights, **attention}
    resolved = {
        "weights": Resolved(combination.weights, combination.weights),
        CACHE_AXIS: cache,
        "backend": Resolved(combination.backend or AUTO_BACKEND, _backend_name(chosen)),
    }
    skipped = chosen[0].skipped if chosen else ()
    return Verdict(worst(stage.verdict for stage in stages.values()), stages, resolved, skipped)


def _attention(
    question: Question, values: Values, cache: Resolved, word: str | None
) -> tuple[tuple[Selection, Selection] | None, Mapping[str, StageVerdict]]:
    """The chosen backends and the three attention stages."""
    if word is None:
        return None, _all_stages(StageVerdict("unknown", reason=cache.reason))
    values = {**values, CACHE_AXIS: word}
    general = _general_refusal(question.view, values)
    if general is not None:
        return None, _all_stages(general)
    pair = _choose(question, values)
    backends = {"prefill": pair[0].backend, "decode": pair[1].backend}
    asked = values | {f"{stage}_backend": name for stage, name in backends.items() if name}
    stages = {stage: _stage(question, asked, stage, pair) for stage in ATTENTION_STAGES}
    return pair, stages


def _general_refusal(known: View, values: Values) -> StageVerdict | None:
    """A refusal that holds whatever the backend, e.g. a flag word the release does not know."""
    fits = known.matches(None, values)
    refused = [outcome(fits, stage) for stage in ATTENTION_STAGES]
    deciding = next((item for item in refused if item.verdict == "refused"), None)
    return stage_of(deciding, [], [], None) if deciding else None


def _choose(question: Question, values: Values) -> tuple[Selection, Selection]:
    combination = question.combination
    named = None if combination.backend == AUTO_BACKEND else combination.backend
    prefill, decode = combination.prefill_backend or named, combination.decode_backend or named
    if prefill and decode:
        return Selection(prefill), Selection(decode)
    automatic = select_pair(question.view, values)
    return (
        Selection(prefill) if prefill else automatic[0],
        Selection(decode) if decode else automatic[1],
    )


def _stage(question: Question, values: Values, stage: str, pair: tuple[Selection, Selection]) -> StageVerdict:
    """One attention stage; the cache is written in both phases, so its stage is the worse of both."""
    choices = {"prefill": pair[:1], "decode": pair[1:]}.get(
        stage, pair if pair[0].backend != pair[1].backend else pair[:1]
    )
    verdicts = [_stage_of_choice(question, values, stage, choice) for choice in choices]
    overall = worst(item.verdict for item in verdicts)
    return next(item for item in verdicts if item.verdict == overall)


def _stage_of_choice(question: Question, values: Values, stage: str, choice: Selection) -> StageVerdict:
    if choice.backend is None:
        return choice.instead or StageVerdict("unknown")
    asked = {**values, "backend": choice.backend}
    known = question.view
    fits = matches(known.support(choice.backend), asked)
    result = outcome(fits, stage)
    tags = _tags(known, asked, stage)
    missing = f"no rule for {choice.backend} with {asked[CACHE_AXIS]} on {asked['arch']}"
    settled = stage_of(result, _applying(fits, stage), tags, choice.backend, missing)
    path = flashinfer_path(result, tags)
    if path and settled.verdict != "refused":
        settled = joined(question.matrix, question.release, settled, stage, path, asked)
    return observed(settled, stage, asked, question.release.flashinfer, question.observations)


def _tags(known: View, values: Values, stage: str) -> list[Statement]:
    """The tags that apply, what a person wrote first, then the most specific first."""
    tags = [fit.statement for fit in matches(known.tag, values) if not fit.open and stage in fit.statement.stage]
    return sorted(tags, key=lambda item: (item.generated, -len(item.when)))


def _applying(fits: Sequence[Match], stage: str) -> list[Statement]:
    return [fit.statement for fit in fits if not fit.open and stage in fit.statement.stage]


def _all_stages(stage: StageVerdict) -> dict[str, StageVerdict]:
    return dict.fromkeys(ATTENTION_STAGES, stage)


def _backend_name(chosen: tuple[Selection, Selection] | None) -> str | None:
    if chosen is None:
        return None
    names = list(dict.fromkeys(choice.backend for choice in chosen))
    return names[0] if len(names) == 1 else " + ".join(name or "unknown" for name in names)


def _unread(combination: Combination, nearest: str | None) -> Verdict:
    """Nothing of this release was read, so nothing is known about it."""
    reason = f"{combination.framework} {combination.release} was not read; the nearest read release is {nearest}"
    stage = StageVerdict("unknown", reason=reason)
    resolved = {
        "weights": Resolved(combination.weights, combination.weights),
        CACHE_AXIS: Resolved(combination.kv_cache_dtype, None),
        "backend": Resolved(combination.backend or AUTO_BACKEND, None),
    }
    return Verdict("unknown", dict.fromkeys(STAGES, stage), resolved, nearest_release=nearest, reason=reason)
