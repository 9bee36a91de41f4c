"""What the files of somebody else's run prove: a log, a scrape and profiler traces, judged like a case of our own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nvdash.errors import UsageError
from nvdash.readers.bundle import FileReading, combine, read_file
from nvdash.readers.source import open_source
from nvdash.smoke import kernels, steps
from nvdash.smoke.judge import MAX_KERNELS, Case, Finding
from nvdash.smoke.log_lines import read_lines, requested_backend, said_to_end
from nvdash.smoke.spec import CaseSpec, Layer
from nvdash.smoke.truncate import layers_of, layers_of_heads

LOG, TRACE, CONFIG, SCRAPE = "vllm-log", "kineto-trace", "model-config", "metrics"
UNTOLD = "the files state neither the bytes of a token nor which kernels ran"
UNCOMPARED = "a token has no single price in this layout or on these ranks, and no trace shows the kernels"


@dataclass(frozen=True, slots=True)
class Shape:
    """The attention layers of the model that was served, and whether they are all that keeps a cache."""

    layers: tuple[Layer, ...]
    whole: bool = True

    def on_rank(self, server: Mapping[str, Any]) -> "Shape":
        """What one rank holds; where layers differ or are spread over ranks, a token has no single price."""
        tp = int(server.get("tp") or 1)
        split = tuple(
            replace(layer, query_heads=max(layer.query_heads // tp, 1), kv_heads=max(layer.kv_heads // tp, 1))
            for layer in self.layers
        )
        spread = any((server.get(name) or 1) > 1 for name in ("pp", "dcp"))
        plain = len(set(split)) == 1 and split[0].kind != "window"
        return Shape(split, self.whole and plain and not spread)


def read_back(question: Mapping[str, Any], files: Iterable[Path]) -> dict[str, Any]:
    """Requested, resolved, observed and the verdict, from log, scrape and trace files of one vLLM run."""
    readings = [_readable(path) for path in files]
    shape = shape_of(question, readings)
    bundle = combine(readings)
    paths: dict[str, list[Path]] = {name: [] for name in (LOG, TRACE, CONFIG, SCRAPE)}
    for reading in readings:
        paths[str(reading.format)].append(Path(reading.file))
    lines = [line for path in paths[LOG] for line in _lines(path)]
    traces = [steps.kernels(steps.read_events(path)) for path in paths[TRACE]]
    found = judged(question, shape.on_rank(bundle.server), dict(bundle.server), lines, traces)
    return {**found, "warnings": [warning.text for warning in bundle.warnings if warning.code == "contradiction"]}


def _readable(path: Path) -> FileReading:
    """A file of a kind that tells something of a vLLM run; anything else is refused by name."""
    reading = read_file(path)
    if reading.error:
        raise reading.error
    framework = reading.server.get("framework") or "vllm"
    if reading.format not in (LOG, TRACE, CONFIG, SCRAPE) or framework != "vllm":
        expected = "a vLLM log, a scrape of /metrics, a profiler trace or the model's config.json"
        raise UsageError(path.name, expected, f"found {reading.format} of {framework}", "./run read says what it holds")
    return reading


def _lines(path: Path) -> list[str]:
    with open_source(path) as source:
        return [line.decode("utf-8", "replace") for line in source.lines()]


def shape_of(question: Mapping[str, Any], readings: Sequence[FileReading] = ()) -> Shape:
    """The layers by the head layout, the model or the config.json among the files; nothing is guessed."""
    from nvdash.footprint.layers import layout
    from nvdash.readers import catalogue
    from nvdash.targets import HeadLayout

    if question.get("head_layout"):
        count = question.get("layers")
        if not count:
            hint = "--head-layout names one layer; the bytes of a token are those of all"
            raise UsageError("--layers", "how many such layers the model has", "none", hint)
        heads = HeadLayout.parse(str(question["head_layout"]))
        return Shape(layers_of_heads(heads) * int(count), not heads.window)
    config = next((reading.file for reading in readings if reading.format == CONFIG), None)
    named = question.get("model") or config
    if not named:
        hint = "name --model, or --head-layout with --layers, or add the model's config.json to the files"
        raise UsageError("the model that was served", "its layers", "no file states them", hint)
    return Shape(*layers_of(layout(catalogue.load().model(str(named)).config)))


def judged(
    question: Mapping[str, Any],
    shape: Shape,
    server: dict[str, Any],
    lines: list[str],
    traces: list[dict[str, Any]],
) -> dict[str, Any]:
    """The same from what those files say; a word that no file states is the question's."""
    observed = server.get("observed") or {}
    asked = str(server.get("kv_cache_dtype_requested") or question.get("kv_cache_dtype") or "auto")
    backend = requested_backend(lines) or question.get("backend")
    spec = CaseSpec("read back", "vllm", asked, shape.layers, backend, release=server.get("version"), whole=shape.whole)
    facts: dict[str, Any] = {
        "layers": len(shape.layers),
        "resolved": {"kv_cache_dtype": server.get("kv_cache_dtype_resolved")},
        "cache": {
            "bytes_per_token": observed.get("kv_bytes_per_token"),
            "bytes_source": observed.get("pool_source"),
            "pool_bytes": observed.get("pool_bytes"),
            "kv_tokens": observed.get("kv_tokens"),
        },
    }
    if traces:
        facts["trace"] = steps.merged(traces)
    case = Case(spec, facts, read_lines(lines), kernels.load())
    return {"engine": "vllm", **_parts(case), **_verdict(finding(case, lines))}


def finding(case: Case, lines: Sequence[str]) -> Finding:
    """The verdict; a run that never had a cache is told by its last words, and nothing passes unseen."""
    found = case.cache.get("bytes_per_token")
    if found is None and not case.seen and (said := said_to_end(lines)):
        return Finding(*said)
    verdict = case.finding()
    if verdict.verdict == "pass_dtype_unproven" and not case.seen and case.stored_as_requested() is None:
        return Finding("no_trace", UNTOLD if found is None else UNCOMPARED)
    return verdict


def _verdict(finding: Finding) -> dict[str, Any]:
    return {"verdict": finding.verdict, "layer": finding.layer, "reason": finding.reason}


def _parts(case: Case) -> dict[str, Any]:
    return {
        "requested": case.requested(),
        "resolved": case.resolved,
        "observed": case.observed(),
        "cache": case.cache,
        "kernels": [item.as_dict() for item in case.seen[:MAX_KERNELS]],
        "launches": case.launches,
        "stages": case.stages(),
        "numbers": [],
        "not_tested": ["the numbers that attention returned", *case.not_tested()],
    }
