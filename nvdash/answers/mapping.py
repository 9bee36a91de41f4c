"""Tables in no known format: which columns they have, and what a person says that each of them holds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, UsageError, did_you_mean
from nvdash.readers.bundle import FileReading, Unrecognised
from nvdash.readers.csv_mapped import FORMAT, Mapped, preview, read_csv_mapped, units_of
from nvdash.readers.fields import FIELDS, with_unit

MAX_OFFERED = 60
"""Columns that a form offers; the command line maps any."""
MAX_SHOWN = 40


def read_tables(readings: Sequence[FileReading], mapping: Mapping[str, str]) -> list[FileReading]:
    """The readings, with tables in no known format read by `mapping`, from a column to `FIELD` or `FIELD:UNIT`."""
    if not mapping:
        return list(readings)
    mapped = {column: Mapped.parse(target) for column, target in mapping.items()}
    headers = {reading.file: _table(reading)[0] for reading in readings if is_table(reading)}
    known = [column for header in headers.values() for column in header]
    for column in mapping:
        if column not in known:
            found = "found no such column" if headers else "found no such table: no file is left to map"
            raise UsageError(f"column {column!r}", "a column of a table in no known format", found, near(column, known))
    return [_mapped(reading, headers.get(reading.file, []), mapped) for reading in readings]


def near(column: str, known: Sequence[str]) -> str:
    """The columns that may be meant, or all of a short table."""
    return did_you_mean(column, known) or f"columns: {', '.join(known[:MAX_OFFERED])}" if known else ""


def is_table(reading: FileReading) -> bool:
    """Whether this file is a table that no format fits."""
    return isinstance(reading.error, Unrecognised) and reading.error.is_table


def _table(reading: FileReading) -> tuple[list[str], list[list[str]]]:
    try:
        return preview(Path(reading.file))
    except NvdashError:
        return [], []


def _mapped(reading: FileReading, header: Sequence[str], mapping: Mapping[str, Mapped]) -> FileReading:
    own = {column: mapped for column, mapped in mapping.items() if column in header}
    return replace(read_csv_mapped(Path(reading.file), own), file=reading.file) if own else reading


def tables(readings: Sequence[FileReading]) -> list[dict[str, Any]]:
    """The tables that can be mapped: each column with its first cells; the first of two equal names counts."""
    found = []
    for reading in readings:
        if is_table(reading) or reading.format == FORMAT:
            header, rows = _table(reading)
            names = [name for name in dict.fromkeys(header) if name]
            columns = [{"column": name, "cells": _cells(rows, header.index(name))} for name in names[:MAX_OFFERED]]
            found.append({"file": Path(reading.file).name, "columns": columns, "more": len(names) - len(columns)})
    return found


def _cells(rows: Sequence[Sequence[str]], place: int) -> list[str]:
    return [row[place].strip()[:MAX_SHOWN] for row in rows if place < len(row)]


def targets() -> dict[str, str]:
    """What a column can be mapped to: `FIELD:UNIT` (`FIELD` without a unit), and how a form calls it."""
    return {
        f"{name}:{unit}" if unit else name: with_unit(field.label, unit)
        for name, field in FIELDS.items()
        for unit in units_of(name)
    }
