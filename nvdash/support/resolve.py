"""What a release makes of a requested cache dtype: `auto` follows the checkpoint, and so may a named one."""

from dataclasses import replace

from nvdash.support.axes import Values
from nvdash.support.matching import matches
from nvdash.support.values import Resolved
from nvdash.support.view import View

AUTO = "auto"
MODEL_DTYPE = "model_dtype"
CACHE_AXIS = "kv_cache_dtype"
UNNAMED_DTYPE = "the model's 16-bit type"
UNREAD_SCHEME = "what auto becomes is unknown: the checkpoint's kv_cache_scheme was not read"


def resolve_cache(view: View, values: Values) -> tuple[Resolved, str | None]:
    """The resolved dtype, and the word that statements use for it (None when it cannot be told)."""
    requested = values[CACHE_AXIS]
    model_dtype = values.get("model_dtype") or UNNAMED_DTYPE
    fits = sorted(matches(view.cache_rules, values), key=lambda fit: -len(fit.statement.when))
    certain = next((fit.statement for fit in fits if not fit.open), None)
    if certain is not None:
        named = str(certain.becomes)
        wide = named == MODEL_DTYPE
        return (
            Resolved(
                requested,
                model_dtype if wide else named,
                certain.reason,
                certain.citation(),
                certain.kv_format,
                certain.silent,
            ),
            AUTO if wide else named,
        )
    if requested != AUTO:
        return Resolved(requested, requested), requested
    if values.get("checkpoint_kv") == "none":
        return Resolved(requested, model_dtype), AUTO
    return Resolved(requested, None, _why_unknown(values)), None


def stored_by(view: View, values: Values, cache: Resolved, word: str, backend: str) -> Resolved:
    """The dtype after the backend is chosen: some store another record than the flag's word says."""
    fits = matches(view.stored_rules, {**values, CACHE_AXIS: word, "backend": backend})
    certain = next((fit.statement for fit in fits if not fit.open), None)
    if certain is None:
        return cache
    return replace(
        cache,
        resolved=certain.becomes,
        reason=certain.reason,
        evidence=certain.citation(),
        kv_format=certain.kv_format,
        silent=certain.silent,
    )


def _why_unknown(values: Values) -> str:
    scheme = values.get("checkpoint_kv")
    if scheme is None:
        return UNREAD_SCHEME
    return f"what auto becomes is unknown: this release's rule for a checkpoint with a {scheme} cache was not read"
