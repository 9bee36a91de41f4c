"""Scores of single samples: which question got which score, so that two runs can be compared pair by pair.

Only the sample's hash and its scores are kept; questions, answers and prompts are never read into a value.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvdash.readers.json_document import documents
from nvdash.readers.record import to_number
from nvdash.readers.source import FileRefused, open_source

FORMAT = "lm-eval-samples"
_NAME = re.compile(r"samples_(.+?)(?:_\d{4}-\d{2}-\d{2}T[\d.-]+)?\.jsonl(?:\.gz)?")
MAX_KEY = 80


@dataclass(frozen=True, slots=True)
class SampleScore:
    """One score of one sample under one metric and filter."""

    metric: str
    filter: str | None
    sample: str
    score: float

    def as_dict(self) -> dict[str, Any]:
        """The score as a row."""
        return {name: getattr(self, name) for name in self.__slots__}


def task_of(name: str, tasks: list[str]) -> str | None:
    """The task a samples file belongs to: its name says so; the longest task name that fits wins."""
    found = _NAME.fullmatch(name)
    stem = found[1] if found else ""
    fitting = [task for task in tasks if stem == task or stem.startswith(f"{task}_")]
    return max(fitting, key=len, default=None)


def read_samples(path: Path) -> tuple[SampleScore, ...]:
    """The scores in a samples file of lm-evaluation-harness."""
    with open_source(path) as source:
        return tuple(score for record in documents(source) for score in _scores(record, source.name))


def _scores(record: Any, where: str) -> Iterator[SampleScore]:
    if not isinstance(record, Mapping) or not isinstance(record.get("metrics"), list):
        raise FileRefused(where, "one sample per line with its metrics", "found another record")
    key = record.get("doc_hash") or record.get("doc_id")
    for metric in record["metrics"]:
        score = to_number(record.get(str(metric)))
        if key is not None and score is not None and math.isfinite(score):
            kept = record.get("filter")
            name = str(kept)[:MAX_KEY] if kept else None
            yield SampleScore(str(metric)[:MAX_KEY], name, str(key)[:MAX_KEY], float(score))
