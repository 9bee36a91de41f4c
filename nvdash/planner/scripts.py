"""The scripts of a plan: serve, load, judge, submit. Bash, the same in all cells but for the two formats."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from nvdash.planner.values import LABELS, Job

PREFIX_STATE = "off"
METADATA_WORDS = {
    "kv_cache_dtype_requested": "kv_cache_dtype",
    "enable_prefix_caching": "prefix_caching",
    "isl_target": "input_len",
    "osl_target": "output_len",
}
"""How the users of a client write what the normal form names otherwise."""


def script(job: Job) -> str:
    """The whole script of one cell in one set."""
    known = facts(job)
    loads = [_load(item, facts(item), name) for name, item in _loads(job)]
    parts = [_head(job), _blocks(job), _serve(job), *loads, _judge(job), _submit(job, known)]
    return "\n\n".join(part for part in parts if part) + "\n"


def facts(job: Job) -> dict[str, str]:
    """What the upload must say of the run, in the words of the normal form; the GPU's name comes from its driver."""
    request, load = job.request, job.workload
    known = {
        "model": job.checkpoint,
        "framework": job.engine.framework,
        "version": request.release,
        "gpu_count": str(request.gpu_count),
        "tp": str(request.tp),
        "pp": str(request.pp),
        "dp": "1",
        "ep": "1",
        "dcp": str(request.dcp),
        "weight_format": job.weights,
        "kv_cache_dtype_requested": job.cache,
        "spec_method": "none",
        "workload": load.name,
        "tag": job.which,
    }
    if not load.requests:
        known |= {"dataset": "random", "isl_target": str(load.isl), "osl_target": str(load.osl)}
    if job.request.max_model_len:
        known["max_model_len"] = str(job.request.max_model_len)
    if job.is_deployed:
        return known
    scheduler = {job.engine.recorded.get(name, name): str(value) for name, value in job.engine.scheduler.items()}
    memory = {job.engine.memory_field: str(job.engine.memory), "prefix_cache_state": PREFIX_STATE}
    return known | {"attention_backend": job.backend, **scheduler, **memory, **job.engine.settings}


def _head(job: Job) -> str:
    """Names, folders, and a check that the installed release is the one the plan is for."""
    package, release = job.engine.package, job.request.release
    version = f"import importlib.metadata as m; print(m.version({package!r}))"
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            f"# {LABELS[job.cell]} · {job.which} · plan {job.plan}. Runs match only while nothing below is changed.",
            "set -euo pipefail",
            f'PLAN="${{PLAN:-plan-{job.plan}}}"',
            'PORT="${PORT:-8000}"',
            'NVDASH="${NVDASH:-./run}"',
            f'OUT="$PLAN/{job.which}/{job.cell}"',
            'mkdir -p "$OUT"',
            f'INSTALLED="$(python3 -c {shlex.quote(version)})"',
            f'if [ "$INSTALLED" != {shlex.quote(release)} ]; then',
            f'  echo {shlex.quote(f"this plan is for {package} {release}, found")} "$INSTALLED" >&2',
            "  exit 1",
            "fi",
            'GPU="$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)"',
        ]
    )


def _blocks(job: Job) -> str:
    """Where the second set takes its size from: what the widest cell of the first set was given."""
    if job.which != "equal-blocks":
        return ""
    return "\n".join(
        [
            'BASE="$PLAN/equal-utilisation/${BASE_CELL:-wide}"',
            f'BLOCKS="${{BLOCKS:-$({job.engine.blocks})}}"',
            ': "${BLOCKS:?run the equal-utilisation script of the widest cell first, or set BLOCKS}"',
        ]
    )


def _serve(job: Job) -> str:
    """Start the server, wait until it answers, and keep how long its start-up log was."""
    flags = job.engine.flags
    chosen = [word for name, value in _chosen(job).items() if name in flags for word in (flags[name], str(value))]
    fixed = () if job.is_deployed else job.engine.fixed
    blocks = f' {flags["blocks"]} "$BLOCKS"' if job.which == "equal-blocks" else ""
    line = f"{_line(job.engine.serve, job)} {shlex.join([*chosen, *fixed])}{blocks}"
    return "\n".join(
        [
            'if curl -fsS "http://127.0.0.1:$PORT/health" > /dev/null 2>&1; then',
            '  echo "another server answers on port $PORT: end it, or set PORT" >&2',
            "  exit 1",
            "fi",
            ': > "$OUT/server.log"',
            f'{line} >> "$OUT/server.log" 2>&1 &',
            "SERVER=$!",
            'trap \'kill "$SERVER" 2>/dev/null; wait "$SERVER" 2>/dev/null || true\' EXIT',
            'until curl -fsS "http://127.0.0.1:$PORT/health" > /dev/null 2>&1; do',
            '  kill -0 "$SERVER" 2>/dev/null || { tail -n 20 "$OUT/server.log" >&2; exit 1; }',
            "  sleep 2",
            "done",
            'READY="$(wc -c < "$OUT/server.log")"',
        ]
    )


def _chosen(job: Job) -> dict[str, object]:
    """The settings of the server; as deployed, only what the question itself names."""
    sizes = {name: getattr(job.request, name) for name in ("tp", "pp", "dcp")}
    chosen: dict[str, object] = {name: size for name, size in sizes.items() if size > 1}
    chosen["kv_cache_dtype"] = job.cache
    if job.request.max_model_len:
        chosen["max_model_len"] = job.request.max_model_len
    if job.is_deployed:
        return chosen
    return chosen | {"backend": job.backend, "memory": job.engine.memory, **job.engine.scheduler}


def _loads(job: Job) -> list[tuple[str, Job]]:
    """The workload, and for the pinned one the same prompts with one output token: that time is prefill alone."""
    load = job.workload
    if load.requests:
        return [("c", job)]
    name = f"{load.name.rpartition('x')[0]}x1"
    return [("c", job), ("prefill-c", replace(job, workload=replace(load, name=name, osl=1, concurrency=(1,))))]


def _load(job: Job, known: Mapping[str, str], folder: str) -> str:
    """Every load, several times; each run keeps its own part of the log and its own counters."""
    words = (*job.engine.client, *(job.engine.own if job.workload.requests else job.engine.pinned))
    repeats = " ".join(str(number) for number in range(1, job.workload.repeats + 1))
    log = '{ head -c "$READY" "$OUT/server.log"; tail -c "+$((FROM + 1))" "$OUT/server.log"; }'
    return "\n".join(
        [
            f"for CONCURRENCY in {' '.join(map(str, job.workload.concurrency))}; do",
            f"  REQUESTS=$((CONCURRENCY * {job.workload.requests_per_slot}))",
            f"  for REPEAT in {repeats}; do",
            f'    DIR="$OUT/{folder}$CONCURRENCY-r$REPEAT"',
            '    mkdir -p "$DIR"',
            '    FROM="$(wc -c < "$OUT/server.log")"',
            '    curl -fsS "http://127.0.0.1:$PORT/metrics" > "$DIR/metrics_before.txt"',
            f"    {_line(words, job)}{_metadata(job, known)}",
            '    curl -fsS "http://127.0.0.1:$PORT/metrics" > "$DIR/metrics_after.txt"',
            f'    {log} > "$DIR/server.log"',
            "  done",
            "done",
        ]
    )


def _metadata(job: Job, known: Mapping[str, str]) -> str:
    """The fixed set of keys that a result file should carry, where the client takes any."""
    if not job.engine.metadata:
        return ""
    words = {**METADATA_WORDS, "version": f"{job.engine.framework}_version"}
    named = {words.get(name, name): value for name, value in known.items() if name not in ("framework", "model")}
    pairs = " ".join(shlex.quote(f"{name}={value}") for name, value in named.items())
    return f' \\\n      {job.engine.metadata} "gpu=$GPU" {pairs}'


def _judge(job: Job) -> str:
    """One reasoning task and one long-context task, at the same server."""
    load = job.workload
    server = "base_url=http://127.0.0.1:$PORT/v1/completions,num_concurrent=16,tokenized_requests=False"
    model = shlex.quote(f"model={job.checkpoint}")
    ask = f'lm_eval --model local-completions --log_samples --model_args {model}",{server},max_length={load.context}"'
    lengths = shlex.quote(f'{{"max_seq_lengths": [{load.context}]}}')
    long = f"{shlex.quote(load.long_context)} --metadata {lengths}"
    return "\n".join(
        [
            f'{ask} \\\n  --tasks {shlex.quote(load.reasoning)} --output_path "$OUT/reasoning"',
            f'{ask} \\\n  --tasks {long} --output_path "$OUT/long-context"',
        ]
    )


def _submit(job: Job, known: Mapping[str, str]) -> str:
    """Hand every run in with what no file states."""
    size = job.formats.checkpoint_bytes.get(job.weights)
    said = {**known, **({"model_bytes": str(size)} if size else {})}
    sets = " ".join(f"--set {shlex.quote(f'{name}={value}')}" for name, value in said.items())
    files = '"$DIR/bench.json" "$DIR/server.log" "$DIR/metrics_before.txt" "$DIR/metrics_after.txt"'
    return "\n".join(
        [
            f'SAID=(--set "gpu=$GPU" {sets})',
            *(line for name, item in _loads(job) for line in _submit_load(name, item, files)),
            'find "$OUT/reasoning" "$OUT/long-context" -name "results_*.json" -print0 |',
            '  while IFS= read -r -d "" FILE; do',
            '    "$NVDASH" submit "$FILE" "$(dirname "$FILE")"/samples_*.jsonl "${SAID[@]}"',
            "  done",
        ]
    )


def _submit_load(folder: str, job: Job, files: str) -> list[str]:
    """The runs of one workload; what it names differently is said last and counts."""
    load = job.workload
    own = "" if load.requests else f" --set osl_target={load.osl}"
    said = f'"${{SAID[@]}}" --set {shlex.quote(f"workload={load.name}")}{own}'
    return [f'for DIR in "$OUT"/{folder}*-r*; do', f'  "$NVDASH" submit {files} {said}', "done"]


def _line(words: Iterable[str], job: Job) -> str:
    """Words of the engine file as shell: our own variables in double quotes, everything filled in quoted as it is."""
    return " ".join(f'"{word}"' if "$" in word else shlex.quote(_filled(word, job)) for word in words)


def _filled(word: str, job: Job) -> str:
    """A word with its braces filled."""
    for name, value in job.words.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word
