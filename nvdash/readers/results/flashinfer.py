"""flashinfer_benchmark: kernel timings as CSV, and the log, which alone names GPU, version and skipped backends.

Times are milliseconds without a unit in the header. The header repeats names; the first column of a name counts.
"""

import re
from collections.abc import Mapping
from typing import Any

from nvdash.readers.csv_rows import csv_records
from nvdash.readers.record import Reading, Value, clean_text
from nvdash.readers.results.common import measured_runs
from nvdash.readers.source import Source

_COLUMNS = {
    "median_time": "median_ms",
    "std_time": "std_ms",
    "tb_per_sec": "tb_per_s",
    **{
        name: name
        for name in (
            "routine backend tflops q_dtype kv_dtype num_qo_heads num_kv_heads head_dim_qk head_dim_vo page_size"
            " batch_size s_qo s_kv causal random_actual_seq_len avg_actual_seq_len case_tag"
        ).split()
    },
}


def table(source: Source) -> Reading:
    """The CSV: one row per routine, backend and case."""
    runs, warnings = measured_runs(source.name, map(_values, csv_records(source)))
    return Reading(runs, warnings=warnings)


def _values(cells: Mapping[str, str]) -> dict[str, Any]:
    stated = {field: cells[name].removeprefix("torch.") for name, field in _COLUMNS.items() if cells.get(name)}
    return {"kind": "kernel", **stated}


MAX_TEXT = 8_192
_GPU = re.compile(r"gpu_name = '([^']+)'")
_VERSION = re.compile(r"FlashInfer version: (\S+)")
_ROUTINE = re.compile(r"args = Namespace\(routine='(\w+)'.*?case_tag='([^']*)'|Running test(\w+)")
_PERF = re.compile(
    r"^\[PERF\] (\S+)\s*:: median time ([\d.]+) ms; std ([\d.]+) ms"
    r"(?:; achieved tflops ([\d.]+))?(?:.*?tb_per_sec ([\d.]+))?"
)
_SKIPPED = re.compile(r"\[WARNING\] (\S+) (?:for routine (\S+) )?is not supported on compute capability ([\d.]+)")


def log(source: Source) -> Reading:
    """The log: GPU and version, skipped backends, and timings with three decimals."""
    read = _Log()
    for raw in source.lines():
        read.take(raw[:MAX_TEXT].decode("utf-8", "replace"))
    runs, warnings = measured_runs(source.name, read.values)
    return Reading(
        runs, server={**read.facts, **({"skipped": tuple(read.skipped)} if read.skipped else {})}, warnings=warnings
    )


class _Log:
    """What the log said so far; a timing belongs to the routine that was announced last."""

    def __init__(self) -> None:
        self.facts: dict[str, Value] = {}
        self.skipped: list[str] = []
        self.values: list[dict[str, Any]] = []
        self.routine: dict[str, str | None] = {}

    def take(self, text: str) -> None:
        """Take one line in."""
        for name, regex in (("gpu", _GPU), ("flashinfer_version", _VERSION)):
            if match := regex.search(text):
                self.facts[name] = clean_text(match[1])
        if match := _ROUTINE.search(text):
            self.routine = (
                {"routine": match[1], "case_tag": match[2]} if match[1] else {**self.routine, "routine": match[3]}
            )
        if match := _SKIPPED.search(text):
            reason = f"{match[1]} not supported on compute capability {match[3]}"
            self.skipped += [reason] if reason not in self.skipped else []
        if match := _PERF.match(text):
            names = ("backend", "median_ms", "std_ms", "tflops", "tb_per_s")
            self.values.append({"kind": "kernel", **self.routine, **dict(zip(names, match.groups(), strict=True))})
