"""The two recording tables: what was measured of the weights and of the cache, and what was not."""

from collections.abc import Iterable, Mapping
from typing import Any

NOT_MEASURED = "not measured"
WEIGHTS = {
    "checkpoint bytes": ("model_bytes",),
    "loaded GPU memory": ("weights_gib",),
    "prefill throughput": ("prefill_tok_s",),
    "decode throughput": ("decode_tok_s", "output_tok_s"),
    "task quality": ("quality",),
}
CACHE = {
    "bytes per token": ("kv_bytes_per_token",),
    "KV cache tokens": ("kv_tokens",),
    "admitted sequences": ("admitted_sequences",),
    "preemptions": ("preemptions",),
    "hit rate": ("prefix_hit_rate",),
    "time to first token": ("ttft_mean_ms", "ttft_p50_ms"),
    "inter-token latency": ("itl_mean_ms", "itl_p50_ms"),
    "long-context quality": ("long_context_quality",),
}
TABLES = {"weights": WEIGHTS, "cache": CACHE}
LONG_CONTEXT_TOKENS = 32_768
LONG_CONTEXT_TASKS = ("ruler", "niah", "longbench", "infinitebench", "babilong")


def is_long_context(row: Mapping[str, Any]) -> bool:
    """Whether a quality row tests a long context: by its stated length, else by its task's family."""
    if row.get("context") is not None:
        return int(row["context"]) >= LONG_CONTEXT_TOKENS
    return str(row["task"]).lower().startswith(LONG_CONTEXT_TASKS)


def recorded(values: Mapping[str, Any], quality: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Both tables over the values of one configuration, each with how many of its fields were recorded."""
    rows = [row for row in quality if not row.get("is_group")]
    tasks = [row for row in rows if not is_long_context(row)]
    long = [row for row in rows if is_long_context(row)]
    told = {**values, "quality": _scores(tasks), "long_context_quality": _scores(long)}
    return {name: _table(name, fields, told) for name, fields in TABLES.items()}


def _scores(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    found = [{name: row.get(name) for name in ("task", "metric", "filter", "value", "stderr")} for row in rows]
    return found or None


def _table(name: str, fields: Mapping[str, tuple[str, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    rows = []
    for label, names in fields.items():
        field = next((item for item in names if told.get(item) is not None), None)
        rows.append({"label": label, "field": field, "value": NOT_MEASURED if field is None else told[field]})
    count = sum(row["field"] is not None for row in rows)
    headline = f"{name.title()}: {count} of {len(rows)} recorded"
    return {"rows": rows, "recorded": count, "of": len(rows), "headline": headline}
