"""From files to stored runs: show beside what is stored, ask for what is missing, store, undo."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nvdash.answers.envelope import envelope
from nvdash.answers.mapping import tables
from nvdash.answers.seed import load_once
from nvdash.answers.upload import Upload, read_upload
from nvdash.errors import Problems, UsageError
from nvdash.readers.bundle import FileReading
from nvdash.readers.fields import with_unit
from nvdash.readers.smoke_report import SmokeReport
from nvdash.store import lifecycle, runs, smoke
from nvdash.store.adding import NewRun
from nvdash.store.columns import BY_NAME, KNOWN
from nvdash.store.identity import shown
from nvdash.store.submitting import Change, store_submission

COMPARED = (
    *("output_tok_s", "total_tok_s", "ttft_mean_ms", "tpot_mean_ms", "itl_mean_ms", "e2e_mean_ms"),
    *("prefill_tok_s", "decode_tok_s", "kv_tokens", "weights_gib", "kv_bytes_per_token"),
)
"""What the preview sets beside the nearest stored run."""
ONE = {"runs": "run", "quality rows": "quality row", "kernels": "kernel", "facts of the server": "fact of the server"}
MAX_BESIDE = 20
"""Runs of an upload that are shown beside stored ones; `num_runs` says how many there are."""


def preview(
    paths: Sequence[Path],
    typed_text: Mapping[str, str] | None = None,
    *,
    sibling: Path | None = None,
    mapping: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What a submission would do: files recognised, each run beside the nearest stored one, gaps; stores nothing."""
    load_once()
    upload = read_upload(paths, typed_text or {}, sibling, mapping)
    return envelope(
        "preview",
        _question(paths, typed_text, mapping),
        files=[_file_row(reading) for reading in upload.readings] + [_smoke_row(*pair) for pair in upload.smoke],
        runs=[_beside(run, upload.typed) for run in upload.new[:MAX_BESIDE]],
        num_runs=len(upload.new),
        missing=_gaps(upload),
        warnings=_warnings(upload),
        tables=tables(upload.readings),
        can_submit=bool(upload.new or upload.smoke),
    )


def _question(
    paths: Sequence[Path], typed_text: Mapping[str, str] | None, mapping: Mapping[str, str] | None
) -> dict[str, Any]:
    """The submission as an answer repeats it."""
    return {"files": [Path(path).name for path in paths], "set": dict(typed_text or {}), "map": dict(mapping or {})}


def _file_row(reading: FileReading) -> dict[str, Any]:
    """One file as the preview lists it."""
    row: dict[str, Any] = {"file": Path(reading.file).name, "format": reading.format}
    if reading.error:
        return row | {"result": "Left out", "gives": [], "error": reading.error.as_dict()}
    facts = [name for name in reading.server if name in KNOWN]
    parts: dict[str, Sequence[Any]] = {"runs": reading.runs, "quality rows": reading.quality}
    parts |= {"kernels": reading.kernels, "facts of the server": facts}
    gives = [f"{len(rows)} {name if len(rows) > 1 else ONE[name]}" for name, rows in parts.items() if rows]
    return row | {"result": "Recognised", "gives": gives}


def _smoke_row(name: str, report: SmokeReport) -> dict[str, Any]:
    gives = [f"smoke verdict {report.verdict} of the {report.engine} engine"]
    return {"file": name, "format": "smoke-report", "result": "Recognised", "gives": gives}


def _beside(run: NewRun, said: Mapping[str, Any]) -> dict[str, Any]:
    """One run of the upload beside the nearest stored run of the same model and GPU."""
    values = {**run.values, **said}
    near = nearest(values, run.run_id)
    rows = [
        {
            "metric": name,
            "label": with_unit(BY_NAME[name].label, BY_NAME[name].unit),
            "this": values.get(name),
            "nearest": (near or {}).get(name),
            "ratio": _ratio(values.get(name), (near or {}).get(name)),
        }
        for name in COMPARED
        if values.get(name) is not None
    ]
    return {
        "run_id": shown(run.run_id),
        "values": values,
        "provenance": dict(run.provenance),
        "rows": rows,
        "quality": list(run.quality),
        "in_store": in_store(run.run_id),
        "nearest": None if near is None else {"run_id": shown(near["run_id"]), "differs_in": near["differs_in"]},
    }


def _ratio(this: Any, other: Any) -> float | None:
    """How this value stands to the nearest run's; no claim about the cause."""
    return this / other if this is not None and other else None


def nearest(values: Mapping[str, Any], own_id: str) -> dict[str, Any] | None:
    """The stored run of the same model and GPU with the fewest other settings, and in which it differs."""
    if values.get("model_base") is None or values.get("gpu") is None:
        return None
    stored = runs.find({"model_base": values["model_base"], "gpu": values["gpu"]}, limit=500)
    names = [column.name for column in BY_NAME.values() if column.role == "control"]
    ranked = [
        {**run, "differs_in": [name for name in names if run.get(name) != values.get(name)]}
        for run in stored
        if run["run_id"] != own_id
    ]
    return min(ranked, key=lambda run: len(run["differs_in"]), default=None)


def in_store(identity: str) -> str:
    """`new`, `already stored`, or `withdrawn`: then submitting brings the run back."""
    if runs.count({"run_id": identity}):
        return "already stored"
    return "withdrawn" if runs.count({"run_id": identity}, withdrawn=True) else "new"


def _gaps(upload: Upload) -> list[dict[str, str]]:
    """The questions that neither the files nor the person has answered."""
    if not upload.new:
        return []
    return [gap.as_dict() for gap in upload.bundle.missing if gap.field not in upload.typed]


def _warnings(upload: Upload) -> list[str]:
    """Remarks on the files, and what is typed against what a file says."""
    with_scores = any(run.samples for run in upload.new)
    found = [w.text for w in upload.bundle.warnings if not (w.code == "samples" and with_scores)]
    for run in upload.new:
        for name, value in upload.typed.items():
            before = run.values.get(name)
            if before is not None and before != value:
                found.append(f"{name}: the files say {before}, you say {value}; yours counts, both are kept")
    return list(dict.fromkeys(found))


def submit(
    paths: Sequence[Path],
    typed_text: Mapping[str, str] | None = None,
    *,
    sibling: Path | None = None,
    mapping: Mapping[str, str] | None = None,
    leave_out_refused: bool = False,
) -> dict[str, Any]:
    """Store the runs of these files once; typed fields become a revision; a refused file stops it unless left out."""
    upload = read_upload(paths, typed_text or {}, sibling, mapping)
    errors = [reading.error for reading in upload.refused if reading.error]
    if errors and not leave_out_refused:
        raise Problems(errors[0].where, errors)
    if not upload.new and not upload.smoke:
        hint = "a config.json or a samples file helps to read a result; submit it together with one"
        raise UsageError("submit", "at least one result, log, scrape, trace or smoke report", "found none", hint)
    change = store_upload(upload)
    added, known = change.smoke
    return envelope(
        "submit",
        _question(paths, typed_text, mapping),
        run_ids=[shown(run) for run in dict.fromkeys(run.run_id for run in upload.new)],
        added=[shown(run) for run in change.runs.added],
        duplicates=[shown(run) for run in change.runs.duplicates],
        reinstated=[shown(run) for run in change.runs.reinstated],
        revised={shown(run): sorted(fields) for run, fields in change.revised.items() if fields},
        smoke={"added": [shown(row) for row in added], "duplicates": [shown(row) for row in known]},
        left_out=[_file_row(reading) for reading in upload.refused],
        missing=_gaps(upload),
        warnings=_warnings(upload),
    )


def store_upload(upload: Upload, *, bring_back: bool = True) -> Change:
    """Store what an upload holds; without `bring_back` a run that was withdrawn or purged stays away."""
    away = set() if bring_back else lifecycle.purged()
    new = [run for run in upload.new if run.run_id not in away]
    return store_submission(new, upload.typed, _smoke_rows(upload), bring_back=bring_back)


def _smoke_rows(upload: Upload) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(report.as_dict(), {key: getattr(report, key) for key in smoke.KEYS}) for _, report in upload.smoke]


def undo(run_ids: Sequence[str]) -> list[str]:
    """Take back what a submission added, by withdrawal; returns the runs."""
    return [shown(run) for run in lifecycle.withdraw_all(run_ids, "undone by the uploader")]
