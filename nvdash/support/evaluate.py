"""Is this combination supported, stage by stage, and who says so: `verdict`.

The cache dtype is resolved first, then the backends are chosen as the release chooses them, then
every stage takes the worst of all statements that apply, is joined with the pinned FlashInfer, and
is raised or contradicted by what was observed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nvdash.readers.matrix import Matrix, Release
from nvdash.readers.statements import ATTENTION_STAGES, STAGES
from nvdash.support.axes import Values, axis_values
from nvdash.support.join import joined
from nvdash.support.matching import matches, outcome
from nvdash.support.observations import Observation, observed
from nvdash.support.releases import nearest_read
from nvdash.support.resolve import CACHE_AXIS, resolve_cache
from nvdash.support.selection import Selection, select_pair
from nvdash.support.stage import flashinfer_path, stage_of
from nvdash.support.values import RANK, Resolved, StageVerdict, Verdict, worst
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
    prefill = decode = _BackendStages(question, asked, pair[0])
    if pair[1] != pair[0]:
        decode = _BackendStages(question, asked, pair[1])
    written = [prefill.stage("kv_write")] + ([decode.stage("kv_write")] if decode is not prefill else [])
    stages = {
        "kv_write": min(written, key=lambda item: RANK[item.verdict]),
        "prefill": prefill.stage("prefill"),
        "decode": decode.stage("decode"),
    }
    return pair, stages


def _general_refusal(known: View, values: Values) -> StageVerdict | None:
    """A refusal that holds whatever the backend, e.g. a flag word the release does not know."""
    fits = known.matches(None, values)
    refused = [fit for fit in fits if not fit.open and fit.statement.verdict == "refused"]
    return stage_of(outcome(refused, refused[0].statement.stage[0]), [], [], None) if refused else None


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


class _BackendStages:
    """The stages of one chosen backend; its statements are matched once for all of them."""

    def __init__(self, question: Question, values: Values, choice: Selection) -> None:
        self._question, self._choice = question, choice
        self._values = {**values, "backend": choice.backend}
        known = question.view
        self._fits = matches(known.support(choice.backend), self._values) if choice.backend else []
        tags = matches(known.tags(choice.backend), self._values) if choice.backend else []
        self._tags = [fit.statement for fit in tags if not fit.open]
        everything = [*(fit.statement for fit in self._fits), *self._tags]
        self._alike = all(len(statement.stage) == len(ATTENTION_STAGES) for statement in everything)
        self._shared: tuple[StageVerdict, str | bool] | None = None

    def stage(self, name: str) -> StageVerdict:
        """One stage, joined with the pinned FlashInfer and with what was observed."""
        if self._choice.backend is None:
            return self._choice.instead or StageVerdict("unknown")
        settled, path = self._settled(name)
        question, release = self._question, self._question.release
        if path and settled.verdict != "refused":
            settled = joined(question.matrix, release, settled, name, path, self._values)
        if not question.observations:
            return settled
        return observed(settled, name, self._values, release.flashinfer, question.observations)

    def _settled(self, name: str) -> tuple[StageVerdict, str | bool]:
        """What the statements say, once for all stages when none of them tells stages apart."""
        if self._alike and self._shared:
            return self._shared
        result = outcome(self._fits, name)
        tags = [tag for tag in self._tags if name in tag.stage]
        applying = [fit.statement for fit in self._fits if not fit.open and name in fit.statement.stage]
        values = self._values
        missing = f"no rule for {values['backend']} with {values[CACHE_AXIS]} on {values['arch']}"
        settled = stage_of(result, applying, tags, self._choice.backend, missing)
        self._shared = settled, flashinfer_path(result, tags)
        return self._shared


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
