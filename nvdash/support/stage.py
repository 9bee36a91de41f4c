"""Turns the outcome of a stage into its verdict: the deciding statement, and the tags beside it."""

from collections.abc import Sequence
from typing import Any

from nvdash.readers.statements import Statement
from nvdash.support.matching import Outcome
from nvdash.support.values import StageVerdict


def stage_of(
    result: Outcome, applying: Sequence[Statement], tags: Sequence[Statement], backend: str | None
) -> StageVerdict:
    """The stage's verdict; kernel, path and compute come from the deciding statement, else from the nearest tag.

    Tags describe what runs; where no statement decides, nothing is known to run.
    """
    deciding = result.statement
    speakers = [deciding, *tags] if deciding else []
    is_shown = deciding is not None and result.verdict != "conditional"
    reason = deciding.reason if deciding and is_shown else None
    return StageVerdict(
        verdict=result.verdict,
        backend=backend,
        kernel=_first(speakers, "kernel"),
        compute=_first(speakers, "compute"),
        path=_first(speakers, "path"),
        layer=deciding.layer if deciding and is_shown and result.verdict != "unknown" else None,
        reason=reason or _needs(result),
        evidence=deciding.citation() if deciding else None,
        statement=deciding.id if deciding else None,
        conditions=result.conditions(),
        assumes=_union(speakers, "assumes"),
        reports=_union([*applying, *tags], "reports"),
        warnings=tuple(item.warning for item in [*applying, *tags] if item.warning),
    )


def _needs(result: Outcome) -> str | None:
    """What would decide it, where a statement says that it is undecided."""
    needs = result.statement.needs if result.statement and result.verdict == "unknown" else ()
    return f"undecided: it needs {' and '.join(needs)}" if needs else None


def flashinfer_path(result: Outcome, tags: Sequence[Statement]) -> str | bool:
    """The FlashInfer path that runs: what a tag names or denies, before a mere "it needs FlashInfer"."""
    speakers = [*tags, *([result.statement] if result.statement else [])]
    said = [need for item in speakers if (need := item.requires_flashinfer) is not None]
    return next((need for need in said if need is not True), bool(said))


def _first(statements: Sequence[Statement], name: str) -> Any:
    return next((value for item in statements if (value := getattr(item, name)) is not None), None)


def _union(statements: Sequence[Statement], name: str) -> tuple[Any, ...]:
    values: list[Any] = []
    for item in statements:
        values += [value for value in getattr(item, name) if value not in values]
    return tuple(values)
