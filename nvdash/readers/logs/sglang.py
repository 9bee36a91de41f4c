"""What an SGLang server log says of memory, pools and cache dtype, from 2025 to today; its "GB" are GiB.

A hybrid keeps several pools, a drafter its own weights and pool. They are told apart by what the lines state, and a
token of several pools has no single price.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nvdash.readers.logs.facts import DRAFTER_CLASS, Facts, flags, patterns, stated_controls, stored_dtype
from nvdash.readers.record import clean_model

_PATTERNS = patterns(
    ("max_total_num_tokens=", r"max_total_num_tokens=(?P<kv_tokens>\d+)"),
    ("full_layer_tokens=", r"full_layer_tokens=(?P<full_tokens>\d+)"),
    ("SWAKVPool mem usage", r"full size: (?P<full_tokens>\d+)"),
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
    ("FP4 (E2M1) KV Cache might lead", r"(?P<kv_recipe>FP4 \(E2M1\)) KV Cache might lead"),
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
_WRITER = re.compile(r"\[[\d :.,T-]+((?: ?[A-Z]+\d+)*)\]")
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
        self._said, self._sizes, self._starts = Facts(), _Sizes(), 1

    def take(self, text: str) -> None:
        """Take one message in; a start after sizes or a failure begins anew, so that the last start counts."""
        if "#running-req" in text:
            return
        if "server_args=ServerArgs(" in text and (self._sizes.failures or "kv_tokens" in self._said.values):
            self._said, self._sizes, self._starts = Facts(), _Sizes(), self._starts + 1
        self._said.match(_PATTERNS, text)
        self._sizes.take(text)

    def facts(self) -> dict[str, Any]:
        """The facts about the server, each by its normal name."""
        starts = {"server_starts": self._starts} if self._starts > 1 else {}
        return {**_settled(self._said.values, self._sizes), **starts}


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
        """Pools of the target."""
        self.draft_pools: list[Pool] = []
        """Pools that a rank allocates once it is done with the target's."""
        self.done: set[str] = set()
        """Ranks that are."""
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
            self._pool(match, _writer(text))
        if "Memory pool end." in text:
            self.done.add(_writer(text))
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

    def _pool(self, match: re.Match[str], writer: str) -> None:
        """Keep a pool once, however many ranks print it; one after the end of a rank's pools is the drafter's."""
        kv, k, v = (float(match[name]) if match[name] else None for name in ("kv", "k", "v"))
        both = round(k + v, 2) if k is not None and v is not None else None
        tokens = int(match["tokens"]) if match["tokens"] else None
        dtype = stored_dtype(match["dtype"]) if match["dtype"] else None
        pool = Pool(tokens, both if kv is None else kv, k, v, dtype)
        pools = self.draft_pools if writer in self.done else self.pools
        if pool not in pools:
            pools.append(pool)


def _writer(text: str) -> str:
    """The rank that wrote a line, as its stamp names it."""
    match = _WRITER.match(text.lstrip())
    return match[1].strip() if match else ""


def _settled(said: dict[str, Any], log: _Sizes) -> dict[str, Any]:
    options = stated_controls(log.options)
    stated_tokens = said.get("kv_tokens_final") or said.get("kv_tokens") or said.get("full_tokens")
    pool = _main_pool(log.pools, stated_tokens)
    facts = {
        **options,
        **{name: value for name, value in said.items() if name not in _WORKING},
        "framework": "sglang",
        "model": clean_model(log.options["model_path"]) if log.options.get("model_path") else None,
        "architecture": next((name for name in log.classes if not DRAFTER_CLASS.search(name)), None),
        "tp": options.get("tp") or (max(log.ranks) + 1 if len(log.ranks) > 1 else None),
        "quantization": log.quant.get("quant") or options.get("quantization"),
        "weight_format": log.quant["algo"].lower() if "algo" in log.quant else None,
        "kv_tokens": stated_tokens or pool.tokens,
        "kv_allocated_gib": pool.gib,
        "k_gib": pool.k_gib,
        "v_gib": pool.v_gib,
        "state_gib": log.state_gib,
        "kv_cache_dtype_resolved": _stored(said, pool, options.get("kv_cache_dtype_requested")),
        "block_size": options.get("block_size") or _page(log.options),
        **_weights(said, log),
    }
    facts |= _parallel_attention(log.options, facts)
    facts["draft_model"] = _drafter(log.options)
    if log.draft_pools:
        facts["draft_kv_allocated_gib"] = log.draft_pools[0].gib
    several = len(log.pools) > 1 or log.state_gib is not None
    if len(log.pools) > 1:
        facts["pools"] = [{"kv_tokens": entry.tokens, "gib": entry.gib} for entry in log.pools]
    facts |= {} if several else _observed(pool.gib, facts["kv_tokens"])
    facts |= _outcome(facts, log)
    return {name: value for name, value in facts.items() if value is not None}


_WORKING = frozenset({"full_tokens", "kv_stored", "kv_recipe", "kv_tokens_final", "avail_before_weights_gib"})


def _page(options: dict[str, str]) -> int | None:
    """Tokens of a page, where the options say more than the default of one."""
    page = options.get("page_size", "")
    return int(page) if page.isdecimal() and int(page) > 1 else None


def _parallel_attention(options: dict[str, str], facts: dict[str, Any]) -> dict[str, Any]:
    """Ranks that share the heads of one replica, where attention runs data-parallel inside the tensor ranks."""
    tp, dp = facts.get("tp"), facts.get("dp")
    if options.get("enable_dp_attention") != "True" or not tp or not dp or tp % dp:
        return {}
    return {"attention_tp": tp // dp}


def _drafter(options: dict[str, str]) -> str | None:
    """The drafter's own model, where it is not the target itself."""
    named = options.get("speculative_draft_model_path", "None")
    return clean_model(named) if named not in ("None", "", options.get("model_path")) else None


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


def _stored(said: dict[str, Any], pool: Pool, asked: str | None) -> str | None:
    """The dtype that the pool holds; both FP4 recipes print one dtype, the warning or the flag names the recipe."""
    recipe = said.get("kv_recipe")
    if recipe:
        return "fp4_e2m1" if recipe.startswith("FP4 ") else str(recipe).lower()
    stored = pool.dtype or (stored_dtype(said["kv_stored"]) if "kv_stored" in said else None)
    return asked if stored == FP4_PAIR and asked in FP4_FLAGS else stored


FP4_PAIR = "float4_e2m1fn_x2"
FP4_FLAGS = ("fp4_e2m1", "fp4_mx_block16", "nvfp4")
"""Flags whose pools print this one dtype."""


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
