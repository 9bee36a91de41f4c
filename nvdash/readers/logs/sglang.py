"""What an SGLang server log says of memory, pools and cache dtype, from 2025 to today; its "GB" are GiB.

A hybrid keeps several pools, a drafter its own weights and pool. They are told apart by what the lines state, and a
token of several pools has no single price.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nvdash.readers.logs.facts import Facts, flags, patterns, stated_controls, stored_dtype
from nvdash.readers.record import clean_model

_PATTERNS = patterns(
    ("max_total_num_tokens=", r"max_total_num_tokens=(?P<kv_tokens>\d+)"),
    ("context_len=", r"context_len=(?P<context_len>\d+)"),
    ("max_running_requests=", r"max_running_requests=(?P<max_running_requests>\d+)"),
    ("chunked_prefill_size=", r"\bchunked_prefill_size=(?P<chunked_prefill_size>-?\d+)"),
    ("max_prefill_tokens=", r"\bmax_prefill_tokens=(?P<max_prefill_tokens>\d+)"),
    ("Memory pool end.", r"Memory pool end\. avail mem=(?P<avail_after_pool_min_gib>[\d.]+) GB"),
    ("Load weight begin.", r"Load weight begin\. avail mem=(?P<avail_before_weights_gib>[\d.]+) GB"),
    ("Using KV cache dtype:", r"Using KV cache dtype: (?P<kv_stored>[\w.]+)"),
    ("backend by default", r"Attention backend not specified\. Use (?P<attention_backend>[\w-]+) backend by default"),
    ("attention backend", r"Use (?P<attention_backend>[\w-]+) as (?:the )?attention backend"),
    ("Capture cuda graph end", r"mem usage=(?P<cuda_graph_gib>-?[\d.]+) GB"),
    ("NVFP4 prefill dequant dtype", r"NVFP4 prefill dequant dtype: (?P<prefill_dequant_dtype>[\w.]+)"),
    ("KV Cache might lead", r"(?P<kv_recipe>NVFP4|FP4_MX_BLOCK16) KV Cache might lead"),
    ("Post-capture KV sizing", r"Post-capture KV sizing: .*?#tokens: (?P<kv_tokens_final>\d+)"),
    ("sglang", r"sglang(?:\[\w+\])?[ =]+v?(?P<version>\d+\.\d+[\w.]*)"),
)
_WEIGHTS_END = re.compile(
    r"Load weight end\.(?=.*?type=(?P<type>\w+))?(?=.*?quant=(?P<quant>\w+))?(?=.*?quant_algo=(?P<algo>\w+))?"
    r".*?avail mem=(?P<left>[\d.]+) GB(?:, mem usage=(?P<used>-?[\d.]+) GB)?"
)
_POOL = re.compile(
    r"KV Cache is allocated\.(?: dtype: (?P<dtype>[\w.]+),?)?(?: #tokens: (?P<tokens>\d+),?)?"
    r"(?: KV size: (?P<kv>[\d.]+) GB)?(?: K(?: size:)? (?P<k>[\d.]+) GB, V(?: size:)? (?P<v>[\d.]+) GB)?"
)
_MAMBA = re.compile(r"Mamba Cache is allocated\.(.*)")
_STATE_SIZE = re.compile(r"size: ([\d.]+) ?GB")
_RANK = re.compile(r"\[[\d :.,-]+ (?:[A-Z]+\d+ )*?TP(\d+)")
_FAILED = {
    "Not enough memory": "not enough memory; the static fraction is too small",
    "OutOfMemoryError": "out of GPU memory",
    "Scheduler hit an exception": "the scheduler stopped with an exception",
}


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool as its line states it."""

    tokens: int | None
    gib: float | None
    k_gib: float | None = None
    v_gib: float | None = None
    dtype: str | None = None


class Log:
    """One server's messages, taken one by one."""

    def __init__(self) -> None:
        self._said, self._sizes = Facts(), _Sizes()

    def take(self, text: str) -> None:
        """Take one message in; the lines of every batch state nothing that is kept."""
        if "batch. #" not in text:
            self._said.match(_PATTERNS, text)
            self._sizes.take(text)

    def facts(self) -> dict[str, Any]:
        """The facts about the server, each by its normal name."""
        return _settled(self._said.values, self._sizes)


def read(messages: Iterable[str]) -> dict[str, Any]:
    """The facts of one server whose messages are at hand."""
    log = Log()
    for text in messages:
        log.take(text)
    return log.facts()


class _Sizes:
    """Weights, pools and ranks, which need more than one pattern."""

    def __init__(self) -> None:
        self.left_gib: list[float] = []
        self.used_gib: dict[str, float] = {}
        """GiB by model class: the target first, then its drafter."""
        self.quant: dict[str, str] = {}
        self.classes: list[str] = []
        self.pools: list[Pool] = []
        self.state_gib: float | None = None
        self.ranks: set[int] = set()
        self.options: dict[str, str] = {}
        self.failures: set[str] = set()

    def take(self, text: str) -> None:
        """Take one message in."""
        if rank := _RANK.match(text.lstrip()):
            self.ranks.add(int(rank[1]))
        if match := _WEIGHTS_END.search(text):
            self._weights(match)
        if match := _POOL.search(text):
            self._pool(match)
        if match := _MAMBA.search(text):
            self.state_gib = round(sum(map(float, _STATE_SIZE.findall(match[1]))), 2)
        if "server_args=ServerArgs(" in text:
            self.options = flags(text.split("ServerArgs(", 1)[1]) | self.options
        self.failures |= {literal for literal in _FAILED if literal in text}

    def _weights(self, match: re.Match[str]) -> None:
        name = match["type"] or ""
        if name and name not in self.classes:
            self.classes.append(name)
        self.left_gib.append(float(match["left"]))
        if match["used"]:
            self.used_gib[name] = max(float(match["used"]), self.used_gib.get(name, float("-inf")))
        for key in ("quant", "algo"):
            if match[key]:
                self.quant.setdefault(key, match[key])

    def _pool(self, match: re.Match[str]) -> None:
        """Keep a pool once, however many ranks print it."""
        kv, k, v = (float(match[name]) if match[name] else None for name in ("kv", "k", "v"))
        both = round(k + v, 2) if k is not None and v is not None else None
        tokens = int(match["tokens"]) if match["tokens"] else None
        dtype = stored_dtype(match["dtype"]) if match["dtype"] else None
        pool = Pool(tokens, both if kv is None else kv, k, v, dtype)
        if pool not in self.pools:
            self.pools.append(pool)


def _settled(said: dict[str, Any], log: _Sizes) -> dict[str, Any]:
    options = stated_controls(log.options)
    stated_tokens = said.get("kv_tokens_final") or said.get("kv_tokens")
    pool = _main_pool(log.pools, stated_tokens)
    facts = {
        **options,
        **{name: value for name, value in said.items() if name not in _WORKING},
        "framework": "sglang",
        "model": clean_model(log.options["model_path"]) if log.options.get("model_path") else None,
        "architecture": log.classes[0] if log.classes else None,
        "tp": options.get("tp") or (max(log.ranks) + 1 if len(log.ranks) > 1 else None),
        "quantization": log.quant.get("quant") or options.get("quantization"),
        "weight_format": log.quant["algo"].lower() if "algo" in log.quant else None,
        "kv_tokens": stated_tokens or pool.tokens,
        "kv_allocated_gib": pool.gib,
        "k_gib": pool.k_gib,
        "v_gib": pool.v_gib,
        "state_gib": log.state_gib,
        "kv_cache_dtype_resolved": _stored(said, pool),
        **_weights(said, log),
    }
    several = len(log.pools) > 1 or log.state_gib is not None
    if len(log.pools) > 1:
        facts["pools"] = [{"kv_tokens": entry.tokens, "gib": entry.gib} for entry in log.pools]
    facts |= {} if several else _observed(pool.gib, facts["kv_tokens"])
    facts |= _outcome(facts, log)
    return {name: value for name, value in facts.items() if value is not None}


_WORKING = frozenset({"kv_stored", "kv_recipe", "kv_tokens_final", "avail_before_weights_gib"})


def _main_pool(pools: list[Pool], tokens: int | None) -> Pool:
    """The pool that the stated number of tokens counts; the first one where none says so."""
    return next(
        (pool for pool in pools if tokens is not None and pool.tokens == tokens),
        pools[0] if pools else Pool(None, None),
    )


def _weights(said: dict[str, Any], log: _Sizes) -> dict[str, Any]:
    """Weights of the target and of its drafter; before they were printed, the memory that loading took."""
    used = list(log.used_gib.values())
    before = said.get("avail_before_weights_gib")
    taken = round(before - log.left_gib[0], 2) if before is not None and log.left_gib and not used else None
    return {
        "weights_gib": used[0] if used else None,
        "draft_weights_gib": used[1] if len(used) > 1 else None,
        "weights_gib_from_difference": taken,
    }


def _stored(said: dict[str, Any], pool: Pool) -> str | None:
    """The dtype that the pool holds; both FP4 recipes print one dtype, only the accuracy warning names the recipe."""
    recipe = said.get("kv_recipe")
    if recipe:
        return str(recipe).lower()
    return pool.dtype or (stored_dtype(said["kv_stored"]) if "kv_stored" in said else None)


def _observed(gib: float | None, tokens: int | None) -> dict[str, Any]:
    """Bytes per token of the one pool."""
    if not gib or not tokens:
        return {}
    return {
        "observed": {
            "kv_bytes_per_token": round(gib * 2**30 / tokens, 3),
            "pool_bytes": int(gib * 2**30),
            "pool_source": "pool printed with two decimals",
            "kv_tokens": tokens,
        }
    }


def _outcome(facts: dict[str, Any], log: _Sizes) -> dict[str, Any]:
    if log.failures:
        return {"status": "failed", "failure": next(text for word, text in _FAILED.items() if word in log.failures)}
    return {"status": "ok"} if facts["kv_tokens"] or facts["kv_allocated_gib"] else {}
