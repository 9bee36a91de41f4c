"""What a page hands out: rows as CSV that no spreadsheet runs, and the options a form offers."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from nvdash.answers.choices import choices, kv_cache_dtypes
from nvdash.readers import catalogue
from nvdash.readers.matrix import Matrix
from nvdash.support.view import view

RUNS_AS_FORMULA = ("=", "+", "-", "@", "\t", "\r")
PREFIX_STATES = ("off", "on-cold", "on-warm")


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, one column per key; a text that would run as a formula gets a quote before it."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(RUNS_AS_FORMULA):
        return f"'{value}"
    return value


def field_options(field: str) -> tuple[str, ...]:
    """The usual answers to a question of the submission form; any other text may be typed."""
    known = choices()
    caches = tuple(dict.fromkeys(word for name in known.frameworks for word in kv_cache_dtypes(name) if word != "auto"))
    options: dict[str, tuple[str, ...]] = {
        "gpu": tuple(catalogue.load().gpu_rows),
        "gpu_count": ("1", "2", "4", "8", "16"),
        "framework": known.frameworks,
        "version": _newest_releases(),
        "weight_format": known.weights,
        "kv_cache_dtype_requested": ("auto", *caches),
        "kv_cache_dtype_resolved": caches,
        "attention_backend": _backends(),
        "prefix_cache_state": PREFIX_STATES,
        "workload": ("random 1024/128", "random 8192/1024", "sharegpt"),
    }
    return options.get(field, ())


def _newest_releases() -> tuple[str, ...]:
    found = [release.name for name in choices().frameworks for release in Matrix().rules(name).releases[-12:]]
    return tuple(dict.fromkeys(reversed(found)))


def _backends() -> tuple[str, ...]:
    newest = [(rules, rules.newest) for rules in (Matrix().rules(name) for name in choices().frameworks)]
    names = [name for rules, release in newest if release for name in view(rules, release.name).backends]
    return tuple(dict.fromkeys(names))
