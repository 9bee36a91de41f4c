"""A table in no known format, read by a mapping that a person gave: column to field, with the unit of the column.

Nothing is guessed: a column that is not mapped is not read, and a unit is taken from the mapping alone.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, UsageError, did_you_mean
from nvdash.readers.bundle import FileReading
from nvdash.readers.csv_rows import csv_rows, delimiter_of
from nvdash.readers.fields import FIELDS
from nvdash.readers.missing import missing
from nvdash.readers.plausibility import remarks
from nvdash.readers.record import Remark, to_number
from nvdash.readers.results.common import measured_runs
from nvdash.readers.source import FileRefused, Source, open_source

FORMAT = "csv-mapped"
MAX_RUNS = 20_000
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
NUMBERS = frozenset({"count", "measure", "signed", "ratio"})
"""Kinds of fields that hold nothing but a number."""


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
            own, *others = units_of(self.field)
            known = f"known: {', '.join(filter(None, [own, *others])) or 'none, it has no unit'}"
            expected = f"a unit that becomes {own or 'a plain value'}"
            raise UsageError(f"mapping to {self.field}", expected, f"found {self.unit}", known)

    @classmethod
    def parse(cls, text: str) -> "Mapped":
        """A field and a unit as they are written: `FIELD` or `FIELD:UNIT`."""
        field, colon, unit = text.strip().partition(":")
        return cls(field.strip(), unit.strip() if colon else None)

    @property
    def factor(self) -> float | None:
        """The factor to the unit of the field, None where there is none."""
        own = FIELDS[self.field].unit
        if self.unit is None or self.unit == own:
            return 1.0
        return TO_FIELD_UNIT[self.unit, own] if self.unit in units_of(self.field) else None

    def value(self, text: str) -> Any:
        """The value of one cell."""
        if FIELDS[self.field].kind not in NUMBERS:
            return text or None
        number = number_of(text)
        return number if number is None or self.factor == 1.0 else number * (self.factor or 1.0)


def number_of(text: str) -> float | int | None:
    """The number of a cell; "NaN" is how tables write that there is none, and a comma may be a decimal one."""
    number = None if "," in text else to_number(text)
    return None if number is None or math.isnan(number) else number


def units_of(field: str) -> tuple[str, ...]:
    """The units a column may have for this field, its own first."""
    own = FIELDS[field].unit
    others = [given for given, wanted in TO_FIELD_UNIT if wanted == own and (own or FIELDS[field].kind == "ratio")]
    return (own, *others)


def preview(path: Path, rows: int = 5) -> tuple[list[str], list[list[str]]]:
    """The header and the first rows of a table, to choose from."""
    with open_source(path) as source:
        table = _table(source)
        header = [name.strip() for name in next(table, [])]
        return header, [row for row, _ in zip(filter(any, table), range(rows), strict=False)]


def read_csv_mapped(
    path: Path, mapping: Mapping[str, Mapped], constants: Mapping[str, Any] | None = None
) -> FileReading:
    """The runs of a table by this mapping; `constants` are fields that hold for every row."""
    try:
        with open_source(path) as source:
            rows = list(_rows(source, mapping))
            runs, warnings = measured_runs(source.name, (_values(row, mapping, constants or {}) for row in rows))
    except NvdashError as error:
        return FileReading(str(path), FORMAT, error=error)
    found = (*_no_numbers(rows, mapping), *warnings, *remarks(runs, ()))
    return FileReading(str(path), FORMAT, runs, warnings=found, missing=missing("serving", runs, (), {}))


def _table(source: Source) -> Iterator[list[str]]:
    """Header and rows, whatever sign separates the cells."""
    first = next(iter(source.lines()), b"").decode("utf-8-sig", "replace")
    return csv_rows(source, delimiter=delimiter_of(first))


def _rows(source: Source, mapping: Mapping[str, Mapped]) -> Iterator[dict[str, str]]:
    """The mapped cells of every row, by column."""
    table = _table(source)
    header = [name.strip() for name in next(table, [])]
    _refuse_odd_mapping(source.name, header, mapping)
    places = {column: header.index(column) for column in mapping}
    for number, row in enumerate(filter(any, table), 1):
        if number > MAX_RUNS:
            raise FileRefused(source.name, f"at most {MAX_RUNS:,} rows, as each becomes a run", "found more")
        yield {column: row[place].strip() for column, place in places.items() if place < len(row)}


def _refuse_odd_mapping(where: str, header: list[str], mapping: Mapping[str, Mapped]) -> None:
    absent = sorted(set(mapping) - set(header))
    if absent:
        raise FileRefused(where, "the mapped columns", f"found no {', '.join(absent)}", did_you_mean(absent[0], header))
    taken: dict[str, str] = {}
    for column, mapped in mapping.items():
        other = taken.setdefault(mapped.field, column)
        if other != column:
            found = f"{other} and {column} are both {mapped.field}"
            raise FileRefused(where, "one column for a field", found, "leave one of them out")


def _values(row: Mapping[str, str], mapping: Mapping[str, Mapped], constants: Mapping[str, Any]) -> dict[str, Any]:
    cells = {mapping[column].field: mapping[column].value(text) for column, text in row.items()}
    return {"kind": "serving", **constants, **cells}


def _no_numbers(rows: Sequence[Mapping[str, str]], mapping: Mapping[str, Mapped]) -> Iterator[Remark]:
    """Columns with texts where their field holds a number: those cells are unknown."""
    for column, mapped in mapping.items():
        if FIELDS[mapped.field].kind not in NUMBERS:
            continue
        odd = [text for row in rows if (text := row.get(column)) and number_of(text) is None]
        if odd:
            such = f"{column}: {len(odd)} of {len(rows)} cells hold no number (such as {odd[0][:40]!r})"
            yield Remark("no_number", f"{such}, taken as unknown")
