"""Rows of a CSV file from strangers: UTF-8, bounded cells, bounded rows."""

import csv
from collections.abc import Iterator

from nvdash.readers.source import MAX_LINE, FileRefused, Source

MAX_ROWS = 100_000
DELIMITERS = ",;\t"


def cells(line: str, delimiter: str = ",") -> list[str]:
    """The cells of one line of a table; none when it is no such line."""
    try:
        return next(csv.reader([line[:MAX_LINE]], delimiter=delimiter), [])
    except csv.Error:
        return []


def delimiter_of(header: str) -> str:
    """What separates the cells of a table: the sign that cuts its first line into most; a comma when none does."""
    return max(DELIMITERS, key=lambda sign: len(cells(header, sign)))


def csv_rows(source: Source, skip_until: str = "", delimiter: str = ",") -> Iterator[list[str]]:
    """The rows of the file; with `skip_until`, from the first line on that holds this text."""
    csv.field_size_limit(MAX_LINE)
    number = 0
    try:
        for number, row in enumerate(csv.reader(_lines(source, skip_until), delimiter=delimiter), 1):
            if number > MAX_ROWS:
                raise FileRefused(source.name, f"at most {MAX_ROWS:,} rows", "found more")
            yield row
    except UnicodeDecodeError as error:
        raise FileRefused(f"{source.name}, row {number + 1}", "UTF-8 text", f"byte {error.start} is not") from error
    except csv.Error as error:
        raise FileRefused(f"{source.name}, row {number + 1}", "a CSV table", str(error)) from error


def _lines(source: Source, skip_until: str) -> Iterator[str]:
    waiting = bool(skip_until)
    for number, line in enumerate(source.lines()):
        if number % 10_000 == 9_999:
            source.deadline.check(source.name)
        if waiting and skip_until.encode() not in line:
            continue
        waiting = False
        yield line.decode("utf-8-sig" if number == 0 else "utf-8") + "\n"


def csv_records(source: Source) -> Iterator[dict[str, str]]:
    """The rows by the names of the header; the first column of a name counts, empty cells are left out."""
    rows = csv_rows(source)
    header = [name.strip() for name in next(rows, [])]
    for row in rows:
        record: dict[str, str] = {}
        for name, text in zip(header, row, strict=False):
            if name and text.strip():
                record.setdefault(name, text.strip())
        if record:
            yield record
