"""What the files of somebody else's run prove: a log, a scrape and profiler traces, judged like a case of our own."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nvdash.readers.bundle import read_file
from nvdash.smoke import kernels, steps
from nvdash.smoke.judge import Case
from nvdash.smoke.log_lines import read_lines, requested_backend
from nvdash.smoke.spec import CaseSpec, Layer


def read_back(layers: Sequence[Layer], files: Iterable[Path]) -> dict[str, Any]:
    """Requested, resolved, observed and the verdict, from log, scrape and trace files of one vLLM run."""
    server: dict[str, Any] = {}
    lines: list[str] = []
    traces: list[dict[str, Any]] = []
    for path in files:
        if ".trace" in path.name or path.name.startswith("trace") or path.suffix == ".gz":
            traces.append(steps.kernels(steps.read_events(path)))
            continue
        reading = read_file(path)
        if reading.error:
            raise reading.error
        server |= {name: value for name, value in reading.server.items() if value is not None}
        if path.suffix == ".log":
            lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
    return judged(layers, server, lines, traces)


def judged(
    layers: Sequence[Layer], server: dict[str, Any], lines: list[str], traces: list[dict[str, Any]]
) -> dict[str, Any]:
    """The same from what those files say."""
    observed = server.get("observed") or {}
    asked = str(server.get("kv_cache_dtype_requested") or "auto")
    spec = CaseSpec("read back", "vllm", asked, tuple(layers), requested_backend(lines))
    facts: dict[str, Any] = {
        "layers": len(layers),
        "cache": {
            "bytes_per_token": observed.get("kv_bytes_per_token"),
            "pool_bytes": observed.get("pool_bytes"),
            "kv_tokens": observed.get("kv_tokens"),
        },
    }
    if traces:
        facts["trace"] = steps.merged(traces)
    case = Case(spec, facts, read_lines(lines), kernels.load())
    finding = case.finding()
    return {
        "requested": case.requested(),
        "resolved": case.resolved,
        "observed": case.observed(),
        "launches": case.launches,
        "stages": case.stages(),
        "verdict": finding.verdict,
        "layer": finding.layer,
        "reason": finding.reason,
    }
