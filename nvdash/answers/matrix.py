"""The matrix asked as a whole: facts, timelines, differences, grids, checks, drift and proposals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.answers.asked import Asked, asked
from nvdash.answers.check import fleet_rows, observations_of
from nvdash.answers.envelope import envelope
from nvdash.errors import NvdashError, UnknownError, UsageError, did_you_mean
from nvdash.readers.matrix import Matrix, current, framework_names, read_facts
from nvdash.support.nearest import nearest as nearest_changes
from nvdash.support.pivot import PIVOT_AXES, Cell, change
from nvdash.support.values import RANK
from nvdash.targets import Combination

if TYPE_CHECKING:
    from nvdash.readers.yaml_rows import Row

Question = Mapping[str, Any]
STAGES = ("weights", "kv_write", "prefill", "decode")
ANY_GPU = "sm120"
"""Stands in where GPUs are an axis of the answer, and is not part of it."""


def facts(framework: str, release: str) -> list[dict[str, Any]]:
    """What the source of one release declares: `{fact, value, path, line}`, in the order of the file."""
    rows = read_facts(framework, release)
    if rows is None:
        rules = current().rules(framework)
        hint = did_you_mean(release, [known.name for known in rules.releases])
        raise UnknownError(f"{framework} {release}", "a release with facts", "nothing was read of it", hint)
    return rows


def timeline(question: Question, stage: str | None = None) -> dict[str, Any]:
    """One combination over every release, as stretches with the same answer."""
    from nvdash.support.timeline import timeline as stretches_of

    matrix = current()
    wanted = asked(question, matrix)
    combination = wanted.combinations[0]
    stretches = stretches_of(matrix, wanted.combinations, observations_of(combination), _stage(stage))
    rules = matrix.rules(combination.framework)
    echo = {**wanted.echo, "release": None, "stage": stage}
    newest = rules.newest.name if rules.newest else None
    return envelope("timeline", echo, stretches=[item.as_dict() for item in stretches], newest_release=newest)


def nearest(question: Question) -> dict[str, Any]:
    """The smallest changes of one axis after which the combination runs."""
    matrix = current()
    wanted = asked(question, matrix)
    changes = nearest_changes(matrix, wanted.combinations, observations_of(wanted.combinations[0]))
    return envelope("nearest", dict(wanted.echo), nearest=[change.as_dict() for change in changes])


def pivot(
    question: Question,
    rows: str,
    columns: str,
    stage: str | None = None,
    row_values: Sequence[str] = (),
    column_values: Sequence[str] = (),
    with_since: bool = True,
) -> dict[str, Any]:
    """A grid of verdicts over two axes; values that are not given are all that the matrix names."""
    from nvdash.support.pivot import pivot as grid_of

    for axis in (rows, columns):
        if axis not in PIVOT_AXES:
            raise UsageError(
                f"axis {axis!r}", " or ".join(PIVOT_AXES), "an unknown one", did_you_mean(axis, PIVOT_AXES)
            )
    if rows == columns:
        raise UsageError("axes", "two different axes", f"{rows} twice")
    matrix = current()
    given = {key: value for key, value in question.items() if value is not None}
    wanted = asked({"gpu": ANY_GPU, **given} if "arch" in (rows, columns) else given, matrix)
    combination = wanted.combinations[0]
    values = {
        rows: tuple(row_values) or axis_names(matrix, combination, rows),
        columns: tuple(column_values) or axis_names(matrix, combination, columns),
    }
    seen = observations_of(combination)
    across = (rows, values[rows]), (columns, values[columns])
    grids = [grid_of(matrix, item, *across, seen, _stage(stage), with_since) for item in _shapes(wanted, rows, columns)]
    cells = [[_worst(column).as_dict() for column in zip(*line, strict=True)] for line in zip(*grids, strict=True)]
    return envelope(
        "pivot",
        {**opened(wanted.echo, (rows, columns)), "stage": stage},
        rows={"axis": rows, "values": values[rows]},
        columns={"axis": columns, "values": values[columns]},
        cells=cells,
    )


def opened(echo: Question, axes: Iterable[str]) -> dict[str, Any]:
    """The question without the values of the axes that the answer runs over."""
    flags = {"arch": ("gpu", "arch"), "heads": ("head_layout",)}
    return {**echo, **{flag: None for axis in axes for flag in flags.get(axis, (axis,))}}


def _shapes(wanted: Asked, *axes: str) -> Sequence[Combination]:
    """Every attention shape of the model, unless the shape is an axis itself."""
    return wanted.combinations[:1] if "heads" in axes else wanted.combinations


def _worst(cells: Iterable[Cell]) -> Cell:
    return min(cells, key=lambda cell: RANK[cell.verdict])


def axis_names(matrix: Matrix, combination: Combination, axis: str) -> tuple[str, ...]:
    """The values an axis can take for this framework and release."""
    from nvdash.support.names import archs, cache_dtypes
    from nvdash.support.view import view

    rules = matrix.rules(combination.framework)
    release = rules.release(combination.release)
    if axis == "release":
        return tuple(item.name for item in rules.releases)
    if axis == "weights":
        return tuple(matrix.axes()["weights"])
    if axis == "dcp":
        return ("1", "2", "4", "8")
    if axis == "heads":
        return (str(combination.heads),) if combination.heads else ()
    if release is None or not release.is_read:
        return ()
    if axis == "backend":
        return ("auto", *view(rules, release.name).backends)
    names = archs if axis == "arch" else cache_dtypes
    return tuple(names(matrix, combination.framework, combination.release))


def diff(question: Question, before: str, after: str) -> dict[str, Any]:
    """What changed between two releases, over every GPU and cache dtype that the question leaves open."""
    matrix = current()
    given = {"gpu": ANY_GPU, **{key: value for key, value in question.items() if value is not None}}
    wanted = asked({**given, "release": after}, matrix)
    combination = wanted.combinations[0]
    open_axes = [
        axis for axis, flag in (("arch", "gpu"), ("kv_cache_dtype", "kv_cache_dtype")) if not question.get(flag)
    ]
    models = [wanted.combinations]
    for axis in open_axes:
        names = _names_of_both(matrix, combination, axis, (before, after))
        models = [tuple(replace(item, **change(axis, name)) for item in shapes) for shapes in models for name in names]
    return _diff_answer(matrix, opened(wanted.echo, open_axes), models, before, after)


def diff_fleet(path: Path, before: str, after: str) -> dict[str, Any]:
    """What changed between two releases for every configuration of a fleet file."""
    matrix = current()
    questions = [_asked_in(path, row, matrix) for row in fleet_rows(path)]
    models = [wanted.combinations for wanted in questions]
    echo = {"framework": models[0][0].framework, "fleet": path.name, "rows": len(models)}
    return _diff_answer(matrix, echo, models, before, after)


def _asked_in(path: Path, row: "Row", matrix: Matrix) -> Asked:
    try:
        return asked({key: value for key, value in row.items() if key != "name"}, matrix)
    except NvdashError as refusal:
        place = f"{path}:{row.line} {refusal.where}"
        raise type(refusal)(place, refusal.expected, refusal.found, refusal.hint) from refusal


def _names_of_both(matrix: Matrix, item: Combination, axis: str, releases: Sequence[str]) -> list[str]:
    names = [axis_names(matrix, replace(item, release=release), axis) for release in releases]
    return list(dict.fromkeys(name for some in names for name in some))


def _diff_answer(
    matrix: Matrix, echo: Question, models: Sequence[Sequence[Combination]], before: str, after: str
) -> dict[str, Any]:
    from nvdash.support.diff import differences

    rules = matrix.rules(models[0][0].framework)
    unread = [name for name in (before, after) if not (release := rules.release(name)) or not release.is_read]
    found = [item.as_dict() for item in differences(matrix, models, before, after, observations_of(models[0][0]))]
    counts = {
        kind: sum(row["change"] == kind for row in found)
        for kind in ("gained", "lost", "new_trap", "changed", "unchanged")
    }
    changed = [row for row in found if row["change"] != "unchanged"]
    echo = {**echo, "release": None, "from": before, "to": after}
    return envelope("diff", echo, counts=counts, changes=changed, unread=unread)


def lint(frameworks: Sequence[str] = ()) -> dict[str, Any]:
    """What the checks of the matrix find."""
    from nvdash.support.lint import check_names
    from nvdash.support.lint import lint as findings_of

    matrix = current()
    names = list(frameworks) or framework_names()
    findings = [finding.as_dict() for finding in findings_of(matrix, names)]
    statements = {name: len(matrix.rules(name).all_statements()) for name in names}
    return envelope("lint", {"frameworks": names}, checks=check_names(), statements=statements, findings=findings)


def drift(cells: Path | None = None, release: str | None = None, docs: Path | None = None) -> dict[str, Any]:
    """Where an installed vLLM, a file of its answers, or its own documentation disagrees with the matrix."""
    from nvdash.support.drift import ask_installed, compare, read_cells
    from nvdash.support.upstream_table import cells as documented

    if cells is None and docs is None:
        release, rows = ask_installed()
    elif release is None:
        raise UsageError("--release", "the release that wrote the file", "none")
    else:
        rows = list(read_cells(cells)) if cells else documented(_text(docs))
    matrix = current()
    known = matrix.rules("vllm").release(release)
    if known is None or not known.is_read:
        raise UnknownError(f"vllm {release}", "a release that was read", "it was not", "./run matrix extract reads it")
    found = compare(matrix, release, rows)
    return envelope(
        "drift",
        {"framework": "vllm", "release": release},
        compared=found.compared,
        disagreements=[item.as_dict() for item in found.drifts],
        without_rule=dict(found.unknown),
    )


def _text(path: Path | None) -> str:
    try:
        return path.read_text(encoding="utf-8") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(str(path), "a readable text file", str(error)) from error


def propose(report: Path) -> dict[str, Any]:
    """A patch for the curated facts that one smoke report supports."""
    from nvdash.readers.smoke_report import read
    from nvdash.store.observations import observed
    from nvdash.support.propose import proposal

    found = read(report)
    seen = list(observed({**found.as_dict(), "smoke_id": found.case_id}))
    patch = proposal(current(), seen)
    target = f"matrix/{found.framework}/curated.yaml" if current().find_rules(str(found.framework)) else None
    why = None if seen else _no_change(found.engine)
    return envelope("propose", {"report": report.name}, file=target, patch=patch, observations=len(seen), reason=why)


def _no_change(engine: str) -> str:
    if engine == "reference":
        return "the reference engine proves our own arithmetic and no kernel: it changes nothing in the matrix"
    return "this report changes nothing in the matrix"


def _stage(stage: str | None) -> str | None:
    if stage is not None and stage not in STAGES:
        raise UsageError("--stage", " or ".join(STAGES), f"got {stage!r}", did_you_mean(stage, STAGES))
    return stage
