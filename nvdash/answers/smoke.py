"""Does it really run here: which cases there are, what running one shows, and what that changes in the matrix.

One case at a time runs per machine; pages start it, poll it and may cancel it.
"""

import json
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nvdash.answers.check import verdict_of
from nvdash.answers.envelope import envelope
from nvdash.answers.plan import wide_word
from nvdash.answers.words import FRAMEWORKS
from nvdash.errors import NvdashError, UsageError
from nvdash.readers.smoke_report import SmokeReport, plain
from nvdash.smoke import emit, judge
from nvdash.smoke import preflight as checks
from nvdash.smoke.case import write_atomically
from nvdash.smoke.plan import case_of
from nvdash.smoke.runner import Attempt, Progress, run_case
from nvdash.smoke.spec import CaseSpec
from nvdash.store.observations import observed
from nvdash.support.observations import Observation

ROOT = Path(__file__).parents[2]
YES, NO, UNKNOWN = 0, 1, 3
EXIT = {"pass": YES, "pass_dtype_unproven": YES, "fallback": NO, "refused": NO, "wrong_result": NO, "crash": NO}
REFERENCE_DTYPES = ("bf16", "fp8", "nvfp4", "nvfp4_4over6")
CONFIGURATIONS = (
    ("Wide weights, wide cache", "bf16", "wide"),
    ("Weights only", "nvfp4", "wide"),
    ("Cache only", "bf16", "nvfp4"),
    ("Both", "nvfp4", "nvfp4"),
)
"""Title, weights and cache dtype; the wide cache is the one that the plan of the framework asks for by name."""
MAX_JOBS = 20
ENVELOPE = ("schema", "nvdash_version")


def preflight() -> dict[str, Any]:
    """What this machine has for smoke tests, each missing thing with the line that fixes it."""
    return envelope("smoke-preflight", {}, **checks.preflight())


def emitted(question: Mapping[str, Any], target: str) -> dict[str, Any]:
    """The same case as a Slurm line or a Kubernetes Job; the question is checked first."""
    case_of(question)
    return envelope("smoke-job", dict(question), target=target, text=emit.emitted(question, target))


def command(question: Mapping[str, Any]) -> str:
    """The command line that runs a question elsewhere."""
    return emit.command(question)


def cases(question: Mapping[str, Any], found: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The cases that make sense for a configuration, with what the matrix expects and why one cannot run here."""
    found = found or checks.preflight()
    engine = str(question.get("framework") or "vllm")
    rows = [
        _row(f"Reference, {dtype} cache", {**question, "engine": "reference", "kv_cache_dtype": dtype}, found)
        for dtype in REFERENCE_DTYPES
    ]
    name = FRAMEWORKS.get(engine, engine)
    if engine not in checks.ENGINES:
        return rows
    wide = wide_word(question)
    for title, weights, cache in CONFIGURATIONS:
        words = {"weights": weights, "kv_cache_dtype": wide if cache == "wide" else cache}
        rows.append(_row(f"{title} on {name}", {**question, **words, "engine": engine}, found))
    for dtype in _expected_dtypes(question):
        rows.append(_row(f"{dtype} cache on {name}", {**question, "kv_cache_dtype": dtype, "engine": engine}, found))
    unique = {json.dumps(row["question"], sort_keys=True): row for row in reversed(rows)}
    return [row for row in rows if row is unique[json.dumps(row["question"], sort_keys=True)]]


def _row(title: str, question: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    engine = str(question["engine"])
    why_not = found["engines"].get(engine, "no such engine")
    answers = (
        "the arithmetic and bytes of the format, no kernel" if engine == "reference" else "which kernels really run"
    )
    return {
        "title": title,
        "engine": engine,
        "question": {name: value for name, value in question.items() if value is not None},
        "answers": answers,
        "expect": "pass" if engine == "reference" else verdict_of(question),
        "last_verdict": _last_verdict(question),
        "why_not": why_not,
        "command": emit.command(question),
    }


def _expected_dtypes(question: Mapping[str, Any]) -> list[str]:
    """Every cache dtype that the matrix expects on this GPU, for the asked backend."""
    from nvdash.readers.matrix import read_axes

    if not question.get("gpu"):
        return []
    flags = [str(name) for name in read_axes().get("kv_cache_dtype", {})]
    return [flag for flag in flags if verdict_of({**question, "kv_cache_dtype": flag}) in ("expected", "validated")]


def _last_verdict(question: Mapping[str, Any]) -> str | None:
    wanted = case_key(question)
    for stored in history():
        if stored["key"] == wanted:
            return str(stored["verdict"])
    return None


def case_key(question: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes two cases the same to a person."""
    names = ("engine", "model", "head_layout", "weights", "kv_cache_dtype", "backend")
    return tuple(str(question.get(name) or "") for name in names)


def history() -> list[dict[str, Any]]:
    """Stored reports, newest first, each with its key; none where there is no store yet."""
    from nvdash.store.connection import store_path
    from nvdash.store.smoke import smoke_reports

    if not store_path().exists():
        return []
    return [{**row, "key": case_key({"engine": row["engine"], **row["question"]})} for row in smoke_reports()]


def report(smoke_id: str) -> dict[str, Any]:
    """One stored report by its id or the start of it."""
    found = [row for row in history() if str(row["smoke_id"]).startswith(smoke_id)]
    if len(found) != 1:
        raise UsageError(f"report {smoke_id!r}", "the id of one stored report", f"{len(found)} match")
    return found[0]


def observations(found: SmokeReport) -> list[Observation]:
    """What a report says of the matrix, for exactly what ran."""
    return list(observed({**found.as_dict(), "smoke_id": found.case_id}))


def run(
    question: Mapping[str, Any],
    progress: Callable[[Progress], None] = lambda state: None,
    cancel: threading.Event | None = None,
    out: Path | None = None,
) -> dict[str, Any] | None:
    """Run the case of a question, keep its report, and answer with it; None when it was cancelled."""
    spec = case_of(question)
    python = checks.interpreter(spec.engine)
    if python is None:
        return _answer(judge.report(spec, [not_set_up(spec)], []))
    surroundings = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    attempts, log = run_case(spec, [python, "-m", "nvdash.smoke.case"], surroundings, progress, cancel)
    if attempts[-1].ended == "cancelled":
        return None
    found = judge.report(spec, attempts, log, _is_shared(spec.engine))
    keep(found, out)
    return _answer(found)


def not_set_up(spec: CaseSpec) -> Attempt:
    """The attempt that never was: no interpreter holds the engine."""
    words = f"no interpreter for {spec.engine}; set NVDASH_PYTHON_{spec.engine.upper()} to the python that has it"
    return Attempt("facts", "import", 0.0, facts={"outcome": "environment", "error": words})


def _answer(found: SmokeReport) -> dict[str, Any]:
    parts = found.as_dict()
    return envelope("smoke", parts.pop("question"), **{k: v for k, v in parts.items() if k not in ENVELOPE})


def read_back_files(question: Mapping[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """What the files of somebody else's vLLM run prove, judged like a case of our own; nothing is stored."""
    from nvdash.smoke.readback import read_back

    asked = {name: value for name, value in question.items() if value is not None}
    found = read_back(asked, paths)
    return envelope("smoke-read", {**asked, "files": [str(path) for path in paths]}, **plain(found, "read back"))


def _is_shared(engine: str) -> bool | None:
    devices = checks.devices() if engine != "reference" else []
    return devices[0].is_shared if devices else None


def keep(found: SmokeReport, out: Path | None) -> None:
    """Write the report where it was asked for, and into the store."""
    from nvdash.store.smoke import KEYS, add_smoke

    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, json.dumps(found.as_dict(), indent=1))
    try:
        add_smoke([(found.as_dict(), {name: getattr(found, name) for name in KEYS})])
    except NvdashError as error:
        print(f"the report was not stored: {error}", file=sys.stderr)


def exit_code(answer: Mapping[str, Any]) -> int:
    """0 when it ran as requested, 1 when it did not, 3 when this run could not tell."""
    return EXIT.get(str(answer["verdict"]), UNKNOWN)


@dataclass(slots=True)
class Job:
    """Cases that run one after another for one page."""

    id: str
    questions: Sequence[Mapping[str, Any]]
    state: str = "running"
    case: int = 0
    phase: str = "import"
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, str] | None = None
    cancel: threading.Event = field(default_factory=threading.Event)


_JOBS: dict[str, Job] = {}
_LOCK = threading.Lock()


def start(questions: Sequence[Mapping[str, Any]]) -> str:
    """Run cases in the background; the id of the job, or of the one that runs already for another session."""
    for question in questions:
        case_of(question)
    with _LOCK:
        running = next((job for job in _JOBS.values() if job.state == "running"), None)
        if running:
            return running.id
        job = Job(uuid.uuid4().hex[:12], [dict(question) for question in questions])
        _JOBS[job.id] = job
        for old in list(_JOBS)[:-MAX_JOBS]:
            del _JOBS[old]
    threading.Thread(target=_work, args=(job,), daemon=True).start()
    return job.id


def running() -> str | None:
    """The job that runs now, for this session or another."""
    return next((job.id for job in list(_JOBS.values()) if job.state == "running"), None)


def poll(job_id: str) -> dict[str, Any] | None:
    """How far a job is; None for one that is not known any more."""
    job = _JOBS.get(job_id)
    if job is None:
        return None
    shown = ("id", "state", "case", "phase", "seconds", "error")
    of = {"of": len(job.questions), "lines": job.lines[-40:], "reports": list(job.reports)}
    return {**{name: getattr(job, name) for name in shown}, **of}


def cancel(job_id: str) -> None:
    """End the running case; finished cases are kept."""
    if job := _JOBS.get(job_id):
        job.cancel.set()


def _work(job: Job) -> None:
    def told(state: Progress) -> None:
        job.phase, job.seconds = state.phase, state.seconds
        job.lines = [*job.lines, *state.lines][-200:]

    try:
        for place, question in enumerate(job.questions):
            job.case, job.phase, job.seconds = place, "import", 0.0
            found = run(question, told, job.cancel)
            if found is not None:
                job.reports.append(found)
            if job.cancel.is_set():
                job.state = "cancelled"
                return
        job.state = "done"
    except NvdashError as error:
        job.error, job.state = error.as_dict(), "failed"
    except Exception as error:
        job.error = {"where": "smoke test", "expected": "a report", "found": type(error).__name__, "hint": str(error)}
        job.state = "failed"
        raise
