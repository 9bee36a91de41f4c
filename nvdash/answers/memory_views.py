"""The memory answer over several cache dtypes and contexts, as the Memory page draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nvdash.answers.check import verdict_of
from nvdash.answers.memory import memory
from nvdash.answers.memory_parts import budget_of, pools_of
from nvdash.answers.memory_question import MemoryQuestion, memory_question
from nvdash.answers.words import count, dtype, tokens_short
from nvdash.errors import NvdashError, UnknownError
from nvdash.footprint.solve import requests_that_fit
from nvdash.readers import catalogue

CACHES = {"bfloat16": "16-bit", "fp8": "FP8", "nvfp4": "NVFP4"}
"""The cache flags that are drawn side by side, and their family."""
WIDE = "bfloat16"
CONTEXTS = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
WEIGHTS = ("bf16", "fp8", "nvfp4")
Answer = dict[str, Any]


def memory_views(question: Mapping[str, Any], tokens: int) -> Answer:
    """Growth per cache dtype, requests per context and precision, and what `tokens` in use take now.

    A cache dtype without known bytes for this layout has no answer and no `now`; the other dtypes still stand.
    """
    asked, refusal = None, None
    try:
        asked = memory(question)
    except UnknownError as error:
        refusal = error
    return {
        "answer": asked,
        "refusal": refusal and refusal.as_dict(),
        "growth": [growth(question, word, family) for word, family in CACHES.items()],
        "requests": requests(question),
        "now": asked and in_use(asked, tokens),
        **limits_of(asked or memory({**question, "kv_cache_dtype": WIDE})),
    }


def limits_of(asked: Answer) -> Answer:
    """The engine's share of the GPU and what is fixed inside it; the typical values of the range."""
    cache, weights = asked["available_kv_bytes"], asked["weights_bytes"]
    runtime = sum(item["bytes"] for item in asked["items"] if item["item"] in RUNTIME)
    if cache is None or weights is None:
        return {"fixed_bytes": None, "runtime_bytes": runtime or None, "limit_bytes": None}
    return {"fixed_bytes": weights + runtime, "runtime_bytes": runtime, "limit_bytes": weights + runtime + cache}


RUNTIME = ("activation_peak", "non_torch", "cuda_graphs")


def growth(question: Mapping[str, Any], word: str, family: str) -> Answer:
    """One cache dtype: what a token costs, where the pool is full, and whether the release runs it."""
    try:
        found = memory({**question, "kv_cache_dtype": word})
    except NvdashError as refusal:
        return {
            "dtype": family,
            "word": word,
            "error": str(refusal),
            "verdict": verdict_of({**question, "kv_cache_dtype": word}),
        }
    support = found["support"] or {"verdict": "unknown"}
    low, high = found["kv_tokens_low"], found["kv_tokens_high"]
    return {
        "dtype": family,
        "word": word,
        "bytes_per_token": found["kv_bytes_per_token"],
        "tokens_low": low,
        "tokens_high": high,
        "label": f"{family}: full at {between(low, high)}",
        "verdict": support["verdict"],
        "reason": support.get("reason"),
    }


def between(low: int | None, high: int | None) -> str:
    """A count, or the range it lies in; a pool of nothing is full at once."""
    if low is None or high is None:
        return "unknown"
    low, high = max(low, 0), max(high, 0)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def requests(question: Mapping[str, Any]) -> Answer:
    """Requests that fit at once, for each context and each known weight format with each cache dtype."""
    formats = weight_formats(question)
    pairs = [(weights, word) for weights in formats for word in CACHES]
    rows = [row for weights, word in pairs for row in column(question, weights, word)]
    return {"columns": [f"{weights} / {CACHES[word]}" for weights, word in pairs], "rows": rows}


def weight_formats(question: Mapping[str, Any]) -> Sequence[str]:
    """The asked format and those of WEIGHTS that a known checkpoint of the model has."""
    model = catalogue.load().model(str(question["model"]))
    known = {row.weights for row in model.checkpoints} | {str(question["weights"])}
    return [*(name for name in WEIGHTS if name in known), *sorted(known - set(WEIGHTS))][:4]


def column(question: Mapping[str, Any], weights: str, word: str) -> list[Answer]:
    """One pair of formats over the contexts; 0 where the weights alone exceed the GPU."""
    unsized = {"max_model_len": None, "context": None, "concurrency": None}
    words = {**question, **unsized, "weights": weights, "kv_cache_dtype": word}
    base: Answer = {"column": f"{weights} / {CACHES[word]}", "verdict": verdict_of(words), "low": None, "high": None}
    try:
        asked = memory_question(words)
        pools = pools_of(asked, budget_of(asked))
        return [{**base, **held(asked, pools, context)} for context in CONTEXTS]
    except NvdashError as refusal:
        return [{**base, "context": tokens_short(n), "label": "?", "reason": str(refusal)} for n in CONTEXTS]


def held(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]], context: int) -> Answer:
    """How many requests of one length fit, at either end of the range."""
    row: Answer = {"context": tokens_short(context), "low": None, "high": None, "label": "?"}
    own = asked.layout.max_position
    if not pools or (own is not None and context > own):
        return row
    request = replace(asked.request, max_model_len=context)
    ends = [
        requests_that_fit(asked.layout, replace(request, available_bytes=pools[at]), context)
        if min(pools[at]) > 0
        else 0
        for at in (0, -1)
    ]
    return row | {"low": ends[0], "high": ends[1], "label": between(*ends).replace("unknown", "?")}


def in_use(asked: Answer, tokens: int) -> Answer:
    """The cache that `tokens` in use take by the formula, and what of the pool is left at either end."""
    used = tokens * asked["kv_bytes_per_token"]
    low, high = asked["available_kv_bytes_low"], asked["available_kv_bytes_high"]
    left = (None, None) if low is None or high is None else (low - used, high - used)
    share = None if not asked["available_kv_bytes"] else used / asked["available_kv_bytes"]
    return {
        "tokens": tokens,
        "bytes": used,
        "left_low": left[0],
        "left_high": left[1],
        "share": share,
        "dtype": dtype(asked["resolved"]["kv_cache_dtype"]),
    }
