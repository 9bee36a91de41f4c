"""Long-context quality: RULER's summary, LongBench v1 scores, LongBench v2 judgements.

None of them names the model or the cache; RULER's context length stands only in the path of its folder.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvdash.readers.csv_rows import csv_rows
from nvdash.readers.record import QualityRow, Reading, RecordError, Remark, clean_text, to_number
from nvdash.readers.results.common import Record
from nvdash.readers.source import FileRefused, Source

LONGBENCH_TASKS = frozenset(
    "narrativeqa qasper multifieldqa_en multifieldqa_zh hotpotqa 2wikimqa musique dureader gov_report qmsum multi_news"
    " vcsum trec triviaqa samsum lsht passage_count passage_retrieval_en passage_retrieval_zh lcc repobench-p".split()
)
_NULLS = re.compile(r"(\d+)/(\d+)")


def ruler(source: Source) -> Reading:
    """summary.csv: the rows Tasks, Score and Nulls, with or without a column of row numbers."""
    rows: dict[str, list[str]] = {}
    for row in csv_rows(source):
        place = next((n for n, cell in enumerate(row[:2]) if cell in ("Tasks", "Score", "Nulls")), None)
        if place is not None:
            rows[row[place]] = row[place + 1 :]
    if not {"Tasks", "Score"} <= rows.keys() or len(rows["Tasks"]) != len(rows["Score"]):
        raise FileRefused(source.name, "as many scores as tasks", "found another number")
    nulls = rows.get("Nulls", [])
    quality = [
        _score(source.name, task, "score", score, _NULLS.match(nulls[n]) if n < len(nulls) else None)
        for n, (task, score) in enumerate(zip(rows["Tasks"], rows["Score"], strict=True))
        if task
    ]
    unanswered = [task for task, cell in zip(rows["Tasks"], nulls, strict=False) if not cell.startswith("0/")]
    warnings = [Remark("no_answer", f"samples without an answer in {', '.join(unanswered)}")] if unanswered else []
    return Reading(quality=tuple(quality), warnings=tuple(warnings))


def _score(where: str, task: str, metric: str, value: Any, nulls: re.Match[str] | None = None) -> QualityRow:
    number = to_number(value)
    if number is None or not 0 <= number <= 100:
        raise RecordError(where, f"{task} as a score from 0 to 100", f"found {value}")
    count = int(nulls[2]) if nulls else None
    return QualityRow(clean_text(task) or "?", metric, None, number, n_effective=count, higher_is_better=True)


def is_longbench(record: Mapping[str, Any]) -> bool:
    """Whether an object is LongBench's result.json: nothing but its tasks with scores."""
    return bool(record) and all(task.removesuffix("_e") in LONGBENCH_TASKS for task in record)


def longbench(records: Sequence[Record], where: str) -> Reading:
    """LongBench v1 (a score per task) and LongBench-E (a score per task and length class)."""
    quality = [row for task, score in records[0].items() for row in _longbench_rows(where, task, score)]
    return Reading(quality=tuple(quality))


def _longbench_rows(where: str, task: str, score: Any) -> Iterable[QualityRow]:
    if isinstance(score, Mapping):
        return [_score(where, task, f"score {length}", value) for length, value in score.items()]
    return [_score(where, task, "score", score)]


_CLASSES = {
    "overall": None,
    "easy": "difficulty",
    "hard": "difficulty",
    "short": "length",
    "medium": "length",
    "long": "length",
}
"""Classes of questions, and the key that names them."""


def longbench_v2(records: Sequence[Record], where: str) -> Reading:
    """LongBench v2 predictions: the share of right answers, overall and by difficulty and length."""
    rows = []
    right = [(record, record["judge"]) for record in records if isinstance(record.get("judge"), bool)]
    for name, key in _CLASSES.items():
        judged = [judge for record, judge in right if key is None or record.get(key) == name]
        if judged:
            share = sum(judged) / len(judged)
            stderr = (share * (1 - share) / len(judged)) ** 0.5
            rows.append(
                QualityRow("longbench_v2", "acc", name, share, stderr, n_effective=len(judged), higher_is_better=True)
            )
    return Reading(quality=tuple(rows))


def predictions(records: Sequence[Record], where: str) -> Reading:
    """RULER's predictions: recognised, never scored here; prompts and answers are not kept."""
    return Reading(
        warnings=(Remark("samples", f"{len(records)} predictions: give RULER's summary.csv for the scores"),)
    )
