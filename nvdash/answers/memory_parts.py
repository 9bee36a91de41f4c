"""The parts of a memory answer that more than one of its questions needs: budget, pools, verdict."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nvdash.answers.memory_question import MemoryQuestion
from nvdash.errors import NvdashError
from nvdash.formats import RECORD_FLAGS

if TYPE_CHECKING:
    from nvdash.footprint.budget import Budget, Setting

REFUSING = ("refused", "trap")
SEVERAL_RECORDS = ("mla_sparse", "deepseek_v4")
"""Layouts for which the attention backend decides what a cache flag stores."""


def budget_of(asked: MemoryQuestion) -> "Budget | None":
    """What the GPU leaves for the cache; None without a GPU, its total or the weights."""
    if asked.gpu is None or asked.weights is None or asked.pools is not None:
        return None
    from nvdash.answers.memory_measured import measured_of
    from nvdash.footprint.budget import budget
    from nvdash.readers.budget_rules import budget_rules

    setting, rules = setting_of(asked), budget_rules()
    return budget(asked.gpu, asked.weights, setting, rules, measured_of(asked, setting, rules))


def setting_of(asked: MemoryQuestion) -> "Setting":
    """What of the question decides the budget's items."""
    from nvdash.footprint.budget import Setting

    request, parts = asked.request, asked.weights.by_component if asked.weights else {}
    return Setting(
        framework=request.framework,
        release=request.release,
        tp=request.tp,
        utilisation=asked.utilisation,
        experts="experts" in parts,
        vision="vision" in parts,
    )


def pools_of(asked: MemoryQuestion, share: "Budget | None") -> tuple[tuple[int, ...], ...]:
    """The cache's bytes: stated once, or low, typical and high; nothing where they are not known."""
    if asked.pools is not None:
        return (asked.pools,)
    if share is None:
        return ()
    return (share.typical,) if share.exact else (share.low, share.typical, share.high)


def support_of(asked: MemoryQuestion) -> dict[str, Any] | None:
    """The verdict on the combination; None without a GPU, unknown where the matrix has nothing."""
    if asked.gpu is None:
        return None
    from nvdash.answers.check import check

    try:
        found = check(support_question(asked), neighbours=False)
    except NvdashError as refusal:
        return {"verdict": "unknown", "reason": f"{refusal.where}: expected {refusal.expected}, {refusal.found}"}
    keys = ("verdict", "layer", "reason", "resolved", "stages", "unmet_conditions", "nearest_release", "conflicts")
    return {key: found.get(key) for key in keys}


def as_stored(asked: MemoryQuestion, support: Mapping[str, Any] | None) -> MemoryQuestion:
    """The question with the record that the chosen backend stores: for sparse MLA one flag means several."""
    resolved = (support or {}).get("resolved") or {}
    if asked.layout.family not in SEVERAL_RECORDS or resolved.get("backend") is None:
        return asked
    request = replace(asked.request, backend=resolved["backend"])
    if resolved["kv_cache_dtype"] in RECORD_FLAGS:
        request = replace(request, kv_cache_dtype=resolved["kv_cache_dtype"])
    return replace(asked, request=request)


def support_question(asked: MemoryQuestion, dtype: str | None = None) -> dict[str, Any]:
    """The support question behind a memory question."""
    named = "framework release gpu model weights backend tp pp dcp draft_method draft_model".split()
    found = {key: asked.echo.get(key) for key in named}
    return {
        **found,
        "checkpoint": asked.echo.get("checkpoint"),
        "kv_cache_dtype": dtype or asked.echo["kv_cache_dtype"],
    }
