"""What an SGLang server log says of memory, pools and cache dtype, from 2025 to today; its "GB" are GiB."""

import re
from collections.abc import Iterable
from typing import Any

from nvdash.readers.logs.facts import Facts, flags, patterns, stated_controls
from nvdash.readers.record import clean_model

_PATTERNS = patterns(
    ("max_total_num_tokens=", r"max_total_num_tokens=(?P<kv_tokens>\d+)"),
    ("context_len=", r"context_len=(?P<context_len>\d+)"),
    ("max_running_requests=", r"max_running_requests=(?P<max_running_requests>\d+)"),
    ("chunked_prefill_size=", r"\bchunked_prefill_size=(?P<chunked_prefill_size>-?\d+)"),
    ("max_prefill_tokens=", r"\bmax_prefill_tokens=(?P<max_prefill_tokens>\d+)"),
    ("Memory pool end.", r"Memory pool end\. avail mem=(?P<avail_after_pool_min_gib>[\d.]+) GB"),
    ("Load weight begin.", r"Load weight begin\. avail mem=(?P<avail_before_weights_gib>[\d.]+) GB"),
    ("Load weight end.", r"type=(?P<architecture>\w+)"),
    ("Using KV cache dtype:", r"Using KV cache dtype: (?:torch\.)?(?P<kv_stored>\w+)"),
    ("Attention backend", r"Attention backend(?: not .*?)?[:=]\s*(?:Use )?(?P<attention_backend>[\w-]+) backend"),
    ("attention backend", r"Use (?P<attention_backend>[\w-]+) as (?:the )?attention backend"),
    ("Capture cuda graph end", r"mem usage=(?P<cuda_graph_gib>-?[\d.]+) GB"),
    ("NVFP4 prefill dequant dtype", r"NVFP4 prefill dequant dtype: (?P<prefill_dequant_dtype>\S+)"),
    ("KV Cache might lead", r"(?P<kv_recipe>NVFP4|FP4_MX_BLOCK16) KV Cache might lead"),
    ("Post-capture KV sizing", r"Post-capture KV sizing: .*?#tokens: (?P<kv_tokens_final>\d+)"),
    ("#running-req:", r"token usage: (?P<kv_usage_seen>[\d.]+)"),
    ("sglang", r"sglang(?:\[\w+\])?[ =]+v?(?P<version>\d+\.\d+[\w.]*)"),
)
_WEIGHTS_END = re.compile(r"Load weight end\..*?avail mem=([\d.]+) GB(?:, mem usage=(-?[\d.]+) GB)?")
_POOL = re.compile(
    r"(?P<label>[\w -]*?)KV Cache is allocated\.(?: dtype: (?:torch\.)?(?P<dtype>\w+),?)?"
    r"(?: #tokens: (?P<tokens>\d+),?)?"
    r"(?: KV size: (?P<kv>[\d.]+) GB)?(?: K size: (?P<k>[\d.]+) GB, V size: (?P<v>[\d.]+) GB)?"
)
_MAMBA = re.compile(r"Mamba Cache is allocated\..*?(?:size|conv_state size): ([\d.]+) ?GB")
_RANK = re.compile(r"\[[\d :.-]+ (?:DP\d+ )?TP(\d+)")
_DTYPES = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "bfloat16": "bfloat16", "float16": "float16"}
_FAILED = {
    "Not enough memory": "not enough memory; the static fraction is too small",
    "OutOfMemoryError": "out of GPU memory",
    "Scheduler hit an exception": "the scheduler stopped with an exception",
}


def read(messages: Iterable[str]) -> dict[str, Any]:
    """The facts of one server's messages."""
    facts, log = Facts(), _Pools()
    for text in messages:
        facts.match(_PATTERNS, text)
        log.take(facts, text)
    return _settled(facts.values, log)


class _Pools:
    """Weights, pools and ranks, which need more than one pattern."""

    def __init__(self) -> None:
        self.after_weights: list[float] = []
        self.usage: list[float] = []
        self.pools: dict[str, dict[str, Any]] = {}
        self.mamba_gib: float | None = None
        self.ranks: set[int] = set()
        self.options: dict[str, str] = {}
        self.failures: set[str] = set()

    def take(self, facts: Facts, text: str) -> None:
        """Take one message in."""
        if rank := _RANK.match(text.lstrip()):
            self.ranks.add(int(rank[1]))
        if match := _WEIGHTS_END.search(text):
            self.after_weights.append(float(match[1]))
            if match[2]:
                self.usage.append(float(match[2]))
        if match := _POOL.search(text):
            self._pool(match)
        if match := _MAMBA.search(text):
            self.mamba_gib = float(match[1])
        if "server_args=ServerArgs(" in text:
            self.options = flags(text.split("ServerArgs(", 1)[1]) | self.options
        self.failures |= {literal for literal in _FAILED if literal in text}

    def _pool(self, match: re.Match[str]) -> None:
        """One pool per label; of several ranks the smallest counts."""
        label = match["label"].split("]")[-1].strip() or "full"
        sizes = {name: float(match[name]) for name in ("kv", "k", "v") if match[name]}
        total = sizes.get("kv", sizes["k"] + sizes["v"] if {"k", "v"} <= sizes.keys() else None)
        tokens = int(match["tokens"]) if match["tokens"] else None
        known = self.pools.get(label)
        if known is None or (total is not None and total < (known["gib"] or total + 1)):
            self.pools[label] = {"gib": total, "tokens": tokens, "dtype": match["dtype"], **sizes}


def _settled(said: dict[str, Any], log: _Pools) -> dict[str, Any]:
    options = stated_controls(log.options)
    pool = log.pools.get("full") or next(iter(log.pools.values()), {})
    before = said.get("avail_before_weights_gib")
    facts = {
        **options,
        **{name: value for name, value in said.items() if name not in _WORKING},
        "framework": "sglang",
        "model": clean_model(log.options["model_path"]) if log.options.get("model_path") else None,
        "tp": options.get("tp") or (max(log.ranks) + 1 if len(log.ranks) > 1 else None),
        "weights_gib": log.usage[0] if log.usage else None,
        "kv_tokens": said.get("kv_tokens_final") or said.get("kv_tokens") or pool.get("tokens"),
        "kv_allocated_gib": round(pool["gib"], 2) if pool.get("gib") is not None else None,
        "k_gib": pool.get("k"),
        "v_gib": pool.get("v"),
        "mamba_gib": log.mamba_gib,
        "kv_cache_dtype_resolved": _stored(said, pool),
    }
    if not log.usage and before is not None and log.after_weights:
        facts["weights_gib_from_difference"] = round(before - log.after_weights[0], 2)
    if len(log.usage) > 1 and len(set(log.usage)) > 1 and len(log.ranks) <= 1:
        facts["draft_weights_gib"] = log.usage[1]
    if len(log.pools) > 1:
        facts["pools"] = {label: {"gib": p["gib"], "tokens": p["tokens"]} for label, p in log.pools.items()}
    facts |= _observed(facts, len(log.pools) > 1 or log.mamba_gib is not None)
    if log.failures:
        facts |= {"status": "failed", "failure": _FAILED[sorted(log.failures)[0]]}
    elif facts["kv_tokens"] or facts["kv_allocated_gib"]:
        facts["status"] = "ok"
    return {name: value for name, value in facts.items() if value is not None}


_WORKING = frozenset({"kv_stored", "kv_recipe", "kv_tokens_final", "kv_usage_seen", "avail_before_weights_gib"})


def _stored(said: dict[str, Any], pool: dict[str, Any]) -> str | None:
    """The dtype that the pool holds; both FP4 recipes print one dtype, only the accuracy warning names the recipe."""
    recipe = said.get("kv_recipe")
    if recipe:
        return str(recipe).lower()
    dtype = pool.get("dtype") or said.get("kv_stored")
    return _DTYPES.get(dtype, dtype) if dtype else None


def _observed(facts: dict[str, Any], several_pools: bool) -> dict[str, Any]:
    """Bytes per token of the one pool; with several pools a token has no single price."""
    gib, tokens = facts.get("kv_allocated_gib"), facts.get("kv_tokens")
    if not gib or not tokens or several_pools:
        return {}
    return {
        "observed": {
            "kv_bytes_per_token": round(gib * 2**30 / tokens, 3),
            "pool_bytes": int(gib * 2**30),
            "pool_source": "pool printed with two decimals",
            "kv_tokens": tokens,
        }
    }
