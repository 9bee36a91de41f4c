"""Is this combination supported, stage by stage, in this release; if not, who refuses and where."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.answers.asked import FLAGS, Asked, asked
from nvdash.answers.assumed import contradicted
from nvdash.answers.envelope import envelope
from nvdash.errors import NvdashError, Problems, UsageError, did_you_mean
from nvdash.readers.matrix import Matrix, current
from nvdash.support.evaluate import verdict
from nvdash.support.observations import Observation
from nvdash.support.releases import age_days
from nvdash.support.values import RANK, Verdict, worst
from nvdash.support.whole import unnamed, verdict_of_all, with_drafter, without_assumptions
from nvdash.targets import Combination

if TYPE_CHECKING:
    from nvdash.readers.yaml_rows import Row

YES, NO, UNKNOWN = 0, 1, 3


def check(question: Mapping[str, Any], matrix: Matrix | None = None, *, neighbours: bool = True) -> dict[str, Any]:
    """The answer to one support question; keys are the flags of `check` with underscores.

    Without `neighbours` the nearest combinations that run are not sought, which takes most of a refusal's time.
    """
    matrix = matrix or current()
    wanted = asked(question, matrix)
    return _answer(wanted, matrix, neighbours)


def verdict_of(question: Mapping[str, Any], matrix: Matrix | None = None) -> str:
    """The verdict alone, by the flags of `check` among these words; unknown where the question is refused."""
    try:
        found = check({name: value for name, value in question.items() if name in FLAGS}, matrix, neighbours=False)
    except NvdashError:
        return "unknown"
    return str(found["verdict"])


def _answer(wanted: Asked, matrix: Matrix, neighbours: bool) -> dict[str, Any]:
    seen = observations_of(wanted.combinations[0])
    found = verdict_of_all(matrix, wanted.combinations, seen)
    if wanted.drafter is not None:
        drafter = verdict(matrix, wanted.drafter, seen)
        found = with_drafter(found, drafter if wanted.drafter.heads else unnamed(drafter))
    broken = contradicted(found.assumes(), wanted.model)
    found = without_assumptions(found, broken)
    rules = matrix.rules(wanted.combinations[0].framework)
    newest = rules.newest
    return envelope(
        "check",
        dict(wanted.echo),
        verdict=found.verdict,
        conflicts=found.conflicts(),
        layer=found.layer,
        reason=found.reason or found.deciding.reason,
        stages={name: stage.as_dict() for name, stage in found.stages.items()},
        resolved=_resolved(found, wanted),
        resolution={name: item.as_dict() for name, item in found.resolved.items()},
        skipped_backends=[refusal.as_dict() for refusal in found.skipped],
        assumes=found.assumes(),
        unmet_conditions=found.conditions(),
        reports=[dict(report) for report in found.reports()],
        nearest=_nearest(matrix, wanted, found, seen) if neighbours else [],
        nearest_release=found.nearest_release,
        notes=[*wanted.notes, *(why for why in broken.values() if why not in found.conditions())],
        checkpoint=_checkpoint(wanted),
        newest_release=newest.name if newest else None,
        newest_release_date=newest.date if newest else None,
        newest_release_age_days=age_days(newest, date.today()) if newest else None,
    )


def exit_code(answer: Mapping[str, Any]) -> int:
    """0 when the verdict reaches what the question requires, 3 when it is unknown, 1 otherwise."""
    if "rows" in answer:
        codes = [exit_code(row) for row in answer["rows"]]
        return next((code for code in (2, NO, UNKNOWN) if code in codes), YES)
    if "error" in answer:
        return int(answer["error"]["exit_code"])
    if answer["verdict"] == "unknown":
        return UNKNOWN
    required = answer["question"].get("require", "conditional")
    return YES if RANK[answer["verdict"]] >= RANK[required] else NO


def check_fleet(questions: Sequence[Mapping[str, Any]], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The answers for many configurations, each by its own words; the verdict is the worst."""
    matrix = current()
    rows = [_fleet_row(question, defaults, matrix) for question in questions]
    verdicts = [row["verdict"] for row in rows if "verdict" in row]
    return envelope("check-fleet", {"rows": len(rows), **defaults}, verdict=worst(verdicts), rows=rows)


def check_fleet_file(path: Path, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The answers for a YAML list of configurations; flags given beside it are their defaults."""
    return check_fleet(fleet_rows(path), {key: value for key, value in defaults.items() if value is not None})


def fleet_rows(path: Path) -> list["Row"]:
    """The configurations of a fleet file; every slip in it is told at once, with its line."""
    from nvdash.readers.statement_rows import version_problems
    from nvdash.readers.yaml_rows import YamlError, read_rows

    rows = read_rows(path)
    if not rows:
        raise UsageError(str(path), "at least one configuration", "found none")
    known = FLAGS | {"name"}
    problems: list[NvdashError] = []
    for row in rows:
        for key in row.keys() - known:
            place = f"{path}:{row.lines[key]} {key}"
            problems.append(YamlError(place, "a flag of check", "an unknown one", did_you_mean(key, known)))
        problems += version_problems(row, str(path), "release") if row.get("release") is not None else ()
    if problems:
        raise Problems(str(path), problems)
    return rows


def _fleet_row(question: Mapping[str, Any], defaults: Mapping[str, Any], matrix: Matrix) -> dict[str, Any]:
    words = {key: value for key, value in question.items() if key != "name"}
    try:
        row = check({**defaults, **words}, matrix)
    except NvdashError as refusal:
        row = {"error": {**refusal.as_dict(), "exit_code": refusal.exit_code}}
    return {"name": question.get("name"), **row}


def observations_of(combination: Combination) -> list[Observation]:
    """What this store has seen of the framework on this architecture."""
    from nvdash.store import observations

    return observations(combination.framework, combination.arch)


def _resolved(found: Verdict, wanted: Asked) -> dict[str, Any]:
    row = {name: item.resolved for name, item in found.resolved.items()}
    checkpoint = wanted.checkpoint
    return {**row, "method": wanted.combinations[0].method, "checkpoint": checkpoint.repository if checkpoint else None}


def _checkpoint(wanted: Asked) -> dict[str, Any] | None:
    """The known checkpoint behind the weights, and what its config asks of the cache."""
    row = wanted.checkpoint
    if row is None:
        return None
    return {
        "repository": row.repository,
        "weights": row.weights,
        "method": row.method or None,
        "activations": row.activations or None,
        "kv_cache_scheme": (row.kv_cache_scheme or "none") if row.kv_cache_scheme_known else None,
    }


def _nearest(matrix: Matrix, wanted: Asked, found: Verdict, seen: Sequence[Observation]) -> list[dict[str, Any]]:
    """The smallest changes of one axis that run, when this does not."""
    if RANK[found.verdict] >= RANK["conditional"]:
        return []
    from nvdash.support.nearest import nearest

    return [change.as_dict() for change in nearest(matrix, wanted.combinations, seen)]
