"""What a `/metrics` scrape of a server says: cache configuration, counters since the start, gauges of the moment.

SGLang's gauge of the hit rate is that of its last batch, 0 when idle; its counters give the rate since the start.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nvdash.readers.aliases import controls
from nvdash.readers.record import clean_model, flag, to_number

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

COUNTERS = {
    "vllm:num_preemptions": "preemptions",
    "vllm:prefix_cache_queries": "prefix_cache_queries",
    "vllm:prefix_cache_hits": "prefix_cache_hits",
    "vllm:gpu_prefix_cache_queries": "prefix_cache_queries",
    "vllm:gpu_prefix_cache_hits": "prefix_cache_hits",
    "vllm:prompt_tokens": "prompt_tokens_total",
    "vllm:generation_tokens": "generation_tokens_total",
    "vllm:request_success": "requests_finished",
    "vllm:spec_decode_num_draft_tokens": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens": "accepted_draft_tokens",
    "sglang:prompt_tokens": "prompt_tokens_total",
    "sglang:generation_tokens": "generation_tokens_total",
    "sglang:num_requests": "requests_finished",
    "sglang:cached_tokens": "prefix_cache_hits",
}
"""Counters by series name without `_total`; summed over engines and labels, a renamed series once."""
GAUGES = {
    "vllm:kv_cache_usage_perc": "kv_cache_usage",
    "vllm:gpu_cache_usage_perc": "kv_cache_usage",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "sglang:token_usage": "kv_cache_usage",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:max_total_num_tokens": "kv_tokens",
    "sglang:cache_hit_rate": "prefix_hit_rate",
    "process_start_time_seconds": "process_started",
}
_ADDED = frozenset({"running", "waiting"})
_HISTOGRAMS = {
    "vllm:request_prefill_time_seconds": "prefill_time",
    "vllm:request_decode_time_seconds": "decode_time",
    "vllm:request_queue_time_seconds": "queue_time",
}


def read(lines: Iterable[str]) -> dict[str, Any]:
    """The facts of one scrape; a server that was never asked has no hit rate."""
    facts: dict[str, Any] = {}
    series: dict[str, str] = {}
    for line in lines:
        sample = None if line.startswith("#") else _SAMPLE.match(line)
        number = to_number(sample[3]) if sample else None
        if sample and number is not None and number == number and abs(number) != float("inf"):
            name = sample[1].removesuffix("_total")
            if name not in COUNTERS or series.setdefault(COUNTERS[name], name) == name:
                _take(facts, sample[1], dict(_LABEL.findall(sample[2] or "")), number)
    return _settled(facts)


def _take(facts: dict[str, Any], name: str, labels: Mapping[str, str], number: float) -> None:
    framework = name.split(":", 1)[0] if ":" in name else None
    if framework in ("vllm", "sglang"):
        facts.setdefault("framework", framework)
    if labels.get("model_name"):
        facts.setdefault("model", clean_model(labels["model_name"]))
    counter = COUNTERS.get(name.removesuffix("_total"))
    if counter:
        facts[counter] = facts.get(counter, 0) + number
    elif name in GAUGES:
        field = GAUGES[name]
        facts[field] = facts.get(field, 0) + number if field in _ADDED else facts.get(field, number)
    elif name.endswith(("cache_config_info", "sglang:cache_config_info")):
        facts.update({key: value for key, value in _configuration(labels).items() if key not in facts})
    elif name.removesuffix("_sum") in _HISTOGRAMS:
        field = f"{_HISTOGRAMS[name.removesuffix('_sum')]}_s_total"
        facts[field] = facts.get(field, 0) + number


def _configuration(labels: Mapping[str, str]) -> dict[str, Any]:
    """The labels of `cache_config_info`: texts, where "None" means that nobody knows."""
    known = {key: value for key, value in labels.items() if value not in ("None", "")}
    return {
        **controls({k: v for k, v in known.items() if k not in ("cache_dtype", "mamba_cache_dtype")}),
        "kv_cache_dtype_requested": known.get("cache_dtype"),
        "max_concurrency": known.get("kv_cache_max_concurrency"),
        "pool_bytes": known.get("kv_cache_memory_bytes"),
        "attention_block_size": known.get("effective_attention_block_size"),
        "sliding_window": known.get("sliding_window"),
    }


_NUMBERS = (
    "block_size num_blocks kv_tokens max_concurrency pool_bytes gpu_memory_utilization attention_block_size"
    " sliding_window"
).split()
_WHOLE = ("preemptions prefix_cache_queries prefix_cache_hits prompt_tokens_total generation_tokens_total "
          "requests_finished draft_tokens accepted_draft_tokens running waiting kv_tokens").split()  # fmt: skip


def _settled(facts: dict[str, Any]) -> dict[str, Any]:
    for name in _NUMBERS:
        facts[name] = to_number(facts.get(name))
    for name in _WHOLE:
        facts[name] = int(facts[name]) if facts.get(name) is not None else None
    if "enable_prefix_caching" in facts:
        facts["enable_prefix_caching"] = flag(facts["enable_prefix_caching"])
    if facts.get("framework") == "sglang" and facts.get("prefix_cache_hits") is not None:
        facts["prefix_cache_queries"] = facts.get("prompt_tokens_total")
    if (rate := _hit_rate(facts)) is not None:
        facts["prefix_hit_rate"] = rate
    facts |= observed(facts)
    return {name: value for name, value in facts.items() if value is not None}


def _hit_rate(counted: Mapping[str, Any]) -> float | None:
    """Prompt tokens that were in the cache, by those that were looked for there; more hits than that is no rate."""
    queries, hits = counted.get("prefix_cache_queries"), counted.get("prefix_cache_hits")
    return hits / queries if queries and hits is not None and hits <= queries else None


def observed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes per token where the pool's bytes are stated; `uniform` when every token has its own slot in one pool."""
    pool, tokens = facts.get("pool_bytes"), facts.get("kv_tokens")
    if not pool or not tokens:
        return {}
    blocks, block = facts.get("num_blocks"), facts.get("block_size")
    return {
        "observed": {
            "kv_bytes_per_token": pool // tokens if pool % tokens == 0 else pool / tokens,
            "pool_bytes": pool,
            "pool_source": "kv_cache_memory_bytes",
            "kv_tokens": tokens,
            "uniform": blocks * block == tokens if blocks and block else None,
        }
    }


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """What happened between two scrapes of one server; None when the server was started again in between."""
    if before.get("process_started") != after.get("process_started"):
        return None
    counters = sorted(set(COUNTERS.values()))
    both = [name for name in counters if isinstance(before.get(name), int) and isinstance(after.get(name), int)]
    passed: dict[str, Any] = {name: after[name] - before[name] for name in both}
    if any(value < 0 for value in passed.values()):
        return None
    if (rate := _hit_rate(passed)) is not None:
        passed["prefix_hit_rate"] = rate
    return passed
