"""What the executed kernels and the allocated bytes of a case prove, stage by stage."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.errors import NvdashError
from nvdash.formats import CACHE_ALIASES, CACHE_FORMATS, cache_format, latent_record
from nvdash.smoke.kernels import ATTENTION_ROLES, Kernel, Rules, classify
from nvdash.smoke.spec import Layer

ELEMENTS = {
    "c10::BFloat16": ("bf16", 2),
    "c10::Half": ("fp16", 2),
    "float": ("fp32", 4),
    "c10::Float8_e4m3fn": ("fp8_e4m3", 1),
    "c10::Float8_e5m2": ("fp8_e5m2", 1),
    "unsigned char": (None, 1),
    "signed char": ("int8", 1),
}
"""Element types as a profiler prints them: the dtype they prove (none for plain bytes) and their size."""
SAME = {
    "auto": "bf16",
    "bfloat16": "bf16",
    "float16": "fp16",
    "fp8": "fp8_e4m3",
    "fp8_ds_mla": "fp8_e4m3",
    "fp8_per_token_head": "fp8_e4m3",
    "int8_per_token_head": "int8",
    "nvfp4_4over6": "nvfp4",
    "nvfp4_ds_mla": "nvfp4",
}
"""Formats that kernels read the same way, under one name."""
PHASE_STAGES = ("prefill", "decode")
FRESH = re.compile(r"Ragged|SeparateQkv|PackedQkv|Single(Prefill|Decode)With|_S_qkv_")
"""Kernels that attend to keys and values as computed, before the cache: their type says nothing of it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One kernel row of a trace and what its name says."""

    row: Mapping[str, Any]
    kernel: Kernel

    @property
    def calls(self) -> int:
        """Launches."""
        return int(self.row.get("calls") or 0)

    def as_dict(self) -> dict[str, Any]:
        """The row of a report."""
        kernel = self.kernel
        named = {"family": kernel.family, "role": kernel.role, "kv_dtype": kernel.kv_dtype, "rule": kernel.rule}
        return {**self.row, **named}


def classified(rows: Iterable[Mapping[str, Any]], rules: Rules) -> list[Seen]:
    """The rows with what their names say; operations that only call another one are dropped."""
    seen = [Seen(row, classify(str(row.get("name")), rules)) for row in rows]
    return [item for item in seen if item.kernel.role != "wrapper"]


def kernel_name(kv_cache_dtype: str) -> str:
    """The name under which kernels show a cache dtype."""
    return SAME.get(kv_cache_dtype, kv_cache_dtype)


def token_bytes(layers: Sequence[Layer], kv_cache_dtype: str, framework: str = "vllm") -> int | None:
    """Bytes one token takes over these layers in this format, by the formula; None where none is known."""
    flag = "bfloat16" if kv_cache_dtype == "auto" else kv_cache_dtype
    try:
        return sum(_layer_bytes(layer, flag, framework) for layer in layers)
    except NvdashError:
        return None


def _layer_bytes(layer: Layer, flag: str, framework: str) -> int:
    if layer.is_latent:
        rope = layer.key_size - layer.value_size
        family = "mla_sparse" if flag == "nvfp4_ds_mla" else "mla"
        return latent_record(framework, flag, family).token_bytes(layer.value_size, rope)
    return layer.kv_heads * cache_format(flag).token_bytes(layer.key_size, layer.value_size)


def formats_of(bytes_per_token: float, layers: Sequence[Layer], spread: float = 0) -> list[str]:
    """Formats whose formula gives these bytes, or nearly so: what a pool of that size could hold."""
    sizes = {name: token_bytes(layers, name) for name in CACHE_FORMATS}
    return [name for name, size in sizes.items() if size and abs(bytes_per_token - size) <= spread * size]


def element_evidence(seen: Iterable[Seen]) -> dict[str, Any] | None:
    """The cache tensor as an attention operation took it: element type, dtype it proves, bytes of one record."""
    for item in seen:
        types, shapes = item.row.get("types"), item.row.get("shapes")
        if not item.kernel.is_attention or not types or not shapes:
            continue
        for kind, shape in zip(types[1:], shapes[1:], strict=False):
            if kind in ELEMENTS and len(shape) >= 4:
                dtype, size = ELEMENTS[kind]
                return {"tensor_dtype": kind, "tensor_shape": shape, "dtype": dtype, "record_bytes": size * shape[-1]}
    return None


def record_bytes(layer: Layer, kv_cache_dtype: str) -> int | None:
    """Bytes of one head's key of one token in this format."""
    name = CACHE_ALIASES.get(kv_cache_dtype, "bfloat16" if kv_cache_dtype == "auto" else kv_cache_dtype)
    entry = CACHE_FORMATS.get(name)
    return entry.key.stored_bytes(layer.key_size) if entry and not layer.is_latent else None


def launches(seen: Sequence[Seen], steps: Mapping[str, int], layers: int) -> list[dict[str, Any]]:
    """Attention and append launches per phase against steps x layers; merge helpers are not counted.

    Appends may lie outside the steps, where an engine without a scheduler writes before it attends.
    """
    rows = []
    outside = any(item.kernel.role == "kv_write" and item.row.get("phase") is None for item in seen)
    for phase, count in steps.items():
        expected = count * layers
        for what, roles in (("attention", ATTENTION_ROLES), ("append", {"kv_write"})):
            mine = (item for item in seen if item.row.get("phase") == phase and item.kernel.role in roles)
            found = sum(item.calls for item in mine)
            ok = found >= expected and found % expected == 0 if expected else None
            row = {"phase": phase, "what": what, "steps": count, "layers": layers, "expected": expected}
            rows.append({**row, "launches": found, "ok": None if what == "append" and outside else ok})
    return rows


def stage_evidence(stage: str, seen: Sequence[Seen], wanted: str, is_latent: bool = False) -> dict[str, Any]:
    """What ran in one stage: families, the cache dtypes their names carry, and whether they prove or contradict.

    A latent layer's prefill attends to unpacked keys and values, so their type never contradicts its cache.
    """
    roles = {"kv_write": {"kv_write"}}.get(stage, ATTENTION_ROLES)
    phases = {stage, "mixed"} if stage in PHASE_STAGES else {item.row.get("phase") for item in seen}
    mine = [item for item in seen if item.kernel.role in roles and item.row.get("phase") in phases]
    readers = [item for item in mine if not FRESH.search(str(item.row["name"]))]
    dtypes = {item.kernel.kv_dtype for item in readers if item.kernel.kv_dtype}
    widened = any(item.kernel.role == "kv_dequant" and item.kernel.kv_dtype in (wanted, None) for item in seen)
    excused = stage in PHASE_STAGES and (widened or (is_latent and stage == "prefill"))
    queries = sorted({item.kernel.query_dtype for item in mine if item.kernel.query_dtype})
    return {
        "tested": bool(mine),
        "families": sorted({item.kernel.family for item in mine}),
        "kv_dtypes": sorted(dtypes),
        "proven": wanted in dtypes,
        "contradicts": bool(dtypes) and wanted not in dtypes and not excused,
        **({"compute": {"q": queries[0]}} if len(queries) == 1 else {}),
        **({"kernel": "dequant"} if widened and excused and wanted not in dtypes else {}),
    }


def weights_evidence(seen: Sequence[Seen], weights: str | None, rules: Rules) -> dict[str, Any] | None:
    """Which GEMMs served the weight format that was asked for; None where no format or no GEMM is known."""
    expected = rules.weights.get(weights or "")
    gemms = {item.kernel.family for item in seen if item.kernel.role == "weights_gemm"}
    if expected is None or not gemms:
        return None
    native, dequant = (bool(gemms & set(expected[kind])) for kind in ("native", "dequant"))
    kind = "native" if native else "dequant" if dequant else "unknown"
    return {"tested": True, "families": sorted(gemms), "proven": native or dequant, "kernel": kind}


def backend_shown(backend: str | None, seen: Sequence[Seen], rules: Rules) -> bool | None:
    """Whether the attention kernels are those of a backend; None where that cannot be told."""
    families = {item.kernel.family for item in seen if item.kernel.is_attention}
    known = rules.backends.get(backend or "")
    return bool(families & set(known)) if known and families else None
