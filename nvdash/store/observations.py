"""What smoke reports let the support matrix believe: for exactly the scope that ran, and nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nvdash.store.connection import store_path
from nvdash.store.keepsake import kept
from nvdash.support.observations import Observation

MEANING: dict[str, tuple[str, str, str | None]] = {
    "pass": ("validated", "traced", None),
    "pass_dtype_unproven": ("validated", "served", None),
    "fallback": ("trap", "traced", "silent"),
    "refused": ("refused", "served", None),
    "wrong_result": ("trap", "traced", "forward"),
    "crash": ("trap", "served", "forward"),
}
"""Case verdict to matrix verdict, evidence level and layer; the other verdicts change nothing."""
ONCE_IS_NOT_ENOUGH = frozenset({"crash"})


def observations(framework: str, arch: str, path: Path | None = None) -> list[Observation]:
    """What was observed of a framework on an architecture; nothing while there is no store."""
    rows = kept(path or store_path(), "observations", _all)
    found = (Observation(**{**row, "stages": tuple(row["stages"])}) for row in rows)
    return [row for row in found if row.framework == framework and row.arch == arch]


def _all(place: Path) -> list[dict[str, Any]]:
    from nvdash.store.smoke import smoke_reports

    return [asdict(row) for report in smoke_reports(place) for row in observed(report)]


def observed(report: Mapping[str, Any]) -> Iterator[Observation]:
    """The observations of one report, per head layout and graphs mode; the reference engine proves no kernel."""
    meaning = MEANING.get(str(report.get("verdict")))
    if meaning is None or report["engine"] == "reference" or not report.get("release") or not report.get("arch"):
        return
    if report["verdict"] in ONCE_IS_NOT_ENOUGH and not _reproduced(report.get("attempts") or ()):
        return
    verdict, level, layer = meaning
    scope, shown = report.get("scope") or {}, _shown(report)
    for shape in scope.get("layers") or [{}]:
        for graphs in scope.get("graphs") or ["eager"]:
            yield Observation(
                verdict=verdict,
                level=level,
                layer=None if verdict == "validated" else report.get("layer") or layer,
                graphs=str(graphs),
                kind=shape.get("kind") or scope.get("kind"),
                head_size=shape.get("head_size"),
                value_head_size=shape.get("value_head_size"),
                **shown,
            )


def _shown(report: Mapping[str, Any]) -> dict[str, Any]:
    """What all observations of a report share; only the stages that were exercised count."""
    tested = (name for name, stage in (report.get("stages") or {}).items() if stage.get("tested", True))
    return {
        "run": str(report["smoke_id"])[:8],
        "framework": str(report["framework"]),
        "release": str(report["release"]),
        "arch": str(report["arch"]),
        "stages": tuple(tested),
        "reason": report.get("reason") or None,
        "flashinfer": (report.get("environment") or {}).get("flashinfer"),
        "weights": _said(report, "weights"),
        "backend": _cell(report, "backend"),
        "kv_cache_dtype": _cell(report, "kv_cache_dtype"),
    }


def _cell(report: Mapping[str, Any], name: str) -> str | None:
    """The cell that a run speaks about: after a fall back, the dtype and backend that were named and not served."""
    named = (report.get("requested") or {}).get(name)
    fell_back = report["verdict"] == "fallback" and named not in (None, "auto")
    return str(named) if fell_back else _said(report, name)


def _said(report: Mapping[str, Any], name: str) -> str | None:
    """What ran: as resolved, else as requested."""
    for part in ("resolved", "requested"):
        value = (report.get(part) or {}).get(name)
        if value is not None:
            return str(value)
    return None


def _reproduced(attempts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a crash happened in every one of several attempts."""
    verdicts = [attempt.get("verdict") for attempt in attempts]
    return len(verdicts) > 1 and set(verdicts) == {"crash"}


def is_cuda_pass(report: Mapping[str, Any]) -> bool:
    """Whether a CUDA kernel ran as requested in this report."""
    on_cuda = (report.get("environment") or {}).get("device") == "cuda" and report.get("engine") != "reference"
    return on_cuda and MEANING.get(str(report.get("verdict")), ("",))[0] == "validated"
