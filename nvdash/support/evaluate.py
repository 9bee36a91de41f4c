"""Is this combination supported, stage by stage, and who says so: `verdict`.

The cache dtype is resolved first, then the backends are chosen as the release chooses them, then
every stage takes the worst of all statements that apply, is joined with the pinned FlashInfer, and
is raised or contradicted by what was observed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nvdash.readers.matrix import Matrix, Release
from nvdash.readers.statements import ATTENTION_STAGES, STAGES
from nvdash.support.axes import CACHE_AXIS, Values, axis_values, size_values
from nvdash.support.join import joined
from nvdash.support.matching import matches, outcome
from nvdash.support.observations import Observation, observed
from nvdash.support.releases import nearest_read
from nvdash.support.resolve import resolve_cache, resolve_model_dtype, resolved_weights, stored_by
from nvdash.support.selection import Selection, select_pair
from nvdash.support.stage import flashinfer_path, stage_of
from nvdash.support.values import RANK, Resolved, StageVerdict, Verdict, worst
from nvdash.support.view import View, view
from nvdash.support.weights import weights_stage
from nvdash.targets import Combination

AUTO_BACKEND = "auto"


@dataclass(frozen=True, slots=True)
class Question:
    """What a question is asked of: one release that was read, and what was observed."""

    matrix: Matrix
    release: Release
    view: View
    observations: Sequence[Observation]


def verdict(matrix: Matrix, combination: Combination, observations: Sequence[Observation] = ()) -> Verdict:
    """The answer for one combination."""
    rules = matrix.rules(combination.framework)
    release = rules.release(combination.release)
    if release is None or not release.is_read:
        return _unread(combination, nearest_read(rules, combination.release))
    values = axis_values(combination) | size_values(combination)
    return answer(Question(matrix, release, view(rules, release.name), observations), values)


def answer(question: Question, values: Values) -> Verdict:
    """The answer for the values of one combination; `pivot` asks many of one view."""
    values, replaced = resolve_model_dtype(question.view, values)
    cache, word = resolve_cache(question.view, values, replaced)
    chosen, attention = _attention(question, values, cache, word)
    backend = _backend_name(chosen)
    if word is not None and backend is not None:
        cache = stored_by(question.view, values, cache, word, backend)
    weights = weights_stage(question.view, values, question.matrix.axes().get("weight_flags", {}))
    if question.observations:
        weights = observed(weights, "weights", values, question.release.flashinfer, question.observations)
    resolved = {
        "weights": resolved_weights(values, replaced),
        CACHE_AXIS: cache,
        "backend": Resolved(values.get("backend") or AUTO_BACKEND, backend),
    }
    skipped = chosen[0].skipped if chosen else ()
    verdicts = (weights.verdict, *(stage.verdict for stage in attention.values()))
    return Verdict(worst(verdicts), {"weights": weights, **attention}, resolved, skipped)


def _attention(
    question: Question, values: Values, cache: Resolved, word: str | None
) -> tuple[tuple[Selection, Selection] | None, Mapping[str, StageVerdict]]:
    """The chosen backends and the three attention stages."""
    if word is None:
        return None, _all_stages(StageVerdict("unknown", reason=cache.reason))
    asked_word, values = values[CACHE_AXIS], {**values, CACHE_AXIS: word}
    general = _general_refusal(question.view, values, asked_word)
    if general is not None:
        return None, _all_stages(general)
    pair = _choose(question, values)
    backends = {"prefill": pair[0].backend, "decode": pair[1].backend}
    asked = values | {f"{stage}_backend": name for stage, name in backends.items() if name}
    prefill = decode = _BackendStages(question, asked, pair[0])
    if pair[1] is not pair[0]:
        decode = _BackendStages(question, asked, pair[1])
    written = [prefill.stage("kv_write")] + ([decode.stage("kv_write")] if decode is not prefill else [])
    stages = {
        "kv_write": min(written, key=lambda item: RANK[item.verdict]),
        "prefill": prefill.stage("prefill"),
        "decode": decode.stage("decode"),
    }
    return pair, stages


def _general_refusal(known: View, values: Values, asked_word: str) -> StageVerdict | None:
    """A refusal that holds whatever the backend, remembered by the values that such refusals limit."""
    key = (asked_word, *map(values.get, known.general_axes))
    if key not in known.general:
        known.general[key] = _judged_refusal(known, values, asked_word)
    return known.general[key]


def _judged_refusal(known: View, values: Values, asked_word: str) -> StageVerdict | None:
    """A word that the release does not know is one that was asked for; the others are about what it becomes."""
    fits = [*matches(known.flag_words, {**values, CACHE_AXIS: asked_word}), *known.matches(None, values)]
    refused = [fit for fit in fits if not fit.open and fit.statement.verdict == "refused"]
    return stage_of(outcome(refused, refused[0].statement.stage[0]), [], [], None) if refused else None


def _choose(question: Question, values: Values) -> tuple[Selection, Selection]:
    prefill, decode = values.get("prefill_backend"), values.get("decode_backend")
    if prefill and prefill == decode:
        chosen = Selection(prefill)
        return chosen, chosen
    automatic = (None, None) if prefill and decode else select_pair(question.view, values)
    return automatic[0] or Selection(prefill), automatic[1] or Selection(decode)


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
        if settled.verdict == "unknown" and settled.reason is None:
            settled = replace(settled, reason=self._no_rule())
        question, release = self._question, self._question.release
        if path and settled.verdict != "refused":
            settled = joined(question.matrix, release, settled, name, path, self._values)
        if not question.observations:
            return settled
        return observed(settled, name, self._values, release.flashinfer, question.observations)

    def _no_rule(self) -> str:
        values = self._values
        return f"no rule for {values['backend']} with {values[CACHE_AXIS]} on {values['arch']}"

    def _settled(self, name: str) -> tuple[StageVerdict, str | bool]:
        """What the statements say: once for all stages when none of them tells stages apart."""
        if self._shared is None or not self._alike:
            self._shared = self._remembered(name) if self._fits else self._judge(name)
        return self._shared

    def _remembered(self, name: str) -> tuple[StageVerdict, str | bool]:
        """The same statements say the same of every cell of a grid."""
        judged = self._question.view.judged
        said = (self._choice.backend, "" if self._alike else name, *self._fits, *self._tags)
        if said not in judged:
            judged[said] = self._judge(name)
        return judged[said]

    def _judge(self, name: str) -> tuple[StageVerdict, str | bool]:
        result = outcome(self._fits, name)
        tags = [tag for tag in self._tags if name in tag.stage]
        applying = [fit.statement for fit in self._fits if not fit.open and name in fit.statement.stage]
        return stage_of(result, applying, tags, self._choice.backend), flashinfer_path(result, tags)


def _all_stages(stage: StageVerdict) -> dict[str, StageVerdict]:
    return dict.fromkeys(ATTENTION_STAGES, stage)


def _backend_name(chosen: tuple[Selection, Selection] | None) -> str | None:
    if chosen is None:
        return None
    if chosen[0] is chosen[1]:
        return chosen[0].backend
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
