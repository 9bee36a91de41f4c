"""Kernels that really ran: Kineto traces event by event, nsys tables row by row.

A trace of hundreds of megabytes is one long array. Its items are read one at a time and only names, counts and times
are kept; host names, paths and stacks never leave this module.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nvdash.readers.csv_rows import csv_rows
from nvdash.readers.record import KernelRow, Reading, Value, clean_text, to_number
from nvdash.readers.results.common import Record, items
from nvdash.readers.source import FileRefused, Source

_CHUNK = 4 * 2**20
MAX_NAMES = 20_000
MAX_NAME = 2_000
NS_PER_US = 1000.0
_COMMA = re.compile(r"[\s,]*")
_CPU_KERNEL = re.compile(r"^_C\w*::|flash_attn|paged_attention")


class KernelCollector:
    """Counts and times by kernel name, filled from the `traceEvents` array of one file."""

    def __init__(self) -> None:
        self.used = False
        self.events = 0
        self.kernels: dict[str, list[float]] = {}
        self.host_kernels: dict[str, list[float]] = {}
        self.steps = 0

    def take(self, source: Source, place: int) -> int:
        """Read the items of the array that opens here; the place behind its closing bracket."""
        self.used = True
        decoder, text, base, position = json.JSONDecoder(), "", place + 1, 0
        while True:
            position = _COMMA.match(text, position).end()  # type: ignore[union-attr]
            if position < len(text) and text[position] == "]":
                return base + position + 1
            try:
                event, position = decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                start = base + position
                text, base, position = self._more(source, start, len(text) - position, error), start, 0
                continue
            self._event(event)
            if self.events % 50_000 == 0:
                source.deadline.check(source.name)
                source.release(base)

    @staticmethod
    def _more(source: Source, start: int, unread: int, error: Exception) -> str:
        """The bytes from here on, one chunk further than before; one byte is one character, whatever the encoding."""
        end = start + unread + _CHUNK
        if unread > 16 * _CHUNK or start + unread >= source.size or isinstance(error, RecursionError):
            where = f"{source.name}, byte {start}"
            raise FileRefused(where, "a whole trace event", "it is damaged or cut off") from error
        return source.buffer[start:end].decode("latin-1")

    def _event(self, event: Any) -> None:
        self.events += 1
        if not isinstance(event, dict):
            return
        category = str(event.get("cat", "")).lower()
        name = event.get("name")
        if not isinstance(name, str):
            return
        if category == "kernel":
            _count(self.kernels, name, event)
        elif category == "cpu_op" and _CPU_KERNEL.search(name):
            _count(self.host_kernels, name, event)
        elif category == "user_annotation" and name.startswith("execute_"):
            self.steps += 1

    def added_to(self, reading: Reading) -> Reading:
        """The reading of the rest of the trace with the kernels in it, longest first."""
        counted = self.kernels or self.host_kernels
        total = sum(time for _, time in counted.values())
        rows = [
            KernelRow(_readable(name), int(calls), time, round(100 * time / total, 3) if total else None)
            for name, (calls, time) in counted.items()
        ]
        facts = {
            **reading.server,
            "kernel_events": int(sum(calls for calls, _ in counted.values())),
            "kernel_time_us": total,
            "kernels_on": "gpu" if self.kernels else "cpu" if self.host_kernels else None,
            "steps": self.steps or None,
        }
        stated = {name: value for name, value in facts.items() if value is not None}
        return replace(reading, kernels=tuple(sorted(rows, key=lambda row: row.order)), server=stated)


def _count(counted: dict[str, list[float]], name: str, event: Mapping[str, Any]) -> None:
    duration = to_number(event.get("dur"))
    if duration is None or not 0 <= duration < 1e15:
        return
    if name not in counted and len(counted) >= MAX_NAMES:
        name = "(other kernels)"
    entry = counted.setdefault(name[:MAX_NAME], [0, 0.0])
    entry[0] += 1
    entry[1] += duration


def _readable(name: str) -> str:
    """A kernel name whose bytes were read one by one, as the UTF-8 text that it is."""
    try:
        return name.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return name


def kineto(records: Sequence[Record], where: str) -> Reading:
    """What a Kineto trace says beside its events: the devices, and the engine's version where it was added."""
    trace = records[0]
    devices = [device for device in items(trace.get("deviceProperties")) if device.get("name")]
    facts: dict[str, Value] = {}
    if devices:
        first = devices[0]
        facts["gpu"] = clean_text(first["name"])
        facts["gpus_visible"] = len(devices)
        major, minor = first.get("computeMajor"), first.get("computeMinor")
        if _is_nvidia(str(first["name"])) and isinstance(major, int) and isinstance(minor, int):
            facts["compute_capability"] = f"{major}.{minor}"
        memory = to_number(first.get("totalGlobalMem"))
        facts["gpu_memory_bytes"] = int(memory) if memory else None
    if isinstance(trace.get("vllm_version"), str):
        facts |= {"framework": "vllm", "version": clean_text(trace["vllm_version"])}
    return Reading(server={name: value for name, value in facts.items() if value is not None})


def _is_nvidia(name: str) -> bool:
    """AMD devices print a compute major of 9 to 12 as well; it is no CUDA capability."""
    return not any(word in name.lower() for word in ("amd", "radeon", "instinct", "intel", "gfx"))


def nsys(source: Source) -> Reading:
    """`nsys stats` cuda_gpu_kern_sum as CSV, the first such table where there are several, between other output."""
    rows: list[KernelRow] = []
    header: list[str] = []
    for row in csv_rows(source, skip_until=_TOTAL):
        cells = [cell.strip() for cell in row]
        if _TOTAL in cells:
            if rows:
                break
            header = cells if _is_kernel_table(cells) else []
        elif header and (kernel := _nsys_row(dict(zip(header, cells, strict=False)))):
            rows.append(kernel)
        elif rows and not any(cells):
            break
    if not rows:
        raise FileRefused(source.name, "the table cuda_gpu_kern_sum of nsys stats", "found no row of a kernel")
    return Reading(kernels=tuple(sorted(rows, key=lambda row: row.order)))


_TOTAL = "Total Time (ns)"


def _is_kernel_table(header: Sequence[str]) -> bool:
    """Whether a table of nsys counts kernels; those of ranges and of memory operations name other things."""
    return "Instances" in header and ("Name" in header or "Kernel Name" in header)


def _nsys_row(row: Mapping[str, str]) -> KernelRow | None:
    calls, nanoseconds = to_number(row.get("Instances")), to_number(row.get(_TOTAL))
    name = row.get("Name") or row.get("Kernel Name")
    if name is None or calls is None or nanoseconds is None or not (0 <= nanoseconds < 1e18 and 0 <= calls < 1e15):
        return None
    share = to_number(row.get("Time (%)") or row.get("Time(%)"))
    return KernelRow(name[:MAX_NAME], int(calls), nanoseconds / NS_PER_US, share)
