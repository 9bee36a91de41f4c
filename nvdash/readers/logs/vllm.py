"""What a vLLM server log says of memory, cache, backend and configuration, from 0.2 to today.

Requested (the user's options), resolved (what the engine says it uses) and observed (bytes of the pool by its tokens)
stay apart. A size that no line prints is unknown; values are never added over ranks.
"""

import re
from collections.abc import Iterable
from typing import Any

from nvdash.readers.logs.facts import DRAFTER_CLASS, Facts, flags, stated_controls, stored_dtype, without_speculation
from nvdash.readers.logs.vllm_patterns import ENGINE, MEMORY, SIZES, WEIGHTS
from nvdash.readers.record import clean_model, is_path

GIB = 2**30

_FAMILY = r"(?=\w*(?i:attn|attention|flash|xformers|sdpa|mla|rocm|pallas|ipex|triton|torch|flex))"
"""A word that is a backend's name and not that of a tool; what follows is read from its first letter."""
_BACKENDS = tuple(
    re.compile(regex)
    for regex in (
        r"Using AttentionBackendEnum\.(\w+) backend",
        rf"Using ({_FAMILY}\w+) attention backend",
        r"Using ([A-Za-z][\w ]{0,40}?) backend on V1 engine",
        rf"Using ({_FAMILY}[A-Z][A-Z0-9_]+) backend\b(?! for)",
        r"Using (Flash Attention|FlashAttention|FlashInfer|XFormers|FlashMLA|Triton MLA|Torch SDPA|ROCmFlashAttention)"
        r" backend",
    )
)
BACKEND_NAMES = {
    "flash attention": "FLASH_ATTN",
    "flashattention": "FLASH_ATTN",
    "flash attention mla": "FLASH_ATTN_MLA",
    "flashinfer": "FLASHINFER",
    "flashinfer mla": "FLASHINFER_MLA",
    "flashmla": "FLASHMLA",
    "cutlass mla": "CUTLASS_MLA",
    "triton": "TRITON_ATTN",
    "triton attention": "TRITON_ATTN",
    "triton mla": "TRITON_MLA",
    "xformers": "XFORMERS",
    "torch sdpa": "TORCH_SDPA",
    "flexattention": "FLEX_ATTENTION",
    "flex attention": "FLEX_ATTENTION",
    "rocmflashattention": "ROCM_FLASH",
    "aiter flash attention": "ROCM_AITER_FA",
    "aiter mla": "ROCM_AITER_MLA",
    "aiter unified attention": "ROCM_AITER_UNIFIED_ATTN",
    "rocm attention": "ROCM_ATTN",
}
"""Backend ids by the words older releases print."""
_KERNELS = re.compile(r"(?:Selected|Using) (\w*LinearKernel) for")
_RANK = re.compile(r"\((?:\w*Worker|EngineCore)[ _]?((?:(?:DP|PP|TP|DCP|EP)\d+_?)+)")
_RANK_PARTS = re.compile(r"(?<![A-Z])(DP|PP|TP|DCP)(\d+)")
_STATS = re.compile(
    r"Running: (\d+) reqs.*?Waiting: (\d+) reqs.*?KV cache usage: ([\d.]+)%(?:.*?Prefix cache hit rate: ([\d.]+)%)?"
)
_PREEMPTED = re.compile(r"total_num_cumulative_preemption=(\d+)|preempt\w{0,6}[^\d\w]{0,20}(\d+) times?")
_FAILURES = {
    "is larger than the available KV cache memory": "the cache of one request is larger than the pool",
    "No available memory for the cache blocks": "no memory left for the KV cache",
    "OutOfMemoryError": "out of GPU memory",
    "is not valid for this configuration": "the attention backend was refused",
    "No valid attention backend found": "no attention backend accepts this configuration",
    "Unknown attention backend": "the attention backend is unknown",
    "that can be stored in KV cache": "one request is longer than the cache",
    "less than desired GPU memory utilization": "another process holds the GPU's memory",
    "EngineCore failed to start": "the engine did not start",
    "Engine core initialization failed": "the engine did not start",
    "Engine process failed to start": "the engine did not start",
}
"""Messages of a server that did not start, the most telling first, in our own words (they quote paths)."""
_OPTION_LINES = ("non-default args:", "with config:", "Namespace(", "vllm serve", "Launching vLLM with")

# kv_cache_utils.py line of the token message by release, a hint where no version is printed.
_SOURCE_LINES = {
    "0.8": (566, 634), "0.9": (716,), "0.10": (831, 849, 1013, 864), "0.11": (1087, 1229), "0.13": (1291,),
    "0.16": (1307,), "0.18": (1316, 1319), "0.20": (1711, 1731), "0.21": (1708,), "0.24": (2146,), "0.27": (2235,),
}  # fmt: skip
_SOURCE_LINE = re.compile(r"kv_cache_utils\.py:(\d+)\] \w[\w +]* KV cache size")
UNTAGGED = ("0.1.dev", "0.0.", "dev")
"""How the version of a build without tags begins; it says nothing of its age."""
SMALLEST_BLOCK = 8
"""Every block holds a multiple of so many tokens, but for kernels of one token."""
RULE_CHANGED = (0, 21)
"""First release that prints concurrency x length instead of blocks x block size."""


class Log:
    """One server's messages, taken one by one."""

    def __init__(self) -> None:
        self._said, self._log = Facts(), _Context()

    def take(self, text: str) -> None:
        """Take one message in; a start after sizes or a failure begins anew, so that the last start counts."""
        if "throughput:" in text:
            self._log.load(self._said, text)
            return
        if "vLLM API server version" in text and self._log.ended(self._said):
            self._said, self._log = Facts(), _Context(self._log.starts + 1)
        if "Resolved architecture" in text and DRAFTER_CLASS.search(text.split("Resolved architecture", 1)[1]):
            return
        for table in (SIZES, WEIGHTS, MEMORY, ENGINE):
            self._said.match(table, text)
        self._log.take(self._said, text)

    def facts(self) -> dict[str, Any]:
        """The facts about the server, each by its normal name."""
        return _settled(self._said.values, self._log)


def read(messages: Iterable[str]) -> dict[str, Any]:
    """The facts of one server whose messages are at hand."""
    log = Log()
    for text in messages:
        log.take(text)
    return log.facts()


class _Context:
    """What needs more than one pattern: options, ranks, backends, load, failures."""

    def __init__(self, starts: int = 1) -> None:
        self.starts = starts
        self.arguments: dict[str, str] = {}
        self.config: dict[str, str] = {}
        self.drafter: dict[str, str] = {}
        """Settings of the drafter, as the user or the engine states them."""
        self.ranks: dict[str, set[int]] = {name: set() for name in ("dp", "pp", "tp", "dcp")}
        self.release_hint: str | None = None
        self.failures: set[str] = set()

    def take(self, facts: Facts, text: str) -> None:
        """Take one message in."""
        if any(word in text for word in _OPTION_LINES):
            self._options(text)
        for rank in _RANK.finditer(text) if "pid=" in text else ():
            for name, digits in _RANK_PARTS.findall(rank[1]):
                self.ranks[name.lower()].add(int(digits))
        if "backend" in text:
            self._backend(facts, text)
        if "LinearKernel" in text and (kernel := _KERNELS.search(text)):
            facts.collect("linear_kernels", kernel[1])
        if "preempt" in text and (count := _PREEMPTED.search(text)):
            facts.latest("preemptions", int(count[1] or count[2]))
        if "kv_cache_utils.py" in text and (place := _SOURCE_LINE.search(text)):
            number = int(place[1])
            self.release_hint = next((r for r, lines in _SOURCE_LINES.items() if number in lines), None)
        self.failures |= {literal for literal in _FAILURES if literal in text}

    def ended(self, said: Facts) -> bool:
        """Whether this start came as far as a server comes: to its sizes, or to a failure."""
        return bool(self.failures) or any(name in said.values for name in ("kv_tokens", "available_kv_gib"))

    def _options(self, text: str) -> None:
        text, drafter = without_speculation(text)
        self.drafter |= {name: value for name, value in drafter.items() if value != "None"}
        if "with config:" in text:
            self.config = flags(text.split("with config:", 1)[1]) | self.config
        else:
            self.arguments = self.arguments | flags(text)

    @staticmethod
    def _backend(facts: Facts, text: str) -> None:
        if "MoE backend" in text or "MLA prefill" in text or "all2all" in text.lower() or "GEMM" in text:
            return
        for regex in _BACKENDS:
            if match := regex.search(text):
                facts.collect("attention_backends", BACKEND_NAMES.get(match[1].lower(), match[1]))
                return

    @staticmethod
    def load(facts: Facts, text: str) -> None:
        """Take a line of running statistics in: peaks of load, the latest hit rate."""
        stats = _STATS.search(text)
        if stats is None:
            return
        running, waiting, usage, hits = stats.groups()
        values = facts.values
        values["running_max"] = max(values.get("running_max", 0), int(running))
        values["waiting_max"] = max(values.get("waiting_max", 0), int(waiting))
        values["kv_usage_max"] = max(values.get("kv_usage_max", 0.0), round(float(usage) / 100, 6))
        if hits is not None:
            values["prefix_hit_rate"] = round(float(hits) / 100, 6)


def _settled(said: dict[str, Any], log: _Context) -> dict[str, Any]:
    """Facts about the server out of what was said, each by its normal name."""
    facts = {
        **stated_controls({**log.config, **log.arguments}),
        **{name: value for name, value in said.items() if name not in _WORKING},
        "framework": "vllm",
    }
    versions = [said.get(f"version_{printer}") for printer in ("server", "engine", "banner")]
    facts["version"] = next(filter(None, versions), None)
    facts["model"] = _model(said, log)
    facts["model_folder"] = _folder(said, log, facts["model"])
    facts |= _weights(said)
    facts |= _cache(said, log)
    facts |= {name: facts.get(name) or _size(ranks) for name, ranks in log.ranks.items()}
    facts |= _speculation(log, facts["model"])
    facts["max_num_batched_tokens"] = said.get("compiled_tokens") or facts.get("max_num_batched_tokens")
    facts["kv_pool_bytes"] = _asked_pool({**log.config, **log.arguments}) or facts.get("kv_pool_bytes")
    facts["state_dtype"] = said.get("state_dtype") or _state_dtype({**log.config, **log.arguments})
    backends = said.get("attention_backends", [])
    if backends:
        facts["attention_backend"] = backends[0]
        facts["attention_backends"] = backends if len(backends) > 1 else None
    if "block_size" not in said:
        facts["block_size"] = said.get("block_size_backend", _argument(log, "block_size"))
    facts |= _platform(said, log)
    facts |= _pool(facts, said, log)
    facts["server_starts"] = log.starts if log.starts > 1 else None
    facts |= _outcome(facts, log)
    return {name: value for name, value in facts.items() if value is not None and (name, value) not in _UNDECIDED}


_WORKING = frozenset(
    {
        "version_server",
        "version_engine",
        "version_banner",
        "model_banner",
        "model_loaded",
        "weights_profile",
        "weights_loaded",
        "weights_usage",
        "kv_stored",
        "kv_record",
        "block_size_backend",
        "attention_backends",
        "compiled_tokens",
        "cpu_pool_gib",
        "total_bytes",
        "pool_gib",
    }
)
"""Names that a pattern states and `_settled` turns into a normal one."""


_UNDECIDED = [("moe_backend", "auto"), ("attention_backend", "auto")]


def _argument(log: _Context, name: str) -> Any:
    value = stated_controls({name: log.arguments[name]}).get(name) if name in log.arguments else None
    return value if isinstance(value, int) else None


def _model(said: dict[str, Any], log: _Context) -> str | None:
    """The model id: the user's, the banner's, the engine's; a path gives way to the served name."""
    asked = [text for name in ("model", "model_tag") if (text := log.arguments.get(name)) not in NO_MODEL]
    stated = [*asked[:1], said.get("model_banner"), log.config.get("model")]
    named = [text for text in stated if text and not is_path(text)]
    if named:
        return clean_model(named[0])
    served = (log.arguments.get("served_model_name") or log.config.get("served_model_name") or "").strip("[]'\" ")
    if served and not is_path(served):
        return clean_model(served.split(",")[0].strip("' "))
    loaded = said.get("model_loaded")
    if loaded and not is_path(loaded):
        return clean_model(loaded)
    paths = [text for text in stated if text]
    return clean_model(paths[0]) if paths else None


NO_MODEL = (None, "", "None", "True", "False")
"""What stands for a model in options that name none, or on another line."""


def _folder(said: dict[str, Any], log: _Context, model: str | None) -> str | None:
    """The last part of the model's path, where the model is known by the name it is served under."""
    stated = [log.arguments.get("model"), log.config.get("model"), said.get("model_loaded")]
    folder = next((clean_model(text) for text in stated if text and is_path(text)), None)
    return folder if folder != model else None


def _weights(said: dict[str, Any]) -> dict[str, Any]:
    profile, loaded = said.get("weights_profile"), said.get("weights_loaded")
    if profile is None:
        return {"weights_gib": loaded if loaded is not None else said.get("weights_usage")}
    return {"weights_gib": profile, "weights_gib_precise": loaded}


def _cache(said: dict[str, Any], log: _Context) -> dict[str, Any]:
    """The cache dtype that was asked for and the one that the engine says it uses."""
    asked = log.arguments.get("kv_cache_dtype")
    engine = log.config.get("kv_cache_dtype")
    resolved = said.get("kv_record") or said.get("kv_stored")
    if resolved is not None:
        resolved = stored_dtype(resolved)
    elif engine not in (None, "auto"):
        resolved = engine
    if asked is None and engine == "auto":
        asked = "auto"
    return {"kv_cache_dtype_requested": asked, "kv_cache_dtype_resolved": resolved}


def _size(ranks: set[int]) -> int | None:
    """The number of ranks when more than rank 0 wrote: all of them, or the power of two above the highest one seen."""
    if len(ranks) < 2:
        return None
    count = max(ranks) + 1
    return count if ranks == set(range(count)) else 1 << (count - 1).bit_length()


def _speculation(log: _Context, model: str | None) -> dict[str, Any]:
    """The drafter's method, its tokens per step, and its own model where that is not the target itself."""
    stated = {**log.config, **log.arguments, **log.drafter}
    counts = (stated.get(name) for name in ("num_speculative_tokens", "num_spec_tokens"))
    tokens = next((int(count) for count in counts if count and count.isdecimal()), None)
    if tokens is None:
        return {"num_speculative_tokens": None, "spec_method": None}
    named = log.drafter.get("model") or stated.get("speculative_model")
    word = named.strip("[]") if named and named.startswith("[") else None
    drafter = clean_model(named) if named and word is None else None
    method = log.drafter.get("method") or word or ("draft_model" if stated.get("speculative_model") else None)
    return {
        "num_speculative_tokens": tokens,
        "spec_method": method,
        "draft_model": drafter if drafter != model and drafter not in (None, _base_name(model)) else None,
    }


def _state_dtype(options: dict[str, str]) -> str | None:
    """The type of recurrent states that the user asked for."""
    asked = options.get("mamba_ssm_cache_dtype")
    return asked if asked not in ("auto", "None") else None


def _asked_pool(options: dict[str, str]) -> int | None:
    """The pool in bytes where the user fixed it, which no profiling changes."""
    asked = options.get("kv_cache_memory_bytes") or ""
    return int(asked) if asked.isdecimal() and int(asked) > 0 else None


def _base_name(model: str | None) -> str | None:
    return model.rpartition("/")[2] if model else None


def _platform(said: dict[str, Any], log: _Context) -> dict[str, Any]:
    """The device family, and the memory that the Ascend plug-in and the CPU backend print in words of their own."""
    if "cpu_pool_gib" in said and "available_kv_gib" not in said:
        return {
            "platform": said.get("platform") or "cpu",
            "available_kv_gib": float(said["cpu_pool_gib"]),
            "kv_pool_bytes": int(said["cpu_pool_gib"] * GIB),
        }
    if "available_min_bytes" in said:
        gib = round(said["available_min_bytes"] / GIB, 2)
        return {"platform": "ascend", "available_kv_gib": said.get("available_kv_gib", gib)}
    return {"platform": said.get("platform") or log.config.get("device_config")}


def _pool(facts: dict[str, Any], said: dict[str, Any], log: _Context) -> dict[str, Any]:
    """How the printed tokens are to be read, and the bytes per token that the pool shows."""
    found: dict[str, Any] = {}
    tokens, length, times = facts.get("kv_tokens"), facts.get("max_model_len"), facts.get("max_concurrency")
    blocks = facts.get("num_blocks")
    if tokens is None and blocks and length and times and "num_blocks" in said and "num_gpu_blocks" not in said:
        block = times * length / blocks
        if abs(block - round(block)) < 0.01 and round(block) in (8, 16, 32, 64, 128):
            tokens = found["kv_tokens"] = blocks * round(block)
            found["block_size"] = facts.get("block_size") or round(block)
    if tokens is None:
        return found
    found["kv_tokens_rule"] = _rule(facts, log)
    pool = said.get("pool_gib")
    available = facts.get("available_kv_gib")
    gib, source = (pool, "explicit pool") if pool else (available, "available memory")
    if gib and gib > 0:
        bytes_per_token = gib * GIB / tokens
        found["observed"] = {
            "kv_bytes_per_token": round(bytes_per_token, 3) if bytes_per_token % 1 else int(bytes_per_token),
            "pool_bytes": int(gib * GIB),
            "pool_source": source,
            "kv_tokens": tokens,
        }
    return found


def _outcome(facts: dict[str, Any], log: _Context) -> dict[str, Any]:
    """Whether the server came up: failed where it says so, ok where it sized its cache, unknown otherwise."""
    if log.failures:
        reason = next(text for literal, text in _FAILURES.items() if literal in log.failures)
        negative = facts.get("available_kv_gib") is not None and facts["available_kv_gib"] <= 0
        return {"status": "failed", "failure": "no memory left for the KV cache" if negative else reason}
    sized = any(facts.get(name) is not None for name in ("kv_tokens", "available_kv_gib", "num_blocks"))
    return {"status": "ok" if sized else None}


def _rule(facts: dict[str, Any], log: _Context) -> str | None:
    """`blocks` or `concurrency`: from the numbers where they decide, else from the release."""
    tokens, length, times = facts.get("kv_tokens"), facts.get("max_model_len"), facts.get("max_concurrency")
    if tokens and length and times and abs(tokens - times * length) > 0.0051 * length + 1:
        return "blocks"
    release = facts.get("version")
    if release is None or release.startswith(UNTAGGED):
        if tokens and tokens % SMALLEST_BLOCK and facts.get("block_size") != 1:
            return "concurrency"
        release = log.release_hint
    numbers = re.match(r"(\d+)\.(\d+)", release or "")
    if not numbers:
        return None
    return "concurrency" if (int(numbers[1]), int(numbers[2])) >= RULE_CHANGED else "blocks"
