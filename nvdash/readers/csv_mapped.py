"""A table in no known format, read by a mapping that a person gave: column to field, with the unit of the column.

Nothing is guessed: a column that is not mapped is not read, and a unit is taken from the mapping alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, UsageError, did_you_mean
from nvdash.readers.bundle import FileReading
from nvdash.readers.csv_rows import csv_rows
from nvdash.readers.fields import FIELDS
from nvdash.readers.missing import missing
from nvdash.readers.plausibility import remarks
from nvdash.readers.record import to_number
from nvdash.readers.results.common import measured_runs
from nvdash.readers.source import FileRefused, Source, open_source

TO_FIELD_UNIT = {
    ("s", "ms"): 1000.0,
    ("us", "ms"): 1e-3,
    ("ns", "ms"): 1e-6,
    ("ms", "s"): 1e-3,
    ("min", "s"): 60.0,
    ("MiB", "GiB"): 1 / 1024,
    ("bytes", "GiB"): 1 / 2**30,
    ("%", ""): 0.01,
}
"""Factors from the unit of a column to the unit of a field."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a column holds: a field of the normal form, and the unit of the column where it is another one."""

    field: str
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.field not in FIELDS:
            raise UsageError(
                f"mapping to {self.field}", "a field of a run", "no such field", did_you_mean(self.field, FIELDS)
            )
        if self.factor is None:
            known = sorted(given for given, wanted in TO_FIELD_UNIT if wanted == FIELDS[self.field].unit)
            expected = f"a unit that becomes {FIELDS[self.field].unit or 'a plain number'}"
            raise UsageError(f"mapping to {self.field}", expected, f"found {self.unit}", f"known: {', '.join(known)}")

    @property
    def factor(self) -> float | None:
        """The factor to the unit of the field, None where there is none."""
        own = FIELDS[self.field].unit
        return 1.0 if self.unit in (None, own) else TO_FIELD_UNIT.get((self.unit or "", own))

    def value(self, text: str) -> Any:
        """The value of one cell."""
        number = to_number(text)
        return text or None if number is None or self.factor == 1.0 else number * (self.factor or 1.0)


def preview(path: Path, rows: int = 5) -> tuple[list[str], list[list[str]]]:
    """The header and the first rows of a table, to choose from."""
    with open_source(path) as source:
        table = csv_rows(source)
        return next(table, []), [row for row, _ in zip(table, range(rows), strict=False)]


def read_csv_mapped(
    path: Path, mapping: Mapping[str, Mapped], constants: Mapping[str, Any] | None = None
) -> FileReading:
    """The runs of a table by this mapping; `constants` are fields that hold for every row."""
    try:
        with open_source(path) as source:
            values = list(_values(source, mapping, constants or {}))
            runs, warnings = measured_runs(source.name, values)
    except NvdashError as error:
        return FileReading(str(path), error=error)
    found = (*warnings, *remarks(runs, ()))
    return FileReading(str(path), "csv-mapped", runs, warnings=found, missing=missing("serving", runs, (), {}))


def _values(source: Source, mapping: Mapping[str, Mapped], constants: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    table = csv_rows(source)
    header = [name.strip() for name in next(table, [])]
    absent = sorted(set(mapping) - set(header))
    if absent:
        raise FileRefused(
            source.name, "the mapped columns", f"found no {', '.join(absent)}", did_you_mean(absent[0], header)
        )
    places = {header.index(column): mapped for column, mapped in mapping.items()}
    for row in filter(any, table):
        cells = {mapped.field: mapped.value(row[place].strip()) for place, mapped in places.items() if place < len(row)}
        yield {"kind": "serving", **constants, **cells}
