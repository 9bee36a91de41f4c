"""Kernels of a torch profiler trace, by the engine step they were launched in.

vLLM marks every step as `execute_context_<requests>(<tokens>)_generation_<requests>(<tokens>)`. A kernel belongs to
the step that its launch lies in; names cannot tell prefill from decode. Standard library only: a case reads its own
traces.
"""

import bisect
import gzip
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MAX_TRACE_BYTES = 512 * 2**20
MAX_ROWS = 3_000
MARK = re.compile(r"execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)")
DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
LAUNCHES = frozenset({"cuda_runtime", "cuda_driver"})
TELLING = re.compile(r"attn|attention|cache|kv", re.IGNORECASE)
"""Operations whose argument types and shapes say what the cache tensor is."""


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a trace file, plain or gzipped."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        content = file.read(MAX_TRACE_BYTES + 1)
    if len(content) > MAX_TRACE_BYTES:
        raise ValueError(f"{path.name}: a trace over {MAX_TRACE_BYTES:,} bytes")
    trace = json.loads(content)
    events = trace.get("traceEvents", []) if isinstance(trace, dict) else trace
    return [event for event in events if isinstance(event, dict) and event.get("ph") == "X" and _is_timed(event)]


def _is_timed(event: Mapping[str, Any]) -> bool:
    return isinstance(event.get("ts"), int | float) and isinstance(event.get("dur", 0), int | float)


def phase_of(mark: str) -> str | None:
    """prefill, decode or mixed, by the requests and tokens a step mark counts; None where it counts none."""
    found = MARK.search(mark)
    if not found:
        return None
    context, generation = int(found[2]), int(found[4])
    if context and generation:
        return "mixed"
    return "prefill" if context else "decode" if generation else None


class Windows:
    """The steps of a trace on one timeline."""

    def __init__(self, events: Iterable[Mapping[str, Any]], category: str) -> None:
        marks = [
            (e["ts"], e["ts"] + e.get("dur", 0), phase_of(str(e.get("name"))))
            for e in events
            if e.get("cat") == category
        ]
        self.steps = sorted((start, end, phase) for start, end, phase in marks if phase)
        self._starts = [start for start, _, _ in self.steps]

    def phase_at(self, time_us: float) -> str | None:
        """The phase of the step that a moment lies in."""
        place = bisect.bisect_right(self._starts, time_us) - 1
        if place < 0:
            return None
        _, end, phase = self.steps[place]
        return phase if time_us <= end else None

    def count(self) -> dict[str, int]:
        """Steps by phase."""
        phases = [phase for _, _, phase in self.steps]
        return {phase: phases.count(phase) for phase in ("prefill", "decode", "mixed") if phase in phases}


def kernels(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Kernel rows by name and phase, the steps counted, and whether they ran on a device or are CPU operations."""
    device = [event for event in events if event.get("cat") in DEVICE_WORK]
    on_host, on_device = Windows(events, "user_annotation"), Windows(events, "gpu_user_annotation")
    launched = {_correlation(e): e["ts"] for e in events if e.get("cat") in LAUNCHES and _correlation(e) is not None}
    work = device or [event for event in events if event.get("cat") == "cpu_op"]
    rows: dict[tuple[str, str | None], dict[str, Any]] = {}
    for event in work:
        moment = launched.get(_correlation(event)) if device else event["ts"]
        phase = on_host.phase_at(moment) if moment is not None else on_device.phase_at(event["ts"])
        name = str(event.get("name"))[:4000]
        row = rows.setdefault((name, phase), {"name": name, "phase": phase, "calls": 0, "time_us": 0.0})
        row["calls"] += 1
        row["time_us"] += float(event.get("dur", 0))
        if "types" not in row and TELLING.search(name):
            row |= _arguments(event)
    longest = sorted(rows.values(), key=lambda row: -float(row["time_us"]))[:MAX_ROWS]
    steps = (on_host if on_host.steps else on_device).count()
    return {"rows": longest, "steps": steps, "device": bool(device)}


def _correlation(event: Mapping[str, Any]) -> Any:
    arguments = event.get("args")
    return arguments.get("correlation") if isinstance(arguments, Mapping) else None


def _arguments(event: Mapping[str, Any]) -> dict[str, Any]:
    """Types and shapes of the first arguments, where the profiler recorded them."""
    arguments = event.get("args")
    if not isinstance(arguments, Mapping) or not arguments.get("Input type"):
        return {}
    return {"types": list(arguments["Input type"])[:6], "shapes": list(arguments.get("Input Dims", []))[:6]}


def merged(traces: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Several traces of one run as one."""
    rows: dict[tuple[str, str | None], dict[str, Any]] = {}
    steps: dict[str, int] = {}
    device = False
    for trace in traces:
        device = device or bool(trace["device"])
        for phase, count in trace["steps"].items():
            steps[phase] = steps.get(phase, 0) + count
        for row in trace["rows"]:
            kept = rows.setdefault((row["name"], row["phase"]), {**row, "calls": 0, "time_us": 0.0})
            kept["calls"] += row["calls"]
            kept["time_us"] += row["time_us"]
    return {
        "rows": sorted(rows.values(), key=lambda row: -float(row["time_us"]))[:MAX_ROWS],
        "steps": steps,
        "device": device,
    }
