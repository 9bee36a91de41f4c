"""`--map` of `read` and `submit`: what the columns of a table in no known format hold."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from nvdash.errors import UsageError


def mapping_flag(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--map COLUMN=FIELD[:UNIT]` to a command; may be given once per column."""
    words = 'A column of a CSV in no known format, for example --map "TTFT (s)=ttft_mean_ms:s"; others are left out.'
    return click.option("--map", "mapping", multiple=True, metavar="COLUMN=FIELD[:UNIT]", help=words)(function)


def mapped(texts: Iterable[str]) -> dict[str, str]:
    """The mapping by column; the last "=" divides, as a field has none and a column may."""
    split: dict[str, str] = {}
    for text in texts:
        column, equals, target = text.rpartition("=")
        if not equals or not column.strip() or not target.strip():
            hint = 'for example --map "TTFT (s)=ttft_mean_ms:s"'
            raise UsageError(f"--map {text}", "COLUMN=FIELD or COLUMN=FIELD:UNIT", f"found {text!r}", hint)
        if column.strip() in split:
            raise UsageError(f"--map {text}", "each column once", f"found {column.strip()!r} twice")
        split[column.strip()] = target.strip()
    return split
