"""Which of the four configurations do I run next, with the exact commands, and which are done."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from nvdash.answers.check import check, verdict_of
from nvdash.answers.envelope import envelope
from nvdash.answers.names import base_of, gpu_of
from nvdash.errors import NvdashError, UnknownError, UsageError
from nvdash.planner.checklist import checklist
from nvdash.planner.choice import RUNNABLE, VALID, choose
from nvdash.planner.scripts import facts, script
from nvdash.planner.values import (
    CELLS,
    DEPLOYED,
    LABELS,
    SETS,
    Candidate,
    Engine,
    Formats,
    Job,
    Request,
    Workload,
)
from nvdash.readers import catalogue
from nvdash.readers.matrix import Matrix
from nvdash.readers.plan_files import engine_row, workload_rows
from nvdash.store import runs as stored
from nvdash.store.identity import shown
from nvdash.targets import Model
from nvdash.tradeoffs.controls import WIDE, format_name
from nvdash.tradeoffs.recorded import LONG_CONTEXT_TOKENS

YES, NO = 0, 1
NARROW = "nvfp4"
OWN_FLAGS = ("requests", "max_model_len")
ANSWER_TOKENS = 1024
"""Room for an answer beside the longest prompt."""

AUTO = "auto"
NOT_TAKEN = ("refused", "trap")
WHY_WIDE = (
    "a quantised checkpoint can turn auto into another",
    "this release takes no word for 16 bits, and a cell whose checkpoint turns auto into another stays empty",
)
"""Why the wide cache has its word: one that is named, or `auto`."""


def plan(question: Mapping[str, Any], matrix: Matrix | None = None) -> dict[str, Any]:
    """The four configurations on one backend as scripts, in two sets, with what each cell's verdict is."""
    asked = {name: value for name, value in question.items() if value is not None}
    for name in ("model", "gpu"):
        if name not in asked:
            raise UsageError(f"--{name}", "what the experiment is about", "found nothing", "name a model and a GPU")
    support = {name: value for name, value in asked.items() if name not in OWN_FLAGS}
    matrix = matrix or Matrix()
    release = _release(support, matrix)
    model = catalogue.load().model(str(asked["model"]))
    workload = _workload(asked, _own_length(model))
    request = _request(asked, release, workload)
    formats = _formats(asked, model)
    engine = replace(_engine(request.framework), wide_cache=wide_word({**support, "release": release}, matrix))
    candidates = _candidates({**support, "release": release}, engine, formats, matrix)
    backend, sentence = choose(candidates)
    cells = [
        _cell(row, formats, _misfit(asked, request, engine, formats, row.cell))
        for row in candidates.get(str(backend), ())
    ]
    plan_id = request.plan_id(engine, formats, workload, backend)
    jobs = list(_jobs(plan_id, request, engine, formats, workload, backend, cells))
    ready = [cell["cell"] for cell in cells if cell["ready"]]
    return envelope(
        "plan",
        {**asked, "framework": request.framework, "release": release, "tp": request.tp, "pp": request.pp},
        plan_id=plan_id,
        backend=backend,
        sentence=sentence,
        cells=cells,
        sets=[{"set": name, "means": means} for name, means in SETS.items()],
        scripts=[_script_row(job) for job in jobs] + _empty_rows(cells),
        workload={**_told(workload), "tasks": {"reasoning": workload.reasoning, "long context": workload.long_context}},
        checklist=_checklist(request, engine, formats, workload, backend, ready),
        notes=_notes(engine, workload, request),
    )


def exit_code(answer: Mapping[str, Any]) -> int:
    """0 when all four configurations have their scripts, 1 when one stays empty."""
    return YES if sum(cell["ready"] for cell in answer["cells"]) == len(CELLS) else NO


def _release(support: Mapping[str, Any], matrix: Matrix) -> str:
    """The release asked for, else the newest one that was read."""
    if support.get("release"):
        return str(support["release"])
    framework = str(support.get("framework", "vllm"))
    newest = matrix.rules(framework).newest
    if newest is None:
        raise UsageError("--release", "a release", f"found none that was read of {framework}", "name the release")
    return newest.name


def _request(asked: Mapping[str, Any], release: str, workload: Workload) -> Request:
    framework = "tensorrt-llm" if asked.get("framework") == "trtllm" else str(asked.get("framework", "vllm"))
    sizes = {name: int(asked.get(name, 1)) for name in ("tp", "pp", "dcp")}
    base = base_of(str(asked["model"])) or str(asked["model"])
    length = int(asked.get("max_model_len") or max(workload.context, workload.isl) + max(workload.osl, ANSWER_TOKENS))
    return Request(framework, release, str(asked["gpu"]), base, **sizes, max_model_len=length)


def _engine(framework: str) -> Engine:
    row = engine_row(framework)
    listed: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Engine(**listed)


def wide_word(support: Mapping[str, Any], matrix: Matrix | None = None) -> str:
    """The word that asks for a 16-bit cache: the plan's, or `auto` where only that is taken or no plan is written."""
    try:
        word = str(engine_row(str(support.get("framework") or "vllm"))["wide_cache"])
    except UnknownError:
        return AUTO
    model = {name: value for name, value in support.items() if name != "checkpoint"}
    named, auto = (verdict_of({**model, "weights": "bf16", "kv_cache_dtype": one}, matrix) for one in (word, AUTO))
    return AUTO if named in NOT_TAKEN and auto not in NOT_TAKEN else word


def _formats(asked: Mapping[str, Any], model: Model) -> Formats:
    """The two sides of both axes; a narrow format the question does not name is NVFP4."""
    weights, cache = format_name(asked.get("weights")), str(asked.get("kv_cache_dtype") or "auto")
    narrow = NARROW if weights is None or weights in WIDE else weights
    wide, small = model.checkpoint("bf16"), model.checkpoint(narrow)
    sizes = {row.weights: row.stored_bytes for row in (wide, small) if row is not None and row.stored_bytes}
    return Formats(
        wide_weights="bf16",
        narrow_weights=narrow,
        narrow_cache=NARROW if cache == "auto" or format_name(cache) in WIDE else cache,
        wide_checkpoint=wide.repository if wide and wide.repository else None,
        narrow_checkpoint=small.repository if small and small.repository else None,
        checkpoint_bytes=sizes,
    )


def _own_length(model: Model) -> int | None:
    """The longest request the model takes; None where its config does not say."""
    from nvdash.footprint.layers import layout

    try:
        return layout(model.config).max_position
    except NvdashError:
        return None


def _workload(asked: Mapping[str, Any], longest: int | None) -> Workload:
    """The pinned workload, shortened to what the model takes, or the user's own requests named by their content."""
    rows = workload_rows()
    pinned, context = rows["pinned"], rows["long context"]
    room = longest or int(asked.get("max_model_len") or context["context"] + ANSWER_TOKENS)
    isl, osl = min(int(pinned["isl"]), room // 2), min(int(pinned["osl"]), room // 4)
    own, name = asked.get("requests"), f"{pinned['name']}-{isl}x{osl}"
    if own is not None:
        name = f"{Path(own).name}-{_digest(Path(own))}"
    return Workload(
        name=name,
        isl=isl,
        osl=osl,
        concurrency=tuple(pinned["concurrency"]),
        repeats=pinned["repeats"],
        requests_per_slot=pinned["requests_per_slot"],
        reasoning=str(rows["reasoning"]["name"]),
        long_context=str(context["name"]),
        context=min(int(context["context"]), max(room - ANSWER_TOKENS, room // 2)),
        requests=str(own or ""),
    )


def _digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()[:8]
    except OSError as exc:
        hint = 'JSON lines, each with a "prompt"'
        raise UsageError(f"--requests {path}", "a readable request file", f"found: {exc.strerror}", hint) from exc


def _candidates(
    support: Mapping[str, Any], engine: Engine, formats: Formats, matrix: Matrix
) -> dict[str, list[Candidate]]:
    """The four cells under every backend of the release, or under the one that was asked for."""
    from nvdash.support.view import view

    rules = matrix.rules(engine.framework)
    release = rules.release(str(support["release"]))
    named = support.get("backend")
    known = view(rules, release.name).backends if release is not None and release.is_read else []
    backends = [str(named)] if named and named != "auto" else list(known)
    return {name: [_candidate(support, engine, formats, cell, name, matrix) for cell in CELLS] for name in backends}


def _candidate(
    support: Mapping[str, Any], engine: Engine, formats: Formats, cell: str, backend: str, matrix: Matrix
) -> Candidate:
    """What the support matrix says of one cell under one backend."""
    weights, side, checkpoint = formats.of(cell)
    cache = formats.narrow_cache if side == "narrow" else engine.wide_cache
    asked = {**support, "backend": backend, "weights": weights, "kv_cache_dtype": cache}
    if checkpoint is not None:
        asked["checkpoint"] = checkpoint
    try:
        answer = check(asked, matrix, neighbours=False)
    except NvdashError as refusal:
        return Candidate(cell, "unknown", f"{refusal.where}: {refusal.found}")
    resolved = answer["resolved"]["kv_cache_dtype"]
    if side == "wide" and cache == AUTO and format_name(resolved) not in WIDE:
        becomes = f"auto becomes {resolved or 'an unknown dtype'} with {checkpoint or 'this checkpoint'}"
        return Candidate(cell, "refused" if resolved else "unknown", becomes, "config", resolved)
    return Candidate(cell, answer["verdict"], str(answer["reason"] or ""), answer["layer"], resolved)


def _misfit(asked: Mapping[str, Any], request: Request, engine: Engine, formats: Formats, cell: str) -> str:
    """Why the cell cannot even start on this GPU; empty when it can or when that is not known."""
    from nvdash.answers.memory import memory

    weights, side, _ = formats.of(cell)
    cache = formats.narrow_cache if side == "narrow" else engine.wide_cache
    words = {name: asked[name] for name in ("gpu", "model", "tp", "pp", "dcp") if name in asked}
    own = {"framework": request.framework, "release": request.release, "max_model_len": request.max_model_len}
    try:
        answer = memory({**words, **own, "weights": weights, "kv_cache_dtype": cache})
    except NvdashError:
        return ""
    if answer["fits"] is not False:
        return ""
    if answer["binding_pool"] == "weights":
        return "the weights do not fit: raise --tp"
    return f"a request of {request.max_model_len:,} tokens does not fit beside the weights: raise --tp"


def _cell(row: Candidate, formats: Formats, misfit: str) -> dict[str, Any]:
    """One cell with its verdict, and why it stays empty when it does; it is never replaced by another."""
    weights, side, checkpoint = formats.of(row.cell)
    empty = ""
    if checkpoint is None:
        empty = f"no {weights} checkpoint of this model is known"
    elif row.verdict not in RUNNABLE:
        empty = f"{row.verdict} by {row.layer or 'the engine'}: {row.reason}"
    elif misfit:
        empty = misfit
    return {
        "cell": row.cell,
        "label": LABELS[row.cell],
        "weights": weights,
        "cache": side,
        "checkpoint": checkpoint,
        "verdict": row.verdict,
        "layer": row.layer,
        "reason": row.reason,
        "resolved_cache": row.resolved_cache,
        "ready": not empty,
        "empty_because": empty,
        "known_to_run": row.verdict in VALID,
    }


def _jobs(
    plan_id: str,
    request: Request,
    engine: Engine,
    formats: Formats,
    workload: Workload,
    backend: str | None,
    cells: Iterable[Mapping[str, Any]],
) -> Iterable[Job]:
    """The scripts to write: every ready cell in both sets, and the narrow one as it would be deployed."""
    ready = [cell["cell"] for cell in cells if cell["ready"]]
    for which in SETS:
        for cell in ready:
            yield Job(plan_id, request, engine, formats, workload, str(backend), cell, which)
    if formats.narrow_checkpoint is not None:
        yield Job(plan_id, request, engine, formats, workload, "", DEPLOYED, "equal-utilisation")


def _script_row(job: Job) -> dict[str, Any]:
    name = f"{job.which}/{job.cell}.sh"
    return {
        "set": job.which,
        "cell": job.cell,
        "label": LABELS[job.cell],
        "file": name,
        "metadata": facts(job),
        "script": script(job),
        "reason": "",
    }


def _empty_rows(cells: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The cells that stay empty, so that nobody takes another run for them."""
    return [
        {
            "set": which,
            "cell": cell["cell"],
            "label": cell["label"],
            "file": None,
            "metadata": {},
            "script": None,
            "reason": cell["empty_because"],
        }
        for which in SETS
        for cell in cells
        if not cell["ready"]
    ]


def _checklist(
    request: Request, engine: Engine, formats: Formats, workload: Workload, backend: str | None, ready: list[str]
) -> list[dict[str, Any]]:
    """Which runs of the plan are stored."""
    found = stored.find({"model_base": request.model_base, "gpu": gpu_of(request.gpu)}, limit=None)
    rows = checklist(request, engine, formats, workload, backend, found, ready)
    return [{**row, "run_ids": [shown(run) for run in row["run_ids"]]} for row in rows]


def _told(workload: Workload) -> dict[str, Any]:
    """The workload as the answer names it."""
    pinned = {"isl": workload.isl, "osl": workload.osl}
    sent = {"requests": Path(workload.requests).name} if workload.requests else pinned
    loads = {"concurrency": list(workload.concurrency), "repeats": workload.repeats}
    return {"name": workload.name, **sent, **loads, "context": workload.context}


def _notes(engine: Engine, workload: Workload, request: Request) -> list[str]:
    """What a reader of the plan must know."""
    short = (
        []
        if workload.context >= LONG_CONTEXT_TOKENS
        else [f"The model takes too few tokens for a long-context task; it is asked at {workload.context:,} tokens."]
    )
    return [
        *short,
        f"Every server takes requests of up to {request.max_model_len:,} tokens.",
        f"The wide cache is asked for as {engine.wide_cache}: {WHY_WIDE[engine.wide_cache == AUTO]}.",
        "Prefix caching is off, so that a larger cache cannot answer from what it kept.",
        "Run equal-utilisation first: equal-blocks takes its size from the widest cell of it.",
        "The cache's verdict is open until the long-context task has run in all four cells.",
    ]
