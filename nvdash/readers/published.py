"""What others published, as `data/published.yaml` holds it: reports, each with its measurements apart."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash.errors import Problems, UsageError, did_you_mean
from nvdash.readers.yaml_rows import Row, read_rows

PUBLISHED = Path(__file__).resolve().parents[2] / "data" / "published.yaml"
PARTS = ("prefill", "decode", "append", "whole batch", "capacity", "quality")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number of one public source; never measured here."""

    id: str
    part: str
    """Which part of a server it speaks about; parts are never added up."""
    metric: str
    value: float | tuple[float, float]
    """A number, or the two ends of a range."""
    unit: str
    source: str
    verified: str
    """How far the number was read in its source."""
    date: str | None = None
    model: str | None = None
    model_base: str | None = None
    gpu: str | None = None
    gpu_id: str | None = None
    """The product of the catalogue, where the source names one."""
    arch: str | None = None
    framework: str | None = None
    version: str | None = None
    weight_format: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    workload: str | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The measurement as JSON, with its provenance."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {**values, "value": value, "provenance": "report", "label": "Published"}


@dataclass(frozen=True, slots=True)
class Report:
    """Measurements that were published together."""

    id: str
    title: str
    measurements: tuple[Measurement, ...]
    note: str = ""
    beside: tuple[str, ...] = field(default=())
    """Reports that must be read beside this one."""


KEYS = {item.name for item in fields(Measurement)}
REQUIRED = {item.name for item in fields(Measurement)[:7]}


@lru_cache(maxsize=1)
def load(path: Path = PUBLISHED) -> tuple[Report, ...]:
    """Every report of the file; all problems are told together."""
    problems: list[UsageError] = []
    reports = [_report(row, f"{path.name}:{row.line}", problems) for row in read_rows(path)]
    ids = [item.id for report in reports for item in report.measurements] + [report.id for report in reports]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        problems.append(UsageError(path.name, "every id once", f"found {name!r} twice"))
    for report in reports:
        for other in report.beside:
            if other not in ids:
                problems.append(UsageError(path.name, "known reports in `beside`", f"found {other!r}"))
    if problems:
        raise Problems(path.name, problems)
    return tuple(reports)


def _report(row: Row, where: str, problems: list[UsageError]) -> Report:
    shared: Mapping[str, Any] = row.get("shared") or {}
    rows = row.get("measurements") or []
    found = tuple(_measurement({**shared, **item}, where, problems) for item in rows)
    for name in sorted(set(row) - {"id", "title", "note", "beside", "shared", "measurements"}):
        problems.append(UsageError(where, "the keys of a report", f"found {name!r}"))
    return Report(
        str(row.get("id")), str(row.get("title")), found, str(row.get("note") or ""), tuple(row.get("beside") or ())
    )


def _measurement(values: Mapping[str, Any], where: str, problems: list[UsageError]) -> Measurement:
    """One measurement out of what its report shares and what it names itself."""
    where = f"{where} {values.get('id')}"
    for name in sorted(set(values) - KEYS):
        problems.append(UsageError(where, "the keys of a measurement", f"found {name!r}", did_you_mean(name, KEYS)))
    missing = sorted(name for name in REQUIRED if values.get(name) is None)
    if missing:
        problems.append(UsageError(where, "every measurement to say it", f"found no {', '.join(missing)}"))
    value = values.get("value")
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
        problems.append(UsageError(where, "a number or the two ends of a range as value", f"found {value!r}"))
    if values.get("part") not in PARTS:
        problems.append(UsageError(where, f"a part: {', '.join(PARTS)}", f"found {values.get('part')!r}"))
    known = {name: item for name, item in values.items() if name in KEYS and item is not None}
    known["value"] = (ends[0], ends[1]) if isinstance(value, list) and len(ends) == 2 else value
    return Measurement(**{**dict.fromkeys(REQUIRED, ""), **known})
