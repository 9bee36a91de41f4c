"""Which runs do we have: listing, one run, taking out and back, published reports, what is measured for a question."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvdash.answers.envelope import envelope
from nvdash.answers.names import base_of, gpu_of
from nvdash.answers.seed import load_once
from nvdash.errors import UsageError, did_you_mean
from nvdash.readers.published import Measurement, Report
from nvdash.readers.published import load as load_published
from nvdash.store import lifecycle, matched, smoke, transfer, upkeep
from nvdash.store import runs as stored
from nvdash.store.columns import BY_NAME
from nvdash.store.identity import shown

FORMS = ("csv", "json", "parquet")
LISTED = (
    *("kind", "model", "gpu", "gpu_count", "framework", "version", "weight_format", "kv_cache_dtype_requested"),
    *("kv_cache_dtype_resolved", "attention_backend", "max_concurrency", "output_tok_s", "ttft_mean_ms"),
    *("tpot_mean_ms", "kv_tokens", "started_at"),
)
"""What a list of runs shows of each; null is unknown."""


def runs(question: Mapping[str, Any] | None = None, limit: int | None = 200, offset: int = 0) -> dict[str, Any]:
    """The runs that a question leaves, newest first; withdrawn ones only when asked for."""
    load_once()
    asked = {name: value for name, value in (question or {}).items() if value is not None}
    withdrawn = bool(asked.pop("withdrawn", False))
    found, total = stored.page(filters_of(asked), withdrawn=withdrawn, limit=limit, offset=offset)
    rows = [listed(run) for run in found]
    return envelope(
        "runs", {**asked, "withdrawn": withdrawn}, run_ids=[row["run_id"] for row in rows], runs=rows, total=total
    )


def filters_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Columns to filter by, with model and GPU looked up as runs are stored."""
    filters = {}
    for name, value in asked.items():
        if name not in BY_NAME:
            raise UsageError(f"--{name}", "a field of a run", "found another word", did_you_mean(name, BY_NAME))
        if name == "model":
            base = base_of(str(value))
            filters["model_base" if base else "model"] = base or value
        else:
            filters[name] = gpu_of(str(value)) if name == "gpu" else value
    return filters


def listed(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run as a list shows it."""
    state = {"withdrawn": "withdrawn_at" in run, "warnings": run.get("warnings", [])}
    return {"run_id": shown(run["run_id"]), **{name: run.get(name) for name in LISTED}, **state, "id": run["run_id"]}


def run(run_id: str) -> dict[str, Any]:
    """One run with everything that is known of it."""
    load_once()
    found = stored.get(run_id)
    return envelope("run", {"run_id": run_id}, **{**found, "run_id": shown(found["run_id"]), "id": found["run_id"]})


def withdraw(run_id: str, reason: str) -> dict[str, Any]:
    """Take a run out of every question, and name the comparisons that lose a control by it."""
    from nvdash.answers.comparison import losing

    lost = losing(stored.get(run_id))
    return _changed("withdraw", run_id, lifecycle.withdraw(run_id, reason), reason, comparisons_lost=lost)


def reinstate(run_id: str, reason: str) -> dict[str, Any]:
    """Bring a withdrawn run back."""
    return _changed("reinstate", run_id, lifecycle.reinstate(run_id, reason), reason)


def purge(run_id: str, reason: str) -> dict[str, Any]:
    """Remove a run or a smoke report for good; the audit row remains, and backups are named that may still hold it."""
    full = lifecycle.purge(run_id, reason)
    left = [f"the backup {name} was made before and may still hold it" for name in upkeep.backups()]
    return _changed("purge", run_id, full, reason, warnings=left)


def _changed(name: str, asked: str, full: str, reason: str, **keys: Any) -> dict[str, Any]:
    question = {"run_id": asked, "reason": reason}
    empty: dict[str, Any] = {"added": [], "duplicates": [], "warnings": []}
    return envelope(name, question, run_ids=[shown(full)], **{**empty, **keys})


def export(form: str, folder: Path) -> dict[str, Any]:
    """Write everything that is stored into a folder."""
    load_once()
    if form not in FORMS:
        raise UsageError("--format", " or ".join(FORMS), f"found {form!r}")
    answer = transfer.export(folder, form)
    ids = [shown(run_id) for run_id in answer.pop("run_ids")]
    parts = {"run_ids": ids, "added": [], "duplicates": [], "warnings": [], "store_schema": answer.pop("schema")}
    return envelope("export", {"format": form, "out": str(folder)}, **{**parts, **answer})


def import_(folder: Path) -> dict[str, Any]:
    """Read an exported folder into this store."""
    found = transfer.import_(folder)
    added, duplicates = [shown(run) for run in found.added], [shown(run) for run in found.duplicates]
    parts = {"run_ids": added + duplicates, "added": added, "duplicates": duplicates, "warnings": []}
    return envelope("import", {"folder": str(folder)}, **parts)


def store_status() -> dict[str, Any]:
    """Where the store is and how much it holds."""
    load_once()
    return envelope("store", {"action": "status"}, **upkeep.status())


def store_migrate() -> dict[str, Any]:
    """Bring the store to the newest schema."""
    return envelope("store", {"action": "migrate"}, **upkeep.migrate())


def store_backup(target: Path | None) -> dict[str, Any]:
    """Copy the store into one file."""
    return envelope("store", {"action": "backup"}, file=str(upkeep.backup(target)))


def store_maintain() -> dict[str, Any]:
    """Fold the log in, refresh statistics, count orphans."""
    return envelope("store", {"action": "maintain"}, **upkeep.maintain())


def published(filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Third-party reports, each whole, whose measurements meet the filters; never mixed with runs of this store."""
    wanted = {name: value for name, value in (filters or {}).items() if value is not None}
    allowed = ("model", "gpu", "framework", "arch", "part", "kv_cache_dtype", "weight_format", "report")
    for name in wanted:
        if name not in allowed:
            raise UsageError(f"published {name!r}", "a filter", "found another word", did_you_mean(name, allowed))
    reports = [_report_row(report, rows) for report in load_published() if (rows := _meeting(report, wanted))]
    return envelope("published", wanted, reports=reports, measurements=sum(len(r["measurements"]) for r in reports))


def _meeting(report: Report, wanted: Mapping[str, Any]) -> list[Measurement]:
    """The measurements of a report that meet the filters; all of them when one is asked by its id."""
    if wanted.get("report") not in (None, report.id):
        return []
    columns = {name: value for name, value in wanted.items() if name != "report"}
    if "model" in columns:
        columns["model_base"] = base_of(str(columns.pop("model")))
    if "gpu" in columns:
        columns["gpu_id"] = gpu_of(str(columns.pop("gpu")))
    if any(value is None for value in columns.values()):
        return []
    return [
        row
        for row in report.measurements
        if all(str(getattr(row, name) or "").lower() == str(value).lower() for name, value in columns.items())
    ]


def _report_row(report: Report, rows: list[Measurement]) -> dict[str, Any]:
    """A report with its measurements by part; a part is never summed up with another."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault(row.part, []).append(row.as_dict())
    beside = [{"id": other.id, "title": other.title} for other in load_published() if other.id in report.beside]
    return {
        "id": report.id,
        "title": report.title,
        "note": report.note,
        "beside": beside,
        "provenance": "report",
        "sources": sorted({row.source for row in rows}),
        "parts": parts,
        "measurements": [row.as_dict() for row in rows],
    }


def published_for(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Published numbers for exactly this model on exactly this GPU; anything else is no answer to the question."""
    if not question.get("model") or not question.get("gpu"):
        return []
    found = published({"model": question["model"], "gpu": question["gpu"]})
    return [row for report in found["reports"] for row in report["measurements"]]


def measured(question: Mapping[str, Any]) -> dict[str, Any]:
    """Runs of this store for the question's model and GPU, and the smoke reports with whether a CUDA kernel ran."""
    load_once()
    asked = {name: question.get(name) for name in ("model", "gpu") if question.get(name)}
    found = stored.find(filters_of(asked), limit=50) if len(asked) == 2 else []
    return {"runs": [listed(item) for item in found], "smoke": smoke_list()}


def smoke_list() -> list[dict[str, Any]]:
    """Stored smoke reports, newest first, each with whether it validates a CUDA path."""
    from nvdash.store.observations import is_cuda_pass

    load_once()
    reports = sorted(smoke.smoke_reports(), key=lambda report: str(report["ran_at"]), reverse=True)
    return [{**report, "cuda": is_cuda_pass(report)} for report in reports]


def systems() -> list[dict[str, Any]]:
    """Which models and GPUs have runs."""
    load_once()
    return matched.systems()
