"""What a release makes of a model's own type and of a requested cache dtype.

A GPU may lack the model's type, `auto` follows the checkpoint, and the code of a model may replace even a named
dtype. Each rule is applied once, to what the one before it left.
"""

from dataclasses import replace

from nvdash.readers.statements import Statement
from nvdash.support.axes import CACHE_AXIS, WIDE, Values
from nvdash.support.values import Resolved
from nvdash.support.view import View

AUTO = "auto"
MODEL_DTYPE = "model_dtype"
WEIGHTS = "weights"
UNNAMED_DTYPE = "the model's 16-bit type"
UNREAD_SCHEME = "what auto becomes is unknown: the checkpoint's kv_cache_scheme was not read"
WEIGHT_NAMES = {"float16": "fp16", "bfloat16": "bf16"}


def resolve_model_dtype(view: View, values: Values) -> tuple[Values, Statement | None]:
    """The values with the type that the release runs the model in, and the statement that replaced it."""
    statement = view.dtype_rules.of(values)
    if statement is None:
        return values, None
    named = str(statement.becomes)
    return {**values, MODEL_DTYPE: named, "named_dtype": named}, statement


def resolved_weights(values: Values, replaced: Statement | None) -> Resolved:
    """Wide weights are held in the type the model runs in; others stay as they are stored."""
    weights = values.get(WEIGHTS)
    if replaced is None or weights not in WIDE:
        return Resolved(weights, weights)
    named = WEIGHT_NAMES.get(str(replaced.becomes), str(replaced.becomes))
    return Resolved(weights, named, replaced.reason, replaced.citation())


def resolve_cache(view: View, values: Values, replaced: Statement | None = None) -> tuple[Resolved, str | None]:
    """The resolved dtype, and the word that statements use for it (None when it cannot be told)."""
    requested = values[CACHE_AXIS]
    applied: list[Statement] = []
    before, word = None, requested
    while word != before and (statement := view.cache_rules.of({**values, CACHE_AXIS: word})):
        before, word = word, AUTO if statement.becomes == MODEL_DTYPE else str(statement.becomes)
        if statement in applied:
            break
        applied.append(statement)
    if not applied and requested == AUTO and values.get("checkpoint_kv") != "none":
        return Resolved(requested, None, _why_unknown(values)), None
    speakers = [replaced] if replaced and word == AUTO else applied[-1:]
    named = (values.get("named_dtype") or UNNAMED_DTYPE) if word == AUTO else word
    return _told(Resolved(requested, named), speakers), word


def stored_by(view: View, values: Values, cache: Resolved, word: str, backend: str) -> Resolved:
    """The dtype after the backend is chosen: some store another record than the flag's word says."""
    statement = view.stored_rules.of({**values, CACHE_AXIS: word, "backend": backend})
    return cache if statement is None else _told(replace(cache, resolved=statement.becomes), [statement])


def _told(cache: Resolved, speakers: list[Statement]) -> Resolved:
    if not speakers:
        return cache
    by = speakers[0]
    return replace(cache, reason=by.reason, evidence=by.citation(), kv_format=by.kv_format, silent=by.silent)


def _why_unknown(values: Values) -> str:
    scheme = values.get("checkpoint_kv")
    if scheme is None:
        return UNREAD_SCHEME
    return f"what auto becomes is unknown: this release's rule for a checkpoint with a {scheme} cache was not read"
