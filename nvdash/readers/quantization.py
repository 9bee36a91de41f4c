"""What a checkpoint's config says of its weights and of its cache.

Three writers say it in three ways: `quantization_config` of compressed-tensors and modelopt, the short form of
FP8, AWQ, GPTQ and MXFP4, and modelopt's own `hf_quant_config.json`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nvdash.targets import Checkpoint

METHOD_FORMATS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "awq": "awq", "gptq": "gptq", "mxfp4": "mxfp4"}
ALGORITHM_FORMATS = {
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "FP8": "fp8",
    "FP8_PB_WO": "fp8",
    "MXFP8": "mxfp8",
    "W4A16_AWQ": "awq",
    "INT4": "int4",
}
WIDE_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
QUANTISED_NAMES = ("nvfp4", "mxfp4", "fp8", "awq", "gptq", "int4", "int8", "w4a16", "w8a8", "fp4")


def quantization_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The quantisation part of a config, wherever its writer put it."""
    for part in _parts(config):
        found = part.get("quantization_config") or part.get("compression_config")
        if isinstance(found, dict):
            inner = found.get("quantization")
            return inner if isinstance(inner, dict) else found
    return None


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield config
    for key in ("text_config", "llm_config", "language_config"):
        part = config.get(key)
        if isinstance(part, dict):
            yield part


def checkpoint_of_config(config: Mapping[str, Any], name: str) -> Checkpoint:
    """The checkpoint that this config stands in, as far as the config says.

    A name that says "quantised" beside a config that does not leaves weights and cache unknown.
    """
    quantised = quantization_of(config)
    if quantised is not None:
        return _quantised(quantised, name)
    named = next((word for word in QUANTISED_NAMES if word in name.lower()), None)
    weights = wide_type(config) if named is None else "unknown"
    return Checkpoint(weights, name, kv_cache_scheme_known=named is None, source="config.json")


def wide_type(config: Mapping[str, Any]) -> str:
    """The 16-bit (or wider) type of the layers that are not quantised; `bf16` where the config is silent."""
    for part in _parts(config):
        declared = part.get("torch_dtype") or part.get("dtype")
        if isinstance(declared, str):
            return WIDE_TYPES.get(declared.removeprefix("torch."), "bf16")
    return "bf16"


def _quantised(part: Mapping[str, Any], name: str) -> Checkpoint:
    groups = [group for group in _groups(part) if isinstance(group.get("weights"), dict)]
    return Checkpoint(
        weights=weight_format(part, groups),
        repository=name,
        method=_method(part),
        activations=_activations(groups),
        kv_cache_scheme=cache_scheme(part),
        kv_cache_scheme_known=True,
        wide_layers=wide_layers(part),
        source="config.json",
        group_size=next((size for group in groups if (size := group["weights"].get("group_size"))), None),
    )


def _groups(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    groups = part.get("config_groups")
    return [group for group in groups.values() if isinstance(group, dict)] if isinstance(groups, dict) else []


def _method(part: Mapping[str, Any]) -> str:
    producer = part.get("producer")
    by_modelopt = isinstance(producer, dict) and producer.get("name") == "modelopt"
    return "modelopt" if by_modelopt or "quant_algo" in part else str(part.get("quant_method") or "")


def weight_format(part: Mapping[str, Any], groups: list[Mapping[str, Any]]) -> str:
    """The narrowest weight format that the quantised layers have."""
    experts = ALGORITHM_FORMATS.get(str(part.get("moe_quant_algo")))
    declared = experts or ALGORITHM_FORMATS.get(str(part.get("quant_algo")).upper())
    if declared:
        return declared
    if groups:
        narrow = min(groups, key=lambda group: group["weights"].get("num_bits") or 16)
        return group_format(narrow, str(narrow.get("format") or part.get("format") or ""))
    method = str(part.get("quant_method") or "").lower()
    if method in ("gptq", "awq") and part.get("bits", 4) != 4:
        return f"int{part['bits']}"
    return METHOD_FORMATS.get(method, "unknown")


def group_format(group: Mapping[str, Any], packing: str) -> str:
    """The format of one group of compressed-tensors or modelopt."""
    weights = group["weights"]
    bits, kind, size = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    if bits == 4 and kind == "float":
        return "mxfp4" if packing.startswith("mxfp4") or size == 32 else "nvfp4"
    if bits == 8 and kind == "float":
        return "mxfp8" if packing.startswith("mxfp8") or size == 32 else "fp8"
    return f"int{bits}" if kind == "int" and bits in (4, 8) else "unknown"


def _activations(groups: list[Mapping[str, Any]]) -> str:
    """W4A4, W4A16, …: the narrowest group's weight and activation bits."""
    if not groups:
        return ""
    narrow = min(groups, key=lambda group: group["weights"].get("num_bits") or 16)
    inputs = narrow.get("input_activations")
    bits = inputs.get("num_bits") if isinstance(inputs, dict) else 16
    return f"W{narrow['weights'].get('num_bits')}A{bits}"


def cache_scheme(part: Mapping[str, Any]) -> str | None:
    """The cache format that the config asks for when the flag says `auto`; None when it asks for none."""
    scheme = part.get("kv_cache_scheme") or part.get("kv_cache_quant_algo")
    if isinstance(scheme, dict):
        asked = f"{scheme.get('type')}{scheme.get('num_bits')}"
        return {"float8": "fp8", "float4": "nvfp4"}.get(asked, asked)
    return str(scheme).lower() if scheme else None


def wide_layers(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Module patterns that the config leaves wide; empty where they are not listed or layers differ in format."""
    if part.get("quant_algo") == "MIXED_PRECISION":
        return ()
    for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"):
        listed = part.get(key)
        if isinstance(listed, list):
            return tuple(str(entry) for entry in listed)
    return ()
