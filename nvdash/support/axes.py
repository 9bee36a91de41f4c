"""The values that a question fixes on each axis of the matrix; an axis that is absent is left open."""

from typing import Any

from nvdash.targets import Combination, HeadLayout

LATENT_KINDS = ("mla", "mla_sparse")
WIDE = ("bf16", "bfloat16", "fp16", "float16")
"""Unquantised weights: no method is involved."""
Values = dict[str, Any]
NO_CLASS = ""
"""The class where no model is named: what holds for the classes of some models says nothing of such a question."""
CACHE_AXIS = "kv_cache_dtype"
DEFAULT_MODEL_DTYPE = "bfloat16"
"""The activations that a question asks for unless its model or its weights say otherwise."""


def axis_values(combination: Combination) -> Values:
    """Everything the combination fixes, by axis; the last five are no axes and only travel along."""
    given: Values = {
        "backend": combination.backend,
        "prefill_backend": combination.prefill_backend or combination.backend,
        "decode_backend": combination.decode_backend or combination.backend,
        "arch": combination.arch,
        "kv_cache_dtype": combination.kv_cache_dtype,
        "weights": combination.weights,
        "method": "none" if combination.weights in WIDE and not combination.method else combination.method,
        "dcp": combination.dcp,
        "drafter": combination.drafter is not None,
        "causal": combination.causal,
        "graphs": "eager" if combination.graphs is False else "default",
        "checkpoint_kv": combination.checkpoint_kv,
        "model_base": combination.model_base,
        "model_class": combination.model_class or NO_CLASS,
        "model_dtype": combination.model_dtype or unnamed_dtype(combination.weights),
        **(head_values(combination.heads, combination.tp) if combination.heads else {}),
        "framework": combination.framework,
        "release": combination.release,
        "experts": combination.experts,
        "named_dtype": combination.model_dtype,
    }
    if combination.sinks is not None:
        given["sinks"] = combination.sinks
    return {axis: value for axis, value in given.items() if value is not None}


def unnamed_dtype(weights: str | None) -> str:
    """The type that is taken where neither a model nor its config names one."""
    return "float16" if weights in ("fp16", "float16") else DEFAULT_MODEL_DTYPE


def head_values(heads: HeadLayout, tp: int = 1) -> Values:
    """What a head layout fixes; head counts are those of one rank, as a selector sees them."""
    return {
        "kind": heads.kind,
        "mla": heads.kind in LATENT_KINDS,
        "sparse": heads.kind == "mla_sparse",
        "query_heads": heads.query_heads // tp,
        "kv_heads": max(1, heads.kv_heads // tp),
        "head_size": heads.key_size,
        "value_head_size": heads.value_size,
        "equal_head_sizes": heads.key_size == heads.value_size,
        "window": heads.window or 0,
        "sinks": heads.sinks,
    }


def size_values(combination: Combination) -> Values:
    """How the parallel sizes of one question relate; a grid names no tensor parallel size and leaves these open."""
    tp, dcp, heads = combination.tp, combination.dcp, combination.heads
    values: Values = {"dcp_divides_tp": tp % dcp == 0}
    if heads is not None:
        values |= {
            "tp_above_kv_heads": tp > heads.kv_heads,
            "dcp_fits_kv_heads": dcp <= tp // heads.kv_heads,
            "dcp_divides_head_group": heads.query_heads // heads.kv_heads % dcp == 0,
        }
    return values
