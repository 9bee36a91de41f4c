"""One file read, and the files of one run put together.

A file becomes a `FileReading`: its format, what it states in normal form, remarks, and what it leaves open. Files of
one run become a `Bundle`, which keeps for every field the file that states it and lists where files contradict.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError
from nvdash.readers import metrics
from nvdash.readers.csv_rows import cells, delimiter_of
from nvdash.readers.json_document import documents
from nvdash.readers.missing import Missing, missing
from nvdash.readers.plausibility import remarks
from nvdash.readers.recognise import JsonFormat, TextFormat, json_format, text_format, titles
from nvdash.readers.record import KernelRow, QualityRow, Reading, Remark, Run, Value, plain_json
from nvdash.readers.source import FileRefused, Source, open_source

HEAD = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileReading:
    """What one file says in normal form, or why it was refused."""

    file: str
    format: str | None = None
    runs: tuple[Run, ...] = ()
    quality: tuple[QualityRow, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    server: Mapping[str, Value] = field(default_factory=dict)
    warnings: tuple[Remark, ...] = ()
    missing: tuple[Missing, ...] = ()
    error: NvdashError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The answer of `read` for this file."""
        if self.error:
            return {"file": self.file, "format": None, "error": self.error.as_dict()}
        return {
            "file": self.file,
            "format": self.format,
            "runs": [run.as_dict() for run in self.runs],
            "quality": [row.as_dict() for row in self.quality],
            "kernels": [row.as_dict() for row in self.kernels],
            "server": plain_json(self.server),
            "warnings": [warning.as_dict() for warning in self.warnings],
            "missing": [gap.as_dict() for gap in self.missing],
        }


def read_file(path: Path) -> FileReading:
    """Read one file; a refusal is part of the answer, never an exception."""
    try:
        with open_source(path) as source:
            entry, reading = _read(source)
    except NvdashError as error:
        return FileReading(str(path), error=error)
    except (MemoryError, RecursionError) as error:
        refused = FileRefused(path.name, "a file that fits into memory", type(error).__name__)
        return FileReading(str(path), error=refused)
    found = (*reading.warnings, *remarks(reading.runs, reading.quality))
    return FileReading(
        str(path),
        entry.name,
        reading.runs,
        reading.quality,
        reading.kernels,
        reading.server,
        found,
        missing(entry.asks, reading.runs, reading.quality, reading.server),
    )


def _read(source: Source) -> tuple[JsonFormat | TextFormat, Reading]:
    head = source.head(HEAD).decode("utf-8", "replace")
    entry = text_format(head)
    if head.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        try:
            found = _read_json(source, head)
        except FileRefused:
            if entry is None or not entry.name.endswith("-log"):
                raise
            found = None
        if found:
            return found
    if entry is None:
        raise Unrecognised(source.name, head)
    return entry, _reader(entry.reader)(source)


def _read_json(source: Source, head: str) -> tuple[JsonFormat, Reading] | None:
    """The reading of JSON documents; None when the file is a log that only begins like JSON."""
    from nvdash.readers.traces import KernelCollector

    if _is_log_text(head):
        return None
    kernels = KernelCollector()
    records = _records(source.name, documents(source, {b"traceEvents": kernels.take}))
    entry = json_format(records[0]) if records else None
    if entry is None:
        raise Unrecognised(source.name, "")
    reading: Reading = _reader(entry.reader)(records, source.name)
    return entry, kernels.added_to(reading) if kernels.used else reading


def _is_log_text(head: str) -> bool:
    """Whether text that begins with a bracket is a log: bracketed stamps, or JSON records that wrap messages."""
    first = head.lstrip("\ufeff \t\r\n").split("\n", 1)[0]
    wrapped = first.startswith("{") and any(f'"{key}"' in first[:4096] for key in ("log", "message", "msg"))
    stamped = first.startswith("[") and not first.startswith(("[{", "[ ", "[]")) and first != "["
    return text_format(head) is not None and (wrapped or stamped)


def _records(where: str, values: Iterable[Any]) -> list[dict[str, Any]]:
    """The objects of a file: its documents, or the items of its one array."""
    records: list[dict[str, Any]] = []
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise FileRefused(where, "JSON objects", f"found {type(item).__name__} in the outer array")
            records.append(item)
    return records


def _reader(path: str) -> Callable[..., Reading]:
    module, _, name = path.partition(":")
    reader: Callable[..., Reading] = getattr(import_module(f"nvdash.readers.{module}"), name)
    return reader


class Unrecognised(FileRefused):
    """A file in no known format; a table among them can still be mapped column by column."""

    def __init__(self, where: str, head: str) -> None:
        lines = head.splitlines()[:3]
        delimiter = delimiter_of(lines[0]) if lines else ","
        rows = [row for line in lines if len(row := cells(line, delimiter)) > 1]
        self.is_table = len(rows) >= 2 and len(rows[0]) == len(rows[1])
        offer = "say what its columns hold, on the Submit page or with --map; " if self.is_table else ""
        hint = f"{offer}understood: {'; '.join(titles())}"
        super().__init__(where, "a format that is understood", "found none", hint)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of one run: what they state together, which file states what, and where they contradict."""

    files: tuple[FileReading, ...]
    """The files as they count: a rounded copy of another file's runs holds none."""
    runs: tuple[Run, ...]
    quality: tuple[QualityRow, ...]
    kernels: tuple[KernelRow, ...]
    server: Mapping[str, Value]
    provenance: Mapping[str, str]
    """File by field of `server`."""
    warnings: tuple[Remark, ...]
    missing: tuple[Missing, ...]


def combine(readings: Sequence[FileReading]) -> Bundle:
    """Put the readable files of one run together; values are never mixed, the first file that states one counts."""
    good, warnings = _without_rounded([reading for reading in readings if not reading.error])
    warnings += _renumbered(good)
    server, provenance = _server(good, warnings)
    runs = tuple(run for reading in good for run in reading.runs)
    warnings += _contradictions(runs, server, provenance)
    of_this_run = _of_this_run(server, provenance, good)
    filled = tuple(_filled(run, of_this_run) for run in runs)
    quality = tuple(row for reading in good for row in reading.quality)
    kernels = tuple(row for reading in good for row in reading.kernels)
    gaps = missing("serving" if runs else "quality" if quality else "server", filled, quality, of_this_run)
    counted = iter(good)
    files = tuple(reading if reading.error else next(counted) for reading in readings)
    return Bundle(files, filled, quality, kernels, server, provenance, tuple(warnings), gaps)


def _renumbered(readings: Sequence[FileReading]) -> Iterable[Remark]:
    """The remarks of every file, with the numbers that its runs have in the bundle."""
    before = 0
    for reading in readings:
        for remark in reading.warnings:
            yield remark if remark.run is None else replace(remark, run=remark.run + before)
        before += len(reading.runs)


_PRECISE = {
    "aiperf-csv": ("aiperf", "genai-perf"),
    "console": ("vllm-bench-serve", "vllm-bench-sweep", "sglang-bench-serving"),
    "vllm-bench-sweep-csv": ("vllm-bench-sweep",),
    "guidellm-csv": ("guidellm", "guidellm-yaml"),
    "guidellm-yaml": ("guidellm",),
    "trtllm-bench-stdout": ("trtllm-bench",),
    "llama-bench-markdown": ("llama-bench", "llama-bench-csv"),
    "llama-benchy-markdown": ("llama-benchy",),
    "flashinfer-benchmark-log": ("flashinfer-benchmark",),
}
"""Formats that print rounded what another format of the same tool states exactly."""


def _without_rounded(readings: Sequence[FileReading]) -> tuple[list[FileReading], list[Remark]]:
    """The readings, where a printed copy of as many exact runs loses its own; its facts about the server stay."""
    exact = {reading.format: len(reading.runs) for reading in readings}
    kept, copies = [], []
    for reading in readings:
        better = [name for name in _PRECISE.get(reading.format or "", ()) if exact.get(name) == len(reading.runs)]
        if reading.runs and better:
            text = f"{Path(reading.file).name} prints the runs of the {better[0]} file rounded: not counted again"
            copies.append(Remark("rounded_copy", text))
            reading = replace(reading, runs=(), warnings=())
        kept.append(reading)
    return kept, copies


def _server(readings: Sequence[FileReading], warnings: list[Remark]) -> tuple[dict[str, Value], dict[str, str]]:
    """Facts about the server with the file that states each; contradictions are added to the remarks."""
    scrapes = _in_order([reading for reading in readings if reading.format == "metrics"])
    server: dict[str, Value] = dict(_passed(scrapes, warnings))
    provenance = dict.fromkeys(server, " to ".join(Path(scrape.file).name for scrape in scrapes))
    for reading in readings:
        for name, value in reading.server.items():
            if name not in server:
                server[name], provenance[name] = value, Path(reading.file).name
            elif name in _MUST_AGREE and not _agree(server[name], value):
                text = f"{name}: {provenance[name]} says {server[name]}, {Path(reading.file).name} says {value}"
                warnings.append(Remark("contradiction", text))
    return server, provenance


def _of_this_run(
    server: Mapping[str, Value], provenance: Mapping[str, str], readings: Sequence[FileReading]
) -> dict[str, Value]:
    """The facts that hold for the run: what a server counted since its start does not, unless it counted nothing."""
    lifelong = {Path(reading.file).name for reading in readings if reading.format == "metrics" or _is_log(reading)}
    return {
        name: value
        for name, value in server.items()
        if name not in _COUNTED or provenance[name] not in lifelong or (name == "preemptions" and value == 0)
    }


def _is_log(reading: FileReading) -> bool:
    return (reading.format or "").endswith("-log")


_COUNTED = frozenset({"preemptions", "prefix_hit_rate", "kv_usage_max"})
_MUST_AGREE = frozenset(
    "framework version gpu gpu_count tp pp dp dcp kv_cache_dtype_requested kv_cache_dtype_resolved weight_format"
    " quantization attention_backend max_num_seqs max_num_batched_tokens gpu_memory_utilization max_model_len"
    " enable_prefix_caching enable_chunked_prefill kv_tokens num_blocks block_size num_speculative_tokens".split()
)
_FILLS = _MUST_AGREE | frozenset(
    "flashinfer_version moe_backend ep weights_gib available_kv_gib kv_allocated_gib cuda_graph_gib preemptions"
    " peak_activation_gib non_torch_gib cuda_graph_estimated_gib"
    " prefix_hit_rate kv_usage_max running_avg waiting_avg spec_method mem_fraction_static radix_cache_enabled".split()
)
"""Facts about a server that belong into each of its runs."""


def _agree(first: Value, second: Value) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) <= 1e-6 * max(abs(first), abs(second))
    return str(first).lower() == str(second).lower() or "auto" in (first, second)


def _contradictions(
    runs: Sequence[Run], server: Mapping[str, Value], provenance: Mapping[str, str]
) -> Iterable[Remark]:
    for number, run in enumerate(runs):
        for name in sorted(_MUST_AGREE & run.values.keys() & server.keys()):
            if not _agree(run.values[name], server[name]):
                text = f"{name}: the run says {run.values[name]}, {provenance[name]} says {server[name]}"
                yield Remark("contradiction", text, number)


def _filled(run: Run, server: Mapping[str, Value]) -> Run:
    """The run with what the server evidence adds; what the run states itself stays."""
    added = {name: server[name] for name in sorted(_FILLS & server.keys()) if run.get(name) is None}
    model = server.get("model")
    if isinstance(model, str) and "/" in model and "/" not in str(run.get("model") or ""):
        added["model"] = model
    return replace(run, values={**run.values, **added})


def _in_order(scrapes: Sequence[FileReading]) -> list[FileReading]:
    """Scrapes by how much the server had done."""
    return sorted(scrapes, key=lambda scrape: [_count(scrape, name) for name in _PROGRESS])


_PROGRESS = ("prompt_tokens_total", "generation_tokens_total", "requests_finished")


def _count(scrape: FileReading, name: str) -> int:
    value = scrape.server.get(name)
    return value if isinstance(value, int) else 0


def _passed(scrapes: Sequence[FileReading], warnings: list[Remark]) -> dict[str, Any]:
    """What happened between the first and the last of these scrapes; nothing when there is only one."""
    if len(scrapes) == 1:
        text = "one scrape only: its counters run since the server started, not over this run"
        warnings.append(Remark("one_scrape", text))
    if len(scrapes) < 2:
        return {}
    passed = metrics.between(scrapes[0].server, scrapes[-1].server)
    if passed is None:
        text = "the scrapes are of two servers or a restart lies between them: no counter can be differenced"
        warnings.append(Remark("restart", text))
        return {}
    return passed
