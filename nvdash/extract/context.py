"""The cells that are evaluated: one architecture, cache dtype and layer shape, as the source would see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nvdash.extract.values import Capability, Stub, Symbol, Unknown

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 103, 110, 120, 121)
GQA_HEAD_SIZES = (64, 80, 96, 128, 192, 256, 512)
MLA_HEAD_SIZES = (320, 512, 576)
WIDE = ("auto", "float16", "bfloat16", None)
WINDOW = 4096
PLAIN_HEAD = {False: 128, True: 576}


@dataclass(frozen=True, slots=True)
class Cell:
    """One question to the selector: the axes of a statement, as values."""

    arch: int
    kv_cache_dtype: str
    head_size: int
    mla: bool = False
    sparse: bool = False
    sinks: bool = False
    window: bool = False
    dcp: int = 1
    causal: bool = True


def capability_of(arch: int) -> Capability:
    """120 is compute capability 12.0."""
    return Capability(arch // 10, arch % 10)


def axes_of(cell: Cell, platform: Any, kv_quant_mode: Any) -> dict[str, Any]:
    """The `$names` of the assumption table for one cell."""
    wide = cell.kv_cache_dtype in WIDE
    bf16 = Symbol("torch.bfloat16")
    return {
        "capability": capability_of(cell.arch),
        "platform": platform,
        "dtype": bf16,
        "stored_dtype": bf16 if wide else Unknown("kv_cache_spec.dtype"),
        "kv_cache_dtype": cell.kv_cache_dtype,
        "kv_quant_mode": kv_quant_mode,
        "layer_dtype": Unknown("the sparse layer's own cache dtype") if cell.sparse else cell.kv_cache_dtype,
        "head_size": cell.head_size,
        "use_mla": cell.mla,
        "use_sparse": cell.sparse,
        "has_sink": cell.sinks,
        "has_sliding_window": cell.window,
        "window": WINDOW if cell.window else None,
        "dcp": cell.dcp,
        "use_dcp": cell.dcp > 1,
        "non_causal": not cell.causal,
        "query_heads": Unknown("query heads per rank") if cell.mla else 32,
        "kv_heads": 1 if cell.mla else 8,
        "window_left": WINDOW - 1 if cell.window else -1,
        "hyperparameters": Stub("hyperparameters"),
        "rope_size": 0 if cell.head_size == 512 else 64,
        "dcp_pair": (cell.dcp, 0),
        "vllm_config": Stub("vllm_config"),
        "dcp_group": Stub("dcp_group"),
        "group_of_one": Stub("group_of_one"),
    }


def selector_arguments(axes: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `validate_configuration` under every name a release gave them."""
    return {
        "head_size": axes["head_size"],
        "dtype": axes["dtype"],
        "kv_cache_dtype": axes["kv_cache_dtype"],
        "block_size": None,
        "use_mla": axes["use_mla"],
        "has_sink": axes["has_sink"],
        "use_sparse": axes["use_sparse"],
        "use_mm_prefix": False,
        "use_per_head_quant_scales": False,
        "device_capability": axes["capability"],
        "attn_type": "decoder",
        "has_sliding_window": axes["has_sliding_window"],
        "use_non_causal": axes["non_causal"],
        "use_batch_invariant": False,
        "use_kv_connector": False,
        "use_pcp": False,
        "use_adaptive_verification": False,
        "use_dcp": axes["use_dcp"],
        "use_rswa": False,
    }


def priority_arguments(axes: Mapping[str, Any], num_heads: int) -> dict[str, Any]:
    """The parameters of `_get_backend_priorities` under every name a release gave them."""
    return {
        "use_mla": axes["use_mla"],
        "device_capability": axes["capability"],
        "num_heads": num_heads,
        "kv_cache_dtype": axes["kv_cache_dtype"],
        "use_non_causal": axes["non_causal"],
        "head_size": axes["head_size"],
        "use_mm_prefix": False,
    }


def constructor_arguments(axes: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of implementation and metadata builder constructors."""
    heads, kv_heads, size = axes["query_heads"], axes["kv_heads"], axes["head_size"]
    return {
        "num_heads": heads,
        "num_kv_heads": kv_heads,
        "head_size": size,
        "scale": 0.1,
        "alibi_slopes": None,
        "sliding_window": axes["window"],
        "kv_cache_dtype": axes["layer_dtype"],
        "logits_soft_cap": None,
        "attn_type": "decoder",
        "kv_sharing_target_layer_name": None,
        "blocksparse_params": None,
        "use_irope": False,
        "sinks": Unknown("sinks tensor") if axes["has_sink"] else None,
        "kv_cache_spec": Stub("kv_cache_spec"),
        "vllm_config": Stub("vllm_config"),
        "layer_names": ["layer"],
        "device": Unknown("device"),
        "indexer": Unknown("indexer"),
        "topk_indices_buffer": Unknown("top-k buffer"),
    }
