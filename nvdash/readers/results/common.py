"""What the result readers share: distributions, dates, zeros that are no measurements."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from nvdash.readers.fields import STATISTICS
from nvdash.readers.record import Remark, Run, make_run, only_measured, to_number

Record = Mapping[str, Any]
MS_PER_S = 1000.0


def distribution(latency: str, value_of: Callable[[str], Any], factor: float = 1.0) -> dict[str, float | None]:
    """The fields of one latency in milliseconds; `value_of` is asked for mean, p50, p90, p95, p99 and std."""
    return {f"{latency}_{name}_ms": scaled(value_of(name), factor) for name in STATISTICS}


def scaled(value: Any, factor: float) -> float | None:
    """A number in another unit; the value itself when the unit is the same."""
    number = to_number(value)
    return number if number is None or factor == 1 else number * factor


def ratio(part: Any, whole: Any) -> float | None:
    """One number by another; None when either is unknown or the second is zero."""
    above, below = to_number(part), to_number(whole)
    return above / below if above is not None and below else None


def epoch(value: Any) -> str | None:
    """A Unix time in seconds as ISO text in UTC."""
    seconds = to_number(value)
    if seconds is None or not 0 < seconds < 4e9:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def mapping(value: Any) -> Record:
    """The value when it is an object, an empty one otherwise."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Record]:
    """The objects of a list, nothing for anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def measured_run(where: str, number: int, values: dict[str, Any]) -> tuple[Run, list[Remark]]:
    """A run without numbers that stand for "not measured", and the remarks about them."""
    kept, zeros = only_measured(values, values.get("requests_completed"))
    whole = _in_one_piece(values)
    if whole:
        kept = {name: value for name, value in kept.items() if not name.startswith(("ttft_", "tpot_"))}
    run = make_run(where, **kept)
    if to_number(values.get("requests_completed")) == 0:
        sent = run.get("num_prompts") or run.get("requests_failed")
        text = f"0 of {sent} requests finished" if sent else "no request finished"
        return run, [Remark("all_failed", f"{text}: speeds are not stored", number)]
    remarks = []
    if zeros:
        remarks.append(Remark("zero", f"zero is not a measurement, taken as unknown: {', '.join(zeros)}", number))
    if whole:
        text = "no gap between tokens: answers came whole; times to the first and per token are not kept"
        remarks.append(Remark("not_streaming", text, number))
    return run, remarks


def _in_one_piece(values: Record) -> bool:
    """Whether answers of more than one token had no gap in them: they were not streamed."""
    length = to_number(values.get("osl_mean"))
    return to_number(values.get("itl_mean_ms")) == 0 and length is not None and length > 1


def measured_runs(where: str, rows: Iterable[dict[str, Any]]) -> tuple[tuple[Run, ...], tuple[Remark, ...]]:
    """Checked runs from the values of every row."""
    runs: list[Run] = []
    warnings: list[Remark] = []
    for number, values in enumerate(rows):
        run, remarks = measured_run(where, number, values)
        runs.append(run)
        warnings += remarks
    return tuple(runs), tuple(warnings)
