"""Joins a framework's verdict with the FlashInfer release that it pins.

A kernel library's refusal or trap lowers the verdict; what is not known of it is only assumed.
"""

from dataclasses import replace

from nvdash.readers.matrix import Matrix, Release
from nvdash.support.axes import Values
from nvdash.support.matching import Outcome, matches, outcome
from nvdash.support.values import RANK, StageVerdict
from nvdash.support.view import View, view

FLASHINFER = "flashinfer"
CUBIN = "flashinfer-cubin"
CUBIN_PATH = "trtllm-gen"
SHARED_AXES = (
    "arch",
    "kind",
    "mla",
    "sparse",
    "query_heads",
    "kv_heads",
    "head_size",
    "value_head_size",
    "equal_head_sizes",
)


def joined(
    matrix: Matrix, release: Release, stage: StageVerdict, name: str, path: str | bool, values: Values
) -> StageVerdict:
    """The stage after asking FlashInfer, and its kernel files where the path loads them."""
    stage = _with_library(matrix, FLASHINFER, release.flashinfer, stage, name, path, values, "flashinfer_path_unread")
    if path == CUBIN_PATH:
        stage = _with_library(matrix, CUBIN, release.flashinfer, stage, name, path, values, "cubin_present")
    return stage


def _with_library(
    matrix: Matrix,
    library: str,
    version: str | None,
    stage: StageVerdict,
    name: str,
    path: str | bool,
    values: Values,
    assumption: str,
) -> StageVerdict:
    rules = matrix.find_rules(library)
    release = rules.release(version) if rules and version else None
    if rules is None or release is None or not release.is_read or not isinstance(path, str):
        return _assuming(stage, assumption)
    known = view(rules, release.name)
    asked = {axis: values[axis] for axis in SHARED_AXES if axis in values}
    asked |= {"kv_cache_dtype": cache_format(matrix, values), "backend": path}
    result = outcome(known.matches(path, asked), name)
    return _lowered(_with_tags(stage, known, asked, name), result, f"{library} {version}", assumption)


def cache_format(matrix: Matrix, values: Values) -> str:
    """The stored format behind a framework's flag word, as FlashInfer's statements name it."""
    flag = str(values["kv_cache_dtype"])
    formats = matrix.axes().get("kv_formats", {}).get(values["framework"], {})
    return str(formats.get(flag, flag))


def _lowered(stage: StageVerdict, result: Outcome, library: str, assumption: str) -> StageVerdict:
    statement = result.statement
    if result.verdict == "unknown":
        return _assuming(stage, assumption)
    if RANK[result.verdict] >= RANK[stage.verdict] or statement is None:
        return stage
    if result.verdict == "conditional":
        return replace(stage, verdict="conditional", conditions=(*stage.conditions, *result.conditions()))
    return replace(
        stage,
        verdict=result.verdict,
        layer=statement.layer or "kernel",
        reason=f"{library}: {statement.reason}",
        evidence=statement.citation(),
        statement=statement.id,
    )


def _with_tags(stage: StageVerdict, known: View, asked: Values, name: str) -> StageVerdict:
    tags = [fit.statement for fit in matches(known.tag, asked) if not fit.open and name in fit.statement.stage]
    warnings = tuple(tag.warning for tag in tags if tag.warning)
    reports = tuple(report for tag in tags for report in tag.reports)
    return replace(stage, warnings=(*stage.warnings, *warnings), reports=(*stage.reports, *reports))


def _assuming(stage: StageVerdict, assumption: str) -> StageVerdict:
    return replace(stage, assumes=tuple(sorted({*stage.assumes, assumption})))
